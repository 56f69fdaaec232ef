#include "sim-node/emulator/core/execute.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "lib/numeric/convert.h"
#include "lib/numeric/tile_product.h"
#include "sim-node/emulator/core/operand_cursor.h"

namespace tahoma::sim {
namespace {

std::vector<std::byte> Converted(ElementType from, std::span<const std::byte> bytes,
                                 ElementType to) {
  std::vector<float> values(bytes.size() / Size(from));
  Widen(from, bytes.data(), values);
  std::vector<std::byte> converted(values.size() * Size(to));
  Narrow(to, values, converted.data());
  return converted;
}

// dma_copy and tensor_copy: dst <- src.
absl::Status Copy(const Execution& execution) {
  const ElementType to_type = execution.TypeOf(0);
  const ElementType from_type = execution.TypeOf(1);
  std::size_t left = execution.ElementsOf(0);
  TAHOMA_CHECK(left == execution.ElementsOf(1));
  OperandCursor to(execution, 0);
  OperandCursor from(execution, 1);
  std::vector<std::byte> piece;
  while (left > 0) {
    const std::size_t count = std::min(left, kCopyElements);
    piece.resize(count * Size(from_type));
    TAHOMA_RETURN_IF_ERROR(from.Read(piece));
    if (from_type != to_type) piece = Converted(from_type, piece, to_type);
    TAHOMA_RETURN_IF_ERROR(to.Write(piece));
    left -= count;
  }
  return absl::OkStatus();
}

// nc_matmul: dst <- stationary, moving.
absl::Status Matmul(const Execution& execution) {
  constexpr std::size_t kOut = 0;
  constexpr std::size_t kStationary = 1;
  constexpr std::size_t kMoving = 2;
  const isa::View& right = execution.ViewOf(kMoving);
  const isa::View& left = execution.ViewOf(kStationary);
  const TileSizes sizes = {.k = static_cast<std::size_t>(right.rows.count),
                           .m = static_cast<std::size_t>(left.FreeCount()),
                           .n = static_cast<std::size_t>(right.FreeCount())};
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> stationary, ReadFp32(execution, kStationary));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> moving, ReadFp32(execution, kMoving));
  std::vector<float> out(sizes.m * sizes.n);
  Accumulate accumulate = Accumulate::kNo;
  if (execution.instruction.accumulate) {
    TAHOMA_ASSIGN_OR_RETURN(out, ReadFp32(execution, kOut));
    accumulate = Accumulate::kYes;
  }
  MultiplyTiles(sizes, stationary, moving, accumulate, out);
  return WriteFp32(execution, kOut, out);
}

// memset: dst <- value.
absl::Status Fill(const Execution& execution) {
  const std::size_t elements = execution.ElementsOf(0);
  const std::size_t size = Size(execution.TypeOf(0));
  const std::vector<float> values(std::min(elements, kCopyElements), execution.instruction.value);
  std::vector<std::byte> piece(values.size() * size);
  Narrow(execution.TypeOf(0), values, piece.data());
  OperandCursor to(execution, 0);
  for (std::size_t left = elements; left > 0;) {
    const std::size_t count = std::min(left, values.size());
    TAHOMA_RETURN_IF_ERROR(to.Write(std::span(piece).first(count * size)));
    left -= count;
  }
  return absl::OkStatus();
}

float Apply(isa::AluOp op, float a, float b) {
  switch (op) {
    case isa::AluOp::kAdd:
      return a + b;
    case isa::AluOp::kSubtract:
      return a - b;
    case isa::AluOp::kMultiply:
      return a * b;
    case isa::AluOp::kMaximum:
      return std::max(a, b);
    case isa::AluOp::kMinimum:
      return std::min(a, b);
  }
  TAHOMA_CHECK(false);
  return 0;
}

// tensor_tensor: dst <- data1 op data2.
absl::Status TensorTensor(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> others, ReadFp32(execution, 2));
  for (std::size_t at = 0; at < values.size(); ++at) {
    values[at] = Apply(execution.instruction.op, values[at], others[at]);
  }
  return WriteFp32(execution, 0, values);
}

using Effect = absl::Status (*)(const Execution&);
constexpr std::array<std::pair<isa::Opcode, Effect>, isa::kOpcodes> kEffects = {{
    {isa::Opcode::kDmaCopy, Copy},
    {isa::Opcode::kMatmul, Matmul},
    {isa::Opcode::kTensorCopy, Copy},
    {isa::Opcode::kMemset, Fill},
    {isa::Opcode::kTensorTensor, TensorTensor},
}};

constexpr bool InOrderOfOpcodes() {
  for (std::size_t at = 0; at < kEffects.size(); ++at) {
    if (static_cast<std::size_t>(kEffects[at].first) != at) return false;
  }
  return true;
}
static_assert(InOrderOfOpcodes());

}  // namespace

absl::Status Execute(const isa::Program& program, const isa::Instruction& instruction,
                     CoreMemory& memory, HbmPort& hbm) {
  const Effect effect = kEffects[static_cast<std::size_t>(instruction.opcode)].second;
  const absl::Status status =
      effect({.program = program, .instruction = instruction, .memory = memory, .hbm = hbm});
  if (status.ok()) return status;
  const std::string place =
      instruction.line > 0
          ? fmt::format("line {}", instruction.line)
          : fmt::format("instruction {}", &instruction - program.instructions.data());
  return Annotate(status, fmt::format("{}: {}", place, isa::RowOf(instruction.opcode).name));
}

}  // namespace tahoma::sim
