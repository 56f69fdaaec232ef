// Maintenance windows in a fleet of 15,625 UltraServers (1,000,000 chips): the time of a decision
// while 1,000 windows keep 31,000 nodes.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/planner.h"
#include "controller/timeline/kept_fleet.h"
#include "lib/base/check.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

constexpr int kUltraServers = 15'625;
constexpr int kWindows = 1'000;
constexpr int kNodesOfWindow = 31;

// Every second node of the fleet is in a window.
std::vector<std::shared_ptr<const Promise>> MakeWindows() {
  std::vector<std::shared_ptr<const Promise>> windows;
  int node = 0;
  for (int i = 0; i < kWindows; ++i) {
    Promise promise;
    promise.kind = PromiseKind::kMaintenance;
    for (int n = 0; n < kNodesOfWindow; ++n, node += 2) {
      Holding holding;
      const std::string name = fmt::format("us-{}-n{}", node / 4, node % 4);
      holding.claim_uid = "kept " + name;
      for (int chip = 0; chip < kChipsPerNode; ++chip) {
        holding.devices.push_back({.node = name, .device = fmt::format("neuron-device-{}", chip)});
      }
      promise.holdings.push_back(std::make_shared<const Holding>(std::move(holding)));
    }
    windows.push_back(std::make_shared<const Promise>(std::move(promise)));
  }
  return windows;
}

// A gang of a node begins, then the next gang is decided on.
void DecideBesideWindows(benchmark::State& run) {
  ClusterState fleet;
  for (int i = 0; i < kUltraServers; ++i) AddUltraServer(fleet, fmt::format("us-{}", i), false);
  const auto windows = MakeWindows();
  Planner planner;
  KeptFleet kept;
  int gangs = 0;
  const auto decide = [&] {
    const std::string name = fmt::format("gang-{}", gangs++);
    const auto gang = std::make_shared<const GangSpec>(
        GangOf(name, 1, [](const std::string& pod) { return ChipClaim(pod, kChipsPerNode); }));
    const auto decisions =
        planner.Plan(kept.Of(fleet, windows), {gang}, WallTime(), Explaining::kNone);
    TAHOMA_CHECK(decisions[0].placement.has_value());
    for (auto& holding : decisions[0].placement->Holdings(*gang, WallTime())) {
      fleet.Hold(std::move(holding));
    }
  };
  decide();  // the windows are held, and the index is there then
  for (auto unused : run) decide();
}
BENCHMARK(DecideBesideWindows)
    ->Name("fleet_1m_decision_beside_windows_ms")
    ->Iterations(200)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::controller
