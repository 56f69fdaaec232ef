#include "controller/access/rules.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace tahoma::controller {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::array<std::pair<Role, std::string_view>, 4> kNames = {{
    {Role::kView, "view"},
    {Role::kEdit, "edit"},
    {Role::kAdmin, "admin"},
    {Role::kNode, "node"},
}};

const Words& Read() {
  static const Words verbs = {"get", "list", "watch"};
  return verbs;
}
const Words& Write() {
  static const Words verbs = {"create", "delete", "deletecollection", "patch", "update"};
  return verbs;
}

std::vector<Rule> ViewRules() {
  return {
      {Read(),
       {""},
       {"configmaps", "endpoints", "events", "persistentvolumeclaims",
        "persistentvolumeclaims/status", "pods", "pods/log", "pods/status", "serviceaccounts",
        "services", "namespaces", "namespaces/status"}},
      {Read(),
       {"apps"},
       {"controllerrevisions", "daemonsets", "daemonsets/status", "deployments",
        "deployments/scale", "deployments/status", "replicasets", "replicasets/scale",
        "replicasets/status", "statefulsets", "statefulsets/scale", "statefulsets/status"}},
      {Read(), {"batch"}, {"jobs", "jobs/status"}},
      {Read(), {"policy"}, {"poddisruptionbudgets", "poddisruptionbudgets/status"}},
      {Read(), {"events.k8s.io"}, {"events"}},
      {Read(), {"metrics.k8s.io"}, {"pods"}},
      {Read(), {"coordination.k8s.io"}, {"leases"}},
      {Read(),
       {"resource.k8s.io"},
       {"resourceclaims", "resourceclaims/status", "resourceclaimtemplates"}},
      {Read(),
       {"tahoma.dev"},
       {"gangs", "gangs/status", "capacityblocks", "capacityblocks/status",
        "capacityblockofferings", "capacityblockextensions", "capacityblockextensions/status",
        "capacityblockseries", "capacityblockseries/status", "capacityblockwaitlistentries",
        "capacityblockwaitlistentries/status", "capacityreservations"}},
      {Read(),
       {"neuron.aws.com"},
       {"neuronultraserverworkloads", "neuronultraserverworkloads/status", "neuronultraservers",
        "neuronultraservers/status"}},
  };
}

std::vector<Rule> EditRules() {
  std::vector<Rule> rules = ViewRules();
  rules.push_back({Read(), {""}, {"secrets"}});
  rules.push_back({Write(),
                   {""},
                   {"configmaps", "events", "persistentvolumeclaims", "pods", "secrets",
                    "serviceaccounts", "services"}});
  rules.push_back({{"create"}, {""}, {"pods/eviction", "serviceaccounts/token"}});
  rules.push_back({Write(),
                   {"apps"},
                   {"daemonsets", "deployments", "deployments/scale", "replicasets",
                    "replicasets/scale", "statefulsets", "statefulsets/scale"}});
  rules.push_back({Write(), {"batch"}, {"jobs"}});
  rules.push_back({Write(), {"policy"}, {"poddisruptionbudgets"}});
  rules.push_back({{"create"}, {""}, {"pods/attach", "pods/exec", "pods/portforward"}});
  // Kubernetes' role edit lacks it, but whoever may exec can do as much in the pod.
  rules.push_back({{"get", "patch", "update"}, {""}, {"pods/ephemeralcontainers"}});
  rules.push_back({Write(), {"events.k8s.io"}, {"events"}});
  rules.push_back({Write(), {"coordination.k8s.io"}, {"leases"}});
  rules.push_back({Write(), {"resource.k8s.io"}, {"resourceclaims", "resourceclaimtemplates"}});
  rules.push_back({Write(),
                   {"tahoma.dev"},
                   {"gangs", "capacityblocks", "capacityblockextensions", "capacityblockseries",
                    "capacityblockwaitlistentries"}});
  rules.push_back({Write(), {"neuron.aws.com"}, {"neuronultraserverworkloads"}});
  return rules;
}

std::vector<Rule> NamespaceAdminRules() {
  std::vector<Rule> rules = EditRules();
  rules.push_back({{"create"}, {"authorization.k8s.io"}, {"localsubjectaccessreviews"}});
  return rules;
}

