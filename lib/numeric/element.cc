#include "lib/numeric/element.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/numeric/native_types.h"

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
    Row{ElementType::kFp32r, "fp32r", 4, 11},
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
  VisitNativeType(type, [&]<typename T>(std::type_identity<T>) { CombineAs<T>(op, into, from); });
}

void StoreInteger(ElementType type, std::int64_t value, std::byte* at) {
  VisitNativeType(type, [&]<typename T>(std::type_identity<T>) {
    T element;
    if constexpr (std::is_class_v<T>) {
      element = T::Narrow(static_cast<float>(value));
    } else {
      element = static_cast<T>(value);
    }
    std::memcpy(at, &element, sizeof(T));
  });
}

}  // namespace tahoma::sim
