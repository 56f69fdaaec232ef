#include "lib/numeric/activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "lib/base/check.h"

// Compiled with -ffp-contract=off (CMakeLists.txt), so that hosts with and without fused
// multiply-add compute the same.

namespace tahoma::sim {
namespace {

constexpr std::array<std::string_view, kActivations> kActivationNames = {"copy",
                                                                         "square",
                                                                         "sigmoid",
                                                                         "relu",
                                                                         "gelu",
                                                                         "gelu_dx",
                                                                         "gelu_apprx_tanh",
                                                                         "gelu_apprx_sigmoid",
                                                                         "gelu_apprx_sigmoid_dx",
                                                                         "silu",
                                                                         "silu_dx",
                                                                         "tanh",
                                                                         "softplus",
                                                                         "mish",
                                                                         "erf",
                                                                         "erf_dx",
                                                                         "exp",
                                                                         "log",
                                                                         "sin",
                                                                         "arctan",
                                                                         "sqrt",
                                                                         "rsqrt",
                                                                         "reciprocal",
                                                                         "sign",
                                                                         "abs"};

constexpr double kLargest = std::numeric_limits<float>::max();
constexpr double kPi = std::numbers::pi;
constexpr double kGeluSlope = 1.702;     // of the sigmoid that approximates gelu
constexpr double kGeluCubic = 0.044715;  // of the tanh that does

// Functions that vanish towards minus infinity as x times something do not get there by
// arithmetic, which would multiply infinity by zero. The largest number of fp32 gives the limit.
double AboveMinusInfinity(double x) { return std::max(x, -kLargest); }
double Finite(double x) { return std::min(AboveMinusInfinity(x), kLargest); }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
// x * Sigmoid(slope * x), and its derivative.
double Swish(double x, double slope) {
  x = AboveMinusInfinity(x);
  return x / (1 + std::exp(-slope * x));
}
double SwishDx(double x, double slope) {
  const double steep = Finite(x) * slope;
  return Sigmoid(steep) * (1 + steep * Sigmoid(-steep));
}
// The normal distribution: 1 + erf would lose the digits of its lower tail.
double NormalBelow(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
double Gelu(double x) {
  x = AboveMinusInfinity(x);
  return x * NormalBelow(x);
}
double GeluDx(double x) {
  x = Finite(x);
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * kPi);
  return NormalBelow(x) + x * density;
}
// (1 + tanh(u)) / 2 is Sigmoid(2u), which keeps the digits of the lower tail.
double GeluApprxTanh(double x) {
  x = AboveMinusInfinity(x);
  return x * Sigmoid(2 * std::sqrt(2 / kPi) * (x + kGeluCubic * x * x * x));
}
double Mish(double x) {
  x = AboveMinusInfinity(x);
  return x * std::tanh(Softplus(x));
}
double ErfDx(double x) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }
double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double Sin(double x) {
  const double beyond = std::abs(x) - kPi;
  if (!(beyond > 0)) return std::sin(x);
  return Sign(x) * beyond * (beyond * beyond / 6 - 1);
}

template <typename Function>
void EvaluateAll(std::span<float> values, const Function& function) {
  for (float& value : values) value = static_cast<float>(function(static_cast<double>(value)));
}

}  // namespace

std::string_view Name(Activation function) {
  return kActivationNames.at(static_cast<std::size_t>(function));
}

void Evaluate(Activation function, std::span<float> values) {
  switch (function) {
    case Activation::kCopy:
      return;
    case Activation::kSquare:
      return EvaluateAll(values, [](double x) { return x * x; });
    case Activation::kSigmoid:
      return EvaluateAll(values, Sigmoid);
    case Activation::kRelu:
      return EvaluateAll(values, [](double x) { return std::max(x, 0.0); });
    case Activation::kGelu:
      return EvaluateAll(values, Gelu);
    case Activation::kGeluDx:
      return EvaluateAll(values, GeluDx);
    case Activation::kGeluApprxTanh:
      return EvaluateAll(values, GeluApprxTanh);
    case Activation::kGeluApprxSigmoid:
      return EvaluateAll(values, [](double x) { return Swish(x, kGeluSlope); });
    case Activation::kGeluApprxSigmoidDx:
      return EvaluateAll(values, [](double x) { return SwishDx(x, kGeluSlope); });
    case Activation::kSilu:
      return EvaluateAll(values, [](double x) { return Swish(x, 1); });
    case Activation::kSiluDx:
      return EvaluateAll(values, [](double x) { return SwishDx(x, 1); });
    case Activation::kTanh:
      return EvaluateAll(values, [](double x) { return std::tanh(x); });
    case Activation::kSoftplus:
      return EvaluateAll(values, Softplus);
    case Activation::kMish:
      return EvaluateAll(values, Mish);
    case Activation::kErf:
      return EvaluateAll(values, [](double x) { return std::erf(x); });
    case Activation::kErfDx:
      return EvaluateAll(values, ErfDx);
    case Activation::kExp:
      return EvaluateAll(values, [](double x) { return std::exp(x); });
    case Activation::kLog:
      return EvaluateAll(values, [](double x) { return std::log(x); });
    case Activation::kSin:
      return EvaluateAll(values, Sin);
    case Activation::kArctan:
      return EvaluateAll(values, [](double x) { return std::atan(x); });
    case Activation::kSqrt:
      return EvaluateAll(values, [](double x) { return std::sqrt(x); });
    case Activation::kRsqrt:
      return EvaluateAll(values, [](double x) { return 1 / std::sqrt(x); });
    case Activation::kReciprocal:
      return EvaluateAll(values, [](double x) { return 1 / x; });
    case Activation::kSign:
      return EvaluateAll(values, Sign);
    case Activation::kAbs:
      return EvaluateAll(values, [](double x) { return std::abs(x); });
  }
  TAHOMA_CHECK(false);
}

}  // namespace tahoma::sim
