// Predicted times as the first term of a choice, and the predictions that users see.

#include "controller/plan/score.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "controller/plan/chip_choice.h"
#include "lib/collective/predict_domains.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using collective::Operation;
using collective::Picoseconds;
using torus::Axis;
using torus::ChipIndex;
using torus::Direction;
using torus::Shape;

constexpr collective::FormRequest kScored = {.operation = Operation::kAllReduce,
                                             .bytes = kScoredBytes};

torus::LinkMask Down(int chip, Axis axis) {
  return torus::LinkOf(torus::kInstanceShape, ChipIndex(chip), axis, Direction::kPlus);
}

TEST(ScoreTest, OfShapesWithAsManyChipsTheOneWithTheFastestLinksWins) {
  EXPECT_EQ((AllReduceTime(Shape::Of<4, 1, 1>())), (AllReduceTime(Shape::Of<2, 2, 1>())));
  EXPECT_LT((AllReduceTime(Shape::Of<2, 2, 1>())), (AllReduceTime(Shape::Of<2, 1, 2>())));
  EXPECT_LT((AllReduceTime(Shape::Of<2, 1, 2>())), (AllReduceTime(Shape::Of<1, 1, 4>())));
  EXPECT_LT((AllReduceTime(Shape::Of<2, 4, 1>())), (AllReduceTime(Shape::Of<2, 2, 2>())));
  EXPECT_LT((AllReduceTime(Shape::Of<4, 4, 1>())), (AllReduceTime(Shape::Of<4, 2, 2>())));
  EXPECT_LT((AllReduceTime(Shape::Of<4, 4, 2>())), (AllReduceTime(Shape::Of<4, 2, 4>())));
  EXPECT_EQ((AllReduceTime(Shape::Of<1, 1, 1>())), Picoseconds(0));
}

TEST(ScoreTest, TheScoreIsThePredictionForTheBox) {
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
    EXPECT_EQ(AllReduceTime(box.size), collective::PredictCollective(box, kScored))
        << box.ToString();
  }
}

