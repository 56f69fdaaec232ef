#include "lib/kube/quantity.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::kube {
namespace {

__extension__ using Int128 = __int128;

constexpr std::size_t kTextBytesMax = 64;  // far beyond any sensible number
constexpr Int128 kNanosPerUnit = 1'000'000'000;
constexpr Int128 kNanosMax = Int128{std::numeric_limits<std::int64_t>::max()} * kNanosPerUnit;

struct Suffix {
  std::string_view text;
  int exponent;  // of 10, or of 2 for binary suffixes
};
constexpr std::array kDecimalSuffixes = {
    Suffix{"n", -9}, Suffix{"u", -6}, Suffix{"m", -3}, Suffix{"", 0},   Suffix{"k", 3},
    Suffix{"M", 6},  Suffix{"G", 9},  Suffix{"T", 12}, Suffix{"P", 15}, Suffix{"E", 18}};
constexpr std::array kBinarySuffixes = {Suffix{"Ki", 10}, Suffix{"Mi", 20}, Suffix{"Gi", 30},
                                        Suffix{"Ti", 40}, Suffix{"Pi", 50}, Suffix{"Ei", 60}};

Int128 Capped(Int128 nanos) {
  if (nanos > kNanosMax) return kNanosMax;
  if (nanos < -kNanosMax) return -kNanosMax;
  return nanos;
}

constexpr Int128 PowerOfTen(int exponent) {
  Int128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// Rounds away from zero.
Int128 DivideRoundingUp(Int128 value, Int128 divisor) {
  const Int128 quotient = value / divisor;
  if (value % divisor == 0) return quotient;
  return value > 0 ? quotient + 1 : quotient - 1;
}

std::string ToText(Int128 value) {
  if (value == 0) return "0";
  std::string digits;
  const bool negative = value < 0;
  for (Int128 rest = negative ? -value : value; rest > 0; rest /= 10) {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  return negative ? "-" + digits : digits;
}

// A magnitude: digits without a point, times 10^-fraction.
struct Decimal {
  Int128 digits = 0;
  int fraction = 0;
  bool inexact = false;  // digits beyond 128 bits were dropped, and not all were zero
};

// Reads digits with at most one point; nullopt without a digit.
std::optional<Decimal> ReadDecimal(std::string_view& text) {
  constexpr Int128 kDigitsMax = PowerOfTen(27);
  Decimal out;
  bool point = false;
  bool any = false;
  std::size_t used = 0;
  for (; used < text.size(); ++used) {
    const char c = text[used];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      if (out.digits >= kDigitsMax) {
        if (!point) return Decimal{.digits = kNanosMax, .fraction = 0, .inexact = true};
        out.inexact = out.inexact || c != '0';
        continue;
      }
      out.digits = out.digits * 10 + (c - '0');
      out.fraction += point ? 1 : 0;
    } else {
      break;
    }
  }
  text.remove_prefix(used);
  if (!any) return std::nullopt;
  return out;
}

// Returns digits * 10^(exponent - fraction) in nanos, rounded up and capped.
Int128 ScaleDecimal(const Decimal& number, int exponent) {
  const int shift = exponent - number.fraction + 9;
  Int128 nanos = number.digits;
  for (int i = 0; i < shift; ++i) {
    if (nanos > kNanosMax) return kNanosMax;
    nanos *= 10;
  }
  if (shift < 0) {
    if (-shift > 30) return nanos == 0 && !number.inexact ? 0 : 1;
    nanos = DivideRoundingUp(nanos, PowerOfTen(-shift));
  }
  return Capped(nanos + (number.inexact && nanos < kNanosMax ? 1 : 0));
}

Int128 ScaleBinary(const Decimal& number, int exponent) {
  Int128 nanos = ScaleDecimal(number, 0);
  for (int i = 0; i < exponent; ++i) {
    if (nanos > kNanosMax) return kNanosMax;
    nanos *= 2;
  }
  // A fraction finer than a nano before scaling is computed again, exactly, if it fits.
  if (number.fraction > 9 && number.digits < (Int128{1} << 60)) {
    Int128 scaled = number.digits * (Int128{1} << exponent);
    return Capped(DivideRoundingUp(scaled, PowerOfTen(number.fraction - 9)));
  }
  return Capped(nanos);
}

}  // namespace

Quantity Quantity::Of(std::int64_t value, Format format) {
  return Quantity(Capped(Int128{value} * kNanosPerUnit), format);
}

absl::StatusOr<Quantity> Quantity::Parse(std::string_view text) {
  const std::string_view whole = text;
  const auto bad = [&] {
    return InvalidArgument(
        "'{}' is not a quantity: a number with an optional suffix such as 100m, 1.5, 2k, 96Gi or "
        "3e6",
        CutUtf8(whole, kTextBytesMax));
  };
  if (text.empty() || text.size() > kTextBytesMax) return bad();
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  const std::optional<Decimal> number = ReadDecimal(text);
  if (!number) return bad();
  const auto made = [&](Int128 nanos, Format format) {
    return Quantity(negative ? -nanos : nanos, format);
  };
  for (const Suffix& suffix : kDecimalSuffixes) {
    if (text == suffix.text)
      return made(ScaleDecimal(*number, suffix.exponent), Format::kDecimalSi);
  }
  for (const Suffix& suffix : kBinarySuffixes) {
    if (text == suffix.text) return made(ScaleBinary(*number, suffix.exponent), Format::kBinarySi);
  }
  if (text.front() != 'e' && text.front() != 'E') return bad();
  text.remove_prefix(1);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return bad();
  }
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc() || end != text.data() + text.size() || std::abs(exponent) > 1000) {
    return bad();
  }
  return made(ScaleDecimal(*number, exponent), Format::kDecimalExponent);
}

