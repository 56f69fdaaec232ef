// Blocked gangs and a planner that is real: no gang sleeps where a place for the gang is.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/queue/scheduling_queue.h"
#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

// A queue with a real planner.
class PlannedWakingTest : public ::testing::Test {
 protected:
  static GangRef RefOf(const GangSpec& gang) { return {gang.key, gang.single_pod}; }
  void Wait(std::shared_ptr<const GangSpec> gang) {
    Readiness ready;
    ready.spec = std::move(gang);
    queue_.Put(RefOf(*ready.spec), ready);
  }
  void Wait(GangSpec gang) { Wait(std::make_shared<const GangSpec>(std::move(gang))); }
  // Plans until the queue has nothing to do; returns how many gangs have got a place.
  int PlanAll() {
    int placed = 0;
    do {
      for (const Planned& planned : queue_.Plan(cluster_, 10, WallTime())) {
        placed += planned.placement ? 1 : 0;
      }
    } while (queue_.has_active());
    return placed;
  }

  ClusterState cluster_;
  Planner planner_;
  SchedulingQueue queue_{
      [this](const ClusterState& view, const Queue& gangs, WallTime now, Explaining explaining) {
        return planner_.Plan(view, gangs, now, explaining);
      }};
};

// The new UltraServer is of the kind that there was, and no node told its name before.
TEST_F(PlannedWakingTest, AGangThatNamesAnUltraServerIsWokenWhenTheUltraServerComes) {
  AddUltraServer(cluster_, "us-0");
  GangSpec gang = GangOf("g", 1, [](const std::string& pod) { return ChipClaim(pod, 16); });
  gang.members[0].claims[0].requests[0].alternatives[0].selectors.emplace_back(
      "device.attributes['tahoma.dev'].ultraserverId == 'us-9'");
  Wait(std::move(gang));
  EXPECT_EQ(PlanAll(), 0);
  AddUltraServer(cluster_, "us-9");
  EXPECT_EQ(PlanAll(), 1);
}

TEST_F(PlannedWakingTest, APodWithoutDevicesIsWokenByANodeWithoutDevices) {
  cluster_.PutNode(
      {.name = "plain", .labels = {}, .taints = {}, .schedulable = false, .devices = {}});
  GangSpec gang = GangOf("g", 1, [](const std::string& pod) { return ChipClaim(pod, 16); });
  gang.members[0].claims.clear();
  Wait(std::move(gang));
  EXPECT_EQ(PlanAll(), 0);
  cluster_.PutNode(
      {.name = "plain", .labels = {}, .taints = {}, .schedulable = true, .devices = {}});
  queue_.OnRoomFreed();
  EXPECT_EQ(PlanAll(), 1);
}

// The gang is woken in vain by the chips of a node that has no cpu left, and then the cpu comes.
TEST_F(PlannedWakingTest, AGangThatLacksRoomWhereChipsCameFreeIsWokenByTheNextPodThatEnds) {
  NodeFacts node = NodeFactsOf({.name = "a"});
  node.allocatable = {{"cpu", 16000}, {"pods", 110}};
  cluster_.PutNode(std::move(node));
  const kube::PodNeeds ten{.amounts = {{"cpu", 10000}, {"pods", 1}}, .ports = {}};
  Holding held;
  held.claim_uid = "held";
  for (int chip = 0; chip < 16; ++chip) {
    held.devices.push_back({.node = "a", .device = fmt::format("neuron-device-{}", chip)});
  }
  cluster_.Hold(std::make_shared<const Holding>(held));
  GangSpec gang = GangOf("g", 1, [](const std::string& pod) { return ChipClaim(pod, 16); });
  gang.members[0].needs = std::make_shared<const kube::PodNeeds>(ten);
  Wait(std::move(gang));
  EXPECT_EQ(PlanAll(), 0);
  cluster_.AddUse("a", ten);
  cluster_.Release("held");
  EXPECT_EQ(PlanAll(), 0);
  cluster_.SubtractUse("a", ten);
  queue_.OnRoomFreed();
  EXPECT_EQ(PlanAll(), 1);
}

// The slices of a kubelet's plugins go when the kubelet starts again, and come back.
TEST_F(PlannedWakingTest, AGangThatCameWhileTheOnlyNodeHadNoDevicesIsWokenWhenTheDevicesReturn) {
  const auto node = NodeFactsOf({.name = "a"});
  cluster_.PutNode(node);
  EXPECT_EQ(PlanAll(), 0);
  const ClusterState snapshot = cluster_;  // of a reader, which keeps the kind of the node alive
  cluster_.PutNode({.name = "a", .labels = {}, .taints = {}, .schedulable = true, .devices = {}});
  Wait(GangOf("g", 1, [](const std::string& pod) { return ChipClaim(pod, 1); }));
  EXPECT_EQ(PlanAll(), 0);
  cluster_.PutNode(node);
  EXPECT_EQ(PlanAll(), 1);
}

