// Gang membership: which pods make up which gang and use which claims, and whether a gang is
// complete and may be planned.
//
//   GangMembership membership;
//   membership.OnPod(*pod);
//   Readiness ready = membership.Assess({{"default", "train"}, false}, facts, busy);
//   if (ready.spec != nullptr) queue.push_back(ready.spec);
//   else Say(ready.reason, ready.message);            // kWaitingForPods, "3 of 4 pods exist"
//
// Pods, claims and gangs may become known in any order; a gang is ready when all of them are known.
//
// Scope: facts to GangSpec. The planner finds where a gang can go.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <compare>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_status.h"
#include "controller/model/gang.h"
#include "controller/model/ids.h"

namespace tahoma::controller {

// A Gang, or a pod that is a gang of one (then `key` is the pod's).
struct GangRef {
  GangKey key;
  bool single = false;

  friend auto operator<=>(const GangRef&, const GangRef&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const GangRef& ref) {
    return H::combine(std::move(h), ref.key, ref.single);
  }
};

GangRef GangOf(const PodFact& pod);
// Returns "gang default/train" or "pod default/p".
std::string Describe(const GangRef& ref);
// Returns the gang's priority: that of its Gang, else the highest of its pods.
std::int32_t PriorityOf(const GangFact& gang, std::span<const std::shared_ptr<const PodFact>> pods);

// Returns the gang's queue: spec.queue of the Gang or, where spec.queue is the default, the queue
// in a label for Kueue, Volcano or KAI of the first pod with a label. `gang` is nullptr for a pod
// without a Gang.
std::string QueueOf(const GangFact* gang, std::span<const std::shared_ptr<const PodFact>> pods);

// How pods of a gang are in the order of their ranks.
struct RankOrder {
  bool indexed = false;  // by their indexes; else by their names
  std::string twice;     // two pods of one index in words; else empty
};
RankOrder SortByRank(std::vector<std::shared_ptr<const PodFact>>& pods);

struct Readiness {
  std::shared_ptr<const GangSpec> spec;  // nullptr when not ready
  // The wished Gang, when the Gang is missing; nullptr: no Gang is to be made.
  std::shared_ptr<const GangWish> wish = nullptr;
  // A pod without the claim of its extended resources; without such a pod the name is empty.
  PodKey unclaimed = {};
  GangReason reason = GangReason::kNone;
  std::string message;
  bool finished = false;   // all of its pods have run and ended
  bool succeeded = false;  // … each with success
  bool grows = false;      // a pod that joins the gang's run
};

class GangMembership {
 public:
  // Remembers the pod's gang, group, claims, templates and volumes.
  void OnPod(const PodFact& pod);
  void OnPodGone(const PodFact& pod);
  // Returns the names of the pods that carry the gang's label.
  const std::set<std::string>& PodsOf(const GangKey& gang) const;
  // Returns the pods that name the claim, so that news of it reach them.
  const std::set<PodKey>& PodsUsing(const ClaimKey& claim) const;

  // Returns the pods whose gang depends on the claim template (PodFact::templates).
  const std::set<PodKey>& PodsOfTemplate(const ClaimTemplateKey& name) const;

  // As PodsUsing, of a PersistentVolumeClaim.
  const std::set<PodKey>& PodsMounting(const VolumeClaimKey& claim) const;
  // As PodsUsing, of a PodGroup or a Workload.
  const std::set<PodKey>& PodsJoining(const PodGroupKey& group) const;

  // Explains why a pod must wait for the claim, because another run holds it back; "" when none
  // does.
  using ClaimBusy = std::function<std::string(const ClaimKey& claim)>;

  // Returns a gang of that pod alone, whatever gang the pod is in.
  Readiness AssessNext(const PodFact& pod, const Facts& facts, const ClaimBusy& busy) const;
  Readiness Assess(const GangRef& ref, const Facts& facts, const ClaimBusy& busy) const;
  // Returns the gang of a decision as before the decision: none of the decision's own claims is
  // allocated. Without a spec where a Gang, a pod or a claim of it is there no more.
  static Readiness AssessPlaced(const GangDecision& decision, const Facts& facts);

 private:
  absl::flat_hash_map<GangKey, std::set<std::string>> pods_of_gang_;
  absl::flat_hash_map<ClaimKey, std::set<PodKey>> pods_of_claim_;
  absl::flat_hash_map<ClaimTemplateKey, std::set<PodKey>> pods_of_template_;
  absl::flat_hash_map<VolumeClaimKey, std::set<PodKey>> pods_of_volume_;
  absl::flat_hash_map<PodGroupKey, std::set<PodKey>> pods_of_group_;
};

}  // namespace tahoma::controller
