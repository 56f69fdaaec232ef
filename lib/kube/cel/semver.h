// Semantic versions, as `version` attributes of devices and CEL's semver() have them.
//
// Rules: semver.org 2.0.0, sections 2, 9, 10, 11.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::kube {

struct Semver {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  std::uint64_t patch = 0;
  std::vector<std::string> prerelease;

  // Parses strictly: three numbers without leading zeros. kInvalidArgument says what is wrong.
  static absl::StatusOr<Semver> Parse(std::string_view text);
  // Also takes a leading "v", missing numbers and leading zeros, as semver(text, true) does.
  static absl::StatusOr<Semver> ParseTolerant(std::string_view text);
};

// Compares by precedence: negative, zero or positive; build metadata does not count.
int Compare(const Semver& a, const Semver& b);

}  // namespace tahoma::kube
