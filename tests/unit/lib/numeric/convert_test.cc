// Short floats are checked against their two widths (short_formats.h), integers against a search
// for the nearest in exact arithmetic.

#include "lib/numeric/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lib/base/rng.h"
#include "tests/unit/lib/numeric/short_formats.h"

namespace tahoma::sim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The element of a pattern, as fp32.
float Widened(ElementType type, std::uint32_t pattern) {
  pattern <<= UnusedBits(type);
  std::array<std::byte, sizeof pattern> bytes;
  std::memcpy(bytes.data(), &pattern, sizeof pattern);  // little endian, as elements are
  float value = 0;
  Widen(type, bytes.data(), {&value, 1});
  return value;
}

// The pattern of the element. Unused bits that are not 0 become the highest.
std::uint32_t Narrowed(ElementType type, float value) {
  std::uint32_t pattern = 0;
  std::array<std::byte, sizeof pattern> bytes = {};
  Narrow(type, {&value, 1}, bytes.data());
  std::memcpy(&pattern, bytes.data(), sizeof pattern);
  return std::rotr(pattern, UnusedBits(type));
}

std::uint32_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(ConvertTest, EveryPatternOfAShortFloatWidensToItsValueAndBack) {
  for (const ShortFormat& format : kShortFormats) {
    for (std::uint32_t pattern = 0; pattern <= format.infinity(); ++pattern) {
      const float expected =
          pattern == format.infinity() ? kInfinity : static_cast<float>(format.ValueOf(pattern));
      for (const std::uint32_t sign : {0U, format.sign()}) {
        const float value = Widened(format.type, pattern | sign);
        ASSERT_EQ(Bits(value), Bits(sign != 0 ? -expected : expected))
            << Name(format.type) << " " << (pattern | sign);
        ASSERT_EQ(Narrowed(format.type, value), pattern | sign);
      }
    }
  }
}

TEST(ConvertTest, EveryNanStaysANanOfItsSign) {
  for (const ShortFormat& format : kShortFormats) {
    const std::uint32_t quiet = format.infinity() | 1U << (format.mantissa_bits - 1);
    for (std::uint32_t pattern = format.infinity() + 1; pattern < format.sign(); ++pattern) {
      for (const std::uint32_t sign : {0U, format.sign()}) {
        const float value = Widened(format.type, pattern | sign);
        ASSERT_TRUE(std::isnan(value)) << Name(format.type) << " " << pattern;
        ASSERT_EQ(std::signbit(value), sign != 0);
        ASSERT_EQ(Narrowed(format.type, value), quiet | sign);
      }
    }
  }
}

// Expects that value and -value narrow to the nearest.
void ExpectNearest(const ShortFormat& format, float value) {
  const std::uint32_t nearest = format.Nearest(static_cast<double>(value));
  ASSERT_EQ(Narrowed(format.type, value), nearest) << Name(format.type) << " of " << value;
  ASSERT_EQ(Narrowed(format.type, -value), nearest | format.sign());
}

TEST(ConvertTest, WhatLiesHalfwayGoesToTheEvenPatternAndItsNeighboursToTheNearest) {
  for (const ShortFormat& format : kShortFormats) {
    for (std::uint32_t pattern = 0; pattern < format.infinity(); ++pattern) {
      const double value = format.ValueOf(pattern);
      const double next = pattern + 1 == format.infinity()
                              ? 2 * value - format.ValueOf(pattern - 1)  // one step beyond
                              : format.ValueOf(pattern + 1);
      const auto halfway = static_cast<float>((value + next) / 2);
      ASSERT_EQ(static_cast<double>(halfway), (value + next) / 2);
      for (const float near : {halfway, std::nextafter(halfway, 0.0F),
                               std::nextafter(halfway, kInfinity), static_cast<float>(value)}) {
        ExpectNearest(format, near);
      }
    }
  }
}

TEST(ConvertTest, AnyFp32NarrowsToTheNearestShortFloat) {
  Rng rng(31);
  for (const ShortFormat& format : kShortFormats) {
    for (int i = 0; i < 200'000; ++i) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next()) & 0x7fffffffU);
      if (std::isfinite(value)) ExpectNearest(format, value);
    }
    for (const float value :
         {0.0F, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
          std::numeric_limits<float>::max(), kInfinity}) {
      ExpectNearest(format, value);
    }
  }
}

