#include "lib/isa/regions.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tahoma::isa {

void Regions::CutColumns(std::int64_t at) {
  const auto after = columns_.lower_bound(at);
  if (after == columns_.begin()) return;
  const auto found = std::prev(after);
  if (found->second.end <= at) return;
  Column rest = found->second;
  for (const Cell& cell : rest.cells) work_ += 1 + cell.asynchronous_readers.size();
  found->second.end = at;
  columns_.emplace_hint(after, at, std::move(rest));
}

Regions::Columns::iterator Regions::Cover(const Interval& columns) {
  CutColumns(columns.begin);
  CutColumns(columns.end);
  auto next = columns_.lower_bound(columns.begin);
  for (std::int64_t at = columns.begin; at < columns.end;) {
    if (next == columns_.end() || next->first > at) {
      const std::int64_t end =
          next == columns_.end() ? columns.end : std::min(columns.end, next->first);
      columns_.emplace_hint(next, at, Column{.end = end});
      at = end;
    } else {
      at = next->second.end;
      ++next;
    }
  }
  return columns_.find(columns.begin);
}

void Regions::CutRows(std::vector<Cell>& cells, std::int64_t at) {
  const auto after =
      std::ranges::upper_bound(cells, at, {}, [](const Cell& c) { return c.rows.end; });
  if (after == cells.end() || after->rows.begin >= at) return;
  Cell rest = *after;
  work_ += 1 + rest.asynchronous_readers.size();
  rest.rows.begin = at;
  after->rows.end = at;
  cells.insert(std::next(after), std::move(rest));
}

std::size_t Regions::CoverRows(std::vector<Cell>& cells, const Interval& rows) {
  CutRows(cells, rows.begin);
  CutRows(cells, rows.end);
  auto next =
      std::ranges::lower_bound(cells, rows.begin, {}, [](const Cell& c) { return c.rows.begin; });
  const auto first = static_cast<std::size_t>(std::distance(cells.begin(), next));
  for (std::int64_t at = rows.begin; at < rows.end; ++next, ++work_) {
    if (next == cells.end() || next->rows.begin > at) {
      const std::int64_t end =
          next == cells.end() ? rows.end : std::min(rows.end, next->rows.begin);
      work_ += static_cast<std::size_t>(std::distance(next, cells.end())) / 16;
      next = cells.insert(next, Cell{.rows = {.begin = at, .end = end}});
    }
    at = next->rows.end;
  }
  return first;
}

void Regions::Read(const Region& region, const Toucher& reader, Earlier earlier) {
  const Interval& rows = region.rows;
  for (auto column = Cover(region.columns);
       column != columns_.end() && column->first < region.columns.end; ++column) {
    std::vector<Cell>& cells = column->second.cells;
    for (std::size_t at = CoverRows(cells, rows);
         at < cells.size() && cells[at].rows.begin < rows.end; ++at) {
      Cell& cell = cells[at];
      if (cell.writer != kNone) earlier(cell.writer);
      if (reader.asynchronous) {
        cell.asynchronous_readers.push_back(reader.instruction);
      } else {
        cell.engine_readers.at(static_cast<std::size_t>(reader.engine)) = reader.instruction;
      }
    }
  }
}

void Regions::Write(const Region& region, const Toucher& writer, Earlier earlier) {
  const Interval& rows = region.rows;
  const Cell written = {.rows = rows, .writer = writer.instruction};
  const auto begin = Cover(region.columns);
  bool alone = true;
  auto column = begin;
  for (; column != columns_.end() && column->first < region.columns.end; ++column) {
    std::vector<Cell>& cells = column->second.cells;
    const std::size_t first = CoverRows(cells, rows);
    std::size_t end = first;
    for (; end < cells.size() && cells[end].rows.begin < rows.end; ++end) {
      const Cell& cell = cells[end];
      work_ += cell.asynchronous_readers.size();
      if (cell.writer != kNone) earlier(cell.writer);
      for (const std::uint32_t reader : cell.engine_readers) {
        if (reader != kNone) earlier(reader);
      }
      for (const std::uint32_t reader : cell.asynchronous_readers) earlier(reader);
    }
    const auto at = cells.begin() + static_cast<std::ptrdiff_t>(first);
    cells[first] = written;
    cells.erase(at + 1, cells.begin() + static_cast<std::ptrdiff_t>(end));
    alone = alone && cells.size() == 1;
  }
  // Columns that have nothing else are one again, so that parts do not get ever smaller.
  if (!alone) return;
  begin->second.end = region.columns.end;
  columns_.erase(std::next(begin), column);
}

}  // namespace tahoma::isa
