#include "controller/apiserver/validation/validation.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>

#include "controller/apiserver/schema/api_approval.h"
#include "controller/apiserver/schema/crd.h"
#include "controller/apiserver/schema/priority_classes.h"
#include "controller/apiserver/schema/rules.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/parts.h"
#include "controller/apiserver/validation/workloads.h"
#include "controller/reserve/block.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

// Whole seconds; a lease of a real server must be valid for more than none.
void CheckLease(const Json& lease, Causes& causes) {
  for (const char* field : {"leaseDurationSeconds", "leaseTransitions"}) {
    const Json& value = ValueAt(lease, {"spec", field});
    const std::int64_t least = std::string_view(field) == "leaseDurationSeconds" ? 1 : 0;
    if (value.is_number_integer() && value.get<std::int64_t>() < least) {
      causes.push_back(
          Invalid(fmt::format("spec.{}", field), value,
                  least == 1 ? "must be greater than 0" : "must be greater than or equal to 0"));
    }
  }
}

void CheckCrd(const Json& crd, Causes& causes) {
  const auto kinds = KindsOfCrd(crd);
  if (kinds.ok()) return;  // faults of its rules: CheckRulesOfCrd
  // "spec.names.kind: Required value" as field and message.
  const std::string_view text = Message(kinds.status());
  const auto colon = text.find(": ");
  if (colon == std::string_view::npos) return causes.push_back(Invalid("spec", nullptr, text));
  const std::string_view message = text.substr(colon + 2);
  const char* reason = "FieldValueInvalid";
  if (message.starts_with("Required")) reason = "FieldValueRequired";
  if (message.starts_with("Unsupported")) reason = "FieldValueNotSupported";
  if (message.starts_with("Forbidden")) reason = "FieldValueForbidden";
  if (message.starts_with("Too long")) reason = "FieldValueTooLong";
  if (message.starts_with("Too many")) reason = "FieldValueTooMany";
  causes.push_back({reason, std::string(message), std::string(text.substr(0, colon))});
}

Causes RuleFaults(const Json& crd) {
  Causes faults;
  const auto kinds = KindsOfCrd(crd);
  if (!kinds.ok()) return faults;
  for (const auto& kind : *kinds) {
    faults.insert(faults.end(), kind->rule_faults.begin(), kind->rule_faults.end());
  }
  return faults;
}

// Rules that cannot be used; those of before may stay, as an earlier version of ours took them.
void CheckRulesOfCrd(const Json& before, const Json& after, Causes& causes) {
  Causes known;
  if (!before.is_null()) known = RuleFaults(before);
  for (Cause& fault : RuleFaults(after)) {
    if (std::find(known.begin(), known.end(), fault) == known.end()) {
      causes.push_back(std::move(fault));
    }
  }
}

bool IsEstablished(const Json& crd) {
  const Json& conditions = ValueAt(crd, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [](const Json& one) {
    return TextAt(one, {"type"}) == "Established" && TextAt(one, {"status"}) == "True";
  });
}

// A version in which objects were stored stays a version of the kind. `stored` is
// status.storedVersions.
void CheckStoredVersions(const Json& stored, const Json& crd, Causes& causes) {
  const Json& versions = ValueAt(crd, {"spec", "versions"});
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const bool is_there = std::any_of(versions.begin(), versions.end(), [&](const Json& version) {
      return ValueAt(version, {"name"}) == stored[i];
    });
    if (is_there || !stored[i].is_string()) continue;
    causes.push_back(Invalid(
        fmt::format("status.storedVersions[{}]", i), stored[i],
        fmt::format("missing from spec.versions; {0} was previously a storage version, and must "
                    "remain in spec.versions until a storage migration ensures no data remains "
                    "persisted in {0} and removes {0} from status.storedVersions",
                    stored[i].get<std::string>())));
  }
}

