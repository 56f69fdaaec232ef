// Sizes as people write them: whole numbers with a binary unit.
//
//   *ParseSize("64M") == 64 << 20;       // also "64m", "64MB", "64Mi" and "64MiB"
//   UnitShift("GiB") == 30;
//
// A unit is always a power of 1,024, as in AWS's nccom-test.
//
// Scope: text; apart from the rest of lib/config so that a small tool links nothing else with it.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace tahoma::config {

// The power of two that a unit stands for: 0 for "" and "B", 10, 20, 30 and 40 for K, M, G and T,
// alone or followed by "B", "i" or "iB", in either case. Nothing for any other text.
std::optional<int> UnitShift(std::string_view unit);

// Bytes, from 1 to 1 TiB. kInvalidArgument quotes the text and shows what would be right.
absl::StatusOr<std::uint64_t> ParseSize(std::string_view text);

}  // namespace tahoma::config
