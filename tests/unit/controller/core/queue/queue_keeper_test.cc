// Gangs in queues, by a whole core: which queue, limits, turns, use that survives every crash.

#include "controller/core/queue/queue_keeper.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/core/journal/block_record.h"
#include "controller/core/journal/record.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr const char* kWorldType = "trn2.48xlarge";

const GangView& ViewOfPod(World& world, const std::string& pod) {
  const auto* view = world.core().snapshot()->gangs.Find(GangRef{{"default", pod}, true});
  EXPECT_NE(view, nullptr) << pod;
  return **view;
}

const QueueView& ViewOfQueue(World& world, const std::string& name) {
  const auto* view = world.core().snapshot()->queues.Find(name);
  EXPECT_NE(view, nullptr) << name;
  return **view;
}

// A pod of its own that names the queue with the label of Kueue.
void AddPodOf(World& world, const std::string& name, const std::string& queue, int chips) {
  world.api.AddPodWithClaim(name, "", chips);
  world.api.ChangePod(name, [&](PodFact& pod) {
    pod.labels = {{"kueue.x-k8s.io/queue-name", queue}};
  });
}

void PutQueue(
    World& world, const std::string& name,
    const std::function<void(QueueSpec&)>& change = [](QueueSpec&) {}) {
  world.api.PutQueue(name, [&](QueueSpec& spec) {
    spec.kueue_names = {name};
    change(spec);
  });
}

std::vector<std::string> BoundNames(World& world) {
  std::vector<std::string> names;
  for (const auto& [name, pod] : world.api.pods()) {
    if (!pod.node.empty() && !pod.finished) names.push_back(name);
  }
  return names;
}

void Finish(World& world, const std::string& pod) {
  world.api.FinishPod(pod, true);
  world.Settle();
}

std::function<void(QueueSpec&)> Limit(std::int64_t chips) {
  return [=](QueueSpec& spec) { spec.limit[kWorldType] = chips; };
}

TEST(QueueKeeperTest, AQueueHoldsNoMoreThanItsLimitAndGoesOnWhenItHoldsLess) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "small", Limit(6));
  for (const char* name : {"p1", "p2", "p3"}) AddPodOf(world, name, "small", 3);
  AddPodOf(world, "other", "", 3);
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("other", "p1", "p2"));
  EXPECT_EQ(ViewOfPod(world, "p3").reason, GangReason::kQueueLimit);
  EXPECT_EQ(ViewOfPod(world, "p3").message,
            "3 chips of trn2.48xlarge more: queue small holds 6 of at most 6");
  EXPECT_EQ(ViewOfQueue(world, "small").held, (ChipCounts{{kWorldType, 6}}));
  EXPECT_EQ(ViewOfQueue(world, "small").waiting, 1);
  EXPECT_EQ(ViewOfQueue(world, "small").running, 2);
  const std::uint64_t plans = world.core().snapshot()->counters.plans;
  world.MoveTo(world.Time().wall + hours(1));
  EXPECT_EQ(world.core().snapshot()->counters.plans, plans) << "nobody looks again meanwhile";
  Finish(world, "p1");
  EXPECT_THAT(BoundNames(world), ElementsAre("other", "p2", "p3"));
}

TEST(QueueKeeperTest, AHigherLimitLetsGangsStart) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "small", Limit(0));
  AddPodOf(world, "p", "small", 3);
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre());
  PutQueue(world, "small", Limit(3));
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("p"));
}

TEST(QueueKeeperTest, QueuesTakeTurnsByWhatTheyHold) {
  World world;
  world.api.AddNode("node-a", 4);
  PutQueue(world, "a");
  PutQueue(world, "b");
  for (int i = 0; i < 8; ++i) AddPodOf(world, fmt::format("a{}", i), "a", 1);
  for (int i = 0; i < 8; ++i) AddPodOf(world, fmt::format("b{}", i), "b", 1);
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("a0", "a1", "b0", "b1"));
  Finish(world, "b0");
  EXPECT_THAT(BoundNames(world), ElementsAre("a0", "a1", "b1", "b2"));
  Finish(world, "a0");
  EXPECT_THAT(BoundNames(world), ElementsAre("a1", "a2", "b1", "b2"));
}

// Forty gangs of one queue do not use up all the looks at freed hardware when the other's turn
// comes.
TEST(QueueKeeperTest, FreedHardwareGoesToTheQueueWhoseTurnItIs) {
  World world;
  world.api.AddNode("node-a", 2);
  PutQueue(world, "a");
  PutQueue(world, "z");
  AddPodOf(world, "first", "a", 2);
  world.Settle();
  for (int i = 0; i < 40; ++i) AddPodOf(world, fmt::format("a{:02}", i), "a", 2);
  world.Settle();
  AddPodOf(world, "z0", "z", 2);
  world.Settle();
  Finish(world, "first");
  EXPECT_THAT(BoundNames(world), ElementsAre("z0"));
}

