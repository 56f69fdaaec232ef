// The functions of the Scalar engine, on many values at once.
//
//   Evaluate(Activation::kGelu, values);  // values[i] = gelu(values[i])
//
// The engine approximates its functions by polynomials that AWS does not publish; here they are
// exact: each result is computed in double and rounded to fp32 once. A result is within 0.501 steps
// of fp32 of the exact value, near the zero of a derivative within one step. So hosts whose C
// libraries differ rarely get different results, and then neighbours. The bits of a NaN may differ.
//
// Outside of the range that AWS states for log, sqrt, rsqrt, reciprocal and arctan the engine's
// results are invalid; ours stay exact there, with IEEE's infinities and NaNs. sin does not
// reduce its argument on the chip: beyond ±pi it is the cubic that touches the sine there
// (docs/reference/trainium2.md#functions).
//
// At an infinity a function has its limit. A NaN stays one. sign(0) is 0, and sign of a NaN a NaN.
//
// Scope: the function alone. Scale, bias and reduction are the instruction's.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tahoma::sim {

enum class Activation : std::uint8_t {
  kCopy,
  kSquare,
  kSigmoid,
  kRelu,
  kGelu,
  kGeluDx,
  kGeluApprxTanh,
  kGeluApprxSigmoid,
  kGeluApprxSigmoidDx,
  kSilu,
  kSiluDx,
  kTanh,
  kSoftplus,
  kMish,
  kErf,
  kErfDx,
  kExp,
  kLog,
  kSin,
  kArctan,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kSign,
  kAbs,
};
inline constexpr int kActivations = 25;

// NKI's names, such as "gelu_apprx_tanh".
std::string_view Name(Activation function);

void Evaluate(Activation function, std::span<float> values);

}  // namespace tahoma::sim
