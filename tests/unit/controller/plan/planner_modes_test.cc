// Placement by the UltraServer modes that nodes have elected.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using Modes = std::array<std::string, 4>;

const Modes kWhole = {"X4,X2V,X1", "X4,X2V,X1", "X4,X2V,X1", "X4,X2V,X1"};
const Modes kLeftPairs = {"X2V,X1", "X2V,X1", "X2V,X1", "X2V,X1"};
const Modes kRightPairs = {"X2H,X1", "X2H,X1", "X2H,X1", "X2H,X1"};
// A broken right cable between 1 and 2: its ends are alone, 3 and 0 work as a pair.
const Modes kOnePair = {"X2H,X1", "X1", "X1", "X2H,X1"};
const Modes kBusy = {"busy", "busy", "busy", "busy"};

GangSpec Shaped(const std::string& name, int members, const std::string& shape,
                std::int64_t chips_each) {
  GangSpec gang =
      GangOf(name, members, [&](const std::string& pod) { return ChipClaim(pod, chips_each); });
  gang.shape_text = shape;
  return gang;
}

// A pod for `chips` chips that asks for an UltraServer of so many nodes.
GangSpec Configured(const std::string& name, std::int64_t chips, int nodes) {
  return GangOf(name, 1, [&](const std::string& pod) {
    ClaimSpec claim = ChipClaim(pod, chips);
    DeviceConfig& config = claim.configs.emplace_back();
    config.driver = "neuron.aws.com";
    config.parameters =
        fmt::format(R"({{"apiVersion":"neuron.aws.com/v1","kind":"UltraServerConfig",)"
                    R"("ultraserverMode":{}}})",
                    nodes);
    return claim;
  });
}

class PlannerModesTest : public ::testing::Test {
 protected:
  // Where the gang goes, and the state holds it; why it waits otherwise.
  std::string Where(GangSpec gang) {
    const auto decisions =
        planner_.Plan(state_, {std::make_shared<const GangSpec>(std::move(gang))}, now_);
    EXPECT_EQ(decisions.size(), 1U);
    if (!decisions[0].placement) {
      return std::string(ToString(decisions[0].blocked->reason)) + ": " +
             decisions[0].blocked->message;
    }
    for (auto& h : decisions[0].placement->Holdings(*decisions[0].gang, now_)) state_.Hold(h);
    return decisions[0].placement->ToString();
  }
  void Release(const std::string& pod) { state_.Release("uid-" + pod + "-claim"); }

  ClusterState state_;
  Planner planner_;
  WallTime now_ = WallTime(std::chrono::hours(24));
};