// Objects lie under the names of their kind and, by its scope, of their namespaces: another name or
// scope would hide them. Source: apiextensions-apiserver pkg/apis/apiextensions/validation,
// ValidateCustomResourceDefinitionUpdate.
void CheckCrdUpdate(const Json& before, const Json& after, Causes& causes) {
  CheckApproval(before, after, causes);
  const auto same = [&](std::string field, std::initializer_list<std::string_view> path) {
    CheckImmutable(std::move(field), ValueAt(before, path), ValueAt(after, path), causes);
  };
  if (IsEstablished(before)) {
    same("spec.scope", {"spec", "scope"});
    same("spec.names.kind", {"spec", "names", "kind"});
  }
  same("spec.group", {"spec", "group"});
  same("spec.names.plural", {"spec", "names", "plural"});
  CheckStoredVersions(ValueAt(before, {"status", "storedVersions"}), after, causes);
  if (ValueAt(before, {"spec"}) != ValueAt(after, {"spec"})) CheckRulesOfCrd(before, after, causes);
}

void CheckCrdStatus(const Json& /*before*/, const Json& after, Causes& causes) {
  const Json& stored = ValueAt(after, {"status", "storedVersions"});
  if (stored.empty()) {
    causes.push_back(
        Invalid("status.storedVersions", stored, "must have at least one stored version"));
    return;
  }
  for (const Json& version : ValueAt(after, {"spec", "versions"})) {
    const Json& name = ValueAt(version, {"name"});
    if (ValueAt(version, {"storage"}) != true ||
        std::find(stored.begin(), stored.end(), name) != stored.end()) {
      continue;
    }
    causes.push_back(Invalid("status.storedVersions", stored,
                             "must have the storage version " + TextAt(version, {"name"})));
  }
  CheckStoredVersions(stored, after, causes);
}

void CheckEvent(const Json& event, Causes& causes) {
  const std::string space = TextAt(event, {"involvedObject", "namespace"});
  if (space.empty() ? TextAt(event, {"metadata", "namespace"}) == "default"
                    : space == TextAt(event, {"metadata", "namespace"})) {
    return;
  }
  causes.push_back(Invalid("involvedObject.namespace", space, "does not match event.namespace"));
}

struct Checks {
  std::function<void(const Json& object, Causes&)> object;  // create, and update of the resource
  std::function<void(const Json& old_object, const Json& new_object, Causes&)> update;
  std::function<void(const Json& old_object, const Json& new_object, Causes&)> status_update;
  std::function<void(const Json& object, Causes&)> create = {};
  // Reports immutable fields beside all other causes, as far as the structure allows.
  bool together = false;
};

// Leaves out causes that CheckPodTemplate and the check of the selector report themselves.
Causes WithoutOwnCauses(Causes structure) {
  std::erase_if(structure, [](const Cause& cause) {
    return cause.field == "spec.selector" || cause.field.starts_with("spec.template.");
  });
  return structure;
}

void CheckNewCrd(const Json& crd, Causes& causes) {
  CheckApproval(nullptr, crd, causes);
  CheckRulesOfCrd(nullptr, crd, causes);
}

void CheckClaim(const Json& object, Causes& causes) {
  CheckClaimSpec(ValueAt(object, {"spec"}), "spec", causes);
}

void CheckNewClaim(const Json& object, Causes& causes) {
  CheckDeviceConfigs(ValueAt(object, {"spec", "devices", "config"}), "spec.devices.config", causes);
}

void CheckTemplate(const Json& object, Causes& causes) {
  CheckClaimSpec(ValueAt(object, {"spec", "spec"}), "spec.spec", causes);
}

void CheckNewTemplate(const Json& object, Causes& causes) {
  CheckDeviceConfigs(ValueAt(object, {"spec", "spec", "devices", "config"}),
                     "spec.spec.devices.config", causes);
}

void CheckClass(const Json& object, Causes& causes) {
  CheckClassSpec(ValueAt(object, {"spec"}), causes);
  CheckDeviceConfigs(ValueAt(object, {"spec", "config"}), "spec.config", causes);
}

void SameSpec(const Json& old_object, const Json& new_object, Causes& causes) {
  CheckImmutable("spec", ValueAt(old_object, {"spec"}), ValueAt(new_object, {"spec"}), causes);
}

void SameContent(const Json& old_object, const Json& new_object, Causes& causes) {
  if (ValueAt(old_object, {"immutable"}) != true) return;
  for (const char* field : {"immutable", "data", "binaryData"}) {
    if (ValueAt(old_object, {field}) != ValueAt(new_object, {field})) {
      causes.push_back(Forbidden(field, "field is immutable when `immutable` is set"));
    }
  }
}

