// Storms of preemption from reports about other schedulers, replayed in a core with all parts. A
// test has the name of the report, and says the outcome here.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/core/queue/preemption.h"
#include "controller/plan/planner.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::minutes;
using ::testing::IsEmpty;

// Gangs whose Job makes new pods for pods that were ended, at once.
class StormsTest : public ::testing::Test {
 protected:
  StormsTest()
      : world_({},
               [planner = std::make_shared<Planner>()](const ClusterState& view, const Queue& queue,
                                                       WallTime now, Explaining explaining) {
                 return planner->Plan(view, queue, now, explaining);
               }) {
    world_.api.AddClass();
  }

  void AddNodes(int count) {
    for (int i = 0; i < count; ++i) world_.api.AddNode(fmt::format("node-{}", i));
  }
  // A queue with so many chips of its own.
  void AddQueue(const std::string& name, std::int64_t guaranteed) {
    world_.api.PutQueue(name, [&](QueueSpec& queue) {
      if (guaranteed > 0) queue.guaranteed["trn2.48xlarge"] = guaranteed;
    });
  }

  struct Job {
    int pods = 1;
    int chips = 0;  // of each pod
    int made = 0;   // pods
  };
  // A preemptible gang of that queue.
  void Add(
      const std::string& name, const std::string& queue, Job job,
      const std::function<void(GangFact&)>& change = [](GangFact&) {}) {
    world_.api.AddGang(name, job.pods);
    world_.api.ChangeGang(name, [&](GangFact& gang) {
      gang.queue = queue;
      gang.preemptible = true;
      gang.created = world_.Time().wall;
      change(gang);
    });
    jobs_[name] = job;
    for (int i = 0; i < 40; ++i) {
      MakePods();
      (void)world_.Settle(4);
    }
    Settle();
  }
  // Makes the pods that the jobs lack.
  void MakePods() {
    for (auto& [name, job] : jobs_) {
      for (int live = LivePods(name); live < job.pods; ++live) {
        world_.api.AddPodWithClaim(fmt::format("{}-{}", name, job.made++), name, job.chips);
      }
    }
  }
  int LivePods(const std::string& gang) const { return CountPods(gang, /*bound_only=*/false); }
  int BoundPodsOf(const std::string& gang) const { return CountPods(gang, /*bound_only=*/true); }
  void Settle(bool controllers = true) { ASSERT_TRUE(world_.Settle(3000, controllers)); }
  // Lets three hours pass. New pods come as soon as some pods have ended.
  void LetHoursPass() {
    for (int minute = 0; minute < 180; ++minute) {
      world_.MoveTo(world_.Time().wall + minutes(1));
      for (int i = 0; i < 20; ++i) {
        MakePods();
        (void)world_.Settle(4);
      }
      Settle();
    }
  }
  std::ptrdiff_t Preempted() const { return EventsOf(world_.api, EventReason::kGangPreempted); }

  World world_;

 private:
  int CountPods(const std::string& gang, bool bound_only) const {
    int count = 0;
    for (const auto& [name, pod] : world_.api.pods()) {
      if (pod.gang == gang && !pod.finished && (!bound_only || !pod.node.empty())) ++count;
    }
    return count;
  }

  std::map<std::string, Job> jobs_;
};

