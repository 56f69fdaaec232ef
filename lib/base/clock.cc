#include "lib/base/clock.h"

#include <array>
#include <optional>

#include "lib/base/status.h"

namespace tahoma {
namespace {

using std::chrono::floor;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// Takes `digits` digits from the front of `text`.
std::optional<int> ConsumeNumber(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int number = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  text.remove_prefix(digits);
  return number;
}

void PutNumber(unsigned number, int digits, char* to) {
  for (; digits > 0; --digits, number /= 10) to[digits - 1] = static_cast<char>('0' + number % 10);
}

// Nanoseconds in 64 bits have years of four digits.
std::string FormatSeconds(WallTime time) {
  const auto days = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(floor<seconds>(time - days));
  // The text is built by hand, for speed: every write of the API formats several times.
  std::string text = "0000-00-00T00:00:00";
  PutNumber(static_cast<unsigned>(static_cast<int>(date.year())), 4, &text[0]);
  PutNumber(static_cast<unsigned>(date.month()), 2, &text[5]);
  PutNumber(static_cast<unsigned>(date.day()), 2, &text[8]);
  PutNumber(static_cast<unsigned>(clock.hours().count()), 2, &text[11]);
  PutNumber(static_cast<unsigned>(clock.minutes().count()), 2, &text[14]);
  PutNumber(static_cast<unsigned>(clock.seconds().count()), 2, &text[17]);
  return text;
}

}  // namespace

WallTime SystemClock::WallNow() const { return std::chrono::system_clock::now(); }
MonotonicTime SystemClock::MonotonicNow() const { return std::chrono::steady_clock::now(); }

WallTime ManualClock::WallNow() const { return start_ + nanoseconds(elapsed_ns_.load()); }
MonotonicTime ManualClock::MonotonicNow() const {
  return MonotonicTime(nanoseconds(elapsed_ns_.load()));
}

std::string FormatTime(WallTime time) { return FormatSeconds(time) + "Z"; }

std::string FormatMicroTime(WallTime time) {
  const auto fraction = time - floor<seconds>(time);
  return fmt::format("{}.{:06}Z", FormatSeconds(time), fraction.count() / 1000);
}

// Nanoseconds in 64 bits begin and end little outside of these; a year such as 9999 means "never".
constexpr auto kFirstDay = std::chrono::year(1678) / 1 / 1;
constexpr auto kLastDay = std::chrono::year(2261) / 12 / 31;

absl::StatusOr<WallTime> ParseTime(std::string_view text) {
  const auto bad = [&] {
    return InvalidArgument("'{}' is not an RFC 3339 time in UTC such as 2026-11-21T09:35:00Z",
                           text);
  };
  // "2026-11-21T09:35:00": the digits of each number and what follows it.
  constexpr std::array<std::pair<std::size_t, char>, 6> kForm = {
      {{4, '-'}, {2, '-'}, {2, 'T'}, {2, ':'}, {2, ':'}, {2, '\0'}}};
  std::array<int, kForm.size()> numbers{};
  std::string_view rest = text;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const auto [digits, after] = kForm[i];
    const std::optional<int> number = ConsumeNumber(rest, digits);
    if (!number) return bad();
    numbers[i] = *number;
    if (after == '\0') break;
    if (!rest.starts_with(after)) return bad();
    rest.remove_prefix(1);
  }
  const auto [year, month, day, hour, minute, second] = numbers;
  std::int64_t fraction_ns = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    std::int64_t scale = 100'000'000;
    std::size_t digits = 0;
    for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits) {
      if (digits == 9) return bad();
      fraction_ns += (rest[digits] - '0') * scale;
      scale /= 10;
    }
    if (digits == 0) return bad();
    rest.remove_prefix(digits);
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (rest != "Z" || !date.ok() || hour > 23 || minute > 59 || second > 60) return bad();
  if (date < kFirstDay) return WallTime(std::chrono::sys_days(kFirstDay));
  if (date > kLastDay) return WallTime(std::chrono::sys_days(kLastDay));
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + seconds(second) + nanoseconds(fraction_ns);
}

}  // namespace tahoma