const std::map<std::string, Checks, std::less<>>& ChecksByResource() {
  static const auto* const checks = new std::map<std::string, Checks, std::less<>>{
      {"pods", {CheckPod, CheckPodUpdate, CheckPodStatusUpdate, CheckNewPod}},
      {"nodes", {CheckNode, {}, {}}},
      {"configmaps", {CheckConfigMap, SameContent, {}}},
      {"secrets", {CheckConfigMap, SameContent, {}}},
      {"events", {CheckEvent, {}, {}}},
      {"persistentvolumes", {CheckVolume, {}, {}}},
      {"persistentvolumeclaims", {CheckVolumeClaim, CheckVolumeClaimUpdate, {}}},
      {"storageclasses.storage.k8s.io", {{}, CheckStorageClassUpdate, {}}},
      {"leases.coordination.k8s.io", {CheckLease, {}, {}}},
      {"customresourcedefinitions.apiextensions.k8s.io",
       {CheckCrd, CheckCrdUpdate, CheckCrdStatus, CheckNewCrd}},
      {"resourceclaims.resource.k8s.io",
       {CheckClaim, SameSpec, CheckClaimStatusUpdate, CheckNewClaim}},
      {"resourceclaimtemplates.resource.k8s.io", {CheckTemplate, SameSpec, {}, CheckNewTemplate}},
      {"deviceclasses.resource.k8s.io", {CheckClass, {}, {}}},
      {"priorityclasses.scheduling.k8s.io", {CheckPriorityClass, CheckPriorityClassUpdate, {}}},
      {"endpoints", {CheckEndpoints, {}, {}}},
      {"deployments.apps", {CheckDeployment, CheckSameSelector, CheckDeploymentStatus, {}, true}},
      {"replicasets.apps", {CheckReplicaSet, CheckSameSelector, CheckReplicaSetStatus, {}, true}},
      {"statefulsets.apps",
       {CheckStatefulSet, CheckStatefulSetUpdate, CheckStatefulSetStatus, CheckNewStatefulSet,
        true}},
      {"daemonsets.apps", {CheckDaemonSet, CheckSameSelector, CheckDaemonSetStatus, {}, true}},
      {"controllerrevisions.apps",
       {CheckControllerRevision,
        CheckControllerRevisionUpdate,
        {},
        CheckNewControllerRevision,
        true}},
      {"jobs.batch", {CheckJob, CheckJobUpdate, CheckJobStatus, {}, true}},
      {"poddisruptionbudgets.policy", {CheckBudget, {}, CheckBudgetStatus}},
      {"mutatingwebhookconfigurations.admissionregistration.k8s.io", {CheckWebhooks, {}, {}}},
      {"validatingwebhookconfigurations.admissionregistration.k8s.io", {CheckWebhooks, {}, {}}},
      {"resourceslices.resource.k8s.io",
       {[](const Json& o, Causes& causes) { CheckSliceSpec(ValueAt(o, {"spec"}), causes); },
        [](const Json& before, const Json& after, Causes& causes) {
          CheckSliceUpdate(ValueAt(before, {"spec"}), ValueAt(after, {"spec"}), causes);
        },
        {}}}};
  return *checks;
}

const Checks& ChecksOf(const Kind& kind) {
  static const Checks* const kNone = new Checks;
  const auto it = ChecksByResource().find(kind.resource());
  return it == ChecksByResource().end() ? *kNone : it->second;
}

// The replicas of a kind with a scale must be readable as such, whatever else the schema says
// (apiextensions-apiserver, pkg/registry/customresource/validator.go).
void CheckScalePath(const Kind& kind, const Json& object, Causes& causes) {
  if (!kind.scale || kind.built_in) return;
  const Json* value = &object;
  std::string path;
  for (const std::string& part : kind.scale->spec_replicas) {
    path += "." + part;
    if (!value->is_object() || !value->contains(part)) return;
    value = &value->at(part);
  }
  if (value->is_number_integer()) {
    const auto replicas = value->get<std::int64_t>();
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (replicas < 0) causes.push_back(Invalid(path, *value, "should be a non-negative integer"));
    if (replicas > kMost) {
      causes.push_back(
          Invalid(path, *value, fmt::format("should be less than or equal to {}", kMost)));
    }
  }
  if (!value->is_string()) return;
  causes.push_back(Invalid(path, 0,
                           fmt::format("{} accessor error: {} is of the type string, expected "
                                       "int64",
                                       path, value->get<std::string>())));
}

