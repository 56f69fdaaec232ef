// The C++ types of elements: integers, float, and the shorter floats as ShortFloat.
//
// Scope: bits and values of an element. element.h reduces, convert.h converts many.
//
// Thread safety: pure functions.

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "lib/numeric/element.h"

namespace tahoma::sim {

inline constexpr int kFp32MantissaBits = 23;
inline constexpr int kFp32Bias = 127;

// To nearest, ties to even.
struct ToNearestEven {
  std::uint32_t operator()(std::uint32_t significand, int lost) const {
    if (lost >= 32) return 0;
    const std::uint32_t half = (1U << (lost - 1)) - 1U;
    return (significand + half + ((significand >> lost) & 1U)) >> lost;
  }
};

// A floating type shorter than fp32, laid out as IEEE's are: sign, exponent, mantissa.
template <typename Bits, int kExponentBits, int kMantissaBits>
struct ShortFloat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint32_t kInfinity = ((1U << kExponentBits) - 1U) << kMantissaBits;
  static constexpr std::uint32_t kSign = 1U << (kExponentBits + kMantissaBits);
  // The smallest positive value: fp32 holds even bf16's, as a denormal.
  static constexpr float kSmallest = [] {
    float value = 1;
    for (int i = 0; i < kBias + kMantissaBits - 1; ++i) value /= 2;
    return value;
  }();

  Bits bits = 0;

  float Widen() const {
    const std::uint32_t sign = (bits & kSign) << (31 - kExponentBits - kMantissaBits);
    const std::uint32_t size = bits & (kSign - 1U);
    std::uint32_t wide = size << (kFp32MantissaBits - kMantissaBits);
    if (size >= kInfinity) {
      wide |= 255U << kFp32MantissaBits;
    } else if (size >> kMantissaBits != 0) {
      wide += static_cast<std::uint32_t>(kFp32Bias - kBias) << kFp32MantissaBits;
    } else {
      wide = std::bit_cast<std::uint32_t>(static_cast<float>(size) * kSmallest);
    }
    return std::bit_cast<float>(sign | wide);
  }

  static ShortFloat Narrow(float value) { return Narrow(value, ToNearestEven()); }
  // `rounding` takes a significand and a number of low bits, 1 or more, and returns the significand
  // without these bits.
  template <typename Rounding>
  static ShortFloat Narrow(float value, const Rounding& rounding) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (wide >> 31U) != 0 ? kSign : 0;
    if (value != value) {  // a quiet NaN
      return {static_cast<Bits>(sign | kInfinity | (1U << (kMantissaBits - 1)))};
    }
    const auto field = static_cast<int>((wide >> kFp32MantissaBits) & 255U);
    std::uint32_t significand = wide & ((1U << kFp32MantissaBits) - 1U);
    if (field != 0) significand |= 1U << kFp32MantissaBits;
    const int exponent = std::max(field, 1) - kFp32Bias;
    const int lost = kFp32MantissaBits - kMantissaBits + std::max(0, 1 - kBias - exponent);
    std::uint32_t size = rounding(significand, lost);
    // The hidden bit counts itself as one step of the exponent.
    size += static_cast<std::uint32_t>(std::max(exponent + kBias - 1, 0)) << kMantissaBits;
    return {static_cast<Bits>(sign | std::min(size, kInfinity))};
  }
};

using Fp8E3m4 = ShortFloat<std::uint8_t, 3, 4>;
using Fp8E4m3 = ShortFloat<std::uint8_t, 4, 3>;
using Fp8E5m2 = ShortFloat<std::uint8_t, 5, 2>;
using Fp16 = ShortFloat<std::uint16_t, 5, 10>;
using Bf16 = ShortFloat<std::uint16_t, 8, 7>;

// fp32 with 10 bits of mantissa, in fp32's layout: the other 13 are 0.
struct Fp32r {
  using Short = ShortFloat<std::uint32_t, 8, 10>;
  static constexpr int kUnusedBits = kFp32MantissaBits - 10;

  std::uint32_t bits = 0;

  // A stored element whose last bits are not 0 is rounded.
  float Widen() const {
    const auto stored = std::bit_cast<float>(bits);
    return bits << (32 - kUnusedBits) == 0 ? stored : std::bit_cast<float>(Narrow(stored).bits);
  }

  static Fp32r Narrow(float value) { return Narrow(value, ToNearestEven()); }
  template <typename Rounding>
  static Fp32r Narrow(float value, const Rounding& rounding) {
    return {Short::Narrow(value, rounding).bits << kUnusedBits};
  }
};

// Calls visit with a std::type_identity of the type's C++ type.
template <typename Visit>
void VisitNativeType(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::kUint8:
      return visit(std::type_identity<std::uint8_t>());
    case ElementType::kInt8:
      return visit(std::type_identity<std::int8_t>());
    case ElementType::kFp8E3m4:
      return visit(std::type_identity<Fp8E3m4>());
    case ElementType::kFp8E4m3:
      return visit(std::type_identity<Fp8E4m3>());
    case ElementType::kFp8E5m2:
      return visit(std::type_identity<Fp8E5m2>());
    case ElementType::kUint16:
      return visit(std::type_identity<std::uint16_t>());
    case ElementType::kInt16:
      return visit(std::type_identity<std::int16_t>());
    case ElementType::kFp16:
      return visit(std::type_identity<Fp16>());
    case ElementType::kBf16:
      return visit(std::type_identity<Bf16>());
    case ElementType::kUint32:
      return visit(std::type_identity<std::uint32_t>());
    case ElementType::kInt32:
      return visit(std::type_identity<std::int32_t>());
    case ElementType::kFp32:
      return visit(std::type_identity<float>());
    case ElementType::kFp32r:
      return visit(std::type_identity<Fp32r>());
  }
}

}  // namespace tahoma::sim
