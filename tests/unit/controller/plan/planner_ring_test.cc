// Placement on instances whose chips form a ring (Inf2) or hang behind switches (Trn3).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <optional>
#include <string>

#include "controller/plan/chip_choice.h"
#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

constexpr torus::Shape kTwelve = torus::Shape::Of<12, 1, 1>();

// The length of the run of free chips around `chip` over links that work, by walking in both
// directions.
int RunAround(std::uint16_t free, const torus::LinkMask& down, int chip) {
  const std::uint64_t cut = down.along(torus::Axis::kX);
  int length = 1;
  int at = chip;
  for (; length < 12 && (cut >> at & 1) == 0 && (free >> ((at + 1) % 12) & 1) != 0; ++length) {
    at = (at + 1) % 12;
  }
  at = chip;
  for (; length < 12 && (free >> ((at + 11) % 12) & 1) != 0; ++length) {
    at = (at + 11) % 12;
    if ((cut >> at & 1) != 0) break;
  }
  return length;
}

bool IsRun(std::uint16_t set, const torus::LinkMask& down) {
  const int count = std::popcount(set);
  for (int first = 0; first < 12; ++first) {
    bool all = true;
    for (int i = 0; i < count; ++i) {
      all = all && (set >> ((first + i) % 12) & 1) != 0;
      if (i > 0) all = all && (down.along(torus::Axis::kX) >> ((first + i - 1) % 12) & 1) == 0;
    }
    if (all) return true;
  }
  return false;
}

TEST(RingChoiceTest, ChipsAreSideBySideFromTheShortestRunThatIsLongEnough) {
  const ChipChoice choice;
  Rng rng(5);
  for (int round = 0; round < 3000; ++round) {
    const auto free = static_cast<std::uint16_t>(rng.Below(4096));
    torus::LinkMask down;
    if (rng.Below(2) == 0) down.along(torus::Axis::kX) = rng.Below(4096) & rng.Below(4096);
    const int count = 1 + static_cast<int>(rng.Below(12));
    const auto chosen = choice.Choose(free, count, down, kTwelve);
    std::optional<int> shortest;
    for (int first = 0; first < 12; ++first) {
      std::uint16_t run = 0;
      for (int i = 0; i < count; ++i) run |= static_cast<std::uint16_t>(1U << ((first + i) % 12));
      if ((run & ~free) != 0 || !IsRun(run, down)) continue;
      // With all twelve chips the run may break anywhere but inside the set.
      const int length = RunAround(free, down, first);
      if (!shortest || length < *shortest) shortest = length;
    }
    ASSERT_EQ(chosen.has_value(), shortest.has_value()) << free << " " << count;
    if (!chosen) continue;
    EXPECT_EQ(std::popcount(*chosen), count);
    EXPECT_EQ(*chosen & ~free, 0);
    EXPECT_TRUE(IsRun(*chosen, down)) << free << " " << count << " " << *chosen;
    EXPECT_EQ(RunAround(free, down, std::countr_zero(*chosen)), *shortest) << free << " " << count;
  }
}

TEST(RingChoiceTest, AShortRunIsUsedBeforeALongOneIsBroken) {
  const ChipChoice choice;
  EXPECT_EQ(choice.Choose(0b001100001111, 2, {}, kTwelve), 0b001100000000);
  EXPECT_EQ(choice.Choose(0b100000000011, 3, {}, kTwelve), 0b100000000011) << "round the end";
  EXPECT_EQ(choice.Choose(0b010101010101, 2, {}, kTwelve), std::nullopt);
  EXPECT_EQ(choice.Choose(0xfff, 12, {}, kTwelve), 0xfff);
}

class PlannerRingTest : public ::testing::Test {
 protected:
  std::string Where(GangSpec gang) {
    const auto decisions =
        planner_.Plan(state_, {std::make_shared<const GangSpec>(std::move(gang))}, now_);
    if (!decisions[0].placement) {
      return std::string(ToString(decisions[0].blocked->reason)) + ": " +
             decisions[0].blocked->message;
    }
    for (auto& h : decisions[0].placement->Holdings(*decisions[0].gang, now_)) state_.Hold(h);
    std::string text = decisions[0].placement->ToString() + ":";
    for (const MemberPlacement& member : decisions[0].placement->members) {
      for (const ClaimPlacement& claim : member.claims) {
        for (const DeviceResult& result : claim.allocation.results) {
          text += " " + result.device.substr(result.device.rfind('-') + 1);
        }
      }
    }
    return text;
  }
  static GangSpec Pod(const std::string& name, std::int64_t chips) {
    return GangOf(name, 1, [&](const std::string& pod) { return ChipClaim(pod, chips); });
  }

