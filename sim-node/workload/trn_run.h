// trn-run: runs a program on NeuronCores of the pod's claim, its ranks, with arrays of numpy.
//
//   auto options = ParseRunArguments({"matmul.trn", "--in", "a=a.npy", "--out", "c=c.npy"});
//   const int status = RunTrnRun(*options, node, std::cout, std::cerr);
//
// The program is text or binary (docs/formats/program.md). The host puts the inputs into the
// chips' memories and fetches the outputs, in no virtual time; the time is the cores' alone. Each
// rank's tensors lie in its core's share of the claim's memory of the chip.
//
// Thread safety: none.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim-node/workload/core_usage.h"

namespace tahoma::sim {

struct TrnRunOptions {
  // Tensor and file; "{rank}" in a file's name stands for each rank's number.
  using Files = std::vector<std::pair<std::string, std::string>>;

  std::string program;
  Files in;
  Files out;
  // The ranks are all these cores of the first chip, then those of the second, and so on.
  std::vector<int> chips = {0};  // the claim's own, from 0
  std::vector<int> cores = {0};  // the claim's on each chip, from 0
  bool data = true;              // false: only time passes
  std::string timeline;          // file; empty: none
  std::string binary;            // file for the program's binary form; empty: none
  std::optional<int> rounding_seed = std::nullopt;  // round stochastically
  bool help = false;
};

// Reads arguments without the program's name. kInvalidArgument names the wrong option and the
// error.
absl::StatusOr<TrnRunOptions> ParseRunArguments(const std::vector<std::string>& arguments);
std::string TrnRunHelp();
// Takes the seed of stochastic rounding from the variables of AWS's runtime,
// NEURON_RT_STOCHASTIC_ROUNDING_EN and …_SEED, unless an option gives the seed. kInvalidArgument
// for other values than 0, 1 and a seed.
absl::Status ReadRounding(std::string_view enabled, std::string_view seed, TrnRunOptions& options);

// Where a rank's program runs, and its first tensor lies.
struct RankPlace {
  int chip = 0;  // the claim's own, from 0
  int core = 0;  // the claim's on the chip, from 0
  std::uint64_t address = 0;
};

// A run, as the sim-node tells it.
struct CoreReport {
  struct Resource {
    std::string name;
    std::int64_t busy_ps = 0;
    std::int64_t instructions = 0;
  };
  struct Rank {
    int chip = 0;  // of the node
    int core = 0;
    std::int64_t time_ps = 0;
    std::int64_t bound_ps = 0;
    std::string bound;          // the busiest resource
    std::int64_t left_out = 0;  // intervals that the timeline lacks
    std::vector<Resource> resources = {};
  };

  std::string profile;
  std::int64_t instructions = 0;
  std::int64_t time_ps = 0;
  std::vector<Rank> ranks = {};
  std::string timeline = {};
};

// The sim-node of this pod.
class CoreNode {
 public:
  virtual ~CoreNode() = default;
  // The claim's chips and cores.
  virtual absl::StatusOr<CoreReading> Counters() = 0;
  // Store and Load are the host's access to the chip's memory; at most kMaxHostTransfer bytes.
  virtual absl::Status Store(int chip, std::uint64_t address, const std::string& bytes) = 0;
  virtual absl::StatusOr<std::string> Load(int chip, std::uint64_t address,
                                           std::uint64_t bytes) = 0;
  // The report has as many ranks.
  virtual absl::StatusOr<CoreReport> Run(const TrnRunOptions& options,
                                         const std::vector<RankPlace>& ranks,
                                         const std::string& program) = 0;
};
inline constexpr std::uint64_t kMaxHostTransfer = std::uint64_t{32} << 20U;

// Returns the exit status: 0, or 1 after an error (printed).
int RunTrnRun(const TrnRunOptions& options, CoreNode& node, std::ostream& out, std::ostream& err);

}  // namespace tahoma::sim
