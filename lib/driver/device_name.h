// Names of the devices in a node's pool, as docs/design/0001-seams.md gives them.
//
//   absl::StatusOr<DeviceName> name = ParseDeviceName("neuron-core-3-lnc2-1");
//   name->chip;              // 3
//   ToString(*name);         // the text again
//
// Scope: spelling. AWS's own driver uses the chip's name only.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace tahoma::hw {

enum class DeviceKind { kChip, kNode, kCore };

struct DeviceName {
  DeviceKind kind = DeviceKind::kChip;
  int chip = 0;  // kChip, kCore: 0 to 15
  int lnc = 0;   // kCore: 1 or 2
  int core = 0;  // kCore: logical core of the chip, 0 to 8/lnc - 1

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// "neuron-device-N", "neuron-node", "neuron-core-N-lncL-K".
std::string ToString(const DeviceName& name);

// kInvalidArgument for anything ToString does not write: signs, leading zeros, numbers out of
// bounds.
absl::StatusOr<DeviceName> ParseDeviceName(std::string_view text);

}  // namespace tahoma::hw
