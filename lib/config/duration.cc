#include "lib/config/duration.h"

#include <array>
#include <cstdint>

#include "lib/base/ascii.h"
#include "lib/base/status.h"

namespace tahoma::config {
namespace {

__extension__ typedef __int128 Int128;  // wide enough for any sum of units

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
// "ms" and "us" stand before "m" and "s", because the first match is taken.
constexpr std::array<Unit, 6> kUnits{{{"ns", 1},
                                      {"us", 1'000},
                                      {"ms", 1'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"s", 1'000'000'000}}};
constexpr std::int64_t kMaxNanoseconds = 100LL * 366 * 24 * 3'600 * 1'000'000'000;
constexpr std::size_t kDigitsMost = 18;  // the power of ten still fits

// Takes digits off `text`; false when there are none or the number exceeds the bound.
bool ConsumeDigits(std::string_view& text, std::int64_t& value, std::int64_t& scale) {
  std::size_t n = 0;
  for (; n < text.size() && IsDigit(text[n]); ++n) {
    if (value > kMaxNanoseconds / 10 || n == kDigitsMost) return false;
    value = value * 10 + (text[n] - '0');
    scale *= 10;
  }
  text.remove_prefix(n);
  return n > 0;
}

}  // namespace

absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  const absl::Status bad = InvalidArgument(
      "\"{}\" is not a duration; expected for example 500ms, 30s, 1m30s or 2h", text);
  if (text.empty()) return bad;
  Int128 total = 0;
  while (!text.empty()) {
    std::int64_t whole = 0, fraction = 0, scale = 1, unused = 1;
    if (!ConsumeDigits(text, whole, unused)) return bad;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      if (!ConsumeDigits(text, fraction, scale)) return bad;
    }
    const Unit* found = nullptr;
    for (const Unit& unit : kUnits) {
      if (found == nullptr && text.starts_with(unit.name)) found = &unit;
    }
    if (found == nullptr) return bad;
    text.remove_prefix(found->name.size());
    total += static_cast<Int128>(whole) * found->nanoseconds +
             static_cast<Int128>(fraction) * found->nanoseconds / scale;
    if (total > kMaxNanoseconds) return bad;
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(total));
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  std::int64_t rest = duration.count();
  if (rest == 0) return "0s";
  std::string text;
  for (const std::string_view name : {"h", "m"}) {
    const std::int64_t unit = name == "h" ? 3'600'000'000'000 : 60'000'000'000;
    if (rest >= unit) text += fmt::format("{}{}", rest / unit, name);
    rest %= unit;
  }
  if (rest == 0) return text;
  for (const auto& [name, unit] :
       {Unit{"s", 1'000'000'000}, Unit{"ms", 1'000'000}, Unit{"us", 1'000}, Unit{"ns", 1}}) {
    if (rest < unit) continue;
    std::string fraction = fmt::format("{}", rest % unit + unit).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    if (unit == 1 || fraction.empty()) return fmt::format("{}{}{}", text, rest / unit, name);
    return fmt::format("{}{}.{}{}", text, rest / unit, fraction, name);
  }
  return text;
}

}  // namespace tahoma::config