TEST(QueueKeeperTest, GangsOfQueuesThatTheyMayNotUseSayWhy) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "theirs", [](QueueSpec& spec) { spec.namespaces = {"team-a"}; });
  PutQueue(world, "orphan", [](QueueSpec& spec) { spec.parent = "gone"; });
  AddPodOf(world, "not-mine", "theirs", 1);
  AddPodOf(world, "in-trouble", "orphan", 1);
  world.api.AddGang("named", 1);
  world.api.ChangeGang("named", [](GangFact& gang) { gang.queue = "absent"; });
  world.api.AddPodWithClaim("named-0", "named", 1);
  AddPodOf(world, "well", "", 1);
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("well"));
  EXPECT_EQ(ViewOfPod(world, "not-mine").reason, GangReason::kQueueNotAllowed);
  EXPECT_EQ(ViewOfPod(world, "not-mine").message,
            "queue theirs is not for namespace default (spec.namespaces)");
  EXPECT_EQ(ViewOfPod(world, "in-trouble").reason, GangReason::kQueueInvalid);
  const auto* named = world.core().snapshot()->gangs.Find(GangRef{{"default", "named"}, false});
  EXPECT_EQ((*named)->reason, GangReason::kQueueUnknown);
  EXPECT_EQ((*named)->message, "queue absent does not exist");
  world.api.PutQueue("absent", [](QueueSpec&) {});
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("named-0", "well"));
}

TEST(QueueKeeperTest, GangsThatNameNoQueueWaitInThatOfTheirNamespace) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "research", [](QueueSpec& spec) { spec.default_for = {"default"}; });
  AddPodOf(world, "p", "", 2);
  world.Settle();
  EXPECT_EQ(ViewOfQueue(world, "research").running, 1);
  EXPECT_EQ(world.core().snapshot()->queues.Find(kDefaultQueue), nullptr) << "nothing is in it";
}

TEST(QueueKeeperTest, AQueueGivesItsRunTimeToGangsWithoutOne) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "short", [](QueueSpec& spec) {
    spec.default_max_runtime = minutes(30);
    spec.max_runtime = hours(1);
  });
  AddPodOf(world, "p", "short", 2);
  AddPodOf(world, "long", "short", 2);
  world.api.ChangePod("long", [](PodFact& pod) { pod.max_runtime = hours(2); });
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("p"));
  EXPECT_EQ(ViewOfPod(world, "p").decision->max_runtime, minutes(30));
  EXPECT_EQ(ViewOfPod(world, "long").reason, GangReason::kQueueNotAllowed);
  EXPECT_THAT(ViewOfPod(world, "long").message, HasSubstr("maxRuntime of 7200 s"));
}

TEST(QueueKeeperTest, AHeldQueueStartsNothingAndADrainedOneEndsWhatRuns) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "a");
  AddPodOf(world, "p", "a", 2);
  world.Settle();
  PutQueue(world, "a", [](QueueSpec& spec) { spec.stop = QueueStop::kHold; });
  AddPodOf(world, "q", "a", 2);
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("p"));
  EXPECT_EQ(ViewOfPod(world, "q").reason, GangReason::kQueueStopped);
  PutQueue(world, "a", [](QueueSpec& spec) { spec.stop = QueueStop::kDrain; });
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre());
  EXPECT_TRUE(ViewOfQueue(world, "a").held.empty());
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangPreempted), 1);
  PutQueue(world, "a");
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("q"));
}

TEST(QueueKeeperTest, NoMoreGangsWaitThanMayWait) {
  World world;
  world.api.AddNode("node-a", 1);
  PutQueue(world, "a", [](QueueSpec& spec) { spec.most_waiting = 2; });
  for (int i = 0; i < 4; ++i) {
    AddPodOf(world, fmt::format("p{}", i), "a", 1);
    world.Settle();
  }
  EXPECT_THAT(BoundNames(world), ElementsAre("p0"));
  EXPECT_EQ(ViewOfQueue(world, "a").waiting, 2);
  EXPECT_EQ(ViewOfPod(world, "p3").reason, GangReason::kQueueFull);
  EXPECT_EQ(ViewOfPod(world, "p3").message, "2 gangs wait in queue a already (spec.maxWaiting)");
  Finish(world, "p0");
  EXPECT_THAT(BoundNames(world), ElementsAre("p1"));
  EXPECT_EQ(ViewOfPod(world, "p3").reason, GangReason::kWaitsForCapacity);
  EXPECT_EQ(ViewOfQueue(world, "a").waiting, 2);
}

