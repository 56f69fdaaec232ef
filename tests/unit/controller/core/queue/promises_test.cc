// Gangs that are promised hardware, and gangs that may not take it, in a core with all its parts.

#include "controller/core/queue/promises.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr seconds kSoon{60};  // steps of a world take time

class PromisesTest : public ::testing::Test {
 protected:
  // Gangs of one pod, "<name>-0".
  void Add(const std::string& name, int chips, std::optional<seconds> runtime = std::nullopt,
           std::int32_t priority = 0) {
    world_.api.AddGang(name, 1);
    world_.api.ChangeGang(name, [&](GangFact& gang) {
      gang.max_runtime = runtime;
      gang.priority = priority;
      gang.created = world_.Time().wall;
    });
    world_.api.AddPodWithClaim(name + "-0", name, chips);
    ASSERT_TRUE(world_.Settle());
  }
  void End(const std::string& name) {
    world_.api.FinishPod(name + "-0", true);
    ASSERT_TRUE(world_.Settle());
  }
  std::string NodeOf(const std::string& gang) const {
    const auto pod = world_.api.pods().find(gang + "-0");
    return pod == world_.api.pods().end() ? "gone" : pod->second.node;
  }
  std::shared_ptr<const Promise> PromiseTo(const std::string& gang) {
    for (const auto& promise : world_.core().snapshot()->promises) {
      if (promise->holder == "gang default/" + gang) return promise;
    }
    return nullptr;
  }
  WallTime Now() const { return world_.Time().wall; }

  World world_;
};

TEST_F(PromisesTest, AGangMayPassThatEndsBeforeAnEarlierGangStarts) {
  world_.api.AddNode("node-a");
  Add("runs", 8, seconds(1000));
  Add("big", 16, seconds(1000));
  EXPECT_EQ(NodeOf("big"), "");
  ASSERT_NE(PromiseTo("big"), nullptr);
  EXPECT_LT(PromiseTo("big")->from, Now() + seconds(1000));
  Add("long", 8, seconds(2000));
  Add("endless", 8);
  Add("short", 8, seconds(500));
  EXPECT_EQ(NodeOf("long"), "");
  EXPECT_EQ(NodeOf("endless"), "");
  EXPECT_EQ(NodeOf("short"), "node-a");
  End("short");
  EXPECT_EQ(NodeOf("long"), "");
  End("runs");
  EXPECT_EQ(NodeOf("big"), "node-a");
  EXPECT_EQ(PromiseTo("big"), nullptr);
}

TEST_F(PromisesTest, AGangOfHigherPriorityIsNotBoundAndThePromiseMovesOn) {
  world_.api.AddNode("node-a");
  Add("runs", 8, seconds(1000));
  Add("big", 16, seconds(1000));
  const WallTime before = PromiseTo("big")->from;
  Add("first", 8, seconds(5000), 10);
  EXPECT_EQ(NodeOf("first"), "node-a");
  ASSERT_NE(PromiseTo("big"), nullptr);
  EXPECT_GE(PromiseTo("big")->from, before + seconds(3900));
}

// Each gang that passed moved the start by up to a minute, without a bound.
TEST_F(PromisesTest, AMinuteCountsAsNothingOnceAndNotForEachGangThatPasses) {
  world_.api.AddNode("node-a");
  Add("runs", 8, seconds(1000));
  Add("big", 16, seconds(1000));
  const WallTime promised = PromiseTo("big")->from;
  const auto until = [&](seconds after) {
    return std::chrono::floor<seconds>(promised + after - Now());
  };
  Add("first", 4, until(seconds(40)));
  EXPECT_EQ(NodeOf("first"), "node-a");
  ASSERT_NE(PromiseTo("big"), nullptr);
  EXPECT_GT(PromiseTo("big")->from, promised);
  Add("second", 4, until(seconds(90)));
  EXPECT_EQ(NodeOf("second"), "");
  EXPECT_LE(PromiseTo("big")->from, promised + kPromiseGrain);
}

