// nccom-test: measures and checks collectives, with the options and the table of AWS's tool.
//
//   auto options = ParseNccomArguments({"allr", "-b", "1K", "-e", "64M", "-d", "fp32"});
//   const int status = RunNccomTest(*options, place, node, std::cout, std::cerr);
//
// The pod's sim-node does the work, in virtual time; this program asks it and prints. So the times
// have no noise: every repetition takes the same. With --check real data moves once for each size
// and every element of the result is compared.
//
// Options, columns and units follow aws-neuron-sdk tools/neuron-sys-tools/nccom-test.rst;
// docs/user-guide.md has a table of them all with what is other here.
//
// Thread safety: none.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "sim-node/workload/comm_call.h"
#include "sim-node/workload/nccom_files.h"

namespace tahoma::sim {

struct NccomOptions {
  std::string operation;  // as given: "allr", "all_reduce", ...
  int workers = 0;        // logical cores over all pods; 0 = all of the claim
  int nodes = 0;          // 0 = not given
  std::uint64_t min_bytes = 32 << 20;
  std::uint64_t max_bytes = 32 << 20;
  std::uint64_t step_bytes = 0;   // 0 = a tenth of the range
  std::uint64_t step_factor = 0;  // 0 = not given
  int iterations = 20;
  int warmup = 5;
  int runs = 0;  // of all iterations and warm-ups together; 0 = not given
  int warmup_runs = 0;
  std::string type = "uint8";
  std::string redop = "sum";
  bool check = false;
  bool ones = false;                         // checked data is all ones, not random
  std::int64_t seed = -1;                    // of the checked data; negative: the size
  std::vector<std::string> stats = {"avg"};  // of the times: "avg" or a percentile, "p50"
  bool show_algorithm = false;
  bool show_sizes = false;  // what a rank puts in and gets out
  bool show_bound = false;  // what links, NICs and uplinks need at least
  std::string json_report;  // file to write; empty = none
  // Files to read (nccom_files.h); empty = none.
  std::string groups_file{};
  std::string pairs_file{};
  std::string counts_file{};
  int data_parallel = 0;  // ranks in a group; 0 = not given
  bool help = false;

  int MeasuredRuns() const { return runs == 0 ? 1 : runs; }
  // Returns the operations of all runs before and between those that are measured.
  std::int64_t WarmupOperations() const;
};

// The contents of the options' files, and the groups of --data-parallel-dimension.
struct NccomDivision {
  RankGroups groups{};
  RankPairs pairs{};
  std::vector<CountsEntry> counts{};
};
// Reads the files. kInvalidArgument for one that is wrong, kUnavailable for one that is not there.
absl::StatusOr<NccomDivision> ReadDivision(const NccomOptions& options);

// Reads arguments without the program's name. kInvalidArgument says which option is wrong and how.
absl::StatusOr<NccomOptions> ParseNccomArguments(const std::vector<std::string>& arguments);
std::string NccomHelp();

// Returns the bytes of an element of the type with this name: 2 for "bf16", 4 for unknown types.
std::size_t ElementBytes(std::string_view type);

inline constexpr std::size_t kMaxSizes = 1000;
// Returns the sizes to run, ascending; at most kMaxSizes of them.
absl::StatusOr<std::vector<std::uint64_t>> NccomSizes(const NccomOptions& options);

struct NccomRun {
  std::string algorithm;
  std::int64_t time_ps = 0;
  std::uint64_t wrong_elements = 0;
  std::optional<std::int64_t> bound_ps{};  // what links, NICs and uplinks need at least, if known
};

// The sim-node that this pod runs on.
class NccomNode {
 public:
  virtual ~NccomNode() = default;
  // Joins with so many logical cores; 0 means all of the claim.
  virtual absl::StatusOr<CommJoined> Join(const CommPlace& place, int cores) = 0;
  virtual absl::StatusOr<NccomRun> Run(const CommPlace& place, const NccomOptions& options,
                                       const NccomDivision& division, std::uint64_t bytes) = 0;
  virtual void Leave(const CommPlace& place) = 0;
};

// Joins, runs every size and leaves. Rank 0 prints the table, the others a line. Returns the exit
// status: 0, or 1 after an error (printed) or a wrong element.
int RunNccomTest(const NccomOptions& options, const CommPlace& place, NccomNode& node,
                 std::ostream& out, std::ostream& err);

}  // namespace tahoma::sim
