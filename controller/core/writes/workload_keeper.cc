#include "controller/core/writes/workload_keeper.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller {
namespace {

// Sets the conditions' times to those of the last status, where a condition has not changed.
void KeepTimes(const WorkloadStatus* before, WorkloadStatus& after) {
  if (before == nullptr) return;
  for (WorkloadCondition& condition : after.conditions) {
    for (const WorkloadCondition& old : before->conditions) {
      if (old.type == condition.type && old.holds == condition.holds) condition.since = old.since;
    }
  }
}

}  // namespace

void WorkloadKeeper::OnWorkload(const WorkloadFact& workload, const Now& now) {
  const auto found = entries_.find(workload.key);
  const bool same = found != entries_.end() && found->second.uid == workload.uid &&
                    found->second.template_key == workload.TemplateKey();
  if (!same) OnWorkloadGone(workload.key);
  Entry& entry = entries_[workload.key];
  entry.uid = workload.uid;
  entry.template_key = workload.TemplateKey();
  namers_[entry.template_key].insert(workload.key);
  if (!templates_.IsInFlight(workload.key)) templates_.Add(workload.key);
  const bool others_wrote = entry.shown.OnSeen(workload.resource_version, workload.shown);
  entry.unsure = entry.unsure || others_wrote;
  const bool soon = !others_wrote || !entry.told;
  statuses_.AddAt(workload.key,
                  soon ? now.monotonic : std::max(now.monotonic, *entry.told + kRepeat));
}

void WorkloadKeeper::OnWorkloadGone(const WorkloadKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  const auto namers = namers_.find(found->second.template_key);
  namers->second.erase(key);
  if (namers->second.empty()) namers_.erase(namers);
  templates_.Forget(key);
  statuses_.Forget(key);
  entries_.erase(found);
}

void WorkloadKeeper::OnTemplate(const ClaimTemplateKey& key) {
  for (const WorkloadKey& workload : NamersOf(key)) {
    templates_.Add(workload);
    statuses_.Add(workload);
  }
}

void WorkloadKeeper::OnGang(const GangKey& key) {
  if (entries_.contains(key)) statuses_.Add(key);
}

const std::set<WorkloadKey>& WorkloadKeeper::NamersOf(const ClaimTemplateKey& key) const {
  static const std::set<WorkloadKey> kNone;
  const auto found = namers_.find(key);
  return found == namers_.end() ? kNone : found->second;
}

std::shared_ptr<const GangWish> WorkloadKeeper::WishOf(const GangKey& key) const {
  if (!entries_.contains(key) || facts_.gangs.Find(key) != nullptr) return nullptr;
  const auto workload = facts_.workloads.Find(key);
  if (workload == nullptr || workload->deleting) return nullptr;
  // The template first: whether the name is somebody else's is known only by then.
  if (facts_.claim_templates.Find(workload->TemplateKey()) == nullptr) return nullptr;
  return TroubleOf(*workload, facts_).empty() ? workload->wish : nullptr;
}

void WorkloadKeeper::OnResult(const ApiResult& result, const Now& now) {
  const WorkloadKey key{result.ns, result.name};
  if (result.kind == WriteKind::kCreateClaimTemplate) return OnTemplateResult(key, result, now);
  OnStatusResult(key, result, now);
}

void WorkloadKeeper::OnTemplateResult(const WorkloadKey& key, const ApiResult& result,
                                      const Now& now) {
  if (!templates_.OnAnswer(key, result.attempt)) return;
  const auto found = entries_.find(key);
  if (result.outcome == WriteOutcome::kDone || found == entries_.end()) {
    templates_.OnDone(key);
  } else {
    templates_.OnFailure(key, now.monotonic);
  }
  if (found == entries_.end()) return;
  // After a conflict the watch tells of the template that is there.
  const bool refused =
      result.outcome == WriteOutcome::kRefused || result.outcome == WriteOutcome::kGone;
  found->second.refusal =
      refused ? "the API server refuses its ResourceClaimTemplate: " + result.message : "";
  statuses_.Add(key);
}

void WorkloadKeeper::OnStatusResult(const WorkloadKey& key, const ApiResult& result,
                                    const Now& now) {
  if (!statuses_.OnAnswer(key, result.attempt)) return;
  const auto found = entries_.find(key);
  const bool taken = result.outcome == WriteOutcome::kDone || result.outcome == WriteOutcome::kGone;
  if (!taken) {
    if (found != entries_.end()) found->second.sent = nullptr;
    return statuses_.OnFailure(key, now.monotonic);
  }
  if (found != entries_.end() && result.outcome == WriteOutcome::kDone) {
    found->second.unsure = found->second.shown.OnWritten(result.resource_version, result.shown);
  }
  statuses_.OnDone(key);
  statuses_.Add(key);
}

void WorkloadKeeper::Flush(FindGang find_gang, const Now& now) {
  for (const WorkloadKey& key : templates_.DrainDue(now.monotonic)) SendTemplate(key);
  for (const WorkloadKey& key : statuses_.DrainDue(now.monotonic)) SendStatus(key, find_gang, now);
}

void WorkloadKeeper::SendTemplate(const WorkloadKey& key) {
  const auto workload = facts_.workloads.Find(key);
  if (workload == nullptr || workload->deleting || !TroubleOf(*workload, facts_).empty()) return;
  if (facts_.claim_templates.Find(workload->TemplateKey()) != nullptr) return;
  templates_.NoteSent(key, writes_.Add(ClaimTemplateCreation{.workload = workload}));
}

void WorkloadKeeper::SendStatus(const WorkloadKey& key, FindGang find_gang, const Now& now) {
  const auto workload = facts_.workloads.Find(key);
  const auto found = entries_.find(key);
  if (workload == nullptr || found == entries_.end()) return;
  Entry& entry = found->second;
  WorkloadGang gang = find_gang(key);
  if (!entry.refusal.empty()) gang.refusal = entry.refusal;
  auto status = std::make_shared<WorkloadStatus>(StatusOf(*workload, facts_, gang, now.wall));
  KeepTimes(entry.sent.get(), *status);
  if (entry.sent != nullptr && *entry.sent == *status && !entry.unsure) return;
  const bool waits = entry.sent != nullptr && entry.sent->state == WorkloadState::kPending &&
                     status->state == WorkloadState::kPending;
  if (waits && now.monotonic < *entry.told + kRepeat) {
    return statuses_.AddAt(key, *entry.told + kRepeat);
  }
  entry.sent = std::move(status);
  entry.told = now.monotonic;
  statuses_.NoteSent(key,
                     writes_.Add(WorkloadStatusWrite{.key = key,
                                                     .uid = workload->uid,
                                                     .base_version = workload->resource_version,
                                                     .shown = workload->shown,
                                                     .status = entry.sent}));
}

std::optional<MonotonicTime> WorkloadKeeper::wake(const Now& now) const {
  const auto of_templates = templates_.wake(now.monotonic);
  const auto of_statuses = statuses_.wake(now.monotonic);
  if (!of_templates || !of_statuses) return of_templates ? of_templates : of_statuses;
  return std::min(*of_templates, *of_statuses);
}

}  // namespace tahoma::controller
