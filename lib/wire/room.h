// The bytes that the calls of a server may hold, in sum and for each caller. Whoever finds no room
// waits for it.
//
// Scope: numbers. The server knows which memory they stand for.
//
// Thread safety: every member may be called from any thread; a hold belongs to one at a time, and
// must not outlive the room.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/mutex.h"

namespace tahoma::wire {

class Room {
 public:
  struct Limits {
    std::size_t bytes = 0;
    std::size_t bytes_per_caller = 0;
  };

  // Gives its bytes back at its end.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept
        : room_(std::exchange(other.room_, nullptr)),
          caller_(std::move(other.caller_)),
          bytes_(other.bytes_) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(room_, other.room_);
      std::swap(caller_, other.caller_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Hold();

   private:
    friend class Room;
    Hold(Room& room, std::string_view caller, std::size_t bytes)
        : room_(&room), caller_(caller), bytes_(bytes) {}

    Room* room_ = nullptr;
    std::string caller_;
    std::size_t bytes_ = 0;
  };

  explicit Room(Limits limits) : limits_(limits) {}

  // Waits until both the sum and the caller's share have room. kInvalidArgument for more than a
  // share can ever be, kResourceExhausted at the deadline, kUnavailable after Close.
  absl::StatusOr<Hold> Acquire(std::string_view caller, std::size_t bytes,
                               CondVar::Deadline deadline);

  // Ends all waits, now and later.
  void Close();

 private:
  void GiveBack(const std::string& caller, std::size_t bytes);
  bool Fits(std::string_view caller, std::size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  // Only of callers that hold bytes.
  std::map<std::string, std::size_t, std::less<>> callers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::wire
