// The calendar of Capacity Blocks: what is read of the objects, which rows and bars come of it, and
// both pictures against golden files.

#include "controller/ctl/calendar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "controller/ctl/calendar_reader.h"
#include "controller/ctl/calendar_svg.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

WallTime At(const std::string& text) { return *ParseTime(text); }
const WallTime kNow = At("2026-11-25T18:00:00Z");

CalendarBlock Block(const std::string& name, BlockState state, const std::string& start,
                    const std::string& end) {
  const WallTime ends = At(end + "T11:30:00Z");
  return {.ns = "team-a",
          .name = name,
          .state = state,
          .type = "u-trn2x64",
          .count = 2,
          .cells = {"nn-1"},
          .hosts = state == BlockState::kActive ? std::vector<std::string>{"us-0", "us-1"}
                                                : std::vector<std::string>{},
          .start = At(start + "T11:30:00Z"),
          .end = ends,
          .reclaim = ends - std::chrono::minutes(60),
          .extended_end = ends,
          .fee = "6866.08"};
}

// One of each state, an extension that waits for its payment, and two that adjoin.
std::vector<CalendarBlock> AllSorts() {
  std::vector<CalendarBlock> blocks = {
      Block("pretrain", BlockState::kActive, "2026-11-24", "2026-12-01"),
      Block("finetune", BlockState::kScheduled, "2026-12-01", "2026-12-08"),
      Block("<eval> & \"co\"", BlockState::kPaymentPending, "2026-11-28", "2026-11-29"),
      Block("broken", BlockState::kUnavailable, "2026-11-20", "2026-11-27"),
      Block("late", BlockState::kFailed, "2026-11-25", "2026-11-26"),
      Block("done", BlockState::kExpired, "2026-11-24", "2026-11-25"),
      Block("unpaid", BlockState::kPaymentFailed, "2026-11-26", "2026-11-27")};
  blocks[0].extended_end = At("2026-12-03T11:30:00Z");
  blocks[3].ns = "team-b";
  blocks[3].cells = {"nn-1", "nn-2"};
  return blocks;
}

// Compares with a file in tests/golden/ctl; TAHOMA_WRITE_GOLDEN=1 writes it.
void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = "tests/golden/ctl/" + name;
  if (std::getenv("TAHOMA_WRITE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

std::vector<std::string> LabelsOf(const Calendar& calendar) {
  std::vector<std::string> labels;
  for (const CalendarRow& row : calendar.rows) labels.push_back(row.label);
  return labels;
}

TEST(CalendarTest, BlocksAreRowsInTheOrderOfTheirStarts) {
  const Calendar calendar = MakeCalendar(AllSorts(), {.now = kNow});
  EXPECT_EQ(calendar.from, At("2026-11-25T11:30:00Z"));
  EXPECT_EQ(calendar.to, At("2026-12-09T11:30:00Z"));
  EXPECT_THAT(LabelsOf(calendar), ElementsAre("team-b/broken", "team-a/pretrain", "team-a/late",
                                              "team-a/<eval> & \"co\"", "team-a/finetune"));
}

TEST(CalendarTest, HostsAreRowsWithTheBlocksThatHaveThem) {
  const Calendar calendar = MakeCalendar(AllSorts(), {.now = kNow, .by = CalendarBy::kHost});
  EXPECT_THAT(LabelsOf(calendar), ElementsAre("us-0", "us-1"));
  EXPECT_EQ(calendar.rows[0].bars[0].text, "team-a/pretrain");
}

TEST(CalendarTest, BarsOfACellThatOverlapAreBelowEachOther) {
  const Calendar calendar = MakeCalendar(AllSorts(), {.now = kNow, .by = CalendarBy::kCell});
  EXPECT_THAT(LabelsOf(calendar), ElementsAre("nn-1", "", "", "nn-2"));
  for (const CalendarRow& row : calendar.rows) {
    for (std::size_t i = 1; i < row.bars.size(); ++i) {
      EXPECT_GE(row.bars[i].start, row.bars[i - 1].extended_end);
    }
  }
}

TEST(CalendarTest, NothingToShowIsSaid) {
  EXPECT_EQ(DrawCalendarText(MakeCalendar({}, {.now = kNow}), 80),
            "No Capacity Blocks from 2026-11-25 11:30 to 2026-12-02 11:30 UTC.\n");
  const auto scheduled = {Block("finetune", BlockState::kScheduled, "2026-12-01", "2026-12-08")};
  const Calendar hosts = MakeCalendar(scheduled, {.now = kNow, .by = CalendarBy::kHost});
  EXPECT_THAT(DrawCalendarText(hosts, 80), HasSubstr("No hosts are chosen yet"));
  EXPECT_THAT(DrawCalendarSvg(hosts), HasSubstr("No hosts are chosen yet"));
}

// The time between them is more than nanoseconds in 64 bits can say.
TEST(CalendarTest, TimesCenturiesApartAreAtTheBordersOfThePicture) {
  CalendarBlock block = AllSorts().front();
  block.start = At("1700-01-01T11:30:00Z");
  block.end = At("2255-01-01T11:30:00Z");
  block.reclaim = At("1690-01-01T11:30:00Z");
  block.extended_end = At("2260-01-01T11:30:00Z");
  for (const WallTime now : {block.start, kNow}) {
    const Calendar calendar = MakeCalendar({block}, {.now = now});
    EXPECT_EQ(calendar.to - calendar.from, std::chrono::hours(24 * 56));
    EXPECT_EQ(PartOf(calendar, block.reclaim), 0);
    EXPECT_EQ(PartOf(calendar, calendar.from + std::chrono::hours(24 * 14)), 0.25);
    EXPECT_EQ(PartOf(calendar, block.extended_end), 1);
    EXPECT_THAT(DrawCalendarText(calendar, 80), HasSubstr("##########"));
    EXPECT_TRUE(DrawCalendarSvg(calendar).ends_with("</svg>\n"));
  }
}

TEST(CalendarTest, RowsBeyondTheBoundAreCounted) {
  const Calendar calendar = MakeCalendar(AllSorts(), {.now = kNow, .rows_most = 2});
  EXPECT_THAT(calendar.rows, SizeIs(2));
  EXPECT_THAT(DrawCalendarText(calendar, 80), HasSubstr("and 3 rows more\n"));
  EXPECT_THAT(DrawCalendarSvg(calendar), HasSubstr("and 3 rows more"));
}

TEST(CalendarTest, NoLineIsWiderThanTheTerminal) {
  auto blocks = AllSorts();
  blocks[0].name = std::string(300, 'x');
  blocks[1].name = "\x1b[31mred\n";
  for (const auto by : {CalendarBy::kBlock, CalendarBy::kHost, CalendarBy::kCell}) {
    for (const int days : {1, 3, 7, 14, 56, 366}) {
      for (int width = 60; width < 240; width += 7) {
        const std::string text =
            DrawCalendarText(MakeCalendar(blocks, {.now = kNow, .days = days, .by = by}), width);
        std::istringstream lines(text);
        std::string line;
        std::getline(lines, line);  // the first is a sentence
        while (std::getline(lines, line)) {
          EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
          EXPECT_THAT(line, Not(HasSubstr("\x1b")));
        }
      }
    }
  }
}

TEST(CalendarTest, GoldenTexts) {
  ExpectGolden("calendar-100.txt", DrawCalendarText(MakeCalendar(AllSorts(), {.now = kNow}), 100));
  ExpectGolden(
      "calendar-60-cells.txt",
      DrawCalendarText(MakeCalendar(AllSorts(), {.now = kNow, .by = CalendarBy::kCell}), 60));
}

TEST(CalendarTest, GoldenPictures) {
  ExpectGolden("calendar.svg", DrawCalendarSvg(MakeCalendar(AllSorts(), {.now = kNow})));
  ExpectGolden("calendar-cells.svg",
               DrawCalendarSvg(
                   MakeCalendar(AllSorts(), {.now = kNow, .days = 42, .by = CalendarBy::kCell})));
}

TEST(CalendarTest, NamesAreEscapedInPictures) {
  auto blocks = AllSorts();
  blocks[0].name = "a]]>\x01<script>";
  const std::string svg = DrawCalendarSvg(MakeCalendar(blocks, {.now = kNow}));
  EXPECT_THAT(svg, HasSubstr("a]]&gt;?&lt;script&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

// ---- Reading -----------------------------------------------------------------------------------

TEST(CalendarReaderTest, ABlockIsReadFromItsStatus) {
  Json object = {
      {"metadata", {{"namespace", "team-a"}, {"name", "pretrain"}}},
      {"status",
       {{"state", "active"},
        {"instanceType", "trn2u.48xlarge"},
        {"ultraserverType", "u-trn2x64"},
        {"count", 2},
        {"startDate", "2026-11-24T11:30:00Z"},
        {"endDate", "2026-12-01T11:30:00Z"},
        {"reclaimDate", "2026-12-01T10:30:00Z"},
        {"upfrontFee", "6866.08"},
        {"binding",
         {{"cells", Json::array({{{"cell", "nn-1"}, {"hosts", 2}}})}, {"hosts", {"us-0", "us-1"}}}},
        {"extensions",
         Json::array({{{"capacityBlockExtensionStatus", "payment-failed"},
                       {"capacityBlockExtensionEndDate", "2026-12-09T11:30:00Z"}},
                      {{"capacityBlockExtensionStatus", "payment-pending"},
                       {"capacityBlockExtensionEndDate", "2026-12-03T11:30:00Z"}}})}}}};
  const auto block = CalendarBlockOf(object);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->type, "u-trn2x64");
  EXPECT_THAT(block->hosts, ElementsAre("us-0", "us-1"));
  EXPECT_THAT(block->cells, ElementsAre("nn-1"));
  EXPECT_EQ(block->extended_end, At("2026-12-03T11:30:00Z"));
  EXPECT_EQ(CalendarJson({*block}).at("capacityBlocks").at(0).at("extendedEndDate"),
            "2026-12-03T11:30:00Z");
  for (const auto& [field, value] : std::map<std::string, Json>{{"state", "gone"},
                                                                {"state", nullptr},
                                                                {"endDate", "soon"},
                                                                {"endDate", "2026-11-24T11:30:00Z"},
                                                                {"count", "two"}}) {
    Json broken = object;
    broken["status"][field] = value;
    EXPECT_FALSE(CalendarBlockOf(broken)) << field << " " << value;
  }
  EXPECT_FALSE(CalendarBlockOf({{"status", {{"reason", "InstanceLimitExceeded"}}}}));
}

}  // namespace
}  // namespace tahoma::controller
