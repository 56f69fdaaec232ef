#include "lib/kube/cel/semver.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/base/ascii.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

// The longest text that is looked at: resource/v1 limits version attributes to 64 characters.
constexpr std::size_t kTextMax = 256;

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

absl::Status CheckIdentifiers(std::string_view text, std::string_view what, bool zeros_allowed) {
  for (const std::string_view part : Split(text, '.')) {
    const bool known = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    });
    if (!known) return InvalidArgument("\"{}\" is not a {} identifier", part, what);
    if (!zeros_allowed && part.size() > 1 && part[0] == '0' && IsDigits(part)) {
      return InvalidArgument("{} identifier \"{}\" has a leading zero", what, part);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Semver> ParseText(std::string_view text, bool tolerant) {
  if (text.size() > kTextMax) return InvalidArgument("version of {} characters", text.size());
  const std::string_view whole = text;
  if (tolerant && text.starts_with('v')) text.remove_prefix(1);
  if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
    TAHOMA_RETURN_IF_ERROR(CheckIdentifiers(text.substr(plus + 1), "build", true));
    text = text.substr(0, plus);
  }
  Semver version;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::string_view rest = text.substr(dash + 1);
    TAHOMA_RETURN_IF_ERROR(CheckIdentifiers(rest, "pre-release", false));
    for (const std::string_view part : Split(rest, '.')) version.prerelease.emplace_back(part);
    text = text.substr(0, dash);
  }
  const std::vector<std::string_view> parts = Split(text, '.');
  if (parts.size() > 3 || (parts.size() != 3 && !tolerant)) {
    return InvalidArgument("\"{}\" is not a version of the form 1.2.3", whole);
  }
  if (parts.size() != 3 && whole.find_first_of("+-") != std::string_view::npos) {
    return InvalidArgument("the short version \"{}\" cannot have a pre-release or a build", whole);
  }
  const std::array<std::uint64_t*, 3> numbers = {&version.major, &version.minor, &version.patch};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const bool zero_ahead = parts[i].size() > 1 && parts[i][0] == '0';
    if (!IsDigits(parts[i]) || (zero_ahead && !tolerant) ||
        std::from_chars(parts[i].data(), end, *numbers[i]).ec != std::errc()) {
      return InvalidArgument("\"{}\" in version \"{}\" is not a number", parts[i], whole);
    }
  }
  return version;
}

int CompareNumbers(std::uint64_t a, std::uint64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

int CompareIdentifiers(const std::string& a, const std::string& b) {
  const bool a_number = IsDigits(a);
  const bool b_number = IsDigits(b);
  if (a_number != b_number) return a_number ? -1 : 1;
  if (a_number && a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

}  // namespace

absl::StatusOr<Semver> Semver::Parse(std::string_view text) { return ParseText(text, false); }

absl::StatusOr<Semver> Semver::ParseTolerant(std::string_view text) {
  return ParseText(text, true);
}

int Compare(const Semver& a, const Semver& b) {
  if (const int by = CompareNumbers(a.major, b.major); by != 0) return by;
  if (const int by = CompareNumbers(a.minor, b.minor); by != 0) return by;
  if (const int by = CompareNumbers(a.patch, b.patch); by != 0) return by;
  if (a.prerelease.empty() || b.prerelease.empty()) {
    return CompareNumbers(a.prerelease.empty() ? 1 : 0, b.prerelease.empty() ? 1 : 0);
  }
  const std::size_t both = std::min(a.prerelease.size(), b.prerelease.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (const int by = CompareIdentifiers(a.prerelease[i], b.prerelease[i]); by != 0) return by;
  }
  return CompareNumbers(a.prerelease.size(), b.prerelease.size());
}

}  // namespace tahoma::kube
