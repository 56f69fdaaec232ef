#include <fmt/format.h>

#include "controller/apiserver/validation/parts.h"
#include "controller/model/device.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/driver/device_config.h"

namespace tahoma::controller::apiserver {

void CheckDeviceConfigs(const Json& configs, const std::string& path, Causes& causes) {
  if (!configs.is_array()) return;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const Json& parameters = ValueAt(configs[i], {"opaque", "parameters"});
    if (TextAt(configs[i], {"opaque", "driver"}) != kNeuronDriver || !parameters.is_object()) {
      continue;
    }
    const auto parsed = hw::ParseDeviceConfig(parameters.dump());
    if (parsed.ok()) continue;
    causes.push_back(Invalid(fmt::format("{}[{}].opaque.parameters", path, i), parameters,
                             Message(parsed.status())));
  }
}

}  // namespace tahoma::controller::apiserver
