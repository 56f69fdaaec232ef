// Writes the messages to people: the status of Gangs, the condition of waiting pods, events.
//
//   StatusOutbox outbox(writes);
//   outbox.SetGang(*gang, status, now);           // as often as one likes
//   outbox.Flush(now);                            // writes only what changed, when it is time
//   outbox.OnResult(result, now);
//
// A message that will be replaced soon is not worth a write. Bad news waits a moment, because a
// gang whose last pod is just being created does not really wait; changing messages are written at
// most every few seconds. One write per object is under way at a time.
//
// Scope: nothing in the commit protocol depends on these writes.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/shown_status.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class StatusOutbox {
 public:
  // Bad news waits this long before it is written, in case it does not last.
  static constexpr std::chrono::milliseconds kGrace{500};
  // The least time between two messages of bad news about the same object.
  static constexpr std::chrono::seconds kRepeat{5};
  static constexpr std::chrono::seconds kRetry{2};

  // `writes` must outlive it.
  explicit StatusOutbox(WriteBuffer& writes) : writes_(writes) {}

  // Sets the status to write, without the times of its conditions: a condition keeps its time while
  // its status stays.
  void SetGang(const GangFact& gang, GangStatus status, const Now& now);
  // Takes the Gang as a watch saw it: what somebody else has written into its status is put right.
  void SeeGang(const GangFact& gang, const Now& now);
  void ForgetGang(const GangKey& gang);
  // Returns the status that was set last; nullptr when none was.
  std::shared_ptr<const GangStatus> GangStatusOf(const GangKey& gang) const;

  // Sets the reason why the pod waits; "" when it waits no more.
  void SetPod(const PodFact& pod, const std::string& message, const Now& now);
  void ForgetPod(const PodKey& pod);

  void Tell(EventNote event);

  void OnResult(const ApiResult& result, const Now& now);
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake() const;

 private:
  struct Entry {
    std::string uid;
    std::uint64_t in_flight = 0;
    MonotonicTime due{};
    bool scheduled = false;  // is in due_
    std::optional<MonotonicTime> told;
  };
  struct GangEntry : Entry {
    std::shared_ptr<const GangStatus> wanted;
    std::shared_ptr<const GangStatus> written;
    std::shared_ptr<const GangStatus> sent;
    ShownStatus shown;
  };
  struct PodEntry : Entry {
    std::string wanted;
    std::string written;
    std::string sent;
    WallTime since;
  };
  using Due = std::pair<MonotonicTime, std::pair<bool, GangKey>>;  // true: a gang

  void Schedule(Entry& entry, bool gang, const GangKey& key, MonotonicTime when);
  void FlushGang(const GangKey& key, GangEntry& entry, const Now& now);
  void FlushPod(const GangKey& key, PodEntry& entry, const Now& now);

  WriteBuffer& writes_;
  absl::flat_hash_map<GangKey, GangEntry> gangs_;
  absl::flat_hash_map<GangKey, PodEntry> pods_;  // the key is the pod's
  std::set<Due> due_;
  std::vector<EventNote> events_;
};

}  // namespace tahoma::controller