TEST_F(PromisesTest, APromiseToAGangThatHasGoneBindsNobody) {
  world_.api.AddNode("node-a");
  Add("runs", 8, seconds(1000));
  Add("big", 16, seconds(1000));
  Add("long", 8, seconds(2000));
  EXPECT_EQ(NodeOf("long"), "");
  world_.api.DeletePod("big-0");
  ASSERT_TRUE(world_.Settle());
  EXPECT_EQ(NodeOf("long"), "node-a");
}

TEST_F(PromisesTest, AnotherPlaceIsPromisedWhenTheHardwareFails) {
  world_.api.AddNode("node-a");
  world_.api.AddNode("node-b");
  Add("one", 16, seconds(1000));
  Add("two", 16, seconds(3000));
  Add("big", 16, seconds(1000));
  ASSERT_NE(PromiseTo("big"), nullptr);
  const std::string node = PromiseTo("big")->holdings.front()->devices.front().node;
  EXPECT_EQ(node, NodeOf("one"));
  world_.api.RemoveNode(node);
  ASSERT_TRUE(world_.Settle());
  ASSERT_NE(PromiseTo("big"), nullptr);
  EXPECT_EQ(PromiseTo("big")->holdings.front()->devices.front().node, NodeOf("two"));
}

TEST_F(PromisesTest, ARunThatEndsEarlyMovesTheStartForward) {
  world_.api.AddNode("node-a");
  Add("one", 8, seconds(5000));
  Add("two", 8, seconds(1000));
  Add("big", 16, seconds(1000));
  const WallTime before = PromiseTo("big")->from;
  End("one");
  ASSERT_NE(PromiseTo("big"), nullptr);
  EXPECT_LE(PromiseTo("big")->from, before - seconds(3900));
  Add("long", 8, seconds(3000));
  EXPECT_EQ(NodeOf("long"), "") << "the gang would have ended before the first promise";
}

TEST_F(PromisesTest, GangsWithoutAKnownEndPassUntilPatienceIsOver) {
  world_.api.AddNode("node-a");
  Add("old", 8);
  Add("big", 16);
  EXPECT_EQ(PromiseTo("big"), nullptr);
  Add("young", 8);
  EXPECT_EQ(NodeOf("young"), "node-a");
  world_.MoveTo(Now() + 2 * Promises::kPatience - hours(1));
  EXPECT_EQ(PromiseTo("big"), nullptr);
  world_.MoveTo(Now() + hours(1) + kSoon);
  ASSERT_NE(PromiseTo("big"), nullptr);
  EXPECT_EQ(PromiseTo("big")->kind, PromiseKind::kPatience);
  End("old");
  Add("later", 8);
  EXPECT_EQ(NodeOf("later"), "");
  End("young");
  EXPECT_EQ(NodeOf("big"), "node-a");
}

TEST_F(PromisesTest, MoreGangsWaitThanPromisesAreMade) {
  world_.api.AddNode("node-a");
  Add("runs", 16, seconds(1000));
  for (std::size_t i = 0; i < Promises::kMost + 10; ++i) {
    Add(fmt::format("wait{:03}", i), 16, seconds(100));
  }
  EXPECT_EQ(world_.core().snapshot()->promises.size(), Promises::kMost);
  End("runs");
  EXPECT_EQ(NodeOf("wait000"), "node-a");
  End("wait000");
  EXPECT_EQ(NodeOf("wait001"), "node-a");
  EXPECT_EQ(world_.core().snapshot()->promises.size(), Promises::kMost);
}

// Returns the earliest time at which so many of 16 chips are free for so long: a count without
// places.
using Taken = std::vector<std::tuple<WallTime, WallTime, int>>;  // from, until, chips
WallTime EarliestByCount(const Taken& taken, int chips, seconds runtime, WallTime now) {
  std::vector<WallTime> times{now};
  for (const auto& [from, until, count] : taken) times.push_back(std::max(now, until));
  std::ranges::sort(times);
  for (const WallTime start : times) {
    std::vector<WallTime> points{start};
    for (const auto& [from, until, count] : taken) {
      if (from > start && from < start + runtime) points.push_back(from);
    }
    const bool fits = std::ranges::all_of(points, [&](WallTime point) {
      int used = chips;
      for (const auto& [from, until, count] : taken) {
        if (from <= point && point < until) used += count;
      }
      return used <= 16;
    });
    if (fits) return start;
  }
  ADD_FAILURE() << "everything ends";
  return now;
}

