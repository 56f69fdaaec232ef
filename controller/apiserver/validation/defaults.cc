#include "controller/apiserver/validation/defaults.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <array>

#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

// "nginx" and "nginx:latest" are pulled always; a tag or a digest says what is meant.
const char* PullPolicy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const auto colon = image.rfind(':');
  const auto slash = image.rfind('/');
  const bool has_tag =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return has_tag && image.substr(colon + 1) != "latest" ? "IfNotPresent" : "Always";
}

void DefaultPullPolicy(Json& container) {
  if (!container.is_object()) return;
  if (!container.contains("imagePullPolicy") && container.contains("image")) {
    container["imagePullPolicy"] = PullPolicy(TextAt(container, {"image"}));
  }
}

// Templates are not asked: their pods are.
void DefaultRequests(Json& container) {
  if (!ValueAt(container, {"resources", "limits"}).is_object()) return;
  const Json limits = ValueAt(container, {"resources", "limits"});
  for (const auto& [name, value] : limits.items()) {
    Json& requests = container["resources"]["requests"];
    if (!requests.contains(name)) requests[name] = value;
  }
}

void DefaultPod(Json& pod) {
  if (!ValueAt(pod, {"spec"}).is_object()) return;
  Json& spec = pod["spec"];
  for (const char* list : {"initContainers", "containers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (Json& container : spec[list]) DefaultPullPolicy(container);
    for (Json& container : spec[list]) DefaultRequests(container);
  }
  if (ValueAt(spec, {"ephemeralContainers"}).is_array()) {
    for (Json& container : spec["ephemeralContainers"]) DefaultPullPolicy(container);
  }
  if (!spec.contains("enableServiceLinks")) spec["enableServiceLinks"] = true;
  // The old name follows the new one, whichever was given.
  const std::string name = TextAt(spec, {"serviceAccountName"});
  const std::string old_name = TextAt(spec, {"serviceAccount"});
  const std::string account = !name.empty() ? name : old_name.empty() ? "default" : old_name;
  spec["serviceAccountName"] = account;
  spec["serviceAccount"] = account;
}

void DefaultClaimSpec(Json& spec) {
  if (!ValueAt(spec, {"devices", "requests"}).is_array()) return;
  const auto count_one = [](Json& wish) {
    if (TextAt(wish, {"allocationMode"}) == "ExactCount" && !wish.contains("count")) {
      wish["count"] = 1;
    }
  };
  for (Json& request : spec["devices"]["requests"]) {
    if (ValueAt(request, {"exactly"}).is_object()) count_one(request["exactly"]);
    if (!ValueAt(request, {"firstAvailable"}).is_array()) continue;
    for (Json& one : request["firstAvailable"]) count_one(one);
  }
}

bool IsDated(const Json& taint) { return !taint.is_object() || taint.contains("timeAdded"); }

// A slice has up to 128 devices of which few have taints: the others are not touched, so that they
// need not be copied.
void DefaultSlice(std::string_view now, Json& slice) {
  const Json& devices = ValueAt(slice, {"spec", "devices"});
  for (std::size_t i = 0; devices.is_array() && i < devices.size(); ++i) {
    const Json& taints = ValueAt(devices[i], {"taints"});
    if (!taints.is_array() || std::all_of(taints.begin(), taints.end(), IsDated)) continue;
    for (Json& taint : slice["spec"]["devices"][i]["taints"]) {
      if (!IsDated(taint)) taint["timeAdded"] = now;
    }
  }
}

void DefaultSecret(Json& secret) {
  const Json texts = ValueAt(secret, {"stringData"});
  for (const auto& [name, value] : texts.items()) {
    if (!value.is_string()) continue;
    const auto& text = value.get_ref<const std::string&>();
    secret["data"][name] = absl::Base64Escape({text.data(), text.size()});
  }
  secret.erase("stringData");
}

void DefaultNamespace(Json& space) {
  const std::string name = TextAt(space, {"metadata", "name"});
  if (!name.empty()) space["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
}

void DefaultNode(Json& node) {
  if (!ValueAt(node, {"status", "capacity"}).is_object()) return;
  if (!node["status"].contains("allocatable")) {
    node["status"]["allocatable"] = node["status"]["capacity"];
  }
}

void DefaultCrd(Json& crd) {
  if (!ValueAt(crd, {"spec", "names"}).is_object()) return;
  Json& names = crd["spec"]["names"];
  std::string lower = TextAt(names, {"kind"});
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (TextAt(names, {"singular"}).empty()) names["singular"] = lower;
  if (TextAt(names, {"listKind"}).empty()) names["listKind"] = TextAt(names, {"kind"}) + "List";
}

// Guaranteed: every container has equal limits and requests of cpu and memory; BestEffort: none
// has any.
const char* QosClass(const Json& pod) {
  bool any = false;
  bool guaranteed = true;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : ValueAt(pod, {"spec", list})) {
      for (const char* resource : {"cpu", "memory"}) {
        const Json& limit = ValueAt(container, {"resources", "limits", resource});
        const Json& request = ValueAt(container, {"resources", "requests", resource});
        any |= !limit.is_null() || !request.is_null();
        guaranteed &= !limit.is_null() && limit == request;
      }
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

// Kubernetes' DefaultTolerationSeconds admission, of creates and updates: a pod outlives a silent
// node for five minutes.
void AddDefaultTolerations(Json& spec) {
  Json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = Json::array();
  const Json given = tolerations;
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const bool tolerated = std::any_of(given.begin(), given.end(), [&](const Json& one) {
      const std::string effect = TextAt(one, {"effect"});
      const std::string wanted = TextAt(one, {"key"});
      return (wanted == key || wanted.empty()) && (effect == "NoExecute" || effect.empty());
    });
    if (tolerated) continue;
    tolerations.push_back({{"key", key},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", 300}});
  }
  if (tolerations.empty()) spec.erase("tolerations");
}

Json FirstPodStatus(const Json& pod, std::string_view now) {
  Json status = {{"phase", "Pending"}, {"qosClass", QosClass(pod)}};
  if (SizeAt(pod, {"spec", "schedulingGates"}) > 0) {
    status["conditions"] = {
        {{"type", "PodScheduled"},
         {"status", "False"},
         {"lastProbeTime", nullptr},
         {"lastTransitionTime", now},
         {"reason", "SchedulingGated"},
         {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
  }
  return status;
}

bool IsCore(const Kind& kind, std::string_view plural) {
  return kind.group.empty() && kind.plural == plural;
}

// A real server lets a write of status change labels and annotations of these kinds.
bool StatusWritesMetadata(const Kind& kind) {
  return IsCore(kind, "pods") || IsCore(kind, "nodes") || IsCore(kind, "namespaces") ||
         IsWorkload(kind) || (kind.built_in && kind.plural == "poddisruptionbudgets");
}

// Makes `to` equal to `from` in all fields but the named ones.
void CopyAllBut(std::initializer_list<std::string_view> kept, const Json& from, Json& to) {
  const auto is_kept = [&](const std::string& field) {
    return std::find(kept.begin(), kept.end(), field) != kept.end();
  };
  for (auto at = to.begin(); at != to.end();) {
    at = is_kept(at.key()) || from.contains(at.key()) ? std::next(at) : to.erase(at);
  }
  for (const auto& [name, value] : MembersOf(from)) {
    if (!is_kept(name)) CopyField(from, name, to);
  }
}

}  // namespace

void CopyField(const Json& from, std::string_view field, Json& to) {
  // Fields that are equal already, nearly all of them, are compared and not copied.
  const Json* wanted = FindMember(from, field);
  const Json* found = FindMember(to, field);
  if (wanted == nullptr) {
    if (found != nullptr) to.erase(field);
  } else if (found == nullptr || *found != *wanted) {
    to[std::string(field)] = *wanted;
  }
}

void DefaultPodTemplate(Json& pod_template) {
  if (!ValueAt(pod_template, {"spec"}).is_object()) return;
  Json& spec = pod_template["spec"];
  for (const char* list : {"initContainers", "containers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (Json& container : spec[list]) DefaultPullPolicy(container);
  }
  const std::string name = TextAt(spec, {"serviceAccountName"});
  const std::string account = name.empty() ? TextAt(spec, {"serviceAccount"}) : name;
  if (account.empty()) return;
  spec["serviceAccountName"] = account;
  spec["serviceAccount"] = account;
}

void ApplyKindDefaults(const Kind& kind, std::string_view now, Json& object) {
  if (!kind.built_in || !object.is_object()) return;
  if (IsCore(kind, "pods")) DefaultPod(object);
  if (IsWorkload(kind)) DefaultWorkload(kind, object);
  if (IsCore(kind, "nodes")) DefaultNode(object);
  if (IsCore(kind, "secrets")) DefaultSecret(object);
  if (IsCore(kind, "namespaces")) DefaultNamespace(object);
  if (kind.plural == "customresourcedefinitions") DefaultCrd(object);
  if (kind.plural == "resourceslices") DefaultSlice(now, object);
  const bool has_spec = ValueAt(object, {"spec"}).is_object();
  if (kind.plural == "resourceclaims" && has_spec) DefaultClaimSpec(object["spec"]);
  if (kind.plural == "resourceclaimtemplates" && ValueAt(object, {"spec", "spec"}).is_object()) {
    DefaultClaimSpec(object["spec"]["spec"]);
  }
}

void PrepareCreate(const Kind& kind, std::string_view now, Json& object) {
  // A node registers itself with its status in one write.
  if (kind.has_status && !IsCore(kind, "nodes")) object.erase("status");
  if (IsCore(kind, "pods")) {
    if (ValueAt(object, {"spec"}).is_object()) AddDefaultTolerations(object["spec"]);
    AddLabelKeys(object);
    object["status"] = FirstPodStatus(object, now);
  }
  if (IsWorkload(kind)) PrepareNewWorkload(kind, object);
  if (kind.built_in && kind.plural == "poddisruptionbudgets") {
    object["status"] = {{"currentHealthy", 0},
                        {"desiredHealthy", 0},
                        {"disruptionsAllowed", 0},
                        {"expectedPods", 0}};
  }
  if (kind.built_in && kind.plural == "resourceclaims") object["status"] = Json::object();
  if (IsCore(kind, "persistentvolumes") || IsCore(kind, "persistentvolumeclaims")) {
    object["status"] = {{"phase", "Pending"}};
  }
  if (IsCore(kind, "namespaces")) {
    object["spec"]["finalizers"] = {"kubernetes"};
    object["status"] = {{"phase", "Active"}};
  }
}

void PrepareUpdate(const Kind& kind, const Json& old_object, Json& new_object,
                   std::string_view subresource) {
  if (subresource == "status") {
    CopyAllBut({"status", "metadata"}, old_object, new_object);
    // Elsewhere only the precondition counts.
    if (!StatusWritesMetadata(kind) && new_object.contains("metadata")) {
      CopyAllBut({"resourceVersion", "uid"}, old_object.at("metadata"), new_object["metadata"]);
    }
    if (kind.resource() == "deployments.apps" && new_object.contains("metadata")) {
      CopyField(MetadataOf(old_object), "labels", new_object["metadata"]);
    }
    return;
  }
  if (subresource == "ephemeralcontainers") {
    const Json added = ValueAt(new_object, {"spec", "ephemeralContainers"});
    CopyAllBut({"metadata"}, old_object, new_object);
    new_object["spec"].erase("ephemeralContainers");
    if (!added.empty()) new_object["spec"]["ephemeralContainers"] = added;
    return;
  }
  if (kind.has_status) CopyField(old_object, "status", new_object);
  if (IsWorkload(kind)) PrepareWorkloadUpdate(kind, old_object, new_object);
  // Only the finalize subresource changes a namespace's spec.
  if (IsCore(kind, "namespaces")) CopyField(old_object, "spec", new_object);
  // The class has settled them when the pod was made.
  for (const char* field : {"priority", "preemptionPolicy"}) {
    if (!IsCore(kind, "pods") || !ValueAt(new_object, {"spec"}).is_object()) break;
    if (!new_object["spec"].contains(field)) {
      CopyField(ValueAt(old_object, {"spec"}), field, new_object["spec"]);
    }
  }
  // A client that applies a pod again with tolerations of its own leaves out those that admission
  // added.
  if (IsCore(kind, "pods") && ValueAt(new_object, {"spec"}).is_object() &&
      ValueAt(new_object, {"spec"}) != ValueAt(old_object, {"spec"})) {
    AddDefaultTolerations(new_object["spec"]);
  }
}

bool SpecChanged(const Kind& kind, const Json& old_object, const Json& new_object) {
  // Annotations of a Deployment are copied to its ReplicaSets.
  if (kind.resource() == "deployments.apps" && PartOf(MetadataOf(old_object), "annotations") !=
                                                   PartOf(MetadataOf(new_object), "annotations")) {
    return true;
  }
  const auto counts = [&](const std::string& field) {
    return field != "metadata" && !(kind.has_status && field == "status");
  };
  for (auto at = new_object.begin(); at != new_object.end(); ++at) {
    const auto old = old_object.find(at.key());
    if (counts(at.key()) && (old == old_object.end() || *old != *at)) return true;
  }
  for (auto at = old_object.begin(); at != old_object.end(); ++at) {
    if (counts(at.key()) && !new_object.contains(at.key())) return true;
  }
  return false;
}

}  // namespace tahoma::controller::apiserver
