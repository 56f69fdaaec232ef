// Makes the ResourceClaims of pods that ask for devices by the names of extended resources
// (facts/extended_claim.h).
//
//   ClaimMaker maker(facts, writes);
//   maker.OnPod(pod);                            // the fact is in `facts` already
//   maker.Flush(now);
//   maker.OnResult(result, now);
//
// The pod's status is told of the claim first, and the claim is made when the pod's fact shows the
// status: an API server that does not keep status.extendedResourceClaimStatus gets no claim, and no
// pod is bound whose kubelet would not know of the devices. Both writes follow from facts alone. A
// claim's name is made of its pod's uid, so a claim that exists when the write arrives is the
// pod's: a restart, or a write of a former leader, makes no second claim.
//
// A refused write is sent again after the pause of RetryPolicy, and a status that was not kept
// after kPause.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <optional>
#include <string>

#include "controller/core/facts/extended_claim.h"
#include "controller/core/facts/facts.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class ClaimMaker {
 public:
  // Before a status that was not kept is written once more: somebody may have updated the server.
  static constexpr std::chrono::minutes kPause{5};

  // The arguments must outlive the maker.
  ClaimMaker(const Facts& facts, WriteBuffer& writes) : facts_(facts), writes_(writes) {}

  void OnPod(const PodFact& pod);
  void OnPodGone(const PodKey& pod);
  // The claim of the pod is gone.
  void OnClaimGone(const PodKey& pod);
  // A DeviceClass has come, changed or gone.
  void OnClasses();

  // Returns why the pod's claim is not made: "the API server refuses …"; "" when nothing is wrong.
  std::string TroubleOf(const PodKey& pod) const;

  // Returns whether the answer changed what TroubleOf says.
  bool OnResult(const ApiResult& result, const Now& now);
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return outbox_.wake(now.monotonic); }

 private:
  // Returns the next write for the pod; nullopt when everything is there.
  std::optional<Write> NextWrite(const PodFact& pod) const;

  const Facts& facts_;
  WriteBuffer& writes_;
  absl::flat_hash_map<PodKey, std::string> troubles_;  // of each pod that asks and has no node
  Outbox<PodKey> outbox_;
};

}  // namespace tahoma::controller
