// Whose turn it is: against a search from scratch, and over many half-lives.

#include "controller/share/queue_turns.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;

constexpr const char* kTurnType = "trn2.48xlarge";
const WallTime kNoon{hours(400'000)};

Eighths TurnChips(std::int64_t chips) { return {{kTurnType, 8 * chips}}; }

std::shared_ptr<QueueSpec> Spec(const std::string& name, const std::string& parent = "") {
  auto spec = std::make_shared<QueueSpec>();
  spec->name = name;
  spec->parent = parent;
  return spec;
}

// Serves `count` gangs of one chip from queues that are never empty.
std::vector<std::string> Serve(QueueShares& shares, const std::vector<std::string>& queues,
                               int count) {
  QueueTurns turns(shares, kNoon);
  for (const std::string& queue : queues) turns.Add(queue);
  std::vector<std::string> served;
  for (int i = 0; i < count; ++i) {
    const std::string queue = *turns.First();
    served.push_back(queue);
    shares.Charge(queue, TurnChips(1), 1, kNoon);
    turns.Update(queue);
  }
  shares.RollBack(kNoon);
  return served;
}

TEST(QueueTurnsTest, QueuesOfOneWeightTakeTurnsByName) {
  QueueShares shares;
  shares.SetTree(QueueTree({{"a", Spec("a")}, {"b", Spec("b")}}), kNoon);
  EXPECT_THAT(Serve(shares, {"b", "a"}, 4), ElementsAre("a", "b", "a", "b"));
}

TEST(QueueTurnsTest, AQueueOfTwiceTheWeightHasTwiceTheTurns) {
  QueueShares shares;
  auto b = Spec("b");
  b->weight = 2;
  shares.SetTree(QueueTree({{"a", Spec("a")}, {"b", b}}), kNoon);
  EXPECT_THAT(Serve(shares, {"a", "b"}, 6), ElementsAre("a", "b", "b", "a", "b", "b"));
}

TEST(QueueTurnsTest, AQueueBelowItsGuaranteeComesFirst) {
  QueueShares shares;
  auto b = Spec("b");
  b->guaranteed[kTurnType] = 2;
  shares.SetTree(QueueTree({{"a", Spec("a")}, {"b", b}}), kNoon);
  EXPECT_THAT(Serve(shares, {"a", "b"}, 5), ElementsAre("b", "b", "a", "a", "a"));
}

TEST(QueueTurnsTest, ALevelIsSharedBeforeTheLevelBelow) {
  QueueShares shares;
  shares.SetTree(
      QueueTree(
          {{"a", Spec("a")}, {"b", Spec("b")}, {"b1", Spec("b1", "b")}, {"b2", Spec("b2", "b")}}),
      kNoon);
  EXPECT_THAT(Serve(shares, {"a", "b1", "b2"}, 6), ElementsAre("a", "b1", "a", "b2", "a", "b1"));
}

TEST(QueueTurnsTest, GangsOfAQueueWithQueuesBelowStandBesideThem) {
  QueueShares shares;
  shares.SetTree(QueueTree({{"b", Spec("b")}, {"b1", Spec("b1", "b")}}), kNoon);
  EXPECT_THAT(Serve(shares, {"b", "b1"}, 4), ElementsAre("b", "b1", "b", "b1"));
}

// A thousand small gangs at one moment get no more than one large one.
TEST(QueueTurnsTest, ABurstOfSmallGangsWinsNothing) {
  QueueShares shares;
  shares.SetTree(QueueTree({{"burst", Spec("burst")}, {"calm", Spec("calm")}}), kNoon);
  QueueTurns turns(shares, kNoon);
  turns.Add("burst");
  turns.Add("calm");
  std::int64_t burst = 0;
  std::int64_t calm = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string queue = *turns.First();
    const std::int64_t chips = queue == "burst" ? 1 : 16;
    (queue == "burst" ? burst : calm) += chips;
    shares.Charge(queue, TurnChips(chips), 1, kNoon);
    turns.Update(queue);
  }
  EXPECT_LE(std::abs(burst - calm), 16);
}

// Finds the turn by comparing all queues of a level.
std::string SlowFirst(const QueueShares& shares, const std::set<std::string>& waiting) {
  const QueueTree& tree = shares.tree();
  const auto has_waiting = [&](std::size_t node) {
    return std::ranges::any_of(waiting, [&](const std::string& name) {
      const auto path = tree.PathOf(*tree.IndexOf(name));
      return std::ranges::find(path, node) != path.end();
    });
  };
  std::size_t at = QueueTree::kNoParent;
  while (true) {
    using Key = std::tuple<bool, double, bool, std::string, std::size_t>;
    std::optional<Key> best;
    const auto consider = [&](const QueueShares::Rank& rank, bool below, std::size_t node) {
      Key key{rank.guaranteed, rank.use, below, tree.nodes()[node].name, node};
      if (!best || key < *best) best = std::move(key);
    };
    if (at != QueueTree::kNoParent && waiting.contains(tree.nodes()[at].name)) {
      consider(shares.RankOfOwn(at, kNoon), false, at);
    }
    for (std::size_t i = 0; i < tree.nodes().size(); ++i) {
      if (tree.nodes()[i].parent == at && has_waiting(i))
        consider(shares.RankOf(i, kNoon), true, i);
    }
    if (!best) return "";
    if (!std::get<2>(*best)) return std::get<3>(*best);
    at = std::get<4>(*best);
  }
}

TEST(QueueTurnsTest, RandomTreesAreServedAsASearchFromScratchServes) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    QueueTree::Specs specs;
    std::set<std::string> waiting;
    for (unsigned i = 0; i < 14; ++i) {
      auto spec = Spec(fmt::format("q{}", i),
                       i > 0 && rng.Chance(2, 3) ? fmt::format("q{}", rng.Below(i)) : "");
      spec->weight = 1 + static_cast<std::int64_t>(rng.Below(5));
      if (rng.Chance(1, 3)) spec->guaranteed[kTurnType] = static_cast<std::int64_t>(rng.Below(9));
      if (rng.Chance(1, 2)) waiting.insert(spec->name);
      specs[spec->name] = spec;
    }
    QueueShares shares;
    shares.SetTree(QueueTree(specs), kNoon - hours(100));
    for (const auto& [name, spec] : specs) {
      const WallTime when = kNoon - hours(rng.Below(90));
      shares.Change(name, TurnChips(static_cast<std::int64_t>(rng.Below(30))), 1, when, when);
    }
    QueueTurns turns(shares, kNoon);
    for (const std::string& queue : waiting) turns.Add(queue);
    for (int i = 0; i < 100 && !waiting.empty(); ++i) {
      const std::string* first = turns.First();
      ASSERT_NE(first, nullptr);
      ASSERT_EQ(*first, SlowFirst(shares, waiting)) << "seed " << seed << ", turn " << i;
      const std::string queue = *first;
      shares.Charge(queue, TurnChips(1 + static_cast<std::int64_t>(rng.Below(4))), 1, kNoon);
      turns.Update(queue);
      if (!rng.Chance(1, 8)) continue;
      turns.Drop(queue);
      waiting.erase(queue);
    }
    EXPECT_EQ(turns.First() == nullptr, waiting.empty());
  }
}

