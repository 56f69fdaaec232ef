// Random fleets and queues: what must hold of every plan, checked by slow means.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/core/queue/scheduling_queue.h"
#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

const std::vector<std::string> kShapes = {"1x1", "1x2",   "2x2",   "1x4",   "2x4",
                                          "4x4", "4x4x2", "2x2x2", "2x4x4", "4x4x4"};

ClusterState RandomCluster(Rng& rng) {
  ClusterState state;
  const int ultras = static_cast<int>(rng.Below(3));
  for (int u = 0; u < ultras; ++u) {
    for (int z = 0; z < 4; ++z) {
      FleetNode node{.name = "u" + std::to_string(u) + "n" + std::to_string(z),
                     .type = "trn2u.48xlarge",
                     .ultra_server = "u" + std::to_string(u),
                     .z = z,
                     .cores = false};
      if (rng.Chance(1, 4)) node.broken = static_cast<std::uint16_t>(1U << rng.Below(16));
      if (rng.Chance(1, 4)) {
        node.links_down.resize(16);
        node.links_down[rng.Below(16)] = rng.Chance(1, 2) ? "x+" : "z-";
      }
      state.PutNode(NodeFactsOf(node));
    }
  }
  state.PutNode(NodeFactsOf({.name = "lone"}));
  return state;
}

GangSpec RandomGangAt(Rng& rng, int index) {
  const std::string name = "g" + std::to_string(index);
  const std::string shape = kShapes[rng.Below(kShapes.size())];
  const int chips = torus::Shape::Parse(shape)->chip_count();
  const int members = chips >= 16 ? chips / 16 : rng.Chance(1, 2) && chips > 1 ? 2 : 1;
  GangSpec gang = GangOf(name, members,
                         [&](const std::string& pod) { return ChipClaim(pod, chips / members); });
  gang.shape_text = shape;
  if (rng.Chance(1, 4)) gang.max_runtime = std::chrono::seconds(rng.Below(10000) + 1);
  return gang;
}

// The chips of a gang slice as its members' allocations name them.
torus::ChipMask SliceMask(const ClusterState& state, const SlicePlacement& slice,
                          const Placement& placement) {
  torus::ChipMask mask = 0;
  for (const MemberPlacement& member : placement.members) {
    const NodeState& node = state.node(*state.FindNode(member.node));
    if (state.domain(node.domain).name != slice.domain) continue;
    for (const ClaimPlacement& claim : member.claims) {
      for (const DeviceResult& result : claim.allocation.results) {
        const auto chip =
            node.node->role(node.node->family->devices->by_name.at(result.device)).chip;
        const torus::ChipMask bit = torus::ChipMask{1} << (16 * node.z + chip);
        EXPECT_EQ(mask & bit, 0U);
        mask |= bit;
      }
    }
  }
  return mask;
}

// Whether any box of the shape, at any place and rotation, could have been taken.
bool AnyBoxFits(const ClusterState& state, const GangSpec& gang) {
  const auto shape = *torus::Shape::Parse(gang.shape_text);
  const int chips = shape.chip_count();
  const int members = static_cast<int>(gang.members.size());
  for (std::size_t u = 0; u < state.domain_count(); ++u) {
    const DomainState& domain = state.domain(DomainId(u));
    for (const torus::Box& box : torus::BoxTable::Of(domain.shape()).all()) {
      if (!(box.size.Sorted() == shape.Sorted())) continue;
      const int layer = box.size.extent(torus::Axis::kX) * box.size.extent(torus::Axis::kY);
      if (layer % (chips / members) != 0) continue;
      if ((box.mask & ~domain.free) == 0 && !domain.down.Intersects(box.links)) return true;
    }
  }
  return false;
}

TEST(PlannerPropertyTest, PlacementsAreFreeWholeBoxesAndExistWheneverOneFits) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    ClusterState state = RandomCluster(rng);
    Planner planner;
    std::vector<std::string> held;
    for (int i = 0; i < 25; ++i) {
      const auto gang = std::make_shared<const GangSpec>(RandomGangAt(rng, i));
      const Decision decision = planner.Plan(state, {gang}, WallTime{})[0];
      EXPECT_EQ(decision.placement.has_value(), AnyBoxFits(state, *gang)) << gang->shape_text;
      const Decision again = Planner().Plan(state, {gang}, WallTime{})[0];
      ASSERT_EQ(decision.placement.has_value(), again.placement.has_value());
      if (!decision.placement) {
        EXPECT_EQ(decision.blocked->message, again.blocked->message);
        if (!held.empty() && rng.Chance(1, 2)) {
          state.Release(held.front());
          held.erase(held.begin());
        }
        continue;
      }
      EXPECT_EQ(decision.placement->ToString(), again.placement->ToString());
      EXPECT_EQ(decision.placement->members.size(), gang->members.size());
      const SlicePlacement& slice = decision.placement->slices[0];
      const DomainState& domain = state.domain(*state.FindDomain(slice.domain));
      EXPECT_EQ(SliceMask(state, slice, *decision.placement), slice.box.mask);
      EXPECT_EQ(slice.box.mask & ~domain.free, 0U);
      EXPECT_FALSE(domain.down.Intersects(slice.box.links));
      for (auto& holding : decision.placement->Holdings(*gang, WallTime{})) {
        held.push_back(holding->claim_uid);
        state.Hold(holding);
      }
    }
  }
}

// Plans gangs that came in that order, in the order in which the queue serves them.
std::vector<Decision> Serve(const ClusterState& state, const Queue& arrived) {
  std::vector<Decision> decisions;
  SchedulingQueue waiting(
      [&](const ClusterState& view, const Queue& queue, WallTime now, Explaining explaining) {
        decisions = Planner().Plan(view, queue, now, explaining);
        return decisions;
      });
  for (const auto& gang : arrived) {
    Readiness ready;
    ready.spec = gang;
    waiting.Put({gang->key, gang->single_pod}, ready);
  }
  (void)waiting.Plan(state, arrived.size(), WallTime{});
  return decisions;
}

TEST(PlannerPropertyTest, OneCallNeverGivesAChipTwice) {
  for (std::uint64_t seed = 100; seed < 108; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const ClusterState state = RandomCluster(rng);
    Queue queue;
    for (int i = 0; i < 20; ++i) {
      queue.push_back(std::make_shared<const GangSpec>(RandomGangAt(rng, i)));
    }
    std::set<std::pair<std::string, std::string>> taken;
    const auto decisions = Serve(state, queue);
    for (const Decision& decision : decisions) {
      ASSERT_NE(decision.placement.has_value(), decision.blocked.has_value());
      if (!decision.placement) continue;
      for (const auto& holding : decision.placement->Holdings(*decision.gang, WallTime{})) {
        for (const auto& device : holding->devices) {
          EXPECT_TRUE(taken.emplace(device.node, device.device).second);
        }
      }
    }
    Queue reversed(queue.rbegin(), queue.rend());
    const auto same = Serve(state, reversed);
    ASSERT_EQ(same.size(), decisions.size());
    for (std::size_t i = 0; i < same.size(); ++i) {
      EXPECT_EQ(same[i].gang->key, decisions[i].gang->key);
      EXPECT_EQ(same[i].placement.has_value(), decisions[i].placement.has_value());
    }
  }
}

}  // namespace
}  // namespace tahoma::controller
