#include "sim-node/collective/element.h"

#include <algorithm>
#include <array>
#include <bit>
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
};
constexpr std::array kTypes = {
    Row{ElementType::kUint8, "uint8", 1},   Row{ElementType::kInt8, "int8", 1},
    Row{ElementType::kUint16, "uint16", 2}, Row{ElementType::kInt16, "int16", 2},
    Row{ElementType::kBf16, "bf16", 2},     Row{ElementType::kUint32, "uint32", 4},
    Row{ElementType::kInt32, "int32", 4},   Row{ElementType::kFp32, "fp32", 4},
};
constexpr std::array kOps = {std::pair{ReduceOp::kSum, std::string_view("sum")},
                             std::pair{ReduceOp::kMax, std::string_view("max")},
                             std::pair{ReduceOp::kMin, std::string_view("min")}};

const Row& RowOf(ElementType type) { return kTypes.at(static_cast<std::size_t>(type)); }

// bf16 is the upper half of an fp32.
struct Bf16 {
  std::uint16_t bits = 0;
};

float Widen(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

Bf16 Narrow(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};  // quiet NaN
  bits += 0x7fffU + ((bits >> 16U) & 1U);
  return {static_cast<std::uint16_t>(bits >> 16U)};
}

template <typename T>
T Apply(ReduceOp op, T a, T b) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return Narrow(Apply(op, Widen(a), Widen(b)));
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
  std::string known;
  for (const Row& row : kTypes) {
    if (row.name == name) return row.type;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return InvalidArgument("unknown data type \"{}\"; expected one of {}", name, known);
}

std::string_view Name(ElementType type) { return RowOf(type).name; }
std::size_t Size(ElementType type) { return RowOf(type).size; }

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
    case ElementType::kUint16:
      return CombineAs<std::uint16_t>(op, into, from);
    case ElementType::kInt16:
      return CombineAs<std::int16_t>(op, into, from);
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
    case ElementType::kBf16:
      return StoreAs(Narrow(static_cast<float>(value)), at);
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
