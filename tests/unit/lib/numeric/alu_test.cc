// Operators are checked against double, in which every sum, product and quotient of two fp32 is
// rounded twice without harm, and against bits taken one by one.

#include "lib/numeric/alu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<AluOp> AllOps() {
  std::vector<AluOp> all;
  for (int i = 0; i < kAluOps; ++i) all.push_back(static_cast<AluOp>(i));
  return all;
}

std::set<std::string> NamesOf(const std::function<bool(AluOp)>& wanted) {
  std::set<std::string> names;
  for (const AluOp op : AllOps()) {
    if (wanted(op)) names.emplace(Name(op));
  }
  return names;
}

const std::map<AluOp, std::function<double(double, double)>>& Oracle() {
  static const std::map<AluOp, std::function<double(double, double)>> all = {
      {AluOp::kAdd, [](double a, double b) { return a + b; }},
      {AluOp::kSubtract, [](double a, double b) { return a - b; }},
      {AluOp::kMultiply, [](double a, double b) { return a * b; }},
      {AluOp::kMaximum, [](double a, double b) { return std::isnan(a) || !(b > a) ? a : b; }},
      {AluOp::kMinimum, [](double a, double b) { return std::isnan(a) || !(b < a) ? a : b; }},
      {AluOp::kPower, [](double a, double b) { return std::pow(a, b); }},
      {AluOp::kAbsMax,
       [](double a, double b) {
         a = std::fabs(a);
         b = std::fabs(b);
         return std::isnan(a) || !(b > a) ? a : b;
       }},
      {AluOp::kAbsMin,
       [](double a, double b) {
         a = std::fabs(a);
         b = std::fabs(b);
         return std::isnan(a) || !(b < a) ? a : b;
       }},
      {AluOp::kEqual, [](double a, double b) { return a == b ? 1 : 0; }},
      {AluOp::kNotEqual, [](double a, double b) { return a == b ? 0 : 1; }},
      {AluOp::kGreater, [](double a, double b) { return a > b ? 1 : 0; }},
      {AluOp::kGreaterEqual, [](double a, double b) { return a > b || a == b ? 1 : 0; }},
      {AluOp::kLess, [](double a, double b) { return b > a ? 1 : 0; }},
      {AluOp::kLessEqual, [](double a, double b) { return b > a || a == b ? 1 : 0; }},
      {AluOp::kLogicalAnd, [](double a, double b) { return a == 0   ? 0
                                                           : b == 0 ? 0
                                                                    : 1; }},
      {AluOp::kLogicalOr, [](double a, double b) { return a == 0 && b == 0 ? 0 : 1; }},
      {AluOp::kLogicalXor, [](double a, double b) { return (a == 0) == (b == 0) ? 0 : 1; }},
      {AluOp::kAbs, [](double a, double) { return std::signbit(a) ? -a : a; }},
      {AluOp::kSquare, [](double a, double) { return a * a; }},
      {AluOp::kRelu, [](double a, double) { return a < 0 ? 0 : a; }},
      {AluOp::kRsqrt,
       [](double a, double) {
         return static_cast<double>(1 / std::sqrt(static_cast<long double>(a)));
       }},
      {AluOp::kReciprocal, [](double a, double) { return 1 / a; }},
  };
  return all;
}

// Numbers of all sizes, and some whose results are special.
std::vector<float> Numbers(Rng& rng, std::size_t count) {
  constexpr float kSpecial[] = {0,
                                -0.0F,
                                1,
                                -1,
                                0.5F,
                                2,
                                -3,
                                kInfinity,
                                -kInfinity,
                                kNan,
                                std::numeric_limits<float>::max(),
                                std::numeric_limits<float>::min(),
                                -std::numeric_limits<float>::denorm_min()};
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    switch (rng.Below(3)) {
      case 0:
        numbers.push_back(kSpecial[rng.Below(std::size(kSpecial))]);
        break;
      case 1:
        numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next())));
        break;
      default:
        numbers.push_back(static_cast<float>(rng.Below(1U << 16U)) / 256 - 128);
    }
  }
  return numbers;
}

