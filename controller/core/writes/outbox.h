// Says when the writes to objects are sent: one at a time for each object, and again after a
// failure.
//
//   Outbox<PodKey> outbox;
//   outbox.Add(pod);                                    // the pod may have to be written
//   for (const PodKey& key : outbox.DrainDue(now)) {
//     outbox.NoteSent(key, writes.Add(PodReclaimWrite{.key = key, .uid = uid}));
//   }
//   if (!outbox.OnAnswer(pod, result.attempt)) return;  // a repeated or late answer
//   result.outcome == WriteOutcome::kDone ? outbox.OnDone(pod) : outbox.OnFailure(pod, now);
//
// An object that is added while a write to the object is under way is due again with the answer.
// After a failure nothing is sent to the object for the pause of RetryPolicy.
//
// Scope: keys and times. The owner knows what each object should show, and sends nothing for a due
// object that shows it.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "controller/core/writes/pending_keys.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// The pause before a failed write is sent again: doubled with every failure in a row.
struct RetryPolicy {
  static constexpr std::chrono::milliseconds kFirst{50};
  static constexpr std::chrono::milliseconds kMost{5000};

  // Returns the pause after a failure that follows `failures` others.
  static std::chrono::milliseconds PauseAfter(int failures) {
    constexpr int kDoublingsMost = 10;  // beyond kMost, and within the bits of a number
    return std::min(kFirst * (1 << std::min(failures, kDoublingsMost)), kMost);
  }
};

template <typename Key>
class Outbox {
 public:
  // The object may have to be written, at once or at that time; of several times the first counts.
  void Add(const Key& key) { due_.Add(key); }
  void AddAt(const Key& key, MonotonicTime when) {
    Entry& entry = entries_[key];
    if (entry.due && (entry.held_back || *entry.due <= when)) return;
    SetDue(key, entry, when, false);
  }

  // Returns the objects that are due, in the order of their keys and each once, except those that
  // have a write under way or are held back.
  std::vector<Key> DrainDue(MonotonicTime now) {
    while (!later_.empty() && later_.begin()->first <= now) {
      const Key key = later_.begin()->second;
      Entry& entry = entries_.at(key);
      ClearDue(key, entry);
      if (entry.in_flight == 0 && entry.failures == 0) entries_.erase(key);
      due_.Add(key);
    }
    std::vector<Key> keys = due_.DrainSorted();
    std::erase_if(keys, [this](const Key& key) {
      const auto found = entries_.find(key);
      if (found == entries_.end()) return false;
      found->second.again = found->second.in_flight != 0;
      return found->second.again || found->second.held_back;
    });
    return keys;
  }

  // A write to the object has been sent; none was under way.
  void NoteSent(const Key& key, std::uint64_t attempt) {
    Entry& entry = entries_[key];
    TAHOMA_CHECK(entry.in_flight == 0);  // two writes could arrive in either order
    entry.in_flight = attempt;
  }
  // Returns whether `attempt` is the write under way, which then is so no more. OnDone() or
  // OnFailure() must follow.
  bool OnAnswer(const Key& key, std::uint64_t attempt) {
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.in_flight != attempt || attempt == 0) return false;
    found->second.in_flight = 0;
    if (std::exchange(found->second.again, false)) due_.Add(key);
    return true;
  }
  void OnDone(const Key& key) {
    Entry& entry = entries_.at(key);
    entry.failures = 0;
    if (!entry.due) entries_.erase(key);
  }
  // The write failed, or cannot be made yet.
  void OnFailure(const Key& key, MonotonicTime now) {
    Entry& entry = entries_[key];
    SetDue(key, entry, now + RetryPolicy::PauseAfter(entry.failures++), true);
  }
  // Sends nothing to the object before that time; then the object is due.
  void HoldBack(const Key& key, MonotonicTime until) { SetDue(key, entries_[key], until, true); }
  // News of the object came: it is held back no longer.
  void EndHold(const Key& key) {
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second.held_back) ClearDue(key, found->second);
  }
  void Forget(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    ClearDue(key, found->second);
    entries_.erase(found);
  }

  bool IsInFlight(const Key& key) const {
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.in_flight != 0;
  }
  bool IsHeldBack(const Key& key) const {
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.held_back;
  }
  // Returns when DrainDue() has something without any news.
  std::optional<MonotonicTime> wake(MonotonicTime now) const {
    if (!due_.empty()) return now;
    if (later_.empty()) return std::nullopt;
    return later_.begin()->first;
  }

 private:
  struct Entry {
    std::uint64_t in_flight = 0;  // the attempt of the write under way; 0: none
    bool again = false;           // was due meanwhile
    int failures = 0;             // in a row
    std::optional<MonotonicTime> due;
    bool held_back = false;  // not before `due`
  };

  void SetDue(const Key& key, Entry& entry, MonotonicTime when, bool held_back) {
    ClearDue(key, entry);
    entry.due = when;
    entry.held_back = held_back;
    later_.emplace(when, key);
  }
  void ClearDue(const Key& key, Entry& entry) {
    if (entry.due) later_.erase({*entry.due, key});
    entry.due.reset();
    entry.held_back = false;
  }

  absl::flat_hash_map<Key, Entry> entries_;
  PendingKeys<Key> due_;
  std::set<std::pair<MonotonicTime, Key>> later_;
};

}  // namespace tahoma::controller
