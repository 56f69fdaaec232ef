#include "controller/apiserver/controllers/cluster_index.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {

// The references from one version of an object.
struct ClusterIndex::Edges {
  std::set<std::string> owners;
  std::set<std::string> claim_pods;
  std::set<std::string> templates;
  std::string node;
  std::set<std::string> labels;  // "plural|namespace|key=value"
  std::string selector;          // "namespace|key=value"; empty without a selector
  std::set<std::string> pools;   // in which a claim or a ResourceSlice has devices
  bool evicts = false;           // a ResourceSlice with a device that is tainted NoExecute
};

bool HasEvictingDevice(const Json& slice) {
  for (const auto& device : ValueAt(slice, {"spec", "devices"})) {
    for (const auto& taint : ValueAt(device, {"taints"})) {
      if (TextAt(taint, {"effect"}) == "NoExecute") return true;
    }
  }
  return false;
}

namespace {

bool HasIndexedLabels(const ResourceName& resource) {
  return resource == kPodResource || resource == kReplicaSetResource;
}

std::string SpaceOf(std::string_view key) { return std::string(key.substr(0, key.find('/'))); }

// Returns a label that a selector of a namespace requires: "ns|app=web"; "ns|" when the selector
// requires no label. A Service's selector is a map of labels.
std::string RequiredLabel(std::string_view name_space, const Json& selector) {
  const Json& labels =
      selector.contains("matchLabels") ? ValueAt(selector, {"matchLabels"}) : selector;
  for (const auto& [key, value] : labels.items()) {
    if (value.is_string()) {
      return fmt::format("{}|{}={}", name_space, key, value.get_ref<const std::string&>());
    }
  }
  return fmt::format("{}|", name_space);
}

// Returns the labels under which a selector may be noted that matches the object.
std::set<std::string> LabelNames(std::string_view name_space, const Json& labels) {
  std::set<std::string> names = {fmt::format("{}|", name_space)};
  for (const auto& [key, value] : labels.items()) {
    if (value.is_string()) {
      names.insert(fmt::format("{}|{}={}", name_space, key, value.get_ref<const std::string&>()));
    }
  }
  return names;
}

}  // namespace

ClusterIndex::Edges ClusterIndex::EdgesOf(const ResourceName& resource, const std::string& key,
                                          const Json* object) {
  Edges edges;
  if (object == nullptr) return edges;
  for (const auto& owner : ValueAt(*object, {"metadata", "ownerReferences"})) {
    edges.owners.insert(TextAt(owner, {"uid"}));
  }
  if (resource == kClaimResource) {
    for (const auto& user : ValueAt(*object, {"status", "reservedFor"})) {
      edges.claim_pods.insert(TextAt(user, {"uid"}));
    }
    edges.claim_pods.insert(edges.owners.begin(), edges.owners.end());
    for (const auto& result : ValueAt(*object, {"status", "allocation", "devices", "results"})) {
      edges.pools.insert(PoolKey(TextAt(result, {"driver"}), TextAt(result, {"pool"})));
    }
  }
  if (resource == kSliceResource) {
    edges.pools = {
        PoolKey(TextAt(*object, {"spec", "driver"}), TextAt(*object, {"spec", "pool", "name"}))};
    edges.evicts = HasEvictingDevice(*object);
  }
  if (HasIndexedLabels(resource)) {
    for (const auto& name : LabelNames(SpaceOf(key), ValueAt(*object, {"metadata", "labels"}))) {
      edges.labels.insert(fmt::format("{}|{}", resource.plural, name));
    }
  }
  const Json& selector = ValueAt(*object, {"spec", "selector"});
  if (IsWorkload(resource) && selector.is_object()) {
    edges.selector = RequiredLabel(SpaceOf(key), selector);
  }
  if (resource == kPodResource) {
    edges.node = TextAt(*object, {"spec", "nodeName"});
    const std::string space = key.substr(0, key.find('/'));
    for (const auto& claim : ValueAt(*object, {"spec", "resourceClaims"})) {
      const std::string name = TextAt(claim, {"resourceClaimTemplateName"});
      if (!name.empty()) edges.templates.insert(ObjectKey(space, name));
    }
  }
  return edges;
}

namespace {

// Whether all that EdgesOf reads of the two versions is the same, as after most changes.
bool SameEdges(const ResourceName& resource, const Json& before, const Json& after) {
  const auto same = [&](std::initializer_list<std::string_view> path) {
    return ValueAt(before, path) == ValueAt(after, path);
  };
  if (!same({"metadata", "ownerReferences"})) return false;
  if (resource == kClaimResource) {
    return same({"status", "reservedFor"}) && same({"status", "allocation", "devices", "results"});
  }
  if (resource == kSliceResource) return same({"spec"});
  if (HasIndexedLabels(resource) && !same({"metadata", "labels"})) return false;
  if (IsWorkload(resource) && !same({"spec", "selector"})) return false;
  if (resource == kPodResource)
    return same({"spec", "nodeName"}) && same({"spec", "resourceClaims"});
  return resource != kLeaseResource;  // each version of a lease is a heartbeat
}

template <typename Map, typename Value>
void Unlink(Map& map, const std::string& from, const Value& to) {
  const auto it = map.find(from);
  if (it == map.end()) return;
  it->second.erase(to);
  if (it->second.empty()) map.erase(it);
}

std::vector<std::string> Listed(const absl::flat_hash_map<std::string, std::set<std::string>>& map,
                                const std::string& from) {
  const auto it = map.find(from);
  if (it == map.end()) return {};
  return {it->second.begin(), it->second.end()};
}

}  // namespace

