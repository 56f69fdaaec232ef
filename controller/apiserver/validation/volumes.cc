// Persistent volumes, their claims and classes, with the texts of Kubernetes' pkg/apis/core and
// pkg/apis/storage validation. The sources of volumes are not checked: a node says which volume
// cannot be mounted.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"
#include "lib/kube/quantity.h"

namespace tahoma::controller::apiserver {
namespace {

void CheckAccessModes(const Json& modes, std::string_view when_none, Causes& causes) {
  static const auto* const kKnown = new std::vector<std::string>{
      "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"};
  if (modes.empty()) causes.push_back(Required("spec.accessModes", when_none));
  bool of_one_pod = false;
  for (const Json& mode : modes) {
    const bool is_known =
        std::any_of(kKnown->begin(), kKnown->end(),
                    [&](const std::string& known) { return mode == Json(known); });
    if (!is_known) {
      causes.push_back(NotSupported("spec.accessModes", mode, *kKnown));
    }
    of_one_pod = of_one_pod || mode == "ReadWriteOncePod";
  }
  if (of_one_pod && modes.size() > 1) {
    causes.push_back(
        Forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes"));
  }
}

void CheckClassName(const Json& spec, Causes& causes) {
  const std::string name = TextAt(spec, {"storageClassName"});
  if (!name.empty()) AddInvalid("spec.storageClassName", name, CheckDnsSubdomain(name), causes);
}

// Removes the fields that a claim may change from its spec.
Json FixedPart(const Json& claim, bool is_bound, bool has_volume) {
  Json spec = ValueAt(claim, {"spec"});
  if (!spec.is_object()) return spec;
  if (!has_volume) spec.erase("volumeName");
  if (!is_bound) return spec;
  spec.erase("volumeAttributesClassName");
  if (ValueAt(spec, {"resources", "requests"}).is_object()) {
    spec["resources"]["requests"].erase("storage");
  }
  return spec;
}

// The text is a quantity: decoding has seen to that.
void CheckSize(const Json& size, const char* field, Causes& causes) {
  if (size.is_null()) return;
  const std::string text = size.is_string() ? size.get<std::string>() : size.dump();
  const auto quantity = kube::Quantity::Parse(text);
  if (quantity.ok() && quantity->Sign() > 0) return;
  causes.push_back(Invalid(field, text, "must be greater than zero"));
}

}  // namespace

void CheckVolume(const Json& volume, Causes& causes) {
  const Json& spec = ValueAt(volume, {"spec"});
  CheckAccessModes(ValueAt(spec, {"accessModes"}), "", causes);
  const Json& capacity = ValueAt(spec, {"capacity"});
  if (capacity.empty()) causes.push_back(Required("spec.capacity"));
  if (!capacity.contains("storage") || capacity.size() > 1) {
    causes.push_back(NotSupported("spec.capacity", capacity, {"storage"}));
  }
  CheckSize(ValueAt(capacity, {"storage"}), "spec.capacity[storage]", causes);
  CheckClassName(spec, causes);
  const Json& affinity = ValueAt(spec, {"nodeAffinity"});
  if (!affinity.is_object()) return;
  if (!affinity.contains("required")) {
    causes.push_back(
        Required("spec.nodeAffinity.required", "must specify required node constraints"));
    return;
  }
  CheckNodeSelector(affinity.at("required"), "spec.nodeAffinity.required", causes);
}

void CheckVolumeClaim(const Json& claim, Causes& causes) {
  const Json& spec = ValueAt(claim, {"spec"});
  CheckAccessModes(ValueAt(spec, {"accessModes"}), "at least 1 access mode is required", causes);
  if (ValueAt(spec, {"resources", "requests", "storage"}).is_null()) {
    causes.push_back(Required("spec.resources[storage]"));
  }
  CheckSize(ValueAt(spec, {"resources", "requests", "storage"}), "spec.resources[storage]", causes);
  CheckClassName(spec, causes);
}

// The volume is named once; size and attributes may change afterwards.
void CheckVolumeClaimUpdate(const Json& before, const Json& after, Causes& causes) {
  const bool is_bound = TextAt(after, {"status", "phase"}) == "Bound";
  const bool has_volume = !TextAt(before, {"spec", "volumeName"}).empty();
  if (FixedPart(before, is_bound, has_volume) == FixedPart(after, is_bound, has_volume)) return;
  causes.push_back(Forbidden("spec",
                             "spec is immutable after creation except resources.requests and "
                             "volumeAttributesClassName for bound claims"));
}

void CheckStorageClassUpdate(const Json& before, const Json& after, Causes& causes) {
  for (const char* field : {"parameters", "provisioner"}) {
    if (ValueAt(before, {field}) != ValueAt(after, {field})) {
      causes.push_back(Forbidden(field, fmt::format("updates to {} are forbidden.", field)));
    }
  }
  for (const char* field : {"reclaimPolicy", "volumeBindingMode"}) {
    CheckImmutable(field, ValueAt(before, {field}), ValueAt(after, {field}), causes);
  }
}

}  // namespace tahoma::controller::apiserver
