// Maintenance windows in a whole core: which gangs keep away, which end, and the notices.

#include "controller/core/queue/windows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Wish {
  int chips = 16;
  std::optional<seconds> runtime = std::nullopt;
  bool preemptible = false;
};

class WindowsTest : public ::testing::Test {
 protected:
  WindowsTest() { world_.api.AddNode("node-a"); }

  // A gang of one pod, "<name>-0".
  void Add(const std::string& name, const Wish& wish = {}) {
    world_.api.AddGang(name, 1);
    world_.api.ChangeGang(name, [&](GangFact& gang) {
      gang.max_runtime = wish.runtime;
      gang.preemptible = wish.preemptible;
      gang.created = world_.Time().wall;
    });
    world_.api.AddPodWithClaim(name + "-0", name, wish.chips);
    Settle();
  }
  // A window of the node from so much after now on, two hours long.
  void AddWindow(const std::string& name, seconds after, bool drain = false,
                 const std::string& node = "node-a") {
    const WallTime from = std::chrono::floor<seconds>(world_.Time().wall) + after;
    world_.api.PutWindow(name, node, [&](WindowSpec& window) {
      window.from = from;
      window.until = from + hours(2);
      window.reason = "new cables";
      window.drain = drain;
    });
    Settle();
  }
  void Settle() { ASSERT_TRUE(world_.Settle()); }
  void Pass(seconds time) { world_.MoveTo(world_.Time().wall + time); }
  std::string NodeOf(const std::string& gang) const {
    const auto pod = world_.api.pods().find(gang + "-0");
    return pod == world_.api.pods().end() ? "gone" : pod->second.node;
  }
  const WindowStatus& Status(const std::string& window) const {
    const auto status = world_.api.StatusOfWindow(window);
    TAHOMA_CHECK(status != nullptr);
    return *status;
  }
  std::vector<std::string> Events(EventReason reason) const {
    std::vector<std::string> messages;
    for (const EventNote& event : world_.api.events()) {
      if (event.reason == ToString(reason)) messages.push_back(event.message);
    }
    return messages;
  }

  World world_;
};

TEST_F(WindowsTest, OnlyGangsThatEndBeforeAWindowBeginThere) {
  AddWindow("fix", hours(1));
  Add("lent", {.chips = 8, .runtime = std::nullopt, .preemptible = true});
  EXPECT_EQ(NodeOf("lent"), "node-a");
  Add("endless", {.chips = 8});
  EXPECT_EQ(NodeOf("endless"), "");
  Add("long", {.chips = 8, .runtime = hours(1)});
  EXPECT_EQ(NodeOf("long"), "") << "its pods would still be ending";
  Add("short", {.chips = 8, .runtime = minutes(50)});
  EXPECT_EQ(NodeOf("short"), "node-a");
  EXPECT_EQ(Status("fix").phase, WindowPhase::kWarned) << "the warning is an hour";
  EXPECT_THAT(Status("fix").gang_names, ElementsAre("default/lent", "default/short"));
}

TEST_F(WindowsTest, NothingBeginsDuringAWindowAndTheNextGangBeginsAtItsEnd) {
  AddWindow("fix", hours(1));
  Add("endless");
  Pass(hours(1));
  EXPECT_EQ(Status("fix").phase, WindowPhase::kActive);
  Add("short", {.chips = 1, .runtime = seconds(10)});
  Add("lent", {.chips = 1, .runtime = std::nullopt, .preemptible = true});
  EXPECT_EQ(NodeOf("short"), "");
  EXPECT_EQ(NodeOf("lent"), "");
  Pass(hours(2));
  EXPECT_EQ(Status("fix").phase, WindowPhase::kOver);
  EXPECT_EQ(NodeOf("endless"), "node-a");
}

