// The grid of time: boundaries at 11:30 UTC, and 38 durations.

#include "controller/reserve/calendar.h"

#include <gtest/gtest.h>

#include <set>

namespace tahoma::controller {
namespace {

WallTime At(const char* text) { return *ParseTime(text); }

TEST(CalendarTest, ASlotBeginsAtHalfPastElevenUtc) {
  const Slot slot = SlotOf(At("2026-11-23T11:30:00Z"));
  EXPECT_EQ(SlotOf(At("2026-11-23T11:29:59Z")), slot - 1);
  EXPECT_EQ(SlotOf(At("2026-11-24T11:29:59Z")), slot);
  EXPECT_EQ(FormatTime(StartOf(slot + 1)), "2026-11-24T11:30:00Z");
  EXPECT_TRUE(IsBoundary(At("2026-11-23T11:30:00Z")));
  EXPECT_FALSE(IsBoundary(At("2026-11-23T11:30:01Z")));
}

TEST(CalendarTest, SlotsBeforeTheEpochAreCountedDownwards) {
  EXPECT_EQ(SlotOf(At("1970-01-01T11:30:00Z")), 0);
  EXPECT_EQ(SlotOf(At("1970-01-01T11:29:00Z")), -1);
  EXPECT_EQ(StartOf(-1), At("1969-12-31T11:30:00Z"));
}

TEST(CalendarTest, SummerTimeMovesNoBoundary) {
  for (const char* day : {"2026-03-29T11:30:00Z", "2026-07-01T11:30:00Z", "2026-10-25T11:30:00Z"}) {
    EXPECT_TRUE(IsBoundary(At(day))) << day;
  }
}

TEST(CalendarTest, ABlockTouchesTheSlotThatItBeginsIn) {
  const SlotRange slots = SlotsOf(At("2026-11-23T09:31:00Z"), At("2026-11-24T11:30:00Z"));
  EXPECT_EQ(slots.size(), 2);
  EXPECT_EQ(slots.first, SlotOf(At("2026-11-22T11:30:00Z")));
}

TEST(CalendarTest, ThirtyEightDurationsAreLegal) {
  std::set<int> expected;
  for (int day = 1; day <= 14; ++day) expected.insert(day);
  for (int week = 3; week <= 26; ++week) expected.insert(week * 7);
  EXPECT_EQ(expected.size(), 38U);
  for (int hours = -24; hours <= 200 * 24; ++hours) {
    const bool legal = hours % 24 == 0 && expected.contains(hours / 24);
    EXPECT_EQ(IsLegalDuration(hours), legal) << hours;
  }
}

}  // namespace
}  // namespace tahoma::controller
