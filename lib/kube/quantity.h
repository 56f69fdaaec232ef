// Kubernetes' resource.Quantity: an exact decimal number with a suffix.
//
//   const Quantity memory = *Quantity::Parse("96Gi");
//   memory > *Quantity::Parse("100e9");          // true: compared by value
//   (memory + *Quantity::Parse("1Gi")).ToString();   // "97Gi"
//
// Values are exact to 10^-9 and rounded up (away from zero) below it; at most 2^63 - 1, larger
// ones are capped (source: apimachinery pkg/api/resource/quantity.go, which caps binary ones so and
// keeps larger decimal ones, whose Value() then overflows).

#pragma once

#include <absl/status/statusor.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma::kube {

class Quantity {
 public:
  // How it was written, and is printed: 1k, 1Ki or 1e3.
  enum class Format : std::uint8_t { kDecimalSi, kBinarySi, kDecimalExponent };

  constexpr Quantity() = default;
  static Quantity Of(std::int64_t value, Format format = Format::kDecimalSi);

  // Parses "3", "-1.5", "100m", "96Gi", "12e6". kInvalidArgument with the rule otherwise.
  static absl::StatusOr<Quantity> Parse(std::string_view text);

  Format format() const { return format_; }
  int Sign() const;
  // Returns whether it has no fraction and lies within 64 bits.
  bool IsInteger() const;
  // Returns the value rounded up to an integer (Kubernetes' Value()).
  std::int64_t Value() const;
  // Returns the value in thousandths, rounded up and capped at 64 bits (Kubernetes' MilliValue()).
  std::int64_t MilliValue() const;
  double AsDouble() const;

  // Returns the canonical text: no fraction, the largest suffix that loses nothing.
  std::string ToString() const;

  // Returns the sum in the left side's format, unless that is zero. Capped at the limits.
  friend Quantity operator+(const Quantity& a, const Quantity& b);
  friend Quantity operator-(const Quantity& a, const Quantity& b);
  // Compares by value: 1024 and 1Ki are equal.
  friend constexpr std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.nanos_ <=> b.nanos_;
  }
  friend constexpr bool operator==(const Quantity& a, const Quantity& b) {
    return a.nanos_ == b.nanos_;
  }

 private:
  // 128 bits hold every value below the cap in units of 10^-9 exactly. A GNU extension that both
  // our compilers have.
  __extension__ using Int128 = __int128;
  constexpr Quantity(Int128 nanos, Format format) : nanos_(nanos), format_(format) {}

  std::string BinaryText() const;
  std::string DecimalText() const;

  Int128 nanos_ = 0;
  Format format_ = Format::kDecimalSi;
};

}  // namespace tahoma::kube