TEST_F(WindowsTest, PreemptibleGangsAreToldAndEndInTimeForTheirGrace) {
  Add("lent", {.chips = 8, .runtime = std::nullopt, .preemptible = true});
  Add("stays", {.chips = 8});
  AddWindow("fix", hours(3));
  const WallTime from = Status("fix").gangs == 2 ? world_.Time().wall : WallTime{};
  EXPECT_NE(from, WallTime{}) << "both are counted";
  EXPECT_THAT(Events(EventReason::kMaintenanceIsNear), IsEmpty());
  Pass(hours(2));
  EXPECT_EQ(Status("fix").phase, WindowPhase::kWarned);
  ASSERT_EQ(Events(EventReason::kMaintenanceIsNear).size(), 1U);
  EXPECT_THAT(Events(EventReason::kMaintenanceIsNear).front(),
              HasSubstr("kept for maintenance window fix"));
  ASSERT_TRUE(world_.api.pods().at("lent-0").bound_reclaim.has_value());
  EXPECT_FALSE(world_.api.pods().at("stays-0").bound_reclaim.has_value());
  const WallTime end = *world_.api.pods().at("lent-0").bound_reclaim;
  EXPECT_EQ(NodeOf("lent"), "node-a");
  world_.MoveTo(end + seconds(1));
  EXPECT_EQ(NodeOf("lent"), "gone");
  EXPECT_EQ(NodeOf("stays"), "node-a") << "it has not agreed";
  EXPECT_THAT(Events(EventReason::kGangPreempted),
              ElementsAre(HasSubstr("its hardware is kept for maintenance window fix")));
  Pass(minutes(5));
  EXPECT_EQ(Status("fix").phase, WindowPhase::kActive);
  EXPECT_THAT(Status("fix").gang_names, ElementsAre("default/stays"));
  EXPECT_FALSE(Status("fix").drained());
  world_.api.FinishPod("stays-0", true);
  Settle();
  Pass(seconds(2));
  EXPECT_TRUE(Status("fix").drained());
}

TEST_F(WindowsTest, ADrainingWindowEndsAllGangs) {
  Add("stays", {.chips = 8});
  AddWindow("fix", minutes(30), true);
  EXPECT_TRUE(world_.api.pods().at("stays-0").bound_reclaim.has_value()) << "told at once";
  Pass(minutes(30));
  EXPECT_EQ(NodeOf("stays"), "gone");
  EXPECT_EQ(Status("fix").gangs, 0);
}

TEST_F(WindowsTest, AWindowThatGoesFreesTheHardwareAndTakesBackWhatWasTold) {
  Add("lent", {.chips = 8, .runtime = std::nullopt, .preemptible = true});
  AddWindow("fix", minutes(30));
  Add("endless", {.chips = 8});
  EXPECT_EQ(NodeOf("endless"), "");
  EXPECT_TRUE(world_.api.pods().at("lent-0").bound_reclaim.has_value());
  world_.api.RemoveWindow("fix");
  Settle();
  EXPECT_EQ(NodeOf("endless"), "node-a");
  EXPECT_FALSE(world_.api.pods().at("lent-0").bound_reclaim.has_value());
  Pass(hours(1));
  EXPECT_EQ(NodeOf("lent"), "node-a");
}

TEST_F(WindowsTest, AWindowThatWentWhileNoControllerRanIsTakenBack) {
  Add("lent", {.chips = 8, .runtime = std::nullopt, .preemptible = true});
  AddWindow("fix", minutes(30));
  world_.api.RemoveWindow("fix");
  world_.Start();
  Settle();
  EXPECT_FALSE(world_.api.pods().at("lent-0").bound_reclaim.has_value());
}

TEST_F(WindowsTest, OfTwoWindowsThatOverlapBothHold) {
  AddWindow("first", hours(1));
  AddWindow("second", hours(2));
  Add("endless");
  Pass(hours(3) + minutes(1));
  EXPECT_EQ(Status("first").phase, WindowPhase::kOver);
  EXPECT_EQ(NodeOf("endless"), "");
  world_.api.RemoveWindow("second");
  Settle();
  EXPECT_EQ(NodeOf("endless"), "node-a");
}

TEST_F(WindowsTest, AWindowThatIsMovedHoldsItsNewTime) {
  AddWindow("fix", hours(1));
  Add("endless");
  AddWindow("fix", hours(1), false, "node-b");
  EXPECT_EQ(NodeOf("endless"), "node-a");
  EXPECT_THAT(Status("fix").missing_names, ElementsAre("node-b"));
  EXPECT_FALSE(Status("fix").ready());
}

