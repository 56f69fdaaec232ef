// 100,000 Capacity Blocks on 15,625 UltraServers in cells of 32, in a journal on disk: synced
// purchases, the start of a controller, and the memory.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <gperftools/malloc_extension.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/core.h"
#include "controller/core/journal/block_record.h"
#include "controller/store/rocks_journal.h"
#include "lib/base/check.h"
#include "lib/base/hex.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

constexpr int kUltraServers = 15'625;
constexpr int kInCell = 32;
constexpr std::size_t kBlocks = 100'000;
constexpr std::size_t kOrdersInStep = 1'000;

using SteadyClock = std::chrono::steady_clock;

double MsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

Now Morning() {
  const WallTime wall = *ParseTime("2026-11-23T09:00:00Z");
  return {wall, MonotonicTime(wall.time_since_epoch())};
}

double ResidentMib() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) / 1048576;
}

std::vector<Decision> PlanNothing(const ClusterState&, const Queue&, WallTime, Explaining) {
  return {};
}

const std::vector<Command>& Fleet() {
  static const std::vector<Command> fleet = [] {
    std::vector<Command> nodes;
    for (int i = 0; i < kUltraServers; ++i) {
      for (int z = 0; z < 4; ++z) {
        nodes.emplace_back(NodeSeen{
            InternAlone(NodeFactsOf({.name = fmt::format("us-{:05}-n{}", i, z),
                                     .type = "trn2u.48xlarge",
                                     .ultra_server = fmt::format("us-{:05}", i),
                                     .z = z,
                                     .cores = false,
                                     .top_layer = fmt::format("nn-{:03}", i / kInCell)}))});
      }
    }
    return nodes;
  }();
  return fleet;
}

Command RandomOrder(Rng& rng, std::uint64_t ticket) {
  const Product& product = *FindProduct("u-trn2x64");
  const Slot start = SlotOf(Morning().wall) + 1 + static_cast<Slot>(rng.Below(56));
  const Offering offering{.product = &product,
                          .count = 1,
                          .zone = kDefaultZone,
                          .start = StartOf(start),
                          .end = StartOf(start + LegalDays()[rng.Below(14)]),
                          .rate = product.rate};
  return BlockOrder{ticket, PurchaseOrder{.offering_id = OfferingId(offering),
                                          .key = {fmt::format("team-{}", rng.Below(10'000)), ""},
                                          .token = fmt::format("t{}", ticket)}};
}

// A controller's folder with 100,000 sold blocks, and their objects in the API.
class Sold {
 public:
  Sold() {
    Open();
    auto core = std::make_unique<Core>(PlanNothing);
    core->Step(Fleet(), Morning());
    core->Step({WatchesSynced{}}, Morning());
    Rng rng(1);
    std::uint64_t tickets = 0;
    while (core->snapshot()->block_list.size() < kBlocks) {
      std::vector<Command> orders;
      while (orders.size() < kOrdersInStep) orders.push_back(RandomOrder(rng, ++tickets));
      TAHOMA_CHECK_OK(journal_->Write(core->Step(orders, Morning()).journal));
    }
    See(*core);  // each block gets its object
    TAHOMA_CHECK_OK(journal_->Write(core->Step(objects_, Morning()).journal));
    See(*core);
  }

  void Open() {
    journal_.reset();
    store_.reset();
    auto opened = Store::Open({.dir = dir_.path()});
    TAHOMA_CHECK_OK(opened.status());
    store_ = *std::move(opened);
    journal_ = std::make_unique<RocksJournal>(*store_);
  }

  // Returns a core with the content of the journal.
  std::unique_ptr<Core> Load() {
    auto core = std::make_unique<Core>(PlanNothing);
    TAHOMA_CHECK_OK(journal_->Load(
        [&](Sequence sequence, std::string_view bytes) { return core->Restore(sequence, bytes); }));
    return core;
  }
  Journal& journal() { return *journal_; }
  const std::vector<Command>& objects() const { return objects_; }

 private:
  // Makes objects that show the present blocks.
  void See(const Core& core) {
    objects_.clear();
    core.snapshot()->block_list.ForEach([&](const std::string& reservation, const auto& block) {
      BlockFact fact{.key = block->key, .uid = "uid-" + reservation};
      fact.order.offering_id = block->offering_id;
      fact.resource_version = "1000";
      fact.protected_by_finalizer = true;
      fact.record = block->uid.empty() ? "" : Hex(EncodeBlock(*block));
      fact.record_version = block->version;
      objects_.emplace_back(BlockSeen{std::make_shared<const BlockFact>(std::move(fact))});
    });
  }

  testing::TempDir dir_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<RocksJournal> journal_;
  std::vector<Command> objects_;
};

Sold& Shared() {
  static Sold sold;
  return sold;
}

// Takes the first step of a core that has seen every object.
void Begin(Core& core, Sold& sold) {
  core.Step(sold.objects(), Morning());
  TAHOMA_CHECK_OK(sold.journal().Write(core.Step({WatchesSynced{}}, Morning()).journal));
}

// Carries out one order after the other, or refuses it, and waits until its journal entry is
// synced.
void Purchase(benchmark::State& run) {
  Sold& sold = Shared();
  const auto core = sold.Load();
  core->Step(Fleet(), Morning());
  Begin(*core, sold);
  Rng rng(2);
  std::vector<double> times;
  std::uint64_t tickets = 1'000'000;
  for (auto unused : run) {
    for (int i = 0; i < 500; ++i) {
      const std::vector<Command> order = {RandomOrder(rng, ++tickets)};
      const auto start = SteadyClock::now();
      TAHOMA_CHECK_OK(sold.journal().Write(core->Step(order, Morning()).journal));
      times.push_back(MsSince(start));
    }
  }
  std::sort(times.begin(), times.end());
  run.counters["p99_ms"] = times[times.size() * 99 / 100];
  run.counters["median_ms"] = times[times.size() / 2];
}
BENCHMARK(Purchase)->Name("block_purchase_p99_ms")->Unit(benchmark::kMillisecond)->Iterations(4);

// The store is opened, the journal read, and the first step taken, with the fleet and all objects
// at hand.
void Restart(benchmark::State& run) {
  Sold& sold = Shared();
  for (auto unused : run) {
    const auto start = SteadyClock::now();
    sold.Open();
    const auto core = sold.Load();
    const double read = MsSince(start);
    core->Step(Fleet(), Morning());
    const auto began = SteadyClock::now();
    Begin(*core, sold);
    run.counters["read_ms"] = read;
    run.counters["restart_ms"] = read + MsSince(began);
  }
}
BENCHMARK(Restart)->Name("blocks_100k_restart_ms")->Unit(benchmark::kMillisecond)->Iterations(2);

// Measures the memory of a core with the blocks, and with their objects as the watch keeps them.
void Resident(benchmark::State& run) {
  Sold& sold = Shared();
  for (auto unused : run) {
    MallocExtension::instance()->ReleaseFreeMemory();
    const double before = ResidentMib();
    const auto core = sold.Load();
    std::vector<Command> objects;
    for (const Command& object : sold.objects()) {
      objects.emplace_back(
          BlockSeen{std::make_shared<const BlockFact>(*std::get<BlockSeen>(object).block)});
    }
    core->Step(objects, Morning());
    core->Step({WatchesSynced{}}, Morning());
    run.counters["mib"] = ResidentMib() - before;
  }
}
BENCHMARK(Resident)->Name("blocks_100k_rss_mib")->Iterations(1);

}  // namespace
}  // namespace tahoma::controller

BENCHMARK_MAIN();
