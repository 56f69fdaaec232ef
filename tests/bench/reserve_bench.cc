// A book of 100,000 Capacity Blocks on 15,625 UltraServers in cells of 32: searches, and the
// hand-over of 2,232 UltraServers at 11:30 UTC. With a journal: block_journal_bench.cc.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "controller/reserve/book.h"
#include "controller/reserve/search.h"
#include "lib/base/check.h"
#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

constexpr int kUltraServers = 15'625;
constexpr int kInCell = 32;
constexpr int kBlocks = 100'000;

using SteadyClock = std::chrono::steady_clock;

double MsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

WallTime Morning() { return *ParseTime("2026-11-23T09:00:00Z"); }

std::unique_ptr<BlockBook> EmptyBook(WallTime now) {
  return std::make_unique<BlockBook>(BookOptions{}, now);
}

void PutHosts(BlockBook& book, WallTime now) {
  for (int i = 0; i < kUltraServers; ++i) {
    book.PutHost({.name = fmt::format("us-{:05}", i),
                  .pool = {.product = FindProduct("u-trn2x64"),
                           .zone = "tahoma-1a",
                           .cell = fmt::format("nn-{:03}", i / kInCell)},
                  .healthy = true},
                 now);
  }
}

// A purchase of `count` UltraServers for some days; each owner buys a few.
PurchaseOrder Order(Slot start, int days, int count, std::uint64_t owner) {
  const Product& product = *FindProduct("u-trn2x64");
  PurchaseOrder order;
  order.offering_id = OfferingId({.product = &product,
                                  .count = count,
                                  .zone = "tahoma-1a",
                                  .start = StartOf(start),
                                  .end = StartOf(start + days),
                                  .rate = product.rate});
  order.key.ns = fmt::format("team-{}", owner);
  return order;
}

// Fills the book with as many blocks, of one to 14 days from tomorrow on.
void Fill(BlockBook& book, WallTime now, Rng& rng) {
  while (book.blocks().size() < kBlocks) {
    const Slot start = SlotOf(now) + 1 + static_cast<Slot>(rng.Below(56));
    const int days = LegalDays()[rng.Below(14)];
    (void)book.Purchase(Order(start, days, 1, rng.Below(10'000)), now);
  }
  book.Advance(now);
  book.TakeChanges();
}

BlockBook& FullBook() {
  static const std::unique_ptr<BlockBook> book = [] {
    auto made = EmptyBook(Morning());
    PutHosts(*made, Morning());
    Rng rng(1);
    Fill(*made, Morning(), rng);
    return made;
  }();
  return *book;
}

double Percentile99(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() * 99 / 100];
}

// Random searches for up to 32 UltraServers.
void SearchOfferings(benchmark::State& run) {
  const BlockBook& book = FullBook();
  Rng rng(2);
  std::vector<double> times;
  for (auto unused : run) {
    for (int i = 0; i < 500; ++i) {
      OfferingQuery query{.ultraserver_type = "u-trn2x64",
                          .ultraserver_count = 1 + static_cast<std::int64_t>(rng.Below(32)),
                          .duration_hours = LegalDays()[rng.Below(20)] * 24,
                          .start_date_range = Morning() + std::chrono::hours(24 * rng.Below(50)),
                          .any_cell = rng.Chance(1, 8)};
      const auto search = CheckQuery(query, Morning());
      TAHOMA_CHECK(search.ok());
      const auto start = SteadyClock::now();
      benchmark::DoNotOptimize(
          controller::SearchOfferings(book.profile(), book.prices(), *search, Morning()));
      times.push_back(MsSince(start));
    }
  }
  run.counters["p99_ms"] = Percentile99(times);
}
BENCHMARK(SearchOfferings)->Name("offering_search_p99_ms")->Unit(benchmark::kMillisecond);

// The uses of 60,000 hosts of one pool after a purchase in it, when 10,000 blocks are sold there.
void PlanUsesOfOnePool(benchmark::State& run) {
  constexpr int kHosts = 60'000;
  constexpr int kSold = 10'000;
  const auto book = EmptyBook(Morning());
  for (int i = 0; i < kHosts; ++i) {
    book->PutHost({.name = fmt::format("us-{:05}", i),
                   .pool = {.product = FindProduct("u-trn2x64"), .zone = "tahoma-1a", .cell = ""},
                   .healthy = true},
                  Morning());
  }
  Rng rng(4);
  const auto buy = [&](std::uint64_t owner) {
    const Slot start = SlotOf(Morning()) + 1 + static_cast<Slot>(rng.Below(56));
    TAHOMA_CHECK_OK(book->Purchase(Order(start, LegalDays()[rng.Below(14)],
                                         1 + static_cast<int>(rng.Below(16)), owner),
                                   Morning())
                        .status());
  };
  std::uint64_t owner = 0;
  while (owner < kSold) buy(++owner);
  book->TakeUses();
  for (auto unused : run) {
    run.PauseTiming();
    buy(++owner);
    run.ResumeTiming();
    benchmark::DoNotOptimize(book->TakeUses());
  }
}
BENCHMARK(PlanUsesOfOnePool)
    ->Name("plan_uses_60k_hosts_ms")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);

// 2,232 UltraServers of one owner each go to the next, each of which is still in use until its
// gang has ended, one after the other.
void HandOver(benchmark::State& run) {
  constexpr int kHandedOver = 2'232;
  for (auto unused : run) {
    run.PauseTiming();
    WallTime now = Morning();
    auto book = EmptyBook(now);
    PutHosts(*book, now);
    const Slot day = SlotOf(now) + 1;
    for (const Slot start : {day, day + 1}) {
      for (int i = 0; i < kHandedOver; ++i) {
        const auto owner = static_cast<std::uint64_t>(i + (start == day ? 0 : kHandedOver));
        TAHOMA_CHECK(book->Purchase(Order(start, 1, 1, owner), now).ok());
      }
    }
    Rng rng(4);
    Fill(*book, now, rng);
    book->Advance(now = StartOf(day + 1) - std::chrono::minutes(15));
    std::vector<HostState> used;
    book->blocks().ForEach([&](const std::string&, const auto& block) {
      if (block->end != StartOf(day + 1)) return;
      for (const std::string& host : block->hosts) {
        used.push_back(*book->hosts().Find(host));
        used.back().held = true;
        used.back().held_by = block->key.ns;
      }
    });
    for (const HostState& host : used) book->PutHost(host, now);
    book->Advance(now);
    run.ResumeTiming();
    book->Advance(now = StartOf(day + 1));
    for (HostState& host : used) {
      host.held = false;
      host.held_by.clear();
      book->PutHost(host, now);
      book->Advance(now);
    }
    benchmark::DoNotOptimize(book->TakeChanges());
    run.PauseTiming();
    book.reset();
    run.ResumeTiming();
  }
}
BENCHMARK(HandOver)
    ->Name("handover_2232_ultraservers_ms")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace tahoma::controller

BENCHMARK_MAIN();
