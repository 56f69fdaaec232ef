#include "lib/numeric/element.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

struct Row {
  ElementType type;
  std::string_view name;
  std::size_t size;
  int significant_bits;
};
constexpr std::array kTypes = {
    Row{ElementType::kUint8, "uint8", 1, 0},      Row{ElementType::kInt8, "int8", 1, 0},
    Row{ElementType::kFp8E3m4, "fp8_e3m4", 1, 5}, Row{ElementType::kFp8E4m3, "fp8_e4m3", 1, 4},
    Row{ElementType::kFp8E5m2, "fp8_e5m2", 1, 3}, Row{ElementType::kUint16, "uint16", 2, 0},
    Row{ElementType::kInt16, "int16", 2, 0},      Row{ElementType::kFp16, "fp16", 2, 11},
    Row{ElementType::kBf16, "bf16", 2, 8},        Row{ElementType::kUint32, "uint32", 4, 0},
    Row{ElementType::kInt32, "int32", 4, 0},      Row{ElementType::kFp32, "fp32", 4, 24},
};
constexpr std::array kOps = {std::pair{ReduceOp::kSum, std::string_view("sum")},
                             std::pair{ReduceOp::kMax, std::string_view("max")},
                             std::pair{ReduceOp::kMin, std::string_view("min")}};

// What NCCL and PyTorch call types.
constexpr std::array kOtherNames = {
    std::pair{std::string_view("float"), std::string_view("fp32")},
    std::pair{std::string_view("float32"), std::string_view("fp32")},
    std::pair{std::string_view("half"), std::string_view("fp16")},
    std::pair{std::string_view("float16"), std::string_view("fp16")},
    std::pair{std::string_view("bfloat16"), std::string_view("bf16")},
    std::pair{std::string_view("int"), std::string_view("int32")}};

const Row& RowOf(ElementType type) { return kTypes.at(static_cast<std::size_t>(type)); }

constexpr int kFp32MantissaBits = 23;
constexpr int kFp32Bias = 127;

// A floating type shorter than fp32, laid out as IEEE's are: sign, exponent, mantissa.
template <typename Bits, int kExponentBits, int kMantissaBits>
struct ShortFloat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint32_t kInfinity = ((1U << kExponentBits) - 1U) << kMantissaBits;
  static constexpr std::uint32_t kSign = 1U << (kExponentBits + kMantissaBits);

  Bits bits = 0;

  float Widen() const {
    const bool negative = (bits & kSign) != 0;
    const std::uint32_t size = bits & (kSign - 1U);
    const auto exponent = static_cast<int>(size >> kMantissaBits);
    float value = 0;
    if (size >= kInfinity) {
      value = std::bit_cast<float>((255U << kFp32MantissaBits) |
                                   ((size - kInfinity) << (kFp32MantissaBits - kMantissaBits)));
    } else if (exponent != 0) {
      value = std::bit_cast<float>(
          (size << (kFp32MantissaBits - kMantissaBits)) +
          (static_cast<std::uint32_t>(kFp32Bias - kBias) << kFp32MantissaBits));
    } else {
      value = std::ldexp(static_cast<float>(size), 1 - kBias - kMantissaBits);
    }
    return negative ? -value : value;
  }

  static ShortFloat Narrow(float value) {
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
    std::uint32_t size = 0;
    if (lost < 32) {
      const std::uint32_t half = (1U << (lost - 1)) - 1U;
      size = (significand + half + ((significand >> lost) & 1U)) >> lost;
      // The hidden bit counts itself as one step of the exponent.
      size += static_cast<std::uint32_t>(std::max(exponent + kBias - 1, 0)) << kMantissaBits;
    }
    return {static_cast<Bits>(sign | std::min(size, kInfinity))};
  }
};

using Fp8E3m4 = ShortFloat<std::uint8_t, 3, 4>;
using Fp8E4m3 = ShortFloat<std::uint8_t, 4, 3>;
using Fp8E5m2 = ShortFloat<std::uint8_t, 5, 2>;
using Fp16 = ShortFloat<std::uint16_t, 5, 10>;
using Bf16 = ShortFloat<std::uint16_t, 8, 7>;

