// CapacityBlockSeries: all blocks or none, whenever a controller dies, and named after the series.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/controller/core/request_world.h"

namespace tahoma::controller {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kSeries[] = "capacityblockseries";

const Json kWeekly = {{"ultraserverType", "u-trn2x64"},
                      {"ultraserverCount", 1},
                      {"capacityDurationHours", 24},
                      {"occurrences", 3}};

class SeriesTest : public ::testing::Test {
 protected:
  SeriesTest() { world.Settle(); }

  void Apply(const std::string& name, const Json& spec) {
    world.Apply(kSeries, "team-a", name, spec);
    world.Settle();
  }
  Json Status(const std::string& name) const { return world.Status(kSeries, "team-a", name); }
  std::string Refusal(const std::string& name) const {
    return Status(name).value("reason", "") + ": " + Status(name).value("message", "");
  }

  RequestWorld world;
};

TEST_F(SeriesTest, BlocksAreBoughtSomeWeeksApart) {
  Apply("weekly", kWeekly);
  EXPECT_EQ(world.State(kSeries, "weekly"), "purchased");
  const WallTime first = *ParseTime("2026-11-23T11:30:00Z");
  for (int i = 0; i < 3; ++i) {
    const std::string name = "weekly-" + std::to_string(i + 1);
    EXPECT_EQ(world.State(kBlocks, name), "scheduled");
    EXPECT_EQ(world.BlockOf(name).start(), first + kSlotLength * (7 * i));
    const Json row = Status("weekly").at("capacityBlocks").at(static_cast<std::size_t>(i));
    EXPECT_EQ(row.at("capacityBlockName"), name);
    EXPECT_EQ(row.at("capacityReservationId"), world.BlockOf(name).reservation);
    EXPECT_FALSE(row.contains("record"));
  }
  EXPECT_EQ(Status("weekly").at("conditions").at(0).at("status"), "True");
  EXPECT_THAT(world.events, Contains("CapacityBlockSeries weekly: SeriesPurchased"));
}

TEST_F(SeriesTest, AllOfThemOrNone) {
  // Both UltraServers are another's in the third week.
  world.Apply(kBlocks, "team-b", "both", {{"capacityBlockOfferingId", world.Offering(1, 2, 16)}});
  world.Settle();
  ASSERT_EQ(world.Status(kBlocks, "team-b", "both").value("state", ""), "scheduled");
  const std::size_t entries = world.journal.size();
  Json spec = kWeekly;
  spec["startDateRange"] = "2026-11-24T11:30:00Z";
  Apply("weekly", spec);
  EXPECT_THAT(Refusal("weekly"),
              HasSubstr("InsufficientInstanceCapacity: occurrence 3 from 2026-12-08T11:30:00Z: "));
  EXPECT_FALSE(world.Exists(kBlocks, "team-a", "weekly-1"));
  EXPECT_EQ(world.core().snapshot()->block_list.size(), 1U);
  EXPECT_EQ(world.journal.size(), entries);
  for (const std::string& event : world.events)
    EXPECT_THAT(event, ::testing::Not(HasSubstr("weekly-")));
  // What it would have had is for sale, and the refusal is for good.
  world.Start();
  world.Settle();
  EXPECT_THAT(Refusal("weekly"), HasSubstr("InsufficientInstanceCapacity"));
  spec["occurrences"] = 2;
  Apply("fortnight", spec);
  EXPECT_EQ(world.State(kSeries, "fortnight"), "purchased");
}

TEST_F(SeriesTest, BlocksThatOverlapNeedHostsOfTheirOwn) {
  Json spec = kWeekly;
  spec["capacityDurationHours"] = 240;  // ten days, every week
  Apply("two", spec);
  EXPECT_EQ(world.State(kSeries, "two"), "purchased");
  Apply("three", spec);
  EXPECT_THAT(Refusal("three"), HasSubstr("InsufficientInstanceCapacity: occurrence 1"));
}

TEST_F(SeriesTest, TheQuotaCountsAllOfThem) {
  world.Apply("capacityblockquotas", "", "team-a", {{"instances", 4}});
  world.Settle();
  Json spec = kWeekly;
  spec["capacityDurationHours"] = 240;
  Apply("two", spec);
  EXPECT_THAT(Refusal("two"), HasSubstr("InstanceLimitExceeded: "));
  EXPECT_EQ(world.core().snapshot()->block_list.size(), 0U);
}

TEST_F(SeriesTest, ARefusalSaysWhatWouldBeLegal) {
  Json spec = kWeekly;
  spec["occurrences"] = 8;
  spec["everyWeeks"] = 2;
  Apply("long", spec);
  EXPECT_THAT(Refusal("long"),
              HasSubstr("InvalidParameterValue: occurrences 8: the last would begin 2027-03-01"));
  EXPECT_THAT(Refusal("long"), HasSubstr("; 4 would be possible"));
  spec = kWeekly;
  spec["capacityDurationHours"] = 25;
  Apply("odd", spec);
  EXPECT_THAT(Refusal("odd"), HasSubstr("CapacityDurationHours 25: must be 24 to 336"));
  spec = kWeekly;
  spec["occurrences"] = 99;
  Apply("many", spec);
  EXPECT_EQ(Refusal("many"), "InvalidParameterValue: spec.occurrences: is 99, must be 1 to 8");
  world.Buy("weekly-2");
  Apply("weekly", kWeekly);
  EXPECT_THAT(Refusal("weekly"), HasSubstr("there is a CapacityBlock team-a/weekly-2 already"));
  EXPECT_EQ(world.core().snapshot()->block_list.size(), 1U);
}

// Whatever was written when the first controller died: all of the blocks are bought in the end, the
// same ones as were shown, and none twice.
TEST_F(SeriesTest, AllAreBoughtOnceWhereverAControllerDies) {
  for (const bool journal_lost : {false, true}) {
    for (int writes = 0; writes < 14; ++writes) {
      SCOPED_TRACE(fmt::format("{} writes, journal {}", writes, journal_lost ? "lost" : "kept"));
      RequestWorld one;
      one.Settle();
      one.Apply(kSeries, "team-a", "weekly", kWeekly);
      one.Settle(writes);
      const Json shown = one.Status(kSeries, "team-a", "weekly");
      // No block is seen before the series says that all are bought.
      for (int i = 1; i <= 3; ++i) {
        if (shown.empty()) {
          EXPECT_FALSE(one.Exists(kBlocks, "team-a", fmt::format("weekly-{}", i)));
        }
      }
      if (journal_lost) {
        one.FailOver();
      } else {
        one.Start();
      }
      one.Settle();
      EXPECT_EQ(one.State(kSeries, "weekly"), "purchased");
      EXPECT_EQ(one.core().snapshot()->block_list.size(), 3U);
      const Json after = one.Status(kSeries, "team-a", "weekly");
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(one.State(kBlocks, fmt::format("weekly-{}", i + 1)), "scheduled");
        EXPECT_FALSE(after.at("capacityBlocks").at(i).contains("record"));
        if (!shown.empty()) {
          EXPECT_EQ(shown.at("capacityBlocks").at(i).at("capacityReservationId"),
                    after.at("capacityBlocks").at(i).at("capacityReservationId"));
        }
      }
    }
  }
}