void ExpectSame(float found, double exact, const std::string& what) {
  const auto expected = static_cast<float>(exact);
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << what << " is " << found;
  } else {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(expected))
        << what << " is " << found << ", not " << expected;
  }
}

TEST(AluTest, EachOperatorHasANameOfItsOwn) {
  EXPECT_EQ(NamesOf([](AluOp) { return true; }).size(), static_cast<std::size_t>(kAluOps));
}

TEST(AluTest, KindsAndReductionsAreThoseOfAwsTable) {
  EXPECT_THAT(NamesOf([](AluOp op) { return KindOf(op) == AluKind::kBits; }),
              ElementsAre("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift",
                          "right_shift"));
  EXPECT_THAT(NamesOf(IsReduction), ElementsAre("add", "bitwise_and", "bitwise_or", "bitwise_xor",
                                                "logical_and", "logical_or", "logical_xor",
                                                "maximum", "minimum", "multiply", "subtract"));
  EXPECT_THAT(NamesOf(IsUnary),
              ElementsAre("abs", "invert", "reciprocal", "relu", "rsqrt", "square"));
}

TEST(AluTest, TheNumbersOfStoredProgramsStay) {
  EXPECT_EQ(Name(static_cast<AluOp>(0)), "add");
  EXPECT_EQ(Name(static_cast<AluOp>(1)), "subtract");
  EXPECT_EQ(Name(static_cast<AluOp>(2)), "multiply");
  EXPECT_EQ(Name(static_cast<AluOp>(3)), "maximum");
  EXPECT_EQ(Name(static_cast<AluOp>(4)), "minimum");
}

TEST(AluTest, EveryResultIsTheExactRoundedOnce) {
  Rng rng(61);
  for (const auto& [op, exact] : Oracle()) {
    for (std::size_t size = 0; size < 70; ++size) {  // whole blocks, and what is left of them
      const std::vector<float> a = Numbers(rng, size);
      const std::vector<float> b = Numbers(rng, size);
      std::vector<float> given = a, reversed = a;
      Apply(op, given, b, false);
      Apply(op, reversed, b, true);
      for (std::size_t i = 0; i < size; ++i) {
        const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
        const std::string what =
            std::string(Name(op)) + " of " + std::to_string(x) + ", " + std::to_string(y);
        ExpectSame(given[i], exact(x, y), what);
        ExpectSame(reversed[i], IsUnary(op) ? exact(x, y) : exact(y, x), what + " reversed");
      }
    }
  }
}

TEST(AluTest, AScalarIsTheSameAsThatManyCopies) {
  Rng rng(62);
  for (const AluOp op : AllOps()) {
    for (const std::size_t size : {0U, 1U, 255U, 256U, 600U}) {
      const bool reversed = rng.Chance(1, 2);
      const float other = Numbers(rng, 1)[0];
      std::vector<float> by_scalar = Numbers(rng, size), by_copies = by_scalar;
      std::vector<std::uint32_t> bits_by_scalar, bits_by_copies;
      const auto pattern = static_cast<std::uint32_t>(rng.Below(40));
      for (const float value : by_scalar) {
        bits_by_scalar.push_back(std::bit_cast<std::uint32_t>(value));
      }
      bits_by_copies = bits_by_scalar;
      if (KindOf(op) == AluKind::kArithmetic) {
        Apply(op, by_scalar, other, reversed);
        Apply(op, by_copies, std::vector<float>(size, other), reversed);
        for (std::size_t i = 0; i < size; ++i) {
          ExpectSame(by_scalar[i], static_cast<double>(by_copies[i]), std::string(Name(op)));
        }
      } else {
        ApplyBits(op, bits_by_scalar, pattern, reversed);
        ApplyBits(op, bits_by_copies, std::vector<std::uint32_t>(size, pattern), reversed);
        EXPECT_EQ(bits_by_scalar, bits_by_copies);
      }
    }
  }
}

TEST(AluTest, ATileMayBeBothOperands) {
  Rng rng(63);
  const std::vector<float> before = Numbers(rng, 100);
  std::vector<float> values = before;
  Apply(AluOp::kMultiply, values, values, false);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ExpectSame(values[i], std::pow(static_cast<double>(before[i]), 2), "square");
  }
}

