// Durations as people write them in configuration.
//
// Units are h, m, s, ms, us and ns, in that spelling; numbers may have a fraction.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>
#include <string_view>

namespace tahoma::config {

// kInvalidArgument for a missing unit, anything unknown, a negative or more than 100 years.
absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// The shortest text that ParseDuration reads back as the same value.
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace tahoma::config
