// Writes the node of a bound pod to those of its volume claims that wait for a node, so that the
// provisioners make their volumes there (annotation volume.kubernetes.io/selected-node).
//
//   VolumeNodes nodes(facts, membership, writes);
//   nodes.OnClaim(before, claim, now);           // the fact is in `facts` already
//   nodes.OnPod(pod);
//   nodes.Flush(now);
//   nodes.OnResult(result, now);
//
// Whether a claim waits is found in the facts whenever one of them changes. The journal has nothing
// of it: after a restart the same claims are written. The write of a claim that has changed since
// its fact was seen fails (409): another scheduler may have selected a node. A provisioner that can
// make no volume removes the annotation; the next write then waits for kPause. A failed write is
// sent again after the pause of RetryPolicy, whatever the reason was.
//
// Scope: the first bound pod of ours that uses the claim has the say.
//
// Thread safety: belongs to one thread.

#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class VolumeNodes {
 public:
  // Before a claim is written once more.
  static constexpr std::chrono::milliseconds kPause = RetryPolicy::kMost;

  // The arguments must outlive this object.
  VolumeNodes(const Facts& facts, const GangMembership& membership, WriteBuffer& writes)
      : facts_(facts), membership_(membership), writes_(writes) {}

  void OnPod(const PodFact& pod);
  // `before` is nullptr for a claim that is new.
  void OnClaim(const VolumeClaimFact* before, const VolumeClaimFact& claim, const Now& now);
  void OnClaimGone(const VolumeClaimKey& key) { outbox_.Forget(key); }
  // The claim's class has changed.
  void OnClass(const VolumeClaimFact& claim) { outbox_.Add(claim.key); }

  void OnResult(const ApiResult& result, const Now& now);
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return outbox_.wake(now.monotonic); }

 private:
  // Returns the node of the claim's pod; "" when no node is to be written.
  std::string NodeFor(const VolumeClaimFact& claim) const;

  const Facts& facts_;
  const GangMembership& membership_;
  WriteBuffer& writes_;
  Outbox<VolumeClaimKey> outbox_;
};

}  // namespace tahoma::controller
