// A first-in first-out queue between threads, with a bound.
//
//   BoundedQueue<std::string> queue(4096);
//   if (!queue.TryPush(line)) return ResourceExhausted("the queue of lines is full");
//   std::vector<std::string> batch = queue.PopAll(1024);    // waits; empty only after Close()
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"

namespace tahoma {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // False when full or closed; the value is then untouched.
  bool TryPush(T value) {
    {
      const MutexLock lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(value));
    }
    not_empty_.NotifyOne();
    return true;
  }

  // Waits for room. False only when closed.
  bool Push(T value) {
    {
      const MutexLock lock(mutex_);
      while (!closed_ && items_.size() >= capacity_) not_full_.Wait(mutex_);
      if (closed_) return false;
      items_.push_back(std::move(value));
    }
    not_empty_.NotifyOne();
    return true;
  }

  // Waits for at least one value, takes at most `limit`. Empty only when closed and drained.
  std::vector<T> PopAll(std::size_t limit) {
    const MutexLock lock(mutex_);
    while (!closed_ && items_.empty()) not_empty_.Wait(mutex_);
    return PopNow(limit);
  }

  // Pops like PopAll, but gives up after `timeout` with an empty vector.
  std::vector<T> PopAllFor(std::size_t limit, std::chrono::nanoseconds timeout) {
    const auto deadline = CondVar::In(timeout);
    const MutexLock lock(mutex_);
    while (!closed_ && items_.empty() && not_empty_.WaitUntil(mutex_, deadline)) {
    }
    return PopNow(limit);
  }

  // Refuses further values and wakes everyone; what is inside can still be taken.
  void Close() {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    not_empty_.NotifyAll();
    not_full_.NotifyAll();
  }

  bool closed() const {
    const MutexLock lock(mutex_);
    return closed_;
  }
  std::size_t size() const {
    const MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  std::vector<T> PopNow(std::size_t limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<T> taken;
    while (!items_.empty() && taken.size() < limit) {
      taken.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    not_full_.NotifyAll();
    return taken;
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar not_empty_;
  CondVar not_full_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma
