// The elements that collectives move, and how two of them are reduced to one.
//
//   ElementType type = *ParseElementType("bf16");
//   Combine(ReduceOp::kSum, type, into, from);      // into[i] = into[i] + from[i]
//
// Integers wrap around as two's complement. fp32 is IEEE single precision; the shorter floating
// types are widened to fp32, combined and rounded to nearest even. Those of 8 bits have infinities
// and NaNs as IEEE's have: e4m3 ends at 240, not at the 448 of OCP's e4m3fn
// (docs/reference/trainium2.md#data-types). fp32r, also called tf32, is fp32 whose last 13 bits are
// 0; an element with other bits there is rounded when an instruction reads the number. Max and min
// are std::max and std::min with `into` first, so a NaN already in `into` stays.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tahoma::sim {

enum class ElementType : std::uint8_t {
  kUint8,
  kInt8,
  kFp8E3m4,
  kFp8E4m3,
  kFp8E5m2,
  kUint16,
  kInt16,
  kFp16,
  kBf16,
  kUint32,
  kInt32,
  kFp32,
  kFp32r,
};

enum class ReduceOp : std::uint8_t { kSum, kMax, kMin };

// Names as nccom-test spells them; the 8-bit ones are fp8_e3m4, fp8_e4m3 and fp8_e5m2.
// kInvalidArgument lists the known ones.
absl::StatusOr<ElementType> ParseElementType(std::string_view name);
std::string_view Name(ElementType type);
std::size_t Size(ElementType type);
// Significant bits of a floating type, the hidden one included: integers up to 2^bits are exact. 0
// for the integer types.
int SignificantBits(ElementType type);

// "sum", "max", "min".
absl::StatusOr<ReduceOp> ParseReduceOp(std::string_view name);
std::string_view Name(ReduceOp op);

// Both spans must have the same size, a multiple of the element's; they need no alignment.
void Combine(ReduceOp op, ElementType type, std::span<std::byte> into,
             std::span<const std::byte> from);

// Writes the element that represents the integer; it must be exact in the type.
void StoreInteger(ElementType type, std::int64_t value, std::byte* at);

}  // namespace tahoma::sim