TEST_F(WindowsTest, ANodeThatComesLaterIsKeptToo) {
  AddWindow("fix", hours(1), false, "node-b");
  Add("first");
  Add("second");
  EXPECT_EQ(NodeOf("second"), "");
  world_.api.AddNode("node-b");
  Settle();
  Pass(seconds(2));
  EXPECT_EQ(NodeOf("second"), "");
  EXPECT_EQ(Status("fix").nodes, 1);
  EXPECT_TRUE(Status("fix").ready());
  world_.api.RemoveNode("node-b");
  Settle();
  Pass(seconds(2));
  EXPECT_EQ(Status("fix").missing, 1);
  world_.api.AddNode("node-b");
  Settle();
  EXPECT_EQ(NodeOf("second"), "");
  Pass(hours(3));
  EXPECT_EQ(NodeOf("second"), "node-b");
}

TEST_F(WindowsTest, AnInvalidWindowKeepsNothingAndSaysWhy) {
  world_.api.PutWindow("fix", "node-a",
                       [](WindowSpec& window) { window.invalid = "spec: broken"; });
  Add("endless");
  EXPECT_EQ(NodeOf("endless"), "node-a");
  EXPECT_EQ(Status("fix").phase, WindowPhase::kInvalid);
  EXPECT_EQ(Status("fix").invalid, "spec: broken");
}

TEST_F(WindowsTest, AClockThatIsSetForwardBeyondAWindowEndsNobodyAndFreesTheHardware) {
  Add("lent", {.chips = 8, .runtime = std::nullopt, .preemptible = true});
  AddWindow("fix", hours(3));
  Add("endless", {.chips = 8});
  world_.set = hours(6);
  Settle();
  EXPECT_EQ(Status("fix").phase, WindowPhase::kOver);
  EXPECT_EQ(NodeOf("endless"), "node-a");
  EXPECT_EQ(NodeOf("lent"), "node-a");
}

TEST_F(WindowsTest, AClockThatIsSetForwardIntoAWindowEndsGangsAtOnce) {
  Add("lent", {.chips = 8, .runtime = std::nullopt, .preemptible = true});
  AddWindow("fix", hours(3));
  world_.set = hours(4);
  Settle();
  EXPECT_EQ(NodeOf("lent"), "gone");
  EXPECT_EQ(Status("fix").phase, WindowPhase::kActive);
}

TEST_F(WindowsTest, AClockThatIsSetBackLetsAWindowHoldAgain) {
  Add("lent", {.chips = 8, .runtime = std::nullopt, .preemptible = true});
  AddWindow("fix", hours(3));
  Pass(hours(2));
  EXPECT_EQ(Status("fix").phase, WindowPhase::kWarned);
  world_.set = -hours(2);  // before the warning
  Settle();
  EXPECT_EQ(Status("fix").phase, WindowPhase::kScheduled);
  EXPECT_EQ(NodeOf("lent"), "node-a");
  Pass(hours(3));
  EXPECT_EQ(NodeOf("lent"), "gone");
  Pass(hours(2));
  EXPECT_EQ(Status("fix").phase, WindowPhase::kOver);
  world_.set -= hours(1);  // into the window
  Settle();
  EXPECT_EQ(Status("fix").phase, WindowPhase::kActive);
  Add("endless");
  EXPECT_EQ(NodeOf("endless"), "");
  Pass(hours(1));
  EXPECT_EQ(NodeOf("endless"), "node-a");
}

TEST_F(WindowsTest, TheStartThatAGangIsPromisedIsNotInAWindow) {
  Add("runs", {.chips = 16, .runtime = minutes(30)});
  Add("next", {.chips = 16, .runtime = hours(1)});
  const auto promise = [&]() -> std::shared_ptr<const Promise> {
    for (const auto& one : world_.core().snapshot()->promises) {
      if (one->kind == PromiseKind::kStart) return one;
    }
    return nullptr;
  };
  ASSERT_NE(promise(), nullptr);
  EXPECT_LT(promise()->from, world_.Time().wall + minutes(30));
  AddWindow("fix", hours(1));
  ASSERT_NE(promise(), nullptr);
  EXPECT_GT(promise()->from, world_.Time().wall + minutes(179)) << "when the window is over";
  world_.api.RemoveWindow("fix");
  Settle();
  Pass(seconds(2));
  ASSERT_NE(promise(), nullptr);
  EXPECT_LT(promise()->from, world_.Time().wall + minutes(31));
}

