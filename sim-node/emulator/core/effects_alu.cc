// Arithmetic of the Vector, Scalar and GpSimd engines, on numbers and on bits.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/numeric/alu.h"
#include "lib/numeric/convert.h"
#include "sim-node/emulator/core/effects.h"

namespace tahoma::sim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The patterns of integers, with zeros before the shorter ones.
absl::StatusOr<std::vector<std::uint32_t>> ReadBits(const Execution& execution,
                                                    std::size_t operand) {
  const std::size_t size = Size(execution.TypeOf(operand));
  std::vector<std::uint32_t> patterns(execution.ElementsOf(operand));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadBytes(execution, operand));
  for (std::size_t at = 0; at < patterns.size(); ++at) {
    std::memcpy(&patterns[at], &bytes[at * size], size);
  }
  return patterns;
}

absl::Status WriteBits(const Execution& execution, std::size_t operand,
                       std::span<const std::uint32_t> patterns) {
  const std::size_t size = Size(execution.TypeOf(operand));
  std::vector<std::byte> bytes(patterns.size() * size);
  for (std::size_t at = 0; at < patterns.size(); ++at) {
    std::memcpy(&bytes[at * size], &patterns[at], size);
  }
  return OperandCursor(execution, operand).Write(bytes);
}

bool OnBits(AluOp op) { return KindOf(op) == AluKind::kBits; }

absl::StatusOr<std::vector<std::uint32_t>> ReadColumnOfBits(const Execution& execution,
                                                            std::size_t operand, float number) {
  if (execution.Has(operand)) return ReadBits(execution, operand);
  const auto pattern = static_cast<std::uint32_t>(static_cast<std::int64_t>(number));
  return std::vector<std::uint32_t>(execution.RowsOf(0), pattern);
}

// Calls each(partition, its values).
template <typename T, typename Each>
void ForEachPartition(std::span<T> values, std::size_t partitions, const Each& each) {
  const std::size_t width = values.size() / partitions;
  for (std::size_t at = 0; at < partitions; ++at) each(at, values.subspan(at * width, width));
}

void ApplyColumn(AluOp op, std::span<float> values, std::span<const float> column, bool reversed) {
  ForEachPartition(values, column.size(), [&](std::size_t partition, std::span<float> its) {
    Apply(op, its, column[partition], reversed);
  });
}

void ApplyColumnOfBits(AluOp op, std::span<std::uint32_t> values,
                       std::span<const std::uint32_t> column, bool reversed) {
  ForEachPartition(values, column.size(), [&](std::size_t partition, std::span<std::uint32_t> its) {
    ApplyBits(op, its, column[partition], reversed);
  });
}

// A reduction begins with the number that changes nothing.
float NeutralOf(AluOp op) {
  switch (op) {
    case AluOp::kMultiply:
      return 1;
    case AluOp::kMaximum:
      return -kInfinity;
    case AluOp::kMinimum:
      return kInfinity;
    default:
      return 0;
  }
}

// Writes an operand of one element a partition, if the operand is there.
absl::Status WriteReduced(const Execution& execution, std::size_t operand, AluOp op,
                          std::span<const float> values) {
  if (!execution.Has(operand)) return absl::OkStatus();
  std::vector<float> reduced(execution.RowsOf(0));
  ForEachPartition(values, reduced.size(), [&](std::size_t partition, std::span<const float> its) {
    reduced[partition] = Reduce(op, NeutralOf(op), its);
  });
  return WriteFp32(execution, operand, reduced);
}

bool IsWideInteger(ElementType type) {
  return type == ElementType::kInt32 || type == ElementType::kUint32;
}

// An integer of 32 bits and its bits as lib/numeric has them.
std::int64_t IntegerOf(ElementType type, std::uint32_t pattern) {
  if (type == ElementType::kUint32) return pattern;
  return static_cast<std::int32_t>(pattern);
}

