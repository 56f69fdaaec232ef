#include "controller/core/queue/replacement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "controller/plan/decision.h"

namespace tahoma::controller {
namespace {

using PodPtr = std::shared_ptr<const PodFact>;

// The claims that the lost pod alone has used, as indexes of the decision's.
std::vector<std::uint32_t> OwnClaims(const GangDecision& decision, std::size_t pod) {
  std::vector<std::uint32_t> own;
  for (std::uint32_t i = 0; i < decision.claims.size(); ++i) {
    const DecidedClaim& claim = decision.claims[i];
    if (!claim.allocated_before && claim.consumers.size() == 1 && claim.consumers[0] == pod) {
      own.push_back(i);
    }
  }
  return own;
}

std::vector<std::uint32_t> LostOf(const GangRun& run) {
  std::vector<std::uint32_t> lost;
  for (std::uint32_t i = 0; i < run.decision().pods.size(); ++i) {
    if (run.member_lost(i)) lost.push_back(i);
  }
  return lost;
}

// Returns whether nothing of the lost pod is left: the pod has ended, and no claim has its devices.
bool HasLeft(const GangRun& run, std::uint32_t pod, const Facts& facts) {
  if (!run.pod_dead(pod)) return false;
  const GangDecision& decision = run.decision();
  return std::ranges::all_of(OwnClaims(decision, pod), [&](std::uint32_t index) {
    const DecidedClaim& claim = decision.claims[index];
    const auto fact = facts.claims.Find(ClaimKey{decision.key.ns, claim.name});
    return fact == nullptr || fact->uid != claim.uid || fact->allocation == nullptr;
  });
}

// Returns the live pods of the gang that have no place.
std::vector<PodPtr> NextPods(const GangDecision& decision, const ReplacementSources& from) {
  std::vector<PodPtr> next;
  for (const std::string& name : from.membership.PodsOf(decision.key)) {
    auto pod = from.facts.pods.Find(PodKey{decision.key.ns, name});
    const bool waits = pod != nullptr && pod->alive() && pod->node.empty();
    if (!waits ||
        std::ranges::find(decision.pods, pod->uid, &DecidedPod::uid) != decision.pods.end()) {
      continue;
    }
    next.push_back(std::move(pod));
  }
  return next;
}

// Returns the next pod of each lost member; empty when the indexes of the pods contradict the
// ranks of the pods that go on.
std::vector<PodPtr> Assign(const GangDecision& decision, const std::vector<std::uint32_t>& lost,
                           std::vector<PodPtr> next, const Facts& facts) {
  std::vector<PodPtr> all = next;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < decision.pods.size(); ++i) {
    const DecidedPod& pod = decision.pods[i];
    auto fact = facts.pods.Find(PodKey{decision.key.ns, pod.name});
    const bool is_lost = std::ranges::find(lost, i) != lost.end();
    if (!is_lost && (fact == nullptr || fact->uid != pod.uid)) continue;  // has succeeded, and gone
    ranks.push_back(pod.rank);
    if (!is_lost) all.push_back(std::move(fact));
  }
  std::ranges::sort(ranks);
  const auto by_rank = [&](std::uint32_t pod) { return decision.pods[pod].rank; };
  std::vector<std::uint32_t> places = lost;
  std::ranges::sort(places, {}, by_rank);
  const RankOrder order = SortByRank(all);
  if (!order.twice.empty()) return {};
  std::vector<PodPtr> taken;
  for (const std::uint32_t place : places) {
    const auto at =
        static_cast<std::size_t>(std::ranges::find(ranks, by_rank(place)) - ranks.begin());
    taken.push_back(all[at]);
  }
  const bool fits = std::ranges::all_of(
      taken, [&](const PodPtr& pod) { return std::ranges::find(next, pod) != next.end(); });
  if (!fits && order.indexed) return {};
  if (!fits) {  // names promise no order
    (void)SortByRank(next);
    taken = std::move(next);
  }
  std::vector<PodPtr> of_lost(lost.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    of_lost[static_cast<std::size_t>(std::ranges::find(lost, places[i]) - lost.begin())] = taken[i];
  }
  return of_lost;
}

// Returns the holding of all devices of the claims, as they were given.
Holding HeldBy(const GangDecision& decision, const std::vector<std::uint32_t>& claims) {
  Holding holding;
  for (const std::uint32_t index : claims) {
    for (auto& device : HeldDevices(decision.claims[index].allocation)) {
      holding.devices.push_back(std::move(device));
    }
  }
  return holding;
}

// Returns the fleet in which nothing is free on the node but the given chips.
ClusterState OnlyFree(const ClusterState& cluster, const GangDecision& decision,
                      const std::vector<std::uint32_t>& claims, NodeId id, std::uint16_t chips) {
  ClusterState view = cluster;
  for (const std::uint32_t claim : claims) view.Release(decision.claims[claim].uid);
  const Node& node = *view.node(id).node;
  const std::uint16_t busy = view.node(id).BusyChips();
  auto others = std::make_shared<Holding>();
  others->claim_uid = "not of the lost pod";
  for (int chip = 0; chip < kChipsPerNode; ++chip) {
    const std::uint16_t device = node.family->devices->chips[static_cast<std::size_t>(chip)];
    if (((busy | chips) >> chip & 1) != 0 || device == NodeTemplate::kNone) continue;
    others->devices.push_back({node.name, node.device(device).name});
  }
  if (!others->devices.empty()) view.Hold(std::move(others));
  return view;
}

// Returns the gang of one that asks for a place in the lost pod's run. In a Capacity Block the
// place is in the topology domain of the lost pod's node.
std::shared_ptr<GangSpec> SpecFor(const GangDecision& decision, MemberSpec member,
                                  const ClusterState& cluster, NodeId id, WallTime now) {
  auto spec = std::make_shared<GangSpec>();
  spec->key = {decision.key.ns, member.pod.name};
  spec->uid = member.uid;
  spec->single_pod = true;
  spec->preemptible = decision.preemptible;
  spec->priority = decision.priority;
  spec->grace = decision.grace;
  spec->reservation = decision.reservation;
  spec->reclaim = decision.reclaim;
  if (!decision.reservation.empty()) {
    spec->block_hosts = {cluster.domain(cluster.node(id).domain).name};
  } else if (decision.end) {
    spec->max_runtime = std::chrono::duration_cast<std::chrono::seconds>(
        std::max<std::chrono::nanoseconds>(*decision.end - now, std::chrono::seconds(1)));
  }
  spec->members.push_back(std::move(member));
  return spec;
}

// Places a gang of a single pod in the fleet, or says in `why` why there is no place.
std::optional<Placement> PlanAlone(const ReplacementSources& from, const ClusterState& view,
                                   const std::shared_ptr<const GangSpec>& spec, WallTime now,
                                   std::string& why) {
  std::vector<Decision> decisions = from.plan(view, {spec}, now, Explaining::kEach);
  TAHOMA_CHECK(decisions.size() == 1);  // the gang's
  if (decisions[0].placement) return std::move(decisions[0].placement);
  why = decisions[0].blocked->message;
  if (why.empty()) why = "no place was found";
  return std::nullopt;
}

// Gives the next pod the claims as they are placed.
void TakeClaims(const GangDecision& decision, const std::vector<std::uint32_t>& own,
                const std::vector<ClaimPlacement>& claims, MemberReplaced& replaced) {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    replaced.claims.push_back({.index = own[i],
                               .name = claims[i].claim.name,
                               .uid = claims[i].uid,
                               .allocation = claims[i].allocation});
    if (decision.reclaim) SayReclaim(*decision.reclaim, replaced.claims.back().allocation);
  }
}

