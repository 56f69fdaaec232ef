// A lock that admits one call at a time, across threads and, during a rolling update, across
// processes.
//
//   CallLock lock(data_folder + "/serialize.lock");
//   absl::StatusOr<CallLock::Held> held = lock.Acquire();   // until `held` goes
//
// Thread safety: Acquire may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <mutex>
#include <string>

namespace tahoma::dra {

class CallLock {
 public:
  // Releases the lock when destroyed.
  class Held {
   public:
    Held(std::unique_lock<std::mutex> lock, int fd) : lock_(std::move(lock)), fd_(fd) {}
    Held(Held&& other) noexcept : lock_(std::move(other.lock_)), fd_(other.fd_) { other.fd_ = -1; }
    Held& operator=(Held&&) = delete;
    ~Held();

   private:
    std::unique_lock<std::mutex> lock_;
    int fd_;
  };

  explicit CallLock(std::string path) : path_(std::move(path)) {}

  // Waits until the lock is free. kUnavailable when the lock file cannot be opened.
  absl::StatusOr<Held> Acquire();

 private:
  const std::string path_;
  std::mutex mutex_;
};

}  // namespace tahoma::dra