// Two queues of equal shares: four gangs of one fill the fleet, then gangs of 6, 5, 4 and 3 parts
// of eight come in the other. The gang of 4 got nothing, and the gang of 3 ended others for ever.
TEST_F(StormsTest, Kueue7101AShareIsTakenBackOnceAndNothingBeyondTheShare) {
  AddNodes(1);
  AddQueue("proj-1", 8);
  AddQueue("proj-2", 8);
  for (int i = 0; i < 4; ++i) Add(fmt::format("first-{}", i), "proj-1", {.pods = 2, .chips = 2});
  Add("six", "proj-2", {.pods = 6, .chips = 2});
  Add("five", "proj-2", {.pods = 5, .chips = 2});
  EXPECT_EQ(Preempted(), 0) << "more than the share";
  Add("four", "proj-2", {.pods = 4, .chips = 2});
  EXPECT_EQ(BoundPodsOf("four"), 4);
  EXPECT_EQ(Preempted(), 2);
  Add("three", "proj-2", {.pods = 3, .chips = 2});
  LetHoursPass();
  EXPECT_EQ(Preempted(), 2);
  EXPECT_EQ(BoundPodsOf("four"), 4);
  EXPECT_EQ(BoundPodsOf("three"), 0);
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

// A gang that fits nowhere stands before the preemptor. Victims that had ended went before both
// gangs, and came back to the old place.
TEST_F(StormsTest, Kueue7157AGangThatFitsNowhereDoesNotLetVictimsComeBack) {
  AddNodes(2);
  AddQueue("owner", 32);
  AddQueue("guest", 0);
  Add("early", "guest", {.chips = 16});
  Add("late", "guest", {.chips = 16});
  Add("huge", "owner", {.pods = 3, .chips = 16}, [](GangFact& gang) { gang.priority = 10; });
  EXPECT_EQ(Preempted(), 0);
  world_.api.AddGang("claims", 2);
  world_.api.ChangeGang("claims", [](GangFact& gang) { gang.queue = "owner"; });
  for (const char* pod : {"claims-0", "claims-1"}) world_.api.AddPodWithClaim(pod, "claims", 16);
  Settle(/*controllers=*/false);
  EXPECT_EQ(Preempted(), 2);
  // The early victim has gone and is back before the other has ended.
  world_.api.FinishPod("early-0", false);
  Settle(/*controllers=*/false);
  for (int again = 0; again < 5; ++again) {
    const std::string pod = fmt::format("early-again-{}", again);
    world_.api.AddPodWithClaim(pod, "early", 16);
    Settle(/*controllers=*/false);
    EXPECT_EQ(world_.api.pods().at(pod).node, "");
    world_.api.DeletePod(pod);
    Settle(/*controllers=*/false);
  }
  Settle();
  LetHoursPass();
  EXPECT_EQ(BoundPodsOf("claims"), 2);
  EXPECT_EQ(BoundPodsOf("huge"), 0);
  EXPECT_EQ(Preempted(), 2);
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

// A queue far beyond its share ended gangs of a queue within its share, because all victims had
// places elsewhere. The victims lost their work for a request of an eighth of their size.
TEST_F(StormsTest, Kai1565AQueueBeyondItsShareEndsNobodyEvenWhereVictimsFitElsewhere) {
  AddNodes(3);
  AddQueue("over", 4);
  AddQueue("within", 40);
  const auto urgent = [](GangFact& gang) { gang.priority = 1000; };
  Add("over-runs", "over", {.chips = 12}, urgent);
  Add("within-0", "within", {.chips = 12});
  Add("within-1", "within", {.chips = 12});
  // Four chips are free on each node: none has eight, and each smaller gang could move.
  Add("over-more", "over", {.chips = 8}, urgent);
  LetHoursPass();
  EXPECT_EQ(Preempted(), 0);
  EXPECT_EQ(BoundPodsOf("over-more"), 0);
  EXPECT_EQ(BoundPodsOf("within-0") + BoundPodsOf("within-1"), 2);
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

// Two gangs of at least one pod and at most five, in two queues, on hardware for four pods: each
// gang ended the other for further pods.
TEST_F(StormsTest, Volcano3869GangsThatMayHaveMorePodsDoNotTakeThemFromEachOther) {
  AddNodes(1);
  AddQueue("left", 8);
  AddQueue("right", 8);
  const auto elastic = [](GangFact& gang) { gang.min_members = 1; };
  Add("left-job", "left", {.pods = 5, .chips = 4}, elastic);
  EXPECT_EQ(BoundPodsOf("left-job"), 4);
  Add("right-job", "right", {.pods = 5, .chips = 4}, elastic);
  LetHoursPass();
  EXPECT_EQ(Preempted(), 1) << "the share of the second queue is taken back once";
  EXPECT_GE(BoundPodsOf("left-job"), 1);
  EXPECT_GE(BoundPodsOf("right-job"), 1);
  EXPECT_EQ(BoundPodsOf("left-job") + BoundPodsOf("right-job"), 4);
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

}  // namespace
}  // namespace tahoma::controller
