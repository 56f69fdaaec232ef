// Who sends how many elements to whom, where a request says it: all-to-all with counts (alltoallv)
// and permute by pairs.
//
//   auto blocks = BlocksOf({{.send_counts = {512, 1024}}}, /*entries=*/{0, 0}, elements);
//   (*blocks)[0];                 // {.from = 0, .to = 0, .count = 512, .begin = 0, .at = 0}
//
// Counts and displacements are as AWS's nccom-test takes them (its --variable-size-op-metadata):
// in elements, by the rank of the group at the other end. Without displacements what a rank sends,
// or gets, lies one after the other in the order of ranks.
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

// Elements [begin, begin + count) of a rank's buffer become [at, at + count) of another's result.
struct Block {
  int from = 0;
  int to = 0;
  std::uint64_t count = 0;
  std::uint64_t begin = 0;
  std::uint64_t at = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

// What one rank sends, and perhaps what it expects.
struct VariableCounts {
  std::vector<std::uint64_t> send_counts{};
  std::vector<std::uint64_t> send_displacements{};     // may be empty
  std::vector<std::uint64_t> receive_counts{};         // may be empty: what the others send
  std::vector<std::uint64_t> receive_displacements{};  // may be empty
  friend bool operator==(const VariableCounts&, const VariableCounts&) = default;
};

// Ranks of a group that may send by counts: more would be too many messages.
inline constexpr std::size_t kMaxCountedRanks = 512;

// Rank r of the group sends as counts[entries[r]] says; buffers and results have `elements` each.
// In order of `to`, then `from`; nothing for counts of 0. kInvalidArgument for too many ranks,
// lists of another length, counts that two ranks state differently, and places that are beyond a
// buffer or overlap in a result, naming the ranks.
absl::StatusOr<std::vector<Block>> BlocksOf(const std::vector<VariableCounts>& counts,
                                            std::span<const std::size_t> entries,
                                            std::uint64_t elements);

// Whole buffers from first to second. kInvalidArgument for a rank outside [0, ranks), or one that
// sends or gets twice.
absl::StatusOr<std::vector<Block>> BlocksOf(std::span<const std::pair<int, int>> pairs, int ranks,
                                            std::uint64_t elements);

}  // namespace tahoma::sim
