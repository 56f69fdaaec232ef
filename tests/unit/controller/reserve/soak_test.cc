// A year of a fleet of 15,625 UltraServers, nine tenths sold, in virtual time: blocks of all
// durations are bought, extended, delivered, used and reclaimed, hosts fail and are repaired, the
// controller restarts, its clock is set back and forth. Every change is audited, and once a day
// everything.
//
// The first run has a fixed seed; the second run has a fresh seed, which is printed.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "controller/reserve/book.h"
#include "controller/reserve/search.h"
#include "lib/base/rng.h"
#include "tests/unit/controller/reserve/block_auditor.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr int kUltraServers = 15'625;
constexpr int kInCell = 32;
// 0.0038 failures of an instance and day, four instances in an UltraServer; a repair takes a day.
constexpr std::uint64_t kFailuresADay = kUltraServers * 4 * 38 / 10'000;
constexpr std::uint64_t kMinutesADay = 24 * 60;
constexpr int kForgottenAfterDays = 7;
// The share of the hosts for sale that buyers have together.
constexpr double kSold = 0.92;

std::size_t ResidentMib() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) >> 20U;
}

class Soak {
 public:
  explicit Soak(std::uint64_t seed) : rng_(seed), now_(*ParseTime("2026-11-23T09:00:00Z")) {
    book_ = std::make_unique<BlockBook>(BookOptions{}, now_);
    for (int i = 0; i < kUltraServers; ++i) {
      hosts_.push_back({.name = fmt::format("us-{:05}", i),
                        .pool = {.product = FindProduct("u-trn2x64"),
                                 .zone = "tahoma-1a",
                                 .cell = fmt::format("nn-{:03}", i / kInCell)},
                        .healthy = true});
      Tell(i);
    }
  }

  // Lets a day pass, and audits everything at the end.
  void Day() {
    for (std::uint64_t i = 0; i < kFailuresADay; ++i) {
      events_.push(
          {now_ + SomeTime(kMinutesADay), static_cast<int>(rng_.Below(kUltraServers)), false});
    }
    const WallTime end = now_ + hours(24);
    WallTime next_visit = now_;
    while (now_ < end) {
      WallTime next = std::min(end, next_visit);
      if (!events_.empty()) next = std::min(next, events_.top().when);
      if (const auto wake = book_->wake()) next = std::min(next, std::max(now_, *wake));
      now_ = next;
      while (!events_.empty() && events_.top().when <= now_) Happen();
      if (now_ >= next_visit) {
        next_visit = now_ + minutes(15);
        Visit();
      }
      book_->Advance(now_);
      auditor_.Follow(*book_);
    }
    ForgetTheDead();
    auditor_.Audit(*book_);
    most_blocks_ = std::max(most_blocks_, book_->blocks().size());
  }

  // The controller ends, and starts again from its journal with a wrong clock.
  void Restart(hours wrong) {
    book_ = std::make_unique<BlockBook>(BookOptions{}, now_ + wrong);
    for (const auto& [reservation, block] : auditor_.journal()) {
      const auto restored = book_->Restore(*block);
      EXPECT_TRUE(restored.ok()) << restored.status();
    }
    for (const HostState& host : hosts_) book_->PutHost(host, now_ + wrong);
    book_->Advance(now_ + wrong);
    auditor_.Follow(*book_);
    auditor_.Audit(*book_);
  }

  // Returns the sold share of the capacity for sale in tomorrow's slot.
  double Sold() const {
    const TimeProfile& profile = book_->profile();
    int sold = 0, all = 0;
    for (std::size_t i = 0; i < profile.pool_count(); ++i) {
      sold += profile.Booked(PoolId(i), profile.today() + 1);
      all += kInCell - 1;
    }
    return static_cast<double>(sold) / all;
  }

  const BlockAuditor& auditor() const { return auditor_; }
  std::size_t most_blocks() const { return most_blocks_; }
  int purchases() const { return purchases_; }
  int extensions() const { return extensions_; }

 private:
  struct Event {
    WallTime when;
    int host;
    bool repaired;

    friend bool operator>(const Event& a, const Event& b) { return a.when > b.when; }
  };

  std::chrono::seconds SomeTime(std::uint64_t most_minutes) {
    return std::chrono::seconds(rng_.Below(most_minutes * 60));
  }

  void Tell(int number) {
    const HostState& host = hosts_[static_cast<std::size_t>(number)];
    book_->PutHost(host, now_);
    auditor_.OnHost(host);
  }

  // A host fails, or is repaired.
  void Happen() {
    const Event event = events_.top();
    events_.pop();
    HostState& host = hosts_[static_cast<std::size_t>(event.host)];
    if (host.healthy == event.repaired) return;
    host.healthy = event.repaired;
    if (!event.repaired) events_.push({now_ + SomeTime(2 * kMinutesADay), event.host, true});
    Tell(event.host);
  }

