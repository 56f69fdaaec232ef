// Times a prediction, which the planner asks for among candidate placements.

#include <benchmark/benchmark.h>

#include <vector>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/collective/predict.h"

namespace tahoma::collective {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{256} << 20;

// Predicts all operations on all 729 subcubes, one after the other.
void PredictSubcube(benchmark::State& state) {
  const auto boxes = torus::BoxTable::Of(torus::kUltraServerShape).all();
  std::size_t i = 0;
  for (auto _ : state) {
    const auto operation = static_cast<Operation>(i % kOperations);
    benchmark::DoNotOptimize(
        PredictCollective(boxes[i % boxes.size()], {.operation = operation, .bytes = kBytes}));
    ++i;
  }
}
BENCHMARK(PredictSubcube)->Name("predict_subcube_ns")->Unit(benchmark::kNanosecond);

// All operations but permute, small and large, on sets of 40 to 63 chips with three links down.
void PredictIrregular(benchmark::State& state) {
  Rng rng(1);
  std::vector<torus::ChipMask> sets;
  while (sets.size() < 64) {
    const torus::ChipMask chips = rng.Next() | rng.Next() | (sets.size() % 2 == 0 ? rng.Next() : 0);
    if (torus::ChipCount(chips) >= 40) sets.push_back(chips);
  }
  Faults faults;
  for (const int chip : {5, 21, 40}) {
    faults.links.push_back({.chip = torus::ChipIndex(chip),
                            .axis = torus::Axis::kX,
                            .direction = torus::Direction::kPlus});
  }
  constexpr Operation kAsked[] = {Operation::kAllReduce,     Operation::kAllGather,
                                  Operation::kReduceScatter, Operation::kAllToAll,
                                  Operation::kBroadcast,     Operation::kSendReceive};
  std::size_t i = 0;
  for (auto _ : state) {
    const std::uint64_t bytes = i % 2 == 0 ? kBytes : 1 << 20;
    auto time = PredictCollective(sets[i / 12 % sets.size()], faults,
                                  {.operation = kAsked[i / 2 % 6], .bytes = bytes});
    TAHOMA_CHECK(time.ok());
    benchmark::DoNotOptimize(time);
    ++i;
  }
}
BENCHMARK(PredictIrregular)->Name("predict_irregular_us")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tahoma::collective

BENCHMARK_MAIN();
