#include "controller/core/facts/spec_fields.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <string>

#include "controller/model/gang_rules.h"

namespace tahoma::controller {
namespace {

// The bounds of the definitions in charts/tahoma/crds.
constexpr std::int64_t kChipsMost = 100'000'000;
constexpr std::size_t kTypesMost = 16;

bool IsInstanceType(std::string_view text) {
  static const RE2 kType("[a-z0-9-]+[.][a-z0-9-]+");
  return RE2::FullMatch(text, kType);
}

}  // namespace

bool IsQueueName(std::string_view text) {
  static const RE2 kName("[a-z0-9]([-a-z0-9]*[a-z0-9])?");
  return text.size() <= kQueueNameMost && RE2::FullMatch(text, kName);
}

std::int64_t IntWithin(kube::Field field, std::int64_t least, std::int64_t most) {
  const std::int64_t number = field.Int(least);
  if (number < least || number > most) {
    field.Fail(fmt::format("is {}, must be {} to {}", number, least, most));
  }
  return std::clamp(number, least, most);
}

ChipCounts ReadChipCounts(kube::Field field) {
  ChipCounts chips;
  if (field.size() > kTypesMost) {
    field.Fail(
        fmt::format("has {} instance types, must have at most {}", field.size(), kTypesMost));
    return chips;
  }
  field.Entries([&](const std::string& type, kube::Field count) {
    if (!IsInstanceType(type)) field.Fail("must name instance types, such as trn2.48xlarge");
    if (!count.has_value()) count.Fail("must be a number of chips");
    chips[type] = IntWithin(count, 0, kChipsMost);
  });
  return chips;
}

std::optional<std::chrono::seconds> ReadTimeSpan(kube::Field field) {
  static const RE2 kSpan("[0-9]{1,6}h|[0-9]{1,8}[ms]");
  if (!field.has_value()) return std::nullopt;
  const std::string_view text = field.Text();
  const auto time = RE2::FullMatch(text, kSpan) ? ParseRuntime(text) : std::nullopt;
  if (!time) field.Fail("must be a number of at most 6 digits and h, or of at most 8 and m or s");
  return time;
}

std::optional<std::chrono::seconds> TimeSpanOf(kube::Field field, std::string_view such_as) {
  const auto time = ReadTimeSpan(field);
  if (!time || time->count() > 0) return time;
  field.Fail(fmt::format("must be more than 0, such as {}", such_as));
  return std::nullopt;
}

}  // namespace tahoma::controller
