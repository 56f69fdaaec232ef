// Capacity Blocks as bars over time, by block, host or cell.
//
//   std::vector<CalendarBlock> blocks = …;                       // calendar_reader.h
//   const Calendar calendar = MakeCalendar(blocks, {.now = now, .by = CalendarBy::kHost});
//   fmt::print("{}", DrawCalendarText(calendar, 100));
//   WriteAtomically("blocks.svg", DrawCalendarSvg(calendar), 0644);      // calendar_svg.h
//
// A row is a block, a host (UltraServer or instance), or a cell; overlapping bars of a cell are in
// rows below each other. Days are those of Capacity Blocks: a day begins at 11:30 UTC.
//
// Scope: pictures of the objects' fields.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/reserve/block.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct CalendarBlock {
  std::string ns = {};
  std::string name = {};
  BlockState state = BlockState::kScheduled;
  std::string type = {};
  std::int64_t count = 0;
  std::vector<std::string> cells = {};
  std::vector<std::string> hosts = {};  // empty: no hosts are chosen at the moment
  WallTime start = {};
  WallTime end = {};
  WallTime reclaim = {};
  WallTime extended_end = {};  // of an extension that waits for its payment; or `end`
  std::string fee = {};
};

enum class CalendarBy : std::uint8_t { kBlock, kHost, kCell };

struct CalendarOptions {
  WallTime now = {};
  WallTime from = {};  // the epoch: the day of `now`
  int days = 0;        // 0: until the last block ends, 7 to 56
  CalendarBy by = CalendarBy::kBlock;
  std::size_t rows_most = 200;
};

struct CalendarBar {
  WallTime start = {};
  WallTime end = {};
  WallTime reclaim = {};
  WallTime extended_end = {};
  BlockState state = BlockState::kScheduled;
  std::string text = {};    // a few words for the bar itself
  std::string detail = {};  // a line with all facts
};

struct CalendarRow {
  std::string label = {};   // empty: the row belongs to the row above
  std::string detail = {};  // smaller, beside or below the label
  std::vector<CalendarBar> bars = {};
};

struct Calendar {
  WallTime now = {};
  WallTime from = {};  // a boundary of days, like `to`
  WallTime to = {};
  std::vector<CalendarRow> rows = {};
  std::size_t left_out = 0;  // rows beyond the bound
  std::string nothing = {};  // shown in place of rows
};

// Shows blocks that are paid for or may yet be paid; of ended blocks, only those with time in the
// picture.
Calendar MakeCalendar(std::vector<CalendarBlock> blocks, const CalendarOptions& options);

// Draws the calendar for a terminal of `width` columns, at least 60.
std::string DrawCalendarText(const Calendar& calendar, int width);

// Returns the place of a time in the picture: 0 at the beginning or before, 1 at the end or after.
double PartOf(const Calendar& calendar, WallTime time);

// The mark of a state in text, and its place in the legend.
char MarkOf(BlockState state);

// "2026-11-23 11:30", without the seconds and letters of RFC 3339.
std::string ShortTime(WallTime time);

}  // namespace tahoma::controller