// Extends Kubernetes' role view, which shows nothing of the cluster: without it `kubectl get nodes`
// and `kubectl tahoma topology` would be for administrators only.
std::vector<Rule> ClusterReaderRules() {
  return {
      {Read(), {""}, {"nodes", "nodes/status", "persistentvolumes", "persistentvolumes/status"}},
      {Read(), {"metrics.k8s.io"}, {"nodes"}},
      {Read(), {"storage.k8s.io"}, {"storageclasses"}},
      {Read(), {"resource.k8s.io"}, {"deviceclasses", "resourceslices"}},
      {Read(),
       {"tahoma.dev"},
       {"capacityblockquotas", "capacityblockquotas/status", "defragmentations",
        "defragmentations/status", "maintenancewindows", "maintenancewindows/status",
        "queuecalendars", "queuecalendars/status", "queues", "queues/status", "ultraservers"}},
      {{"get"}, {}, {}, {"/metrics"}},
  };
}

// The kubelet's place and the plugin's; controller/access/node_rules.h restricts it further to what
// belongs to the node.
std::vector<Rule> NodeRules() {
  return {
      {{"create", "get", "patch", "update"}, {""}, {"nodes"}},
      {{"patch", "update"}, {""}, {"nodes/status"}},
      {{"get", "list", "watch", "delete"}, {""}, {"pods"}},
      {{"patch", "update"}, {""}, {"pods/status"}},
      {{"get"}, {""}, {"configmaps", "persistentvolumeclaims", "persistentvolumes", "secrets"}},
      {{"create"}, {""}, {"serviceaccounts/token"}},
      {{"create", "patch"}, {""}, {"events"}},
      {{"create", "get", "patch", "update"}, {"coordination.k8s.io"}, {"leases"}},
      {{"get"}, {"resource.k8s.io"}, {"resourceclaims"}},
      {{"patch"}, {"resource.k8s.io"}, {"resourceclaims/status"}},
      {{"create", "delete", "get", "list", "update", "watch"},
       {"resource.k8s.io"},
       {"resourceslices"}},
  };
}

bool HasWord(const Words& words, std::string_view wanted) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return word == "*" || word == wanted; });
}

bool HasResource(const Words& words, const Attributes& attributes) {
  const std::string_view resource = attributes.resource;
  const std::string_view subresource = attributes.subresource;
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    if (word == "*") return true;
    if (!word.starts_with(resource)) return false;
    word.remove_prefix(resource.size());
    return subresource.empty() ? word.empty()
                               : word.starts_with('/') && word.substr(1) == subresource;
  });
}

bool HasPath(const Words& words, std::string_view path) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return word.ends_with('*') ? path.starts_with(word.substr(0, word.size() - 1)) : path == word;
  });
}

}  // namespace

std::string_view RoleName(Role role) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const auto& n) { return n.first == role; })
      ->second;
}

std::optional<Role> RoleNamed(std::string_view name) {
  for (const auto& [role, its_name] : kNames) {
    if (its_name == name) return role;
  }
  return std::nullopt;
}

// system:discovery, system:basic-user, system:public-info-viewer and
// system:service-account-issuer-discovery.
const std::vector<Rule>& RulesOfEverybody() {
  static const std::vector<Rule> rules = {
      {{"create"},
       {"authorization.k8s.io"},
       {"selfsubjectaccessreviews", "selfsubjectrulesreviews"}},
      {{"create"}, {"authentication.k8s.io"}, {"selfsubjectreviews"}},
      {{"get"},
       {},
       {},
       {"/.well-known/openid-configuration", "/api", "/api/*", "/apis", "/apis/*", "/healthz",
        "/livez", "/openapi", "/openapi/*", "/openid/v1/jwks", "/readyz", "/version", "/version/"}},
  };
  return rules;
}

const std::vector<Rule>& RulesInNamespace(Role role) {
  static const std::vector<Rule> view = ViewRules();
  static const std::vector<Rule> edit = EditRules();
  static const std::vector<Rule> admin = NamespaceAdminRules();
  static const std::vector<Rule> none;
  switch (role) {
    case Role::kView:
      return view;
    case Role::kEdit:
      return edit;
    case Role::kAdmin:
      return admin;
    case Role::kNode:
      return none;
  }
  return none;
}

const std::vector<Rule>& RulesOfCluster(Role role) {
  static const std::vector<Rule> reader = ClusterReaderRules();
  static const std::vector<Rule> all = {{{"*"}, {"*"}, {"*"}}, {{"*"}, {}, {}, {"*"}}};
  static const std::vector<Rule> node = NodeRules();
  switch (role) {
    case Role::kView:
    case Role::kEdit:
      return reader;
    case Role::kAdmin:
      return all;
    case Role::kNode:
      return node;
  }
  return reader;
}

bool Covers(const Rule& rule, const Attributes& attributes) {
  if (!HasWord(rule.verbs, attributes.verb)) return false;
  if (!attributes.is_resource()) return HasPath(rule.paths, attributes.path);
  return HasWord(rule.groups, attributes.group) && HasResource(rule.resources, attributes);
}

}  // namespace tahoma::controller
