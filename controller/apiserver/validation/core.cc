// Pods and nodes, with the texts of Kubernetes' pkg/apis/core/validation.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"
#include "lib/kube/quantity.h"

namespace tahoma::controller::apiserver {
namespace {

std::set<std::string> NamesIn(const Json& list) {
  std::set<std::string> names;
  for (const Json& item : list) names.insert(TextAt(item, {"name"}));
  return names;
}

// As many as a pod runner starts.
constexpr std::size_t kEphemeralContainersMost = 64;

struct PodNames {
  std::set<std::string> volumes;
  std::set<std::string> claims;
};

Cause MissingName(std::string field, const std::string& name) {
  return {"FieldValueNotFound", fmt::format("Not found: {}", Json(name).dump()), std::move(field)};
}

void CheckContainer(const Json& container, const std::string& path, const PodNames& names,
                    Causes& causes) {
  const std::string name = TextAt(container, {"name"});
  if (name.empty() && container.contains("name")) causes.push_back(Required(path + ".name"));
  if (!name.empty()) AddInvalid(path + ".name", name, CheckDnsLabel(name), causes);
  const std::string image = TextAt(container, {"image"});
  if (image.empty()) {
    causes.push_back(Required(path + ".image"));
  } else if (image.front() == ' ' || image.back() == ' ') {
    causes.push_back(
        Invalid(path + ".image", image, "must not have leading or trailing whitespace"));
  }
  const Json& mounts = ValueAt(container, {"volumeMounts"});
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const std::string volume = TextAt(mounts[i], {"name"});
    if (!names.volumes.contains(volume)) {
      causes.push_back(MissingName(fmt::format("{}.volumeMounts[{}].name", path, i), volume));
    }
  }
  const Json& claims = ValueAt(container, {"resources", "claims"});
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const std::string claim = TextAt(claims[i], {"name"});
    if (!names.claims.contains(claim)) {
      Cause cause = MissingName(fmt::format("{}.resources.claims[{}]", path, i), claim);
      cause.message += ": must be one of the names in pod.spec.resourceClaims";
      if (names.claims.empty()) cause.message += " which is empty";
      causes.push_back(std::move(cause));
    }
  }
}

// Resources that Kubernetes knows: without a domain, or of its own.
bool IsNative(std::string_view resource) {
  return resource.find('/') == std::string_view::npos ||
         resource.find("kubernetes.io/") != std::string_view::npos;
}

// Extended resources and huge pages are given whole to one container.
bool MayOvercommit(std::string_view resource) {
  return IsNative(resource) && !resource.starts_with("hugepages-");
}

// Both texts are quantities: decoding has seen to that.
void CheckResources(const Json& container, const std::string& path, Causes& causes) {
  const Json& limits = ValueAt(container, {"resources", "limits"});
  const auto parsed = [](const Json& value) {
    const auto quantity =
        kube::Quantity::Parse(value.is_string() ? value.get<std::string>() : value.dump());
    return quantity.ok() ? *quantity : kube::Quantity();
  };
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const char* list : {"limits", "requests"}) {
    for (const auto& [name, value] : ValueAt(container, {"resources", list}).items()) {
      if (parsed(value).Sign() < 0) {
        causes.push_back(Invalid(fmt::format("{}.resources.{}[{}]", path, list, name), text(value),
                                 "must be greater than or equal to 0"));
      }
      if (!IsNative(name) && !parsed(value).IsInteger()) {
        causes.push_back(Invalid(fmt::format("{}.resources.{}[{}]", path, list, name), text(value),
                                 "must be an integer"));
      }
    }
  }
  for (const auto& [name, value] : ValueAt(container, {"resources", "requests"}).items()) {
    const Json* limit = limits.is_object() ? FindMember(limits, name) : nullptr;
    if (limit == nullptr) {
      if (MayOvercommit(name)) continue;
      causes.push_back(Required(path + ".resources.limits",
                                "Limit must be set for non overcommitable resources"));
    } else if (!MayOvercommit(name) && parsed(value) != parsed(*limit)) {
      causes.push_back(Invalid(path + ".resources.requests", text(value),
                               fmt::format("must be equal to {} limit of {}", name, text(*limit))));
    } else if (parsed(value) > parsed(*limit)) {
      causes.push_back(
          Invalid(path + ".resources.requests", text(value),
                  fmt::format("must be less than or equal to {} limit of {}", name, text(*limit))));
    }
  }
}

void CheckContainers(const Json& spec, const PodNames& names, Causes& causes) {
  if (SizeAt(spec, {"containers"}) == 0 && spec.contains("containers")) {
    causes.push_back(Required("spec.containers"));
  }
  std::set<std::string> seen;
  for (const char* list : {"initContainers", "containers"}) {
    const Json& containers = ValueAt(spec, {list});
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const std::string path = fmt::format("spec.{}[{}]", list, i);
      CheckContainer(containers[i], path, names, causes);
      CheckResources(containers[i], path, causes);
      const std::string name = TextAt(containers[i], {"name"});
      // Twice in one list is reported by the schema.
      if (std::string_view(list) == "containers" && seen.contains("init " + name)) {
        causes.push_back(Duplicate(path + ".name", name));
      }
      if (std::string_view(list) == "initContainers") seen.insert("init " + name);
    }
  }
}