std::string AsksForOthers(const MemberReplaced& replaced) {
  return fmt::format("pod {} asks for other devices than the pod before it", replaced.name);
}

// Adds to `replaced` the claims of the next pod with their devices, or returns why that cannot be.
// Then `view` has the pod.
std::string PlaceOn(const GangDecision& decision, MemberSpec member, const ReplacementSources& from,
                    WallTime now, ClusterState& view, MemberReplaced& replaced) {
  const DecidedPod& lost = decision.pods[replaced.pod];
  const std::vector<std::uint32_t> own = OwnClaims(decision, replaced.pod);
  const std::optional<NodeId> id = from.cluster.FindNode(lost.node);
  if (!id || from.cluster.node(*id).node == nullptr) {
    return fmt::format("node {} is gone", lost.node);
  }
  const Node& node = *from.cluster.node(*id).node;
  const std::uint16_t chips = ChipsOf(HeldBy(decision, own), node);
  const ClusterState its_chips = OnlyFree(view, decision, own, *id, chips);
  if (!from.cluster.node(*id).domain.valid())
    return fmt::format("node {} has no devices", lost.node);
  member.node.all.push_back(
      {.key = "metadata.name", .op = NodeOperator::kIn, .values = {lost.node}, .field = true});
  const auto spec = SpecFor(decision, std::move(member), from.cluster, *id, now);
  std::string why;
  const auto placement = PlanAlone(from, its_chips, spec, now, why);
  if (!placement) {
    return fmt::format("its chips on node {} do not take pod {}: {}", lost.node, replaced.name,
                       why);
  }
  const MemberPlacement& placed = placement->members.at(0);
  const auto& claims = placed.claims;
  Holding given;
  for (const ClaimPlacement& claim : claims) {
    for (auto& device : HeldDevices(claim.allocation)) given.devices.push_back(std::move(device));
  }
  if (claims.size() != own.size() || ChipsOf(given, node) != chips) {
    return AsksForOthers(replaced);
  }
  if (placed.needs != nullptr) view.PutPod(placed.pod, placed.node, placed.needs);
  TakeClaims(decision, own, claims, replaced);
  return "";
}

