// The Instance that a sim-node's sockets share, and the wait for its next change.
//
// Scope: the lock, the listeners and the wait. Instance has the rules.
//
// Thread safety: any thread. The functions given to Read and Change run under the lock: they must
// not block, nor call this object again.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"
#include "sim-node/node/instance.h"

namespace tahoma::sim {

class LiveInstance {
 public:
  explicit LiveInstance(Instance instance) : instance_(std::move(instance)) {}

  template <typename Reader>
  auto Read(Reader&& read) const {
    const MutexLock lock(mutex_);
    return read(std::as_const(instance_));
  }

  // Runs `change` under the lock and returns its result. If the generation has changed, calls the
  // listeners without the lock, because listeners may read.
  template <typename Changer>
  auto Change(Changer&& change) {
    MutexLock lock(mutex_);
    const std::uint64_t before = instance_.generation();
    auto result = change(instance_);
    const bool changed = instance_.generation() != before;
    lock.Unlock();
    if (changed) Notify();
    return result;
  }

  // Runs `change` under the lock and wakes WaitForChange, without calling the listeners. A listener
  // may so store derived values in the instance.
  template <typename Changer>
  void Show(Changer&& change) {
    {
      const MutexLock lock(mutex_);
      change(instance_);
    }
    changed_.NotifyAll();
  }

  // Adds a listener, called after each change on the changing thread. Must be called before the
  // object is shared.
  void Listen(std::function<void()> listener) { listeners_.push_back(std::move(listener)); }

  // Waits until the instance's generation differs from `generation` and returns true. False after
  // `timeout`, or after Close, with the generation still the same.
  bool WaitForChange(std::uint64_t generation, std::chrono::nanoseconds timeout) {
    const auto deadline = CondVar::In(timeout);
    const MutexLock lock(mutex_);
    while (!closed_ && instance_.generation() == generation &&
           changed_.WaitUntil(mutex_, deadline)) {
    }
    return instance_.generation() != generation;
  }

  // Ends all waits, now and later.
  void Close() {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    changed_.NotifyAll();
  }

 private:
  void Notify() {
    changed_.NotifyAll();
    for (const auto& listener : listeners_) listener();
  }

  mutable Mutex mutex_;
  CondVar changed_;
  Instance instance_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> listeners_;  // fixed once the object is shared
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::sim
