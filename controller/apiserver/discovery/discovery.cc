#include "controller/apiserver/discovery/discovery.h"

#include <fmt/format.h>

#include <map>

#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

// A real server leaves out group and version when they are those of the built-in kind itself.
Json ResponseKind(const Kind& of, const GroupVersionKind& kind) {
  if (of.built_in && kind.group == of.group && kind.version == of.version) {
    return {{"group", ""}, {"version", ""}, {"kind", kind.kind}};
  }
  return {{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}};
}

const std::vector<std::string> kReadWrite = {"get", "patch", "update"};

// Returns the subresources in the order of their names; a custom resource's status comes first.
std::vector<Subresource> AllSubresources(const Kind& kind) {
  std::map<std::string, Subresource> sorted;
  for (const Subresource& one : kind.subresources) sorted[one.name] = one;
  std::vector<Subresource> all;
  if (kind.has_status && kind.built_in) sorted["status"] = {"status", kind.gvk(), kReadWrite};
  if (kind.has_status && !kind.built_in) all.push_back({"status", kind.gvk(), kReadWrite});
  if (kind.scale) sorted["scale"] = {"scale", {"autoscaling", "v1", "Scale"}, kReadWrite};
  for (auto& [name, one] : sorted) all.push_back(std::move(one));
  return all;
}

Json AggregatedResource(const Kind& kind) {
  Json resource = {{"resource", kind.plural},
                   {"responseKind", ResponseKind(kind, kind.gvk())},
                   {"scope", kind.namespaced ? "Namespaced" : "Cluster"},
                   {"singularResource", kind.singular},
                   {"verbs", kind.verbs}};
  if (!kind.short_names.empty()) resource["shortNames"] = kind.short_names;
  if (!kind.categories.empty()) resource["categories"] = kind.categories;
  for (const Subresource& one : AllSubresources(kind)) {
    resource["subresources"].push_back({{"subresource", one.name},
                                        {"responseKind", ResponseKind(kind, one.response)},
                                        {"verbs", one.verbs}});
  }
  return resource;
}

// group -> version -> its kinds, as they are served.
using Groups = std::map<std::string, std::map<std::string, std::vector<const Kind*>>>;

Groups ServedGroups(const KindTable& kinds) {
  Groups groups;
  for (const auto* const some : {&kinds.kinds(), &ReviewKinds()}) {
    for (const auto& kind : *some) {
      if (kind->served) groups[kind->group][kind->version].push_back(kind.get());
    }
  }
  return groups;
}

Json AggregatedList(const Groups& groups) {
  Json list = {{"kind", "APIGroupDiscoveryList"},
               {"apiVersion", "apidiscovery.k8s.io/v2"},
               {"metadata", Json::object()},
               {"items", Json::array()}};
  for (const auto& [group, versions] : groups) {
    Json item = {{"metadata", group.empty() ? Json::object() : Json{{"name", group}}},
                 {"versions", Json::array()}};
    for (const auto& [version, of_version] : versions) {
      Json resources = Json::array();
      for (const Kind* kind : of_version) resources.push_back(AggregatedResource(*kind));
      item["versions"].push_back(
          {{"version", version}, {"freshness", "Current"}, {"resources", resources}});
    }
    list["items"].push_back(std::move(item));
  }
  return list;
}

Json GroupVersion(const std::string& group, const std::string& version) {
  return {{"groupVersion", group + "/" + version}, {"version", version}};
}

Json GroupBody(const std::string& group,
               const std::map<std::string, std::vector<const Kind*>>& versions) {
  Json body = {{"name", group}, {"versions", Json::array()}};
  for (const auto& [version, of_version] : versions) {
    body["versions"].push_back(GroupVersion(group, version));
  }
  body["preferredVersion"] = body["versions"].front();
  return body;
}

Json LegacyResource(const Kind& kind) {
  Json resource = {{"name", kind.plural},
                   {"singularName", kind.singular},
                   {"namespaced", kind.namespaced},
                   {"kind", kind.kind},
                   {"verbs", kind.verbs}};
  if (!kind.short_names.empty()) resource["shortNames"] = kind.short_names;
  if (!kind.categories.empty()) resource["categories"] = kind.categories;
  return resource;
}

Json LegacySubresource(const Kind& kind, const Subresource& one) {
  Json resource = {{"name", kind.plural + "/" + one.name},
                   {"singularName", ""},
                   {"namespaced", kind.namespaced},
                   {"kind", one.response.kind},
                   {"verbs", one.verbs}};
  if (one.response.group != kind.group || one.response.version != kind.version) {
    resource["group"] = one.response.group;
    resource["version"] = one.response.version;
  }
  return resource;
}

bool ElementWantsAggregated(std::string_view element) {
  bool group = false;
  bool version = false;
  bool as = false;
  while (!element.empty()) {
    const auto end = std::min(element.find(';'), element.size());
    std::string_view part = element.substr(0, end);
    element.remove_prefix(std::min(end + 1, element.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    group |= part == "g=apidiscovery.k8s.io";
    version |= part == "v=v2";
    as |= part == "as=APIGroupDiscoveryList";
  }
  return group && version && as;
}

}  // namespace

bool WantsAggregated(std::string_view accept) {
  while (!accept.empty()) {
    const auto end = std::min(accept.find(','), accept.size());
    if (ElementWantsAggregated(accept.substr(0, end))) return true;
    accept.remove_prefix(std::min(end + 1, accept.size()));
  }
  return false;
}

Json AggregatedCore(const KindTable& kinds) {
  Groups groups = ServedGroups(kinds);
  return AggregatedList({{"", std::move(groups[""])}});
}

Json AggregatedGroups(const KindTable& kinds) {
  Groups groups = ServedGroups(kinds);
  groups.erase("");
  return AggregatedList(groups);
}

Json ApiVersions(std::string_view server_address) {
  return {{"kind", "APIVersions"},
          {"versions", Json::array({"v1"})},
          {"serverAddressByClientCIDRs",
           Json::array({{{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", server_address}}})}};
}

Json ApiGroupList(const KindTable& kinds) {
  Json list = {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", Json::array()}};
  for (const auto& [group, versions] : ServedGroups(kinds)) {
    if (!group.empty()) list["groups"].push_back(GroupBody(group, versions));
  }
  return list;
}

std::optional<Json> ApiGroup(const KindTable& kinds, std::string_view group) {
  const Groups groups = ServedGroups(kinds);
  const auto it = groups.find(std::string(group));
  if (group.empty() || it == groups.end()) return std::nullopt;
  Json body = GroupBody(it->first, it->second);
  body["kind"] = "APIGroup";
  body["apiVersion"] = "v1";
  return body;
}

std::optional<Json> ApiResourceList(const KindTable& kinds, std::string_view group,
                                    std::string_view version) {
  const Groups groups = ServedGroups(kinds);
  const auto it = groups.find(std::string(group));
  if (it == groups.end()) return std::nullopt;
  const auto of_version = it->second.find(std::string(version));
  if (of_version == it->second.end()) return std::nullopt;
  Json resources = Json::array();
  for (const Kind* kind : of_version->second) {
    resources.push_back(LegacyResource(*kind));
    for (const Subresource& one : AllSubresources(*kind)) {
      resources.push_back(LegacySubresource(*kind, one));
    }
  }
  Json list = {
      {"kind", "APIResourceList"},
      {"groupVersion", group.empty() ? std::string(version) : fmt::format("{}/{}", group, version)},
      {"resources", std::move(resources)}};
  if (!group.empty()) list["apiVersion"] = "v1";  // the core's document is older than the field
  return list;
}

}  // namespace tahoma::controller::apiserver
