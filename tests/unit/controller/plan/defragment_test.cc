// Which gangs move for another, against all choices that there are.

#include "controller/plan/defragment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

using SharedGang = std::shared_ptr<const GangSpec>;

SharedGang GangOfBoxes(const std::string& name, const std::string& shape, int slices = 1) {
  const int chips = torus::Shape::Parse(shape)->chip_count();
  const int pods = std::max(1, chips / 16);
  GangSpec gang = GangOf(name, pods * slices,
                         [&](const std::string& pod) { return ChipClaim(pod, chips / pods); });
  gang.shape_text = shape;
  gang.slices = slices;
  return std::make_shared<const GangSpec>(std::move(gang));
}

struct MoveCase {
  ClusterState fleet;
  std::vector<MovableGang> movable = {};
  Planner planner = {};

  explicit MoveCase(int ultra_servers) {
    for (int i = 0; i < ultra_servers; ++i) {
      AddUltraServer(fleet, "us-" + std::to_string(i), false);
    }
  }
  std::optional<Placement> Place(const ClusterState& state, const SharedGang& gang) {
    return planner.Plan(state, {gang}, WallTime(), Explaining::kNone)[0].placement;
  }
  // Lets the gang run on the UltraServer.
  bool Run(const SharedGang& gang, int ultra_server, std::int64_t cost, bool may_move = true) {
    ClusterState only = fleet;
    for (std::size_t i = 0; i < fleet.domain_count(); ++i) {
      const DomainState& domain = fleet.domain(DomainId(i));
      if (domain.name == "us-" + std::to_string(ultra_server)) continue;
      for (const NodeId node : domain.nodes) {
        only.RemoveNode(fleet.node(node).node->name);
      }
    }
    const auto placement = Place(only, gang);
    if (!placement) return false;
    MovableGang one = {.run = {.claims = {}, .pods = {}, .work = cost}, .spec = gang};
    for (const auto& holding : placement->Holdings(*gang, WallTime())) {
      one.run.claims.push_back(holding->claim_uid);
      fleet.Hold(holding);
    }
    if (may_move) movable.push_back(std::move(one));
    return true;
  }
  absl::StatusOr<Defragmentation> Plan(const SharedGang& wanted, std::size_t most = 10) {
    return PlanMoves(
        fleet, wanted, movable, {.moves = most}, WallTime(),
        [&](const ClusterState& state, const SharedGang& gang) { return Place(state, gang); });
  }
  // Makes the moves one by one, each onto free chips, and then gives the gang its place.
  void CheckMoves(const Defragmentation& plan, const SharedGang& wanted) {
    ClusterState state = fleet;
    std::int64_t cost = 0;
    for (const Move& move : plan.moves) {
      const MovableGang& gang = movable[move.gang];
      cost += gang.run.work;
      for (const std::string& claim : gang.run.claims) state.Release(claim);
      for (const auto& holding : move.to.Holdings(*gang.spec, WallTime())) {
        CheckNobodyHolds(state, *holding);
        state.Hold(holding);
      }
    }
    for (const auto& holding : plan.wanted.Holdings(*wanted, WallTime())) {
      CheckNobodyHolds(state, *holding);
      state.Hold(holding);
    }
    EXPECT_EQ(cost, plan.cost);
  }
  // The least cost of a set of gangs that all have places beside the wanted gang, in any order.
  std::optional<std::int64_t> Best(const SharedGang& wanted) {
    std::optional<std::int64_t> best;
    for (unsigned mask = 0; mask < 1U << movable.size(); ++mask) {
      std::vector<std::size_t> order;
      std::int64_t cost = 0;
      ClusterState state = fleet;
      for (std::size_t i = 0; i < movable.size(); ++i) {
        if ((mask >> i & 1U) == 0) continue;
        order.push_back(i);
        cost += movable[i].run.work;
        for (const std::string& claim : movable[i].run.claims) state.Release(claim);
      }
      if (best && *best <= cost) continue;
      do {
        Queue queue = {wanted};
        for (const std::size_t i : order) queue.push_back(movable[i].spec);
        const auto decisions = planner.Plan(state, queue, WallTime(), Explaining::kNone);
        if (std::ranges::all_of(decisions,
                                [](const Decision& one) { return one.placement.has_value(); })) {
          best = cost;
          break;
        }
      } while (std::ranges::next_permutation(order).found);
    }
    return best;
  }
};

