// The sizes of the chunks in which a collective over topology domains goes through its phases.
//
//   const ChunkSizes sizes(Operation::kAllGather, /*chunks=*/8);
//   sizes.Before(3, 1 << 20);      // the elements of 2^20 that are in the first three chunks
//
// Chunks are of equal size, except where all that NICs and links do before others have work, or
// after it, is done with the first chunks or the last: these are smaller. Of a reduce-scatter the
// first is half as long, too, so that one of the two on the links ends while the other is in the
// middle.
//
// Thread safety: immutable after construction.

#pragma once

#include <cstdint>
#include <vector>

#include "lib/collective/operation.h"

namespace tahoma::sim {

class ChunkSizes {
 public:
  ChunkSizes(collective::Operation operation, std::uint64_t chunks);

  // Elements, of so many, that are in the chunks before this one.
  std::uint64_t Before(std::uint64_t chunk, std::uint64_t elements) const;

 private:
  std::vector<std::uint64_t> weights_before_;  // of each chunk; one more at the end
};

}  // namespace tahoma::sim