std::uint64_t Wrapped(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// The low 32 bits are those of the result: sums and products wrap around.
std::uint64_t CombineIntegers(AluOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case AluOp::kAdd:
      return Wrapped(a) + Wrapped(b);
    case AluOp::kSubtract:
      return Wrapped(a) - Wrapped(b);
    case AluOp::kMultiply:
      return Wrapped(a) * Wrapped(b);
    case AluOp::kMaximum:
      return Wrapped(std::max(a, b));
    case AluOp::kMinimum:
      return Wrapped(std::min(a, b));
    case AluOp::kAbsMax:
      return Wrapped(std::max(std::abs(a), std::abs(b)));
    case AluOp::kAbsMin:
      return Wrapped(std::min(std::abs(a), std::abs(b)));
    case AluOp::kEqual:
      return a == b ? 1 : 0;
    case AluOp::kNotEqual:
      return a != b ? 1 : 0;
    case AluOp::kGreater:
      return a > b ? 1 : 0;
    case AluOp::kGreaterEqual:
      return a >= b ? 1 : 0;
    case AluOp::kLess:
      return a < b ? 1 : 0;
    case AluOp::kLessEqual:
      return a <= b ? 1 : 0;
    case AluOp::kLogicalAnd:
      return a != 0 && b != 0 ? 1 : 0;
    case AluOp::kLogicalOr:
      return a != 0 || b != 0 ? 1 : 0;
    case AluOp::kLogicalXor:
      return (a != 0) != (b != 0) ? 1 : 0;
    default:
      TAHOMA_CHECK(false);
      return 0;
  }
}

// GpSimd's own arithmetic of integers of 32 bits.
absl::Status CombineExactly(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<std::uint32_t> values, ReadBits(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> others, ReadBits(execution, 2));
  for (std::size_t at = 0; at < values.size(); ++at) {
    values[at] = static_cast<std::uint32_t>(
        CombineIntegers(execution.instruction.op, IntegerOf(execution.TypeOf(1), values[at]),
                        IntegerOf(execution.TypeOf(2), others[at])));
  }
  return WriteBits(execution, 0, values);
}

absl::Status TensorScalarOfBits(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<std::uint32_t> values, ReadBits(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const auto first, ReadColumnOfBits(execution, 2, instruction.value));
  ApplyColumnOfBits(instruction.op, values, first, instruction.reverse);
  if (instruction.op1) {
    TAHOMA_ASSIGN_OR_RETURN(const auto second, ReadColumnOfBits(execution, 3, instruction.value1));
    ApplyColumnOfBits(*instruction.op1, values, second, instruction.reverse1);
  }
  return WriteBits(execution, 0, values);
}

}  // namespace

absl::Status TensorTensor(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  const auto wide = [&](const isa::View& view) {
    return IsWideInteger(execution.program.Of(view).type);
  };
  if (OnBits(instruction.op)) {
    TAHOMA_ASSIGN_OR_RETURN(std::vector<std::uint32_t> values, ReadBits(execution, 1));
    TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> others, ReadBits(execution, 2));
    ApplyBits(instruction.op, values, others, /*reversed=*/false);
    return WriteBits(execution, 0, values);
  }
  if (instruction.engine == isa::Engine::kGpSimd &&
      std::ranges::all_of(instruction.operands, wide)) {
    return CombineExactly(execution);
  }
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> others, ReadFp32(execution, 2));
  Apply(instruction.op, values, others, /*reversed=*/false);
  return WriteFp32(execution, 0, values);
}

absl::Status TensorScalar(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  if (OnBits(instruction.op)) return TensorScalarOfBits(execution);
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const auto first, ReadColumn(execution, 2, instruction.value));
  ApplyColumn(instruction.op, values, first, instruction.reverse);
  if (instruction.op1) {
    TAHOMA_ASSIGN_OR_RETURN(const auto second, ReadColumn(execution, 3, instruction.value1));
    ApplyColumn(*instruction.op1, values, second, instruction.reverse1);
  }
  return WriteFp32(execution, 0, values);
}

absl::Status ScalarTensorTensor(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const auto column, ReadColumn(execution, 2, instruction.value));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> others, ReadFp32(execution, 3));
  ApplyColumn(instruction.op, values, column, instruction.reverse);
  Apply(*instruction.op1, values, others, instruction.reverse1);
  return WriteFp32(execution, 0, values);
}

