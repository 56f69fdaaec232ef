#include "lib/kube/objects/slice.h"

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {

absl::StatusOr<ResourceSlice> ParseResourceSlice(const Json& object) {
  Reading reading(object);
  ResourceSlice slice;
  slice.name = reading.root().Required("metadata").Required("name").Text();
  const Field spec = reading.root().Required("spec");
  slice.driver = spec.At("driver").Text();
  slice.node = spec.At("nodeName").Text();
  const Field pool = spec.At("pool");
  slice.pool = pool.At("name").Text();
  slice.generation = pool.At("generation").Int();
  slice.slices_in_pool = pool.At("resourceSliceCount").Int(1);
  const FieldItems devices = spec.At("devices").Items();
  slice.devices.reserve(devices.size());
  for (const Field device : devices) slice.devices.push_back(ParseDevice(device, slice.driver));
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("slice"));
  return slice;
}

}  // namespace tahoma::kube
