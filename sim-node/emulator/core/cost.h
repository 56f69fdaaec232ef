// How long one instruction keeps its engine, or the DMA engines, busy.
//
// The tensor engine takes a moving column each cycle, at least `least_interval`; fp32 takes four
// passes; loading the next stationary tile hides behind the product (docs/reference/trainium2.md).
// An engine that works element by element takes an element of each partition a cycle, more where
// the vector engine has a fast mode for 16-bit types, fewer where two inputs come from SBUF. DMA
// splits a copy into packets, none longer than a run of adjacent bytes; engine e serves partitions
// 8e to 8e + 7. A sum by DMA takes the time of a copy of each source, a transposition a share of
// the rate of a copy that fills dst.
//
// Scope: one instruction alone. engines.h adds what instructions wait for.
//
// Thread safety: pure functions.

#pragma once

#include <absl/container/inlined_vector.h>

#include <array>
#include <cstdint>

#include "lib/hw/core_profile.h"
#include "lib/isa/program.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

inline constexpr int kDmaEngines = 16;  // CoreProfile::dma_engines

struct Cost {
  VirtualDuration busy{};
  VirtualDuration ready{};  // from the start; not below `busy`
};

struct DmaWork {
  std::array<VirtualDuration, kDmaEngines> engines{};
  // Read or written, by buffer in HBM.
  struct Moved {
    isa::BufferId buffer{};
    std::uint64_t bytes = 0;
  };
  absl::InlinedVector<Moved, 2> hbm = {};
};

// The program is checked; CostOf takes no DMA, DmaWorkOf nothing else.
Cost CostOf(const isa::Program& program, const isa::Instruction& instruction,
            const hw::CoreProfile& profile);
DmaWork DmaWorkOf(const isa::Program& program, const isa::Instruction& instruction,
                  const hw::CoreProfile& profile);

// So many cycles of an engine's clock, rounded to the picosecond.
VirtualDuration Cycles(double cycles, isa::Engine engine, const hw::CoreProfile& profile);
// A figure in ns.
VirtualDuration FromNanoseconds(const hw::Figure& figure);

}  // namespace tahoma::sim
