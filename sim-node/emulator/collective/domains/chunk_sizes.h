// The sizes of the chunks in which a collective over topology domains goes through its phases.
//
// Chunks are of equal size, with exceptions: the first or the last chunks are smaller when NICs or
// links are idle before the first chunk has arrived, or after the last chunk has left. The first
// chunk of a reduce-scatter is half as long, too: of two chunks on the links, the first ends while
// the second is in the middle.
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

  // Returns how many of `elements` are in the chunks before `chunk`.
  std::uint64_t Before(std::uint64_t chunk, std::uint64_t elements) const;

 private:
  std::vector<std::uint64_t> weights_before_;  // of each chunk; one more at the end
};

}  // namespace tahoma::sim