TEST(ScoreTest, AnySetOfAnInstancesChipsHasAScore) {
  const PlaceScores scores;
  const torus::LinkMask none;
  EXPECT_EQ(scores.AllReduceTime(0xffff, none), AllReduceTime(torus::kInstanceShape));
  // A chip has failed; three by two chips beside a bent path of six.
  EXPECT_GT(scores.AllReduceTime(0xfffe, none), scores.AllReduceTime(0xffff, none));
  EXPECT_LT(scores.AllReduceTime(0x0077, none), scores.AllReduceTime(0b0001'0001'0001'0111, none));
  // A broken link in the set costs time; a broken link outside does not.
  EXPECT_GT(scores.AllReduceTime(0x00ff, Down(0, Axis::kX)), scores.AllReduceTime(0x00ff, none));
  EXPECT_EQ(scores.AllReduceTime(0x00ff, Down(12, Axis::kX)), scores.AllReduceTime(0x00ff, none));
  // A second call gives the same answer.
  EXPECT_EQ(scores.AllReduceTime(0xfffe, none), PlaceScores().AllReduceTime(0xfffe, none));
}

TEST(ScoreTest, ChipsThatAreCutOffComeLast) {
  torus::LinkMask cut;
  for (const Axis axis : {Axis::kX, Axis::kY}) {
    for (const int chip : {0, axis == Axis::kX ? 3 : 12}) {
      cut.along(axis) |= Down(chip, axis).along(axis);
    }
  }
  EXPECT_EQ(PlaceScores().AllReduceTime(0x00ff, cut), Picoseconds::max());
}

// The slow oracle: all connected sets of `count` chips. Other sets cross the chips of tenants.
Picoseconds LeastOfAllSets(int count, const torus::LinkMask& down) {
  const PlaceScores scores;
  const collective::DomainLinks links(torus::kInstanceShape, hw::kTrainium2.links);
  Picoseconds least = Picoseconds::max();
  for (std::uint32_t set = 1; set <= 0xffff; ++set) {
    if (std::popcount(set) != count || links.Reach(set) != set) continue;
    least = std::min(least, scores.AllReduceTime(static_cast<std::uint16_t>(set), down));
  }
  return least;
}

TEST(ChipChoiceTest, OddCountsGetASetThatIsAsFastAsAnyOfTheFreeInstance) {
  const ChipChoice choice;
  const PlaceScores scores;
  for (const int count : {3, 5, 6, 12, 14, 15}) {
    const auto chosen = choice.Choose(0xffff, count, {}, torus::kInstanceShape);
    ASSERT_TRUE(chosen.has_value());
    EXPECT_EQ(std::popcount(*chosen), count);
    const auto least = static_cast<double>(LeastOfAllSets(count, {}).count());
    EXPECT_LE(static_cast<double>(scores.AllReduceTime(*chosen, {}).count()), least * 1.01)
        << count;
  }
}

TEST(ChipChoiceTest, WhenEveryBoxHasABrokenLinkTheFastestSetIsTaken) {
  // A link of each pair of rows and of columns is down: no box of eight is whole.
  torus::LinkMask down;
  for (const int chip : {0, 5, 10, 15}) {
    down.along(Axis::kX) |= Down(chip, Axis::kX).along(Axis::kX);
    down.along(Axis::kY) |= Down(chip, Axis::kY).along(Axis::kY);
  }
  const ChipChoice choice;
  const PlaceScores scores;
  const auto chosen = choice.Choose(0xffff, 8, down, torus::kInstanceShape);
  ASSERT_TRUE(chosen.has_value());
  for (const torus::Box& box :
       torus::BoxTable::Of(torus::kInstanceShape).Rotations(Shape::Of<2, 4, 1>())) {
    EXPECT_TRUE(down.Intersects(box.links)) << box.ToString();
    EXPECT_LE(scores.AllReduceTime(*chosen, down),
              scores.AllReduceTime(static_cast<std::uint16_t>(box.mask), down));
  }
}

TEST(ChipChoiceTest, ABrokenLinkInsideIsAvoidedWhereAnotherPlaceIsFree) {
  const ChipChoice choice;
  const auto chosen = choice.Choose(0x00ff, 4, Down(0, Axis::kX), torus::kInstanceShape);
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(PlaceScores().AllReduceTime(*chosen, Down(0, Axis::kX)),
            AllReduceTime(Shape::Of<2, 2, 1>()));
  // Three chips of a row with a broken middle link would have to go round.
  const auto three = choice.Choose(0x000f | 0x0010, 3, Down(1, Axis::kX), torus::kInstanceShape);
  ASSERT_TRUE(three.has_value());
  EXPECT_NE(*three & 0b0110, 0b0110);
}

class PredictAllReduceTest : public ::testing::Test {
 protected:
  Holding Hold(const std::string& node, const std::vector<std::string>& devices) {
    Holding holding;
    for (const std::string& device : devices)
      holding.devices.push_back({.node = node, .device = device});
    return holding;
  }
  static std::vector<std::string> Chips(int first, int count) {
    std::vector<std::string> names;
    for (int i = first; i < first + count; ++i)
      names.push_back("neuron-device-" + std::to_string(i));
    return names;
  }
  std::optional<Picoseconds> Predict(const std::vector<Holding>& holdings) {
    std::vector<const Holding*> pointers;
    for (const Holding& one : holdings) pointers.push_back(&one);
    return PredictAllReduce(state_, pointers);
  }

  ClusterState state_;
};

TEST_F(PredictAllReduceTest, TheClaimsOfAGangCountTogether) {
  AddUltraServer(state_, "us-0");
  EXPECT_EQ(Predict({Hold("us-0-n1", Chips(0, 16))}), AllReduceTime(torus::kInstanceShape));
  EXPECT_EQ(Predict({Hold("us-0-n1", Chips(0, 2)), Hold("us-0-n1", Chips(2, 2))}),
            (AllReduceTime(Shape::Of<4, 1, 1>())));
  std::vector<Holding> whole;
  for (int z = 0; z < 4; ++z) whole.push_back(Hold("us-0-n" + std::to_string(z), Chips(0, 16)));
  EXPECT_EQ(Predict(whole), AllReduceTime(torus::kUltraServerShape));
}

TEST_F(PredictAllReduceTest, CoresOfPartOfAChipHaveTheirBanksOnly) {
  AddUltraServer(state_, "us-0");
  const auto cores = [](int lnc, const std::vector<int>& numbers) {
    std::vector<std::string> names;
    for (int chip = 0; chip < 4; ++chip) {
      for (const int core : numbers) {
        names.push_back(fmt::format("neuron-core-{}-lnc{}-{}", chip, lnc, core));
      }
    }
    return names;
  };
  const auto& boxes = torus::BoxTable::Of(torus::kUltraServerShape);
  const torus::Box& row =
      *std::ranges::find(boxes.Rotations(Shape::Of<4, 1, 1>()), 0xfU, &torus::Box::mask);
  const auto in_banks = [&](int banks) {
    collective::FormRequest request = kScored;
    request.banks = banks;
    return collective::PredictCollective(row, request);
  };
  EXPECT_EQ(Predict({Hold("us-0-n0", cores(2, {1}))}), in_banks(1));
  EXPECT_EQ(Predict({Hold("us-0-n0", cores(1, {2, 3}))}), in_banks(1));
  EXPECT_EQ(Predict({Hold("us-0-n0", cores(1, {1, 2}))}), in_banks(2));
  EXPECT_EQ(Predict({Hold("us-0-n0", cores(2, {0, 1, 2, 3}))}), AllReduceTime(row.size));
  EXPECT_GT(in_banks(1), in_banks(4));
}

TEST_F(PredictAllReduceTest, DomainsAreJoinedByEfa) {
  state_.PutNode(NodeFactsOf({.name = "a"}));
  state_.PutNode(NodeFactsOf({.name = "b"}));
  const std::vector<collective::DomainPart> parts(2, {.chips = 0xffff, .faults = {}});
  EXPECT_EQ(Predict({Hold("a", Chips(0, 16)), Hold("b", Chips(0, 16))}),
            *collective::PredictOverDomains(parts, kScored));
}

TEST_F(PredictAllReduceTest, AGangOnTrn1GetsTheTimeOfTrainium1) {
  state_.PutNode(NodeFactsOf({.name = "trn1-a", .type = "trn1.32xlarge"}));
  state_.PutNode(NodeFactsOf({.name = "trn1-b", .type = "trn1.32xlarge"}));
  state_.PutNode(NodeFactsOf({.name = "trn2", .type = "trn2.48xlarge"}));
  const auto trn1 = Predict({Hold("trn1-a", Chips(0, 16))});
  const auto trn2 = Predict({Hold("trn2", Chips(0, 16))});
  ASSERT_TRUE(trn1 && trn2);
  // Links of 48 GB/s, not 128.
  const auto& boxes = torus::BoxTable::Of(torus::kInstanceShape);
  const torus::Box& whole = boxes.Rotations(torus::kInstanceShape).front();
  EXPECT_EQ(*trn1, collective::PredictCollective(whole, kScored, hw::kTrainium1));
  EXPECT_NEAR(static_cast<double>(trn1->count()) / static_cast<double>(trn2->count()), 128.0 / 48,
              0.1);
  // NICs of 6.25 GB/s, not 25.
  const std::vector<collective::DomainPart> parts(2, {.chips = 0xffff, .faults = {}});
  EXPECT_EQ(Predict({Hold("trn1-a", Chips(0, 16)), Hold("trn1-b", Chips(0, 16))}),
            *collective::PredictOverDomains(parts, kScored, hw::kTrainium1));
  // A collective needs chips of one model.
  EXPECT_EQ(Predict({Hold("trn1-a", Chips(0, 16)), Hold("trn2", Chips(0, 16))}), std::nullopt);
}

TEST_F(PredictAllReduceTest, ABrokenLinkOfTheNodeShows) {
  FleetNode broken{.name = "a"};
  broken.links_down = {"x+"};  // of chip 0
  state_.PutNode(NodeFactsOf(broken));
  state_.PutNode(NodeFactsOf({.name = "b"}));
  const auto slow = Predict({Hold("a", Chips(0, 16))});
  const auto fast = Predict({Hold("b", Chips(0, 16))});
  ASSERT_TRUE(slow && fast);
  EXPECT_GT(*slow, *fast);
  EXPECT_EQ(*slow, PlaceScores().AllReduceTime(0xffff, Down(0, Axis::kX)));
  EXPECT_EQ(Predict({Hold("a", Chips(4, 4))}), Predict({Hold("b", Chips(4, 4))}));
}

TEST_F(PredictAllReduceTest, OneChipAndUnknownNodesHaveNoPrediction) {
  AddUltraServer(state_, "us-0");
  EXPECT_EQ(Predict({}), std::nullopt);
  EXPECT_EQ(Predict({Hold("us-0-n0", Chips(3, 1))}), std::nullopt);
  EXPECT_EQ(Predict({Hold("elsewhere", Chips(0, 4))}), std::nullopt);
  Holding admin = Hold("us-0-n0", Chips(0, 4));
  for (auto& device : admin.devices) device.admin_access = true;
  EXPECT_EQ(Predict({admin}), std::nullopt);
}

TEST(TimeTextTest, TimesHaveFourDigitsAndAUnit) {
  EXPECT_EQ(TimeText(Picoseconds(627'240'000)), "627.2us");
  EXPECT_EQ(TimeText(Picoseconds(1'273'400'000)), "1.273ms");
  EXPECT_EQ(TimeText(Picoseconds(2'000'000'000'000)), "2.000s");
}

}  // namespace
}  // namespace tahoma::controller
