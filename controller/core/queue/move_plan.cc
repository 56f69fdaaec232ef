#include "controller/core/queue/move_plan.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "controller/plan/defragment.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using RunPtr = std::shared_ptr<const MovableRun>;

// A failed plan names so many gangs that stay.
constexpr std::size_t kStayingNamed = 4;
// The cost of a chip-second whose holder stays: more than any that moves.
constexpr std::int64_t kStaysCost = std::int64_t{1} << 40;

std::vector<DomainId> DomainsOf(const MovableRun& run, const ClusterState& fleet) {
  std::vector<DomainId> domains;
  for (const DecidedPod& pod : run.decision->pods) {
    const auto node = fleet.FindNode(pod.node);
    if (!node || !fleet.node(*node).domain.valid()) continue;
    const DomainId domain = fleet.node(*node).domain;
    if (std::ranges::find(domains, domain) == domains.end()) domains.push_back(domain);
  }
  return domains;
}

// Returns the runs that may move, at most kMovableRunsMost: those where a domain is cleared at the
// least cost first.
std::vector<RunPtr> Choose(const ClusterState& fleet, std::span<const RunPtr> runs, WallTime now) {
  std::map<DomainId, std::int64_t> cost;
  std::vector<std::pair<std::int64_t, RunPtr>> chosen;
  for (const RunPtr& run : runs) {
    if (run == nullptr) continue;
    const bool stays = !StaysBecause(*run, now).empty();
    for (const DomainId domain : DomainsOf(*run, fleet)) {
      std::int64_t& sum = cost[domain];
      sum = std::min(std::int64_t{1} << 60, sum + (stays ? kStaysCost : WorkLostBy(*run, now)));
    }
    if (!stays) chosen.emplace_back(0, run);
  }
  if (chosen.size() > kMovableRunsMost) {
    for (auto& [least, run] : chosen) {
      least = std::int64_t{1} << 60;
      for (const DomainId domain : DomainsOf(*run, fleet)) least = std::min(least, cost[domain]);
    }
  }
  std::ranges::sort(chosen, [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->run) < std::tie(b.first, b.second->run);
  });
  if (chosen.size() > kMovableRunsMost) chosen.resize(kMovableRunsMost);
  std::vector<RunPtr> movable;
  for (auto& [least, run] : chosen) movable.push_back(std::move(run));
  return movable;
}

// Holds the UltraServers of which nothing is held.
void HoldFreeUltraServers(ClusterState& fleet) {
  Holding all;
  all.claim_uid = "free before any move";
  for (std::size_t i = 0; i < fleet.domain_count(); ++i) {
    const DomainState& domain = fleet.domain(DomainId(i));
    if (!domain.ultra || domain.free != domain.present) continue;
    for (const NodeId id : domain.nodes) {
      if (!id.valid() || fleet.node(id).node == nullptr) continue;
      const Node& node = *fleet.node(id).node;
      for (const std::uint16_t device : node.family->devices->chips) {
        if (device == NodeTemplate::kNone) continue;
        all.devices.push_back({node.name, node.device(device).name});
      }
    }
  }
  if (!all.devices.empty()) fleet.Hold(std::make_shared<const Holding>(std::move(all)));
}

// Returns "; 3 of 5 gangs stay: gang default/a (us-0 4x4x2+0,0,0) is not preemptible, …".
std::string DescribeStaying(std::span<const RunPtr> runs, WallTime now) {
  std::size_t all = 0;
  std::size_t stay = 0;
  std::string named;
  for (const RunPtr& run : runs) {
    if (run == nullptr) continue;
    ++all;
    const std::string why = StaysBecause(*run, now);
    if (why.empty() || ++stay > kStayingNamed) continue;
    named +=
        fmt::format("{}{} on {} {}", stay == 1 ? "" : "; ", Describe(run->gang), run->from, why);
  }
  if (stay == 0) return "";
  const std::string more =
      stay > kStayingNamed ? fmt::format("; and {} more", stay - kStayingNamed) : std::string();
  return fmt::format("; of {} running gangs {} may not be moved: {}{}", all, stay, named, more);
}

}  // namespace

void HoldPromises(std::span<const std::shared_ptr<const Promise>> promises, ClusterState& fleet) {
  for (const auto& promise : promises) {
    for (const auto& holding : promise->holdings) fleet.Hold(holding);
  }
}

absl::StatusOr<MovePlan> PlanMovesIn(const ClusterState& fleet, std::span<const RunPtr> runs,
                                     const MoveWish& wish, WallTime now, const PlanFunction& plan) {
  const std::vector<RunPtr> chosen = Choose(fleet, runs, now);
  std::vector<MovableGang> movable;
  for (const RunPtr& run : chosen) {
    movable.push_back({.run = RunningOf(*run, now), .spec = run->spec});
  }
  ClusterState view = fleet;
  if (wish.gains_ultra_servers) HoldFreeUltraServers(view);
  const auto place = [&](const ClusterState& state, const std::shared_ptr<const GangSpec>& gang) {
    return plan(state, {gang}, now, Explaining::kNone).front().placement;
  };
  auto moves = PlanMoves(view, wish.gang, movable, {.moves = wish.moves_most}, now, place);
  if (!moves.ok()) {
    return FailedPrecondition("{}{}", Message(moves.status()), DescribeStaying(runs, now));
  }
  MovePlan found;
  found.wanted = std::move(moves->wanted);
  found.work = moves->cost;
  for (Move& move : moves->moves) {
    found.moves.push_back(
        {.run = chosen[move.gang], .to = std::move(move.to), .work = movable[move.gang].run.work});
  }
  return found;
}

}  // namespace tahoma::controller
