// Pieces of work by name: a piece waits at most once, and is never done twice at the same time.
//
// Work added while it is being done is done once more afterwards, not before it is due.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::apiserver {

enum class Task : std::uint8_t {
  kClaims,        // "ns/pod": make its claims from templates
  kReservations,  // "ns/claim": reservedFor, allocation, claims of finished pods
  kCollect,       // "group/plural|key": an object whose owners may be gone
  kRelease,       // "group/plural|key": an owner being deleted waits for its dependents
  kNamespace,     // "ns": empty it and let it go
  kNode,          // "node": has it gone silent?
  kLostPod,       // "ns/pod": is its node still there?
  kOtherPod,      // "ns/pod": does nobody here place the pod?
  kWorkload,      // "group/plural|key": a Job, Deployment …, or a pod whose Job is gone
  kTaints,        // "ns/claim": must its pods leave a device that is tainted?
  kAccount,       // "ns": is its service account "default" there?
  kExpire         // "group/plural|key": an Event whose time since its last write is over
};

struct Work {
  Task task = Task::kClaims;
  std::string key;

  friend auto operator<=>(const Work&, const Work&) = default;
};

enum class Outcome : std::uint8_t { kDone, kRetry };

class WorkQueue {
 public:
  void Add(const Work& work, WallTime due) {
    const MutexLock lock(mutex_);
    if (busy_.contains(work)) {
      const auto [it, is_new] = again_.emplace(work, due);
      if (!is_new) it->second = std::min(it->second, due);
      return;
    }
    Schedule(work, due);
  }

  std::optional<Work> PopDue(WallTime now) {
    const MutexLock lock(mutex_);
    if (waiting_.empty() || waiting_.begin()->first.first > now) return std::nullopt;
    Work work = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    due_.erase(work);
    busy_.insert(work);
    return work;
  }

  void Done(const Work& work, Outcome outcome, WallTime now) {
    const MutexLock lock(mutex_);
    busy_.erase(work);
    if (const auto again = again_.find(work); again != again_.end()) {
      Schedule(work, std::max(again->second, now));
      again_.erase(again);
    }
    if (outcome == Outcome::kDone) {
      failures_.erase(work);
      return;
    }
    // 10 ms, doubled with each failure up to 10 s.
    const int failures = std::min(failures_[work]++, 10);
    const auto delay = std::min<std::chrono::nanoseconds>(
        std::chrono::milliseconds(10) * (1 << failures), std::chrono::seconds(10));
    Schedule(work, now + delay);
  }

  // Returns when the next work is due; nullopt when none waits.
  std::optional<WallTime> NextDue() const {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    return waiting_.begin()->first.first;
  }

  // Returns how many pieces of work are due; counts no further than `most`.
  std::size_t CountDue(WallTime now, std::size_t most) const {
    const MutexLock lock(mutex_);
    std::size_t count = 0;
    for (auto at = waiting_.begin(); at != waiting_.end() && count < most; ++at) {
      if (at->first.first > now) break;
      ++count;
    }
    return count;
  }

 private:
  // An earlier time wins.
  void Schedule(const Work& work, WallTime due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto existing = due_.find(work);
    if (existing != due_.end()) {
      if (existing->second.first <= due) return;
      waiting_.erase(existing->second);
    }
    const Slot slot{due, sequence_++};
    due_[work] = slot;
    waiting_[slot] = work;
  }

  using Slot = std::pair<WallTime, std::uint64_t>;  // time, then order of arrival

  mutable Mutex mutex_;
  std::uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Slot, Work> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<Work, Slot> due_ ABSL_GUARDED_BY(mutex_);
  std::set<Work> busy_ ABSL_GUARDED_BY(mutex_);
  std::map<Work, WallTime> again_ ABSL_GUARDED_BY(mutex_);  // asked for while busy: when it is due
  std::map<Work, int> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller::apiserver
