// A first-in first-out queue between threads, with a bound.
//
//   BoundedQueue<Command> queue(4096);
//   if (!queue.TryPush(command)) return ResourceExhausted("the command queue is full");
//   std::vector<Command> batch = queue.PopAll(1024);    // waits; empty only after Close()
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace tahoma {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // False when full or closed; the value is then untouched.
  bool TryPush(T value) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  // Waits for room. False only when closed.
  bool Push(T value) {
    {
      std::unique_lock lock(mutex_);
      not_full_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
      if (closed_) return false;
      items_.push_back(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  // Waits for at least one value, takes at most `limit`. Empty only when closed and drained.
  std::vector<T> PopAll(std::size_t limit) {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return closed_ || !items_.empty(); });
    return Take(limit);
  }

  // Pops like PopAll, but gives up after `timeout` with an empty vector.
  std::vector<T> PopAllFor(std::size_t limit, std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_for(lock, timeout, [&] { return closed_ || !items_.empty(); });
    return Take(limit);
  }

  // Refuses further values and wakes everyone; what is inside can still be taken.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  std::vector<T> Take(std::size_t limit) {
    std::vector<T> taken;
    while (!items_.empty() && taken.size() < limit) {
      taken.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    not_full_.notify_all();
    return taken;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace tahoma