void ClusterIndex::Apply(const ResourceName& resource, const std::string& key, const Json* previous,
                         const Json* object, WallTime now) {
  if (previous != nullptr && object != nullptr && SameEdges(resource, *previous, *object)) return;
  const Edges before = EdgesOf(resource, key, previous);
  const Edges after = EdgesOf(resource, key, object);
  const ObjectId id{resource, key};
  const MutexLock lock(mutex_);
  for (const auto& uid : before.owners) Unlink(dependents_, uid, id);
  for (const auto& uid : before.claim_pods) Unlink(claims_, uid, key);
  for (const auto& name : before.templates) Unlink(template_pods_, name, key);
  if (!before.node.empty()) Unlink(node_pods_, before.node, key);
  for (const auto& name : before.labels) Unlink(labelled_, name, key);
  if (!before.selector.empty()) Unlink(selectors_, before.selector, id);
  for (const auto& name : after.labels) labelled_[name].insert(key);
  if (!after.selector.empty()) selectors_[after.selector].insert(id);
  Links& of_pool = resource == kSliceResource ? pool_slices_ : pool_claims_;
  for (const auto& pool : before.pools) Unlink(of_pool, pool, key);
  for (const auto& pool : after.pools) of_pool[pool].insert(key);
  if (before.evicts) evicting_slices_.erase(key);
  if (after.evicts) evicting_slices_.insert(key);
  for (const auto& uid : after.owners) dependents_[uid].insert(id);
  for (const auto& uid : after.claim_pods) claims_[uid].insert(key);
  for (const auto& name : after.templates) template_pods_[name].insert(key);
  if (!after.node.empty()) node_pods_[after.node].insert(key);
  constexpr std::string_view kLeases = "kube-node-lease/";
  if (resource == kLeaseResource && key.starts_with(kLeases)) {
    const std::string node = key.substr(kLeases.size());
    if (object == nullptr) {
      heartbeats_.erase(node);
      return;
    }
    const std::string version = TextAt(*object, {"metadata", "resourceVersion"});
    const auto [it, is_new] = heartbeats_.try_emplace(node);
    if (is_new || it->second.version != version) it->second = {version, now};
  }
}

void ClusterIndex::AdoptLinks(ClusterIndex& fresh) {
  const MutexLock lock(mutex_);
  const MutexLock fresh_lock(fresh.mutex_);
  dependents_ = std::move(fresh.dependents_);
  claims_ = std::move(fresh.claims_);
  template_pods_ = std::move(fresh.template_pods_);
  node_pods_ = std::move(fresh.node_pods_);
  labelled_ = std::move(fresh.labelled_);
  selectors_ = std::move(fresh.selectors_);
  pool_slices_ = std::move(fresh.pool_slices_);
  pool_claims_ = std::move(fresh.pool_claims_);
  evicting_slices_ = std::move(fresh.evicting_slices_);
  for (auto next = heartbeats_.begin(); next != heartbeats_.end();) {
    const auto at = next++;
    if (!fresh.heartbeats_.contains(at->first)) heartbeats_.erase(at);
  }
}

std::vector<ObjectId> ClusterIndex::DependentsOf(const std::string& uid) const {
  const MutexLock lock(mutex_);
  const auto it = dependents_.find(uid);
  if (it == dependents_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

std::vector<std::string> ClusterIndex::ClaimsOf(const std::string& pod_uid) const {
  const MutexLock lock(mutex_);
  return Listed(claims_, pod_uid);
}

std::vector<std::string> ClusterIndex::PodsUsingTemplate(const std::string& template_key) const {
  const MutexLock lock(mutex_);
  return Listed(template_pods_, template_key);
}

std::vector<std::string> ClusterIndex::PodsOn(const std::string& node) const {
  const MutexLock lock(mutex_);
  return Listed(node_pods_, node);
}

std::vector<std::string> ClusterIndex::SlicesOfPool(const std::string& pool) const {
  const MutexLock lock(mutex_);
  return Listed(pool_slices_, pool);
}

std::vector<std::string> ClusterIndex::ClaimsOnPool(const std::string& pool) const {
  const MutexLock lock(mutex_);
  return Listed(pool_claims_, pool);
}

bool ClusterIndex::AnyPoolEvicts() const {
  const MutexLock lock(mutex_);
  return !evicting_slices_.empty();
}

std::vector<std::string> ClusterIndex::Candidates(const ResourceName& resource,
                                                  std::string_view name_space,
                                                  const Json& selector) const {
  if (!selector.is_object()) return {};
  const MutexLock lock(mutex_);
  return Listed(labelled_,
                fmt::format("{}|{}", resource.plural, RequiredLabel(name_space, selector)));
}

std::vector<ObjectId> ClusterIndex::SelectorsOf(std::string_view name_space,
                                                const Json& labels) const {
  std::vector<ObjectId> found;
  const MutexLock lock(mutex_);
  for (const auto& name : LabelNames(name_space, labels)) {
    const auto at = selectors_.find(name);
    if (at != selectors_.end()) found.insert(found.end(), at->second.begin(), at->second.end());
  }
  return found;
}

std::optional<WallTime> ClusterIndex::LastHeartbeat(const std::string& node) const {
  const MutexLock lock(mutex_);
  const auto it = heartbeats_.find(node);
  if (it == heartbeats_.end()) return std::nullopt;
  return it->second.seen;
}

}  // namespace tahoma::controller::apiserver
