// A search finds what can be bought, the earliest of each form, and says what is nearest.

#include "controller/reserve/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "controller/reserve/refusal.h"
#include "lib/base/rng.h"
#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller {
namespace {

WallTime TimeAt(const char* text) { return *ParseTime(text); }

OfferingQuery UltraServers(int count, int hours) {
  return {.ultraserver_type = "u-trn2x64", .ultraserver_count = count, .duration_hours = hours};
}

std::string OfferingText(const Offering& offering) {
  return fmt::format("{} {}..{} {}", offering.count, FormatTime(offering.start),
                     FormatTime(offering.end), offering.fee().ToString());
}

std::string CodeOf(const OfferingQuery& query) {
  const auto search = CheckQuery(query, TimeAt("2026-11-23T09:00:00Z"));
  return search.ok() ? "" : Ec2CodeOf(search.status());
}

TEST(CheckQueryTest, EachWrongQueryHasEc2sCode) {
  OfferingQuery query = UltraServers(1, 24);
  EXPECT_EQ(CodeOf(query), "");
  query.instance_type = "trn2.48xlarge";
  EXPECT_EQ(CodeOf(query), "InvalidParameterCombination");
  EXPECT_EQ(CodeOf({.duration_hours = 24}), "MissingParameter");
  EXPECT_EQ(CodeOf({.instance_type = "trn2.48xlarge", .duration_hours = 24}), "MissingParameter");
  EXPECT_EQ(CodeOf({.instance_type = "trn2.48xlarge", .instance_count = 1}), "MissingParameter");
  for (const char* type : {"p5.48xlarge", "u-trn2x64", "trn2u.48xlarge"}) {
    EXPECT_EQ(CodeOf({.instance_type = type, .instance_count = 1, .duration_hours = 24}),
              "InvalidParameterValue");
  }
  for (const int count : {0, -1, 65}) {
    EXPECT_EQ(CodeOf(UltraServers(count, 24)), "InvalidParameterValue") << count;
  }
  for (const int hours : {0, 1, 25, 360, 4392}) {
    EXPECT_EQ(CodeOf(UltraServers(1, hours)), "InvalidParameterValue") << hours;
  }
  for (const int segments : {0, -1, 6}) {
    query = UltraServers(1, 24);
    query.segments = segments;
    EXPECT_EQ(CodeOf(query), "InvalidParameterValue") << segments;
  }
  query = UltraServers(1, 48);
  query.max_duration_hours = 24;
  EXPECT_EQ(CodeOf(query), "InvalidParameterCombination");
  query = UltraServers(1, 48);
  query.start_date_range = TimeAt("2027-01-19T00:00:00Z");
  EXPECT_EQ(CodeOf(query), "InvalidParameterValue");
  query.start_date_range = TimeAt("2026-12-01T00:00:00Z");
  query.end_date_range = TimeAt("2026-12-01T12:00:00Z");
  EXPECT_EQ(CodeOf(query), "InvalidParameterCombination");
  query = UltraServers(1, 24);
  query.end_date_range = TimeAt("2026-11-23T08:00:00Z");
  EXPECT_EQ(CodeOf(query), "InvalidParameterValue");
}

TEST(CheckQueryTest, TheMessageSaysWhatWouldBeLegal) {
  const auto search = CheckQuery(UltraServers(1, 360), TimeAt("2026-11-23T09:00:00Z"));
  EXPECT_EQ(search.status().message(),
            "CapacityDurationHours 360: must be 24 to 336 in steps of 24, or 504 to 4368 in steps "
            "of 168");
}

// docs/reference/capacity-blocks.md#offerings, with a day of 24 h asked for at 02:23.
TEST(SearchTest, ADayIsOfferedInThreeForms) {
  BlockWorld world({.hosts = 1, .product = "trn2.48xlarge"});
  const WallTime now = TimeAt("2026-11-24T02:23:00Z");
  world.MoveTo(now);
  const auto search = CheckQuery(
      {.instance_type = "trn2.48xlarge", .instance_count = 1, .duration_hours = 24}, now);
  const SearchAnswer answer =
      SearchOfferings(world.book().profile(), world.book().prices(), *search, now);
  ASSERT_EQ(answer.offerings.size(), 3U);
  EXPECT_EQ(OfferingText(answer.offerings[0]),
            "1 2026-11-24T02:53:00Z..2026-11-24T11:30:00Z 308.14");
  EXPECT_EQ(OfferingText(answer.offerings[1]),
            "1 2026-11-24T11:30:00Z..2026-11-25T11:30:00Z 858.26");
  EXPECT_EQ(OfferingText(answer.offerings[2]),
            "1 2026-11-24T02:53:00Z..2026-11-25T11:30:00Z 1166.40");
}

TEST(SearchTest, ABlockOfMinutesIsNotOffered) {
  BlockWorld world({.hosts = 1, .product = "trn2.48xlarge"});
  // TimeAt 10:31 a block could begin at 11:01, with a minute less than it takes to be of use.
  for (const auto& [time, offered] :
       {std::pair{"2026-11-23T10:00:00Z", true}, std::pair{"2026-11-23T10:01:00Z", false}}) {
    world.MoveTo(TimeAt(time));
    const SearchAnswer answer = world.Search({.days = 1, .at_once = true});
    EXPECT_EQ(answer.offerings.front().start < world.next_boundary(), offered) << time;
  }
}

TEST(SearchTest, TheEarliestStartWithTheCapacityIsOffered) {
  BlockWorld world({.hosts = 4});
  const auto week = world.Buy({.days = 7, .count = 3});
  EXPECT_EQ(world.Find({.days = 1, .count = 1}).start, week->start());
  EXPECT_EQ(world.Find({.days = 1, .count = 2}).start, week->end);
  EXPECT_EQ(world.Find({.days = 1, .count = 2, .start_in_days = 10}).start,
            week->start() + kDay * 10);
}

TEST(SearchTest, ABlockLiesInOneCellUnlessItMayLieAnywhere) {
  BlockWorld world({.hosts = 8, .cells = 4});
  EXPECT_TRUE(world.Search({.count = 3}).offerings.empty());
  EXPECT_FALSE(world.Search({.count = 2}).offerings.empty());
  const Wish wish{.count = 8, .any_cell = true};
  const auto block = world.Buy(wish);
  EXPECT_EQ(block->cells.size(), 4U);
  EXPECT_TRUE(world.Search({.count = 1, .start_in_days = 0}).offerings.front().start >= block->end);
}

TEST(SearchTest, TheCellWithTheLeastRoomIsTaken) {
  BlockWorld world({.hosts = 8, .cells = 2});
  const auto first = world.Buy({.count = 1});
  const auto second = world.Buy({.count = 1});
  EXPECT_EQ(first->cells, second->cells);
  EXPECT_FALSE(world.Search({.count = 4}).offerings.front().start > first->start());
}

TEST(SearchTest, HostsInUseAreNotOfferedBeforeTheirUseEnds) {
  BlockWorld world({.hosts = 2});
  world.SetHeld(0, "team-b");
  world.SetHeld(1, "team-b", world.next_boundary() + kHour * 30);
  EXPECT_TRUE(world.Search({.count = 2}).offerings.empty());
  EXPECT_EQ(world.Find({.count = 1}).start, world.next_boundary() + kDay * 2);
}

TEST(SearchTest, SparesAreNotSold) {
  BlockWorld world({.hosts = 64});
  EXPECT_TRUE(world.Search({.count = 63}).offerings.empty());
  EXPECT_FALSE(world.Search({.count = 62}).offerings.empty());
}

// A week in between is sold: four days in a row are free after it only.
TEST(SearchTest, SegmentsAroundWhatIsSoldEndSoonerThanOneOfferingBehindIt) {
  BlockWorld world({.hosts = 1});
  const auto week = world.Buy({.days = 7, .start_in_days = 2});
  OfferingQuery query = UltraServers(1, 4 * 24);
  const auto search = [&] {
    return SearchOfferings(world.book().profile(), world.book().prices(),
                           *CheckQuery(query, world.now()), world.now());
  };
  EXPECT_TRUE(search().split.empty()) << "nobody asked for segments";
  query.segments = 2;
  const SearchAnswer answer = search();
  ASSERT_EQ(answer.offerings.size(), 1U);
  EXPECT_EQ(answer.offerings[0].start, week->end);
  ASSERT_EQ(answer.split.size(), 1U);
  const std::vector<Offering>& segments = answer.split[0];
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0].start, world.next_boundary());
  EXPECT_LE(segments[0].end, week->start());
  EXPECT_EQ(segments[1].start, week->end);
  EXPECT_LT(segments[1].end, answer.offerings[0].end);
  EXPECT_EQ(segments[0].duration() + segments[1].duration(), kDay * 4);
  EXPECT_EQ(segments[0].fee() + segments[1].fee(), answer.offerings[0].fee());
  for (const Offering& segment : segments) {
    EXPECT_TRUE(world.TryToBuy(segment, {.owner = "team-b"}).ok()) << FormatTime(segment.start);
  }
  world.Audit();
}

