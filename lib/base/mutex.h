// A mutex that clang checks: each guarded member names its lock, and a function that reads the
// member without the lock does not compile.
//
//   class Mailbox {
//    public:
//     void Put(std::string letter) {
//       const MutexLock lock(mutex_);
//       letters_.push_back(std::move(letter));
//       changed_.NotifyOne();
//     }
//     std::string Pop() {
//       const MutexLock lock(mutex_);
//       while (empty()) changed_.Wait(mutex_);
//       std::string letter = std::move(letters_.front());
//       letters_.pop_front();
//       return letter;
//     }
//
//    private:
//     bool empty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return letters_.empty(); }
//
//     Mutex mutex_;
//     CondVar changed_;
//     std::deque<std::string> letters_ ABSL_GUARDED_BY(mutex_);
//   };
//
// The analysis treats a lambda as a function without locks. So no wait takes a predicate: the
// condition stands in a loop around the wait, where the lock is visible.
//
// Scope: exclusion within a process. docs/design/0017-mutex.md says why not absl::Mutex.
//
// Thread safety: any thread; a MutexLock belongs to one thread.

#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tahoma {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex from construction to destruction, except between Unlock and Lock.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {
    if (held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() {
    held_ = false;
    mutex_.Unlock();
  }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.Lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// As std::condition_variable: a wait may end without a notification, so a wait stands in a loop.
class CondVar {
 public:
  // For waits of at most so long:
  //   const auto deadline = CondVar::In(timeout);
  //   while (letters_.empty() && changed_.WaitUntil(mutex_, deadline)) {
  //   }
  using Deadline = std::chrono::steady_clock::time_point;
  static Deadline In(std::chrono::nanoseconds duration) {
    return std::chrono::steady_clock::now() + duration;
  }

  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Each wait releases the mutex while waiting and holds the mutex again on return.
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held lock(mutex);
    changed_.wait(lock.lock);
  }
  // False when the deadline came first; the condition may hold nevertheless.
  bool WaitUntil(Mutex& mutex, Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held lock(mutex);
    return changed_.wait_until(lock.lock, deadline) == std::cv_status::no_timeout;
  }

  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  // A held mutex, in the form of the library's waits.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable changed_;
};

}  // namespace tahoma
