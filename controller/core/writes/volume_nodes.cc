#include "controller/core/writes/volume_nodes.h"

#include "controller/core/facts/volumes.h"

namespace tahoma::controller {

void VolumeNodes::OnPod(const PodFact& pod) {
  if (pod.node.empty()) return;
  for (const kube::PodVolume& volume : pod.volumes) outbox_.Add({pod.key.ns, volume.claim});
}

void VolumeNodes::OnClaim(const VolumeClaimFact* before, const VolumeClaimFact& claim,
                          const Now& now) {
  if (claim.bound) return outbox_.Forget(claim.key);
  const bool is_same = before != nullptr && before->uid == claim.uid;
  if (!is_same) outbox_.Forget(claim.key);
  if (is_same && !before->selected_node.empty() && claim.selected_node.empty()) {
    outbox_.HoldBack(claim.key, now.monotonic + kPause);  // the provisioner has failed
  } else {
    outbox_.Add(claim.key);
  }
}

void VolumeNodes::OnResult(const ApiResult& result, const Now& now) {
  const VolumeClaimKey key{result.ns, result.name};
  if (!outbox_.OnAnswer(key, result.attempt)) return;
  if (result.outcome != WriteOutcome::kDone) return outbox_.OnFailure(key, now.monotonic);
  outbox_.OnDone(key);
  outbox_.HoldBack(key, now.monotonic + kPause);  // the watch shows the annotation later
}

void VolumeNodes::Flush(const Now& now) {
  for (const VolumeClaimKey& key : outbox_.DrainDue(now.monotonic)) {
    const auto claim = facts_.volume_claims.Find(key);
    const std::string node = claim == nullptr ? "" : NodeFor(*claim);
    if (node.empty()) continue;
    outbox_.NoteSent(key, writes_.Add(VolumeNodeWrite{.base = claim, .node = node}));
  }
}

std::string VolumeNodes::NodeFor(const VolumeClaimFact& claim) const {
  if (!AwaitsNode(claim, facts_)) return "";
  for (const PodKey& key : membership_.PodsMounting(claim.key)) {
    const auto pod = facts_.pods.Find(key);
    if (pod == nullptr || !pod->alive() || pod->bound_gang_uid.empty()) continue;
    if (!pod->node.empty() && Uses(*pod, claim)) return pod->node;
  }
  return "";
}

}  // namespace tahoma::controller
