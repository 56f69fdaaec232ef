// Limits of queues, and their use, against the rules counted from scratch.

#include "controller/share/queue_shares.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "controller/share/queue_calendar.h"
#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr const char* kTrn2 = "trn2.48xlarge";
constexpr const char* kUltra = "trn2u.48xlarge";
const WallTime kStart{hours(500'000)};

Eighths Chips(std::int64_t chips, const std::string& type = kTrn2) { return {{type, 8 * chips}}; }

// A gang that holds chips.
struct HeldRun {
  std::string queue;
  std::string type;
  std::int64_t chips = 0;
};

// The rules, counted anew from all runs each time.
class Oracle {
 public:
  Oracle(const QueueTree::Specs& specs, const std::vector<HeldRun>& runs)
      : specs_(specs), runs_(runs) {}

  // Returns whether `x` is `q`, or below.
  bool IsIn(const std::string& x, const std::string& q) const {
    if (x == q) return true;
    const auto spec = specs_.find(x);
    return spec != specs_.end() && !spec->second->parent.empty() && IsIn(spec->second->parent, q);
  }
  std::int64_t Held(const std::string& q, const std::string& type) const {
    std::int64_t held = 0;
    for (const HeldRun& run : runs_) held += run.type == type && IsIn(run.queue, q) ? run.chips : 0;
    return held;
  }
  std::vector<std::string> ChildrenOf(const std::string& q) const {
    std::vector<std::string> children;
    for (const auto& [name, spec] : specs_) {
      if (spec->parent == q) children.push_back(name);
    }
    return children;
  }
  std::int64_t Guaranteed(const std::string& q, const std::string& type) const {
    const auto stated = specs_.at(q)->guaranteed.find(type);
    if (stated != specs_.at(q)->guaranteed.end()) return stated->second;
    std::int64_t sum = 0;
    for (const std::string& child : ChildrenOf(q)) sum += Guaranteed(child, type);
    return sum;
  }
  // Returns the chips that others must leave free for the queue and those below.
  std::int64_t Unlent(const std::string& q, const std::string& type) const {
    std::int64_t below = 0;
    for (const std::string& child : ChildrenOf(q)) below += Unlent(child, type);
    const auto lending = specs_.at(q)->lending_limit.find(type);
    if (lending == specs_.at(q)->lending_limit.end()) return below;
    return std::max(below, Guaranteed(q, type) - lending->second - Held(q, type));
  }
  bool MayStart(const HeldRun& run, std::int64_t free) const {
    std::int64_t kept = 0;
    bool takes = true;
    for (std::string q = run.queue; !q.empty(); q = specs_.at(q)->parent) {
      const QueueSpec& spec = *specs_.at(q);
      const std::int64_t with = Held(q, run.type) + run.chips;
      if (spec.limit.contains(run.type) && with > spec.limit.at(run.type)) return false;
      if (spec.borrowing_limit.contains(run.type) &&
          with > Guaranteed(q, run.type) + spec.borrowing_limit.at(run.type)) {
        return false;
      }
      takes = takes && with > Guaranteed(q, run.type);
      if (!takes) continue;
      for (const auto& [name, other] : specs_) {
        if (other->parent == spec.parent && name != q) kept += Unlent(name, run.type);
      }
    }
    return kept == 0 || free - run.chips >= kept;
  }

 private:
  const QueueTree::Specs& specs_;
  const std::vector<HeldRun>& runs_;
};

QueueTree::Specs RandomSpecs(Rng& rng) {
  QueueTree::Specs specs;
  const auto count = 2 + static_cast<unsigned>(rng.Below(9));
  for (unsigned i = 0; i < count; ++i) {
    auto spec = std::make_shared<QueueSpec>();
    spec->name = fmt::format("q{}", i);
    if (i > 0 && rng.Chance(2, 3)) spec->parent = fmt::format("q{}", rng.Below(i));
    for (const char* type : {kTrn2, kUltra}) {
      const auto some = [&](std::uint64_t most) {
        return static_cast<std::int64_t>(rng.Below(most));
      };
      // The guarantee of a parent may be too small: then the tree refuses it.
      if (rng.Chance(1, 2)) spec->guaranteed[type] = some(i < 3 ? 60 : 12);
      if (rng.Chance(1, 3)) spec->limit[type] = spec->guaranteed[type] + some(30);
      if (rng.Chance(1, 3)) spec->borrowing_limit[type] = some(20);
      if (rng.Chance(1, 2)) spec->lending_limit[type] = some(20);
    }
    specs[spec->name] = std::move(spec);
  }
  return specs;
}

bool AllServe(const QueueTree& tree) {
  return std::ranges::all_of(tree.nodes(), [](const auto& node) { return node.serves; });
}

TEST(QueueSharesTest, RandomStartsAndEndsKeepTheRules) {
  int starts = 0;
  int denials = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const QueueTree::Specs specs = RandomSpecs(rng);
    if (!AllServe(QueueTree(specs))) continue;
    QueueShares shares;
    shares.SetTree(QueueTree(specs), kStart);
    std::vector<HeldRun> runs;
    std::map<std::string, std::int64_t> free = {{kTrn2, 120}, {kUltra, 64}};
    for (int step = 0; step < 60; ++step) {
      for (const auto& [type, chips] : free) shares.SetFree(type, chips);
      if (!runs.empty() && rng.Chance(1, 3)) {
        const auto ended = static_cast<std::ptrdiff_t>(rng.Below(runs.size()));
        const HeldRun run = *(runs.begin() + ended);
        runs.erase(runs.begin() + ended);
        free[run.type] += run.chips;
        shares.Change(run.queue, Chips(-run.chips, run.type), -1, kStart, kStart);
        continue;
      }
      const HeldRun run{.queue = fmt::format("q{}", rng.Below(specs.size())),
                        .type = rng.Chance(1, 2) ? kTrn2 : kUltra,
                        .chips = 1 + static_cast<std::int64_t>(rng.Below(16))};
      const Oracle oracle(specs, runs);
      const auto denial = shares.MayStart(run.queue, Chips(run.chips, run.type));
      ASSERT_EQ(!denial, oracle.MayStart(run, free[run.type]))
          << "seed " << seed << ", step " << step << ": " << run.chips << " of " << run.type
          << " in " << run.queue << (denial ? ": " + denial->message : "");
      denials += denial ? 1 : 0;
      if (denial || free[run.type] < run.chips) continue;
      ++starts;
      runs.push_back(run);
      free[run.type] -= run.chips;
      shares.Change(run.queue, Chips(run.chips, run.type), 1, kStart, kStart);
      const Oracle after(specs, runs);
      for (const auto& [name, spec] : specs) {
        const Eighths held = shares.HeldOf(name);
        const auto of = held.find(run.type);
        ASSERT_EQ(of == held.end() ? 0 : of->second, 8 * after.Held(name, run.type));
      }
    }
  }
  EXPECT_GT(starts, 1000);
  EXPECT_GT(denials, 1000);
}

class QueueLimitsTest : public ::testing::Test {
 protected:
  void Put(
      const std::string& name, const std::string& parent,
      const std::function<void(QueueSpec&)>& change = [](QueueSpec&) {}) {
    auto spec = std::make_shared<QueueSpec>();
    spec->name = name;
    spec->parent = parent;
    change(*spec);
    specs_[name] = std::move(spec);
    shares_.SetTree(QueueTree(specs_), kStart);
    shares_.SetFree(kTrn2, 1000);
  }
  void Start(const std::string& queue, std::int64_t chips, WallTime when = kStart) {
    shares_.Change(queue, Chips(chips), 1, when, when);
  }
  std::string WhyNot(const std::string& queue, std::int64_t chips) {
    const auto denial = shares_.MayStart(queue, Chips(chips));
    return denial ? denial->message : "";
  }

  QueueTree::Specs specs_;
  QueueShares shares_;
};

TEST_F(QueueLimitsTest, ALimitAboveBindsThoseBelowTogether) {
  Put("top", "", [](QueueSpec& spec) { spec.limit[kTrn2] = 100; });
  Put("a", "top");
  Put("b", "top");
  Start("a", 60);
  EXPECT_EQ(WhyNot("b", 40), "");
  EXPECT_EQ(WhyNot("b", 41), "41 chips of trn2.48xlarge more: queue top holds 60 of at most 100");
  EXPECT_EQ(shares_.MayStart("b", Chips(41))->by, "top");
  EXPECT_FALSE(shares_.MayStart("b", Chips(41, kUltra))) << "nobody bounds the type";
}

TEST_F(QueueLimitsTest, UnlentGuaranteesAreKeptFromWhoBorrows) {
  Put("a", "", [](QueueSpec& spec) {
    spec.guaranteed[kTrn2] = 100;
    spec.lending_limit[kTrn2] = 20;
  });
  Put("b", "");
  shares_.SetFree(kTrn2, 100);
  EXPECT_EQ(WhyNot("b", 20), "");
  EXPECT_EQ(WhyNot("b", 21),
            "21 chips of trn2.48xlarge more: 100 are free, and 80 are kept for other queues");
  EXPECT_EQ(WhyNot("a", 100), "") << "its own";
}

TEST_F(QueueLimitsTest, AStopAboveStopsThoseBelow) {
  Put("top", "", [](QueueSpec& spec) { spec.stop = QueueStop::kHold; });
  Put("a", "top");
  Put("b", "");
  EXPECT_EQ(WhyNot("a", 1), "queue top is stopped: Hold");
  EXPECT_EQ(WhyNot("b", 1), "");
}

TEST_F(QueueLimitsTest, NoMoreGangsRunThanMayRun) {
  Put("a", "", [](QueueSpec& spec) { spec.most_running = 2; });
  Start("a", 1);
  EXPECT_EQ(WhyNot("a", 1), "");
  Start("a", 1);
  EXPECT_EQ(WhyNot("a", 1), "queue a runs 2 gangs of at most 2");
  EXPECT_FALSE(shares_.MayStart("a", Chips(1), 0)) << "a gang that runs may grow";
}

TEST_F(QueueLimitsTest, ChargesAreTakenBackWhole) {
  Put("top", "", [](QueueSpec& spec) { spec.limit[kTrn2] = 10; });
  Put("a", "top");
  shares_.Charge("a", Chips(6), 1, kStart);
  EXPECT_NE(WhyNot("a", 6), "");
  shares_.RollBack(kStart);
  EXPECT_EQ(WhyNot("a", 6), "");
  EXPECT_EQ(shares_.RunningIn("top"), 0);
  EXPECT_EQ(shares_.UsedChips("top", kStart + hours(5)), 0);
}

TEST_F(QueueLimitsTest, AQueueThatMovesTakesItsChipsAlong) {
  Put("left", "");
  Put("right", "");
  Put("a", "left");
  Start("a", 7);
  Put("a", "right");
  EXPECT_TRUE(shares_.HeldOf("left").empty());
  EXPECT_EQ(shares_.HeldOf("right"), Chips(7));
  EXPECT_EQ(shares_.RunningIn("right"), 1);
}

// A gang that cannot be ended before a change leaves the other queues the rise of their guarantees,
// out of the chips that are free by then or held by gangs with an end.
TEST_F(QueueLimitsTest, WhoCannotBeEndedIsHeldAgainstTheBoundsThatCome) {
  constexpr std::int64_t kFleet = 80;
  const std::vector<std::string> names = {"a", "b", "c"};
  struct Run {
    std::string queue;
    std::int64_t chips = 0;
    WallTime until;
  };
  Rng rng(23);
  int denials = 0, starts = 0;
  for (int round = 0; round < 2000; ++round) {
    const WallTime change = kStart + hours(8);
    QueueCalendars::Change coming{.at = change, .in_force = {}, .why = "day begins", .warning = {}};
    auto calendar = std::make_shared<QueueCalendarSpec>();
    calendar->periods.emplace_back();
    std::map<std::string, std::int64_t> now, then;
    specs_.clear();
    for (const std::string& name : names) {
      now[name] = static_cast<std::int64_t>(rng.Below(4)) * 10;
      then[name] = static_cast<std::int64_t>(rng.Below(4)) * 10;
      calendar->periods[0].queues[name].guaranteed = ChipCounts{{kTrn2, then[name]}};
      Put(name, "", [&](QueueSpec& spec) { spec.guaranteed[kTrn2] = now[name]; });
    }
    for (const std::string& name : names) coming.in_force[name] = {calendar, 0};
    std::vector<ComingBounds> bounds(1);
    bounds[0] = {change, coming.why, QueueTree(SpecsAfter(specs_, coming, specs_))};
    shares_.SetComing(std::move(bounds), kStart);
    std::vector<Run> runs;
    std::int64_t held_now = 0;
    for (std::uint64_t left = rng.Below(5); left > 0; --left) {
      const std::array<WallTime, 3> untils = {kEndsAtOnce, change, change + hours(1)};
      runs.push_back({names[rng.Below(3)], 1 + static_cast<std::int64_t>(rng.Below(20)),
                      untils[rng.Below(3)]});
      held_now += runs.back().chips;
      shares_.ChangeComing(runs.back().queue, Chips(runs.back().chips), runs.back().until, kStart);
    }
    shares_.SetFree(kTrn2, kFleet - held_now);
    std::map<std::string, std::int64_t> held_then;
    std::int64_t all_then = 0;
    for (const Run& run : runs) {
      if (run.until <= change) continue;
      held_then[run.queue] += run.chips;
      all_then += run.chips;
    }
    const std::string& queue = names[rng.Below(3)];
    const auto chips = static_cast<std::int64_t>(1 + rng.Below(80));
    std::int64_t owed = 0;
    for (const std::string& other : names) {
      if (other == queue) continue;
      const std::int64_t rise = then[other] > now[other] ? then[other] - now[other] : 0;
      owed += std::max<std::int64_t>(rise - held_then[other], 0);
    }
    const bool takes = held_then[queue] + chips > then[queue];
    const bool may = !takes || owed == 0 || kFleet - all_then - chips >= owed;
    const auto denial = shares_.MayStart(queue, Chips(chips), 1, change + hours(1));
    ASSERT_EQ(!denial, may) << round << ": " << (denial ? denial->message : "");
    ASSERT_FALSE(shares_.MayStart(queue, Chips(chips), 1, change)) << "it has ended by then";
    ASSERT_FALSE(shares_.MayStart(queue, Chips(chips))) << "it can be ended";
    shares_.Charge(queue, Chips(chips), 1, kStart, change + hours(1));
    shares_.RollBack(kStart);
    ASSERT_EQ(!shares_.MayStart(queue, Chips(chips), 1, change + hours(1)), may);
    ++(may ? starts : denials);
  }
  EXPECT_GT(starts, 300);
  EXPECT_GT(denials, 300);
}

// The use is the integral of what was held, each moment weighed by its age.
TEST_F(QueueLimitsTest, UseIsTheDecayedIntegralOfWhatWasHeld) {
  const auto half_life = hours(8);
  Put("a", "", [&](QueueSpec& spec) { spec.half_life = half_life; });
  Rng rng(7);
  std::vector<std::int64_t> held_in_minute;
  std::int64_t held = 0;
  for (int change = 0; change < 100; ++change) {
    const WallTime now = kStart + std::chrono::minutes(held_in_minute.size());
    const std::int64_t more =
        held > 0 && rng.Chance(1, 2)
            ? -static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(held) + 1))
            : static_cast<std::int64_t>(rng.Below(64));
    held += more;
    shares_.Change("a", Chips(more), 0, now, now);
    held_in_minute.insert(held_in_minute.end(), rng.Below(90), held);
  }
  double use = 0;
  const double per_minute = std::exp2(-1.0 / (8 * 60));
  for (const std::int64_t chips : held_in_minute) {
    use = use * per_minute + static_cast<double>(chips) * (1 - per_minute);
  }
  const WallTime end = kStart + std::chrono::minutes(held_in_minute.size());
  EXPECT_NEAR(shares_.UsedChips("a", end), use, 1e-6);
  EXPECT_NEAR(shares_.UseOf("a", end).own / 8, use, 1e-6);
}

