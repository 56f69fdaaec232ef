#include "lib/base/clock.h"

#include <array>
#include <cstdio>

#include "lib/base/status.h"

namespace tahoma {
namespace {

using std::chrono::floor;
using std::chrono::nanoseconds;
using std::chrono::seconds;

std::string FormatSeconds(WallTime time) {
  const auto days = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(floor<seconds>(time - days));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
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
  const std::string copy(text);
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &used) != 6) {
    return bad();
  }
  std::string_view rest = text.substr(static_cast<std::size_t>(used));
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
