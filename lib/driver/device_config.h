// The opaque configurations that a claim may carry for its Neuron devices.
//
//   absl::StatusOr<DeviceConfig> config = ParseDeviceConfig(
//       R"({"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCore":1})");
//   std::get<NeuronConfig>(*config).logical_neuron_core;   // 1
//
// The controller refuses a bad configuration before placement; the plugin checks again when it
// prepares the claim. Decoding is strict, as AWS's driver is: an unknown field is an error
// (docs/reference/aws-dra-driver.md#configurations).
//
// Scope: the two kinds and their values, not whether a node can serve the configuration.

#pragma once

#include <absl/status/statusor.h>

#include <string_view>
#include <variant>

#include "lib/hw/catalogue.h"

namespace tahoma::hw {

inline constexpr std::string_view kDeviceConfigApiVersion = "neuron.aws.com/v1";

// resource/v1 types.go: OpaqueParametersMaxLength.
inline constexpr std::size_t kDeviceConfigBytesMax = 10 * 1024;

// Physical cores in a logical NeuronCore, a value of kLncSizes.
struct NeuronConfig {
  int logical_neuron_core = kTrainium2.lnc_default;
  friend bool operator==(const NeuronConfig&, const NeuronConfig&) = default;
};

// Nodes of an UltraServer that work together: 1, 2 or 4.
struct UltraServerConfig {
  int ultraserver_mode = 0;
  friend bool operator==(const UltraServerConfig&, const UltraServerConfig&) = default;
};

using DeviceConfig = std::variant<NeuronConfig, UltraServerConfig>;

// kInvalidArgument names the field, the value and the right values.
absl::StatusOr<DeviceConfig> ParseDeviceConfig(std::string_view json);

}  // namespace tahoma::hw
