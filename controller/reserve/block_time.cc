#include "controller/reserve/block_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using std::chrono::nanoseconds;

// Differences of moments in between fit into 64 bits of nanoseconds.
constexpr WallTime kFirst = WallTime{};
constexpr WallTime kLast = std::chrono::sys_days(std::chrono::year(2200) / 1 / 1);

// Reads a number after `word`, and moves `text` behind it.
bool TakeNumber(std::string_view word, std::string_view& text, std::int64_t& number) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

BlockTime::BlockTime(WallTime origin, std::int64_t scale) : origin_(origin), scale_(scale) {
  TAHOMA_CHECK(scale >= 2 && scale <= kScaleMost);
  TAHOMA_CHECK(origin >= kFirst && origin < kLast);
}

WallTime BlockTime::ToBlock(WallTime wall) const {
  if (!test()) return wall;
  const nanoseconds passed = std::clamp(wall, kFirst, kLast) - origin_;
  if (passed > (kLast - origin_) / scale_) return kLast;
  if (passed < (kFirst - origin_) / scale_) return kFirst;
  return origin_ + passed * scale_;
}

WallTime BlockTime::ToWall(WallTime block) const {
  if (!test()) return block;
  const nanoseconds passed = std::clamp(block, kFirst, kLast) - origin_;
  const nanoseconds real = passed / scale_;
  // Division rounds towards the origin; a later moment must not be due before it has come.
  return origin_ + real + nanoseconds(passed > real * scale_ ? 1 : 0);
}

std::string EncodeBlockTime(const BlockTime& time) {
  TAHOMA_CHECK(time.test());
  return fmt::format("scale {} origin {}", time.scale(), time.origin().time_since_epoch().count());
}

absl::StatusOr<BlockTime> DecodeBlockTime(std::string_view text) {
  std::string_view rest = text;
  std::int64_t scale = 0;
  std::int64_t origin = 0;
  if (!TakeNumber("scale ", rest, scale) || !TakeNumber(" origin ", rest, origin) ||
      !rest.empty() || scale < 2 || scale > BlockTime::kScaleMost || origin < 0 ||
      WallTime(nanoseconds(origin)) >= kLast) {
    return DataLoss("\"{}\" is no test clock: must be \"scale N origin NANOSECONDS\"", text);
  }
  return BlockTime(WallTime(nanoseconds(origin)), scale);
}

}  // namespace tahoma::controller
