// Keeps the status of objects of one kind in the API.
//
// A status is written when the status says something else than the last written status, or when
// somebody else has changed the object's status. A failed write is sent again (outbox.h).
//
// Scope: cluster-scoped objects, by name. The owner knows what a status says, and how often the
// status is written.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "controller/core/facts/shown_status.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// `Shown` is the status as a watch has seen the object, with resource_version and digest.
template <typename Status, typename Shown>
class ObjectStatuses {
 public:
  // A status is written at most once in this time.
  static constexpr std::chrono::seconds kRepeat{1};

  struct Entry {
    std::string uid;
    Shown seen;
    ShownStatus shown;
    std::optional<MonotonicTime> told;
    std::shared_ptr<const Status> wanted;
    std::shared_ptr<const Status> sent;
    std::shared_ptr<const Status> written;
  };

  void OnObject(const std::string& name, const std::string& uid, const Shown& seen,
                const Now& now) {
    if (const auto found = entries_.find(name); found != entries_.end() && found->second.uid != uid)
      OnGone(name, found->second.uid);  // it was deleted and made again between two looks
    Entry& entry = entries_[name];
    entry.uid = uid;
    entry.seen = seen;
    const bool others_wrote = entry.shown.OnSeen(seen.resource_version, seen.digest);
    if (!others_wrote || outbox_.IsInFlight(name)) return;
    entry.written = nullptr;
    outbox_.AddAt(name, NotBefore(entry, kRepeat, now));
  }

  void OnGone(const std::string& name, const std::string& uid) {
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.uid != uid) return;
    entries_.erase(found);
    outbox_.Forget(name);
  }

  // Returns nullptr for an object that is not there.
  const Entry* Find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  // Returns nullptr for an object that is not there, or is another than that of the uid.
  const Entry* Find(const std::string& name, const std::string& uid) const {
    const Entry* entry = Find(name);
    return entry == nullptr || entry->uid != uid ? nullptr : entry;
  }

  // The object is there. The status is written at most once in `pause`.
  void Want(const std::string& name, Status status, std::chrono::seconds pause, const Now& now) {
    Entry& entry = entries_.at(name);
    entry.wanted = std::make_shared<const Status>(std::move(status));
    outbox_.AddAt(name, NotBefore(entry, pause, now));
  }

  // Returns the status that was written; nullptr when the write has failed.
  std::shared_ptr<const Status> OnResult(const ApiResult& result, const Now& now) {
    const std::string& name = result.name;
    if (!outbox_.OnAnswer(name, result.attempt)) return nullptr;
    Entry& entry = entries_.at(name);
    const bool done = result.outcome == WriteOutcome::kDone;
    if (!done && result.outcome != WriteOutcome::kGone) {
      entry.written = nullptr;  // a write without an answer may have been carried out
      outbox_.OnFailure(name, now.monotonic);
      return nullptr;
    }
    outbox_.OnDone(name);
    entry.written = entry.sent;
    if (done && entry.shown.OnWritten(result.resource_version, result.shown)) {
      entry.written = nullptr;  // others have written since
      outbox_.AddAt(name, NotBefore(entry, kRepeat, now));
    }
    return entry.sent;
  }

  // Calls send(name, entry) for each object that is due; `send` returns the attempt of the write of
  // entry.wanted.
  template <typename Send>
  void Flush(const Now& now, Send&& send) {
    for (const std::string& name : outbox_.DrainDue(now.monotonic)) {
      Entry& entry = entries_.at(name);
      if (entry.wanted == nullptr) continue;
      if (entry.written != nullptr && Says(*entry.written, *entry.wanted)) continue;
      entry.sent = entry.wanted;
      entry.told = now.monotonic;
      outbox_.NoteSent(name, send(name, std::as_const(entry)));
    }
  }

  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return outbox_.wake(now.monotonic); }

 private:
  static MonotonicTime NotBefore(const Entry& entry, std::chrono::seconds pause, const Now& now) {
    return entry.told ? std::max(now.monotonic, *entry.told + pause) : now.monotonic;
  }

  absl::flat_hash_map<std::string, Entry> entries_;
  Outbox<std::string> outbox_;
};

}  // namespace tahoma::controller