TEST(DefragmentTest, TheCheapestGangMovesToAFreePlace) {
  MoveCase one(3);
  ASSERT_TRUE(one.Run(GangOfBoxes("dear", "4x4"), 0, 900));
  ASSERT_TRUE(one.Run(GangOfBoxes("cheap", "4x4"), 1, 100));
  ASSERT_TRUE(one.Run(GangOfBoxes("dearest", "4x4"), 2, 1000));
  const SharedGang wanted = GangOfBoxes("wanted", "4x4x4");
  const auto plan = one.Plan(wanted);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->moves.size(), 1U);
  EXPECT_EQ(plan->moves[0].gang, 1U);
  EXPECT_EQ(plan->wanted.slices[0].domain, "us-1");
  one.CheckMoves(*plan, wanted);
}

TEST(DefragmentTest, NobodyMovesWhereThereIsAPlace) {
  MoveCase one(2);
  ASSERT_TRUE(one.Run(GangOfBoxes("a", "4x4"), 0, 1));
  const auto plan = one.Plan(GangOfBoxes("wanted", "4x4x4"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->moves.empty());
}

// The moved gang has no place before a smaller gang has moved on.
TEST(DefragmentTest, AGangMakesRoomForAGangThatMoves) {
  MoveCase one(3);
  ASSERT_TRUE(one.Run(GangOfBoxes("stays", "4x4x2"), 0, 0, false));
  ASSERT_TRUE(one.Run(GangOfBoxes("small", "2x2"), 0, 5));
  ASSERT_TRUE(one.Run(GangOfBoxes("large", "4x4x2"), 1, 10));
  ASSERT_TRUE(one.Run(GangOfBoxes("full", "4x4x2"), 2, 0, false));
  ASSERT_TRUE(one.Run(GangOfBoxes("rest", "4x4"), 2, 0, false));
  const SharedGang wanted = GangOfBoxes("wanted", "4x4x4");
  const auto plan = one.Plan(wanted);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->moves.size(), 2U);
  EXPECT_EQ(plan->moves[0].gang, 0U) << "the small one first";
  EXPECT_EQ(plan->cost, 15);
  one.CheckMoves(*plan, wanted);
}

TEST(DefragmentTest, AnAnswerOfNoSaysWhy) {
  MoveCase one(2);
  ASSERT_TRUE(one.Run(GangOfBoxes("a", "4x4x2"), 0, 1));
  ASSERT_TRUE(one.Run(GangOfBoxes("b", "4x4x2"), 1, 1));
  ASSERT_TRUE(one.Run(GangOfBoxes("c", "4x4"), 1, 1));
  const auto message = [&](const SharedGang& wanted, std::size_t most) {
    return std::string(Message(one.Plan(wanted, most).status()));
  };
  EXPECT_THAT(message(GangOfBoxes("w", "4x4x4"), 10), HasSubstr("and has no other place"));
  EXPECT_THAT(message(GangOfBoxes("w", "4x4x4", 3), 10), HasSubstr("none even without all gangs"));
  MoveCase two(2);
  ASSERT_TRUE(two.Run(GangOfBoxes("a", "2x2"), 0, 1));
  ASSERT_TRUE(two.Run(GangOfBoxes("b", "2x2"), 1, 1));
  EXPECT_THAT(std::string(Message(two.Plan(GangOfBoxes("w", "4x4x4"), 0).status())),
              HasSubstr("1 gangs would have to move, and at most 0 may"));
}

TEST(DefragmentTest, NoChoiceIsCheaper) {
  Rng rng(49);
  const std::vector<std::string> shapes = {"4x4x2", "4x4", "2x4", "2x2"};
  int moved = 0;
  int worse = 0;
  for (int round = 0; round < 60; ++round) {
    const int servers = static_cast<int>(rng.Below(3)) + 2;
    MoveCase one(servers);
    for (int i = 0; i < 12 && one.movable.size() < 5; ++i) {
      one.Run(GangOfBoxes("g" + std::to_string(i), shapes[rng.Below(shapes.size())]),
              static_cast<int>(rng.Below(static_cast<std::uint64_t>(servers))),
              static_cast<std::int64_t>(rng.Below(9)) + 1, !rng.Chance(1, 8));
    }
    const SharedGang wanted = GangOfBoxes("wanted", rng.Chance(1, 2) ? "4x4x4" : "4x4x2");
    const auto plan = one.Plan(wanted);
    const auto best = one.Best(wanted);
    if (!plan.ok()) {
      worse += best ? 1 : 0;
      continue;
    }
    one.CheckMoves(*plan, wanted);
    ASSERT_TRUE(best.has_value()) << round;
    worse += plan->cost > *best ? 1 : 0;
    moved += plan->moves.empty() ? 0 : 1;
  }
  EXPECT_GT(moved, 15);
  EXPECT_EQ(worse, 0);
}

}  // namespace
}  // namespace tahoma::controller
