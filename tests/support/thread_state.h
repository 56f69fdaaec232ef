// Whether another thread can go on by itself, as the kernel says.
//
//   while (!overtaken && !IsBlocked(thread)) std::this_thread::yield();
//
// A thread that has been given the chance to do something wrong either has done it or is blocked by
// what must keep it from it. Waiting until one of the two is so needs no guess of how long that
// takes. Take it only for a thread that is past everything else that it waits for.
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
