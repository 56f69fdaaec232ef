// A question is answered as a core decides that is told of such a gang: where, behind which
// promises, within which limits, and who ends.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/core/facts/asked_gang.h"
#include "controller/core/forecast/what_if.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kType = "trn2.48xlarge";

struct Wanted {
  std::string queue = kDefaultQueue;
  std::int64_t chips = 16;  // of a slice
  int slices = 1;           // pods
  std::int32_t priority = 0;
  bool preemptible = false;
  std::optional<std::chrono::seconds> max_runtime = {};
};

class AskedTest : public ::testing::Test {
 protected:
  AskedTest() {
    world_.api.AddClass();
    for (const char* node : {"node-a", "node-b"}) AddNode(node);
  }
  void AddNode(const std::string& name) {
    world_.api.AddNode(NodeFactsOf({.name = name, .cores = false}));
  }
  void PutQueue(const std::string& name, const std::function<void(QueueSpec&)>& change) {
    world_.api.PutQueue(name, change);
    world_.Settle();
  }
  // A gang with the pods "<name>-0", …
  void Add(const std::string& name, const Wanted& wanted, bool controllers = true) {
    world_.api.AddGang(name, wanted.slices);
    world_.api.ChangeGang(name, [&](GangFact& gang) {
      gang.queue = wanted.queue;
      gang.priority = wanted.priority;
      gang.preemptible = wanted.preemptible;
      gang.chips = wanted.chips;
      gang.slices = wanted.slices;
      gang.max_runtime = wanted.max_runtime;
    });
    for (int i = 0; i < wanted.slices; ++i) {
      world_.api.AddPodWithClaim(fmt::format("{}-{}", name, i), name,
                                 static_cast<int>(wanted.chips));
    }
    ASSERT_TRUE(world_.Settle(3000, controllers));
  }
  bool IsBound(const std::string& name) const {
    const auto pod = world_.api.pods().find(name + "-0");
    return pod != world_.api.pods().end() && !pod->second.node.empty();
  }
  Forecast Ask(const Wanted& wanted) {
    const auto made = GangOfRequest({.members = 0, .chips = wanted.chips}, {"default", "asked"});
    TAHOMA_CHECK_OK(made.status());
    auto gang = std::make_shared<GangSpec>(**made);
    gang->queue = wanted.queue;
    gang->priority = wanted.priority;
    gang->preemptible = wanted.preemptible;
    gang->max_runtime = wanted.max_runtime;
    return what_if_.Ask(*world_.core().snapshot(), gang, world_.Time().wall);
  }
  // Returns what the gang is promised; nullptr for nothing.
  const Promise* PromiseTo(const std::string& name) {
    for (const auto& promise : world_.core().snapshot()->promises) {
      if (promise->gang == GangKey{"default", name}) return promise.get();
    }
    return nullptr;
  }
  // Returns the gangs that ended for the gang.
  std::set<std::string> EndedFor(const std::string& name) const {
    std::set<std::string> ended;
    const std::string by = fmt::format("gang default/{} of priority", name);
    for (const EventNote& event : world_.api.events()) {
      if (event.reason != "GangPreempted" || event.about != EventSubject::kGang) continue;
      if (event.message.find(by) != std::string::npos) ended.insert(event.name);
    }
    return ended;
  }

  World world_{CoreOptions{},
               [planner = std::make_shared<Planner>()](
                   const ClusterState& fleet, const Queue& queue, WallTime now,
                   Explaining explaining) { return planner->Plan(fleet, queue, now, explaining); }};
  WhatIf what_if_;
};

std::set<std::string> NamesOf(const ForeseenVictims& victims) {
  std::set<std::string> names;
  for (const EndingGang& gang : victims.gangs) names.insert(gang.ref.key.name);
  return names;
}

TEST_F(AskedTest, AQueueAtItsLimitDeniesTheQuestionInTheSameWords) {
  PutQueue("research", [](QueueSpec& queue) { queue.limit[kType] = 16; });
  Add("first", {.queue = "research", .chips = 8, .max_runtime = hours(2)});
  const Forecast forecast = Ask({.queue = "research", .chips = 16});
  EXPECT_EQ(forecast.queue, "research");
  EXPECT_EQ(forecast.by_queue, GangReason::kQueueLimit);
  EXPECT_EQ(forecast.blocked->message,
            "16 chips of trn2.48xlarge more: queue research holds 8 of at most 16");
  ASSERT_TRUE(forecast.earliest.has_value()) << "the first gang ends in two hours";
  EXPECT_GE(forecast.earliest->when, world_.Time().wall + minutes(100));
  EXPECT_TRUE(Ask({.queue = "research", .chips = 8}).now.has_value());
  EXPECT_FALSE(forecast.victims.has_value()) << "nobody ends for a limit";
  Add("second", {.queue = "research"});
  EXPECT_FALSE(IsBound("second"));
}

