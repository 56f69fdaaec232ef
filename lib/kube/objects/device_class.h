// A DeviceClass: the devices that requests of the class may get, and their configurations.
//
//   absl::StatusOr<DeviceClass> parsed = ParseDeviceClass(object);
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/objects/allocation.h"

namespace tahoma::kube {

struct DeviceClass {
  std::string name;
  std::vector<std::string> selectors;  // CEL
  std::vector<DeviceConfig> configs;   // with source kClass and no requests
  std::string extended_resource;       // the name that pods may ask by; empty: the implicit alone
  WallTime created;
};

absl::StatusOr<DeviceClass> ParseDeviceClass(const Json& object);

}  // namespace tahoma::kube
