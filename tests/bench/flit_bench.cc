// Measures the speed of the flit level: flits over links per second of wall time, on the loaded
// UltraServer that the curve of docs/design/0005-flit-level.md is about.

#include <benchmark/benchmark.h>

#include "lib/base/rng.h"
#include "sim-node/emulator/flit/network.h"

namespace tahoma::sim {
namespace {

// 64 chips, uniform traffic, half a flit per chip and cycle.
void FlitHops(benchmark::State& state) {
  constexpr torus::Shape kTorus = torus::kUltraServerShape;
  const FlitConfig config = FlitConfig::Reference();
  const auto packet = static_cast<std::uint64_t>(config.packet_flits);
  FlitNetwork network(kTorus, config, 1);
  Rng rng(1);
  for (auto unused : state) {
    for (int chip = 0; chip < kTorus.chip_count(); ++chip) {
      if (!rng.Chance(1, 2 * packet)) continue;
      network.Send({.from = torus::ChipIndex(chip),
                    .to = torus::ChipIndex(static_cast<int>(rng.Below(64))),
                    .flits = packet});
    }
    benchmark::DoNotOptimize(network.Step());
  }
  state.counters["flit_hops"] =
      benchmark::Counter(static_cast<double>(network.flit_hops()), benchmark::Counter::kIsRate);
  state.counters["cycles"] =
      benchmark::Counter(static_cast<double>(network.cycle()), benchmark::Counter::kIsRate);
}
BENCHMARK(FlitHops)->Name("flit_hops_per_s")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tahoma::sim

BENCHMARK_MAIN();
