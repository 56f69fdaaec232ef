// The files of nccom-test: groups of ranks, pairs of ranks, and counts per rank.
//
// Formats are as in AWS's tool (aws-neuron-sdk tools/neuron-sys-tools/nccom-test.rst:
// --custom-replica-groups, --custom-src-target-pairs, --variable-size-op-metadata). The lists of
// groups and of pairs stand in another list, which must have a single entry.
//
// Scope: the shape of the files. The sim-node, which knows all ranks, checks that ranks and counts
// fit together.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tahoma::sim {

using RankGroups = std::vector<std::vector<int>>;
using RankPairs = std::vector<std::pair<int, int>>;  // from, to

// A rank's counts and offsets, in elements, by the rank at the other end.
struct CountsEntry {
  std::vector<std::uint64_t> send_counts{};
  std::vector<std::uint64_t> send_displs{};
  std::vector<std::uint64_t> recv_counts{};
  std::vector<std::uint64_t> recv_displs{};
};

// The three parsers fail with kInvalidArgument: the wrong place and the expected text.
absl::StatusOr<RankGroups> ParseReplicaGroups(std::string_view text);
absl::StatusOr<RankPairs> ParseSourceTargetPairs(std::string_view text);
absl::StatusOr<std::vector<CountsEntry>> ParseCounts(std::string_view text);

// Returns groups of `size` ranks with equal distances, as --data-parallel-dimension asks: 8 ranks
// in groups of 2 are 0 and 4, 1 and 5, ... With `size` nodes, each group has a rank on each node.
// kInvalidArgument unless `size` divides `ranks`.
absl::StatusOr<RankGroups> DataParallelGroups(int ranks, int size);

}  // namespace tahoma::sim
