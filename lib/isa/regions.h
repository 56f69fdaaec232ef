// The instructions that read and wrote each part of a memory last.
//
// A region is rows times columns: partitions times bytes in SBUF and PSUM, in HBM rows of a buffer
// times elements of a row. Columns are kept as disjoint intervals, each with disjoint intervals of
// rows: each part of a memory has a last writer, and readers since.
//
// Thread safety: one thread per object.

#pragma once

#include <absl/functional/function_ref.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/isa/program.h"

namespace tahoma::isa {

// Half open.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
struct Region {
  Interval rows;
  Interval columns;
};

// An instruction that touches a region; an asynchronous one ends apart from all others of
// its engine.
struct Toucher {
  std::uint32_t instruction = 0;
  Engine engine = Engine::kSync;
  bool asynchronous = false;
};

class Regions {
 public:
  using Earlier = absl::FunctionRef<void(std::uint32_t instruction)>;

  // Calls `earlier` with the last writer of each part of the region, and notes the reader, in the
  // place of the same engine's reader before.
  void Read(const Region& region, const Toucher& reader, Earlier earlier);
  // Calls `earlier` with the last writer of each part and with the readers since, and forgets both.
  void Write(const Region& region, const Toucher& writer, Earlier earlier);

  // Parts visited and copied until now: a measure of the time of all calls.
  std::size_t work() const { return work_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Cell {
    Interval rows;
    std::uint32_t writer = kNone;
    std::array<std::uint32_t, kEngines> engine_readers = {kNone, kNone, kNone, kNone, kNone};
    std::vector<std::uint32_t> asynchronous_readers = {};
  };
  struct Column {
    std::int64_t end = 0;
    std::vector<Cell> cells = {};  // ascending, disjoint
  };
  using Columns = std::map<std::int64_t, Column>;  // by begin

  // Divides the interval around `at` there.
  void CutColumns(std::int64_t at);
  // Makes intervals cover exactly the columns; returns the first interval.
  Columns::iterator Cover(const Interval& columns);
  // Makes cells cover exactly the rows; returns the number of the first cell.
  std::size_t CoverRows(std::vector<Cell>& cells, const Interval& rows);
  void CutRows(std::vector<Cell>& cells, std::int64_t at);

  Columns columns_;
  std::size_t work_ = 0;
};

}  // namespace tahoma::isa
