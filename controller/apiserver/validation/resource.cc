// resource.k8s.io, with the texts and limits of Kubernetes 1.36's pkg/apis/resource/validation.
// CEL expressions are checked for length only; the controller reports those that do not compile.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "controller/apiserver/schema/limits.h"
#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::size_t kListMax = 32;  // requests, constraints, configs, selectors, results
constexpr std::size_t kFirstAvailableMax = 8;
constexpr std::size_t kTolerationsMax = 16;
constexpr std::size_t kExpressionMax = 10 * 1024;  // bytes of one CEL expression
constexpr std::size_t kOpaqueMax = 10 * 1024;      // bytes of one opaque configuration
constexpr std::size_t kDriverMax = 63;
constexpr std::size_t kDevicesMax = 128;
constexpr std::size_t kTaintedDevicesMax = 64;  // when any has taints or consumes counters
constexpr std::size_t kCounterSetsMax = 8;
constexpr std::size_t kCountersMax = 32;
constexpr std::size_t kCounterUsesMax = 2;
constexpr std::size_t kAttributesMax = 32;  // attributes and capacities of one device
constexpr std::size_t kAttributeTextMax = 64;
constexpr std::size_t kAttributeDomainMax = 63;
constexpr std::size_t kAttributeIdMax = 32;

// Request name -> its subrequests.
using RequestNames = std::map<std::string, std::set<std::string>>;

RequestNames NamesOf(const Json& devices) {
  RequestNames names;
  for (const Json& request : ValueAt(devices, {"requests"})) {
    std::set<std::string>& below = names[TextAt(request, {"name"})];
    for (const Json& one : ValueAt(request, {"firstAvailable"})) {
      below.insert(TextAt(one, {"name"}));
    }
  }
  return names;
}

bool Names(const RequestNames& names, const std::string& reference) {
  const auto slash = reference.find('/');
  const auto it = names.find(reference.substr(0, slash));
  if (it == names.end()) return false;
  return slash == std::string::npos || it->second.contains(reference.substr(slash + 1));
}

bool Fits(const Json& list, std::size_t limit, const std::string& path, Causes& causes) {
  if (!list.is_array() || list.size() <= limit) return true;
  causes.push_back(TooMany(path, list.size(), limit));
  return false;
}

void CheckDriver(const std::string& driver, const std::string& path, Causes& causes) {
  if (driver.empty()) return causes.push_back(Required(path));
  if (driver.size() > kDriverMax) causes.push_back(TooLong(path, kDriverMax));
  AddInvalid(path, driver, CheckDnsSubdomain(driver), causes);
}

void CheckRequestReference(const std::string& name, const std::string& path,
                           const RequestNames& names, Causes& causes) {
  if (Names(names, name)) return;
  causes.push_back(Invalid(path, name,
                           "must be the name of a request in the claim or the name of a request "
                           "and a subrequest separated by '/'"));
}

void CheckRequestReferences(const Json& owner, const std::string& path, const RequestNames& names,
                            Causes& causes) {
  const Json& list = ValueAt(owner, {"requests"});
  if (!Fits(list, kListMax, path + ".requests", causes)) return;
  std::set<Json> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = fmt::format("{}.requests[{}]", path, i);
    if (list[i].is_string()) {
      CheckRequestReference(list[i].get_ref<const std::string&>(), at, names, causes);
    }
    if (!seen.insert(list[i]).second) causes.push_back(Duplicate(at, list[i]));
  }
}

void CheckSelectors(const Json& selectors, const std::string& path, Causes& causes) {
  if (!Fits(selectors, kListMax, path, causes)) return;
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    const std::string at = fmt::format("{}[{}].cel", path, i);
    if (!ValueAt(selectors[i], {"cel"}).is_object()) {
      causes.push_back(Required(at));
    } else if (TextAt(selectors[i], {"cel", "expression"}).size() > kExpressionMax) {
      causes.push_back(TooLong(at + ".expression", kExpressionMax));
    }
  }
}

