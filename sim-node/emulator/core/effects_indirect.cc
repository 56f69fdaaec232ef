// Copies whose places in HBM are read from memory.

#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "lib/isa/slice.h"
#include "sim-node/emulator/core/effects.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kOffsets = 2;

absl::StatusOr<std::vector<std::int64_t>> ReadOffsets(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadBytes(execution, kOffsets));
  std::vector<std::int64_t> offsets;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &bytes[at], sizeof(bits));
    const bool is_signed = execution.TypeOf(kOffsets) == ElementType::kInt32;
    offsets.push_back(is_signed ? std::int64_t{static_cast<std::int32_t>(bits)} : bits);
  }
  return offsets;
}

void TakeRow(const isa::Buffer& buffer, std::size_t row, isa::View& view) {
  if (buffer.memory == isa::Memory::kHbm) {
    view.offset += static_cast<std::int64_t>(row) * view.rows.stride;
  } else {
    view.partition += static_cast<int>(row);
  }
  view.rows.count = 1;
}

// Moves the view by so many steps; false: it would leave the buffer, and stays.
bool MoveBy(std::int64_t offset, std::int64_t step, const isa::Buffer& buffer, isa::View& view) {
  const std::int64_t elements = isa::ElementsOf(buffer);
  if (offset > elements / step || offset < -elements / step) return false;
  isa::View moved = view;
  moved.offset += offset * step;
  const isa::Hull hull = isa::HullOf(buffer, moved);
  if (hull.low < 0 || hull.high >= elements) return false;
  view = moved;
  return true;
}

}  // namespace

absl::Status CopyIndirect(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  const std::size_t indirect = instruction.scatter ? 0 : 1;
  const isa::Buffer& buffer = execution.program.Of(instruction.operands[indirect]);
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> offsets, ReadOffsets(execution));
  for (std::size_t at = 0; at < offsets.size(); ++at) {
    isa::Instruction part = instruction;
    if (offsets.size() > 1) {
      for (std::size_t operand = 0; operand < 2; ++operand) {
        isa::View& view = part.operands[operand];
        TakeRow(execution.program.Of(view), at, view);
      }
    }
    if (!MoveBy(offsets[at], instruction.numbers[0], buffer, part.operands[indirect])) {
      if (instruction.skip) continue;
      return FailedPrecondition(
          "offsets has {} in partition {} of the operand, from where {} leaves {}, which has {} "
          "elements; skip leaves such a copy out",
          offsets[at], at, instruction.scatter ? "dst" : "src", buffer.name,
          isa::ElementsOf(buffer));
    }
    Execution copy = {.program = execution.program,
                      .instruction = part,
                      .memory = execution.memory,
                      .hbm = execution.hbm,
                      .rounding_seed = execution.rounding_seed};
    copy.first_element = at * copy.ElementsOf(0);
    TAHOMA_RETURN_IF_ERROR(Copy(copy));
  }
  return absl::OkStatus();
}

}  // namespace tahoma::sim
