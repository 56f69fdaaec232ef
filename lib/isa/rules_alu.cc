#include "lib/isa/rules_alu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "lib/base/status.h"
#include "lib/isa/instruction.h"

namespace tahoma::isa {
namespace {

using enum ElementType;
using enum AluOp;

constexpr std::array kIntegers = {kUint8, kInt8, kUint16, kInt16, kUint32, kInt32};

bool OnBits(AluOp op) { return sim::KindOf(op) == sim::AluKind::kBits; }

absl::Status CheckArithmetic(std::string_view option, AluOp op) {
  if (!OnBits(op)) return absl::OkStatus();
  return InvalidArgument("{} {} works on bits; expected an operator of numbers", option, Name(op));
}

absl::Status CheckBinary(std::string_view option, AluOp op) {
  if (!sim::IsUnary(op)) return absl::OkStatus();
  return InvalidArgument("{} {} takes one operand; expected an operator of two", option, Name(op));
}

absl::Status CheckGiven(std::string_view option, const std::optional<AluOp>& op) {
  if (op) return absl::OkStatus();
  return InvalidArgument("{} is left out; expected an operator", option);
}

absl::Status CheckOneOf(std::string_view option, AluOp op, std::span<const AluOp> expected) {
  if (std::ranges::find(expected, op) != expected.end()) return absl::OkStatus();
  std::string names;
  for (const AluOp one : expected) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", Name(one));
  }
  return InvalidArgument("{} {}; expected one of {}", option, Name(op), names);
}

// The operand of an operator, at that place of the row, or the number in its place.
struct Scalar {
  std::string_view name;
  std::size_t operand = 0;
  float number = 0;
};

absl::Status CheckUnused(AluOp op, const View* view, const Scalar& scalar) {
  if (!sim::IsUnary(op) || (view == nullptr && scalar.number == 0)) return absl::OkStatus();
  return InvalidArgument("{} is there, but {} takes one operand; leave {} out", scalar.name,
                         Name(op), scalar.name);
}

absl::Status CheckNotBothInPsum(const Program& program, const Instruction& instruction,
                                std::size_t one, std::size_t other) {
  const auto in_psum = [&](std::size_t operand) {
    const View* view = instruction.Find(operand);
    return view != nullptr && program.Of(*view).memory == Memory::kPsum;
  };
  if (!in_psum(one) || !in_psum(other)) return absl::OkStatus();
  const auto operands = RowOf(instruction.opcode).operands;
  return InvalidArgument("{} and {} are in psum; at most one may be", operands[one].name,
                         operands[other].name);
}

absl::Status CheckType(const Program& program, const Instruction& instruction, std::size_t operand,
                       std::span<const ElementType> types, std::string_view expected) {
  const View* view = instruction.Find(operand);
  if (view == nullptr) return absl::OkStatus();
  const ElementType type = program.Of(*view).type;
  if (std::ranges::find(types, type) != types.end()) return absl::OkStatus();
  return InvalidArgument("{} is of type {}; expected {}",
                         RowOf(instruction.opcode).operands[operand].name, Name(type), expected);
}

// Bits are those of integers, and only the vector engine takes them.
absl::Status CheckBits(const Program& program, const Instruction& instruction,
                       std::string_view option) {
  const std::string_view name = Name(instruction.op);
  if (instruction.engine != Engine::kVector) {
    return InvalidArgument("{} {} works on bits, which the engine {} does not; use vector", option,
                           name, Name(instruction.engine));
  }
  for (std::size_t at = 0; at < RowOf(instruction.opcode).operands.size(); ++at) {
    TAHOMA_RETURN_IF_ERROR(
        CheckType(program, instruction, at, kIntegers,
                  fmt::format("integers, as {} {} works on bits", option, name)));
  }
  return absl::OkStatus();
}

absl::Status CheckPattern(const Instruction& instruction, const Scalar& scalar) {
  if (instruction.Find(scalar.operand) != nullptr) return absl::OkStatus();
  const bool whole = std::trunc(scalar.number) == scalar.number;
  if (whole && scalar.number >= -0x1p31F && scalar.number < 0x1p32F) return absl::OkStatus();
  return InvalidArgument("{} is {}; expected a whole number of 32 bits", scalar.name,
                         scalar.number);
}

absl::Status CheckBitsOfScalars(const Program& program, const Instruction& instruction,
                                std::span<const Scalar> scalars) {
  if (instruction.op1 && !OnBits(*instruction.op1)) {
    return InvalidArgument("op0 {} works on bits and op1 {} on numbers; expected two of a kind",
                           Name(instruction.op), Name(*instruction.op1));
  }
  TAHOMA_RETURN_IF_ERROR(CheckBits(program, instruction, "op0"));
  for (const Scalar& scalar : scalars) TAHOMA_RETURN_IF_ERROR(CheckPattern(instruction, scalar));
  return absl::OkStatus();
}

// The operators that an engine has for tensor_scalar (AWS's tensor_scalar).
absl::Status CheckEngineOfScalars(const Instruction& instruction) {
  const AluOp first = instruction.op;
  const std::optional<AluOp>& second = instruction.op1;
  const std::string both =
      second ? fmt::format("{} and {}", Name(first), Name(*second)) : std::string(Name(first));
  if (instruction.engine == Engine::kGpSimd && (first != kRsqrt || second)) {
    return InvalidArgument("the engine gpsimd has rsqrt alone, not {}; use vector", both);
  }
  const bool scalar =
      second ? first == kMultiply && *second == kAdd : first == kMultiply || first == kAdd;
  if (instruction.engine == Engine::kScalar && !scalar) {
    return InvalidArgument(
        "the engine scalar has multiply, add, or multiply and then add, not {}; use vector", both);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTensorTensor(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckBinary("op", instruction.op));
  TAHOMA_RETURN_IF_ERROR(CheckNotBothInPsum(program, instruction, 1, 2));
  if (OnBits(instruction.op)) return CheckBits(program, instruction, "op");
  if (instruction.op != kPower) return absl::OkStatus();
  if (instruction.engine != Engine::kGpSimd) {
    return InvalidArgument("op power runs on the engine gpsimd only, not on {}",
                           Name(instruction.engine));
  }
  const auto wide = [&](const View& view) {
    return program.Of(view).type == kInt32 || program.Of(view).type == kUint32;
  };
  if (!std::ranges::all_of(instruction.operands, wide)) return absl::OkStatus();
  return Unimplemented(
      "op power of integers of 32 bits alone is not built yet; give a tile another type");
}

absl::Status CheckTensorScalar(const Program& program, const Instruction& instruction) {
  const std::array<Scalar, 2> scalars = {
      {{"operand0", 2, instruction.value}, {"operand1", 3, instruction.value1}}};
  const View* operand1 = instruction.Find(3);
  TAHOMA_RETURN_IF_ERROR(CheckUnused(instruction.op, instruction.Find(2), scalars[0]));
  if (instruction.op1) {
    TAHOMA_RETURN_IF_ERROR(CheckUnused(*instruction.op1, operand1, scalars[1]));
  } else if (operand1 != nullptr || instruction.value1 != 0 || instruction.reverse1) {
    return InvalidArgument("operand1 or reverse1 is there and op1 is not; expected both or none");
  }
  if (OnBits(instruction.op)) return CheckBitsOfScalars(program, instruction, scalars);
  if (instruction.op1 && OnBits(*instruction.op1)) {
    return InvalidArgument("op0 {} works on numbers and op1 {} on bits; expected two of a kind",
                           Name(instruction.op), Name(*instruction.op1));
  }
  return CheckEngineOfScalars(instruction);
}

absl::Status CheckScalarTensorTensor(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckGiven("op1", instruction.op1));
  TAHOMA_RETURN_IF_ERROR(CheckArithmetic("op0", instruction.op));
  TAHOMA_RETURN_IF_ERROR(CheckArithmetic("op1", *instruction.op1));
  TAHOMA_RETURN_IF_ERROR(CheckBinary("op1", *instruction.op1));
  TAHOMA_RETURN_IF_ERROR(CheckUnused(instruction.op, instruction.Find(2),
                                     {.name = "operand0", .number = instruction.value}));
  return CheckNotBothInPsum(program, instruction, 1, 3);
}

absl::Status CheckTensorScalarReduce(const Program&, const Instruction& instruction) {
  constexpr std::array kReductions = {kAdd, kMultiply, kMaximum, kMinimum};
  TAHOMA_RETURN_IF_ERROR(CheckArithmetic("op0", instruction.op));
  TAHOMA_RETURN_IF_ERROR(CheckUnused(instruction.op, instruction.Find(3),
                                     {.name = "operand0", .number = instruction.value}));
  TAHOMA_RETURN_IF_ERROR(CheckGiven("reduce_op", instruction.op1));
  return CheckOneOf("reduce_op", *instruction.op1, kReductions);
}

absl::Status CheckTensorTensorScan(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckGiven("op1", instruction.op1));
  TAHOMA_RETURN_IF_ERROR(CheckArithmetic("op0", instruction.op));
  TAHOMA_RETURN_IF_ERROR(CheckArithmetic("op1", *instruction.op1));
  TAHOMA_RETURN_IF_ERROR(CheckBinary("op0", instruction.op));
  TAHOMA_RETURN_IF_ERROR(CheckBinary("op1", *instruction.op1));
  return CheckNotBothInPsum(program, instruction, 1, 2);
}

