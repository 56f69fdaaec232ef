// Measures how long it takes to time chips' access to other chips' memory. No data is moved.

#include <benchmark/benchmark.h>

#include <vector>

#include "lib/hw/catalogue.h"
#include "sim-node/participants/remote_memory.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// Every chip of an UltraServer reads 64 KiB from every other at once.
void AllChipsReadAll(benchmark::State& state) {
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  std::vector<MemoryAccess> batch;
  for (int chip = 0; chip < 64; ++chip) {
    for (int other = 0; other < 64; ++other) {
      if (chip == other) continue;
      batch.push_back({.kind = AccessKind::kRead,
                       .local = {ChipIndex(chip), 0},
                       .remote = {ChipIndex(other), 0},
                       .bytes = 64 << 10});
    }
  }
  double microseconds = 0;
  for (auto _ : state) {
    auto times = TimeAccesses(batch, links, kAllChips);
    microseconds = Nanoseconds(times->end.time_since_epoch()) / 1e3;
    benchmark::DoNotOptimize(times);
  }
  state.counters["emulated_us"] = microseconds;
}
BENCHMARK(AllChipsReadAll)->Name("dma_4032_reads_ms")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::sim

BENCHMARK_MAIN();
