#include "lib/config/size.h"

#include <absl/strings/ascii.h>

#include <charconv>
#include <string>

#include "lib/base/status.h"

namespace tahoma::config {
namespace {

constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 40U;

}  // namespace

std::optional<int> UnitShift(std::string_view unit) {
  const std::string lower = absl::AsciiStrToLower({unit.data(), unit.size()});
  if (lower.empty() || lower == "b") return 0;
  constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t prefix = kPrefixes.find(lower[0]);
  const std::string_view rest = std::string_view(lower).substr(1);
  if (prefix == std::string_view::npos ||
      !(rest.empty() || rest == "b" || rest == "i" || rest == "ib")) {
    return std::nullopt;
  }
  return 10 * (static_cast<int>(prefix) + 1);
}

absl::StatusOr<std::uint64_t> ParseSize(std::string_view text) {
  std::uint64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  const std::optional<int> shift = UnitShift({end, static_cast<std::size_t>(last - end)});
  if (error != std::errc() || !shift || number == 0 || number > kMaxSize >> *shift) {
    return InvalidArgument(
        "\"{}\" is no size from 1 to 1T; expected for example 8, 64K, 64MiB or 1G", text);
  }
  return number << *shift;
}

}  // namespace tahoma::config