void CheckCount(const Json& request, const std::string& path, Causes& causes) {
  const Json& count = ValueAt(request, {"count"});
  const std::int64_t number = count.is_number_integer() ? count.get<std::int64_t>() : 0;
  if (TextAt(request, {"allocationMode"}) == "All") {
    if (number == 0) return;
    causes.push_back(
        Invalid(path + ".count", number, "must not be specified when allocationMode is 'All'"));
  } else if (number <= 0) {
    causes.push_back(Invalid(path + ".count", number, "must be greater than zero"));
  }
}

void CheckToleration(const Json& one, const std::string& path, Causes& causes) {
  const std::string key = TextAt(one, {"key"});
  const bool exists = TextAt(one, {"operator"}) == "Exists";
  if (!key.empty()) AddInvalid(path + ".key", key, CheckQualifiedName(key), causes);
  if (exists && !TextAt(one, {"value"}).empty()) {
    causes.push_back(
        Invalid(path + ".value", TextAt(one, {"value"}), "must be empty for operator `Exists`"));
  }
  if (!exists && key.empty()) {
    causes.push_back(Required(path + ".key", "must not be empty when operator is not `Exists`"));
  }
}

// Checks the fields that `exactly` and a firstAvailable entry have in common.
void CheckDeviceWish(const Json& wish, const std::string& path, Causes& causes) {
  const std::string name = TextAt(wish, {"deviceClassName"});
  if (name.empty() && wish.contains("deviceClassName")) {
    causes.push_back(Required(path + ".deviceClassName"));
  } else if (!name.empty()) {
    AddInvalid(path + ".deviceClassName", name, CheckDnsSubdomain(name), causes);
  }
  CheckSelectors(ValueAt(wish, {"selectors"}), path + ".selectors", causes);
  CheckCount(wish, path, causes);
  const Json& tolerations = ValueAt(wish, {"tolerations"});
  if (!Fits(tolerations, kTolerationsMax, path + ".tolerations", causes)) return;
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    CheckToleration(tolerations[i], fmt::format("{}.tolerations[{}]", path, i), causes);
  }
}

void CheckRequest(const Json& request, const std::string& path, Causes& causes) {
  const std::string name = TextAt(request, {"name"});
  if (!name.empty()) AddInvalid(path + ".name", name, CheckDnsLabel(name), causes);
  const Json& alternatives = ValueAt(request, {"firstAvailable"});
  const bool exactly = ValueAt(request, {"exactly"}).is_object();
  const bool first = alternatives.is_array() && !alternatives.empty();
  if (!exactly && !first) {
    return causes.push_back(
        Required(path, "exactly one of `exactly` or `firstAvailable` is required"));
  }
  if (exactly && first) {
    return causes.push_back(Invalid(path, nullptr,
                                    "exactly one of `exactly` or `firstAvailable` is required, but "
                                    "multiple fields are set"));
  }
  if (exactly) return CheckDeviceWish(request["exactly"], path + ".exactly", causes);
  if (!Fits(alternatives, kFirstAvailableMax, path + ".firstAvailable", causes)) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const std::string at = fmt::format("{}.firstAvailable[{}]", path, i);
    const std::string sub = TextAt(alternatives[i], {"name"});
    AddInvalid(at + ".name", sub, CheckDnsLabel(sub), causes);
    if (!seen.insert(sub).second) causes.push_back(Duplicate(at, sub));
    CheckDeviceWish(alternatives[i], at, causes);
  }
}

void CheckRequests(const Json& requests, const std::string& path, Causes& causes) {
  if (!Fits(requests, kListMax, path, causes)) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    CheckRequest(requests[i], at, causes);
    const std::string name = TextAt(requests[i], {"name"});
    if (!seen.insert(name).second) causes.push_back(Duplicate(at, name));
  }
}

// "domain/identifier"; the domain may be left out where `domain_needed` is false.
std::string CheckAttributeName(std::string_view name, bool domain_needed) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos && domain_needed) return "must include a domain";
  std::string_view identifier = name;
  if (slash != std::string_view::npos) {
    const std::string_view domain = name.substr(0, slash);
    if (domain.size() > kAttributeDomainMax) return "the domain may not be more than 63 bytes";
    if (const std::string why = CheckDnsSubdomain(domain); !why.empty()) return why;
    identifier = name.substr(slash + 1);
  }
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  bool valid =
      !identifier.empty() && identifier.size() <= kAttributeIdMax && is_letter(identifier.front());
  for (const char c : identifier) valid &= is_letter(c) || (c >= '0' && c <= '9');
  if (valid) return "";
  return "a valid C identifier must start with alphabetic character or '_', followed by a string "
         "of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex "
         "used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
}

