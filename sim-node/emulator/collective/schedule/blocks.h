// The blocks that a request lists explicitly: all-to-all with counts (MPI's alltoallv) and permute
// by pairs.
//
//   const std::vector<std::size_t> entries = {0, 0};      // both ranks have the first counts
//   auto blocks = BlocksOf({{.send_counts = {512, 1024}}}, entries, elements);
//   (*blocks)[0];                 // {.from = 0, .to = 0, .count = 512, .begin = 0, .at = 0}
//
// Counts and displacements are as AWS's nccom-test takes them (its --variable-size-op-metadata): in
// elements, by the rank of the group at the other end. Without displacements the blocks that a rank
// sends, or gets, lie one after the other in the order of ranks.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tahoma::sim {

// A block of an exchange: elements [begin, begin + count) of a rank's buffer become [at, at +
// count) of another's result.
struct RankBlock {
  int from = 0;
  int to = 0;
  std::uint64_t count = 0;
  std::uint64_t begin = 0;
  std::uint64_t at = 0;
  friend bool operator==(const RankBlock&, const RankBlock&) = default;
};

// The counts that one rank sends, and perhaps those that it expects.
struct VariableCounts {
  std::vector<std::uint64_t> send_counts{};
  std::vector<std::uint64_t> send_displacements{};     // may be empty
  std::vector<std::uint64_t> receive_counts{};         // may be empty: what the others send
  std::vector<std::uint64_t> receive_displacements{};  // may be empty
  friend bool operator==(const VariableCounts&, const VariableCounts&) = default;
};

// Ranks of a group that may send by counts: more would be too many messages.
inline constexpr std::size_t kMaxCountedRanks = 512;

// Returns the blocks when rank r of the group sends as counts[entries[r]] says, in order of `to`,
// then `from`; none for counts of 0. Buffers and results have `elements` each. kInvalidArgument for
// too many ranks, lists of another length, counts that two ranks state differently, and places that
// are beyond a buffer or overlap in a result, naming the ranks.
absl::StatusOr<std::vector<RankBlock>> BlocksOf(const std::vector<VariableCounts>& counts,
                                                std::span<const std::size_t> entries,
                                                std::uint64_t elements);

// Returns the blocks that move whole buffers from first to second. kInvalidArgument for a rank
// outside [0, ranks), or one that sends or gets twice.
absl::StatusOr<std::vector<RankBlock>> BlocksOf(std::span<const std::pair<int, int>> pairs,
                                                int ranks, std::uint64_t elements);

}  // namespace tahoma::sim
