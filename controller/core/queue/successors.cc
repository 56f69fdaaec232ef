#include "controller/core/queue/successors.h"

#include <algorithm>

namespace tahoma::controller {

void Successors::Remember(const GangRef& ref, RunEnd end) {
  LastEnd& last = ends_[ref];
  if (end.started || end.cause != EndCause::kNotStarted) last.unstarted = 0;
  if (end.cause == EndCause::kNotStarted) ++last.unstarted;
  static_cast<RunEnd&>(last) = std::move(end);
}

void Successors::OnBound(const GangRef& ref) {
  const auto found = ends_.find(ref);
  if (found != ends_.end()) found->second.reason.clear();
}

void Successors::Keep(const GangRef& ref, const Holdings& freed, MonotonicTime now,
                      ClusterState& cluster) {
  Kept& kept = kept_[ref];
  Release(ref, kept, cluster);
  for (const auto& holding : freed) {
    Holding place = *holding;
    // No claim has such a name: whoever looks for the run of a holding finds none.
    place.claim.name = "kept after " + holding->claim.name;
    place.claim_uid = "kept after " + holding->claim_uid;
    place.holder = Describe(ref) + ", for its next pods";
    kept.held.push_back(place.claim_uid);
    cluster.Hold(std::make_shared<const Holding>(std::move(place)));
  }
  kept.until = now + keep_;
  if (!kept.held.empty()) due_.insert({kept.until, ref});
}

void Successors::Release(const GangRef& ref, Kept& kept, ClusterState& cluster) {
  if (kept.held.empty()) return;
  for (const std::string& uid : kept.held) cluster.Release(uid);
  kept.held.clear();
  due_.erase({kept.until, ref});
  capacity_freed_ = true;
}

void Successors::GiveBack(const GangRef& ref, ClusterState& cluster) {
  const auto found = kept_.find(ref);
  if (found == kept_.end()) return;
  Release(ref, found->second, cluster);
  kept_.erase(found);
}

void Successors::Forget(const GangRef& ref, ClusterState& cluster) {
  GiveBack(ref, cluster);
  ends_.erase(ref);
}

void Successors::EndDue(MonotonicTime now, ClusterState& cluster) {
  while (!due_.empty() && due_.begin()->first <= now) {
    const GangRef ref = due_.begin()->second;
    Release(ref, kept_.at(ref), cluster);
  }
}

const Successors::LastEnd* Successors::FindEnd(const GangRef& ref) const {
  const auto found = ends_.find(ref);
  return found == ends_.end() ? nullptr : &found->second;
}

std::chrono::seconds Successors::PauseOf(const GangRef& ref) const {
  const LastEnd* end = FindEnd(ref);
  if (end == nullptr || end->unstarted == 0) return kPause;
  constexpr int kDoublingsMost = 6;
  return std::min(kStartPause * (1 << std::min(end->unstarted - 1, kDoublingsMost)),
                  kStartPauseMost);
}

bool Successors::Keeps(const GangRef& ref) const {
  const auto found = kept_.find(ref);
  return found != kept_.end() && !found->second.held.empty();
}

ClusterState Successors::ViewOf(const ClusterState& cluster, const GangRef& ref) const {
  ClusterState view = cluster;
  const auto found = kept_.find(ref);
  if (found == kept_.end()) return view;
  for (const std::string& uid : found->second.held) view.Release(uid);
  return view;
}

std::optional<MonotonicTime> Successors::wake() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

}  // namespace tahoma::controller
