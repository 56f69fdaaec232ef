#include "lib/numeric/element.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/lib/numeric/short_formats.h"

namespace tahoma::sim {
namespace {

template <typename T>
T CombineOne(ReduceOp op, ElementType type, T a, T b) {
  std::array<std::byte, sizeof(T)> into, from;
  std::memcpy(into.data(), &a, sizeof(T));
  std::memcpy(from.data(), &b, sizeof(T));
  Combine(op, type, into, from);
  std::memcpy(&a, into.data(), sizeof(T));
  return a;
}

std::uint16_t Bf16(float value) {  // exact for the values used here
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
}

TEST(ElementTest, EveryTypeReadsBackItsNameAndHasItsSize) {
  const std::array<std::pair<std::string_view, std::size_t>, 13> types = {{{"uint8", 1},
                                                                           {"int8", 1},
                                                                           {"fp8_e3m4", 1},
                                                                           {"fp8_e4m3", 1},
                                                                           {"fp8_e5m2", 1},
                                                                           {"uint16", 2},
                                                                           {"int16", 2},
                                                                           {"fp16", 2},
                                                                           {"bf16", 2},
                                                                           {"uint32", 4},
                                                                           {"int32", 4},
                                                                           {"fp32", 4},
                                                                           {"fp32r", 4}}};
  for (const auto& [name, size] : types) {
    const auto type = ParseElementType(name);
    ASSERT_TRUE(type.ok()) << name;
    EXPECT_EQ(Name(*type), name);
    EXPECT_EQ(Size(*type), size);
  }
}

TEST(ElementTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_EQ(Message(ParseElementType("fp64").status()),
            "unknown data type \"fp64\"; expected one of uint8, int8, fp8_e3m4, fp8_e4m3, "
            "fp8_e5m2, uint16, int16, fp16, bf16, uint32, int32, fp32, fp32r");
  EXPECT_EQ(Message(ParseReduceOp("avg").status()),
            "unknown reduce operation \"avg\"; expected sum, max or min");
  EXPECT_EQ(Name(*ParseReduceOp("min")), "min");
}

TEST(ElementTest, IntegersWrapAround) {
  EXPECT_EQ(CombineOne<std::uint8_t>(ReduceOp::kSum, ElementType::kUint8, 200, 100), 44);
  EXPECT_EQ(CombineOne<std::int8_t>(ReduceOp::kSum, ElementType::kInt8, 127, 1), -128);
  EXPECT_EQ(CombineOne<std::int32_t>(ReduceOp::kSum, ElementType::kInt32,
                                     std::numeric_limits<std::int32_t>::max(), 1),
            std::numeric_limits<std::int32_t>::min());
}

TEST(ElementTest, MaxAndMinAreSignedWhereTheTypeIs) {
  EXPECT_EQ(CombineOne<std::int16_t>(ReduceOp::kMax, ElementType::kInt16, -1, 1), 1);
  EXPECT_EQ(CombineOne<std::uint16_t>(ReduceOp::kMax, ElementType::kUint16, 0xffff, 1), 0xffff);
  EXPECT_EQ(CombineOne<float>(ReduceOp::kMin, ElementType::kFp32, -1.5F, 2.0F), -1.5F);
  EXPECT_EQ(CombineOne<std::uint16_t>(ReduceOp::kMin, ElementType::kBf16, Bf16(-2), Bf16(1)),
            Bf16(-2));
}

TEST(ElementTest, Bf16RoundsToNearestEven) {
  const auto sum = [](float a, float b) {
    return CombineOne<std::uint16_t>(ReduceOp::kSum, ElementType::kBf16, Bf16(a), Bf16(b));
  };
  EXPECT_EQ(sum(1, 2), Bf16(3));
  EXPECT_EQ(sum(256, 1), Bf16(256));  // 257 lies between 256 and 258: to the even mantissa
  EXPECT_EQ(sum(258, 1), Bf16(260));  // 259 between 258 and 260
  EXPECT_EQ(sum(255, 1), Bf16(256));
}

TEST(ElementTest, ABf16InfinityStaysAndANanStaysQuiet) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(CombineOne<std::uint16_t>(ReduceOp::kSum, ElementType::kBf16, Bf16(infinity), Bf16(1)),
            Bf16(infinity));
  const std::uint16_t nan = CombineOne<std::uint16_t>(ReduceOp::kSum, ElementType::kBf16,
                                                      Bf16(infinity), Bf16(-infinity));
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(nan) << 16U)));
}

