// Writes the messages to people: the status of Gangs, the condition of waiting pods, events.
//
//   StatusOutbox outbox(writes);
//   outbox.SetGang(*gang, status, now);           // as often as one likes
//   outbox.Flush(now);                            // writes only what changed, when it is time
//   outbox.OnResult(result, now);
//
// A message is not worth a write when the next message replaces it soon. Bad news waits a moment,
// because a gang does not really wait for a pod in creation; changing messages are written at
// most every few seconds. Where the object still shows a place, the loss of the place is written at
// once. Two Outboxes, of gangs and of pods, send a failed write again.
//
// Scope: nothing in the commit protocol depends on these writes.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/shown_status.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class StatusOutbox {
 public:
  // Bad news waits this long before it is written, in case it does not last.
  static constexpr std::chrono::milliseconds kGrace{500};
  // The least time between two messages of bad news about the same object.
  static constexpr std::chrono::seconds kRepeat{5};

  // `writes` must outlive it.
  explicit StatusOutbox(WriteBuffer& writes) : writes_(writes) {}

  // Sets the status to write, without the times of its conditions: a condition keeps its time while
  // its status stays.
  void SetGang(const GangFact& gang, GangStatus status, const Now& now);
  // Takes the Gang as a watch saw it: what somebody else has written into its status is put right.
  void SeeGang(const GangFact& gang, const Now& now);
  void ForgetGang(const GangKey& gang);
  // Returns the status that was set last for this very object; nullptr when none was.
  std::shared_ptr<const GangStatus> GangStatusOf(const GangFact& gang) const;

  // Sets the reason why the pod waits; "" when it waits no more.
  void SetPod(const PodFact& pod, const std::string& message, const Now& now);
  void ForgetPod(const PodKey& pod);

  void Tell(EventNote event);

  void OnResult(const ApiResult& result, const Now& now);
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const;

 private:
  struct GangEntry {
    std::string uid;
    std::optional<MonotonicTime> told;
    std::shared_ptr<const GangStatus> wanted;
    std::shared_ptr<const GangStatus> written;
    std::shared_ptr<const GangStatus> sent;
    ShownStatus shown;
  };
  struct PodEntry {
    std::string uid;
    std::optional<MonotonicTime> told;
    std::string wanted;
    std::string written;
    std::string sent;
    WallTime since;
  };

  void OnGangResult(const ApiResult& result, const Now& now);
  void OnPodResult(const ApiResult& result, const Now& now);
  void FlushGang(const GangKey& key, const Now& now);
  void FlushPod(const PodKey& key, const Now& now);

  WriteBuffer& writes_;
  absl::flat_hash_map<GangKey, GangEntry> gangs_;
  Outbox<GangKey> gang_outbox_;
  absl::flat_hash_map<PodKey, PodEntry> pods_;
  Outbox<PodKey> pod_outbox_;
  std::vector<EventNote> events_;
};

}  // namespace tahoma::controller
