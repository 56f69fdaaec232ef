// The order in which gangs are planned, and the reasons why gangs wait.

#include "controller/core/queue/scheduling_queue.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/core/queue/successors.h"
#include "controller/plan/fleet_index.h"
#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

GangRef Ref(const std::string& name) { return {{"default", name}, false}; }

class SchedulingQueueTest : public ::testing::Test {
 protected:
  // Answers in the planner's place.
  std::vector<Decision> Answer(const Queue& queue, Explaining explaining) {
    std::vector<Decision> decisions;
    for (const auto& gang : queue) {
      asked_.push_back(gang->key.name);
      Decision& decision = decisions.emplace_back();
      decision.gang = gang;
      if (blocked_.contains(gang->key.name)) {
        decision.blocked = blocked_.at(gang->key.name);
        decision.blocked->explained = explaining == Explaining::kEach;
        continue;
      }
      decision.placement.emplace();
      for (const MemberSpec& member : gang->members) {
        MemberPlacement& placed = decision.placement->members.emplace_back();
        for (const ClaimSpec& claim : member.claims) {
          placed.claims.push_back({.claim = claim.key, .uid = claim.uid, .allocation = {}});
        }
      }
    }
    return decisions;
  }
  static Readiness Ready(const std::string& name, std::int32_t priority = 0, int created = 0,
                         const std::string& claim = "") {
    auto spec = std::make_shared<GangSpec>();
    spec->key = {"default", name};
    spec->priority = priority;
    spec->created = WallTime(seconds(created));
    if (!claim.empty()) {
      ClaimSpec& needed = spec->members.emplace_back().claims.emplace_back();
      needed.key = {"default", claim};
      needed.uid = "uid-" + claim;
    }
    Readiness ready;
    ready.spec = std::move(spec);
    return ready;
  }
  static Readiness Waits(GangReason reason, const std::string& message) {
    Readiness waits;
    waits.reason = reason;
    waits.message = message;
    return waits;
  }
  // Returns the names of the planned gangs, in order.
  std::vector<std::string> Plan(std::size_t most = 1000) {
    asked_.clear();
    planned_ = queue_.Plan(cluster_, most, WallTime());
    return asked_;
  }
  void BlockFor(const std::string& name, const std::string& message,
                BlockedReason reason = BlockedReason::kWaitsForCapacity) {
    blocked_[name].reason = reason;
    blocked_[name].message = message;
  }

  ClusterState cluster_;
  std::map<std::string, Blocked> blocked_;
  std::vector<std::string> asked_;
  std::vector<Planned> planned_;
  MonotonicTime now_{std::chrono::hours(1)};
  SchedulingQueue queue_{[this](const ClusterState&, const Queue& queue, WallTime,
                                Explaining explaining) { return Answer(queue, explaining); }};
};

TEST_F(SchedulingQueueTest, HigherPriorityComesFirstThenTheOlderThenTheName) {
  queue_.Put(Ref("young"), Ready("young", 5, 200));
  queue_.Put(Ref("low"), Ready("low", -1, 1));
  queue_.Put(Ref("b"), Ready("b", 5, 100));
  queue_.Put(Ref("a"), Ready("a", 5, 100));
  queue_.Put(Ref("high"), Ready("high", 7, 300));
  EXPECT_THAT(Plan(), ElementsAre("high", "a", "b", "young", "low"));
  EXPECT_EQ(queue_.size(), 0U) << "what has a place waits no more";
  EXPECT_THAT(Plan(), IsEmpty());
}