// Whether a field of a container has a value: Go leaves out empty lists and structures.
bool IsSet(const Json& container, std::string_view field) {
  const Json& value = ValueAt(container, {field});
  const bool is_pointer = field.ends_with("Probe") || field == "lifecycle";
  return !value.is_null() && (is_pointer || !value.empty());
}

void CheckEphemeralContainer(const Json& container, const std::string& path, Causes& causes) {
  constexpr std::string_view kForbidden = "cannot be set for an Ephemeral Container";
  for (const std::string_view field :
       {"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
        "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
    if (IsSet(container, field)) {
      causes.push_back(Forbidden(fmt::format("{}.{}", path, field), kForbidden));
    }
  }
  const Json& mounts = ValueAt(container, {"volumeMounts"});
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    for (const std::string_view field : {"subPath", "subPathExpr"}) {
      if (TextAt(mounts[i], {field}).empty()) continue;
      causes.push_back(
          Forbidden(fmt::format("{}.volumeMounts[{}].{}", path, i, field), kForbidden));
    }
  }
}

void CheckEphemeralContainers(const Json& spec, const PodNames& names, Causes& causes) {
  const Json& containers = ValueAt(spec, {"ephemeralContainers"});
  if (containers.size() > kEphemeralContainersMost) {
    causes.push_back(
        TooMany("spec.ephemeralContainers", containers.size(), kEphemeralContainersMost));
    return;
  }
  std::set<std::string> others = NamesIn(ValueAt(spec, {"containers"}));
  others.merge(NamesIn(ValueAt(spec, {"initContainers"})));
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string path = fmt::format("spec.ephemeralContainers[{}]", i);
    CheckContainer(containers[i], path, names, causes);
    // Twice in one list is reported by the schema.
    const std::string name = TextAt(containers[i], {"name"});
    if (others.contains(name)) causes.push_back(Duplicate(path + ".name", name));
    const std::string target = TextAt(containers[i], {"targetContainerName"});
    if (!target.empty() && !others.contains(target)) {
      causes.push_back(MissingName(path + ".targetContainerName", target));
    }
    CheckEphemeralContainer(containers[i], path, causes);
  }
}

void CheckPodClaims(const Json& spec, Causes& causes) {
  const Json& claims = ValueAt(spec, {"resourceClaims"});
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const std::string path = fmt::format("spec.resourceClaims[{}]", i);
    const std::string name = TextAt(claims[i], {"name"});
    if (!name.empty()) AddInvalid(path + ".name", name, CheckDnsLabel(name), causes);
    const bool direct = claims[i].contains("resourceClaimName");
    const bool from_template = claims[i].contains("resourceClaimTemplateName");
    if (direct && from_template) {
      causes.push_back(Invalid(path, claims[i],
                               "at most one of `resourceClaimName` or `resourceClaimTemplateName` "
                               "may be specified"));
    } else if (!direct && !from_template) {
      causes.push_back(Invalid(path, claims[i],
                               "must specify one of: `resourceClaimName`, "
                               "`resourceClaimTemplateName`"));
    }
    for (const char* field : {"resourceClaimName", "resourceClaimTemplateName"}) {
      if (!claims[i].contains(field)) continue;
      const std::string value = TextAt(claims[i], {field});
      AddInvalid(fmt::format("{}.{}", path, field), value, CheckDnsSubdomain(value), causes);
    }
  }
}

bool IsGated(const Json& pod) { return SizeAt(pod, {"spec", "schedulingGates"}) > 0; }

// The spec without what an update may change.
Json FixedSpec(const Json& pod, bool was_gated) {
  Json spec = ValueAt(pod, {"spec"});
  if (!spec.is_object()) return spec;
  for (const char* field : {"activeDeadlineSeconds", "tolerations", "schedulingGates",
                            "terminationGracePeriodSeconds"}) {
    spec.erase(field);
  }
  if (was_gated) {
    spec.erase("nodeSelector");
    spec.erase("affinity");
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list)) continue;
    for (Json& container : spec[list]) container.erase("image");
  }
  return spec;
}

}  // namespace

