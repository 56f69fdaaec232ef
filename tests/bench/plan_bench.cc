// Places gang slices: inside an UltraServer, and in a fleet of 15,625 UltraServers (1,000,000
// chips) with about 85 % in use.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

GangSpec Gang(const std::string& name, const std::string& shape) {
  const int chips = torus::Shape::Parse(shape)->chip_count();
  const int members = std::max(1, chips / 16);
  GangSpec gang = GangOf(name, members,
                         [&](const std::string& pod) { return ChipClaim(pod, chips / members); });
  gang.shape_text = shape;
  return gang;
}

// Plans the gang and holds it. Returns how long planning took.
std::chrono::nanoseconds Place(Planner& planner, ClusterState& state, GangSpec spec,
                               std::vector<std::string>* held) {
  const auto gang = std::make_shared<const GangSpec>(std::move(spec));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Decision> decisions = planner.Plan(state, {gang}, WallTime{});
  const auto took = std::chrono::steady_clock::now() - start;
  if (decisions[0].placement && held != nullptr) {
    for (auto& holding : decisions[0].placement->Holdings(*gang, WallTime{})) {
      held->push_back(holding->claim_uid);
      state.Hold(holding);
    }
  }
  return took;
}

// Places one 2x2x2 gang slice in a half-used UltraServer, with everything that Plan does.
void PlaceOneUltraServer(benchmark::State& run) {
  ClusterState state;
  AddUltraServer(state, "us-0", false);
  Planner planner;
  std::vector<std::string> held;
  Place(planner, state, Gang("half", "4x4x2"), &held);
  int index = 0;
  for (auto unused : run) {
    Place(planner, state, Gang(fmt::format("g{}", index++), "2x4"), nullptr);
  }
}
BENCHMARK(PlaceOneUltraServer)->Name("place_one_ultraserver_ns")->Unit(benchmark::kNanosecond);

void PlaceInFleet(benchmark::State& run) {
  constexpr int kUltraServers = 15625;
  ClusterState state;
  for (int i = 0; i < kUltraServers; ++i) AddUltraServer(state, fmt::format("us-{}", i), false);
  Planner planner;
  Rng rng(1);
  const std::vector<std::string> shapes = {"1x1", "1x2", "2x2", "2x4", "4x4", "4x4x2", "4x4x4"};
  std::vector<std::string> held;
  int index = 0;
  const auto next = [&] {
    return Gang(fmt::format("g{}", index++), shapes[rng.Below(shapes.size())]);
  };
  while (state.Count().free > 150'000) {
    for (int i = 0; i < 1000; ++i) Place(planner, state, next(), &held);
  }
  // A gang slice without a place costs a look at every domain for its reason: counted apart.
  std::vector<double> placed;
  std::vector<double> refused;
  for (auto unused : run) {
    const std::size_t before = held.size();
    const auto took = Place(planner, state, next(), &held);
    const double micros = std::chrono::duration<double, std::micro>(took).count();
    (held.size() > before ? placed : refused).push_back(micros);
    run.SetIterationTime(micros / 1e6);
    for (int i = 0; i < 2 && !held.empty(); ++i) {
      const std::size_t victim = rng.Below(held.size());
      state.Release(held[victim]);
      held[victim] = held.back();
      held.pop_back();
    }
  }
  const auto p99 = [](std::vector<double>& of) {
    std::sort(of.begin(), of.end());
    return of.empty() ? 0.0 : of[of.size() * 99 / 100];
  };
  run.counters["p99_us"] = p99(placed);
  run.counters["why_not_p99_us"] = p99(refused);
  run.counters["refused"] = static_cast<double>(refused.size());
}
BENCHMARK(PlaceInFleet)
    ->Name("place_fleet_15625_ultraservers_p99_us")
    ->UseManualTime()
    ->Iterations(5000)
    ->Unit(benchmark::kMicrosecond);

// Adds nodes in UltraServers. Every chip has a serial number of its own: no two nodes publish the
// same devices. Seven of eight chips are held.
void FillWithUniqueDevices(ClusterState& state, int nodes) {
  Rng rng(1);
  for (int i = 0; i < nodes; ++i) {
    const std::string domain = fmt::format("us-{}", i / 4);
    NodeFacts facts = NodeFactsOf({.name = fmt::format("{}-n{}", domain, i % 4),
                                   .type = "trn2u.48xlarge",
                                   .ultra_server = domain,
                                   .z = i % 4,
                                   .cores = false});
    Holding holding;
    holding.claim_uid = "held-" + facts.name;
    for (Device& device : facts.devices) {
      device.attributes.push_back(
          {{"example.com", "serial"}, fmt::format("{}/{}", facts.name, device.name)});
      const bool chip = RoleOf(device).kind == DeviceKind::kChip;
      if (chip && rng.Below(8) != 0) {
        holding.devices.push_back({.node = facts.name, .device = device.name});
      }
    }
    state.PutNode(std::move(facts));
    state.Hold(std::make_shared<const Holding>(std::move(holding)));
  }
}

// Places pods of one to four chips without a shape. With `pinned`, every fourth pod asks for a chip
// by its serial number.
void PlaceUniqueDevices(benchmark::State& run, bool pinned) {
  const auto nodes = static_cast<int>(run.range(0));
  ClusterState state;
  FillWithUniqueDevices(state, nodes);
  Planner planner;
  Rng rng(2);
  int index = 0;
  const auto next = [&] {
    const std::string name = fmt::format("p{}", index++);
    const bool by_serial = pinned && index % 4 == 0;
    const int chips = by_serial ? 1 : 1 << rng.Below(3);
    GangSpec gang = GangOf(name, 1, [&](const std::string& pod) { return ChipClaim(pod, chips); });
    const auto node = static_cast<int>(rng.Below(static_cast<std::uint64_t>(nodes)));
    if (by_serial) {
      gang.members[0].claims[0].requests[0].alternatives[0].selectors = {
          fmt::format("device.attributes[\"example.com\"].serial == \"us-{}-n{}/neuron-device-{}\"",
                      node / 4, node % 4, rng.Below(16))};
    }
    return gang;
  };
  Place(planner, state, next(), nullptr);  // reads the fleet
  std::vector<double> placed;
  for (auto unused : run) {
    std::vector<std::string> held;
    const auto took = Place(planner, state, next(), &held);
    const double micros = std::chrono::duration<double, std::micro>(took).count();
    if (!held.empty()) placed.push_back(micros);
    for (const std::string& claim : held) state.Release(claim);
    run.SetIterationTime(micros / 1e6);
  }
  std::sort(placed.begin(), placed.end());
  TAHOMA_CHECK(!placed.empty());
  run.counters["p99_us"] = placed[placed.size() * 99 / 100];
  run.counters["median_us"] = placed[placed.size() / 2];
  run.counters["placed"] = static_cast<double>(placed.size());
}
BENCHMARK_CAPTURE(PlaceUniqueDevices, any, false)
    ->Name("place_fleet_unique_devices_p99_us")
    ->Arg(16000)
    ->UseManualTime()
    ->Iterations(2000)
    ->Unit(benchmark::kMicrosecond);
// Shows the growth, when run by hand.
BENCHMARK_CAPTURE(PlaceUniqueDevices, growth, false)
    ->Name("unique_devices_growth_us")
    ->Arg(4000)
    ->Arg(62500)
    ->UseManualTime()
    ->Iterations(2000)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(PlaceUniqueDevices, by_serial, true)
    ->Name("one_serial_growth_us")
    ->Arg(16000)
    ->Arg(62500)
    ->UseManualTime()
    ->Iterations(400)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tahoma::controller

BENCHMARK_MAIN();
