#include "lib/kube/objects/allocation.h"

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

std::string NodeOfSelector(Field selector) {
  for (const Field term : selector.At("nodeSelectorTerms").Items()) {
    for (const Field field : term.At("matchFields").Items()) {
      const FieldItems values = field.At("values").Items();
      if (field.At("key").Text() == "metadata.name" && values.size() == 1) {
        return std::string(values[0].Text());
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
  for (const Field result : results) parsed.results.push_back(ParseResult(result));
  parsed.configs = ParseConfigs(devices.At("config"), ConfigSource::kClaim);
  parsed.node = NodeOfSelector(field.At("nodeSelector"));
  return parsed;
}

Json RenderAllocation(const Allocation& allocation) {
  Json results = Json::array();
  for (const DeviceResult& result : allocation.results) results.push_back(RenderResult(result));
  Json out = {{"devices", {{"results", std::move(results)}}}};
  for (const DeviceConfig& config : allocation.configs) {
    out["devices"]["config"].push_back(RenderConfig(config));
  }
  if (!allocation.node.empty()) {
    const Json field = {
        {"key", "metadata.name"}, {"operator", "In"}, {"values", {allocation.node}}};
    out["nodeSelector"]["nodeSelectorTerms"] =
        Json::array({Json{{"matchFields", Json::array({field})}}});
  }
  return out;
}

}  // namespace tahoma::kube
