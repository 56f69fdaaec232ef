// A ResourceSlice: devices of a pool, as a driver publishes them.
//
//   absl::StatusOr<ResourceSlice> slice = ParseResourceSlice(object);
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/objects/device.h"

namespace tahoma::kube {

struct ResourceSlice {
  std::string name;
  std::string driver;
  std::string pool;
  std::string node;  // spec.nodeName; empty for slices that are not of one node
  std::int64_t generation = 0;
  std::int64_t slices_in_pool = 1;
  std::vector<Device> devices;
};

absl::StatusOr<ResourceSlice> ParseResourceSlice(const Json& object);

}  // namespace tahoma::kube