TEST_F(AskedTest, AnotherQueueWithRoomIsTheCheapestChange) {
  PutQueue("full", [](QueueSpec& queue) { queue.limit[kType] = 0; });
  PutQueue("open", [](QueueSpec&) {});
  PutQueue("closed", [](QueueSpec& queue) { queue.namespaces = {"elsewhere"}; });
  const Forecast forecast = Ask({.queue = "full"});
  ASSERT_TRUE(forecast.change.has_value());
  EXPECT_EQ(forecast.change->kind, ChangeKind::kQueue);
  EXPECT_EQ(forecast.change->value, "default") << "which takes all namespaces";
  const Forecast refused = Ask({.queue = "closed"});
  EXPECT_EQ(refused.by_queue, GangReason::kQueueNotAllowed);
  EXPECT_EQ(refused.change->kind, ChangeKind::kQueue);
  EXPECT_EQ(Ask({.queue = "none"}).by_queue, GangReason::kQueueUnknown);
}

TEST_F(AskedTest, AFullQueueIsNotEntered) {
  PutQueue("short", [](QueueSpec& queue) {
    queue.limit[kType] = 0;
    queue.most_waiting = 1;
  });
  Add("waits", {.queue = "short"});
  EXPECT_EQ(Ask({.queue = "short"}).by_queue, GangReason::kQueueFull);
}

TEST_F(AskedTest, FewerChipsThatFitAreOfferedAndWaitingALittleIsCheaper) {
  Add("long", {.chips = 16, .max_runtime = hours(100)});
  Add("half", {.chips = 8, .max_runtime = hours(100)});
  const Forecast forecast = Ask({.chips = 16});
  ASSERT_TRUE(forecast.change.has_value());
  EXPECT_EQ(forecast.change->kind, ChangeKind::kChips);
  EXPECT_EQ(forecast.change->value, "8");
  EXPECT_THAT(forecast.change->message, HasSubstr("ask for 8 chips instead of 16"));
  world_.MoveTo(world_.Time().wall + hours(99));
  EXPECT_EQ(Ask({.chips = 16}).change->kind, ChangeKind::kWait) << "an hour of 24";
}

TEST_F(AskedTest, AShorterRunTimeGoesBeforeAPromise) {
  Add("left", {.chips = 16, .max_runtime = hours(10)});
  Add("holder", {.chips = 16, .slices = 2, .priority = 10});
  ASSERT_FALSE(IsBound("holder"));
  const Forecast forecast = Ask({.chips = 16, .max_runtime = hours(12)});
  EXPECT_FALSE(forecast.now.has_value()) << "node-b is promised in ten hours";
  ASSERT_TRUE(forecast.change.has_value());
  EXPECT_EQ(forecast.change->kind, ChangeKind::kMaxRuntime);
  EXPECT_EQ(forecast.change->value, "9h59m");
  EXPECT_TRUE(Ask({.chips = 16, .max_runtime = hours(9)}).now.has_value());
  EXPECT_TRUE(Ask({.chips = 16, .priority = 20}).now.has_value()) << "it is served before";
}

TEST_F(AskedTest, TheGangsThatWouldEndAreThoseThatEnd) {
  Add("low", {.chips = 16, .priority = -10, .preemptible = true});
  Add("lower", {.chips = 16, .priority = -20, .preemptible = true});
  const Forecast forecast = Ask({.chips = 16, .priority = 5});
  ASSERT_TRUE(forecast.victims.has_value() && forecast.victims->placement.has_value());
  EXPECT_EQ(NamesOf(*forecast.victims), std::set<std::string>{"lower"});
  EXPECT_EQ(forecast.change->kind, ChangeKind::kPreempt);
  EXPECT_THAT(Ask({.chips = 16, .priority = -30}).victims->why,
              HasSubstr("no preemptible gang has a lower priority"));
  Add("high", {.chips = 16, .priority = 5});
  EXPECT_EQ(EndedFor("high"), std::set<std::string>{"lower"});
}

