#include "controller/core/queue/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

using PodPtr = std::shared_ptr<const PodFact>;

struct FreePlace {
  std::uint32_t pod = 0;  // index into the decision's pods, or their number
  std::uint32_t rank = 0;
};

// Returns the place of the lowest rank below `members` that no pod has.
std::optional<FreePlace> FindPlace(const GangRun& run, std::int32_t members) {
  const std::vector<DecidedPod>& pods = run.decision().pods;
  std::vector<std::optional<std::uint32_t>> of_rank(static_cast<std::size_t>(members));
  for (std::uint32_t i = 0; i < pods.size(); ++i) {
    if (pods[i].rank < of_rank.size()) of_rank[pods[i].rank] = i;
  }
  for (std::uint32_t rank = 0; rank < of_rank.size(); ++rank) {
    const auto& pod = of_rank[rank];
    if (!pod) return FreePlace{static_cast<std::uint32_t>(pods.size()), rank};
    if (run.given_up(*pod)) return FreePlace{*pod, rank};
  }
  return std::nullopt;
}

std::int32_t CountGoingOn(const GangRun& run) {
  std::int32_t count = 0;
  for (std::size_t i = 0; i < run.decision().pods.size(); ++i) count += run.goes_on(i) ? 1 : 0;
  return count;
}

// Returns the live pods of the gang that have no place, in the order of their ranks.
std::vector<PodPtr> WaitingPods(const GangRun& run, const GrowthSources& from) {
  std::vector<PodPtr> pods;
  const GangKey& key = run.decision().key;
  for (const std::string& name : from.membership.PodsOf(key)) {
    auto pod = from.facts.pods.Find(PodKey{key.ns, name});
    const bool waits = pod != nullptr && pod->alive() && pod->node.empty();
    if (waits && !from.has_place(*pod)) pods.push_back(std::move(pod));
  }
  (void)SortByRank(pods);  // two pods of one index: one of them is first
  return pods;
}

Readiness Waits(GangReason reason, std::string message) {
  Readiness waits;
  waits.reason = reason;
  waits.message = std::move(message);
  return waits;
}

// Returns why the pod cannot join while its claims are as they are; "" when it can.
std::string ClaimTrouble(const GangRun& run, const MemberSpec& member) {
  const std::vector<DecidedClaim>& decided = run.decision().claims;
  for (const ClaimSpec& claim : member.claims) {
    bool held = claim.allocated_node.has_value();
    for (std::size_t i = 0; i < decided.size() && !held; ++i) {
      held = decided[i].uid == claim.uid && !run.claim_released(i);
    }
    if (held) {
      return fmt::format(
          "pod {}: claim {} is allocated, and a pod joins a running gang only with "
          "claims of its own",
          member.pod.name, claim.key.name);
    }
  }
  return "";
}

// Returns the gang of the one pod, with the terms under which its gang runs.
std::shared_ptr<const GangSpec> SpecOf(const GangRun& run, const GangFact& gang, GangSpec alone,
                                       const ClusterState& cluster, WallTime now) {
  const GangDecision& decision = run.decision();
  alone.key = gang.key;
  alone.uid = gang.uid;
  alone.queue = gang.queue;
  alone.created = gang.created;
  alone.block = gang.block;
  alone.checkpointable = gang.checkpointable;
  alone.preempts = gang.preempts.value_or(true);
  alone.preemptible = decision.preemptible;
  alone.priority = decision.priority;
  alone.reservation = decision.reservation;
  alone.reclaim = decision.reclaim;
  if (decision.end && (decision.max_runtime || decision.reservation.empty())) {
    alone.max_runtime = RuntimeUntil(*decision.end, now);
  }
  if (decision.reservation.empty()) return std::make_shared<const GangSpec>(std::move(alone));
  std::set<std::string> hosts;
  for (const DecidedPod& pod : decision.pods) {
    const std::optional<NodeId> node = cluster.FindNode(pod.node);
    if (!node || !cluster.node(*node).domain.valid()) continue;
    hosts.insert(cluster.domain(cluster.node(*node).domain).name);
  }
  alone.block_hosts.assign(hosts.begin(), hosts.end());
  return std::make_shared<const GangSpec>(std::move(alone));
}

}  // namespace

std::optional<Readiness> FindGrowth(const GangRun& run, const GangFact& gang,
                                    const GrowthSources& from, WallTime now) {
  if (!gang.changes_size() || run.phase() != RunPhase::kBound || run.ending()) return std::nullopt;
  const std::vector<PodPtr> pods = WaitingPods(run, from);
  if (pods.empty()) return std::nullopt;
  if (const std::int32_t on = CountGoingOn(run); on >= gang.members) {
    return Waits(GangReason::kTooManyPods, fmt::format("{} of {} members run", on, gang.members));
  }
  if (!FindPlace(run, gang.members)) {
    return Waits(GangReason::kWaitingForPods, "the claims of lost members are not released yet");
  }
  std::optional<Readiness> first;
  for (const PodPtr& pod : pods) {
    Readiness ready = from.membership.AssessNext(*pod, from.facts, from.busy);
    if (ready.spec != nullptr) {
      std::string trouble = ClaimTrouble(run, ready.spec->members.at(0));
      if (trouble.empty()) {
        ready.spec = SpecOf(run, gang, *ready.spec, from.cluster, now);
        return ready;
      }
      ready = Waits(GangReason::kWaitingForClaims, std::move(trouble));
    }
    if (!first) first = std::move(ready);
  }
  return first;
}

std::optional<MemberAdded> AddedOf(const GangRun& run, const GangFact& gang,
                                   const Placement& placement) {
  if (run.phase() != RunPhase::kBound || run.ending()) return std::nullopt;
  const std::optional<FreePlace> place = FindPlace(run, gang.members);
  if (!place) return std::nullopt;
  const GangDecision& decision = run.decision();
  TAHOMA_CHECK(placement.members.size() == 1);  // the gang of FindGrowth
  const MemberPlacement& member = placement.members.front();
  MemberAdded added{.run = run.id(),
                    .pod = place->pod,
                    .name = member.pod.name,
                    .uid = member.uid,
                    .node = member.node,
                    .rank = place->rank,
                    .at = {},
                    .claims = {}};
  // The claims of the place, which the new ones replace.
  const std::vector<std::uint32_t> released = OwnClaims(decision, place->pod);
  auto next = static_cast<std::uint32_t>(decision.claims.size());
  for (std::size_t i = 0; i < member.claims.size(); ++i) {
    const ClaimPlacement& claim = member.claims[i];
    added.claims.push_back({.index = i < released.size() ? released[i] : next++,
                            .name = claim.claim.name,
                            .uid = claim.uid,
                            .allocation = claim.allocation});
    if (decision.reclaim) SayReclaim(*decision.reclaim, added.claims.back().allocation);
  }
  return added;
}

}  // namespace tahoma::controller
