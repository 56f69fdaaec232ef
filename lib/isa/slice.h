// Views of the parts of a buffer that ranges of its dimensions name.

#pragma once

#include <cstdint>
#include <span>

#include "lib/isa/program.h"

namespace tahoma::isa {

// A part of a dimension, half open. An index is a single element, and drops the dimension, as in
// numpy; the partitions of SBUF and PSUM remain as a dimension of 1.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool index = false;
};

// `ranges` are for the first dimensions, each inside of its dimension; further dimensions are
// whole. The rows are the first dimension that is left, the free steps the rest: contiguous
// neighbours are joined, and steps of a single element left out. In HBM a single dimension that is
// left is a row.
View Slice(const Buffer& buffer, BufferId id, std::span<const Range> ranges);

// The lowest and the highest element of a view, counted as View::offset: in SBUF and PSUM within a
// partition, in HBM within the buffer. The view is checked.
struct Hull {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
Hull HullOf(const Buffer& buffer, const View& view);

}  // namespace tahoma::isa
