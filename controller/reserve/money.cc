#include "controller/reserve/money.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kCent = kMillion / 100;
constexpr std::size_t kFractionDigitsMost = 6;
constexpr std::int64_t kWholeMost = 1'000'000'000;

bool AllDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t NumberOf(std::string_view digits) {
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

std::string Money::ToString() const {
  const std::int64_t cents = (std::abs(millionths) + kCent / 2) / kCent;
  return fmt::format("{}{}.{:02}", millionths < 0 && cents > 0 ? "-" : "", cents / 100,
                     cents % 100);
}

std::string Money::ToExactString() const {
  const std::int64_t amount = std::abs(millionths);
  std::string text =
      fmt::format("{}{}.{:06}", millionths < 0 ? "-" : "", amount / kMillion, amount % kMillion);
  const std::size_t point = text.find('.');
  while (text.size() > point + 3 && text.back() == '0') text.pop_back();
  return text;
}

absl::StatusOr<Money> ParseMoney(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point == std::string_view::npos ? "0" : text.substr(point + 1);
  if (!AllDigits(whole) || !AllDigits(part) || part.size() > kFractionDigitsMost ||
      whole.size() > 10 || NumberOf(whole) > kWholeMost) {
    return InvalidArgument(
        "\"{}\" is no amount; expected such as 35.7608: at most six digits after the point, up to "
        "1000000000",
        text);
  }
  std::int64_t millionths = NumberOf(part);
  for (std::size_t digits = part.size(); digits < kFractionDigitsMost; ++digits) millionths *= 10;
  return Money{NumberOf(whole) * kMillion + millionths};
}

Money Fee(Money rate, std::int64_t count, std::chrono::minutes minutes) {
  TAHOMA_CHECK(rate.millionths >= 0 && rate.millionths <= 1'000 * kMillion && count >= 0 &&
               count <= kMillion && minutes.count() >= 0 && minutes.count() <= 200 * 24 * 60);
  // At most 1e9 * 288,000 in one product; the count follows the division, whose rest it takes too.
  const std::int64_t product = rate.millionths * minutes.count();
  return {product / 60 * count + (product % 60 * count + 30) / 60};
}

}  // namespace tahoma::controller
