// The command line of trn-trace: which collective on which chips of which tori.
//
//   TraceOptions options;
//   config::Spec spec = DeclareTraceOptions(options);
//   if (const auto exit = config::Parse(argc, argv, spec)) return *exit;
//   TAHOMA_ASSIGN_OR_RETURN(const Traced traced, TraceOf(options));
//
// Scope: no files and no output; app/ has them.
//
// Thread safety: none; used once, at the program's start.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/config/spec.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/fidelity/fidelity.h"
#include "sim-node/trace/efa_layers.h"
#include "sim-node/trace/occupancy.h"

namespace tahoma::sim {

struct TraceOptions {
  std::string operation = "all_reduce";
  std::int64_t bytes = std::int64_t{64} << 20;
  // A sweep over sizes in the place of `bytes`, if maxBytes is not 0.
  std::int64_t min_bytes = std::int64_t{1} << 10;
  std::int64_t max_bytes = 0;
  std::int64_t step_factor = 2;
  std::string type = "fp32";
  std::string algorithm = "auto";
  std::string level = "flows";
  std::vector<std::string> without{};
  std::string box = "4x4x4";
  std::string at = "0,0,0";
  std::int64_t ranks = 1;
  std::vector<std::string> down{};
  // The number of topology domains, joined by EFA, with the box in each.
  std::int64_t domains = 1;
  std::string domain_torus = "4x4x4";
  std::string between = "auto";  // the domains
  std::int64_t chunks = 0;       // 0: the fastest
  std::vector<std::string> efa_down{};
  EfaLayers efa{};
  std::int64_t domains_under_layer3 = 64;
  std::int64_t layer3_under_layer2 = 64;
  std::int64_t layer2_under_layer1 = 64;
  std::string output = "text";  // or "json"
  std::string trace_file{};
  std::string svg_file{};
};

config::Spec DeclareTraceOptions(TraceOptions& options);

// The collective as it was planned, and how long it takes.
struct TraceAnswer {
  Request request;
  std::string box;  // "4x4x4+0,0,0"
  Algorithm algorithm = Algorithm::kMesh;
  Fidelity level = Fidelity::kFlows;
  std::size_t steps = 0;
  VirtualDuration time{};                               // at that level
  std::optional<VirtualDuration> bound = std::nullopt;  // of links, NICs and uplinks
  VirtualDuration start_up{};                           // of one element for each rank
  int ranks = 1;                                        // in all

  // GiB a second, as nccom-test has them.
  double AlgorithmBandwidth() const;
  double BusBandwidth() const;
};
// Returns the time over that of start-up and the bound; nullopt without one, or where it is zero.
std::optional<double> OverBound(const TraceAnswer& answer);

struct Traced {
  TraceAnswer answer;
  std::string title;  // "all_reduce of 67108864 bytes fp32 on 4x4x4+0,0,0, rdh: 236.1 us, …"
  Fabric fabric;
  Occupancy use;  // with a timeline if there is a file for it
};

// A table of the sizes from minBytes to maxBytes, as nccom-test and nccl-tests print them; or JSON,
// a list of summaries (summary.h). Errors as of TraceOf.
absl::StatusOr<std::string> SweepOf(const TraceOptions& options);

// Plans the collective on the domains with the cables of `down` and the NICs of `efa_down` broken,
// and follows its links. kInvalidArgument names the option that is wrong and what would be right;
// kFailedPrecondition when links that are down cut chips off.
absl::StatusOr<Traced> TraceOf(const TraceOptions& options);

}  // namespace tahoma::sim
