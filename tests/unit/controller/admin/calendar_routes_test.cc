// The calendar: the numbers are those of the profile of time, each block is on one page, and what
// is not a day that is sold is refused.

#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CalendarTest : public AdminFixture {
 protected:
  CalendarTest() : today_(SlotOf(clock_.WallNow())) { snapshot_.profile = TimeProfile(today_); }

  PoolId AddPool(const std::string& zone, const std::string& cell, int healthy, int spare = 0) {
    const PoolId id =
        snapshot_.profile.IdOf({.product = FindProduct("u-trn2x64"), .zone = zone, .cell = cell});
    snapshot_.profile.SetSupply(id, {.healthy = healthy, .spare = spare});
    return id;
  }

  Block AddBlock(const std::string& name, Slot first, Slot last, int count = 2,
                 BlockState state = BlockState::kScheduled) {
    Block block;
    block.reservation = "cr-" + name;
    block.key = {"team-a", name};
    block.state = state;
    block.bought = {.product = FindProduct("u-trn2x64"),
                    .count = count,
                    .zone = "z",
                    .start = StartOf(first),
                    .end = StartOf(last)};
    block.end = block.bought.end;
    block.cells = {{.cell = "c", .hosts = count}};
    snapshot_.blocks.Put(block.key, std::make_shared<const BlockView>(
                                        BlockView{.block = std::make_shared<const Block>(block)}));
    return block;
  }

  static std::vector<std::string> NamesIn(const Json& rows) {
    std::vector<std::string> names;
    for (const Json& row : rows) names.push_back(row["name"]);
    return names;
  }

  const Slot today_;
};

TEST_F(CalendarTest, ShowsWhatIsSoldAndWhatIsFreeDayByDay) {
  const PoolId pool = AddPool("z", "c", 8, 1);
  snapshot_.profile.Book(pool, {today_ + 1, today_ + 3}, 2);
  snapshot_.profile.Occupy(pool, today_ + 1, 1);
  const Block block = AddBlock("b", today_ + 1, today_ + 3);
  const Outcome answer = Get("/v1/calendar?to=" + FormatTime(StartOf(today_ + 4)));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body["from"], FormatTime(StartOf(today_)));
  EXPECT_EQ(answer.body["to"], FormatTime(StartOf(today_ + 4)));
  ASSERT_THAT(answer.body["pools"], SizeIs(1));
  EXPECT_EQ(answer.body["pools"][0], (Json{{"product", "u-trn2x64"},
                                           {"availabilityZone", "z"},
                                           {"cell", "c"},
                                           {"healthy", 8},
                                           {"spare", 1},
                                           {"sold", {0, 2, 2, 0}},
                                           {"free", {6, 5, 5, 7}}}));
  ASSERT_THAT(answer.body["blocks"], SizeIs(1));
  const Json& held = answer.body["blocks"][0];
  EXPECT_EQ(held["capacityReservationId"], "cr-b");
  EXPECT_EQ(held["startDate"], FormatTime(block.start()));
  EXPECT_EQ(held["reclaimDate"], FormatTime(block.end - hours(1)));
  EXPECT_EQ(held["cells"], Json({{{"cell", "c"}, {"hosts", 2}}}));
  EXPECT_FALSE(answer.body.contains("next"));
}

TEST_F(CalendarTest, ShowsBlocksThatHoldHardwareInItsDaysOnly) {
  AddBlock("before", today_ - 3, today_);
  AddBlock("first", today_ - 1, today_ + 1, 1, BlockState::kActive);
  AddBlock("last", today_ + 13, today_ + 20);
  AddBlock("after", today_ + 14, today_ + 20);
  AddBlock("unpaid", today_ + 1, today_ + 2, 1, BlockState::kPaymentFailed);
  snapshot_.blocks.Put({"team-a", "refused"},
                       std::make_shared<const BlockView>(BlockView{.refusal = "Unsupported"}));
  EXPECT_THAT(NamesIn(Get("/v1/calendar").body["blocks"]), ::testing::ElementsAre("first", "last"));
  EXPECT_THAT(Get("/v1/calendar?zone=y").body["blocks"], IsEmpty());
}

TEST_F(CalendarTest, IsReadInPagesOfPoolsAndThenOfBlocks) {
  for (int i = 0; i < 250; ++i) AddPool("z", "c" + std::to_string(i), 1);
  for (int i = 0; i < 1100; ++i) AddBlock("b" + std::to_string(10'000 + i), today_, today_ + 1);
  std::size_t pools = 0, pages = 0;
  std::vector<std::string> blocks;
  for (std::string page; pages < 10; ++pages) {
    const Outcome answer = Get("/v1/calendar" + (page.empty() ? "" : "?page=" + page));
    ASSERT_EQ(answer.status, 200);
    pools += answer.body["pools"].size();
    for (const std::string& name : NamesIn(answer.body["blocks"])) blocks.push_back(name);
    if (!answer.body.contains("next")) break;
    page = answer.body["next"];
  }
  EXPECT_EQ(pages, 2U) << "200 pools; 50 pools and 1000 blocks; 100 blocks";
  EXPECT_EQ(pools, 250U);
  EXPECT_THAT(blocks, SizeIs(1100));
  EXPECT_TRUE(std::is_sorted(blocks.begin(), blocks.end()));
}

TEST_F(CalendarTest, DaysThatAreNotSoldAreRefusedOrLeftOut) {
  AddPool("z", "c", 8);
  const std::string later = FormatTime(StartOf(today_ + 300));
  for (const std::string query :
       {"to=2020-01-01T00:00:00Z", "from=9999-01-01T00:00:00Z", "from=0001-01-01T00:00:00Z&to=x",
        "page=x", "page=-1", "page=1e9"}) {
    const Outcome answer = Get("/v1/calendar?" + query);
    EXPECT_EQ(answer.status, 400) << query << answer.body;
  }
  const Outcome all = Get("/v1/calendar?from=2020-01-01T00:00:00Z&to=" + later);
  EXPECT_EQ(all.body["from"], FormatTime(StartOf(today_))) << "days that are over are forgotten";
  EXPECT_THAT(all.body["pools"][0]["free"], SizeIs(kSlotsAhead));
  EXPECT_THAT(Get("/v1/calendar?page=999999999").body["pools"], IsEmpty());
}

TEST_F(CalendarTest, AnUnsyncedControllerDoesNotSayThatTheFleetIsEmpty) {
  snapshot_.synced = false;
  EXPECT_EQ(Get("/v1/calendar").status, 503);
}

TEST_F(CalendarTest, ASnapshotOfYesterdayShowsTodaysNumbers) {
  const PoolId pool = AddPool("z", "c", 8);
  snapshot_.profile.Book(pool, {today_ + 1, today_ + 2}, 3);
  clock_.Advance(hours(24));
  const Outcome answer = Get("/v1/calendar");
  EXPECT_EQ(answer.body["from"], FormatTime(StartOf(today_ + 1)));
  EXPECT_EQ(answer.body["pools"][0]["sold"][0], 3);
  EXPECT_EQ(answer.body["pools"][0]["sold"][1], 0);
}

}  // namespace
}  // namespace tahoma::controller