  // A few blocks are bought, one is extended, and gangs begin and end on some hosts.
  void Visit() {
    if (rng_.Chance(1, 4)) Buy(static_cast<int>(rng_.Below(20)));
    while (Sold() < kSold && Buy(0)) {
    }
    if (auditor_.journal().empty()) return;
    Extend();
    for (int i = 0; i < 5; ++i) {
      const int number = static_cast<int>(rng_.Below(kUltraServers));
      HostState& host = hosts_[static_cast<std::size_t>(number)];
      const auto& rights = book_->hosts().BindingsOf(host.name);
      const bool in_block = !rights.empty() && rights.front().start <= now_;
      host.held = !host.held && in_block;
      host.held_by = host.held ? rights.front().owner : "";
      host.held_until.reset();
      if (host.held) host.held_until = rights.front().end - minutes(rng_.Below(60));
      Tell(number);
    }
  }

  // Buys a random duration, or a shorter one that is left. Returns whether a block was bought.
  bool Buy(int days_ahead) {
    constexpr int kCounts[] = {1, 1, 2, 2, 4, 4, 8, 16};
    const Product& product = *FindProduct("u-trn2x64");
    const Slot start = SlotOf(now_ + minutes(30)) + 1 + days_ahead;
    Offering offering{.product = &product,
                      .count = kCounts[rng_.Below(std::size(kCounts))],
                      .zone = "tahoma-1a",
                      .any_cell = rng_.Chance(1, 10),
                      .start = StartOf(start),
                      .end = {},
                      .rate = product.rate};
    PurchaseOrder order;
    order.key.ns = fmt::format("team-{}", rng_.Below(2'000));
    order.terms.replace = rng_.Chance(1, 3) ? ReplacePolicy::kAutomatic : ReplacePolicy::kOnRequest;
    if (rng_.Chance(1, 50)) order.tags = {{"tahoma.dev/simulated-payment", "fail"}};
    if (rng_.Chance(1, 50)) order.terms.binding = BindingMode::kAtPurchase;
    std::size_t duration = rng_.Below(LegalDays().size());
    while (true) {
      offering.end = StartOf(start + LegalDays()[duration]);
      order.offering_id = OfferingId(offering);
      if (book_->Purchase(order, now_).ok()) break;
      if (offering.count == 1 && duration == 0) return false;
      offering.count = std::max(1, offering.count / 2);
      duration /= 2;
    }
    ++purchases_;
    auditor_.Follow(*book_);
    return true;
  }

  void Extend() {
    const auto chosen =
        auditor_.journal().lower_bound(fmt::format("cr-{:04x}", rng_.Below(65'536)));
    if (chosen == auditor_.journal().end()) return;
    const auto offering = book_->OfferExtension(chosen->first, 24, now_);
    if (!offering.ok()) return;
    const auto extended = book_->Extend(
        {.reservation = chosen->first, .offering_id = ExtensionOfferingId(*offering), .token = ""},
        now_);
    EXPECT_TRUE(extended.ok()) << extended.status();
    ++extensions_;
    auditor_.Follow(*book_);
  }

  void ForgetTheDead() {
    std::vector<std::string> dead;
    for (const auto& [reservation, block] : auditor_.journal()) {
      if (!HoldsCapacity(block->state) && block->end + hours(24 * kForgottenAfterDays) < now_) {
        dead.push_back(reservation);
      }
    }
    for (const std::string& reservation : dead) {
      EXPECT_TRUE(book_->Forget(reservation));
      auditor_.OnForgotten(reservation);
    }
  }

  Rng rng_;
  WallTime now_;
  std::unique_ptr<BlockBook> book_;
  BlockAuditor auditor_;
  std::vector<HostState> hosts_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::size_t most_blocks_ = 0;
  int purchases_ = 0;
  int extensions_ = 0;
};

void Live(std::uint64_t seed, int days) {
  Soak soak(seed);
  std::size_t resident = 0;
  double sold = 0;
  for (int day = 1; day <= days; ++day) {
    soak.Day();
    if (day % 30 == 0) soak.Restart(hours(day % 60 == 0 ? -day : 1));
    if (day % 7 == 0) sold += soak.Sold();
    ASSERT_TRUE(soak.auditor().violations().empty())
        << "seed " << seed << ", day " << day << ": " << soak.auditor().violations().front();
    if (day == days / 2) resident = ResidentMib();
  }
  sold /= days / 7;
  fmt::print(
      "seed {}: {} days, {} blocks sold, {} extensions, {} changes, at most {} blocks, {:.1f} "
      "% sold, {} USD, {} MiB after a half and {} MiB at the end\n",
      seed, days, soak.purchases(), soak.extensions(), soak.auditor().changes(), soak.most_blocks(),
      sold * 100, soak.auditor().turnover().ToString(), resident, ResidentMib());
  EXPECT_GT(sold, 0.88);
  if (days >= 365) {
    EXPECT_LT(ResidentMib(), resident + resident / 4) << "it remembers what is over";
  }
}

TEST(SoakTest, AYearKeepsEveryPromise) { Live(1, 365); }

TEST(SoakTest, AMonthWithAFreshSeedKeepsEveryPromise) { Live(SeedFromMachine(), 30); }

}  // namespace
}  // namespace tahoma::controller
