// The floating types shorter than fp32 as IEEE 754 describes them, by their two widths alone: an
// oracle that shares no code with lib/numeric.

#pragma once

#include <cmath>
#include <cstdint>

#include "lib/numeric/element.h"

namespace tahoma::sim {

struct ShortFormat {
  ElementType type;
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint32_t infinity() const { return ((1U << exponent_bits) - 1U) << mantissa_bits; }
  std::uint32_t sign() const { return 1U << (exponent_bits + mantissa_bits); }
  // Returns the value of a pattern without sign, below infinity().
  double ValueOf(std::uint32_t pattern) const {
    const auto exponent = static_cast<int>(pattern >> mantissa_bits);
    const auto mantissa = static_cast<double>(pattern & ((1U << mantissa_bits) - 1U));
    const double domain = std::ldexp(1.0, -mantissa_bits);
    if (exponent == 0) return std::ldexp(mantissa * domain, 1 - bias());
    return std::ldexp(1 + mantissa * domain, exponent - bias());
  }
  // Returns the pattern nearest to a value that is not negative, of two the even one; beyond the
  // largest by half a step or more, infinity.
  std::uint32_t Nearest(double value) const {
    const double largest = ValueOf(infinity() - 1);
    const double step = largest - ValueOf(infinity() - 2);
    if (value >= largest + step / 2) return infinity();
    std::uint32_t below = 0;  // the greatest pattern whose value is not above: values ascend
    for (std::uint32_t bit = sign() / 2; bit != 0; bit /= 2) {
      const std::uint32_t pattern = below | bit;
      if (pattern < infinity() && ValueOf(pattern) <= value) below = pattern;
    }
    if (below + 1 == infinity()) return below;
    const double down = value - ValueOf(below);
    const double up = ValueOf(below + 1) - value;
    return down < up || (down == up && below % 2 == 0) ? below : below + 1;
  }
};

inline constexpr ShortFormat kShortFormats[] = {
    {ElementType::kFp8E3m4, 3, 4}, {ElementType::kFp8E4m3, 4, 3}, {ElementType::kFp8E5m2, 5, 2},
    {ElementType::kFp16, 5, 10},   {ElementType::kBf16, 8, 7},    {ElementType::kFp32r, 8, 10}};

// The low bits of a stored element that are no part of the pattern, and are 0.
inline int UnusedBits(ElementType type) { return type == ElementType::kFp32r ? 13 : 0; }

}  // namespace tahoma::sim
