// Tells whether another thread is blocked, as the kernel says.
//
//   while (!overtaken && !IsBlocked(thread)) std::this_thread::yield();
//
// A test gives a thread the chance to do wrong. The thread then either does wrong, or is blocked by
// the lock under test. Waiting for either needs no guess of a duration. Use IsBlocked only for a
// thread that has passed all its other waits.
//
// Thread safety: pure functions of the machine's state.

#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace tahoma::testing {

// Whether the thread of this process sleeps in the kernel: on a lock, or for an event.
inline bool IsBlocked(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'S';
}

}  // namespace tahoma::testing