TEST_F(PlannerModesTest, AWholeServerServesFourNodesAndItsTwoElectedPairs) {
  Elect(state_, "us-0", kWhole);
  EXPECT_EQ(Where(Shaped("a", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,0");
  EXPECT_EQ(Where(Shaped("b", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,2");
  for (const char* pod : {"a-0", "a-1", "b-0", "b-1"}) Release(pod);
  EXPECT_EQ(Where(Shaped("c", 4, "4x4x4", 16)), "us-0 4x4x4+0,0,0");
}

TEST_F(PlannerModesTest, APairThatWasNotElectedIsNotGiven) {
  Elect(state_, "us-0", kWhole);
  EXPECT_EQ(Where(Shaped("a", 1, "1x1", 1)), "us-0 1x1x1+0,0,0");
  EXPECT_EQ(Where(Configured("b", 16, 1)), "us-0-n1");
  EXPECT_EQ(Where(Configured("c", 16, 1)), "us-0-n2");
  // Nodes 3 and 0 are a wrapped pair of the torus; X2H, which would use it, was not elected.
  EXPECT_THAT(Where(Shaped("d", 2, "4x2x2", 8)), HasSubstr("WaitsForCapacity: needs 4x2x2"));
  Elect(state_, "us-0", kRightPairs);
  EXPECT_THAT(Where(Shaped("d", 2, "4x2x2", 8)), HasSubstr("us-0 2x4x2+1,0,3"));
}

TEST_F(PlannerModesTest, AServerOfPairsServesNoFourAndSaysWhy) {
  Elect(state_, "us-0", kLeftPairs);
  EXPECT_EQ(Where(Shaped("a", 4, "4x4x4", 16)),
            "NeverFits: needs 4x4x4 = 64 chips of one topology domain; 1 domain of the right kind, "
            "but no "
            "UltraServer mode allows it there: us-0 (z=0,1,2,3 elected X2V, X1)");
  EXPECT_EQ(Where(Shaped("b", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,0");
  EXPECT_EQ(Where(Shaped("c", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,2");
}

TEST_F(PlannerModesTest, PairsOverTheRightCablesWrapAround) {
  Elect(state_, "us-0", kRightPairs);
  EXPECT_EQ(Where(Shaped("a", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,1");
  EXPECT_EQ(Where(Shaped("b", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,3");
}

TEST_F(PlannerModesTest, NodesThatAreAloneServeOnlyTheirOwnChips) {
  Elect(state_, "us-0", kOnePair);
  EXPECT_EQ(Where(Shaped("a", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,3");
  EXPECT_THAT(Where(Shaped("b", 2, "4x4x2", 16)), HasSubstr("in the way: gang default/a"));
  EXPECT_EQ(Where(Shaped("c", 1, "4x4", 16)), "us-0 4x4x1+0,0,1");
  EXPECT_EQ(Where(Shaped("d", 1, "4x4", 16)), "us-0 4x4x1+0,0,2");
}

TEST_F(PlannerModesTest, WhileTheElectionRunsOnlySingleNodesAreServed) {
  Elect(state_, "us-0", kBusy);
  const std::string why = Where(Shaped("a", 4, "4x4x4", 16));
  EXPECT_EQ(why,
            "WaitsForCapacity: needs 4x4x4 = 64 chips of one topology domain; 1 domain could hold "
            "it, but not "
            "in the UltraServer mode of now: us-0 (z=0,1,2,3 electing)");
  EXPECT_EQ(Where(Shaped("b", 1, "4x4", 16)), "us-0 4x4x1+0,0,0");
  Release("b-0");
  Elect(state_, "us-0", kWhole);
  EXPECT_EQ(Where(Shaped("a", 4, "4x4x4", 16)), "us-0 4x4x4+0,0,0");
}

TEST_F(PlannerModesTest, OneNodeThatHasElectedOtherwiseKeepsTheOthersApart) {
  Elect(state_, "us-0", {"X4,X2V,X1", "X4,X2V,X1", "X4,X2V,X1", "busy"});
  EXPECT_THAT(Where(Shaped("a", 4, "4x4x4", 16)), HasSubstr("z=3 electing"));
  EXPECT_EQ(Where(Shaped("b", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,0");
  EXPECT_THAT(Where(Shaped("c", 2, "4x4x2", 16)), HasSubstr("needs 4x4x2"));
}

TEST_F(PlannerModesTest, AChosenModeIsTheOnlyOne) {
  Elect(state_, "us-0", kWhole, "X2V");
  EXPECT_EQ(Where(Shaped("a", 4, "4x4x4", 16)),
            "WaitsForCapacity: needs 4x4x4 = 64 chips of one topology domain; 1 domain could hold "
            "it, but not "
            "in the UltraServer mode of now: us-0 (z=0,1,2,3 chosen X2V)");
  EXPECT_EQ(Where(Shaped("b", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,0");
  Elect(state_, "us-0", kWhole, "X1");
  EXPECT_THAT(Where(Shaped("c", 2, "4x4x2", 16)), HasSubstr("z=0,1,2,3 chosen X1"));
  EXPECT_EQ(Where(Shaped("d", 1, "4x4", 16)), "us-0 4x4x1+0,0,2");
}

TEST_F(PlannerModesTest, OneNodeInAnotherModeSparesTheOtherPair) {
  Elect(state_, "us-0", kWhole);
  state_.PutNode(NodeFactsOf({.name = "us-0-n0",
                              .type = "trn2u.48xlarge",
                              .ultra_server = "us-0",
                              .z = 0,
                              .cores = false,
                              .modes = kWhole[0],
                              .mode = "X1"}));
  EXPECT_EQ(Where(Shaped("a", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,2");
  EXPECT_THAT(Where(Shaped("b", 4, "4x4x4", 16)),
              HasSubstr("us-0 (z=0 chosen X1; z=1,2,3 elected X4, X2V, X1)"));
}

TEST_F(PlannerModesTest, AFreePairOfADegradedServerIsTakenBeforeAWholeServerIsBroken) {
  Elect(state_, "us-0", kWhole);
  Elect(state_, "us-1", kRightPairs);
  EXPECT_EQ(Where(Shaped("a", 2, "4x4x2", 16)), "us-1 4x4x2+0,0,1");
  EXPECT_EQ(Where(Shaped("b", 1, "4x4", 16)), "us-1 4x4x1+0,0,0") << "breaks a pair, not four";
  EXPECT_EQ(Where(Shaped("c", 1, "4x4", 16)), "us-1 4x4x1+0,0,3");
  EXPECT_EQ(Where(Shaped("d", 4, "4x4x4", 16)), "us-0 4x4x4+0,0,0");
}

TEST_F(PlannerModesTest, ServersInTheWantedModeComeFirst) {
  Elect(state_, "us-0", kWhole);
  Elect(state_, "us-1", kWhole, "X2V");
  Elect(state_, "us-2", kWhole, "X4");
  EXPECT_EQ(Where(Shaped("a", 4, "4x4x4", 16)), "us-2 4x4x4+0,0,0") << "in the mode already";
  EXPECT_EQ(Where(Shaped("b", 2, "4x4x2", 16)), "us-1 4x4x2+0,0,0") << "in the mode already";
  EXPECT_EQ(Where(Shaped("c", 4, "4x4x4", 16)), "us-0 4x4x4+0,0,0") << "no mode is chosen";
}

TEST_F(PlannerModesTest, AClaimThatAsksForNodesGoesWhereSoManyWereElected) {
  Elect(state_, "us-0", kLeftPairs);
  EXPECT_EQ(Where(Configured("a", 16, 4)),
            "NeverFits: the pod asks for an UltraServer of 4 nodes in its UltraServerConfig; 4 "
            "nodes have the devices, but none has elected a mode for that");
  EXPECT_EQ(Where(Configured("b", 8, 2)), "us-0-n0");
  EXPECT_EQ(Where(Configured("c", 8, 2)), "us-0-n1")
      << "node 0 is in use, and no mode was chosen there as far as is known";
  Elect(state_, "us-0", kLeftPairs, "X2V");
  EXPECT_EQ(Where(Configured("d", 8, 2)), "us-0-n0") << "in use in that mode";
  EXPECT_EQ(Where(Configured("e", 8, 1)), "us-0-n2") << "node 1 is in use as a pair; 2 is idle";
  Elect(state_, "us-1", kWhole);
  EXPECT_EQ(Where(Configured("a", 16, 4)), "us-1-n0");
}

TEST_F(PlannerModesTest, AnElectionIsNotAnotherKindOfNode) {
  Elect(state_, "us-0", kWhole);
  Elect(state_, "us-1", kRightPairs, "X2H");
  const auto family = [&](const char* node) {
    return state_.node(*state_.FindNode(node)).node->family;
  };
  EXPECT_EQ(family("us-0-n0"), family("us-1-n3"));
}

// Random modes and occupation: what is placed lies in nodes that all offer a mode that joins them.
TEST_F(PlannerModesTest, NoPieceEverSpansNodesThatElectedNoModeForIt) {
  Rng rng(7);
  const std::vector<std::string> kinds = {"X4,X2V,X1", "X2V,X1", "X2H,X1",   "X2H,X2V,X1",
                                          "X1",        "busy",   "X4,X2V,X1"};
  const std::vector<std::string> shapes = {"4x4x4", "4x4x2", "2x2x2", "1x1x4", "1x2x4", "4x4"};
  std::size_t spanning = 0;
  for (int round = 0; round < 400; ++round) {
    state_ = ClusterState();
    Modes modes;
    const bool alike = rng.Below(2) == 0;
    const std::string all = kinds[rng.Below(kinds.size())];
    for (std::string& mode : modes) mode = alike ? all : kinds[rng.Below(kinds.size())];
    Elect(state_, "us-0", modes);
    for (int gang = 0; gang < 4; ++gang) {
      const auto shape = *torus::Shape::Parse(shapes[rng.Below(shapes.size())]);
      const int members = shape.extent(torus::Axis::kZ);
      const auto decisions = planner_.Plan(state_,
                                           {std::make_shared<const GangSpec>(Shaped(
                                               "g" + std::to_string(gang), members,
                                               shape.ToString(), shape.chip_count() / members))},
                                           now_);
      if (!decisions[0].placement) continue;
      for (auto& h : decisions[0].placement->Holdings(*decisions[0].gang, now_)) state_.Hold(h);
      const torus::Box& box = decisions[0].placement->slices[0].box;
      const int depth = box.size.extent(torus::Axis::kZ);
      if (depth == 1) continue;
      ++spanning;
      unsigned nodes = 0;
      for (int i = 0; i < depth; ++i) nodes |= 1U << ((box.origin.z + i) % 4);
      for (int z = 0; z < 4; ++z) {
        if ((nodes >> z & 1) == 0) continue;
        const std::string& offered = modes[static_cast<std::size_t>(z)];
        bool joined = false;
        for (const hw::UltraServerMode mode : hw::kUltraServerModes) {
          joined = joined || (hw::PartnersOf(mode, z) == nodes &&
                              offered.find(hw::ModeName(mode)) != std::string::npos);
        }
        EXPECT_TRUE(joined) << box.ToString() << " over " << offered << " of node " << z;
      }
    }
  }
  EXPECT_GT(spanning, 50U) << "the test has placed something";
}

}  // namespace
}  // namespace tahoma::controller