void CheckConstraint(const Json& constraint, const std::string& path, const RequestNames& names,
                     Causes& causes) {
  CheckRequestReferences(constraint, path, names, causes);
  for (const char* field : {"matchAttribute", "distinctAttribute"}) {
    if (!constraint.contains(field)) continue;
    const std::string name = TextAt(constraint, {field});
    return AddInvalid(fmt::format("{}.{}", path, field), name, CheckAttributeName(name, true),
                      causes);
  }
  causes.push_back(Required(path,
                            "exactly one of \"matchAttribute\" or \"distinctAttribute\" is "
                            "required, but multiple fields are set"));
}

void CheckConfiguration(const Json& config, const std::string& path, Causes& causes) {
  const Json& opaque = ValueAt(config, {"opaque"});
  if (!opaque.is_object()) return causes.push_back(Required(path + ".opaque"));
  CheckDriver(TextAt(opaque, {"driver"}), path + ".opaque.driver", causes);
  const Json& parameters = ValueAt(opaque, {"parameters"});
  if (parameters.is_null()) return;
  if (!parameters.is_object()) {
    return causes.push_back(
        Invalid(path + ".opaque.parameters", parameters, "must be a valid JSON object"));
  }
  if (parameters.dump().size() > kOpaqueMax) {
    causes.push_back(TooLong(path + ".opaque.parameters", kOpaqueMax));
  }
}

void CheckAllocation(const Json& claim, Causes& causes) {
  const std::string path = "status.allocation.devices";
  const RequestNames names = NamesOf(ValueAt(claim, {"spec", "devices"}));
  const Json& devices = ValueAt(claim, {"status", "allocation", "devices"});
  const Json& results = ValueAt(devices, {"results"});
  if (Fits(results, kListMax, path + ".results", causes)) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string at = fmt::format("{}.results[{}]", path, i);
      CheckRequestReference(TextAt(results[i], {"request"}), at + ".request", names, causes);
      CheckDriver(TextAt(results[i], {"driver"}), at + ".driver", causes);
      const std::string device = TextAt(results[i], {"device"});
      AddInvalid(at + ".device", device, CheckDnsLabel(device), causes);
    }
  }
  const Json& selector = ValueAt(claim, {"status", "allocation", "nodeSelector"});
  if (selector.is_object()) CheckNodeSelector(selector, "status.allocation.nodeSelector", causes);
  const Json& configs = ValueAt(devices, {"config"});
  if (!Fits(configs, 2 * kListMax, path + ".config", causes)) return;  // of class and claim
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const std::string at = fmt::format("{}.config[{}]", path, i);
    CheckRequestReferences(configs[i], at, names, causes);
    CheckConfiguration(configs[i], at, causes);
  }
}

void CheckReservedFor(const Json& old_claim, const Json& new_claim, Causes& causes) {
  const std::string path = "status.reservedFor";
  const Json& users = ValueAt(new_claim, {"status", "reservedFor"});
  Fits(users, kReservedForMax, path, causes);
  if (users.empty()) return;
  if (!ValueAt(new_claim, {"status", "allocation"}).is_object()) {
    return causes.push_back(Forbidden(path, "may not be specified when `allocated` is not set"));
  }
  if (!ValueAt(new_claim, {"metadata", "deletionTimestamp"}).is_string()) return;
  const Json& before = ValueAt(old_claim, {"status", "reservedFor"});
  for (const Json& user : users) {
    if (std::find(before.begin(), before.end(), user) != before.end()) continue;
    return causes.push_back(Forbidden(path,
                                      "new entries may not be added while `deallocationRequested` "
                                      "or `deletionTimestamp` are set"));
  }
}

