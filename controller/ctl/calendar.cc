#include "controller/ctl/calendar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "controller/reserve/calendar.h"

namespace tahoma::controller {
namespace {

constexpr int kDaysLeast = 7;
constexpr int kDaysUsual = 56;
constexpr std::array kStates = {BlockState::kPaymentPending, BlockState::kScheduled,
                                BlockState::kActive,         BlockState::kUnavailable,
                                BlockState::kExpired,        BlockState::kFailed};

bool IsShown(const CalendarBlock& block, WallTime from, WallTime to) {
  return block.state != BlockState::kPaymentFailed && block.start < to && block.extended_end > from;
}

CalendarBar BarOf(const CalendarBlock& block, std::string text) {
  const std::string extension =
      block.extended_end > block.end
          ? fmt::format(", to {} when that is paid", ShortTime(block.extended_end))
          : "";
  return {
      .start = block.start,
      .end = block.end,
      .reclaim = block.reclaim,
      .extended_end = block.extended_end,
      .state = block.state,
      .text = std::move(text),
      .detail = fmt::format("{}/{}: {} {}, {}, {} to {} UTC{}, {} USD", block.ns, block.name,
                            block.count, block.type, StateName(block.state), ShortTime(block.start),
                            ShortTime(block.end), extension, block.fee)};
}

std::vector<CalendarRow> RowsByBlock(const std::vector<CalendarBlock>& blocks) {
  std::vector<CalendarRow> rows;
  for (const CalendarBlock& block : blocks) {
    rows.push_back({.label = fmt::format("{}/{}", block.ns, block.name),
                    .detail = fmt::format("{} {}", block.count, block.type),
                    .bars = {BarOf(block, fmt::format("{} {}", block.count, block.type))}});
  }
  return rows;
}

std::vector<CalendarRow> RowsByHost(const std::vector<CalendarBlock>& blocks) {
  std::map<std::string, CalendarRow> rows;
  for (const CalendarBlock& block : blocks) {
    for (const std::string& host : block.hosts) {
      CalendarRow& row = rows[host];
      row.label = host;
      row.detail = block.type;
      row.bars.push_back(BarOf(block, fmt::format("{}/{}", block.ns, block.name)));
    }
  }
  std::vector<CalendarRow> sorted;
  for (auto& [host, row] : rows) sorted.push_back(std::move(row));
  return sorted;
}

// Overlapping bars get rows of their own: a bar goes into the first row whose last bar has ended.
std::vector<CalendarRow> RowsByCell(const std::vector<CalendarBlock>& blocks) {
  std::map<std::string, std::vector<CalendarRow>> cells;
  for (const CalendarBlock& block : blocks) {
    for (const std::string& cell : block.cells) {
      std::vector<CalendarRow>& rows = cells[cell];
      const auto free = std::ranges::find_if(rows, [&](const CalendarRow& row) {
        return row.bars.back().extended_end <= block.start;
      });
      CalendarRow& row = free == rows.end() ? rows.emplace_back() : *free;
      row.bars.push_back(BarOf(block, fmt::format("{}/{} {}", block.ns, block.name, block.count)));
    }
  }
  std::vector<CalendarRow> sorted;
  for (auto& [cell, rows] : cells) {
    rows.front().label = cell;
    rows.front().detail = "cell";
    for (CalendarRow& row : rows) sorted.push_back(std::move(row));
  }
  return sorted;
}

// ---- Text --------------------------------------------------------------------------------------

// Makes text fit for a line of a terminal, whatever the object's name.
std::string Plain(std::string_view text) {
  std::string plain;
  for (const char c : text) plain += c >= ' ' && c <= '~' ? c : '?';
  return plain;
}

std::string Cut(std::string text, std::size_t width) {
  if (text.size() <= width) return text;
  text.resize(width - 2);
  return text + "..";
}

// Maps times to columns.
class Axis {
 public:
  Axis(const Calendar& calendar, std::size_t columns) : calendar_(calendar), columns_(columns) {}

