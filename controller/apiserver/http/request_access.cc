#include "controller/apiserver/http/request_access.h"

#include <algorithm>
#include <array>
#include <utility>

#include "controller/access/access_table.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/verbs/pod_connect.h"
#include "lib/base/ascii.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::string_view kNodeField = "spec.nodeName=";

bool IsSet(const std::map<std::string, std::string, std::less<>>& query, std::string_view flag) {
  const auto found = query.find(flag);
  return found != query.end() && found->second != "0" &&
         !EqualsIgnoringCase(found->second, "false");
}

// Whoever runs a program in a pod does more than read the pod, though WebSockets begin with GET
// (kube-apiserver 1.35 and later: AuthorizePodWebsocketUpgradeCreatePermission).
bool ConnectsToPod(const ResourcePath& path) {
  return path.group.empty() && path.resource == "pods" && IsPodConnect(path.subresource);
}

std::string VerbOf(const std::string& method, const ResourcePath& path, bool watch) {
  if (method == "GET" && ConnectsToPod(path)) return "create";
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return path.name.empty() ? "deletecollection" : "delete";
  if (method != "GET" && method != "HEAD") return method;
  if (path.name.empty()) return watch || path.watch ? "watch" : "list";
  return path.watch ? "watch" : "get";
}

// The node of a "spec.nodeName=x" among the terms, which must all hold.
std::string NodeIn(std::string_view selector) {
  if (selector.find('\\') != std::string_view::npos) return "";  // an escape may hide a comma
  while (!selector.empty()) {
    std::string_view term = selector.substr(0, selector.find(','));
    selector.remove_prefix(std::min(selector.size(), term.size() + 1));
    if (!term.starts_with(kNodeField)) continue;
    term.remove_prefix(kNodeField.size());
    if (term.starts_with('=')) term.remove_prefix(1);
    return std::string(term);
  }
  return "";
}

// Whether `value`, or anything below it, names the ConfigMap or Secret as pods do: in env, envFrom,
// volumes and imagePullSecrets.
bool Names(const json& value, bool secret, std::string_view name) {
  if (value.is_array()) {
    return std::any_of(value.begin(), value.end(),
                       [&](const json& item) { return Names(item, secret, name); });
  }
  if (!value.is_object()) return false;
  static constexpr std::array<std::string_view, 3> kSecretKeys = {"secretKeyRef", "secretRef",
                                                                  "secret"};
  static constexpr std::array<std::string_view, 3> kMapKeys = {"configMapKeyRef", "configMapRef",
                                                               "configMap"};
  for (const std::string_view key : secret ? kSecretKeys : kMapKeys) {
    const json& reference = ValueAt(value, {key});
    if (TextAt(reference, "name") == name || TextAt(reference, "secretName") == name) return true;
  }
  if (secret) {
    for (const json& pull : ValueAt(value, {"imagePullSecrets"})) {
      if (TextAt(pull, "name") == name) return true;
    }
  }
  const auto& members = MembersOf(value);
  return std::any_of(members.begin(), members.end(),
                     [&](const auto& member) { return Names(member.second, secret, name); });
}

// Returns whether a volume of the pod is of the PersistentVolumeClaim.
bool HasVolumeOf(const json& pod, std::string_view claim) {
  const json& volumes = ValueAt(pod, {"spec", "volumes"});
  return std::any_of(volumes.begin(), volumes.end(), [&](const json& volume) {
    if (volume.contains("ephemeral")) {
      return fmt::format("{}-{}", TextAt(MetadataOf(pod), "name"), TextAt(volume, "name")) == claim;
    }
    return TextAt(volume, {"persistentVolumeClaim", "claimName"}) == claim;
  });
}

}  // namespace

