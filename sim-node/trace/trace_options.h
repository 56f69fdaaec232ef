// The command line of trn-trace: which collective on which chips of which torus.
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

#include <cstdint>
#include <string>
#include <vector>

#include "lib/config/spec.h"
#include "sim-node/collective/plan.h"
#include "sim-node/link/torus_links.h"
#include "sim-node/trace/occupancy.h"

namespace tahoma::sim {

struct TraceOptions {
  std::string operation = "all_reduce";
  std::int64_t bytes = std::int64_t{64} << 20;
  std::string type = "fp32";
  std::string algorithm = "auto";
  std::string level = "flows";
  std::string mode = "best";
  std::int64_t slices = 0;
  std::vector<std::string> without{};
  std::string box = "4x4x4";
  std::string at = "0,0,0";
  std::int64_t ranks = 1;
  std::vector<std::string> down{};
  std::string trace_file{};
  std::string svg_file{};
};

config::Spec DeclareTraceOptions(TraceOptions& options);

struct Traced {
  std::string title;  // "all_reduce of 67108864 bytes fp32 on 4x4x4+0,0,0, rdh: 236.1 us, …"
  TorusLinks links;
  Occupancy use;
};

// Plans the collective on an UltraServer with the cables of `down` broken, and follows its links.
// kInvalidArgument names the option that is wrong and what would be right; kFailedPrecondition when
// links that are down cut chips off.
absl::StatusOr<Traced> TraceOf(const TraceOptions& options);

}  // namespace tahoma::sim
