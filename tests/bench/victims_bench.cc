// Room for gangs in a fleet of 15,625 UltraServers (1,000,000 chips) that is 90 % full: which gangs
// end, and which move.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/defragment.h"
#include "controller/plan/planner.h"
#include "controller/plan/victims.h"
#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

constexpr int kUltraServers = 15'625;
constexpr std::size_t kVictims = 700;

std::string NodeName(int ultra_server, int z) { return fmt::format("us-{}-n{}", ultra_server, z); }

// Holds all chips of nodes of the UltraServer, with a claim for each node.
RunningGang Occupy(ClusterState& fleet, int ultra_server, int first_z, int last_z) {
  RunningGang run = {.claims = {}, .pods = {}};
  for (int z = first_z; z <= last_z; ++z) {
    const std::string node = NodeName(ultra_server, z);
    Holding holding;
    holding.claim = {"default", "held-" + node};
    holding.claim_uid = "held-" + node;
    for (int chip = 0; chip < kChipsPerNode; ++chip) {
      holding.devices.push_back({.node = node, .device = fmt::format("neuron-device-{}", chip)});
    }
    run.claims.push_back(holding.claim_uid);
    fleet.Hold(std::make_shared<const Holding>(std::move(holding)));
  }
  return run;
}

struct FullFleet {
  ClusterState state;
  std::vector<RunningGang> may_end;
};

// Four of ten UltraServers have a node free each, six are in use as a whole. The gangs that may end
// are on UltraServers of either kind.
const FullFleet& Fleet() {
  static const FullFleet fleet = [] {
    FullFleet made;
    Rng rng(47);
    for (int i = 0; i < kUltraServers; ++i) {
      AddUltraServer(made.state, fmt::format("us-{}", i), false);
      const bool whole = i % 10 < 6;
      RunningGang run = Occupy(made.state, i, 0, whole ? 3 : 2);
      run.work = static_cast<std::int64_t>(rng.Below(1'000'000));
      run.priority = static_cast<std::int32_t>(rng.Below(3));
      if (i % 22 == 0 && made.may_end.size() < kVictims) made.may_end.push_back(std::move(run));
    }
    TAHOMA_CHECK(made.may_end.size() == kVictims);
    const ClusterState::Totals totals = made.state.Count();
    TAHOMA_CHECK(totals.nodes == 4 * kUltraServers && totals.free < totals.chips / 10);
    return made;
  }();
  return fleet;
}

void ChooseForSlices(benchmark::State& run, int slices) {
  const FullFleet& fleet = Fleet();
  GangSpec gang = GangOf("wanted", 4 * slices,
                         [](const std::string& pod) { return ChipClaim(pod, kChipsPerNode); });
  gang.shape_text = "4x4x4";
  gang.slices = slices;
  const auto shared = std::make_shared<const GangSpec>(std::move(gang));
  Planner planner;
  planner.Plan(fleet.state, {shared}, WallTime(), Explaining::kNone);  // the index is there then
  for (auto unused : run) {
    const auto victims = ChooseVictims(
        fleet.state, *shared, fleet.may_end, WallTime(), [&](const ClusterState& without) {
          return planner.Plan(without, {shared}, WallTime(), Explaining::kNone)[0].placement;
        });
    TAHOMA_CHECK(victims && victims->gangs.size() == static_cast<std::size_t>(slices));
  }
}
void ChooseForOne(benchmark::State& run) { ChooseForSlices(run, 1); }
void ChooseForMany(benchmark::State& run) { ChooseForSlices(run, 128); }
BENCHMARK(ChooseForOne)
    ->Name("fleet_1m_preemption_plan_one_ultraserver_ms")
    ->Iterations(5)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ChooseForMany)
    ->Name("fleet_1m_preemption_plan_ms")
    ->Iterations(5)
    ->Unit(benchmark::kMillisecond);

// 41 UltraServers have a gang of two nodes each that may move. The others are full, but for a few
// with two free nodes.
void MoveForUltraServers(benchmark::State& run) {
  constexpr int kMoved = 41;
  ClusterState fleet;
  std::vector<MovableGang> movable;
  for (int i = 0; i < kUltraServers; ++i) {
    AddUltraServer(fleet, fmt::format("us-{}", i), false);
    if (i % 300 != 0 || std::ssize(movable) == kMoved) {
      Occupy(fleet, i, 0, i % 200 == 1 ? 1 : 3);
      continue;
    }
    MovableGang one = {.run = Occupy(fleet, i, 0, 1), .spec = nullptr};
    one.run.work = i;
    GangSpec gang = GangOf(fmt::format("moved-{}", i), 2,
                           [](const std::string& pod) { return ChipClaim(pod, kChipsPerNode); });
    gang.shape_text = "4x4x2";
    one.spec = std::make_shared<const GangSpec>(std::move(gang));
    movable.push_back(std::move(one));
  }
  TAHOMA_CHECK(movable.size() == kMoved);
  GangSpec gang = GangOf("wanted", 4 * kMoved,
                         [](const std::string& pod) { return ChipClaim(pod, kChipsPerNode); });
  gang.shape_text = "4x4x4";
  gang.slices = kMoved;
  const auto wanted = std::make_shared<const GangSpec>(std::move(gang));
  Planner planner;
  const auto place = [&](const ClusterState& state, const std::shared_ptr<const GangSpec>& one) {
    return planner.Plan(state, {one}, WallTime(), Explaining::kNone)[0].placement;
  };
  place(fleet, wanted);  // the index is there then
  for (auto unused : run) {
    const auto plan = PlanMoves(fleet, wanted, movable, {.moves = kMoved}, WallTime(), place);
    TAHOMA_CHECK(plan.ok() && plan->moves.size() == kMoved);
  }
}
BENCHMARK(MoveForUltraServers)
    ->Name("fleet_1m_defrag_plan_ms")
    ->Iterations(5)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::controller
