// The contents with which nccom-test fills buffers, and the expected results.
//
// The element at an index of a rank's buffer is a small integer: a number drawn for the index plus
// a number drawn for the rank, small enough that every partial result is exact in the type. So the
// check is bit by bit for floating point too, in any order of additions, and the expected element
// follows at once for any number of ranks. A missing, doubled, exchanged or shifted contribution
// changes the result.
//
// When a request lists its blocks, places of a result outside all blocks must still be zero.
//
// Thread safety: immutable.

#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/numeric/element.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {

// Ranks [first, first + count) of the communicator.
struct RankRange {
  int first = 0;
  int count = 0;
};

class TestPattern {
 public:
  // `sources` as in Plan.
  TestPattern(const Request& request, ReduceOp op, int ranks, std::uint64_t seed,
              std::vector<int> sources = {});
  // Ones everywhere, as nccom-test's all_ones: easy to read, but exchanged blocks look right.
  // OnesFit() must hold.
  static TestPattern Ones(const Request& request, ReduceOp op, int ranks,
                          std::vector<int> sources = {});
  // kInvalidArgument when the sum of `ranks` ones is not exact in the type.
  static absl::Status OnesFit(const Request& request, ReduceOp op, int ranks);

  // Fills the buffer of the chip with these ranks as before the schedule; `buffer` has
  // ChipBufferBytes.
  void FillChip(RankRange ranks, std::span<std::byte> buffer) const;

  // Returns the contents of a whole buffer at the end, the same for every chip; after
  // reduce-scatter only the chip's own block counts. Empty for an exchange, where each rank gets
  // other data.
  std::vector<std::byte> Expected() const;

  // Elements of the result that differ from `expected`, or from the exchange's data.
  std::uint64_t CountWrong(RankRange ranks, std::span<const std::byte> buffer,
                           std::span<const std::byte> expected) const;

 private:
  std::uint64_t Draw(std::uint64_t stream, std::uint64_t number) const;
  bool Contributes(int rank) const { return rank % every_ == 0; }
  std::int64_t Value(int rank, std::uint64_t index) const;
  std::uint64_t BlockBegin(int rank) const {
    return elements_ * static_cast<std::uint64_t>(rank) / static_cast<std::uint64_t>(ranks_);
  }
  std::int64_t Combined(std::uint64_t index) const;
  void FillBuffer(int rank, std::span<std::byte> buffer) const;
  void FillGathered(RankRange ranks, std::span<std::byte> buffer) const;
  // Elements of a rank's result after an exchange, each with its source.
  struct Origin {
    int rank = 0;
    std::uint64_t index = 0;
  };
  std::uint64_t ResultElements() const;
  Origin OriginOf(int rank, std::uint64_t index) const;
  std::uint64_t CountWrongResult(int rank, std::span<const std::byte> result) const;
  std::uint64_t CountWrongBlocks(int rank, std::span<const std::byte> result) const;
  // Draws the numbers of the contributing ranks.
  void DrawRanks();

  const Request request_;
  const ReduceOp op_;
  const int ranks_;
  const std::uint64_t seed_;
  const std::uint64_t elements_;
  const std::vector<int> sources_;
  std::int64_t low_ = 0;    // smallest value
  std::uint64_t span_ = 1;  // each of the two drawn numbers is below this
  int every_ = 1;           // ranks other than every so many-th are zero throughout
  // Over the contributing ranks: their count, and the sum and the extremes of their numbers.
  std::int64_t contributors_ = 0;
  std::int64_t rank_sum_ = 0;
  std::int64_t rank_max_ = 0;
  std::int64_t rank_min_ = 0;
};

}  // namespace tahoma::sim
