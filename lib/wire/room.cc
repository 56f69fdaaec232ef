#include "lib/wire/room.h"

#include "lib/base/status.h"

namespace tahoma::wire {

Room::Hold::~Hold() {
  if (room_ != nullptr) room_->GiveBack(caller_, bytes_);
}

bool Room::Fits(std::string_view caller, std::size_t bytes) const {
  const auto found = callers_.find(caller);
  const std::size_t own = found == callers_.end() ? 0 : found->second;
  return taken_ + bytes <= limits_.bytes && own + bytes <= limits_.bytes_per_caller;
}

absl::StatusOr<Room::Hold> Room::Acquire(std::string_view caller, std::size_t bytes,
                                         CondVar::Deadline deadline) {
  if (bytes > limits_.bytes_per_caller || bytes > limits_.bytes) {
    return InvalidArgument("the call and its reply take {} bytes; at most {} are allowed", bytes,
                           limits_.bytes_per_caller);
  }
  const MutexLock lock(mutex_);
  while (!closed_ && !Fits(caller, bytes)) {
    if (changed_.WaitUntil(mutex_, deadline)) continue;
    if (Fits(caller, bytes)) break;
    return ResourceExhausted(
        "there is no room for the {} bytes of the call and its reply: the calls that run hold {}",
        bytes, taken_);
  }
  if (closed_) return Unavailable("the server stops");
  taken_ += bytes;
  const auto [own, added] = callers_.try_emplace(std::string(caller), 0);
  own->second += bytes;
  return Hold(*this, caller, bytes);
}

void Room::GiveBack(const std::string& caller, std::size_t bytes) {
  {
    const MutexLock lock(mutex_);
    taken_ -= bytes;
    const auto own = callers_.find(caller);
    own->second -= bytes;
    if (own->second == 0) callers_.erase(own);
  }
  changed_.NotifyAll();
}

void Room::Close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
}

}  // namespace tahoma::wire
