#include "controller/ingest/parse_claim.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "lib/base/json.h"

namespace tahoma::controller::internal {

using json = Json;

const json& Member(const json& object, const char* name) {
  static const json kNothing;
  const json* found = FindMember(object, name);
  return found == nullptr ? kNothing : *found;
}

std::string Text(const json& object, const char* name) {
  const json& member = Member(object, name);
  return member.is_null() ? std::string() : member.get<std::string>();
}

TaintEffect ParseEffect(std::string_view effect) {
  if (effect == "NoExecute") return TaintEffect::kNoExecute;
  if (effect == "None" || effect == "PreferNoSchedule") return TaintEffect::kNone;
  return TaintEffect::kNoSchedule;
}

std::vector<std::string> CelSelectors(const json& selectors) {
  std::vector<std::string> expressions;
  for (const json& selector : selectors) {
    const json& cel = Member(selector, "cel");
    if (!cel.is_object()) throw std::invalid_argument("a selector is not of kind \"cel\"");
    expressions.push_back(Text(cel, "expression"));
  }
  return expressions;
}

std::vector<DeviceConfig> Configs(const json& configs, ConfigSource source) {
  std::vector<DeviceConfig> parsed;
  for (const json& config : configs) {
    DeviceConfig& added = parsed.emplace_back();
    added.source = source;
    const std::string text = Text(config, "source");
    if (text == "FromClass") added.source = ConfigSource::kClass;
    if (text == "FromClaim") added.source = ConfigSource::kClaim;
    for (const json& request : Member(config, "requests")) added.requests.push_back(request);
    const json& opaque = Member(config, "opaque");
    added.driver = Text(opaque, "driver");
    added.parameters = Member(opaque, "parameters").dump();
  }
  return parsed;
}

Toleration ParseToleration(const json& toleration) {
  Toleration parsed;
  parsed.key = Text(toleration, "key");
  parsed.op = Text(toleration, "operator") == "Exists" ? TolerationOperator::kExists
                                                       : TolerationOperator::kEqual;
  parsed.value = Text(toleration, "value");
  if (const std::string effect = Text(toleration, "effect"); !effect.empty()) {
    parsed.effect = ParseEffect(effect);
  }
  if (const json& seconds = Member(toleration, "tolerationSeconds"); !seconds.is_null()) {
    parsed.seconds = seconds.get<std::int64_t>();
  }
  return parsed;
}

namespace {

DeviceRequest ParseRequest(const json& request) {
  DeviceRequest parsed;
  parsed.name = Text(request, "name");
  parsed.device_class = Text(request, "deviceClassName");
  parsed.selectors = CelSelectors(Member(request, "selectors"));
  const std::string mode = Text(request, "allocationMode");
  if (mode == "All") {
    parsed.mode = AllocationMode::kAll;
  } else if (!mode.empty() && mode != "ExactCount") {
    throw std::invalid_argument(fmt::format("allocationMode {} is not known", mode));
  }
  if (const json& count = Member(request, "count"); !count.is_null()) {
    parsed.count = count.get<std::int64_t>();
  }
  if (const json& admin = Member(request, "adminAccess"); !admin.is_null()) {
    parsed.admin_access = admin.get<bool>();
  }
  for (const json& toleration : Member(request, "tolerations")) {
    parsed.tolerations.push_back(ParseToleration(toleration));
  }
  parsed.has_capacity_requests = !Member(Member(request, "capacity"), "requests").empty();
  return parsed;
}

std::string NodeOfSelector(const json& selector) {
  for (const json& term : Member(selector, "nodeSelectorTerms")) {
    for (const json& field : Member(term, "matchFields")) {
      const json& values = Member(field, "values");
      if (Text(field, "key") == "metadata.name" && values.size() == 1) return values[0];
    }
  }
  return "";
}

}  // namespace

Allocation ParseAllocation(const json& allocation) {
  Allocation parsed;
  const json& devices = Member(allocation, "devices");
  for (const json& result : Member(devices, "results")) {
    DeviceResult& added = parsed.results.emplace_back();
    added.request = Text(result, "request");
    added.driver = Text(result, "driver");
    added.pool = Text(result, "pool");
    added.device = Text(result, "device");
    if (const json& admin = Member(result, "adminAccess"); !admin.is_null()) {
      added.admin_access = admin.get<bool>();
    }
    for (const json& toleration : Member(result, "tolerations")) {
      added.tolerations.push_back(ParseToleration(toleration));
    }
  }
  parsed.configs = Configs(Member(devices, "config"), ConfigSource::kClaim);
  parsed.node = NodeOfSelector(Member(allocation, "nodeSelector"));
  return parsed;
}

ClaimSpec ParseClaimSpec(const json& spec) {
  ClaimSpec parsed;
  const json& devices = Member(spec, "devices");
  for (const json& request : Member(devices, "requests")) {
    ClaimRequest& added = parsed.requests.emplace_back();
    added.name = Text(request, "name");
    if (const json& exactly = Member(request, "exactly"); exactly.is_object()) {
      added.alternatives.push_back(ParseRequest(exactly));
      added.alternatives.back().name.clear();
    } else if (const json& first = Member(request, "firstAvailable"); first.is_array()) {
      added.first_available = true;
      for (const json& one : first) added.alternatives.push_back(ParseRequest(one));
    }
    if (added.alternatives.empty()) {
      throw std::invalid_argument(
          fmt::format("request {} has neither exactly nor firstAvailable", added.name));
    }
  }
  for (const json& constraint : Member(devices, "constraints")) {
    Constraint& added = parsed.constraints.emplace_back();
    for (const json& request : Member(constraint, "requests")) added.requests.push_back(request);
    added.attribute = Text(constraint, "matchAttribute");
    if (added.attribute.empty()) {
      added.attribute = Text(constraint, "distinctAttribute");
      added.distinct = true;
    }
    if (added.attribute.empty()) {
      throw std::invalid_argument("a constraint is neither matchAttribute nor distinctAttribute");
    }
  }
  parsed.configs = Configs(Member(devices, "config"), ConfigSource::kClaim);
  return parsed;
}

}  // namespace tahoma::controller::internal