// Asks the CEL rules of a CustomResourceDefinition, unless something else is wrong that they rely
// on (apiextensions-apiserver, pkg/registry/customresource/strategy.go: hasBlockingErr).
void AskRules(const Kind& kind, const Json* old_object, const Json& object, Causes& causes) {
  static constexpr std::array<std::string_view, 5> kBlocking = {
      "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany",
      "FieldValueTypeInvalid"};
  if (!kind.schema->has_rules) return;
  const bool blocked = std::any_of(causes.begin(), causes.end(), [](const Cause& cause) {
    return std::find(kBlocking.begin(), kBlocking.end(), cause.reason) != kBlocking.end();
  });
  if (!blocked) return CheckRules(*kind.schema, old_object, object, causes);
  causes.push_back(Invalid("<nil>", nullptr,
                           "some validation rules were not checked because the object was invalid; "
                           "correct the existing errors to complete validation"));
}

Causes Bounded(Causes causes) {
  if (causes.size() > kMaxCauses) causes.resize(kMaxCauses);
  return causes;
}

}  // namespace

std::vector<Cause> ValidateCreate(const Kind& kind, const Json& object) {
  Causes causes;
  CheckMetadata(kind, object, causes);
  Causes structure = ValidateSchema(*kind.schema, object);
  if (ChecksOf(kind).together) structure = WithoutOwnCauses(std::move(structure));
  causes.insert(causes.end(), structure.begin(), structure.end());
  CheckScalePath(kind, object, causes);
  AskRules(kind, nullptr, object, causes);
  // Meaning is looked at only where the structure holds; else one mistake is told twice.
  if (const Checks& checks = ChecksOf(kind); structure.empty()) {
    if (checks.object) checks.object(object, causes);
    if (checks.create) checks.create(object, causes);
  }
  return Bounded(std::move(causes));
}

std::string WhyNotDeletable(const Kind& kind, const Json& object) {
  if (kind.resource() == "priorityclasses.scheduling.k8s.io") {
    const bool is_systems =
        FindSystemPriorityClass(TextAt(object, {"metadata", "name"})) != nullptr;
    return is_systems ? "this is a system priority class and cannot be deleted" : "";
  }
  if (kind.resource() != "capacityblocks.tahoma.dev") return "";
  const std::string state = TextAt(object, {"status", "state"});
  const auto known = ParseState(state);
  if (!known || !HoldsCapacity(*known)) return "";
  return WhyNotCancelled(state, TextAt(object, {"status", "endDate"}));
}

std::vector<Cause> ValidateUpdate(const Kind& kind, const Json& old_object, const Json& new_object,
                                  std::string_view subresource) {
  Causes causes;
  CheckMetadata(kind, new_object, causes);
  CheckMetadataUpdate(old_object, new_object, causes);
  Causes structure =
      ValidateSchema(*kind.schema, new_object, "", PartsToCheck(kind, old_object, new_object));
  if (ChecksOf(kind).together) structure = WithoutOwnCauses(std::move(structure));
  causes.insert(causes.end(), structure.begin(), structure.end());
  if (subresource != "status") CheckScalePath(kind, new_object, causes);
  AskRules(kind, &old_object, new_object, causes);
  if (!structure.empty()) return Bounded(std::move(causes));
  const Checks& checks = ChecksOf(kind);
  if (subresource == "status") {
    if (checks.status_update) checks.status_update(old_object, new_object, causes);
    return Bounded(std::move(causes));
  }
  if (subresource == "ephemeralcontainers") {
    CheckEphemeralContainersUpdate(old_object, new_object, causes);
    return Bounded(std::move(causes));
  }
  if (checks.together) {
    if (!SpecChanged(kind, old_object, new_object)) return Bounded(std::move(causes));
    checks.object(new_object, causes);
    checks.update(old_object, new_object, causes);
    return Bounded(std::move(causes));
  }
  // A field that may not change is reported alone, as its new content does not matter.
  const std::size_t before = causes.size();
  if (checks.update) checks.update(old_object, new_object, causes);
  if (checks.object && causes.size() == before) checks.object(new_object, causes);
  return Bounded(std::move(causes));
}

}  // namespace tahoma::controller::apiserver