TEST(SearchTest, WhereOneOfferingEndsAsSoonThereAreNoSegments) {
  BlockWorld world({.hosts = 1});
  OfferingQuery query = UltraServers(1, 14 * 24);
  query.segments = 5;
  const auto search = CheckQuery(query, world.now());
  const SearchAnswer answer =
      SearchOfferings(world.book().profile(), world.book().prices(), *search, world.now());
  EXPECT_FALSE(answer.offerings.empty());
  EXPECT_TRUE(answer.split.empty());
}

TEST(SearchTest, AFlexibleDurationAnswersEachLegalOne) {
  BlockWorld world({.hosts = 1});
  OfferingQuery query = UltraServers(1, 13 * 24);
  query.max_duration_hours = 28 * 24;
  query.start_date_range = world.next_boundary();
  const auto search = CheckQuery(query, world.now());
  std::vector<std::int64_t> days;
  for (const Offering& offering :
       SearchOfferings(world.book().profile(), {}, *search, world.now()).offerings) {
    days.push_back(offering.duration_hours() / 24);
  }
  EXPECT_EQ(days, (std::vector<std::int64_t>{13, 14, 21, 28}));
}

TEST(SearchTest, ASearchThatFindsNothingSaysWhatIsNearest) {
  BlockWorld world({.hosts = 4});
  world.Buy({.days = 7, .count = 3, .start_in_days = 3});
  OfferingQuery query = UltraServers(2, 7 * 24);
  query.start_date_range = world.next_boundary();
  query.end_date_range = world.next_boundary() + kDay * 9;
  const auto search = CheckQuery(query, world.now());
  const SearchAnswer answer = SearchOfferings(world.book().profile(), {}, *search, world.now());
  EXPECT_TRUE(answer.offerings.empty());
  ASSERT_EQ(answer.shortages.size(), 1U);
  EXPECT_EQ(answer.shortages[0].most, 1);
  EXPECT_EQ(answer.shortages[0].missing, 1);
  EXPECT_EQ(answer.shortages[0].message,
            "zone tahoma-1a: at most 1 of 2 u-trn2x64 are free for 168 h with a start from "
            "2026-11-23T11:30:00Z to 2026-11-25T11:30:00Z");
  std::vector<std::string> nearest;
  for (const Offering& offering : answer.nearest) {
    nearest.push_back(fmt::format("{} for {} days from {}", offering.count,
                                  offering.duration_hours() / 24, FormatTime(offering.start)));
  }
  EXPECT_EQ(nearest, (std::vector<std::string>{"2 for 3 days from 2026-11-23T11:30:00Z",
                                               "1 for 7 days from 2026-11-23T11:30:00Z",
                                               "2 for 7 days from 2026-12-03T11:30:00Z"}));
}