TEST(ConvertTest, BeyondTheLargestByHalfAStepIsInfinity) {
  EXPECT_EQ(Widened(ElementType::kFp8E4m3, Narrowed(ElementType::kFp8E4m3, 247.9F)), 240);
  EXPECT_EQ(Widened(ElementType::kFp8E4m3, Narrowed(ElementType::kFp8E4m3, 248)), kInfinity);
  EXPECT_EQ(Widened(ElementType::kFp16, Narrowed(ElementType::kFp16, -65520)), -kInfinity);
}

TEST(ConvertTest, Fp32KeepsItsBits) {
  for (const std::uint32_t bits : {0x80000000U, 0x00000001U, 0x7f800001U, 0xffc12345U}) {
    std::array<std::byte, 4> bytes;
    std::memcpy(bytes.data(), &bits, 4);
    std::array<float, 1> value;
    Widen(ElementType::kFp32, bytes.data(), value);
    std::array<std::byte, 4> back;
    Narrow(ElementType::kFp32, value, back.data());
    EXPECT_EQ(bytes, back);
  }
}

TEST(ConvertTest, AnElementOfFp32rWithOtherLastBitsIsRoundedWhenItIsRead) {
  Rng rng(33);
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(rng.Next());
    const auto stored = std::bit_cast<float>(bits);
    float read = 0;
    Widen(ElementType::kFp32r, std::as_bytes(std::span(&bits, 1)).data(), {&read, 1});
    if (std::isnan(stored)) {
      ASSERT_TRUE(std::isnan(read)) << bits;
    } else {
      ASSERT_EQ(Bits(read),
                Bits(Widened(ElementType::kFp32r, Narrowed(ElementType::kFp32r, stored))))
          << bits;
    }
  }
}

// An integer type by its bounds.
struct IntegerFormat {
  ElementType type;
  std::int64_t least;
  std::int64_t most;

  // The pattern that a number in the type has.
  std::uint32_t Pattern(std::int64_t number) const {
    return static_cast<std::uint32_t>(number) & (~0U >> (32 - 8 * Size(type)));
  }
  // The nearest number, of two the even one, found around the truncated one.
  std::int64_t Nearest(float value) const {
    const auto exact = static_cast<long double>(value);
    if (exact <= static_cast<long double>(least)) return least;
    if (exact >= static_cast<long double>(most)) return most;
    const auto truncated = static_cast<std::int64_t>(exact);
    std::int64_t best = truncated;
    for (const std::int64_t other : {truncated - 1, truncated + 1}) {
      const long double old = std::abs(static_cast<long double>(best) - exact);
      const long double now = std::abs(static_cast<long double>(other) - exact);
      if (now < old || (now == old && other % 2 == 0)) best = other;
    }
    return best;
  }
};
constexpr IntegerFormat kIntegers[] = {
    {ElementType::kUint8, 0, 255},         {ElementType::kInt8, -128, 127},
    {ElementType::kUint16, 0, 65535},      {ElementType::kInt16, -32768, 32767},
    {ElementType::kUint32, 0, 4294967295}, {ElementType::kInt32, -2147483648, 2147483647}};

TEST(ConvertTest, EveryShortIntegerIsExact) {
  for (const IntegerFormat& format : kIntegers) {
    if (Size(format.type) == 4) continue;
    for (std::int64_t number = format.least; number <= format.most; ++number) {
      const float value = Widened(format.type, format.Pattern(number));
      ASSERT_EQ(value, static_cast<float>(number)) << Name(format.type);
      ASSERT_EQ(Narrowed(format.type, value), format.Pattern(number));
    }
  }
}

TEST(ConvertTest, LongIntegersAreRoundedToTheNearestFp32) {
  Rng rng(7);
  for (const IntegerFormat& format : kIntegers) {
    if (Size(format.type) != 4) continue;
    for (int i = 0; i < 100'000; ++i) {
      const std::int64_t number =
          i % 2 == 0 ? format.least + static_cast<std::int64_t>(rng.Next() >> 32U)
                     : (std::int64_t{1} << 24U) + static_cast<std::int64_t>(rng.Below(1U << 26U));
      // The fp32 above and below are as near as the chosen one, or farther.
      const float value = Widened(format.type, format.Pattern(number));
      const auto distance = [&](float from) {
        return std::abs(static_cast<double>(from) - static_cast<double>(number));
      };
      for (const float other :
           {std::nextafter(value, -kInfinity), std::nextafter(value, kInfinity)}) {
        ASSERT_LE(distance(value), distance(other)) << number;
        ASSERT_TRUE(distance(value) < distance(other) || Bits(value) % 2 == 0) << number;
      }
    }
  }
}

