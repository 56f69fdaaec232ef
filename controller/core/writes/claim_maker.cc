#include "controller/core/writes/claim_maker.h"

#include <memory>
#include <utility>

namespace tahoma::controller {

void ClaimMaker::OnPod(const PodFact& pod) {
  if (pod.extended_asks == nullptr) return;
  // As with kube-scheduler, a pod that may not be scheduled yet has no claim.
  if (!pod.alive() || !pod.node.empty() || pod.gated || !pod.spec_error.empty()) {
    return OnPodGone(pod.key);
  }
  troubles_.try_emplace(pod.key);
  outbox_.Add(pod.key);
}

void ClaimMaker::OnPodGone(const PodKey& pod) {
  if (troubles_.erase(pod) > 0) outbox_.Forget(pod);
}

void ClaimMaker::OnClaimGone(const PodKey& pod) {
  if (troubles_.contains(pod)) outbox_.Add(pod);
}

void ClaimMaker::OnClasses() {
  for (const auto& [pod, trouble] : troubles_) outbox_.Add(pod);
}

std::string ClaimMaker::TroubleOf(const PodKey& pod) const {
  const auto found = troubles_.find(pod);
  return found == troubles_.end() ? "" : found->second;
}

bool ClaimMaker::OnResult(const ApiResult& result, const Now& now) {
  const PodKey key{result.ns, result.name};
  if (!outbox_.OnAnswer(key, result.attempt)) return false;
  const bool of_status = result.kind == WriteKind::kPodClaimStatus;
  const bool done = result.outcome == WriteOutcome::kDone;
  const bool refused =
      result.outcome == WriteOutcome::kRefused || result.outcome == WriteOutcome::kGone;
  const bool dropped =
      done && of_status && result.pod != nullptr && !result.pod->extended_claim.has_value();
  if (done) {
    outbox_.OnDone(key);
    outbox_.AddAt(key, now.monotonic + RetryPolicy::kMost);  // somebody may undo the write at once
  } else {
    outbox_.OnFailure(key, now.monotonic);
  }
  const auto trouble = troubles_.find(key);
  if (trouble == troubles_.end()) return false;
  if (dropped) outbox_.HoldBack(key, now.monotonic + kPause);
  std::string now_wrong;
  if (dropped) {
    now_wrong =
        "this API server keeps no status.extendedResourceClaimStatus of pods (Kubernetes 1.36, or "
        "the feature gate DRAExtendedResource), so no claim is made of its extended resources: "
        "give the pod a ResourceClaim";
  } else if (refused) {
    now_wrong = (of_status ? "the API server refuses to note the claim of its extended resources: "
                           : "the API server refuses the claim of its extended resources: ") +
                result.message;
  }
  return std::exchange(trouble->second, now_wrong) != now_wrong;
}

void ClaimMaker::Flush(const Now& now) {
  for (const PodKey& key : outbox_.DrainDue(now.monotonic)) {
    const auto pod = facts_.pods.Find(key);
    if (pod == nullptr || !troubles_.contains(key)) continue;
    if (auto write = NextWrite(*pod)) outbox_.NoteSent(key, writes_.Add(*std::move(write)));
  }
}

std::optional<Write> ClaimMaker::NextWrite(const PodFact& pod) const {
  if (!UnknownResource(pod, facts_).empty()) return std::nullopt;
  std::optional<ExtendedClaim> wished = ExtendedClaimOf(pod, facts_);
  if (!wished) return std::nullopt;
  const auto claim = facts_.claims.Find(ClaimKey{pod.key.ns, wished->status.claim});
  if (pod.extended_claim != wished->status) {
    // The claim decides what the pod has, until somebody deletes the claim.
    const bool other =
        claim != nullptr && claim->spec != nullptr && !IsSpecOf(*wished, *claim->spec);
    if (pod.extended_claim && other) return std::nullopt;
    return PodClaimStatusWrite{.key = pod.key, .uid = pod.uid, .status = wished->status};
  }
  if (claim != nullptr) return std::nullopt;
  return ExtendedClaimCreation{.pod = pod.key,
                               .uid = pod.uid,
                               .claim = std::make_shared<const ExtendedClaim>(*std::move(wished))};
}

}  // namespace tahoma::controller