// As PlaceOn, on free devices of any node in `view`, which holds them then.
std::string PlaceElsewhere(const GangDecision& decision, const MemberSpec& member,
                           const ReplacementSources& from, WallTime now, ClusterState& view,
                           MemberReplaced& replaced) {
  if (!decision.slices.empty()) return "the gang's shape has no other place for the pod";
  const auto pod = from.facts.pods.Find(member.pod);
  if (pod != nullptr && pod->affinity != nullptr) {
    return "where else the pod may be depends on other pods";
  }
  const std::optional<NodeId> id = view.FindNode(decision.pods[replaced.pod].node);
  if (!id || (!decision.reservation.empty() && !view.node(*id).domain.valid())) {
    return "its node is gone";
  }
  const auto spec = SpecFor(decision, member, view, *id, now);
  std::string why;
  const auto placement = PlanAlone(from, view, spec, now, why);
  if (!placement) return why;
  const MemberPlacement& placed = placement->members.at(0);
  const std::vector<std::uint32_t> own = OwnClaims(decision, replaced.pod);
  std::size_t devices = 0;
  for (const ClaimPlacement& claim : placed.claims) devices += claim.allocation.results.size();
  if (placed.claims.size() != own.size() || devices != HeldBy(decision, own).devices.size()) {
    return AsksForOthers(replaced);
  }
  for (auto& holding : placement->Holdings(*spec, now)) view.Hold(std::move(holding));
  if (placed.needs != nullptr) view.PutPod(placed.pod, placed.node, placed.needs);
  TakeClaims(decision, own, placed.claims, replaced);
  replaced.node = placed.node;
  return "";
}

// Returns the claims that other pods of the gang use, too, and the next pod does not.
std::string MissingShared(const GangDecision& decision, std::uint32_t pod,
                          const MemberSpec& member) {
  const std::vector<std::uint32_t> own = OwnClaims(decision, pod);
  for (std::uint32_t i = 0; i < decision.claims.size(); ++i) {
    const DecidedClaim& claim = decision.claims[i];
    const bool uses = std::ranges::find(claim.consumers, pod) != claim.consumers.end();
    if (!uses || std::ranges::find(own, i) != own.end()) continue;
    const bool there = std::ranges::any_of(member.claims, [&](const ClaimSpec& spec) {
      return spec.uid == claim.uid && spec.allocated_node;
    });
    if (!there) return claim.name;
  }
  return "";
}

}  // namespace

Replacement FindReplacement(const GangRun& run, const ReplacementSources& from, WallTime now) {
  Replacement found;
  const GangDecision& decision = run.decision();
  const std::vector<std::uint32_t> lost = LostOf(run);
  std::vector<PodPtr> next = NextPods(decision, from);
  if (lost.empty() || next.size() != lost.size()) return found;
  for (const std::uint32_t pod : lost) {
    if (!HasLeft(run, pod, from.facts)) return found;
  }
  next = Assign(decision, lost, std::move(next), from.facts);
  if (next.empty()) {
    found.impossible = "the indexes of its next pods are not those of the lost ones";
    return found;
  }
  ClusterState view = from.cluster;
  std::vector<MemberSpec> members;
  std::vector<std::string> moves;  // by member: why the pod cannot stay; empty when the pod stays
  for (std::size_t i = 0; i < lost.size(); ++i) {
    Readiness ready = from.membership.AssessNext(*next[i], from.facts, from.busy);
    if (ready.spec == nullptr) return {};
    const MemberSpec& member = members.emplace_back(ready.spec->members.at(0));
    MemberReplaced replaced{.run = run.id(),
                            .pod = lost[i],
                            .name = next[i]->key.name,
                            .uid = next[i]->uid,
                            .node = {},
                            .at = now,
                            .claims = {}};
    if (const std::string claim = MissingShared(decision, lost[i], member); !claim.empty()) {
      return {.members = {},
              .impossible = fmt::format("pod {} does not use claim {}", replaced.name, claim)};
    }
    moves.push_back(PlaceOn(decision, member, from, now, view, replaced));
    found.members.push_back(std::move(replaced));
  }
  // Pods that stay come first: pods that move leave room for them.
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (moves[i].empty()) continue;
    const std::string also =
        PlaceElsewhere(decision, members[i], from, now, view, found.members[i]);
    if (!also.empty()) {
      return {.members = {}, .impossible = fmt::format("{}; elsewhere: {}", moves[i], also)};
    }
  }
  return found;
}

}  // namespace tahoma::controller
