// How fairly queues share a fleet over time, and the cost of a turn and of a new tree of queues.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/share/queue_turns.h"
#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr const char* kType = "trn2.48xlarge";
const WallTime kBegin{hours(490'000)};

Eighths OfChips(std::int64_t chips) { return {{kType, 8 * chips}}; }

// Queues of random weights, ten below each other at the top.
QueueTree::Specs MakeQueues(int count, bool flat, Rng& rng) {
  QueueTree::Specs specs;
  for (int i = 0; i < count; ++i) {
    auto spec = std::make_shared<QueueSpec>();
    spec->name = fmt::format("q{}", i);
    if (!flat && i >= 10) spec->parent = fmt::format("q{}", i / 10);
    spec->half_life = hours(8);
    spec->weight = 1 + static_cast<std::int64_t>(rng.Below(4));
    specs[spec->name] = std::move(spec);
  }
  return specs;
}

// Always busy queues on a fleet, whose gangs run for 10 to 60 minutes.
class BusyFleet {
 public:
  explicit BusyFleet(const QueueTree::Specs& specs) : specs_(specs) {
    shares_.SetTree(QueueTree(specs), kBegin);
  }
  void RunFor(std::chrono::hours time) {
    for (const WallTime end = now_ + time; now_ < end; now_ += minutes(1)) {
      EndDue();
      StartAll();
    }
  }
  // Returns how far the queue farthest from its part of the decayed chip-hours is, in percent.
  double Error() const {
    double all = 0;
    double weights = 0;
    for (const auto& [name, spec] : specs_) {
      all += shares_.UsedChips(name, now_);
      weights += static_cast<double>(spec->weight);
    }
    double worst = 0;
    for (const auto& [name, spec] : specs_) {
      const double wanted = static_cast<double>(spec->weight) / weights;
      worst = std::max(worst, std::abs(shares_.UsedChips(name, now_) / all / wanted - 1));
    }
    return 100 * worst;
  }

 private:
  void EndDue() {
    for (; !ends_.empty() && ends_.begin()->first <= now_; ends_.erase(ends_.begin())) {
      const auto& [queue, chips] = ends_.begin()->second;
      free_ += chips;
      shares_.Change(queue, OfChips(-chips), -1, now_, now_);
    }
  }
  void StartAll() {
    QueueTurns turns(shares_, now_);
    for (const auto& [name, spec] : specs_) turns.Add(name);
    while (free_ > 0) {
      const std::string queue = *turns.First();
      const std::int64_t chips = std::min<std::int64_t>(std::int64_t{1} << rng_.Below(4), free_);
      free_ -= chips;
      shares_.Change(queue, OfChips(chips), 1, now_, now_);
      turns.Update(queue);
      ends_.emplace(now_ + minutes(10 + rng_.Below(50)), std::pair(queue, chips));
    }
  }

  const QueueTree::Specs& specs_;
  Rng rng_{1};
  QueueShares shares_;
  std::multimap<WallTime, std::pair<std::string, std::int64_t>> ends_;
  std::int64_t free_ = 4096;
  WallTime now_ = kBegin;
};

void FairShare(benchmark::State& state) {
  Rng rng(64);
  const QueueTree::Specs specs = MakeQueues(64, true, rng);
  double error = 0;
  for (auto _ : state) {
    BusyFleet fleet(specs);
    fleet.RunFor(10 * hours(8));
    error = fleet.Error();
  }
  state.counters["percent"] = error;
}
BENCHMARK(FairShare)
    ->Name("fair_share_error_percent")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// A step of the core in which all queues have a gang and 16 of them are served.
void ServeSixteen(benchmark::State& state) {
  Rng rng(1);
  const QueueTree::Specs specs = MakeQueues(static_cast<int>(state.range(0)), false, rng);
  QueueShares shares;
  shares.SetTree(QueueTree(specs), kBegin);
  WallTime now = kBegin;
  for (auto _ : state) {
    now += minutes(1);
    QueueTurns turns(shares, now);
    for (const auto& [name, spec] : specs) turns.Add(name);
    for (int i = 0; i < 16; ++i) {
      const std::string queue = *turns.First();
      shares.Charge(queue, OfChips(4), 1, now);
      turns.Update(queue);
    }
    shares.RollBack(now);
  }
}
BENCHMARK(ServeSixteen)
    ->Name("queue_turns")
    ->Arg(1)
    ->Arg(64)
    ->Arg(10'000)
    ->Unit(benchmark::kMicrosecond);

void NewTree(benchmark::State& state) {
  Rng rng(1);
  const QueueTree::Specs specs = MakeQueues(10'000, false, rng);
  QueueShares shares;
  for (auto _ : state) shares.SetTree(QueueTree(specs), kBegin);
}
BENCHMARK(NewTree)->Name("queue_tree_10000")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::controller