int Quantity::Sign() const { return nanos_ > 0 ? 1 : nanos_ < 0 ? -1 : 0; }

bool Quantity::IsInteger() const { return nanos_ % kNanosPerUnit == 0; }

std::int64_t Quantity::Value() const {
  return static_cast<std::int64_t>(DivideRoundingUp(nanos_, kNanosPerUnit));
}

std::int64_t Quantity::MilliValue() const {
  const Int128 millis = DivideRoundingUp(nanos_, kNanosPerUnit / 1000);
  constexpr Int128 kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(millis > kMax ? kMax : millis < -kMax ? -kMax : millis);
}

double Quantity::AsDouble() const {
  return static_cast<double>(nanos_) / static_cast<double>(kNanosPerUnit);
}

std::string Quantity::ToString() const {
  // Small binary numbers, and binary numbers with a fraction, are printed as decimal numbers
  // without a loss (quantity.go, CanonicalizeBytes).
  const Int128 limit = 1024 * kNanosPerUnit;
  const bool small = nanos_ > -limit && nanos_ < limit;
  return format_ == Format::kBinarySi && !small && IsInteger() ? BinaryText() : DecimalText();
}

std::string Quantity::BinaryText() const {
  Int128 value = nanos_ / kNanosPerUnit;
  std::size_t steps = 0;
  while (value % 1024 == 0 && steps < kBinarySuffixes.size()) {
    value /= 1024;
    ++steps;
  }
  return ToText(value) + std::string(steps == 0 ? "" : kBinarySuffixes[steps - 1].text);
}

std::string Quantity::DecimalText() const {
  if (nanos_ == 0) return "0";
  Int128 value = nanos_;
  std::size_t index = 0;
  while (value % 1000 == 0 && index + 1 < kDecimalSuffixes.size()) {
    value /= 1000;
    ++index;
  }
  const Suffix& suffix = kDecimalSuffixes[index];
  if (format_ != Format::kDecimalExponent) return ToText(value) + std::string(suffix.text);
  return suffix.exponent == 0 ? ToText(value)
                              : fmt::format("{}e{}", ToText(value), suffix.exponent);
}

Quantity operator+(const Quantity& a, const Quantity& b) {
  return Quantity(Capped(a.nanos_ + b.nanos_), a.nanos_ == 0 ? b.format_ : a.format_);
}

Quantity operator-(const Quantity& a, const Quantity& b) {
  return Quantity(Capped(a.nanos_ - b.nanos_), a.nanos_ == 0 ? b.format_ : a.format_);
}

}  // namespace tahoma::kube
