#include "controller/reserve/calendar.h"

#include <algorithm>
#include <array>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

constexpr std::chrono::minutes kBoundary = std::chrono::hours(11) + std::chrono::minutes(30);
constexpr int kDaysOneByOne = 14;
constexpr int kWeek = 7;
constexpr std::size_t kDurations =
    kDaysOneByOne + static_cast<std::size_t>(kDaysMost - kDaysOneByOne) / kWeek;

constexpr std::array<int, kDurations> MakeLegalDays() {
  std::array<int, kDurations> days{};
  for (std::size_t i = 0; i < kDurations; ++i) {
    const int number = static_cast<int>(i) + 1;
    days[i] = number <= kDaysOneByOne ? number : kDaysOneByOne + (number - kDaysOneByOne) * kWeek;
  }
  return days;
}
constexpr std::array<int, kDurations> kLegalDays = MakeLegalDays();
static_assert(kLegalDays.size() == 38 && kLegalDays.back() == kDaysMost);

}  // namespace

Slot SlotOf(WallTime time) {
  const auto since = time.time_since_epoch() - kBoundary;
  return std::chrono::floor<std::chrono::days>(since).count();
}

WallTime StartOf(Slot slot) { return WallTime(std::chrono::days(slot) + kBoundary); }

bool IsBoundary(WallTime time) { return StartOf(SlotOf(time)) == time; }

SlotRange SlotsOf(WallTime start, WallTime end) {
  TAHOMA_CHECK(IsBoundary(end) && start < end);
  return {.first = SlotOf(start), .last = SlotOf(end)};
}

std::span<const int> LegalDays() { return kLegalDays; }

bool IsLegalDuration(std::int64_t hours) {
  return hours % 24 == 0 && std::binary_search(kLegalDays.begin(), kLegalDays.end(), hours / 24);
}

std::string LegalHoursText() { return "24 to 336 in steps of 24, or 504 to 4368 in steps of 168"; }

}  // namespace tahoma::controller
