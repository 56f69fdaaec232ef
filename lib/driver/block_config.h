// The configuration in a claim's allocation that tells when a Capacity Block takes the hardware
// back.
//
//   config.driver = kBlockConfigDriver;
//   config.parameters = EncodeBlockConfig({.reclaim_timestamp = 1764095485000});
//   …
//   TAHOMA_ASSIGN_OR_RETURN(const BlockConfig block, ParseBlockConfig(config.parameters));
//
// An allocation carries the configurations of the class and of the claim for the driver that
// prepares the claim. The scheduler may add a configuration under another driver's name; every
// driver skips names of other drivers. So AWS's driver, which refuses unknown configurations, never
// sees this configuration. Decoding is strict.
//
// Scope: one kind and its value.

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
// kInvalidArgument names the field and the right value.
absl::StatusOr<BlockConfig> ParseBlockConfig(std::string_view json);

}  // namespace tahoma::hw
