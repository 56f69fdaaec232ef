#include "lib/kube/objects/device_class.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/objects/claim_spec.h"

namespace tahoma::kube {

absl::StatusOr<DeviceClass> ParseDeviceClass(const Json& object) {
  Reading reading(object);
  DeviceClass parsed;
  parsed.name = reading.root().Required("metadata").Required("name").Text();
  const Field spec = reading.root().At("spec");
  parsed.selectors = ParseSelectors(spec.At("selectors"));
  parsed.configs = ParseConfigs(spec.At("config"), ConfigSource::kClass);
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("device class"));
  return parsed;
}

}  // namespace tahoma::kube
