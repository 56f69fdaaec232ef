// The parts of a claim's JSON, shared by the parsers of claims, classes and pods.
//
// Thread safety: pure functions. They throw nlohmann's exceptions; parse.h's functions catch them.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/claim.h"
#include "controller/model/device.h"

namespace tahoma::controller::internal {

// The member, or an empty object/array when it is missing or null.
const nlohmann::json& Member(const nlohmann::json& object, const char* name);
std::string Text(const nlohmann::json& object, const char* name);

std::vector<std::string> CelSelectors(const nlohmann::json& selectors);
std::vector<DeviceConfig> Configs(const nlohmann::json& configs, ConfigSource source);
Toleration ParseToleration(const nlohmann::json& toleration);
TaintEffect ParseEffect(std::string_view effect);
Allocation ParseAllocation(const nlohmann::json& allocation);
// Throws std::invalid_argument with a sentence when the spec asks for what we do not know.
ClaimSpec ParseClaimSpec(const nlohmann::json& spec);

}  // namespace tahoma::controller::internal