TEST_F(WindowsTest, NobodyIsEndedForAGangThatAWindowKeepsAway) {
  Add("lent", {.chips = 16, .runtime = std::nullopt, .preemptible = true});
  AddWindow("fix", hours(3));
  world_.api.AddGang("high", 1);
  world_.api.ChangeGang("high", [](GangFact& gang) { gang.priority = 1000; });
  world_.api.AddPodWithClaim("high-0", "high", 16);
  Settle();
  EXPECT_EQ(NodeOf("high"), "");
  EXPECT_EQ(NodeOf("lent"), "node-a");
}

// The program dies at each write in turn, and the window begins meanwhile.
TEST(WindowsCrashTest, AWindowHoldsWhereverTheProgramDies) {
  bool crashed = true;
  for (int after = 1; crashed; after += 3) {
    SCOPED_TRACE(after);
    World world;
    world.api.AddNode("node-a");
    world.api.AddGang("lent", 1);
    world.api.ChangeGang("lent", [](GangFact& gang) { gang.preemptible = true; });
    world.api.AddPodWithClaim("lent-0", "lent", 8);
    const WallTime from = std::chrono::floor<seconds>(world.Time().wall) + minutes(30);
    world.api.PutWindow("fix", "node-a", [&](WindowSpec& window) {
      window.from = from;
      window.until = from + hours(1);
    });
    world.crash_after = after;
    world.Settle();
    world.MoveTo(from - minutes(5));
    world.MoveTo(from + seconds(1));
    crashed = world.DoneSteps() >= after;
    world.crash_after = 0;
    if (crashed) {
      world.Start();
      world.MoveTo(from + seconds(1));
    }
    world.api.AddGang("endless", 1);
    world.api.AddPodWithClaim("endless-0", "endless", 8);
    ASSERT_TRUE(world.Settle());
    const auto lent = world.api.pods().find("lent-0");
    EXPECT_TRUE(lent == world.api.pods().end() || lent->second.node.empty());
    EXPECT_EQ(world.api.pods().at("endless-0").node, "");
    EXPECT_LE(EventsOf(world.api, EventReason::kMaintenanceIsNear), 2);
    world.MoveTo(from + hours(1));
    EXPECT_EQ(world.api.pods().at("endless-0").node, "node-a");
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
  }
}

// With the real planner: an UltraServer is kept as a whole, and the reason names the window.
TEST(WindowsOfUltraServersTest, TheReasonOfABlockedGangNamesTheWindow) {
  auto planner = std::make_shared<Planner>();
  World world(CoreOptions{}, [planner](const ClusterState& fleet, const Queue& queue, WallTime now,
                                       Explaining explaining) {
    return planner->Plan(fleet, queue, now, explaining);
  });
  for (int z = 0; z < 4; ++z) {
    world.api.AddNode(NodeFactsOf({.name = fmt::format("us-0-n{}", z),
                                   .type = "trn2u.48xlarge",
                                   .ultra_server = "us-0",
                                   .z = z}));
  }
  world.api.AddClass();
  world.api.PutWindow("night-fix", "", [&](WindowSpec& window) {
    window.nodes.clear();
    window.ultra_servers = {"us-0"};
    window.from = std::chrono::floor<seconds>(world.Time().wall) + hours(1);
    window.until = window.from + hours(2);
  });
  world.api.AddGang("train", 1);
  world.api.AddPodWithClaim("train-0", "train", 16);
  ASSERT_TRUE(world.Settle());
  EXPECT_EQ(world.api.StatusOfWindow("night-fix")->nodes, 4);
  EXPECT_EQ(world.api.pods().at("train-0").node, "");
  const auto* view = world.core().snapshot()->gangs.Find(GangRef{{"default", "train"}, false});
  ASSERT_NE(view, nullptr);
  EXPECT_THAT((*view)->message, HasSubstr("maintenance window night-fix (2023-11-14T23:13:"));
  world.MoveTo(world.Time().wall + hours(3));
  EXPECT_THAT(world.api.pods().at("train-0").node, StartsWith("us-0-n"));
}

