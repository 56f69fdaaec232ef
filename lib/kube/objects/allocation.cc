#include "lib/kube/objects/allocation.h"

#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/json.h"
#include "lib/kube/json_writer.h"

namespace tahoma::kube {
namespace {

DeviceResult ParseResult(Field field) {
  DeviceResult parsed;
  parsed.request = field.At("request").Text();
  parsed.driver = field.At("driver").Text();
  parsed.pool = field.At("pool").Text();
  parsed.device = field.At("device").Text();
  parsed.admin_access = field.At("adminAccess").Bool();
  for (const Field one : field.At("tolerations").Items()) {
    parsed.tolerations.push_back(ParseToleration(one));
  }
  return parsed;
}

// Returns the details of a result; without any, nullopt.
std::optional<ResultDetails> ParseDetails(Field field, std::size_t result) {
  ResultDetails parsed;
  parsed.result = result;
  parsed.share_id = field.At("shareID").Text();
  field.At("consumedCapacity").Entries([&](const std::string& name, Field amount) {
    const Json& value = amount.json();
    parsed.consumed.push_back(
        {.name = name, .quantity = value.is_string() ? value.get<std::string>() : JsonText(value)});
  });
  parsed.binding_conditions = field.At("bindingConditions").Texts();
  parsed.binding_failure_conditions = field.At("bindingFailureConditions").Texts();
  const bool none = parsed.share_id.empty() && parsed.consumed.empty() &&
                    parsed.binding_conditions.empty() && parsed.binding_failure_conditions.empty();
  return none ? std::nullopt : std::optional(std::move(parsed));
}

void RenderDetails(const ResultDetails& details, Json& result) {
  if (!details.share_id.empty()) result["shareID"] = details.share_id;
  for (const ConsumedCapacity& one : details.consumed) {
    result["consumedCapacity"][one.name] = one.quantity;
  }
  if (!details.binding_conditions.empty()) {
    result["bindingConditions"] = details.binding_conditions;
  }
  if (!details.binding_failure_conditions.empty()) {
    result["bindingFailureConditions"] = details.binding_failure_conditions;
  }
}

Json RenderResult(const DeviceResult& result) {
  Json out = {{"request", result.request},
              {"driver", result.driver},
              {"pool", result.pool},
              {"device", result.device}};
  if (result.admin_access) out["adminAccess"] = true;
  for (const Toleration& one : result.tolerations) {
    out["tolerations"].push_back(RenderToleration(one));
  }
  return out;
}

Json RenderConfig(const DeviceConfig& config) {
  Json out = {
      {"source", config.source == ConfigSource::kClass ? "FromClass" : "FromClaim"},
      {"opaque", {{"driver", config.driver}, {"parameters", TryParseJson(config.parameters)}}}};
  if (!config.requests.empty()) out["requests"] = config.requests;
  return out;
}

// Returns the node that a term names by In alone; empty when none does.
std::string NodeOfTerms(const NodeTerms& terms) {
  for (const std::vector<NodeRequirement>& term : terms) {
    for (const NodeRequirement& one : term) {
      if (one.field && one.key == "metadata.name" && one.op == NodeOperator::kIn &&
          one.values.size() == 1) {
        return one.values[0];
      }
    }
  }
  return "";
}

}  // namespace

std::vector<DeviceConfig> ParseConfigs(Field list, ConfigSource source) {
  std::vector<DeviceConfig> parsed;
  for (const Field config : list.Items()) {
    DeviceConfig& added = parsed.emplace_back();
    added.source = source;
    const std::string_view text = config.At("source").Text();
    if (text == "FromClass") added.source = ConfigSource::kClass;
    if (text == "FromClaim") added.source = ConfigSource::kClaim;
    added.requests = config.At("requests").Texts();
    const Field opaque = config.At("opaque");
    added.driver = opaque.At("driver").Text();
    added.parameters = JsonText(opaque.At("parameters").json());
  }
  return parsed;
}

Allocation ParseAllocation(Field field) {
  Allocation parsed;
  const Field devices = field.At("devices");
  const FieldItems results = devices.At("results").Items();
  parsed.results.reserve(results.size());
  for (const Field result : results) {
    std::optional<ResultDetails> details = ParseDetails(result, parsed.results.size());
    if (details) parsed.details.push_back(*std::move(details));
    parsed.results.push_back(ParseResult(result));
  }
  parsed.configs = ParseConfigs(devices.At("config"), ConfigSource::kClaim);
  NodeTerms terms = ParseNodeTerms(field.At("nodeSelector"));
  parsed.node = NodeOfTerms(terms);
  if (parsed.node.empty()) parsed.node_terms = std::move(terms);
  return parsed;
}

Json RenderAllocation(const Allocation& allocation) {
  Json results = Json::array();
  for (const DeviceResult& result : allocation.results) results.push_back(RenderResult(result));
  for (const ResultDetails& details : allocation.details) {
    RenderDetails(details, results.at(details.result));
  }
  Json out = {{"devices", {{"results", std::move(results)}}}};
  for (const DeviceConfig& config : allocation.configs) {
    out["devices"]["config"].push_back(RenderConfig(config));
  }
  if (!allocation.node_terms.empty()) out["nodeSelector"] = RenderNodeTerms(allocation.node_terms);
  if (!allocation.node.empty()) {
    const Json field = {
        {"key", "metadata.name"}, {"operator", "In"}, {"values", {allocation.node}}};
    out["nodeSelector"]["nodeSelectorTerms"] =
        Json::array({Json{{"matchFields", Json::array({field})}}});
  }
  return out;
}

}  // namespace tahoma::kube
