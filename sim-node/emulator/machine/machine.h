// Runs one program on many logical cores of an instance at once: its cores, HBM stacks, links and
// collectives on one clock.
//
//   const std::vector<MachineRank> ranks = {{.chip = torus::ChipIndex(0)},
//                                           {.chip = torus::ChipIndex(1)}};
//   const auto run = RunMachine(assembled, ranks, Fabric(links), hw::kTrainium2Core, {}, effects);
//   run->time;                     // until the last rank has ended
//   run->ranks[1].resources;       // as of a core alone (core/engines.h)
//
// A collective begins when all ranks of its group have posted the collective and none of them has
// another one under way. It takes the algorithm and the time of emulator/collective/plan, but that
// its messages share the links with other collectives, and its work in memory shares the HBM stacks
// of its ranks with the copies of the cores: both by max-min fair rates. The copies slow down in
// the same way.
//
// Times are a pure function of the arguments: nothing depends on threads or on the host.
//
// Scope: the instance. Ranks of other instances take no part.
//
// Thread safety: a function; `effects` are called on the caller's thread.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <span>
#include <vector>

#include "lib/hw/core_profile.h"
#include "lib/isa/assemble.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/core/engines.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

struct MachineRank {
  torus::ChipIndex chip;
  std::size_t stack = 0;                 // the logical core's own, of the chip's
  std::vector<std::size_t> of_buffer{};  // the stack of each buffer; empty: all are in the own
};

struct MachineEffects {
  CarryOut carry_out;
  // Carries a collective out for the ranks of its group, ascending (collect.h).
  absl::FunctionRef<absl::Status(const isa::Instruction& collective, std::span<const int> group)>
      collect;
};

struct MachineRun {
  VirtualDuration time{};
  std::vector<CoreRun> ranks = {};
};

// isa::CheckRanks must have let the program pass, and the ranks of a chip must follow one another.
// Fails as `effects`; kFailedPrecondition when broken links cut the chips of a group off.
absl::StatusOr<MachineRun> RunMachine(const isa::Assembled& ready,
                                      std::span<const MachineRank> ranks, const Fabric& links,
                                      const hw::CoreProfile& profile, const CoreRunOptions& options,
                                      const MachineEffects& effects);

}  // namespace tahoma::sim
