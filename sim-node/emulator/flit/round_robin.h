// Round-robin arbiters over the bits of a word.
//
// Thread safety: values.

#pragma once

#include <bit>
#include <cstdint>

namespace tahoma::sim {

class RoundRobin {
 public:
  // The first request at or after the pointer, around the end. `requests` must not be 0.
  int Pick(std::uint64_t requests) const {
    const std::uint64_t ahead = requests >> next_ << next_;
    return std::countr_zero(ahead != 0 ? ahead : requests);
  }
  // Bit 63 is followed by bit 0, and so is every bit that no higher request follows.
  void MoveOver(int winner) { next_ = (winner + 1) % 64; }

 private:
  int next_ = 0;
};

}  // namespace tahoma::sim
