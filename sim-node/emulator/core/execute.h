// The effect of an instruction on memory.
//
//   std::vector<CoreMemory> memories(isa::kCoresMax);
//   for (const isa::Instruction& one : assembled.program.instructions) {
//     TAHOMA_RETURN_IF_ERROR(Execute(assembled.program, one, nullptr, memories, hbm));
//   }
//
// Engines compute in fp32: an operand is widened, the result rounded to the type of what is written
// (lib/numeric/convert.h). A copy between equal types moves bits.
//
// Results are rounded to nearest even, or with a seed stochastically. Which way a result goes
// depends on the seed, the place of the instruction in the program, the operand and the number of
// the element alone: a program with equal seed and data writes the same bits on every machine, in
// whatever order its instructions are carried out. Numbers of the program itself, such as that of
// memset, are rounded to nearest even.
//
// An instruction reads its operands before it writes, but for copies and sums by DMA of more than
// kCopyElements: they go in pieces of so many elements. Elements that a view names more than once
// are written in the view's order, so that the last one stays.
//
// Scope: the effect alone. cost.h has the time of an instruction, engines.h the order.
//
// Thread safety: none; instructions on different memories may be executed at once.

#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/isa/program.h"
#include "sim-node/emulator/core/core_memory.h"

namespace tahoma::sim {

// Bounds what a copy keeps on the host, whatever the size of the tensors.
inline constexpr std::size_t kCopyElements = std::size_t{1} << 20U;

// `program` must be checked and assembled (lib/isa/assemble.h), `instruction` one of its own,
// `other` the instruction of another core that meets this one (isa::IsMeeting) or nullptr: both are
// carried out. `memories` are by core. With `rounding_seed` fp8, fp16, bf16 and fp32r are rounded
// stochastically (NarrowStochastic). After a failure the instruction may be done in part.
//
// The failures of CoreMemory::Read and of HbmPort, with the line (or the place in the program, from
// 0), the instruction and the operand:
// "line 7: nc_matmul: moving: sbuf partition 3 byte 512 is read, and nothing has written it".
absl::Status Execute(const isa::Program& program, const isa::Instruction& instruction,
                     const isa::Instruction* other, std::span<CoreMemory> memories, HbmPort& hbm,
                     std::optional<std::uint64_t> rounding_seed = std::nullopt);

}  // namespace tahoma::sim