TEST(ConvertTest, IntegersGetTheNearestNumberOrTheirBound) {
  Rng rng(13);
  for (const IntegerFormat& format : kIntegers) {
    for (int i = 0; i < 100'000; ++i) {
      const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next()));
      const float halves = (static_cast<float>(rng.Below(200'000)) - 100'000) / 2;
      for (const float value : {any, halves, halves / 256}) {
        const std::int64_t expected = std::isnan(value) ? 0 : format.Nearest(value);
        ASSERT_EQ(Narrowed(format.type, value), format.Pattern(expected))
            << Name(format.type) << " of " << value;
      }
    }
    EXPECT_EQ(Narrowed(format.type, kInfinity), format.Pattern(format.most));
    EXPECT_EQ(Narrowed(format.type, -kInfinity), format.Pattern(format.least));
    EXPECT_EQ(Narrowed(format.type, kNan), 0U);
    EXPECT_EQ(Narrowed(format.type, 2147483648.0F),
              format.Pattern(std::min(std::int64_t{2147483648}, format.most)));
  }
}

TEST(ConvertTest, ManyElementsNeedNoAlignment) {
  const std::vector<float> values = {1, -2, 0.5F, 240, kInfinity};
  std::vector<std::byte> bytes(1 + 2 * values.size());
  Narrow(ElementType::kBf16, values, bytes.data() + 1);
  std::vector<float> back(values.size());
  Widen(ElementType::kBf16, bytes.data() + 1, back);
  EXPECT_EQ(back, values);
}

// The pattern of the element.
std::uint32_t NarrowedStochastically(ElementType type, float value, std::uint64_t seed,
                                     std::uint64_t position) {
  std::uint32_t pattern = 0;
  std::array<std::byte, sizeof pattern> bytes = {};
  NarrowStochastic(type, {&value, 1}, seed, position, bytes.data());
  std::memcpy(&pattern, bytes.data(), sizeof pattern);
  return std::rotr(pattern, UnusedBits(type));
}

// The patterns below and above a positive number, and the distance from the lower one in steps.
struct Between {
  std::uint32_t lower, upper;
  double fraction;
};
Between NeighboursOf(const ShortFormat& format, double value) {
  const std::uint32_t last = format.infinity() - 1;
  std::uint32_t lower = std::min(format.Nearest(value), last);
  if (format.ValueOf(lower) > value) --lower;
  const double beyond = 2 * format.ValueOf(last) - format.ValueOf(last - 1);
  const double above = lower == last ? beyond : format.ValueOf(lower + 1);
  const double fraction = (value - format.ValueOf(lower)) / (above - format.ValueOf(lower));
  return {.lower = lower, .upper = lower + 1, .fraction = std::min(fraction, 1.0)};
}

TEST(NarrowStochasticTest, ANumberOfTheTypeStays) {
  Rng rng(41);
  for (const ShortFormat& format : kShortFormats) {
    for (std::uint32_t pattern = 0; pattern <= format.infinity(); ++pattern) {
      for (const std::uint32_t sign : {0U, format.sign()}) {
        ASSERT_EQ(NarrowedStochastically(format.type, Widened(format.type, pattern | sign),
                                         rng.Next(), rng.Next()),
                  pattern | sign)
            << Name(format.type);
      }
    }
  }
}

TEST(NarrowStochasticTest, AnyFp32BecomesOneOfItsTwoNeighbours) {
  Rng rng(42);
  for (const ShortFormat& format : kShortFormats) {
    for (int i = 0; i < 100'000; ++i) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next()) & 0x7fffffffU);
      if (!std::isfinite(value)) continue;
      const Between between = NeighboursOf(format, static_cast<double>(value));
      const std::uint32_t sign = i % 2 == 0 ? 0 : format.sign();
      const std::uint32_t found =
          NarrowedStochastically(format.type, sign != 0 ? -value : value, rng.Next(), rng.Next());
      ASSERT_TRUE(found == (between.lower | sign) ? between.fraction < 1
                                                  : found == (between.upper | sign))
          << Name(format.type) << " of " << value << " is " << found;
    }
  }
}