  ClusterState state_;
  Planner planner_;
  WallTime now_ = WallTime(std::chrono::hours(24));
};

TEST_F(PlannerRingTest, PodsGetContiguousChipsOfAnInf2) {
  state_.PutNode(NodeFactsOf({.name = "inf2-0", .type = "inf2.48xlarge", .cores = false}));
  EXPECT_EQ(Where(Pod("a", 3)), "inf2-0: 0 1 2");
  EXPECT_EQ(Where(Pod("b", 5)), "inf2-0: 3 4 5 6 7");
  EXPECT_EQ(Where(Pod("c", 4)), "inf2-0: 8 9 10 11");
  state_.Release("uid-a-0-claim");
  state_.Release("uid-c-0-claim");
  EXPECT_EQ(Where(Pod("d", 7)), "inf2-0: 0 1 2 8 9 10 11") << "round the end of the ring";
}

TEST_F(PlannerRingTest, ChipsThatAreNotSideBySideAreNotGiven) {
  state_.PutNode(NodeFactsOf({.name = "inf2-0", .type = "inf2.24xlarge", .cores = false}));
  EXPECT_EQ(Where(Pod("a", 1)), "inf2-0: 0");
  EXPECT_EQ(Where(Pod("b", 1)), "inf2-0: 1");
  EXPECT_EQ(Where(Pod("c", 1)), "inf2-0: 2");
  state_.Release("uid-b-0-claim");
  EXPECT_THAT(Where(Pod("d", 4)),
              HasSubstr("the most free chips are 4 on inf2-0, but not side by side on its ring"));
  EXPECT_EQ(Where(Pod("e", 3)), "inf2-0: 3 4 5");
}

TEST_F(PlannerRingTest, ABrokenLinkCutsTheRing) {
  state_.PutNode(NodeFactsOf({.name = "inf2-0",
                              .type = "inf2.48xlarge",
                              .cores = false,
                              .links_down = {"", "", "x+", "x-", "", "", "", "", "x+", "x-"}}));
  EXPECT_EQ(Where(Pod("a", 6)), "inf2-0: 3 4 5 6 7 8") << "6 of 3 to 8, or of 9 to 2";
  EXPECT_EQ(Where(Pod("b", 6)), "inf2-0: 0 1 2 9 10 11");
}

TEST_F(PlannerRingTest, AWholeNodeIsOnePodsOrTwelveOnes) {
  state_.PutNode(NodeFactsOf({.name = "inf2-0", .type = "inf2.48xlarge", .cores = false}));
  EXPECT_EQ(Where(Pod("all", 12)), "inf2-0: 0 1 2 3 4 5 6 7 8 9 10 11");
  state_.Release("uid-all-0-claim");
  EXPECT_EQ(Where(GangOf("many", 12, [](const std::string& pod) { return ChipClaim(pod, 1); })),
            "inf2-0: 0 1 2 3 4 5 6 7 8 9 10 11");
}

TEST_F(PlannerRingTest, AShapeIsForATorus) {
  state_.PutNode(NodeFactsOf({.name = "inf2-0", .type = "inf2.48xlarge", .cores = false}));
  GangSpec gang = Pod("g", 4);
  gang.shape_text = "2x2";
  EXPECT_EQ(Where(std::move(gang)),
            "NeverFits: needs 2x2x1 = 4 chips of one topology domain; 1 domain has its devices, "
            "but none is of "
            "an instance type whose chips form boxes");
}

TEST_F(PlannerRingTest, ATrn1IsATorusLikeATrn2) {
  state_.PutNode(NodeFactsOf({.name = "trn1-0", .type = "trn1.32xlarge", .cores = false}));
  GangSpec gang = Pod("g", 8);
  gang.shape_text = "4x2";
  EXPECT_THAT(Where(std::move(gang)), HasSubstr("trn1-0 2x4x1+0,0,0"));
  EXPECT_THAT(Where(Pod("h", 4)), HasSubstr("trn1-0:"));
}

TEST_F(PlannerRingTest, BehindSwitchesAnyChipsWillDo) {
  state_.PutNode(NodeFactsOf({.name = "trn3-0", .type = "trn3-gen1", .cores = false}));
  EXPECT_EQ(Where(Pod("a", 1)), "trn3-0: 0");
  EXPECT_EQ(Where(Pod("b", 2)), "trn3-0: 1 2");
  state_.Release("uid-a-0-claim");
  EXPECT_EQ(Where(Pod("c", 3)), "trn3-0: 0 3 4");
}

}  // namespace
}  // namespace tahoma::controller
