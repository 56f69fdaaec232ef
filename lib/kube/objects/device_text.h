// Devices from the text of a ResourceSlice, without a JSON value between: a fleet of 1,000,000
// chips has 19 million attributes.
//
// Thread safety: a pure function.

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/kube/objects/device.h"

namespace tahoma::kube {

// Reads the JSON text of a list of devices as ParseDevice (device.h) reads the values. Returns
// nullopt for a text that needs ParseDevice: with escapes, attributes out of order or of an unknown
// type, or a mistake. Members that no Device has may be no JSON.
std::optional<std::vector<Device>> ReadDevices(std::string_view text, std::string_view driver);

}  // namespace tahoma::kube