// Whether a gang may be ended says nothing of when it is served.
TEST_F(SchedulingQueueTest, PriorityComesBeforeWhoMayBeEnded) {
  const auto with = [](Readiness ready, const std::function<void(GangSpec&)>& change) {
    auto spec = std::make_shared<GangSpec>(*ready.spec);
    change(*spec);
    ready.spec = std::move(spec);
    return ready;
  };
  const auto preemptible = [](GangSpec& spec) { spec.preemptible = true; };
  queue_.Put(Ref("low"), Ready("low", -10, 1));
  queue_.Put(Ref("guest"), with(Ready("guest", 1000, 2), preemptible));
  queue_.Put(Ref("usual"), Ready("usual", 1000, 3));
  queue_.Put(Ref("high"), Ready("high", 2000, 4));
  EXPECT_THAT(Plan(), ElementsAre("high", "usual", "guest", "low"));
}

// Gangs of a block and borrowers alone use the hardware of the block.
TEST_F(SchedulingQueueTest, GangsOfCapacityBlocksAreServedInACallBeforeTheOthers) {
  Readiness own = Ready("own", -10, 5);
  auto spec = std::make_shared<GangSpec>(*own.spec);
  spec->reservation = "cr-1";
  own.spec = std::move(spec);
  queue_.Put(Ref("own"), own);
  queue_.Put(Ref("high"), Ready("high", 1000, 1));
  EXPECT_THAT(Plan(), ElementsAre("own"));
  EXPECT_THAT(Plan(), ElementsAre("high"));
}

TEST_F(SchedulingQueueTest, ABlockedGangIsPlannedAgainOnlyWhenCapacityIsFreed) {
  BlockFor("a", "no domain has room");
  queue_.Put(Ref("a"), Ready("a"));
  EXPECT_TRUE(queue_.has_active());
  Plan();
  ASSERT_EQ(planned_.size(), 1U);
  EXPECT_FALSE(planned_[0].placement);
  EXPECT_TRUE(planned_[0].news);
  EXPECT_EQ(queue_.Find(Ref("a"))->reason, GangReason::kWaitsForCapacity);
  EXPECT_EQ(queue_.Find(Ref("a"))->message, "no domain has room");
  EXPECT_FALSE(queue_.has_active());
  EXPECT_THAT(Plan(), IsEmpty());
  BlockFor("a", "one domain has half of it");
  queue_.OnCapacityFreed();
  EXPECT_THAT(Plan(), ElementsAre("a"));
  EXPECT_FALSE(planned_[0].news) << "another message, the same reason";
  EXPECT_EQ(queue_.Find(Ref("a"))->message, "one domain has half of it");
  blocked_.clear();
  queue_.OnCapacityFreed();
  EXPECT_THAT(Plan(), ElementsAre("a"));
  EXPECT_EQ(queue_.Find(Ref("a")), nullptr);
}

TEST_F(SchedulingQueueTest, EveryAnswerOfThePlannerHasItsReason) {
  const std::map<BlockedReason, GangReason> reasons = {
      {BlockedReason::kWaitsForCapacity, GangReason::kWaitsForCapacity},
      {BlockedReason::kWaitsForRepair, GangReason::kWaitsForRepair},
      {BlockedReason::kNeverFits, GangReason::kNeverFits},
      {BlockedReason::kNotFound, GangReason::kNotFound},
      {BlockedReason::kInvalid, GangReason::kInvalid}};
  for (const auto& [blocked, reason] : reasons) {
    BlockFor("a", "m", blocked);
    queue_.Put(Ref("a"), Ready("a"));
    Plan();
    EXPECT_EQ(queue_.Find(Ref("a"))->reason, reason);
    EXPECT_EQ(ToString(queue_.Find(Ref("a"))->reason), ToString(blocked));
  }
}

