// The configuration by which a claim's allocation says when a Capacity Block takes the hardware
// back.
//
//   config.driver = kBlockConfigDriver;
//   config.parameters = EncodeBlockConfig({.reclaim_timestamp = 1764095485000});
//   …
//   TAHOMA_ASSIGN_OR_RETURN(const BlockConfig block, ParseBlockConfig(config.parameters));
//
// An allocation has the configurations of class and claim for those who prepare it; who allocates
// may add one for another driver's name, which every driver but ours passes over. So AWS's driver,
// which refuses what it does not know, never sees it. Decoding is strict.
//
// Scope: one kind and its value.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma::hw {

inline constexpr std::string_view kBlockConfigDriver = "tahoma.dev";

struct BlockConfig {
  std::int64_t reclaim_timestamp = 0;  // milliseconds since 1970

  friend bool operator==(const BlockConfig&, const BlockConfig&) = default;
};

// Returns a JSON object.
std::string EncodeBlockConfig(const BlockConfig& config);
// kInvalidArgument, naming the field and what would be right.
absl::StatusOr<BlockConfig> ParseBlockConfig(std::string_view json);

}  // namespace tahoma::hw
