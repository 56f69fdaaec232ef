// A lock that admits one call at a time, across threads and, during a rolling update, processes.
//
// Thread safety: a lock may be taken from any thread; a Held belongs to one thread.

#pragma once

#include <absl/status/status.h>

#include <string>
#include <utility>

#include "lib/base/file_descriptor.h"
#include "lib/base/mutex.h"

namespace tahoma::dra {

class CallLock {
 public:
  class Held {
   public:
    explicit Held(CallLock& lock);
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    // kUnavailable when the lock file cannot be opened: other processes are not kept out then.
    const absl::Status& status() const { return status_; }

   private:
    const MutexLock lock_;
    FileDescriptor file_;  // its close drops the lock between processes
    absl::Status status_;
  };

  explicit CallLock(std::string path) : path_(std::move(path)) {}

 private:
  const std::string path_;
  Mutex mutex_;
};

}  // namespace tahoma::dra