// A random stream of gangs on a node. A gang ends at the end of the asked time, or long before.
class PromisedStream : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  PromisedStream() { world_.api.AddNode("node-a"); }

  struct Job {
    int chips = 0;
    seconds asked{0};
    seconds runs{0};
    std::optional<WallTime> promised = {};  // the last promise
    std::optional<WallTime> started = {};
  };

  bool Runs(const std::string& name, const Job& job) const {
    const auto pod = world_.api.pods().find(name + "-0");
    return job.started && pod != world_.api.pods().end() && !pod->second.finished;
  }

  void Submit(const std::string& name) {
    Job& job = jobs_[name];
    job.chips = 1 << rng_.Below(5);
    job.asked = seconds(1000 * (1 + rng_.Below(8)));
    job.runs = rng_.Below(2) == 0 ? job.asked - seconds(200) : job.asked / 3;
    world_.api.AddGang(name, 1);
    world_.api.ChangeGang(name, [&](GangFact& gang) {
      gang.max_runtime = job.asked;
      gang.created = world_.Time().wall;
    });
    world_.api.AddPodWithClaim(name + "-0", name, job.chips);
    ASSERT_TRUE(world_.Settle());
    Look();
    if (job.promised) CompareWithCount(name);
  }

  void CompareWithCount(const std::string& name) {
    Taken taken;
    for (const auto& [other, job] : jobs_) {
      if (Runs(other, job)) {
        taken.emplace_back(WallTime::min(), *job.started + job.asked - kSoon, job.chips);
      } else if (job.promised && !job.started && other != name) {
        taken.emplace_back(*job.promised, *job.promised + job.asked, job.chips);
      }
    }
    const Job& job = jobs_.at(name);
    const WallTime now = world_.Time().wall;
    const WallTime bound = EarliestByCount(taken, job.chips, job.asked - kPromiseGrain, now);
    EXPECT_GE(*job.promised + kSoon, bound) << name;
  }

  // Notes promises and starts.
  void Look() {
    for (const auto& promise : world_.core().snapshot()->promises) {
      const std::string name = promise->holder.substr(std::string("gang default/").size());
      Job& job = jobs_.at(name);
      if (job.promised) {
        EXPECT_LE(promise->from, *job.promised + kSoon) << name << " starts later than promised";
      }
      job.promised = promise->from;
    }
    for (auto& [name, job] : jobs_) {
      const auto pod = world_.api.pods().find(name + "-0");
      if (job.started || pod == world_.api.pods().end() || pod->second.node.empty()) continue;
      job.started = world_.Time().wall;
      if (job.promised) {
        EXPECT_LE(*job.started, *job.promised + kSoon) << name;
      }
    }
  }

  void RunUntil(WallTime time) {
    for (;;) {
      std::pair<WallTime, std::string> end{time, ""};
      for (const auto& [name, job] : jobs_) {
        if (Runs(name, job)) end = std::min(end, {*job.started + job.runs, name});
      }
      // The core is stepped at promised starts, too.
      for (const auto& promise : world_.core().snapshot()->promises) {
        const bool next = promise->from > world_.Time().wall && promise->from < end.first;
        if (next) end = {promise->from, "nobody"};
      }
      world_.MoveTo(end.first);
      Look();
      if (end.second == "nobody") continue;
      if (end.second.empty()) return;
      world_.api.FinishPod(end.second + "-0", true);
      ASSERT_TRUE(world_.Settle());
      Look();
    }
  }

  Rng rng_{GetParam()};
  World world_;
  std::map<std::string, Job> jobs_;
};

// The bound of conservative backfill, with early ends and later gangs.
TEST_P(PromisedStream, NoGangStartsLaterThanPromisedAndNoPromiseIsBeforeTheHardwareIsFree) {
  for (int i = 0; i < 40; ++i) {
    Submit(fmt::format("job{:02}", i));
    RunUntil(world_.Time().wall + seconds(rng_.Below(900)));
  }
  RunUntil(world_.Time().wall + hours(100));
  for (const auto& [name, job] : jobs_) EXPECT_TRUE(job.started) << name;
}

INSTANTIATE_TEST_SUITE_P(Seeds, PromisedStream, ::testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace tahoma::controller
