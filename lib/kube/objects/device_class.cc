#include "lib/kube/objects/device_class.h"

#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/objects/claim_spec.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::kube {

absl::StatusOr<DeviceClass> ParseDeviceClass(const Json& object) {
  Reading reading(object);
  DeviceClass parsed;
  ObjectMeta metadata = ParseMetadata(reading.root());
  parsed.name = std::move(metadata.name);
  parsed.created = metadata.created;
  const Field spec = reading.root().At("spec");
  parsed.selectors = ParseSelectors(spec.At("selectors"));
  parsed.extended_resource = spec.At("extendedResourceName").Text();
  parsed.configs = ParseConfigs(spec.At("config"), ConfigSource::kClass);
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("device class"));
  return parsed;
}

}  // namespace tahoma::kube
