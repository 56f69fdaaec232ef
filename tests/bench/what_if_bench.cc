// The question "where and when" about 512 UltraServers in a full fleet of 15,625: of gangs that
// have a maxRuntime, and of Capacity Blocks.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/blocks/block_hosts.h"
#include "controller/core/forecast/what_if.h"
#include "controller/reserve/book.h"
#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

constexpr int kUltraServers = 15'625;
constexpr int kInCell = 32;

WallTime Morning() { return *ParseTime("2026-11-23T09:00:00Z"); }

std::string NameOf(int ultra_server) { return fmt::format("us-{:05}", ultra_server); }

// Holds all chips of the UltraServer, for a claim on each node, until `end`.
void Occupy(ClusterState& fleet, int ultra_server, WallTime end) {
  for (int z = 0; z < 4; ++z) {
    Holding holding;
    const std::string node = fmt::format("{}-n{}", NameOf(ultra_server), z);
    holding.claim = {"default", "held-" + node};
    holding.claim_uid = "held-" + node;
    holding.end = end;
    for (int chip = 0; chip < kChipsPerNode; ++chip) {
      holding.devices.push_back({.node = node, .device = fmt::format("neuron-device-{}", chip)});
    }
    fleet.Hold(std::make_shared<const Holding>(std::move(holding)));
  }
}

// A fleet whose UltraServers are all in use, each until a time of its own within four weeks.
const ClusterState& FullFleet() {
  static const ClusterState fleet = [] {
    ClusterState made;
    Rng rng(1);
    for (int i = 0; i < kUltraServers; ++i) {
      for (int z = 0; z < 4; ++z) {
        made.PutNode(NodeFactsOf({.name = fmt::format("{}-n{}", NameOf(i), z),
                                  .type = "trn2u.48xlarge",
                                  .ultra_server = NameOf(i),
                                  .z = z,
                                  .cores = false,
                                  .top_layer = fmt::format("nn-{:03}", i / kInCell)}));
      }
      Occupy(made, i, Morning() + std::chrono::minutes(60 + rng.Below(28 * 24 * 60)));
    }
    TAHOMA_CHECK(made.Count().free == 0);
    return made;
  }();
  return fleet;
}

std::shared_ptr<Snapshot> SnapshotOf(const ClusterState& fleet, const BlockBook& book) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->cluster = std::make_shared<const ClusterState>(fleet);
  snapshot->block_list = book.blocks();
  snapshot->profile = book.profile();
  return snapshot;
}

void Ask(benchmark::State& run, const Snapshot& snapshot) {
  WhatIf what_if;
  const auto gang = GangOfRequest(
      {.members = 0, .shape = "4x4x4", .slices = 512, .max_runtime = "24h"}, {"default", "gang"});
  TAHOMA_CHECK_OK(gang.status());
  std::vector<double> times;
  for (auto unused : run) {
    const auto start = std::chrono::steady_clock::now();
    const Forecast forecast = what_if.Ask(snapshot, *gang, Morning());
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
    TAHOMA_CHECK(!forecast.now && forecast.earliest && forecast.earliest->place);
    run.counters["exact"] = forecast.earliest->exact;
    run.counters["in_hours"] =
        std::chrono::duration<double, std::ratio<3600>>(forecast.earliest->when - Morning())
            .count();
  }
  run.counters["ms"] = *std::max_element(times.begin(), times.end());
}

// No block is sold: hosts come free one after the other.
void AskAboutGangs(benchmark::State& run) {
  const BlockBook book({}, Morning());
  Ask(run, *SnapshotOf(FullFleet(), book));
}
BENCHMARK(AskAboutGangs)
    ->Name("what_if_512_ultraservers_ms")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);

// Half of the fleet is sold, in blocks of one to 14 days.
void AskAboutBlocks(benchmark::State& run) {
  BlockBook book({}, Morning());
  ClusterState fleet = FullFleet();
  Rng rng(2);
  const Product& product = *FindProduct("u-trn2x64");
  for (int i = 0; i < kUltraServers; ++i) {
    // The book is told that they are idle, or nothing could be sold before they are.
    book.PutHost({.name = NameOf(i),
                  .pool = {.product = &product,
                           .zone = kDefaultZone,
                           .cell = fmt::format("nn-{:03}", i / kInCell)},
                  .healthy = true},
                 Morning());
  }
  for (int i = 0; i < kUltraServers / 2; ++i) {
    const Slot start = SlotOf(Morning()) + 1 + static_cast<Slot>(rng.Below(7));
    PurchaseOrder order;
    order.offering_id = OfferingId({.product = &product,
                                    .count = 1,
                                    .zone = kDefaultZone,
                                    .start = StartOf(start),
                                    .end = StartOf(start + LegalDays()[rng.Below(14)]),
                                    .rate = product.rate});
    order.key.ns = fmt::format("team-{}", rng.Below(2'000));
    (void)book.Purchase(order, Morning());
  }
  for (const auto& [host, use] : book.TakeUses()) fleet.SetBlockUse(host, use);
  Ask(run, *SnapshotOf(fleet, book));
}
BENCHMARK(AskAboutBlocks)
    ->Name("what_if_512_beside_blocks_ms")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);

}  // namespace
}  // namespace tahoma::controller

BENCHMARK_MAIN();
