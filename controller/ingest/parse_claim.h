// The parts of a claim's JSON, shared by the parsers of claims, classes and pods.
//
// Thread safety: pure functions. They throw nlohmann's exceptions; parse.h's functions catch them.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/model/claim.h"
#include "controller/model/device.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::internal {

// The member, or an empty object/array when it is missing or null.
const Json& Member(const Json& object, const char* name);
std::string Text(const Json& object, const char* name);

std::vector<std::string> CelSelectors(const Json& selectors);
std::vector<DeviceConfig> Configs(const Json& configs, ConfigSource source);
Toleration ParseToleration(const Json& toleration);
TaintEffect ParseEffect(std::string_view effect);
Allocation ParseAllocation(const Json& allocation);
// Throws std::invalid_argument with a sentence when the spec asks for what we do not know.
ClaimSpec ParseClaimSpec(const Json& spec);

}  // namespace tahoma::controller::internal