// Random windows and gangs, and a clock that jumps: no gang begins where the gang would run during
// a window, and no gang that may be ended is there when a window has begun.
class RandomWindows : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr std::uint64_t kNodes = 3;

  RandomWindows() {
    for (std::uint64_t i = 0; i < kNodes; ++i) world_.api.AddNode(NodeNamed(i));
  }

  struct Job {
    std::optional<seconds> runtime;
    bool preemptible = false;
    bool begun = false;
  };
  static std::string NodeNamed(std::uint64_t i) { return fmt::format("node-{}", i); }

  void AddRandomWindow() {
    const std::string name = fmt::format("w{}", rng_.Below(3));
    if (windows_.contains(name) && rng_.Chance(1, 2)) {
      world_.api.RemoveWindow(name);
      windows_.erase(name);
      return;
    }
    world_.api.PutWindow(name, NodeNamed(rng_.Below(kNodes)), [&](WindowSpec& window) {
      window.from =
          std::chrono::floor<seconds>(world_.Time().wall) + minutes(rng_.Below(300)) - minutes(30);
      window.until = window.from + minutes(1 + rng_.Below(120));
      window.warning = minutes(1 + rng_.Below(90));
      window.drain = rng_.Chance(1, 4);
      windows_[name] = window;
    });
  }

  void AddJob() {
    const std::string name = fmt::format("job{}", jobs_.size());
    Job& job = jobs_[name];
    if (rng_.Chance(2, 3)) job.runtime = minutes(1 + rng_.Below(120));
    job.preemptible = rng_.Chance(1, 2);
    world_.api.AddGang(name, 1);
    world_.api.ChangeGang(name, [&](GangFact& gang) {
      gang.max_runtime = job.runtime;
      gang.preemptible = job.preemptible;
      gang.created = world_.Time().wall;
    });
    world_.api.AddPodWithClaim(name + "-0", name, 1 << rng_.Below(5));
  }

  void Look() {
    const WallTime now = world_.Time().wall;
    for (auto& [name, job] : jobs_) {
      const auto pod = world_.api.pods().find(name + "-0");
      const bool runs = pod != world_.api.pods().end() && !pod->second.node.empty();
      const bool begins = runs && !job.begun;
      job.begun = runs;
      if (!runs) continue;
      for (const auto& [of, window] : windows_) {
        if (window.nodes.front() != pod->second.node || now >= window.until) continue;
        SCOPED_TRACE(name + " and " + of);
        const bool ends = job.preemptible || window.drain;
        if (now >= window.from + seconds(30)) {
          EXPECT_FALSE(ends) << "it should have ended";
          EXPECT_FALSE(begins) << "nothing begins during a window";
        }
        if (!begins || job.preemptible) continue;
        ASSERT_TRUE(job.runtime.has_value()) << "it would never end";
        EXPECT_LE(now + *job.runtime, window.from + seconds(60));
      }
    }
  }

  World world_;
  Rng rng_{GetParam()};
  std::map<std::string, Job> jobs_;
  std::map<std::string, WindowSpec> windows_;
};

TEST_P(RandomWindows, AreKept) {
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    if (rng_.Chance(1, 3)) AddRandomWindow();
    if (rng_.Chance(1, 2)) AddJob();
    if (rng_.Chance(1, 8)) world_.Start();
    ASSERT_TRUE(world_.Settle());
    Look();
    if (rng_.Chance(1, 6)) {
      world_.set += minutes(rng_.Below(240)) - minutes(120);
    } else {
      world_.MoveTo(world_.Time().wall + minutes(rng_.Below(60)));
    }
    ASSERT_TRUE(world_.Settle());
    Look();
  }
  world_.api.CheckDevices();
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWindows, ::testing::Range<std::uint64_t>(1, 17));

}  // namespace
}  // namespace tahoma::controller
