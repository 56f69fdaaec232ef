// Functions are checked against values that mpmath computed with 80 digits, against long double on
// many numbers, and at their ends.

#include "lib/numeric/activation.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr long double kPi = std::numbers::pi_v<long double>;

std::vector<Activation> AllFunctions() {
  std::vector<Activation> all;
  for (int i = 0; i < kActivations; ++i) all.push_back(static_cast<Activation>(i));
  return all;
}

float Evaluated(Activation function, float value) {
  Evaluate(function, {&value, 1});
  return value;
}

TEST(ActivationTest, EachFunctionHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Activation function : AllFunctions()) names.insert(Name(function));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kActivations));
  EXPECT_EQ(Name(Activation::kGeluApprxSigmoidDx), "gelu_apprx_sigmoid_dx");
  EXPECT_EQ(Name(Activation::kAbs), "abs");
}

// The arguments of the golden results; sin gets a quarter of each.
constexpr std::array kArguments = {-12.5F, -3.25F, -1.0F, -0.75F, 0.015625F, 0.5F, 2.75F, 9.0F};
struct Golden {
  Activation function;
  std::array<float, kArguments.size()> results;
};
constexpr Golden kGolden[] = {
    {Activation::kSigmoid,
     {3.72663931e-06F, 0.0373268872F, 0.268941432F, 0.320821315F, 0.50390619F, 0.622459352F,
      0.939913332F, 0.999876618F}},
    {Activation::kGelu,
     {-4.66570525e-35F, -0.00187533139F, -0.158655256F, -0.169970512F, 0.00790989399F, 0.345731229F,
      2.74180555F, 9}},
    {Activation::kGeluDx,
     {-5.83166834e-34F, -0.00601738133F, -0.0833154693F, 0.000774278247F, 0.512465954F, 0.86749512F,
      1.02202749F, 1}},
    {Activation::kGeluApprxTanh,
     {0, -0.00156862719F, -0.158808008F, -0.170039445F, 0.00790989399F, 0.345714003F, 2.74227691F,
      9}},
    {Activation::kGeluApprxSigmoid,
     {-7.19937709e-09F, -0.0128193796F, -0.154204234F, -0.163609937F, 0.00791637599F, 0.350388438F,
      2.72472978F, 8.99999809F}},
    {Activation::kGeluApprxSigmoidDx,
     {-1.16773897e-08F, -0.0177880973F, -0.0677796081F, 0.000428466534F, 0.513295293F, 0.879221916F,
      1.03342545F, 1.00000322F}},
    {Activation::kSilu,
     {-4.65829908e-05F, -0.121312387F, -0.268941432F, -0.240615979F, 0.00787353422F, 0.311229676F,
      2.58476162F, 8.99888992F}},
    {Activation::kSiluDx,
     {-4.28561798e-05F, -0.079457283F, 0.0723294914F, 0.157400057F, 0.507812202F, 0.739961207F,
      1.09522307F, 1.00098705F}},
    {Activation::kTanh,
     {-1, -0.996997654F, -0.761594176F, -0.635148942F, 0.0156237287F, 0.462117165F, 0.991859734F,
      0.99999994F}},
    {Activation::kSoftplus,
     {3.72664613e-06F, 0.0380413719F, 0.313261688F, 0.38687101F, 0.7009902F, 0.974076986F,
      2.81196761F, 9.00012302F}},
    {Activation::kMish,
     {-4.65830781e-05F, -0.123574853F, -0.30340147F, -0.276494712F, 0.00945306104F, 0.375245214F,
      2.73021412F, 9}},
    {Activation::kErf,
     {-1, -0.999995708F, -0.842700779F, -0.711155653F, 0.0176294893F, 0.520499885F, 0.999899387F,
      1}},
    {Activation::kErfDx,
     {0, 2.91890246e-05F, 0.415107489F, 0.642931044F, 1.12810373F, 0.87878257F, 0.000586277223F,
      7.49207323e-36F}},
    {Activation::kExp,
     {3.72665318e-06F, 0.0387742072F, 0.36787945F, 0.472366542F, 1.01574767F, 1.64872122F,
      15.6426315F, 8103.08398F}},
    {Activation::kSin,
     {-0.0165918916F, -0.726008654F, -0.247403964F, -0.186403289F, 0.00390623999F, 0.12467473F,
      0.634607077F, 0.778073192F}},
    {Activation::kArctan,
     {-1.49096632F, -1.27229738F, -0.785398185F, -0.643501103F, 0.0156237287F, 0.463647604F,
      1.22202528F, 1.46013916F}},
};