  // Returns the column of the time; a time outside of the picture has the column at its border.
  std::size_t ColumnOf(WallTime time) const {
    const double column = PartOf(calendar_, time) * static_cast<double>(columns_);
    return std::min(static_cast<std::size_t>(column), columns_);
  }
  std::optional<std::size_t> now() const {
    if (calendar_.now < calendar_.from || calendar_.now >= calendar_.to) return std::nullopt;
    return ColumnOf(calendar_.now);
  }
  std::size_t columns() const { return columns_; }

 private:
  const Calendar& calendar_;
  std::size_t columns_;
};

// Writes dates above the first columns of their days, with enough days between two dates.
std::pair<std::string, std::string> Header(const Calendar& calendar, const Axis& axis) {
  constexpr std::size_t kDateWidth = 7;  // "11-23" and some room
  const auto days = static_cast<std::size_t>((calendar.to - calendar.from) / kSlotLength);
  const std::size_t step = (kDateWidth * days + axis.columns() - 1) / axis.columns();
  std::string dates(axis.columns() + kDateWidth, ' ');
  std::string ticks(axis.columns(), ' ');
  for (std::size_t day = 0; day < days; ++day) {
    const WallTime when = calendar.from + kSlotLength * static_cast<int>(day);
    const std::size_t column = axis.ColumnOf(when);
    const bool dated = day % std::max<std::size_t>(step, 1) == 0;
    if (ticks[column] != '|') ticks[column] = dated ? '|' : '\'';
    if (dated && column + kDateWidth - 1 <= axis.columns() + 1) {
      dates.replace(column, kDateWidth - 2, FormatTime(when).substr(5, 5));
    }
  }
  if (const auto now = axis.now()) ticks[*now] = 'v';
  dates.resize(axis.columns());
  return {std::move(dates), std::move(ticks)};
}

std::string BarLine(const CalendarRow& row, const Axis& axis) {
  std::string line(axis.columns() + 1, ' ');
  if (const auto now = axis.now()) line[*now] = ':';
  for (const CalendarBar& bar : row.bars) {
    const std::size_t first = std::min(axis.ColumnOf(bar.start), axis.columns() - 1);
    const std::size_t last = std::max(axis.ColumnOf(bar.end), first + 1);
    const std::size_t extended = std::max(axis.ColumnOf(bar.extended_end), last);
    std::fill(line.begin() + static_cast<std::ptrdiff_t>(first),
              line.begin() + static_cast<std::ptrdiff_t>(last), MarkOf(bar.state));
    std::fill(line.begin() + static_cast<std::ptrdiff_t>(last),
              line.begin() + static_cast<std::ptrdiff_t>(extended), '+');
    const std::string text = " " + Plain(bar.text) + " ";
    if (text.size() + 2 <= last - first) {
      line.replace(first + (last - first - text.size()) / 2, text.size(), text);
    }
  }
  line.resize(axis.columns());
  return line;
}

std::string Trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Lists the marks in use, in as many lines as needed.
std::string Legend(const Calendar& calendar, std::size_t width) {
  const auto any_bar = [&](auto fits) {
    return std::ranges::any_of(
        calendar.rows, [&](const CalendarRow& row) { return std::ranges::any_of(row.bars, fits); });
  };
  std::vector<std::string> entries;
  for (const BlockState state : kStates) {
    if (any_bar([&](const CalendarBar& bar) { return bar.state == state; })) {
      entries.push_back(fmt::format("{} {}", MarkOf(state), StateName(state)));
    }
  }
  if (any_bar([](const CalendarBar& bar) { return bar.extended_end > bar.end; })) {
    entries.emplace_back("+ extension that is not paid yet");
  }
  std::string legend, line;
  for (const std::string& entry : entries) {
    if (!line.empty() && line.size() + 3 + entry.size() > width) {
      legend += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : "   ") + entry;
  }
  return legend + line + "\n";
}

}  // namespace

std::string ShortTime(WallTime time) {
  std::string text = FormatTime(time).substr(0, 16);
  text[10] = ' ';
  return text;
}

double PartOf(const Calendar& calendar, WallTime time) {
  const WallTime inside = std::clamp(time, calendar.from, calendar.to);
  return std::chrono::duration<double>(inside - calendar.from) /
         std::chrono::duration<double>(calendar.to - calendar.from);
}

char MarkOf(BlockState state) {
  switch (state) {
    case BlockState::kPaymentPending:
      return '?';
    case BlockState::kScheduled:
      return '-';
    case BlockState::kActive:
      return '#';
    case BlockState::kUnavailable:
      return '!';
    case BlockState::kExpired:
      return '.';
    case BlockState::kFailed:
    case BlockState::kPaymentFailed:
      return 'x';
  }
  return ' ';
}

Calendar MakeCalendar(std::vector<CalendarBlock> blocks, const CalendarOptions& options) {
  Calendar calendar{.now = options.now};
  calendar.from = StartOf(SlotOf(options.from == WallTime{} ? options.now : options.from));
  // Later ends change nothing; a difference of times centuries apart would overflow.
  const WallTime latest = calendar.from + kSlotLength * kDaysUsual;
  WallTime last = calendar.from;
  for (const CalendarBlock& block : blocks) {
    if (block.state == BlockState::kPaymentFailed) continue;
    last = std::max(last, std::min(block.extended_end, latest));
  }
  const auto needed = std::chrono::ceil<std::chrono::hours>(last - calendar.from) / kSlotLength;
  const std::int64_t days = options.days > 0
                                ? options.days
                                : std::clamp<std::int64_t>(needed + 1, kDaysLeast, kDaysUsual);
  calendar.to = calendar.from + kSlotLength * days;
  std::erase_if(blocks, [&](const CalendarBlock& block) {
    return !IsShown(block, calendar.from, calendar.to);
  });
  std::ranges::sort(blocks, {}, [](const CalendarBlock& block) {
    return std::tie(block.start, block.ns, block.name);
  });
  switch (options.by) {
    case CalendarBy::kBlock:
      calendar.rows = RowsByBlock(blocks);
      break;
    case CalendarBy::kHost:
      calendar.rows = RowsByHost(blocks);
      break;
    case CalendarBy::kCell:
      calendar.rows = RowsByCell(blocks);
      break;
  }
  if (calendar.rows.size() > options.rows_most) {
    calendar.left_out = calendar.rows.size() - options.rows_most;
    calendar.rows.resize(options.rows_most);
  }
  if (blocks.empty()) {
    calendar.nothing = fmt::format("No Capacity Blocks from {} to {} UTC.",
                                   ShortTime(calendar.from), ShortTime(calendar.to));
  } else if (calendar.rows.empty()) {
    calendar.nothing = "No hosts are chosen yet; they are 10 minutes before a block begins.";
  }
  return calendar;
}

std::string DrawCalendarText(const Calendar& calendar, int width) {
  if (!calendar.nothing.empty()) return calendar.nothing + "\n";
  constexpr int kWidthLeast = 60;
  const auto columns = static_cast<std::size_t>(std::max(width, kWidthLeast));
  std::size_t label = 0;
  for (const CalendarRow& row : calendar.rows) label = std::max(label, row.label.size());
  label = std::min(label, columns / 3);
  const Axis axis(calendar, columns - label - 1);
  const auto [dates, ticks] = Header(calendar, axis);
  std::string text =
      fmt::format("{} to {} UTC, now {}; days begin at 11:30\n", ShortTime(calendar.from),
                  ShortTime(calendar.to), ShortTime(calendar.now));
  text += Trimmed(fmt::format("{:{}} {}", "", label, dates));
  text += Trimmed(fmt::format("{:{}} {}", "", label, ticks));
  for (const CalendarRow& row : calendar.rows) {
    text +=
        Trimmed(fmt::format("{:{}} {}", Cut(Plain(row.label), label), label, BarLine(row, axis)));
  }
  if (calendar.left_out != 0) text += fmt::format("and {} rows more\n", calendar.left_out);
  return text + Legend(calendar, columns);
}

}  // namespace tahoma::controller
