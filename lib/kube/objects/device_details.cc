#include "lib/kube/objects/device_details.h"

#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"

namespace tahoma::kube {
namespace {

bool IsScalar(Field attribute) {
  for (const char* type : {"string", "int", "version", "bool"}) {
    if (attribute.At(type).has_value()) return true;
  }
  return false;
}

std::vector<AttributeValue> ParseValues(Field attribute) {
  std::vector<AttributeValue> values;
  for (const Field one : attribute.At("ints").Items()) values.emplace_back(one.Int());
  for (const Field one : attribute.At("bools").Items()) values.emplace_back(one.Bool());
  for (std::string& text : attribute.At("strings").Texts()) values.emplace_back(std::move(text));
  for (std::string& text : attribute.At("versions").Texts()) {
    values.emplace_back(Version{std::move(text)});
  }
  return values;
}

std::optional<Quantity> ParseOptional(Field value) {
  return value.has_value() ? std::optional(ParseQuantity(value)) : std::nullopt;
}

RequestPolicy ParsePolicy(Field field, QualifiedName capacity) {
  RequestPolicy policy;
  policy.capacity = std::move(capacity);
  policy.otherwise = ParseOptional(field.At("default"));
  if (const Field range = field.At("validRange"); range.has_value()) {
    const Field min = range.At("min");
    const Field step = range.At("step");
    policy.range = CapacityRange{.min = ParseOptional(min).value_or(Quantity()),
                                 .max = ParseOptional(range.At("max")),
                                 .step = ParseOptional(step)};
    if (policy.range->min.Sign() < 0) min.Fail("must not be negative");
    if (policy.range->step && policy.range->step->Value() < 1) step.Fail("must be positive");
  }
  for (const Field value : field.At("validValues").Items()) {
    policy.values.push_back(ParseQuantity(value));
  }
  return policy;
}

Json RenderPolicy(const RequestPolicy& policy) {
  Json out = Json::object();
  if (policy.otherwise) out["default"] = policy.otherwise->ToString();
  if (policy.range) {
    Json& range = out["validRange"];
    range["min"] = policy.range->min.ToString();
    if (policy.range->max) range["max"] = policy.range->max->ToString();
    if (policy.range->step) range["step"] = policy.range->step->ToString();
  }
  for (const Quantity& value : policy.values) out["validValues"].push_back(value.ToString());
  return out;
}

Json RenderList(const ListAttribute& list) {
  constexpr std::array<const char*, 4> kLists = {"bools", "ints", "strings", "versions"};
  Json out = Json::object();
  for (const AttributeValue& value : list.values) {
    out[kLists[value.index()]].push_back(*RenderValue(value).begin());
  }
  return out;
}

}  // namespace

Quantity ParseQuantity(Field value) {
  const Json& json = value.json();
  const auto parsed =
      Quantity::Parse(json.is_string() ? json.get_ref<const std::string&>() : JsonText(json));
  if (parsed.ok()) return *parsed;
  value.Fail(Message(parsed.status()));
  return {};
}

std::string RenderName(const QualifiedName& name, std::string_view driver) {
  return name.domain == driver ? name.id : name.domain + "/" + name.id;
}

Json RenderValue(const AttributeValue& value) {
  struct Renderer {
    Json operator()(bool flag) const { return {{"bool", flag}}; }
    Json operator()(std::int64_t number) const { return {{"int", number}}; }
    Json operator()(const std::string& text) const { return {{"string", text}}; }
    Json operator()(const Version& version) const { return {{"version", version.text}}; }
  };
  return std::visit(Renderer{}, value);
}

DeviceDetails ParseDeviceDetails(Field device, std::string_view driver) {
  DeviceDetails details;
  device.At("attributes").Entries([&](const std::string& name, Field attribute) {
    if (IsScalar(attribute)) return;
    details.lists.push_back(
        {.name = ParseQualifiedName(name, driver), .values = ParseValues(attribute)});
  });
  device.At("capacity").Entries([&](const std::string& name, Field capacity) {
    const Field policy = capacity.At("requestPolicy");
    if (!policy.has_value()) return;
    details.policies.push_back(ParsePolicy(policy, ParseQualifiedName(name, driver)));
  });
  details.node = device.At("nodeName").Text();
  details.all_nodes = device.At("allNodes").Bool();
  details.node_terms = ParseNodeTerms(device.At("nodeSelector"));
  details.binds_to_node = device.At("bindsToNode").Bool();
  details.binding_conditions = device.At("bindingConditions").Texts();
  details.binding_failure_conditions = device.At("bindingFailureConditions").Texts();
  return details;
}

void RenderDetails(const DeviceDetails& details, std::string_view driver, Json& device) {
  for (const ListAttribute& list : details.lists) {
    device["attributes"][RenderName(list.name, driver)] = RenderList(list);
  }
  for (const RequestPolicy& policy : details.policies) {
    device["capacity"][RenderName(policy.capacity, driver)]["requestPolicy"] = RenderPolicy(policy);
  }
  if (!details.node.empty()) device["nodeName"] = details.node;
  if (details.all_nodes) device["allNodes"] = true;
  if (!details.node_terms.empty()) device["nodeSelector"] = RenderNodeTerms(details.node_terms);
  if (details.binds_to_node) device["bindsToNode"] = true;
  if (!details.binding_conditions.empty()) {
    device["bindingConditions"] = details.binding_conditions;
  }
  if (!details.binding_failure_conditions.empty()) {
    device["bindingFailureConditions"] = details.binding_failure_conditions;
  }
}

}  // namespace tahoma::kube