TEST_F(SchedulingQueueTest, WhatThePlannerSaidStaysWhileTheGangIsReady) {
  BlockFor("a", "no room");
  queue_.Put(Ref("a"), Ready("a"));
  Plan();
  queue_.Put(Ref("a"), Ready("a"));
  EXPECT_EQ(queue_.Find(Ref("a"))->message, "no room");
  EXPECT_TRUE(queue_.has_active()) << "it has changed: it may fit now";
  queue_.Put(Ref("a"), Waits(GangReason::kWaitingForPods, "1 of 2 pods exist"));
  EXPECT_EQ(queue_.Find(Ref("a"))->message, "1 of 2 pods exist");
  EXPECT_THAT(Plan(), IsEmpty()) << "not ready";
  queue_.OnCapacityFreed();
  EXPECT_THAT(Plan(), IsEmpty());
  queue_.Put(Ref("a"), Ready("a"));
  EXPECT_EQ(queue_.Find(Ref("a"))->reason, GangReason::kNone);
}

TEST_F(SchedulingQueueTest, AGangThatWasUndoneIsAssessedAndPlannedAgainAfterAWhile) {
  queue_.BackOff(Ref("a"), now_, Successors::kPause);
  queue_.Put(Ref("a"), Ready("a"));
  EXPECT_FALSE(queue_.has_active());
  EXPECT_THAT(Plan(), IsEmpty());
  EXPECT_EQ(queue_.wake(), now_ + Successors::kPause);
  EXPECT_THAT(queue_.DrainTouched(now_ + seconds(1)), IsEmpty());
  now_ += Successors::kPause;
  EXPECT_THAT(queue_.DrainTouched(now_), ElementsAre(Ref("a")));
  EXPECT_EQ(queue_.wake(), std::nullopt);
  queue_.Put(Ref("a"), Ready("a"));
  EXPECT_THAT(Plan(), ElementsAre("a"));
}

TEST_F(SchedulingQueueTest, WhoIsUndoneAgainWaitsTheWholeTimeAgain) {
  queue_.BackOff(Ref("a"), now_, Successors::kPause);
  queue_.BackOff(Ref("a"), now_ + seconds(1), Successors::kPause);
  EXPECT_EQ(queue_.wake(), now_ + seconds(1) + Successors::kPause);
  EXPECT_THAT(queue_.DrainTouched(now_ + Successors::kPause), IsEmpty());
}

TEST_F(SchedulingQueueTest, OnePlanHasABound) {
  for (std::size_t i = 0; i < SchedulingQueue::kPlansMost + 10; ++i) {
    const std::string name = fmt::format("g{:04}", i);
    queue_.Put(Ref(name), Ready(name));
  }
  EXPECT_EQ(Plan(3).size(), 3U) << "as many as there is room for";
  EXPECT_EQ(Plan(0).size(), 0U);
  EXPECT_EQ(Plan().size(), SchedulingQueue::kPlansMost);
  EXPECT_EQ(Plan().size(), 7U);
  EXPECT_EQ(queue_.plans(), SchedulingQueue::kPlansMost + 10);
}

TEST_F(SchedulingQueueTest, AClaimIsGivenAwayOnceInAPlan) {
  queue_.Put(Ref("a"), Ready("a", 1, 0, "shared"));
  queue_.Put(Ref("b"), Ready("b", 0, 0, "shared"));
  queue_.Put(Ref("c"), Ready("c", 0, 0, "own"));
  EXPECT_THAT(Plan(), ElementsAre("a", "b", "c"));
  ASSERT_EQ(planned_.size(), 2U);
  EXPECT_EQ(planned_[0].gang->key.name, "a");
  EXPECT_EQ(planned_[1].gang->key.name, "c");
  EXPECT_NE(queue_.Find(Ref("b")), nullptr);
  EXPECT_THAT(queue_.DrainTouched(now_), ElementsAre(Ref("b"))) << "it now waits for the claim";
}

TEST_F(SchedulingQueueTest, TouchedGangsComeOnceEach) {
  queue_.Put(Ref("b"), Ready("b"));
  queue_.Put(Ref("a"), Waits(GangReason::kWaitingForPods, "m"));
  queue_.Touch(Ref("b"));
  queue_.Touch(Ref("c"));
  queue_.TouchAllWaiting();
  EXPECT_THAT(queue_.DrainTouched(now_), ElementsAre(Ref("a"), Ref("b"), Ref("c")));
  EXPECT_THAT(queue_.DrainTouched(now_), IsEmpty());
}