void CheckPod(const Json& pod, Causes& causes) {
  const Json& spec = ValueAt(pod, {"spec"});
  if (!spec.is_object()) {
    causes.push_back(Required("spec.containers"));
    return;
  }
  const PodNames names{NamesIn(ValueAt(spec, {"volumes"})),
                       NamesIn(ValueAt(spec, {"resourceClaims"}))};
  CheckContainers(spec, names, causes);
  CheckEphemeralContainers(spec, names, causes);
  CheckPodClaims(spec, causes);
  CheckAffinity(ValueAt(spec, {"affinity"}), "spec.affinity", causes);
  CheckSpreadConstraints(ValueAt(spec, {"topologySpreadConstraints"}),
                         "spec.topologySpreadConstraints", causes);
  const Json& grace = ValueAt(spec, {"terminationGracePeriodSeconds"});
  if (grace.is_number_integer() && grace.get<std::int64_t>() < 0) {
    causes.push_back(
        Invalid("spec.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"));
  }
  if (IsGated(pod) && !TextAt(spec, {"nodeName"}).empty()) {
    causes.push_back(
        Forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"));
  }
}

void CheckNewPod(const Json& pod, Causes& causes) {
  if (SizeAt(pod, {"spec", "ephemeralContainers"}) == 0) return;
  causes.push_back(Forbidden("spec.ephemeralContainers", "cannot be set on create"));
}

void CheckEphemeralContainersUpdate(const Json& old_pod, const Json& new_pod, Causes& causes) {
  if (ValueAt(old_pod, {"metadata", "annotations"}).contains("kubernetes.io/config.mirror")) {
    causes = {Forbidden("", "static pods do not support ephemeral containers")};
    return;
  }
  CheckPod(new_pod, causes);
  const Json& wanted = ValueAt(new_pod, {"spec", "ephemeralContainers"});
  for (const Json& old : ValueAt(old_pod, {"spec", "ephemeralContainers"})) {
    const std::string name = TextAt(old, {"name"});
    const auto found = std::find_if(wanted.begin(), wanted.end(), [&](const Json& container) {
      return TextAt(container, {"name"}) == name;
    });
    if (found != wanted.end() && *found == old) continue;
    causes.push_back(Forbidden("spec.ephemeralContainers",
                               fmt::format("existing ephemeral containers \"{}\" may not be {}",
                                           name, found == wanted.end() ? "removed" : "changed")));
  }
}

void CheckPodUpdate(const Json& old_pod, const Json& new_pod, Causes& causes) {
  const Json& gates = ValueAt(old_pod, {"spec", "schedulingGates"});
  const std::set<Json> old_gates(gates.begin(), gates.end());
  for (const Json& gate : ValueAt(new_pod, {"spec", "schedulingGates"})) {
    if (!old_gates.contains(gate)) {
      causes.push_back(Forbidden("spec.schedulingGates",
                                 fmt::format("only deletion is allowed, but found new scheduling "
                                             "gate '{}'",
                                             TextAt(gate, {"name"}))));
    }
  }
  const Json& old_tolerations = ValueAt(old_pod, {"spec", "tolerations"});
  const Json& tolerations = ValueAt(new_pod, {"spec", "tolerations"});
  const std::set<Json> new_tolerations(tolerations.begin(), tolerations.end());
  for (const Json& one : old_tolerations) {
    if (!new_tolerations.contains(one)) {
      causes.push_back(Forbidden("spec.tolerations",
                                 "existing toleration can not be modified except its "
                                 "tolerationSeconds"));
      break;
    }
  }
  if (FixedSpec(old_pod, IsGated(old_pod)) == FixedSpec(new_pod, IsGated(old_pod))) return;
  causes.push_back(Forbidden(
      "spec",
      "pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
      "`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
      "negative)"));
}

void CheckPodStatusUpdate(const Json& old_pod, const Json& new_pod, Causes& causes) {
  CheckImmutable("status.qosClass", ValueAt(old_pod, {"status", "qosClass"}),
                 ValueAt(new_pod, {"status", "qosClass"}), causes);
}

void CheckConfigMap(const Json& map, Causes& causes) {
  for (const char* field : {"data", "binaryData"}) {
    for (const auto& [key, value] : ValueAt(map, {field}).items()) {
      const bool fits = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
      });
      if (fits) continue;
      causes.push_back(Invalid(
          fmt::format("{}[{}]", field, key), key,
          "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
          "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
          "'[-._a-zA-Z0-9]+')"));
    }
  }
}

void CheckNode(const Json& node, Causes& causes) {
  const Json& taints = ValueAt(node, {"spec", "taints"});
  std::set<std::string> seen;
  for (std::size_t i = 0; i < taints.size(); ++i) {
    const std::string path = fmt::format("spec.taints[{}]", i);
    const std::string key = TextAt(taints[i], {"key"});
    AddInvalid(path + ".key", key, CheckQualifiedName(key), causes);
    const std::string value = TextAt(taints[i], {"value"});
    AddInvalid(path + ".value", value, CheckLabelValue(value), causes);
    if (!seen.insert(key + " " + TextAt(taints[i], {"effect"})).second) {
      causes.push_back(Duplicate(path, taints[i]));
    }
  }
}

}  // namespace tahoma::controller::apiserver