// 64 queues with gangs always waiting, on 4,096 chips, for ten half-lives: each has had its part of
// the chip-hours, decayed.
TEST(QueueTurnsTest, SixtyFourBusyQueuesGetTheirPartsOfTheChipHours) {
  Rng rng(64);
  QueueTree::Specs specs;
  double weights = 0;
  for (int i = 0; i < 64; ++i) {
    auto spec = Spec(fmt::format("q{}", i));
    spec->half_life = hours(8);
    spec->weight = 1 + static_cast<std::int64_t>(rng.Below(4));
    weights += static_cast<double>(spec->weight);
    specs[spec->name] = spec;
  }
  QueueShares shares;
  shares.SetTree(QueueTree(specs), kNoon);
  std::multimap<WallTime, std::pair<std::string, std::int64_t>> ends;  // whose, and how many chips
  std::int64_t free = 4096;
  WallTime now = kNoon;
  for (; now < kNoon + 80 * hours(1); now += minutes(1)) {
    for (; !ends.empty() && ends.begin()->first <= now; ends.erase(ends.begin())) {
      const auto& [queue, chips] = ends.begin()->second;
      free += chips;
      shares.Change(queue, TurnChips(-chips), -1, now, now);
    }
    QueueTurns turns(shares, now);
    for (const auto& [name, spec] : specs) turns.Add(name);
    while (free > 0) {
      const std::string queue = *turns.First();
      const std::int64_t chips = std::min<std::int64_t>(std::int64_t{1} << rng.Below(4), free);
      free -= chips;
      shares.Change(queue, TurnChips(chips), 1, now, now);
      turns.Update(queue);
      ends.emplace(now + minutes(10 + rng.Below(50)), std::pair(queue, chips));
    }
  }
  double all = 0;
  for (const auto& [name, spec] : specs) all += shares.UsedChips(name, now);
  for (const auto& [name, spec] : specs) {
    const double part = shares.UsedChips(name, now) / all;
    EXPECT_NEAR(part * weights / static_cast<double>(spec->weight), 1, 0.02) << name;
  }
}

}  // namespace
}  // namespace tahoma::controller