TEST(SchedulingQueueAndPlannerTest, PriorityThenAgeDecidesAndABlockedGangLetsOthersPass) {
  ClusterState cluster;
  AddUltraServer(cluster, "us-0");
  Planner planner;
  SchedulingQueue queue(
      [&](const ClusterState& view, const Queue& gangs, WallTime now, Explaining explaining) {
        return planner.Plan(view, gangs, now, explaining);
      });
  struct Wish {
    std::string name, shape;
    int members, hour, priority;
  };
  for (const Wish& wish : std::vector<Wish>{{"late", "4x4x4", 4, 2, 0},
                                            {"small", "4x4", 1, 4, 0},
                                            {"urgent", "4x4x2", 2, 3, 1},
                                            {"early", "4x4x4", 4, 1, 0}}) {
    GangSpec gang =
        GangOf(wish.name, wish.members, [](const std::string& pod) { return ChipClaim(pod, 16); });
    gang.shape_text = wish.shape;
    gang.created = WallTime(std::chrono::hours(wish.hour));
    gang.priority = wish.priority;
    Readiness ready;
    ready.spec = std::make_shared<const GangSpec>(std::move(gang));
    queue.Put({ready.spec->key, false}, ready);
  }
  std::vector<std::string> order;
  for (const Planned& planned : queue.Plan(cluster, 10, WallTime(std::chrono::hours(24)))) {
    order.push_back(planned.gang->key.name + (planned.placement ? "+" : "-"));
  }
  EXPECT_THAT(order, ElementsAre("urgent+", "early-", "late-", "small+"));
}

TEST_F(SchedulingQueueTest, APlannerThatChangesTheOrderIsAMistakeOfOurs) {
  SchedulingQueue queue([](const ClusterState&, const Queue& gangs, WallTime, Explaining) {
    std::vector<Decision> decisions;
    for (auto gang = gangs.rbegin(); gang != gangs.rend(); ++gang) {
      decisions.push_back({.gang = *gang, .placement = std::nullopt, .blocked = Blocked()});
    }
    return decisions;
  });
  queue.Put(Ref("a"), Ready("a"));
  queue.Put(Ref("b"), Ready("b"));
  EXPECT_DEATH(queue.Plan(cluster_, 2, WallTime()), "CHECK failed: decision.gang == ");
}

TEST_F(SchedulingQueueTest, APlannerThatForgetsAGangIsAMistakeOfOurs) {
  SchedulingQueue queue([](const ClusterState&, const Queue&, WallTime, Explaining) {
    return std::vector<Decision>();
  });
  queue.Put(Ref("a"), Ready("a"));
  EXPECT_DEATH(queue.Plan(cluster_, 1, WallTime()), "CHECK failed: decisions.size");
}

// A fleet where pods hold whole nodes, one by one.
class WakingTest : public SchedulingQueueTest {
 protected:
  WakingTest() {
    AddUltraServer(cluster_, "us-0");
    AddUltraServer(cluster_, "us-1");
    for (int node = 0; node < 8; ++node) Take(node);
  }
  void Take(int node) {
    Holding holding;
    holding.claim_uid = fmt::format("claim-{}", node);
    for (int chip = 0; chip < 16; ++chip) {
      holding.devices.push_back({.node = fmt::format("us-{}-n{}", node / 4, node % 4),
                                 .device = fmt::format("neuron-device-{}", chip)});
    }
    cluster_.Hold(std::make_shared<const Holding>(std::move(holding)));
  }
  void Free(int node) { cluster_.Release(fmt::format("claim-{}", node)); }
  void Wait(const std::string& name, RoomKinds rooms, std::int32_t priority = 0) {
    BlockFor(name, "told " + name);
    blocked_[name].rooms = rooms;
    Readiness ready = Ready(name, priority);
    auto spec = std::make_shared<GangSpec>(*ready.spec);
    spec->members.emplace_back();
    ready.spec = spec;
    queue_.Put(Ref(name), ready);
  }
  // Plans until the queue has nothing to do; returns the planned gangs in order.
  std::vector<std::string> PlanAll() {
    std::vector<std::string> asked;
    do {
      for (const std::string& name : Plan()) asked.push_back(name);
    } while (queue_.has_active());
    return asked;
  }