TEST(SearchTest, AnUnknownZoneHasNothing) {
  BlockWorld world;
  OfferingQuery query = UltraServers(1, 24);
  query.zones = {"us-east-2a"};
  const SearchAnswer answer =
      SearchOfferings(world.book().profile(), {}, *CheckQuery(query, world.now()), world.now());
  EXPECT_TRUE(answer.offerings.empty());
  EXPECT_EQ(answer.shortages.front().message, "no zone has u-trn2x64 here");
}

TEST(SearchTest, AnOldProfileAndAClockThatStepsBackAreServed) {
  BlockWorld world({.hosts = 1});
  const auto search = CheckQuery(UltraServers(1, 182 * 24), world.now());
  for (const int days : {-3, -1, 0, 1, 2, 300}) {
    const WallTime now = world.now() + kDay * days;
    const SearchAnswer answer = SearchOfferings(world.book().profile(), {}, *search, now);
    EXPECT_EQ(answer.offerings.empty(), days == 300) << days;
  }
}

// The aligned offering is the first start at which a table of days has room, in 300 random fleets.
TEST(SearchTest, AgreesWithTryingEveryStart) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    BlockWorld world({.hosts = 6, .cells = 2});
    for (int i = 0; i < 8; ++i) {
      const Wish wish{.days = LegalDays()[rng.Below(20)],
                      .count = 1 + static_cast<int>(rng.Below(3)),
                      .start_in_days = static_cast<int>(rng.Below(50))};
      if (!world.Search(wish).offerings.empty()) world.Buy(wish);
    }
    const TimeProfile& profile = world.book().profile();
    const Wish wish{.days = LegalDays()[rng.Below(25)],
                    .count = 1 + static_cast<int>(rng.Below(3)),
                    .start_in_days = static_cast<int>(rng.Below(40))};
    const Slot first = SlotOf(world.next_boundary()) + wish.start_in_days;
    const Slot last = SlotOf(world.now() + kHorizon);
    std::optional<Slot> expected;
    for (Slot start = first; start <= last && !expected; ++start) {
      for (std::size_t pool = 0; pool < 2 && !expected; ++pool) {
        bool room = true;
        for (Slot slot = start; slot < start + wish.days; ++slot) {
          room = room && 3 - profile.Booked(PoolId(pool), slot) >= wish.count;
        }
        if (room) expected = start;
      }
    }
    const SearchAnswer answer = world.Search(wish);
    ASSERT_EQ(answer.offerings.empty(), !expected.has_value()) << "seed " << seed;
    if (expected) {
      EXPECT_EQ(answer.offerings.front().start, StartOf(*expected)) << "seed " << seed;
    } else if (!answer.nearest.empty()) {
      const Offering& nearest = answer.nearest.front();
      EXPECT_TRUE(world.TryToBuy(nearest, wish).ok())
          << "seed " << seed << ": " << OfferingText(nearest);
    }
  }
}

