// A pool of threads that grows and shrinks with the work.
//
// Scope: running closures. A thread without work for `idle` ends.
//
// Thread safety: every member may be called from any thread; Stop once.

#pragma once

#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>

#include "lib/base/mutex.h"

namespace tahoma::rest {

class Workers {
 public:
  struct Limits {
    int max_threads = 2048;
    std::size_t max_waiting = 4096;
    std::size_t stack_bytes = 512 << 10;
    std::chrono::milliseconds idle = std::chrono::seconds(10);
  };

  explicit Workers(Limits limits) : limits_(limits) {}
  ~Workers() { Stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False when no thread is free, none can be made and the line is full, or after Stop.
  bool Submit(std::function<void()> job);
  // Waits until the jobs that run and wait have ended, and the threads with them.
  void Stop();

  int threads() const;
  // True while some thread waits for work, or could be made.
  bool has_room() const;

 private:
  static void* Enter(void* self);
  void Work();
  bool StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  CondVar wanted_;
  CondVar ended_;
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  int threads_ ABSL_GUARDED_BY(mutex_) = 0;
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<pthread_t> last_ended_ ABSL_GUARDED_BY(mutex_);  // nobody has joined it yet
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::rest
