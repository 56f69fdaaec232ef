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
  std::array<std::byte, sizeof pattern> bytes;
  std::memcpy(bytes.data(), &pattern, sizeof pattern);  // little endian, as elements are
  float value = 0;
  Widen(type, bytes.data(), {&value, 1});
  return value;
}

// The pattern of the element.
std::uint32_t Narrowed(ElementType type, float value) {
  std::uint32_t pattern = 0;
  std::array<std::byte, sizeof pattern> bytes = {};
  Narrow(type, {&value, 1}, bytes.data());
  std::memcpy(&pattern, bytes.data(), sizeof pattern);
  return pattern;
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

}  // namespace
}  // namespace tahoma::sim
