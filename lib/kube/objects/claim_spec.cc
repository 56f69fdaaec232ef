#include "lib/kube/objects/claim_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "lib/kube/objects/device_details.h"

namespace tahoma::kube {
namespace {

// Refuses fields of other names: a part of the request that is not read would not be met.
void KnowOnly(Field field, std::initializer_list<std::string_view> known) {
  if (field.size() == 0) return;
  field.Entries([&](const std::string& name, Field value) {
    if (!value.has_value() || std::find(known.begin(), known.end(), name) != known.end()) return;
    value.Fail("is not known to this scheduler, which cannot follow it");
  });
}

DeviceRequest ParseRequest(Field field) {
  KnowOnly(field, {"name", "deviceClassName", "selectors", "allocationMode", "count", "adminAccess",
                   "tolerations", "capacity"});
  DeviceRequest parsed;
  parsed.name = field.At("name").Text();
  parsed.device_class = field.At("deviceClassName").Text();
  parsed.selectors = ParseSelectors(field.At("selectors"));
  const Field mode = field.At("allocationMode");
  const std::string_view text = mode.Text();
  if (text == "All") {
    parsed.mode = AllocationMode::kAll;
  } else if (!text.empty() && text != "ExactCount") {
    mode.Fail(fmt::format("is {}, must be ExactCount or All", text));
  }
  parsed.count = field.At("count").Int(1);
  parsed.admin_access = field.At("adminAccess").Bool();
  for (const Field one : field.At("tolerations").Items()) {
    parsed.tolerations.push_back(ParseToleration(one));
  }
  const Field capacities = field.At("capacity").At("requests");
  capacities.Entries([&](const std::string& name, Field amount) {
    parsed.capacities.push_back({.name = name, .amount = ParseQuantity(amount)});
  });
  return parsed;
}

ClaimRequest ParseClaimRequest(Field field) {
  KnowOnly(field, {"name", "exactly", "firstAvailable"});
  ClaimRequest parsed;
  parsed.name = field.At("name").Text();
  if (const Field exactly = field.At("exactly"); exactly.has_value()) {
    parsed.alternatives.push_back(ParseRequest(exactly));
    parsed.alternatives.back().name.clear();
    return parsed;
  }
  parsed.first_available = true;
  for (const Field one : field.At("firstAvailable").Items()) {
    parsed.alternatives.push_back(ParseRequest(one));
  }
  if (parsed.alternatives.empty()) {
    field.Fail(fmt::format("request {} has neither exactly nor firstAvailable", parsed.name));
  }
  return parsed;
}

Constraint ParseConstraint(Field field) {
  KnowOnly(field, {"requests", "matchAttribute", "distinctAttribute"});
  Constraint parsed;
  parsed.requests = field.At("requests").Texts();
  parsed.attribute = field.At("matchAttribute").Text();
  if (parsed.attribute.empty()) {
    parsed.attribute = field.At("distinctAttribute").Text();
    parsed.distinct = true;
  }
  if (parsed.attribute.empty()) field.Fail("is neither matchAttribute nor distinctAttribute");
  return parsed;
}

}  // namespace

std::vector<std::string> ParseSelectors(Field list) {
  std::vector<std::string> expressions;
  for (const Field selector : list.Items()) {
    const Field cel = selector.At("cel");
    if (!cel.has_value()) selector.Fail("is not of kind \"cel\"");
    expressions.emplace_back(cel.At("expression").Text());
  }
  return expressions;
}

ResourceClaimSpec ParseClaimSpec(Field field) {
  ResourceClaimSpec parsed;
  KnowOnly(field, {"devices"});
  const Field devices = field.At("devices");
  KnowOnly(devices, {"requests", "constraints", "config"});
  for (const Field request : devices.At("requests").Items()) {
    parsed.requests.push_back(ParseClaimRequest(request));
  }
  for (const Field constraint : devices.At("constraints").Items()) {
    parsed.constraints.push_back(ParseConstraint(constraint));
  }
  parsed.configs = ParseConfigs(devices.At("config"), ConfigSource::kClaim);
  return parsed;
}

}  // namespace tahoma::kube
