// The operators of the Vector, Scalar and GpSimd engines, on many values at once.
//
//   const AluOp op = AluOp::kSubtract;
//   Apply(op, values, others, false);  // values[i] = values[i] - others[i]
//   Apply(op, values, 1.0F, true);     // values[i] = 1 - values[i]
//   const float sum = Reduce(AluOp::kAdd, 0, values);
//   ApplyBits(AluOp::kRightShift, patterns, 3U, false);
//
// AWS publishes the operators' names, which of them work on bits and which may reduce
// (docs/reference/trainium2.md#operators). The rest is assumed:
// - Arithmetic is IEEE's in fp32, denormals included. Each result is rounded once, to nearest even.
// - Comparisons and logical operators give 1 or 0. A number is true unless it is zero, so a NaN is
//   true.
// - maximum and minimum are std::max and std::min of the left and the right operand, as in
//   element.h: of two zeros the left one stays, and so does a NaN on the left; a NaN on the right
//   is ignored. abs_max and abs_min take the magnitudes of both operands first.
// - A shift by 32 bits or more gives 0. Bits are unsigned and 32: for a shorter integer, extend the
//   pattern with zeros and keep the low bits of the result.
// - rsqrt and power are computed in double and rounded to fp32; power is C's pow.
// Results have the same bits on every host, but for those of a NaN, and for power where the exact
// result lies within 2^-27 of a step of halfway between two numbers of fp32: pow differs there
// between C libraries.
//
// Scope: arithmetic. The limits of instructions that name an operator are in lib/isa.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tahoma::sim {

// The first five have numbers in stored programs (docs/formats/program.md): new ones go to the end.
enum class AluOp : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kMaximum,
  kMinimum,
  kPower,
  kAbsMax,
  kAbsMin,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kAbs,
  kSquare,
  kRelu,
  kRsqrt,
  kReciprocal,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kInvert,
  kLeftShift,
  kRightShift,
};
inline constexpr int kAluOps = 28;

// On numbers, or on patterns of bits.
enum class AluKind : std::uint8_t { kArithmetic, kBits };

// NKI's names, such as "add" and "bitwise_and".
std::string_view Name(AluOp op);
AluKind KindOf(AluOp op);
// A unary operator ignores the other operand, and `reversed`.
bool IsUnary(AluOp op);
// Whether an instruction may reduce by the operator.
bool IsReduction(AluOp op);

// Writes values[i] op others[i], or others[i] op values[i] if reversed, to values[i]. The operator
// is of kind kArithmetic. `others` has the size of `values`, and is the same memory or apart.
void Apply(AluOp op, std::span<float> values, std::span<const float> others, bool reversed);
void Apply(AluOp op, std::span<float> values, float other, bool reversed);
// Returns (start op values[0]) op values[1] …; the operator must be a reduction.
float Reduce(AluOp op, float start, std::span<const float> values);

// The same for operators of kind kBits.
void ApplyBits(AluOp op, std::span<std::uint32_t> values, std::span<const std::uint32_t> others,
               bool reversed);
void ApplyBits(AluOp op, std::span<std::uint32_t> values, std::uint32_t other, bool reversed);

}  // namespace tahoma::sim