void CheckAttribute(const Json& attribute, const std::string& path, Causes& causes) {
  int values = 0;
  for (const char* type : {"int", "bool", "string", "version"}) {
    if (attribute.contains(type)) ++values;
  }
  for (const char* type : {"ints", "bools", "strings", "versions"}) {
    if (SizeAt(attribute, {type}) > 0) ++values;
  }
  if (values == 0) causes.push_back(Required(path, "exactly one value must be specified"));
  if (values > 1) {
    causes.push_back(Invalid(path, attribute, "exactly one value must be specified"));
  }
  for (const char* type : {"string", "version"}) {
    if (TextAt(attribute, {type}).size() > kAttributeTextMax) {
      causes.push_back(TooLong(fmt::format("{}.{}", path, type), kAttributeTextMax));
    }
  }
}

void CheckDevice(const Json& device, const std::string& path, Causes& causes) {
  const std::string name = TextAt(device, {"name"});
  AddInvalid(path + ".name", name, CheckDnsLabel(name), causes);
  const std::size_t total = SizeAt(device, {"attributes"}) + SizeAt(device, {"capacity"});
  if (total > kAttributesMax) {
    causes.push_back(Invalid(path, total,
                             fmt::format("the total number of attributes and capacities must not "
                                         "exceed {}",
                                         kAttributesMax)));
  }
  for (const auto& [key, value] : ValueAt(device, {"attributes"}).items()) {
    const std::string at = fmt::format("{}.attributes[{}]", path, key);
    AddInvalid(at, key, CheckAttributeName(key, false), causes);
    CheckAttribute(value, at, causes);
  }
  for (const auto& [key, value] : ValueAt(device, {"capacity"}).items()) {
    AddInvalid(fmt::format("{}.capacity[{}]", path, key), key, CheckAttributeName(key, false),
               causes);
  }
  Fits(ValueAt(device, {"consumesCounters"}), kCounterUsesMax, path + ".consumesCounters", causes);
  Fits(ValueAt(device, {"taints"}), kTolerationsMax, path + ".taints", causes);
  const Json& selector = ValueAt(device, {"nodeSelector"});
  if (selector.is_object()) CheckNodeSelector(selector, path + ".nodeSelector", causes);
}

void CheckDevices(const Json& devices, Causes& causes) {
  std::size_t limit = kDevicesMax;
  for (const Json& device : devices) {
    if (SizeAt(device, {"taints"}) + SizeAt(device, {"consumesCounters"}) > 0) {
      limit = kTaintedDevicesMax;
    }
  }
  if (!Fits(devices, limit, "spec.devices", causes)) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string path = fmt::format("spec.devices[{}]", i);
    CheckDevice(devices[i], path, causes);
    const std::string name = TextAt(devices[i], {"name"});
    if (!seen.insert(name).second) causes.push_back(Duplicate(path, name));
  }
}

void CheckSharedCounters(const Json& sets, Causes& causes) {
  if (!Fits(sets, kCounterSetsMax, "spec.sharedCounters", causes)) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::string path = fmt::format("spec.sharedCounters[{}]", i);
    const std::string name = TextAt(sets[i], {"name"});
    AddInvalid(path + ".name", name, CheckDnsLabel(name), causes);
    if (!seen.insert(name).second) causes.push_back(Duplicate(path, name));
    const std::size_t size = SizeAt(sets[i], {"counters"});
    if (size > kCountersMax) causes.push_back(TooMany(path + ".counters", size, kCountersMax));
    if (size == 0) causes.push_back(Required(path + ".counters"));
  }
}

}  // namespace

void CheckClaimSpec(const Json& spec, const std::string& path, Causes& causes) {
  const Json& devices = ValueAt(spec, {"devices"});
  const std::string at = path + ".devices";
  const RequestNames names = NamesOf(devices);
  CheckRequests(ValueAt(devices, {"requests"}), at + ".requests", causes);
  const Json& constraints = ValueAt(devices, {"constraints"});
  if (Fits(constraints, kListMax, at + ".constraints", causes)) {
    for (std::size_t i = 0; i < constraints.size(); ++i) {
      CheckConstraint(constraints[i], fmt::format("{}.constraints[{}]", at, i), names, causes);
    }
  }
  const Json& configs = ValueAt(devices, {"config"});
  if (!Fits(configs, kListMax, at + ".config", causes)) return;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const std::string config = fmt::format("{}.config[{}]", at, i);
    CheckRequestReferences(configs[i], config, names, causes);
    CheckConfiguration(configs[i], config, causes);
  }
}