TEST(ActivationTest, ResultsAreTheNearestToValuesOfManyDigits) {
  for (const Golden& golden : kGolden) {
    for (std::size_t i = 0; i < kArguments.size(); ++i) {
      const float argument =
          golden.function == Activation::kSin ? kArguments[i] / 4 : kArguments[i];
      EXPECT_EQ(Evaluated(golden.function, argument), golden.results[i])
          << Name(golden.function) << " of " << argument;
    }
  }
  EXPECT_EQ(Evaluated(Activation::kLog, 8), 2.07944154F);
  EXPECT_EQ(Evaluated(Activation::kSqrt, 2), 1.41421354F);
  EXPECT_EQ(Evaluated(Activation::kRsqrt, 2), 0.707106769F);
  EXPECT_EQ(Evaluated(Activation::kReciprocal, 3), 0.333333343F);
}

TEST(ActivationTest, ADerivativeIsNearItsZeroWithinAStep) {
  struct Zero {
    Activation function;
    float argument, result;
  };
  for (const Zero& zero : {Zero{Activation::kGeluDx, -0.751791537F, -5.22731192e-09F},
                           Zero{Activation::kSiluDx, -1.27846456F, -2.82703971e-09F},
                           Zero{Activation::kGeluApprxSigmoidDx, -0.751154244F, 4.2614543e-09F}}) {
    const float found = Evaluated(zero.function, zero.argument);
    EXPECT_TRUE(found >= std::nextafter(zero.result, -1.0F) &&
                found <= std::nextafter(zero.result, 1.0F))
        << Name(zero.function) << " is " << found;
  }
}

using Wide = long double;
Wide Normal(Wide x) { return std::erfc(-x / std::sqrt(Wide{2})) / 2; }

Wide Logistic(Wide x) {
  if (x > 0) return 1 - Logistic(-x);
  return std::exp(x) / (std::exp(x) + 1);
}

// Other formulas than those of activation.cc where there are any that keep the digits.
const std::map<Activation, std::function<Wide(Wide)>>& Oracle() {
  static const std::map<Activation, std::function<Wide(Wide)>> all = {
      {Activation::kCopy, [](Wide x) { return x; }},
      {Activation::kSquare, [](Wide x) { return std::pow(x, Wide{2}); }},
      {Activation::kSigmoid, Logistic},
      {Activation::kRelu, [](Wide x) { return x > 0 ? x : 0; }},
      {Activation::kGelu, [](Wide x) { return x * Normal(x); }},
      {Activation::kGeluDx,
       [](Wide x) { return Normal(x) + x * std::exp(-(x * x) / 2) / std::sqrt(2 * kPi); }},
      {Activation::kGeluApprxTanh,
       [](Wide x) { return x * Logistic(std::sqrt(8 / kPi) * (x + 0.044715L * x * x * x)); }},
      {Activation::kGeluApprxSigmoid, [](Wide x) { return x * Logistic(1.702L * x); }},
      {Activation::kGeluApprxSigmoidDx,
       [](Wide x) {
         const Wide u = std::exp(1.702L * x);
         return u * (u + 1 + 1.702L * x) / ((u + 1) * (u + 1));
       }},
      {Activation::kSilu, [](Wide x) { return x * Logistic(x); }},
      {Activation::kSiluDx,
       [](Wide x) {
         const Wide u = std::exp(x);
         return u * (u + 1 + x) / ((u + 1) * (u + 1));
       }},
      {Activation::kTanh, [](Wide x) { return std::expm1(2 * x) / (std::expm1(2 * x) + 2); }},
      {Activation::kSoftplus, [](Wide x) { return std::log1p(std::exp(x)); }},
      {Activation::kMish,
       [](Wide x) {
         const Wide u = std::exp(x);
         return x * u * (u + 2) / (u * (u + 2) + 2);
       }},
      {Activation::kErf, [](Wide x) { return std::erf(x); }},
      {Activation::kErfDx, [](Wide x) { return 2 / std::sqrt(kPi) * std::exp(-(x * x)); }},
      {Activation::kExp, [](Wide x) { return std::exp2(x * std::numbers::log2e_v<Wide>); }},
      {Activation::kLog, [](Wide x) { return std::log2(x) * std::numbers::ln2_v<Wide>; }},
      {Activation::kSin, [](Wide x) { return std::sin(x); }},
      {Activation::kArctan, [](Wide x) { return std::atan2(x, Wide{1}); }},
      {Activation::kSqrt, [](Wide x) { return std::sqrt(x); }},
      {Activation::kRsqrt, [](Wide x) { return 1 / std::sqrt(x); }},
      {Activation::kReciprocal, [](Wide x) { return 1 / x; }},
      {Activation::kSign, [](Wide x) { return x > 0   ? 1
                                              : x < 0 ? -1
                                                      : 0; }},
      {Activation::kAbs, [](Wide x) { return x < 0 ? -x : x; }},
  };
  return all;
}