// Random gangs in random queues: each is asked about before the core is told of it.
TEST_F(AskedTest, EachAnswerIsWhatTheCoreThenDoes) {
  int fits = 0, denied = 0, ended = 0, blocked = 0, promised = 0;
  std::set<std::string> there;  // queues
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    world_.api.AddNode(NodeFactsOf({.name = fmt::format("node-{}", seed), .cores = false}));
    const bool by_queue = seed % 3 != 0;
    for (const char* queue : {"a", "b", "c"}) {
      if (!by_queue) {
        if (there.erase(queue) > 0) world_.api.RemoveQueue(queue);
        continue;
      }
      there.insert(queue);
      world_.api.PutQueue(queue, [&](QueueSpec& spec) {
        if (rng.Chance(1, 2)) spec.guaranteed[kType] = static_cast<std::int64_t>(rng.Below(33));
        if (rng.Chance(1, 3)) spec.limit[kType] = 32 + static_cast<std::int64_t>(rng.Below(33));
        if (rng.Chance(1, 4)) spec.lending_limit[kType] = 0;
        if (rng.Chance(1, 5)) spec.most_running = 3;
        if (spec.guaranteed.empty()) spec.lending_limit.clear();
      });
    }
    ASSERT_TRUE(world_.Settle());
    for (int i = 0; i < 16; ++i) {
      const std::string name = fmt::format("g-{}-{}", seed, i);
      const Wanted wanted{
          .queue = by_queue ? std::string(1, static_cast<char>('a' + rng.Below(3))) : "default",
          .chips = std::int64_t{1} << (1 + rng.Below(4)),
          .priority = static_cast<std::int32_t>(rng.Below(4)) * 10,
          .preemptible = rng.Chance(2, 3),
          .max_runtime = rng.Chance(1, 2)
                             ? std::optional<std::chrono::seconds>(hours(1 + rng.Below(20)))
                             : std::nullopt};
      const Forecast forecast = Ask(wanted);
      Add(name, wanted);
      const std::set<std::string> victims = EndedFor(name);
      ASSERT_EQ(forecast.now.has_value(), IsBound(name) && victims.empty())
          << name << " " << (forecast.blocked ? forecast.blocked->message : "");
      fits += forecast.now ? 1 : 0;
      denied += forecast.by_queue ? 1 : 0;
      const bool ends = forecast.victims && forecast.victims->placement;
      ended += ends ? 1 : 0;
      blocked += forecast.blocked && !ends ? 1 : 0;
      ASSERT_EQ(ends ? NamesOf(*forecast.victims) : std::set<std::string>(), victims) << name;
      const Promise* promise = PromiseTo(name);
      if (forecast.earliest && forecast.earliest->exact && !forecast.by_queue && !ends) {
        ASSERT_NE(promise, nullptr) << name;
        // Promises do not look at the limits of queues: the question does.
        EXPECT_LE(promise->from - forecast.earliest->when, minutes(2)) << name;
        if (!by_queue) {
          EXPECT_LE(forecast.earliest->when - promise->from, minutes(2)) << name;
        }
        ++promised;
      }
      if (rng.Chance(1, 4)) world_.MoveTo(world_.Time().wall + hours(rng.Below(6)));
    }
  }
  EXPECT_GT(fits, 20);
  EXPECT_GT(denied, 5);
  EXPECT_GT(ended, 10);
  EXPECT_GT(blocked, 20);
  EXPECT_GT(promised, 3);
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

TEST_F(AskedTest, AskingChangesNothing) {
  PutQueue("a", [](QueueSpec& queue) { queue.limit[kType] = 24; });
  Add("one", {.queue = "a", .chips = 16, .preemptible = true});
  const auto before = world_.core().snapshot();
  ASSERT_NE(before->cluster, nullptr);
  const auto used = before->cluster->Count();
  ASSERT_NE(before->queues.Find(std::string("a")), nullptr);
  const QueueView queue = **before->queues.Find(std::string("a"));
  const std::vector<Forecast> first = {Ask({.queue = "a"}), Ask({.chips = 16}),
                                       Ask({.priority = 9})};
  ASSERT_TRUE(first[0].blocked.has_value());
  ASSERT_TRUE(first[1].now.has_value()) << first[1].blocked->message;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Ask({.queue = "a"}).blocked->message, first[0].blocked->message);
    EXPECT_EQ(Ask({.chips = 16}).now->decision.pods, first[1].now->decision.pods);
  }
  EXPECT_EQ(world_.core().snapshot(), before);
  EXPECT_EQ(before->cluster->Count().free, used.free);
  EXPECT_EQ(**before->queues.Find(std::string("a")), queue);
}

}  // namespace
}  // namespace tahoma::controller