// A fleet of a few nodes that come, close, break and go, and gangs that come and end.
class ChangingFleetTest : public PlannedWakingTest {
 protected:
  void ChangeNode() {
    const auto place = static_cast<int>(rng_.Below(7));
    FleetNode node{.name = fmt::format("n{}", place), .cores = rng_.Chance(1, 2)};
    if (place < 4) {
      node.type = "trn2u.48xlarge";
      node.ultra_server = "u";
      node.z = place;
    } else if (place == 6) {
      node.type = rng_.Chance(1, 2) ? "trn2.3xlarge" : "trn1.32xlarge";
    }
    if (rng_.Chance(1, 4)) {
      cluster_.RemoveNode(node.name);
      return;
    }
    if (rng_.Chance(1, 4)) node.broken = static_cast<std::uint16_t>(rng_.Below(1 << 16));
    if (rng_.Chance(1, 4)) node.links_down = {"x+"};
    NodeFacts facts = NodeFactsOf(node);
    facts.schedulable = rng_.Chance(3, 4);
    if (rng_.Chance(1, 4)) facts.devices.clear();
    facts.allocatable = {{"cpu", 1000 * static_cast<std::int64_t>(rng_.Below(3))}, {"pods", 110}};
    cluster_.PutNode(std::move(facts));
    queue_.OnRoomFreed();
  }

  GangSpec RandomGang() {
    const std::string name = fmt::format("g{}", ++gangs_);
    const auto kind = rng_.Below(4);
    const auto pods = static_cast<int>(1 + rng_.Below(3));
    GangSpec gang = GangOf(name, pods, [&](const std::string& pod) {
      if (kind == 0) return CoreClaim(pod, 1 + static_cast<int>(rng_.Below(2)), 1);
      return kind == 1 ? NodeClaim(pod) : ChipClaim(pod, std::int64_t{1} << rng_.Below(5));
    });
    if (kind == 3) {
      const std::string shapes[] = {"1x1", "2x2", "4x4", "4x4x2"};
      const auto shape = rng_.Below(4);
      gang = GangOf(name, shape == 3 ? 2 : 1, [&](const std::string& pod) {
        return ChipClaim(pod, shape == 0 ? 1 : shape == 1 ? 4 : 16);
      });
      gang.shape_text = shapes[shape];
    }
    for (MemberSpec& member : gang.members) {
      member.needs = std::make_shared<const kube::PodNeeds>(kube::PodNeeds{
          .amounts = {{"cpu", 700 * static_cast<std::int64_t>(rng_.Below(3))}, {"pods", 1}},
          .ports = {}});
    }
    return gang;
  }

  // Ends a gang that has a place.
  void EndOne() {
    if (running_.empty()) return;
    const auto chosen = running_.begin() + static_cast<std::ptrdiff_t>(rng_.Below(running_.size()));
    for (const MemberPlacement& member : chosen->members) {
      for (const ClaimPlacement& claim : member.claims) cluster_.Release(claim.uid);
      cluster_.RemovePod(member.pod);
    }
    running_.erase(chosen);
    queue_.OnRoomFreed();
  }

  void ChangeSomething() {
    switch (rng_.Below(4)) {
      case 0:
        waiting_.push_back(std::make_shared<const GangSpec>(RandomGang()));
        Wait(waiting_.back());
        if (waiting_.size() <= 6) break;
        queue_.Remove(RefOf(*waiting_.front()));
        waiting_.erase(waiting_.begin());
        break;
      case 1:
        EndOne();
        break;
      default:
        ChangeNode();
    }
  }

  void PlaceAll() {
    do {
      for (const Planned& planned : queue_.Plan(cluster_, 10, WallTime())) {
        if (!planned.placement) continue;
        std::erase(waiting_, planned.gang);
        for (const auto& holding : planned.placement->Holdings(*planned.gang, WallTime())) {
          cluster_.Hold(holding);
        }
        for (const MemberPlacement& member : planned.placement->members) {
          cluster_.PutPod(member.pod, member.node, member.needs);
        }
        running_.push_back(*planned.placement);
      }
      queue_.See(cluster_);
    } while (queue_.has_active());
  }

  Rng rng_{44};
  int gangs_ = 0;
  std::vector<std::shared_ptr<const GangSpec>> waiting_;
  std::vector<Placement> running_;
};

TEST_F(ChangingFleetTest, WhoeverSleepsHasNoPlaceByAPlannerThatKnowsNothing) {
  for (int step = 0; step < 700; ++step) {
    for (auto events = 1 + rng_.Below(3); events > 0; --events) ChangeSomething();
    PlaceAll();
    for (const auto& gang : waiting_) {
      const Decision alone = Planner().Plan(cluster_, {gang}, WallTime())[0];
      ASSERT_FALSE(alone.placement.has_value())
          << "step " << step << ": " << gang->key.name << " sleeps, and would be placed on "
          << alone.placement->ToString() << "; told: " << queue_.Find(RefOf(*gang))->message;
    }
  }
  EXPECT_GT(gangs_, 250);
}

}  // namespace
}  // namespace tahoma::controller