  const RoomKinds whole_node_ = RoomKinds{1} << FleetIndex::ChipKey(16);
  const RoomKinds ultra_server_ = RoomKinds{1}
                                  << FleetIndex::BoxKey(*torus::Shape::Create(4, 4, 4));
};

TEST_F(WakingTest, ANodeThatBecomesFreeWakesWhomItMayHelp) {
  Wait("node", whole_node_);
  Wait("ultra", ultra_server_);
  EXPECT_THAT(PlanAll(), ElementsAre("node", "ultra"));
  EXPECT_THAT(PlanAll(), IsEmpty());
  Free(3);
  EXPECT_THAT(PlanAll(), ElementsAre("node"));
  EXPECT_THAT(PlanAll(), IsEmpty());
  Free(0);
  Free(1);
  EXPECT_THAT(PlanAll(), ElementsAre("node"));
  Free(2);
  EXPECT_THAT(PlanAll(), ElementsAre("node", "ultra"));
}

TEST_F(WakingTest, WhatIsTakenWakesNobody) {
  Wait("node", whole_node_);
  PlanAll();
  Free(3);
  PlanAll();
  Take(3);
  EXPECT_THAT(PlanAll(), IsEmpty());
}

TEST_F(WakingTest, TheGangsBehindWhoeverTakesTheRoomStayAsleep) {
  for (int i = 0; i < 1000; ++i) Wait(fmt::format("g{:03}", i), whole_node_);
  EXPECT_EQ(PlanAll().size(), 1000U);
  Free(5);
  blocked_.erase("g000");  // now placed
  const std::vector<std::string> asked = Plan();
  ASSERT_EQ(asked.size(), SchedulingQueue::kWokenMost);
  EXPECT_EQ(asked.front(), "g000");
  Take(5);
  EXPECT_THAT(PlanAll(), IsEmpty());
}

TEST_F(WakingTest, EveryGangThatTheRoomMayHelpIsAskedOnceUntilTheRoomIsGone) {
  for (int i = 0; i < 100; ++i) Wait(fmt::format("g{:03}", i), whole_node_);
  PlanAll();
  Free(5);
  EXPECT_EQ(PlanAll().size(), 100U);
  EXPECT_THAT(PlanAll(), IsEmpty());
}

TEST_F(WakingTest, AGangThatIsAskedAgainInVainKeepsItsReason) {
  Wait("node", whole_node_);
  PlanAll();
  BlockFor("node", "another text", BlockedReason::kNeverFits);
  Free(3);
  EXPECT_THAT(PlanAll(), ElementsAre("node"));
  EXPECT_EQ(queue_.Find(Ref("node"))->message, "told node");
  EXPECT_EQ(queue_.Find(Ref("node"))->reason, GangReason::kWaitsForCapacity);
}

TEST_F(WakingTest, ReasonsComeUpToDateOneASecond) {
  Wait("a", whole_node_);
  Wait("b", ultra_server_);
  PlanAll();
  now_ += std::chrono::seconds(1);
  queue_.RefreshOne(now_);
  PlanAll();
  BlockFor("a", "new a");
  BlockFor("b", "new b");
  Free(3);
  PlanAll();
  EXPECT_EQ(queue_.Find(Ref("a"))->message, "told a");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(queue_.wake().has_value());
    now_ = std::max(now_, *queue_.wake());
    queue_.RefreshOne(now_);
    PlanAll();
  }
  EXPECT_EQ(queue_.Find(Ref("a"))->message, "new a");
  EXPECT_EQ(queue_.Find(Ref("b"))->message, "new b");
}