void CheckClaimStatusUpdate(const Json& old_claim, const Json& new_claim, Causes& causes) {
  CheckReservedFor(old_claim, new_claim, causes);
  const Json& before = ValueAt(old_claim, {"status", "allocation"});
  const Json& after = ValueAt(new_claim, {"status", "allocation"});
  if (before.is_object() && after.is_object()) {
    CheckImmutable("status.allocation", before, after, causes);
  } else if (after.is_object()) {
    CheckAllocation(new_claim, causes);
  }
}

void CheckSliceSpec(const Json& spec, Causes& causes) {
  CheckDriver(TextAt(spec, {"driver"}), "spec.driver", causes);
  const std::string pool = TextAt(spec, {"pool", "name"});
  if (pool.empty()) {
    causes.push_back(Required("spec.pool.name"));
  } else {
    AddInvalid("spec.pool.name", pool, CheckDnsSubdomain(pool), causes);
  }
  const Json& slices = ValueAt(spec, {"pool", "resourceSliceCount"});
  if (slices.is_number_integer() && slices.get<std::int64_t>() <= 0) {
    causes.push_back(Invalid("spec.pool.resourceSliceCount", slices, "must be greater than zero"));
  }
  std::vector<std::string> places;
  if (!TextAt(spec, {"nodeName"}).empty()) places.emplace_back("`nodeName`");
  if (ValueAt(spec, {"nodeSelector"}).is_object()) places.emplace_back("`nodeSelector`");
  if (ValueAt(spec, {"allNodes"}) == true) places.emplace_back("`allNodes`");
  if (ValueAt(spec, {"perDeviceNodeSelection"}) == true) {
    places.emplace_back("`perDeviceNodeSelection`");
  }
  const std::string which =
      "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  if (places.empty()) causes.push_back(Required("spec", which));
  if (places.size() > 1) {
    causes.push_back(Invalid("spec", fmt::format("{{{}}}", fmt::join(places, ", ")),
                             which + ", but multiple fields are set"));
  }
  if (const Json& selector = ValueAt(spec, {"nodeSelector"}); selector.is_object()) {
    CheckNodeSelector(selector, "spec.nodeSelector", causes);
    if (SizeAt(selector, {"nodeSelectorTerms"}) != 1) {
      causes.push_back(Invalid("spec.nodeSelector.nodeSelectorTerms",
                               ValueAt(selector, {"nodeSelectorTerms"}),
                               "must have exactly one node selector term"));
    }
  }
  const Json& devices = ValueAt(spec, {"devices"});
  const Json& counters = ValueAt(spec, {"sharedCounters"});
  if (!devices.empty() && !counters.empty()) {
    causes.push_back(
        Invalid("spec", nullptr, "only one of `sharedCounters` or `devices` is allowed"));
  }
  CheckDevices(devices, causes);
  CheckSharedCounters(counters, causes);
}

void CheckSliceUpdate(const Json& old_spec, const Json& new_spec, Causes& causes) {
  CheckImmutable("spec.driver", ValueAt(old_spec, {"driver"}), ValueAt(new_spec, {"driver"}),
                 causes);
  CheckImmutable("spec.pool.name", ValueAt(old_spec, {"pool", "name"}),
                 ValueAt(new_spec, {"pool", "name"}), causes);
  CheckImmutable("spec.nodeName", ValueAt(old_spec, {"nodeName"}), ValueAt(new_spec, {"nodeName"}),
                 causes);
}

void CheckClassSpec(const Json& spec, Causes& causes) {
  CheckSelectors(ValueAt(spec, {"selectors"}), "spec.selectors", causes);
  const Json& configs = ValueAt(spec, {"config"});
  if (!Fits(configs, kListMax, "spec.config", causes)) return;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    CheckConfiguration(configs[i], fmt::format("spec.config[{}]", i), causes);
  }
}

}  // namespace tahoma::controller::apiserver