template <typename T>
T Apply(ReduceOp op, T a, T b) {
  if constexpr (std::is_class_v<T>) {
    return T::Narrow(Apply(op, a.Widen(), b.Widen()));
  } else {
    if (op == ReduceOp::kMax) return std::max(a, b);
    if (op == ReduceOp::kMin) return std::min(a, b);
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(
          static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
    } else {
      return a + b;
    }
  }
}

template <typename T>
void CombineAs(ReduceOp op, std::span<std::byte> into, std::span<const std::byte> from) {
  for (std::size_t at = 0; at < into.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, into.data() + at, sizeof(T));
    std::memcpy(&b, from.data() + at, sizeof(T));
    a = Apply(op, a, b);
    std::memcpy(into.data() + at, &a, sizeof(T));
  }
}

template <typename T>
void StoreAs(T value, std::byte* at) {
  std::memcpy(at, &value, sizeof(T));
}

}  // namespace

absl::StatusOr<ElementType> ParseElementType(std::string_view name) {
  for (const auto& [other, ours] : kOtherNames) {
    if (name == other) {
      return InvalidArgument("unknown data type \"{}\"; did you mean {}?", name, ours);
    }
  }
  std::string known;
  for (const Row& row : kTypes) {
    if (row.name == name) return row.type;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return InvalidArgument("unknown data type \"{}\"; expected one of {}", name, known);
}

std::string_view Name(ElementType type) { return RowOf(type).name; }
std::size_t Size(ElementType type) { return RowOf(type).size; }
int SignificantBits(ElementType type) { return RowOf(type).significant_bits; }

absl::StatusOr<ReduceOp> ParseReduceOp(std::string_view name) {
  for (const auto& [op, spelled] : kOps) {
    if (spelled == name) return op;
  }
  return InvalidArgument("unknown reduce operation \"{}\"; expected sum, max or min", name);
}

std::string_view Name(ReduceOp op) { return kOps.at(static_cast<std::size_t>(op)).second; }

void Combine(ReduceOp op, ElementType type, std::span<std::byte> into,
             std::span<const std::byte> from) {
  TAHOMA_CHECK(into.size() == from.size() && into.size() % Size(type) == 0);
  switch (type) {
    case ElementType::kUint8:
      return CombineAs<std::uint8_t>(op, into, from);
    case ElementType::kInt8:
      return CombineAs<std::int8_t>(op, into, from);
    case ElementType::kFp8E3m4:
      return CombineAs<Fp8E3m4>(op, into, from);
    case ElementType::kFp8E4m3:
      return CombineAs<Fp8E4m3>(op, into, from);
    case ElementType::kFp8E5m2:
      return CombineAs<Fp8E5m2>(op, into, from);
    case ElementType::kUint16:
      return CombineAs<std::uint16_t>(op, into, from);
    case ElementType::kInt16:
      return CombineAs<std::int16_t>(op, into, from);
    case ElementType::kFp16:
      return CombineAs<Fp16>(op, into, from);
    case ElementType::kBf16:
      return CombineAs<Bf16>(op, into, from);
    case ElementType::kUint32:
      return CombineAs<std::uint32_t>(op, into, from);
    case ElementType::kInt32:
      return CombineAs<std::int32_t>(op, into, from);
    case ElementType::kFp32:
      return CombineAs<float>(op, into, from);
  }
}

void StoreInteger(ElementType type, std::int64_t value, std::byte* at) {
  switch (type) {
    case ElementType::kFp8E3m4:
      return StoreAs(Fp8E3m4::Narrow(static_cast<float>(value)), at);
    case ElementType::kFp8E4m3:
      return StoreAs(Fp8E4m3::Narrow(static_cast<float>(value)), at);
    case ElementType::kFp8E5m2:
      return StoreAs(Fp8E5m2::Narrow(static_cast<float>(value)), at);
    case ElementType::kFp16:
      return StoreAs(Fp16::Narrow(static_cast<float>(value)), at);
    case ElementType::kBf16:
      return StoreAs(Bf16::Narrow(static_cast<float>(value)), at);
    case ElementType::kFp32:
      return StoreAs(static_cast<float>(value), at);
    default:
      break;
  }
  switch (Size(type)) {
    case 1:
      return StoreAs(static_cast<std::uint8_t>(value), at);
    case 2:
      return StoreAs(static_cast<std::uint16_t>(value), at);
    default:
      return StoreAs(static_cast<std::uint32_t>(value), at);
  }
}

}  // namespace tahoma::sim