// The distance of neighbours of fp32 about a value.
Wide StepAt(Wide value) { return std::ldexp(Wide{1}, std::max(std::ilogb(value), -126) - 23); }

// Numbers of the range on which a function's oracle is exact.
float RandomArgument(Rng& rng, Activation function) {
  const auto uniform = static_cast<float>(rng.Below(1U << 24U)) / (1U << 23U) - 1;  // [-1, 1)
  if (function == Activation::kSin) return uniform * 3.1415925F;
  if (rng.Chance(1, 2)) return uniform * (rng.Chance(1, 2) ? 4.0F : 100.0F);
  const float any = std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next()));
  const bool everywhere = function == Activation::kCopy || function == Activation::kSquare ||
                          function == Activation::kLog || function >= Activation::kArctan;
  return std::isfinite(any) && (everywhere || std::abs(any) < 100) ? any : uniform;
}

TEST(ActivationTest, ResultsAreWithinTheBoundOfTheHeader) {
  Rng rng(71);
  for (const auto& [function, exact] : Oracle()) {
    const bool derivative = Name(function).ends_with("_dx");
    for (int i = 0; i < 20'000; ++i) {
      const float argument = RandomArgument(rng, function);
      const Wide expected = exact(static_cast<Wide>(argument));
      const float found = Evaluated(function, argument);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(found)) << Name(function) << " of " << argument;
      } else if (!std::isfinite(static_cast<float>(expected))) {
        ASSERT_EQ(found, static_cast<float>(expected)) << Name(function) << " of " << argument;
      } else {
        const Wide steps = std::abs(static_cast<Wide>(found) - expected) / StepAt(expected);
        ASSERT_LE(steps, derivative && std::abs(expected) < 1e-3L ? 1 : 0.501L)
            << Name(function) << " of " << argument << " is " << found << ", not " << expected;
      }
    }
  }
}

TEST(ActivationTest, ADerivativeIsTheSlopeOfItsFunction) {
  constexpr std::pair<Activation, Activation> kPairs[] = {
      {Activation::kGelu, Activation::kGeluDx},
      {Activation::kGeluApprxSigmoid, Activation::kGeluApprxSigmoidDx},
      {Activation::kSilu, Activation::kSiluDx},
      {Activation::kErf, Activation::kErfDx}};
  for (const auto& [function, derivative] : kPairs) {
    const auto& exact = Oracle().at(function);
    for (float x = -6; x <= 6; x += 0.125F) {
      const Wide at = static_cast<Wide>(x), half = 1e-5L;
      const Wide slope = (exact(at + half) - exact(at - half)) / (2 * half);
      EXPECT_NEAR(static_cast<double>(Evaluated(derivative, x)), static_cast<double>(slope), 1e-7)
          << Name(derivative) << " of " << x;
    }
  }
}