Attributes AttributesOf(const rest::Request& head) {
  if (ResourcePath::Is(head.path)) {
    auto path = ResourcePath::Parse(head.path);
    const auto query = ParseQuery(head.query);
    if (path.ok() && query.ok()) {
      Attributes wanted{.verb = VerbOf(head.method, *path, IsSet(*query, "watch"))};
      wanted.group = std::move(path->group);
      wanted.version = std::move(path->version);
      wanted.resource = std::move(path->resource);
      wanted.subresource = std::move(path->subresource);
      wanted.name = std::move(path->name);
      // A namespace lies in itself: who may read a namespace may read it as an object, too.
      const bool is_namespace = wanted.group.empty() && wanted.resource == "namespaces";
      wanted.name_space = is_namespace ? wanted.name : std::move(path->name_space);
      if (const auto field = query->find("fieldSelector"); field != query->end()) {
        wanted.node_selector = NodeIn(field->second);
      }
      return wanted;
    }
  }
  return PathAttributes(head.method, head.path);
}

absl::Status CheckChange(const ApiRequest& request, const json& before, const json& after) {
  if (request.http->identity == nullptr) return absl::OkStatus();
  const auto node = NodeOf(*request.http->identity);
  if (!node) return absl::OkStatus();
  const Attributes wanted{.verb = before.is_null() ? "create" : "update",
                          .group = request.kind->group,
                          .version = request.kind->version,
                          .resource = request.kind->plural,
                          .subresource = request.subresource,
                          .name_space = request.name_space,
                          .name = request.name};
  const auto wrong = WrongChangeForNode(*node, wanted, before, after);
  if (!wrong) return absl::OkStatus();
  return ForbiddenError(*request.kind, TextAt(MetadataOf(after), "name"),
                        fmt::format("node \"{}\": {}", *node, *wrong));
}

std::optional<std::string> StoredNodeView::NodeOfPod(std::string_view name_space,
                                                     std::string_view name) const {
  const ObjectPtr pod = objects_.Get({"", "pods"}, ObjectKey(name_space, name));
  if (pod == nullptr) return std::nullopt;
  return TextAt(*pod->body, {"spec", "nodeName"});
}

std::optional<std::string> StoredNodeView::NodeOfSlice(std::string_view name) const {
  const ObjectPtr slice = objects_.Get({"resource.k8s.io", "resourceslices"}, ObjectKey("", name));
  if (slice == nullptr) return std::nullopt;
  return TextAt(*slice->body, {"spec", "nodeName"});
}

bool StoredNodeView::ClaimIsOn(std::string_view name_space, std::string_view name,
                               std::string_view node) const {
  const ObjectPtr claim =
      objects_.Get({"resource.k8s.io", "resourceclaims"}, ObjectKey(name_space, name));
  if (claim == nullptr) return true;
  const json& status = ValueAt(*claim->body, {"status"});
  for (const json& device : ValueAt(status, {"allocation", "devices", "results"})) {
    if (TextAt(device, "pool") == node) return true;  // a node's pool has its name
  }
  for (const json& consumer : ValueAt(status, {"reservedFor"})) {
    if (TextAt(consumer, "resource") == "pods" &&
        NodeOfPod(name_space, TextAt(consumer, "name")) == node) {
      return true;
    }
  }
  return false;
}

bool StoredNodeView::IsUsedOn(std::string_view resource, std::string_view name_space,
                              std::string_view name, std::string_view node) const {
  if (resource == "persistentvolumes") {
    const ObjectPtr volume = objects_.Get({"", "persistentvolumes"}, ObjectKey("", name));
    if (volume == nullptr) return false;
    const json& claim = ValueAt(*volume->body, {"spec", "claimRef"});
    return claim.is_object() && IsUsedOn("persistentvolumeclaims", TextAt(claim, "namespace"),
                                         TextAt(claim, "name"), node);
  }
  const ObjectList pods = objects_.List({"", "pods"}, std::string(name_space) + "/");
  return std::any_of(pods.objects.begin(), pods.objects.end(), [&](const ObjectPtr& pod) {
    const json& spec = ValueAt(*pod->body, {"spec"});
    if (TextAt(spec, "nodeName") != node) return false;
    if (resource == "serviceaccounts") return TextAt(spec, "serviceAccountName") == name;
    return resource == "persistentvolumeclaims" ? HasVolumeOf(*pod->body, name)
                                                : Names(spec, resource == "secrets", name);
  });
}

}  // namespace tahoma::controller::apiserver