TEST(AluTest, AMaximumKeepsTheLeftNanAndTheLeftZero) {
  std::vector<float> values = {kNan, 1, 0.0F, -0.0F};
  Apply(AluOp::kMaximum, values, std::vector<float>{1, kNan, -0.0F, 0.0F}, false);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], 1);
  EXPECT_FALSE(std::signbit(values[2]));
  EXPECT_TRUE(std::signbit(values[3]));
}

TEST(AluTest, PowersAreThoseOfC) {
  std::vector<float> values = {2, 9, -2, -2, 0, 0, 7, kInfinity};
  Apply(AluOp::kPower, values, std::vector<float>{10, 0.5F, 3, 0.5F, 0, -1, 0, -2}, false);
  EXPECT_TRUE(std::isnan(values[3]));
  values[3] = 0;
  EXPECT_THAT(values, ElementsAre(1024, 3, -8, 0, 1, kInfinity, 1, 0));
  Apply(AluOp::kPower, values, 2.0F, true);
  EXPECT_EQ(values[1], 8);
}

// A shift by so many times one bit, and the other operators bit by bit.
std::uint32_t BitsOf(AluOp op, std::uint32_t a, std::uint32_t b) {
  std::uint32_t result = 0;
  for (unsigned at = 0; at < 32; ++at) {
    const bool x = (a >> at) % 2 != 0, y = (b >> at) % 2 != 0;
    const bool bit = op == AluOp::kBitwiseAnd   ? x && y
                     : op == AluOp::kBitwiseOr  ? x || y
                     : op == AluOp::kBitwiseXor ? x != y
                                                : !x;
    if (bit) result |= 1U << at;
  }
  if (op != AluOp::kLeftShift && op != AluOp::kRightShift) return result;
  for (std::uint32_t i = 0; i < std::min(b, 64U); ++i) {
    a = op == AluOp::kLeftShift ? a * 2 : a / 2;
  }
  return a;
}

TEST(AluTest, OperatorsOnBitsAreThoseOfEachBit) {
  Rng rng(64);
  for (const AluOp op : AllOps()) {
    if (KindOf(op) != AluKind::kBits) continue;
    std::vector<std::uint32_t> a, b;
    for (int i = 0; i < 300; ++i) {
      a.push_back(static_cast<std::uint32_t>(rng.Next()));
      b.push_back(static_cast<std::uint32_t>(i % 3 == 0 ? rng.Next() : rng.Below(40)));
    }
    std::vector<std::uint32_t> given = a, reversed = a;
    ApplyBits(op, given, b, false);
    ApplyBits(op, reversed, b, true);
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(given[i], BitsOf(op, a[i], b[i])) << Name(op) << " " << a[i] << " " << b[i];
      EXPECT_EQ(reversed[i], IsUnary(op) ? given[i] : BitsOf(op, b[i], a[i])) << Name(op);
    }
  }
}

TEST(AluTest, AReductionGoesFromTheStartInOrder) {
  EXPECT_EQ(Reduce(AluOp::kSubtract, 10, std::vector<float>{1, 2, 3}), 4);
  EXPECT_EQ(Reduce(AluOp::kMinimum, kInfinity, std::vector<float>{}), kInfinity);
  EXPECT_EQ(Reduce(AluOp::kLogicalXor, 0, std::vector<float>{2, kNan, -1}), 1);
  const std::vector<float> cancelling = {1e8F, 1, -1e8F};  // 1 is lost in 1e8
  EXPECT_EQ(Reduce(AluOp::kAdd, 0, cancelling), 0);
}

TEST(AluDeathTest, AnOperatorOfTheOtherKindIsOurMistake) {
  std::vector<float> values = {1};
  std::vector<std::uint32_t> patterns = {1};
  EXPECT_DEATH(Apply(AluOp::kInvert, values, 1.0F, false), "CHECK");
  EXPECT_DEATH(ApplyBits(AluOp::kAdd, patterns, 1U, false), "CHECK");
  EXPECT_DEATH(Reduce(AluOp::kPower, 1, values), "CHECK");
}

}  // namespace
}  // namespace tahoma::sim