TEST(ActivationTest, AnInfinityGivesTheLimit) {
  constexpr float kHalfPi = 1.57079637F;
  const std::map<Activation, std::pair<float, float>> limits = {
      {Activation::kCopy, {-kInfinity, kInfinity}},
      {Activation::kSquare, {kInfinity, kInfinity}},
      {Activation::kSigmoid, {0, 1}},
      {Activation::kRelu, {0, kInfinity}},
      {Activation::kGelu, {0, kInfinity}},
      {Activation::kGeluDx, {0, 1}},
      {Activation::kGeluApprxTanh, {0, kInfinity}},
      {Activation::kGeluApprxSigmoid, {0, kInfinity}},
      {Activation::kGeluApprxSigmoidDx, {0, 1}},
      {Activation::kSilu, {0, kInfinity}},
      {Activation::kSiluDx, {0, 1}},
      {Activation::kTanh, {-1, 1}},
      {Activation::kSoftplus, {0, kInfinity}},
      {Activation::kMish, {0, kInfinity}},
      {Activation::kErf, {-1, 1}},
      {Activation::kErfDx, {0, 0}},
      {Activation::kExp, {0, kInfinity}},
      {Activation::kLog, {kNan, kInfinity}},
      {Activation::kSin, {-kInfinity, kInfinity}},
      {Activation::kArctan, {-kHalfPi, kHalfPi}},
      {Activation::kSqrt, {kNan, kInfinity}},
      {Activation::kRsqrt, {kNan, 0}},
      {Activation::kReciprocal, {0, 0}},
      {Activation::kSign, {-1, 1}},
      {Activation::kAbs, {kInfinity, kInfinity}},
  };
  const float largest = std::numeric_limits<float>::max();
  for (const Activation function : AllFunctions()) {
    const auto& [low, high] = limits.at(function);
    const float found = Evaluated(function, -kInfinity);
    EXPECT_TRUE(found == low || (std::isnan(low) && std::isnan(found))) << Name(function);
    EXPECT_EQ(Evaluated(function, kInfinity), high) << Name(function);
    EXPECT_TRUE(std::isnan(Evaluated(function, kNan))) << Name(function);
    EXPECT_FALSE(std::isnan(Evaluated(function, largest))) << Name(function);
    EXPECT_EQ(std::isnan(Evaluated(function, -largest)), std::isnan(low)) << Name(function);
  }
}

TEST(ActivationTest, BeyondPiTheSineIsACubic) {
  EXPECT_NEAR(Evaluated(Activation::kSin, 9), 27.65, 0.005);  // AWS's sample
  EXPECT_EQ(Evaluated(Activation::kSin, -9), -Evaluated(Activation::kSin, 9));
  const float pi = 3.14159274F;  // a bit more than pi
  EXPECT_NEAR(Evaluated(Activation::kSin, pi), -8.742278e-8, 1e-14);
  EXPECT_NEAR(Evaluated(Activation::kSin, pi + 0.0625F), std::sin(3.2040927), 1e-6);
}

TEST(ActivationTest, OutsideOfAnIntervalTheMathematicsIsIeees) {
  EXPECT_TRUE(std::isnan(Evaluated(Activation::kLog, -1)));
  EXPECT_EQ(Evaluated(Activation::kLog, 0), -kInfinity);
  EXPECT_TRUE(std::isnan(Evaluated(Activation::kSqrt, -1)));
  EXPECT_EQ(Evaluated(Activation::kRsqrt, 0), kInfinity);
  EXPECT_EQ(Evaluated(Activation::kReciprocal, -0.0F), -kInfinity);
  EXPECT_EQ(Evaluated(Activation::kSign, 0), 0);
}

TEST(ActivationTest, ManyValuesAreEachEvaluated) {
  std::vector<float> values = {-2, 0, 3, -0.5F, 7};
  Evaluate(Activation::kRelu, values);
  EXPECT_EQ(values, (std::vector<float>{0, 0, 3, 0, 7}));
}

}  // namespace
}  // namespace tahoma::sim