absl::Status CheckTensorCopyPredicated(const Program& program, const Instruction& instruction) {
  const std::array dst_type = {program.Of(*instruction.Find(0)).type};
  TAHOMA_RETURN_IF_ERROR(CheckType(program, instruction, 1, dst_type,
                                   fmt::format("{}, as dst is", Name(dst_type[0]))));
  return CheckNotBothInPsum(program, instruction, 1, 2);
}

absl::Status CheckTensorScalarCumulative(const Program&, const Instruction& instruction) {
  constexpr std::array kReductions = {kAdd, kSubtract, kMultiply, kMaximum, kMinimum};
  TAHOMA_RETURN_IF_ERROR(CheckArithmetic("op0", instruction.op));
  TAHOMA_RETURN_IF_ERROR(CheckUnused(instruction.op, instruction.Find(2),
                                     {.name = "imm0", .number = instruction.value}));
  TAHOMA_RETURN_IF_ERROR(CheckGiven("op1", instruction.op1));
  return CheckOneOf("op1", *instruction.op1, kReductions);
}

absl::Status CheckRangeSelect(const Program&, const Instruction& instruction) {
  constexpr std::array kComparisons = {kEqual, kLess, kLessEqual, kGreater, kGreaterEqual};
  TAHOMA_RETURN_IF_ERROR(CheckGiven("comp_op1", instruction.op1));
  TAHOMA_RETURN_IF_ERROR(CheckOneOf("comp_op0", instruction.op, kComparisons));
  TAHOMA_RETURN_IF_ERROR(CheckOneOf("comp_op1", *instruction.op1, kComparisons));
  // Indices are fp32, which has all whole numbers up to there.
  constexpr double kMostIndex = 0x1p24;
  const double start = instruction.value;
  const auto elements = static_cast<double>(instruction.operands[0].FreeCount());
  if (std::trunc(start) == start && start >= -kMostIndex && start + elements <= kMostIndex) {
    return absl::OkStatus();
  }
  return InvalidArgument("range_start is {}; expected a whole number from {} to {}", start,
                         -kMostIndex, kMostIndex - elements);
}

}  // namespace tahoma::isa