// Expects that draws go up as often as the fraction says, within five standard deviations.
void ExpectFraction(const ShortFormat& format, float value) {
  constexpr int kDraws = 20'000;
  const Between between = NeighboursOf(format, static_cast<double>(value));
  int by_seed = 0, by_position = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    if (NarrowedStochastically(format.type, value, draw, 3) == between.upper) ++by_seed;
    if (NarrowedStochastically(format.type, value, 3, draw) == between.upper) ++by_position;
  }
  const double p = between.fraction;
  const double bound = 5 * std::sqrt(kDraws * p * (1 - p)) + 1e-6;
  EXPECT_NEAR(by_seed, kDraws * p, bound) << Name(format.type) << " of " << value;
  EXPECT_NEAR(by_position, kDraws * p, bound) << Name(format.type) << " of " << value;
}

TEST(NarrowStochasticTest, TheUpperNeighbourIsAsLikelyAsTheNumberIsNear) {
  for (const ShortFormat& format : kShortFormats) {
    const double largest = format.ValueOf(format.infinity() - 1);
    const double step = largest - format.ValueOf(format.infinity() - 2);
    const double smallest = format.ValueOf(1);
    for (const double fraction : {0.015625, 0.25, 0.5, 0.75, 0.984375}) {
      ExpectFraction(
          format, static_cast<float>(1 + fraction * (format.ValueOf(format.Nearest(1) + 1) - 1)));
      ExpectFraction(format, static_cast<float>(fraction * smallest));  // zero or the smallest
      ExpectFraction(format, static_cast<float>(largest + fraction * step));  // or infinity
    }
  }
}

TEST(NarrowStochasticTest, NeighboursOfSeedsAndPositionsAreUnrelated) {
  constexpr std::uint64_t kDraws = 20'000;
  const float half = 1 + std::ldexp(1.0F, -8);  // halfway between two numbers of bf16
  int same_seed = 0, same_position = 0, same_sum = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const auto narrowed = [&](std::uint64_t seed, std::uint64_t position) {
      return NarrowedStochastically(ElementType::kBf16, half, seed, position);
    };
    if (narrowed(draw, 7) == narrowed(draw + 1, 7)) ++same_seed;
    if (narrowed(7, draw) == narrowed(7, draw + 1)) ++same_position;
    if (narrowed(draw, 8) == narrowed(draw + 1, 7)) ++same_sum;
  }
  const double bound = 5 * std::sqrt(kDraws / 4.0);
  EXPECT_NEAR(same_seed, kDraws / 2.0, bound);
  EXPECT_NEAR(same_position, kDraws / 2.0, bound);
  EXPECT_NEAR(same_sum, kDraws / 2.0, bound);
}

TEST(NarrowStochasticTest, AResultDoesNotDependOnHowATileIsCut) {
  Rng rng(43);
  std::vector<float> values;
  for (int i = 0; i < 100; ++i) values.push_back(static_cast<float>(rng.Below(1U << 24U)) / 777);
  for (const ElementType type : {ElementType::kFp8E5m2, ElementType::kBf16}) {
    const std::size_t size = Size(type);
    std::vector<std::byte> whole(size * values.size()), parts(size * values.size());
    NarrowStochastic(type, values, 5, 1000, whole.data());
    for (std::size_t at = 0; at < values.size(); at += 7) {
      const std::size_t count = std::min<std::size_t>(7, values.size() - at);
      NarrowStochastic(type, std::span(values).subspan(at, count), 5, 1000 + at, &parts[at * size]);
    }
    EXPECT_EQ(whole, parts);
    NarrowStochastic(type, values, 6, 1000, parts.data());
    EXPECT_NE(whole, parts);
  }
}

TEST(NarrowStochasticTest, NansStayNansAndTheOtherTypesAreNarrowedAsEver) {
  for (const ShortFormat& format : kShortFormats) {
    const std::uint32_t quiet = format.infinity() | 1U << (format.mantissa_bits - 1);
    EXPECT_EQ(NarrowedStochastically(format.type, std::copysign(kNan, 1.0F), 1, 2), quiet);
    EXPECT_EQ(NarrowedStochastically(format.type, std::copysign(kNan, -1.0F), 1, 2),
              quiet | format.sign());
  }
  for (const float value : {2.5F, 3.5F, -0.75F, 1e20F}) {
    for (const ElementType type : {ElementType::kInt8, ElementType::kUint32, ElementType::kFp32}) {
      EXPECT_EQ(NarrowedStochastically(type, value, 1, 2), Narrowed(type, value));
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