std::uint32_t CombinePatterns(ReduceOp op, const ShortFormat& format, std::uint32_t a,
                              std::uint32_t b) {
  if (Size(format.type) == 1) {
    return CombineOne(op, format.type, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b));
  }
  if (Size(format.type) == 4) {
    const int unused = UnusedBits(format.type);
    return std::rotr(CombineOne(op, format.type, a << unused, b << unused), unused);
  }
  return CombineOne(op, format.type, static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b));
}

TEST(ElementTest, EveryShortFloatIsReadAndWrittenAsItIs) {
  for (const ShortFormat& format : kShortFormats) {
    const std::uint32_t sign = format.sign();
    for (std::uint32_t pattern = 0; pattern <= format.infinity(); ++pattern) {
      EXPECT_EQ(CombinePatterns(ReduceOp::kMax, format, pattern, pattern), pattern);
      EXPECT_EQ(CombinePatterns(ReduceOp::kMin, format, pattern | sign, pattern), pattern | sign);
    }
    const std::uint32_t nan = format.infinity() | 1U;
    EXPECT_GT(CombinePatterns(ReduceOp::kSum, format, nan, 0), format.infinity());
    EXPECT_GT(CombinePatterns(ReduceOp::kSum, format, format.infinity(), format.infinity() | sign) &
                  ~sign,
              format.infinity());
  }
}

TEST(ElementTest, SumsOfShortFloatsAreTheNearestToTheTrueSum) {
  Rng rng(11);
  for (const ShortFormat& format : kShortFormats) {
    const bool every = Size(format.type) == 1;
    for (std::uint64_t i = 0; i < (every ? 128 * 128 : 400); ++i) {
      const std::uint64_t drawn = every ? i : rng.Next();
      const auto a =
          static_cast<std::uint32_t>(drawn % 128 * (every ? 1 : 251)) % format.infinity();
      const auto b =
          static_cast<std::uint32_t>(drawn / 128 % 128 * (every ? 1 : 247)) % format.infinity();
      EXPECT_EQ(CombinePatterns(ReduceOp::kSum, format, a, b),
                format.Nearest(format.ValueOf(a) + format.ValueOf(b)))
          << Name(format.type) << " " << a << " + " << b;
    }
  }
}

TEST(ElementTest, TheLargestShortFloatsAreThoseOfTheHardware) {
  const double largest[] = {
      15.5, 240, 57344, 65504, std::ldexp(255.0, 120), std::ldexp(2047.0, 117)};
  for (std::size_t i = 0; i < std::size(kShortFormats); ++i) {
    EXPECT_EQ(kShortFormats[i].ValueOf(kShortFormats[i].infinity() - 1), largest[i]);
  }
}

TEST(ElementTest, UnalignedBuffersOfManyElementsCombineOneByOne) {
  Rng rng(5);
  std::vector<std::byte> a(1 + 4 * 100), b(1 + 4 * 100);
  std::vector<std::int32_t> expected;
  for (std::size_t i = 0; i < 100; ++i) {
    const auto x = static_cast<std::int32_t>(rng.Below(1000));
    const auto y = static_cast<std::int32_t>(rng.Below(1000));
    StoreInteger(ElementType::kInt32, x, &a[1 + 4 * i]);
    StoreInteger(ElementType::kInt32, y, &b[1 + 4 * i]);
    expected.push_back(x + y);
  }
  Combine(ReduceOp::kSum, ElementType::kInt32, std::span(a).subspan(1), std::span(b).subspan(1));
  EXPECT_EQ(std::memcmp(&a[1], expected.data(), 400), 0);
}

}  // namespace
}  // namespace tahoma::sim