TEST(SearchTest, NothingIsFoundThatTheQuotaOfItsOwnerRefuses) {
  BlockWorld world({.hosts = 4});
  QuotaTable quotas(SlotOf(world.now()));
  quotas.Set("a", Quota{.instances = 8});  // two UltraServers
  const auto find = [&](const OfferingQuery& query, const std::string& owner) {
    auto search = CheckQuery(query, world.now());
    search->owner = owner;
    search->quotas = std::make_shared<const QuotaTable>(quotas);
    return SearchOfferings(world.book().profile(), {}, *search, world.now());
  };
  EXPECT_FALSE(find(UltraServers(2, 24), "a").offerings.empty());
  EXPECT_FALSE(find(UltraServers(3, 24), "b").offerings.empty());
  const SearchAnswer refused = find(UltraServers(3, 24), "a");
  EXPECT_TRUE(refused.offerings.empty());
  ASSERT_EQ(refused.shortages.size(), 1U);
  EXPECT_TRUE(refused.shortages[0].quota);
  EXPECT_EQ(refused.shortages[0].missing, 0);
  EXPECT_NE(refused.shortages[0].message.find(
                "12 instances beside the 0 that the blocks of a have then are more than the 8 that "
                "are allowed on any date"),
            std::string::npos)
      << refused.shortages[0].message;
  ASSERT_EQ(refused.nearest.size(), 1U);
  EXPECT_EQ(refused.nearest[0].count, 2);

  // It has them for three days already: the day after is found, at once nothing.
  const Slot today = SlotOf(world.now());
  quotas.Add("a", {today, today + 3}, 8);
  const SearchAnswer later = find(UltraServers(1, 24), "a");
  ASSERT_EQ(later.offerings.size(), 1U);
  EXPECT_EQ(later.offerings[0].start, StartOf(today + 3));
}

}  // namespace
}  // namespace tahoma::controller