TEST_F(WakingTest, ANodeOfAKindThatWasNeverSeenWakesEverybody) {
  Wait("never", 0);
  PlanAll();
  cluster_.PutNode(NodeFactsOf({.name = "new", .type = "trn1.32xlarge"}));
  EXPECT_THAT(PlanAll(), ElementsAre("never"));
}

TEST_F(WakingTest, AGangThatNoNodeOfTheDomainAdmitsSleepsOn) {
  Readiness ready = Ready("picky");
  auto spec = std::make_shared<GangSpec>(*ready.spec);
  spec->members.emplace_back();
  spec->members[0].node.all.push_back(
      {.key = "metadata.name", .op = NodeOperator::kIn, .values = {"us-1-n0"}, .field = true});
  ready.spec = spec;
  BlockFor("picky", "told");
  blocked_["picky"].rooms = whole_node_;
  queue_.Put(Ref("picky"), ready);
  PlanAll();
  Free(0);
  EXPECT_THAT(PlanAll(), IsEmpty());
  Free(4);
  EXPECT_THAT(PlanAll(), ElementsAre("picky"));
}

// After any sequence of events, all gangs that are ready, and neither blocked nor backing off, are
// planned, in the order that sorting gives.
TEST_F(SchedulingQueueTest, ThePlannerIsAskedAboutWhatASlowOracleSays) {
  struct Known {
    std::int32_t priority;
    int created;
    bool ready = false;
    bool is_blocked = false;
    MonotonicTime free_at{};
  };
  Rng rng(7);
  std::map<std::string, Known> known;
  for (int step = 0; step < 4000; ++step) {
    const std::string name = fmt::format("g{}", rng.Below(12));
    switch (rng.Below(6)) {
      case 0:
      case 1: {
        const auto priority = static_cast<std::int32_t>(rng.Below(3)) - 1;
        const auto created = static_cast<int>(rng.Below(3));
        queue_.Put(Ref(name), Ready(name, priority, created));
        known[name] = {priority, created, true, false, known[name].free_at};
        break;
      }
      case 2:
        queue_.Put(Ref(name), Waits(GangReason::kWaitingForPods, "m"));
        known[name].ready = known[name].is_blocked = false;
        break;
      case 3:
        queue_.Remove(Ref(name));
        queue_.BackOff(Ref(name), now_, Successors::kPause);
        known[name] = {0, 0, false, false, now_ + Successors::kPause};
        break;
      case 4:
        queue_.OnCapacityFreed();
        for (auto& [other, gang] : known) gang.is_blocked = false;
        break;
      default: {
        now_ += std::chrono::milliseconds(rng.Below(1500));
        for (const GangRef& ref : queue_.DrainTouched(now_)) {  // as Core does: assessed again
          const Known& gang = known[ref.key.name];
          if (gang.ready) {
            queue_.Put(ref, Ready(ref.key.name, gang.priority, gang.created));
          }
        }
        std::vector<std::tuple<int, int, std::string>> expected;
        for (const auto& [other, gang] : known) {
          if (gang.ready && !gang.is_blocked && gang.free_at <= now_) {
            expected.emplace_back(-gang.priority, gang.created, other);
          }
        }
        std::sort(expected.begin(), expected.end());
        blocked_.clear();
        std::vector<std::string> names;
        for (const auto& [priority, created, other] : expected) {
          names.push_back(other);
          if (rng.Below(2) == 0) BlockFor(other, "no room");
          known[other].ready = known[other].is_blocked = blocked_.contains(other);
        }
        ASSERT_EQ(Plan(), names) << "step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace tahoma::controller
