// The contents that nccom-test fills buffers with, and the expected results.
//
// The element at an index of a rank's buffer is a small integer, the sum of a number drawn for the
// index and one drawn for the rank, small enough that every partial result is exact in the type. So
// the check is bit by bit for floating point too, whatever the order of additions; and what is
// right follows for each index at once, however many ranks there are: a missing, doubled or
// exchanged contribution changes the result, and so does a shifted one.
//
// Where a request lists its blocks, places of a result that none fills must still be zero.
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
  // Ones everywhere, as nccom-test's all_ones: easy to read, but blocks that were exchanged look
  // right. OnesFit() must hold.
  static TestPattern Ones(const Request& request, ReduceOp op, int ranks,
                          std::vector<int> sources = {});
  // kInvalidArgument when the sum of `ranks` ones is not exact in the type.
  static absl::Status OnesFit(const Request& request, ReduceOp op, int ranks);

  // Fills the buffer of the chip with these ranks as before the schedule; `buffer` has
  // ChipBufferBytes.
  void FillChip(RankRange ranks, std::span<std::byte> buffer) const;

  // Returns the contents of a whole buffer at the end; they are the same for every chip, though
  // after reduce-scatter only the chip's own block counts. Empty for an exchange, where each rank
  // gets something else.
  std::vector<std::byte> Expected() const;

  // Elements of the result that differ from `expected`, or from what an exchange brings.
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
  // Elements of a rank's result that an exchange brings, and where each comes from.
  struct Origin {
    int rank = 0;
    std::uint64_t index = 0;
  };
  std::uint64_t ResultElements() const;
  Origin OriginOf(int rank, std::uint64_t index) const;
  std::uint64_t CountWrongResult(int rank, std::span<const std::byte> result) const;
  std::uint64_t CountWrongBlocks(int rank, std::span<const std::byte> result) const;
  // Draws the numbers of the ranks that contribute.
  void DrawRanks();

  const Request request_;
  const ReduceOp op_;
  const int ranks_;
  const std::uint64_t seed_;
  const std::uint64_t elements_;
  const std::vector<int> sources_;
  std::int64_t low_ = 0;    // smallest value
  std::uint64_t span_ = 1;  // each of the two drawn numbers is below this
  int every_ = 1;           // only every so many-th rank is not zero throughout
  // Over the ranks that contribute: how many, and of their numbers the sum and the extremes.
  std::int64_t contributors_ = 0;
  std::int64_t rank_sum_ = 0;
  std::int64_t rank_max_ = 0;
  std::int64_t rank_min_ = 0;
};

}  // namespace tahoma::sim