absl::Status TensorScalarReduce(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 2));
  TAHOMA_ASSIGN_OR_RETURN(const auto column, ReadColumn(execution, 3, instruction.value));
  ApplyColumn(instruction.op, values, column, /*reversed=*/false);
  TAHOMA_RETURN_IF_ERROR(WriteFp32(execution, 0, values));
  return WriteReduced(execution, 1, *instruction.op1, values);
}

absl::Status TensorTensorScan(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> others, ReadFp32(execution, 2));
  TAHOMA_ASSIGN_OR_RETURN(const auto initial, ReadColumn(execution, 3, instruction.value));
  const float* other = others.data();
  ForEachPartition<float>(values, initial.size(), [&](std::size_t partition, std::span<float> its) {
    float state = initial[partition];
    for (float& value : its) {
      Apply(instruction.op, {&value, 1}, {&state, 1}, instruction.reverse);
      Apply(*instruction.op1, {&value, 1}, {other++, 1}, instruction.reverse1);
      state = value;
    }
  });
  return WriteFp32(execution, 0, values);
}

absl::Status TensorCopyPredicated(const Execution& execution) {
  const std::size_t size = Size(execution.TypeOf(0));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> predicate, ReadBits(execution, 2));
  std::vector<std::byte> elements(predicate.size() * size);
  if (execution.Has(1)) {
    TAHOMA_ASSIGN_OR_RETURN(elements, ReadBytes(execution, 1));
  } else {
    const std::vector<float> numbers(predicate.size(), execution.instruction.value);
    Narrow(execution.TypeOf(0), numbers, elements.data());
  }
  const auto is_copied = [&](std::size_t at) {
    return (predicate[at] != 0) != execution.instruction.reverse;
  };
  OperandCursor to(execution, 0);
  for (std::size_t at = 0; at < predicate.size();) {
    const bool copied = is_copied(at);
    std::size_t end = at + 1;
    while (end < predicate.size() && is_copied(end) == copied) ++end;
    const auto run = std::span(elements).subspan(at * size, (end - at) * size);
    if (copied) {
      TAHOMA_RETURN_IF_ERROR(to.Write(run));
    } else {
      to.Skip(run.size());
    }
    at = end;
  }
  return absl::OkStatus();
}

absl::Status TensorScalarCumulative(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  const AluOp op1 = *instruction.op1;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const auto column, ReadColumn(execution, 2, instruction.value));
  TAHOMA_ASSIGN_OR_RETURN(const auto initial, ReadColumn(execution, 3, NeutralOf(op1)));
  ApplyColumn(instruction.op, values, column, /*reversed=*/false);
  ForEachPartition<float>(values, initial.size(), [&](std::size_t partition, std::span<float> its) {
    float state = initial[partition];
    for (float& value : its) {
      Apply(op1, {&value, 1}, {&state, 1}, /*reversed=*/false);
      state = value;
    }
  });
  return WriteFp32(execution, 0, values);
}

absl::Status RangeSelect(const Execution& execution) {
  const isa::Instruction& instruction = execution.instruction;
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 2));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> bound0, ReadFp32(execution, 3));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> bound1, ReadFp32(execution, 4));
  std::vector<float> indices(values.size() / bound0.size());
  std::iota(indices.begin(), indices.end(), instruction.value);
  ForEachPartition<float>(values, bound0.size(), [&](std::size_t partition, std::span<float> its) {
    std::vector<float> first = indices;
    std::vector<float> second = indices;
    Apply(instruction.op, first, bound0[partition], /*reversed=*/false);
    Apply(*instruction.op1, second, bound1[partition], /*reversed=*/false);
    for (std::size_t at = 0; at < its.size(); ++at) {
      if (first[at] == 0 || second[at] == 0) its[at] = std::numeric_limits<float>::lowest();
    }
  });
  TAHOMA_RETURN_IF_ERROR(WriteFp32(execution, 0, values));
  return WriteReduced(execution, 1, AluOp::kMaximum, values);
}

}  // namespace tahoma::sim
