// The collective operations by their names.
//
//   const auto operation = ParseOperation("allr");      // Operation::kAllReduce
//   Name(*operation);                                    // "all_reduce"
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tahoma::collective {

enum class Operation : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSendReceive,
  kPermute,
  kBroadcast,
};
inline constexpr std::size_t kOperations = 7;

// "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv", "permute", "broadcast".
std::string_view Name(Operation operation);
// The names above and nccom-test's short ones ("allr", "allg", "redsct", "alltoall"), with or
// without underscores. kInvalidArgument lists the known ones.
absl::StatusOr<Operation> ParseOperation(std::string_view name);

enum class Phase : std::uint8_t { kReduceScatter, kAllGather };

// Returns the phases that an operation needs, in order: a broadcast is made as an all-gather is.
std::vector<Phase> PhasesOf(Operation operation);
// Returns the operation that a phase is by itself.
Operation OperationOf(Phase phase);

// Neuron's algorithms in a topology domain; trees, which are in no document of Neuron; and the
// algorithm over several domains.
enum class Algorithm : std::uint8_t { kMesh, kRdh, kRing, kKangaRing, kTree, kHier };

// The algorithms in one topology domain; trees are the last.
inline constexpr Algorithm kAllAlgorithms[] = {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing,
                                               Algorithm::kKangaRing, Algorithm::kTree};

// The names that nccom-test prints: "mesh", "rdh", "ring", "kangaring", "tree", "hier".
std::string_view Name(Algorithm algorithm);
// kInvalidArgument lists those in one topology domain.
absl::StatusOr<Algorithm> ParseAlgorithm(std::string_view name);

// Returns the bytes on the busiest rank's wire for each byte of the buffer: the "bus bandwidth" of
// nccl-tests, which nccom-test takes over, is so many times the algorithm's.
double BusFactor(Operation operation, int ranks);

// Whether ranks send their buffers to one another as they are: all-to-all, send-receive, permute.
bool IsExchange(Operation operation);
// Whether what several ranks hold is combined: all-reduce and reduce-scatter.
bool Combines(Operation operation);

}  // namespace tahoma::collective