TEST(QueueKeeperTest, AQueueThatIsDeletedKeepsTheChipsOfItsGangs) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "top", Limit(8));
  PutQueue(world, "a", [](QueueSpec& spec) { spec.parent = "top"; });
  AddPodOf(world, "p", "a", 5);
  world.Settle();
  EXPECT_EQ(ViewOfQueue(world, "top").held, (ChipCounts{{kWorldType, 5}}));
  world.api.RemoveQueue("a");
  world.Settle();
  EXPECT_EQ(ViewOfQueue(world, "a").spec, nullptr);
  EXPECT_EQ(ViewOfQueue(world, "a").running, 1);
  EXPECT_TRUE(ViewOfQueue(world, "top").held.empty());
  Finish(world, "p");
  EXPECT_EQ(world.core().snapshot()->queues.Find("a"), nullptr);
}

TEST(QueueKeeperTest, TheFirstQueueCountsWhatRunsAlready) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("p", "", 3);
  world.Settle();
  EXPECT_EQ(world.core().snapshot()->queues.size(), 0U);
  world.api.PutQueue(kDefaultQueue, Limit(4));
  world.api.AddPodWithClaim("q", "", 3);
  world.Settle();
  EXPECT_EQ(ViewOfQueue(world, kDefaultQueue).held, (ChipCounts{{kWorldType, 3}}));
  EXPECT_THAT(BoundNames(world), ElementsAre("p"));
  world.api.RemoveQueue(kDefaultQueue);
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("p", "q"));
  EXPECT_EQ(world.core().snapshot()->queues.size(), 0U);
}

// Returns how many chips the records say are held, of gangs that were decided.
double ChipsDecided(Journal& journal) {
  std::map<RunId, std::shared_ptr<const GangDecision>> runs;
  std::set<std::pair<RunId, std::uint32_t>> released;
  TAHOMA_CHECK_OK(journal.Load([&](Sequence at, std::string_view bytes) {
    if (IsBlockEntry(bytes) || IsUsageEntry(bytes)) return absl::OkStatus();
    const Record record = *DecodeRecord(bytes);
    if (const auto* prepared = std::get_if<GangPrepared>(&record)) runs[at] = prepared->decision;
    if (const auto* one = std::get_if<ClaimReleased>(&record)) {
      released.emplace(one->run, one->claim);
    }
    return absl::OkStatus();
  }));
  double chips = 0;
  for (const auto& [id, decision] : runs) {
    for (std::uint32_t i = 0; i < decision->claims.size(); ++i) {
      if (released.contains({id, i})) continue;
      chips += static_cast<double>(decision->claims[i].allocation.results.size());
    }
  }
  return chips;
}

// The decayed use, as the journal says step by step what is held.
class UseOracle {
 public:
  UseOracle(World& world, std::chrono::seconds half_life) : world_(world), half_life_(half_life) {
    world.on_writes = [this](const auto&) {
      ChipHours();
      chips_ = ChipsDecided(world_.journal);
    };
  }
  double ChipHours() {
    const WallTime now = world_.Time().wall;
    const double half_lives = std::chrono::duration<double>(now - then_).count() /
                              static_cast<double>(half_life_.count());
    const double kept = std::exp2(-half_lives);
    average_ = average_ * kept + chips_ * (1 - kept);
    then_ = now;
    return average_ * static_cast<double>(half_life_.count()) / 3600 / std::log(2.0);
  }

 private:
  World& world_;
  const std::chrono::seconds half_life_;
  double chips_ = 0;
  double average_ = 0;
  WallTime then_{};
};

