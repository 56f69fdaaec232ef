// Serves a workload's calls coreRun, which runs a program on NeuronCores of the caller's claim, and
// coreCounters, which says what programs did on the claim's cores.
//
// Each core is a rank of the run, with tensors of its own in the memory of the core's chip, where
// the workload has put them with memStore (memory_calls.h) and fetches them with memLoad. A core
// runs one program at a time; the program begins with an SBUF and a PSUM that nobody has written.
// docs/formats/wire.md has every field.
//
// Scope: bounds, and from a claim to a core. A pod may send any bytes: the program is decoded,
// checked and assembled here, whatever the pod did before.
//
// Thread safety: Run may be called from many threads; AddProgramCalls goes before the server
// serves.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/wire/call.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/node/claim_memory.h"
#include "sim-node/node/instance.h"
#include "sim-node/serve/core_counters.h"
#include "sim-node/serve/live_instance.h"
#include "sim-node/serve/memory_calls.h"
#include "sim-node/serve/node_server.h"

namespace tahoma::sim {

inline constexpr std::string_view kCoreRun = "coreRun";
inline constexpr std::string_view kCoreCounters = "coreCounters";

// The most bytes of a timeline: half of what a call and its reply may take together.
inline constexpr std::size_t kMaxTimelineBytes = kWorkloadFrame.payload_bytes / 2;
// The most intervals of a timeline: at most 170 bytes each.
inline constexpr std::size_t kMaxIntervals = 90'000;
// The most multiply-adds of a run with data: half a minute of a processor. A copied element, of a
// view with strides, takes as long as so many of them.
inline constexpr std::uint64_t kMaxWork = std::uint64_t{1} << 36U;
inline constexpr std::uint64_t kWorkOfElement = 32;
// The most instructions of a run on all its ranks, each of which takes some 20 bytes of the host.
inline constexpr std::size_t kMaxRankInstructions = std::size_t{1} << 24U;

// A logical core of a claim. A program of one core runs on the first of two physical cores.
struct ClaimCore {
  torus::ChipIndex chip;
  int core = 0;  // logical, of the chip
  int physical = 1;
  friend auto operator<=>(const ClaimCore&, const ClaimCore&) = default;
};

// A workload names a core by the claim's own numbers.
struct RankRequest {
  std::int64_t chip = 0;
  std::int64_t core = 0;
  std::uint64_t address = 0;  // of the first tensor, in the claim's memory of the chip
};

struct ProgramRank {
  ClaimCore core;
  std::uint64_t address = 0;
  std::size_t stack = 0;  // of HBM, the core's own
  // The HBM stacks of the claim's memory of the chip: as many bytes in each, one after the other.
  std::uint64_t bytes_of_stack = 0;
  std::vector<std::size_t> stacks;
};

// Returns the claim's core of that number, from 0, on the claim's chip of that number, from 0, both
// ascending. kOutOfRange says how many there are; kUnimplemented for another generation of cores.
absl::StatusOr<ProgramRank> RankOfClaim(const Instance& instance, const HeldClaim& claim,
                                        const RankRequest& request);

// The links between the instance's chips, those of its UltraServer among them.
struct InstanceLinks {
  Fabric fabric;
  int first_chip = 0;  // the number in `fabric` of the instance's first
};
// Returns the links as they are now.
absl::StatusOr<InstanceLinks> LinksOf(const Instance& instance);

// Whether a program of the token's claim may run on the chip, or run on. kAborted for a fault of
// the chip, with the status of AWS's runtime; kPermissionDenied when the claim is released.
absl::Status MayRun(const Instance& instance, std::string_view token, torus::ChipIndex chip);

class ProgramCalls {
 public:
  // `clock` must outlive the object.
  explicit ProgramCalls(const Clock& clock) : clock_(clock), counters_(clock) {}

  struct Options {
    bool data = true;
    bool timeline = false;
    std::optional<std::uint64_t> rounding_seed = std::nullopt;  // execute.h
  };
  // Whether a program may run on, on the chip.
  using MayRunOn = absl::FunctionRef<absl::Status(torus::ChipIndex chip)>;

  // Runs the program in its binary form. kInvalidArgument, kFailedPrecondition and kUnimplemented
  // as isa::Decode, isa::CheckProgram, isa::CheckRanks and isa::Assemble; kFailedPrecondition also
  // when broken links cut off chips of a collective; kOutOfRange for a tensor beyond the chip's
  // share of the claim's memory; kResourceExhausted for more work than kMaxWork, or more
  // instructions on all ranks than kMaxRankInstructions; kUnavailable while one of the cores runs a
  // program. `may_run` is asked before each instruction with data, else from time to time, and its
  // failure ends the program.
  absl::StatusOr<wire::Reply> Run(std::string_view program, std::span<const ProgramRank> ranks,
                                  const InstanceLinks& links, const Options& options,
                                  ClaimMemory& memory, MayRunOn may_run);

  // Returns the reply to coreCounters: a JSON object. `cores_of_chip` are logical cores.
  std::string CountersOf(const HeldClaim& claim, int cores_of_chip,
                         const ClaimMemory& memory) const;

  CoreCounters& counters() { return counters_; }

 private:
  class Seats;

  // Takes all cores or none: kUnavailable names one with a program.
  absl::Status Take(std::span<const ProgramRank> ranks);
  void GiveBack(std::span<const ProgramRank> ranks);

  const Clock& clock_;
  CoreCounters counters_;
  Mutex mutex_;
  std::set<ClaimCore> busy_ ABSL_GUARDED_BY(mutex_);
};

// Serves both calls to the bearers of claims' tokens, and calls `called` with the token before each
// call. All must outlive `server`.
void AddProgramCalls(NodeServer& server, const LiveInstance& live, ProgramCalls& calls,
                     MemoryCalls& memory,
                     const std::function<void(const std::string& token)>& called);

}  // namespace tahoma::sim
