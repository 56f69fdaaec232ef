// The effect of a collective on the tensors of its ranks.
//
//   TAHOMA_RETURN_IF_ERROR(Collect(program, instruction, ports));   // a port of each rank
//
// Sums are made in fp32, in the order of the group, and rounded once to the tensor's type; hardware
// adds in the order of its algorithm. A piece is read from all ranks before the piece is written.
//
// Scope: data. machine.h has the time.
//
// Thread safety: pure but for the ports.

#pragma once

#include <absl/status/status.h>

#include <span>

#include "lib/isa/program.h"
#include "sim-node/emulator/core/core_memory.h"

namespace tahoma::sim {

// `program` is assembled and isa::CheckRanks has let the collective pass. Fails as the ports.
absl::Status Collect(const isa::Program& program, const isa::Instruction& collective,
                     std::span<HbmPort* const> group);

}  // namespace tahoma::sim