TEST(QueueKeeperTest, UseIsNeitherLostNorCountedTwiceWhereverTheProgramDies) {
  int crashes = 0;
  for (int crash = 1; !HasFailure(); ++crash) {
    SCOPED_TRACE(fmt::format("dies at step {}", crash));
    World world;
    UseOracle oracle(world, hours(2));
    world.crash_after = crash;
    bool died = false;
    const auto settle = [&] {
      if (world.Settle()) return;
      died = true;
      world.crash_after = 0;
      world.Start();
      world.MoveTo(world.Time().wall + minutes(1));
    };
    world.api.PutQueue("top", [](QueueSpec& spec) { spec.half_life = hours(2); });
    world.api.PutQueue("a", [](QueueSpec& spec) {
      spec.parent = "top";
      spec.default_for = {"default"};
      spec.limit[kWorldType] = 24;
    });
    AddGangOfTwo(world.api);
    world.api.AddPodWithClaim("alone", "", 4);
    settle();
    settle();
    ASSERT_EQ(BoundPods(world.api), 3);
    ASSERT_EQ(ViewOfQueue(world, "top").held, (ChipCounts{{kWorldType, 24}}));
    world.MoveTo(world.Time().wall + minutes(25));
    world.api.FinishPod("train-0", true);
    settle();
    world.MoveTo(world.Time().wall + minutes(3));
    for (const char* pod : {"train-1", "alone"}) world.api.FinishPod(pod, true);
    settle();
    settle();
    world.MoveTo(world.Time().wall + minutes(2));
    for (const char* name : {"a", "top"}) {
      const QueueView& view = ViewOfQueue(world, name);
      EXPECT_TRUE(view.held.empty());
      EXPECT_EQ(view.running, 0);
      EXPECT_NEAR(view.used_chip_hours, oracle.ChipHours(), 0.2) << name;
    }
    EXPECT_GT(oracle.ChipHours(), 5);
    if (!died) break;
    ++crashes;
  }
  EXPECT_GT(crashes, 20);
}

TEST(QueueKeeperTest, AQueueIsNeverOverItsLimitWhereverTheProgramDies) {
  int crashes = 0;
  for (int crash = 1; !HasFailure(); ++crash) {
    SCOPED_TRACE(fmt::format("dies at step {}", crash));
    World world;
    double most = 0;
    world.on_writes = [&](const auto&) { most = std::max(most, ChipsDecided(world.journal)); };
    world.crash_after = crash;
    bool died = false;
    const auto settle = [&] {
      if (world.Settle()) return;
      died = true;
      world.crash_after = 0;
      world.Start();
      world.MoveTo(world.Time().wall + minutes(1));
    };
    world.api.AddNode("node-a");
    PutQueue(world, "top", Limit(7));
    PutQueue(world, "a", [](QueueSpec& spec) { spec.parent = "top"; });
    PutQueue(world, "b", [](QueueSpec& spec) { spec.parent = "top"; });
    for (const char* name : {"a1", "a2", "b1", "b2"}) AddPodOf(world, name, {name[0]}, 3);
    settle();
    settle();
    ASSERT_THAT(BoundNames(world), ElementsAre("a1", "b1"));
    world.api.FinishPod("a1", true);
    settle();
    settle();
    EXPECT_THAT(BoundNames(world), ElementsAre("a2", "b1"));
    EXPECT_EQ(ViewOfQueue(world, "top").held, (ChipCounts{{kWorldType, 6}}));
    EXPECT_LE(most, 7);
    if (!died) break;
    ++crashes;
  }
  EXPECT_GT(crashes, 10);
}

// The first gang was charged when the second was denied a start, and then found no place.
TEST(QueueKeeperTest, AGangWithoutAPlaceKeepsNobodyFromStarting) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "a", [](QueueSpec& spec) { spec.most_running = 1; });
  AddPodOf(world, "a-large", "a", 100);
  AddPodOf(world, "b-small", "a", 3);
  AddPodOf(world, "c-small", "a", 3);
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("b-small"));
  EXPECT_EQ(ViewOfPod(world, "c-small").reason, GangReason::kQueueLimit);
  Finish(world, "b-small");
  EXPECT_THAT(BoundNames(world), ElementsAre("c-small"));
}

// The pod that joins a gang takes chips of the gang's queue.
TEST(QueueKeeperTest, AGangGrowsNoFurtherThanItsQueueMayHold) {
  World world;
  world.api.AddNode("node-a");
  PutQueue(world, "a", Limit(5));
  world.api.AddGang("train", 3);
  world.api.ChangeGang("train", [](GangFact& gang) {
    gang.min_members = 1;
    gang.queue = "a";
  });
  world.api.AddPodWithClaim("train-0", "train", 2);
  world.Settle();
  for (const char* pod : {"train-1", "train-2"}) world.api.AddPodWithClaim(pod, "train", 2);
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("train-0", "train-1"));
  EXPECT_EQ(ViewOfQueue(world, "a").held, (ChipCounts{{kWorldType, 4}}));
  EXPECT_EQ(ViewOfQueue(world, "a").running, 1);
  PutQueue(world, "a", Limit(6));
  world.Settle();
  EXPECT_THAT(BoundNames(world), ElementsAre("train-0", "train-1", "train-2"));
}

}  // namespace
}  // namespace tahoma::controller