TEST_F(SeriesTest, ABlockThatHasEndedDoesNotComeBack) {
  Apply("weekly", kWeekly);
  world.MoveTo(world.BlockOf("weekly-1").end);
  ASSERT_EQ(world.State(kBlocks, "weekly-1"), "expired");
  world.Delete(kBlocks, "team-a", "weekly-1");
  world.Settle();
  world.FailOver();
  world.Settle();
  EXPECT_EQ(world.View("weekly-1"), nullptr);
  EXPECT_EQ(world.State(kBlocks, "weekly-2"), "scheduled");
  EXPECT_EQ(world.State(kSeries, "weekly"), "purchased");
}

// The segments of an offering, bought together.
TEST_F(SeriesTest, OfferingsAreBoughtTogetherOrNotAtAll) {
  const std::string first = world.Offering(1, 1, 1), second = world.Offering(2, 2, 4);
  Apply("pieces", {{"capacityBlockOfferingIds", {first, second}}});
  EXPECT_EQ(world.State(kSeries, "pieces"), "purchased");
  EXPECT_EQ(OfferingId(world.BlockOf("pieces-1").bought), first);
  EXPECT_EQ(OfferingId(world.BlockOf("pieces-2").bought), second);
  EXPECT_EQ(world.State(kBlocks, "pieces-2"), "scheduled");
  // One UltraServer is free on the first day, none on the other.
  Apply("again", {{"capacityBlockOfferingIds", {first, second}}});
  EXPECT_THAT(
      Refusal("again"),
      ::testing::AllOf(HasSubstr("InvalidCapacityBlockOfferingIdExpired: offering 2 of 2: "),
                       HasSubstr("; none was bought")));
  EXPECT_EQ(world.core().snapshot()->block_list.size(), 2U);
}

TEST_F(SeriesTest, NamedOfferingsLeaveNothingToSearchFor) {
  const std::string offering = world.Offering(1, 1, 1);
  Apply("both", {{"capacityBlockOfferingIds", {offering}}, {"occurrences", 2}});
  EXPECT_THAT(Refusal("both"), HasSubstr("spec.occurrences: must not be set with "
                                         "capacityBlockOfferingIds"));
  Apply("none", {{"capacityBlockOfferingIds", Json::array()}});
  EXPECT_THAT(Refusal("none"), HasSubstr("capacityBlockOfferingIds: must name offerings"));
  Apply("odd", {{"capacityBlockOfferingIds", {offering, "cb-xyz"}}});
  EXPECT_THAT(Refusal("odd"),
              HasSubstr("InvalidCapacityBlockOfferingIdMalformed: offering 2 of 2"));
  EXPECT_EQ(world.core().snapshot()->block_list.size(), 0U);
}

TEST_F(SeriesTest, ASeriesThatIsDeletedLeavesItsBlocks) {
  Apply("weekly", kWeekly);
  world.Delete(kSeries, "team-a", "weekly");
  world.Settle();
  EXPECT_EQ(world.State(kBlocks, "weekly-3"), "scheduled");
}

}  // namespace
}  // namespace tahoma::controller
