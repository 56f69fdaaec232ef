#include "controller/core/queue/replacement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "controller/plan/box_around.h"
#include "controller/plan/decision.h"

namespace tahoma::controller {
namespace {

using PodPtr = std::shared_ptr<const PodFact>;

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

// Returns the gang that asks for places in the run. In a Capacity Block the places are in the
// topology domain of the lost pods' node.
std::shared_ptr<GangSpec> SpecFor(const GangDecision& decision, std::vector<MemberSpec> members,
                                  const std::string& domain, WallTime now) {
  auto spec = std::make_shared<GangSpec>();
  spec->key = {decision.key.ns, members.front().pod.name};
  spec->uid = members.front().uid;
  spec->single_pod = true;
  spec->preemptible = decision.preemptible;
  spec->priority = decision.priority;
  spec->grace = decision.grace;
  spec->reservation = decision.reservation;
  spec->reclaim = decision.reclaim;
  if (!decision.reservation.empty()) {
    spec->block_hosts = {domain};
  } else if (decision.end) {
    spec->max_runtime = RuntimeUntil(*decision.end, now);
  }
  spec->members = std::move(members);
  return spec;
}

// Returns the topology domain of the node; empty when there is none.
std::string DomainOf(const std::string& node, const ClusterState& cluster) {
  const std::optional<NodeId> id = cluster.FindNode(node);
  if (!id || !cluster.node(*id).domain.valid()) return "";
  return cluster.domain(cluster.node(*id).domain).name;
}

// Places the gang in the fleet, or says in `why` why there is no place.
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

std::size_t DevicesOf(const std::vector<ClaimPlacement>& claims) {
  std::size_t devices = 0;
  for (const ClaimPlacement& claim : claims) devices += claim.allocation.results.size();
  return devices;
}

std::size_t DevicesOf(const GangDecision& decision, const std::vector<std::uint32_t>& claims) {
  std::size_t devices = 0;
  for (const std::uint32_t claim : claims) {
    devices += decision.claims[claim].allocation.results.size();
  }
  return devices;
}

// A search for the places of next pods. `view` has the places that are found.
struct PlaceSearch {
  const GangDecision& decision;
  const ReplacementSources& from;
  WallTime now;
  ClusterState& view;
};

// Gives the pod the place, and `replaced` its claims; `node` where the pod moves.
void Take(const PlaceSearch& search, const MemberPlacement& placed, MemberReplaced& replaced) {
  TakeClaims(search.decision, OwnClaims(search.decision, replaced.pod), placed.claims, replaced);
  for (const MemberReplaced::Claim& claim : replaced.claims) {
    Holding holding;
    holding.claim_uid = claim.uid;
    HoldDevicesOf(claim.allocation, holding);
    search.view.Hold(std::make_shared<const Holding>(std::move(holding)));
  }
  if (placed.needs != nullptr) search.view.PutPod(placed.pod, placed.node, placed.needs);
}

// Gives the pod these very chips of the node, or returns why that cannot be.
std::string PlaceOnChips(const PlaceSearch& search, MemberSpec member, const Node& node,
                         std::uint16_t chips, MemberReplaced& replaced) {
  const std::vector<std::uint32_t> own = OwnClaims(search.decision, replaced.pod);
  const NodeId id = *search.view.FindNode(node.name);
  const ClusterState its_chips = OnlyFree(search.view, search.decision, own, id, chips);
  member.node.all.push_back(
      {.key = "metadata.name", .op = NodeOperator::kIn, .values = {node.name}, .field = true});
  const auto spec =
      SpecFor(search.decision, {std::move(member)}, DomainOf(node.name, search.view), search.now);
  std::string why;
  const auto placement = PlanAlone(search.from, its_chips, spec, search.now, why);
  if (!placement) {
    return fmt::format("its chips on node {} do not take pod {}: {}", node.name, replaced.name,
                       why);
  }
  const MemberPlacement& placed = placement->members.at(0);
  Holding given;
  for (const ClaimPlacement& claim : placed.claims) {
    for (auto& device : HeldDevices(claim.allocation)) given.devices.push_back(std::move(device));
  }
  if (placed.claims.size() != own.size() || ChipsOf(given, node) != chips) {
    return AsksForOthers(replaced);
  }
  Take(search, placed, replaced);
  return "";
}

// Adds to `replaced` the claims of the next pod with the devices of the lost one, or returns why
// that cannot be.
std::string PlaceOn(const PlaceSearch& search, const MemberSpec& member, MemberReplaced& replaced) {
  const DecidedPod& lost = search.decision.pods[replaced.pod];
  const std::optional<NodeId> id = search.from.cluster.FindNode(lost.node);
  if (!id || search.from.cluster.node(*id).node == nullptr) {
    return fmt::format("node {} is gone", lost.node);
  }
  const NodeState& state = search.from.cluster.node(*id);
  if (!state.domain.valid()) return fmt::format("node {} has no devices", lost.node);
  const std::vector<std::uint32_t> own = OwnClaims(search.decision, replaced.pod);
  return PlaceOnChips(search, member, *state.node,
                      ChipsOf(HeldBy(search.decision, own), *state.node), replaced);
}

// As PlaceOn, for pods of one slice, or one pod of a gang without slices, on free devices of any
// node. `shape` is the slice's; empty without one.
std::string PlaceAnew(const PlaceSearch& search, const std::vector<MemberSpec>& members,
                      const std::string& shape, const std::vector<MemberReplaced*>& replaced) {
  for (const MemberSpec& member : members) {
    const auto pod = search.from.facts.pods.Find(member.pod);
    if (pod != nullptr && pod->affinity != nullptr) {
      return "where else the pod may be depends on other pods";
    }
  }
  const std::string domain =
      DomainOf(search.decision.pods[replaced.front()->pod].node, search.view);
  if (!search.decision.reservation.empty() && domain.empty()) return "its node is gone";
  const auto spec = SpecFor(search.decision, members, domain, search.now);
  spec->shape_text = shape;
  spec->single_pod = shape.empty();
  std::string why;
  const auto placement = PlanAlone(search.from, search.view, spec, search.now, why);
  if (!placement) return why;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::vector<ClaimPlacement>& claims = placement->members.at(i).claims;
    const std::vector<std::uint32_t> own = OwnClaims(search.decision, replaced[i]->pod);
    if (claims.size() != own.size() || DevicesOf(claims) != DevicesOf(search.decision, own)) {
      return AsksForOthers(*replaced[i]);
    }
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    Take(search, placement->members.at(i), *replaced[i]);
    replaced[i]->node = placement->members.at(i).node;
    if (!shape.empty()) replaced[i]->slice = DecidedSliceOf(placement->slices.at(0));
  }
  return "";
}

// Returns the chips in the domain of those pods of the slice that do not move; nullopt when some
// are not known.
std::optional<torus::ChipMask> KeptOf(const PlaceSearch& search, std::uint32_t slice,
                                      const std::vector<MemberReplaced*>& moving,
                                      std::optional<DomainId> domain) {
  torus::ChipMask kept = 0;
  const auto moves = [&](std::uint32_t pod) {
    return std::ranges::find(moving, pod, &MemberReplaced::pod) != moving.end();
  };
  for (const DecidedClaim& claim : search.decision.claims) {
    const std::uint32_t pod = claim.consumers.at(0);
    if (search.decision.pods[pod].slice != slice || moves(pod)) continue;
    if (claim.allocated_before || !domain) return std::nullopt;
    for (const Holding::HeldDevice& device : HeldDevices(claim.allocation)) {
      const std::optional<NodeId> id = search.view.FindNode(device.node);
      if (!id || search.view.node(*id).node == nullptr || search.view.node(*id).domain != *domain) {
        return std::nullopt;
      }
      const NodeState& node = search.view.node(*id);
      kept |= torus::ChipMask{node.node->ChipsNamed(device.device)} << (16 * node.z);
    }
  }
  return kept;
}

// Gives the pod the rest of a box of the slice's shape that has all chips of the slice's other
// pods.
std::string PlaceBeside(const PlaceSearch& search, const MemberSpec& member, torus::ChipMask kept,
                        DomainId id, MemberReplaced& replaced) {
  const DecidedSlice& slice = search.decision.slices[search.decision.pods[replaced.pod].slice];
  const DomainState& domain = search.view.domain(id);
  for (const SlicePlacement& place : BoxesAround(search.view, id, slice.shape, kept)) {
    const torus::ChipMask rest = place.box.mask & ~kept;
    if (rest == 0) continue;  // the pod had no chips of its own
    const int z = std::countr_zero(rest) / kChipsPerNode;
    const NodeId node_id = domain.nodes[static_cast<std::size_t>(z)];
    const auto chips = static_cast<std::uint16_t>(rest >> (kChipsPerNode * z));
    if (torus::ChipMask{chips} << (kChipsPerNode * z) != rest || !node_id.valid()) continue;
    const Node& node = *search.view.node(node_id).node;
    if (!PlaceOnChips(search, member, node, chips, replaced).empty()) continue;
    replaced.node = node.name;
    replaced.slice = DecidedSliceOf(place);
    return "";
  }
  return "no free chips make the gang's shape with those of its other pods";
}

// Gives lost pods of one slice, none of which can stay, other places where the slice keeps its
// shape; returns why that cannot be.
std::string MoveSlice(const PlaceSearch& search, std::uint32_t slice,
                      const std::vector<MemberSpec>& members,
                      const std::vector<MemberReplaced*>& moving) {
  const std::string& domain = search.decision.slices.at(slice).domain;
  const std::string& shape = search.decision.slices.at(slice).shape;
  const std::optional<DomainId> id = search.view.FindDomain(domain);
  const std::optional<torus::ChipMask> kept = KeptOf(search, slice, moving, id);
  if (!kept || shape.empty()) return "the chips of its slice are not known";
  if (*kept == 0) return PlaceAnew(search, members, shape, moving);
  if (members.size() > 1) return "several pods of its slice have lost their chips";
  return PlaceBeside(search, members.front(), *kept, *id, *moving.front());
}

// Gives pods that cannot stay other places. `moves` says by member why the pod cannot stay.
std::string MoveAll(const PlaceSearch& search, const std::vector<MemberSpec>& members,
                    const std::vector<std::string>& moves, std::vector<MemberReplaced>& all) {
  std::map<std::uint32_t, std::pair<std::vector<MemberSpec>, std::vector<MemberReplaced*>>> slices;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (moves[i].empty()) continue;
    std::string also;
    if (search.decision.slices.empty()) {
      also = PlaceAnew(search, {members[i]}, "", {&all[i]});
      if (!also.empty()) return fmt::format("{}; elsewhere: {}", moves[i], also);
      continue;
    }
    auto& [its_members, its] = slices[search.decision.pods[all[i].pod].slice];
    its_members.push_back(members[i]);
    its.push_back(&all[i]);
  }
  for (auto& [slice, moving] : slices) {
    const std::string also = MoveSlice(search, slice, moving.first, moving.second);
    if (also.empty()) continue;
    const auto first = static_cast<std::size_t>(moving.second.front() - all.data());
    return fmt::format("{}; elsewhere: {}", moves[first], also);
  }
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
  const PlaceSearch search{.decision = decision, .from = from, .now = now, .view = view};
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
    moves.push_back(PlaceOn(search, member, replaced));
    found.members.push_back(std::move(replaced));
  }
  // Pods that stay come first: pods that move leave room for them.
  const std::string impossible = MoveAll(search, members, moves, found.members);
  if (!impossible.empty()) return {.members = {}, .impossible = impossible};
  return found;
}

}  // namespace tahoma::controller