TEST_F(QueueLimitsTest, ARestartThatKnowsWhenGangsBeganGoesOnAsIfThereWasNone) {
  const auto put = [](QueueShares& shares) {
    QueueTree::Specs specs;
    auto spec = std::make_shared<QueueSpec>();
    spec->name = "a";
    specs["a"] = std::move(spec);
    shares.SetTree(QueueTree(specs), kStart);
  };
  QueueShares lasting;
  put(lasting);
  lasting.Change("a", Chips(16), 1, kStart, kStart);
  const QueueUse recorded = lasting.UseOf("a", kStart + hours(20));
  lasting.Change("a", Chips(32), 1, kStart + hours(30), kStart + hours(30));
  QueueShares restarted;
  put(restarted);
  const WallTime restart = kStart + hours(40);
  restarted.SetUse("a", recorded);
  restarted.Change("a", Chips(16), 1, kStart + hours(20), recorded.as_of);
  restarted.Change("a", Chips(32), 1, kStart + hours(30), restart);
  EXPECT_NEAR(restarted.UsedChips("a", restart + hours(9)),
              lasting.UsedChips("a", restart + hours(9)), 1e-9);
}

TEST_F(QueueLimitsTest, AClockThatGoesBackChangesNoUse) {
  Put("a", "");
  Start("a", 16);
  const double before = shares_.UsedChips("a", kStart + hours(10));
  shares_.Change("a", Chips(0), 0, kStart + hours(10), kStart + hours(10));
  EXPECT_EQ(shares_.UsedChips("a", kStart - hours(99)), before);
}

}  // namespace
}  // namespace tahoma::controller
