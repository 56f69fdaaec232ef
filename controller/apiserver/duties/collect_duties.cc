// Garbage collection, namespaces, nodes. Foreground deletion is carried out as background: the
// owner does not wait for its dependents to be gone.

#include <nlohmann/json.hpp>

#include "controller/apiserver/duties/duties.h"
#include "controller/apiserver/duties/fields.h"

namespace tahoma::controller {
namespace {

using Json = nlohmann::json;

constexpr char kOrphan[] = "orphan";
constexpr char kForeground[] = "foregroundDeletion";
constexpr std::chrono::milliseconds kNamespaceAgain{200};

std::string NamespaceOfKey(const std::string& key) { return key.substr(0, key.find('/')); }

}  // namespace

bool Duties::OwnerExists(const Json& reference, const std::string& name_space) const {
  const auto kinds = kinds_();
  const Kind* kind = kinds->FindKind(Text(reference, {"apiVersion"}), Text(reference, {"kind"}));
  if (kind == nullptr) return true;  // a kind that we do not serve: not ours to judge
  const std::string key = ObjectKey(kind->namespaced ? name_space : "", Text(reference, {"name"}));
  const ObjectPtr owner = objects_.Get({kind->group, kind->plural}, key);
  return owner != nullptr && Text(*owner->body, {"metadata", "uid"}) == Text(reference, {"uid"});
}

Outcome Duties::Collect(const ObjectId& id) {
  const ObjectPtr current = objects_.Get(id.resource, id.key);
  if (current == nullptr || IsBeingDeleted(*current->body)) return Outcome::kDone;
  const Json& owners = Field(*current->body, {"metadata", "ownerReferences"});
  if (owners.empty()) return Outcome::kDone;
  Json solid = Json::array();
  for (const Json& owner : owners) {
    if (OwnerExists(owner, NamespaceOfKey(id.key))) solid.push_back(owner);
  }
  if (solid.size() == owners.size()) return Outcome::kDone;
  if (solid.empty()) return Delete(id, *current->body);
  Json object = *current->body;
  object["metadata"]["ownerReferences"] = std::move(solid);
  return Send("PUT", PathOf(id.resource, id.key), object);
}

Outcome Duties::DropOwner(const ObjectId& dependent, const std::string& owner_uid) {
  const ObjectPtr current = objects_.Get(dependent.resource, dependent.key);
  if (current == nullptr) return Outcome::kDone;
  Json object = *current->body;
  Json kept = Json::array();
  for (const Json& owner : Field(object, {"metadata", "ownerReferences"})) {
    if (Text(owner, {"uid"}) != owner_uid) kept.push_back(owner);
  }
  if (kept.empty()) {
    object["metadata"].erase("ownerReferences");
  } else {
    object["metadata"]["ownerReferences"] = std::move(kept);
  }
  return Send("PUT", PathOf(dependent.resource, dependent.key), object);
}

Outcome Duties::Release(const ObjectId& id) {
  const ObjectPtr current = objects_.Get(id.resource, id.key);
  if (current == nullptr || !IsBeingDeleted(*current->body)) return Outcome::kDone;
  Json object = *current->body;
  const bool orphan = HasFinalizer(object, kOrphan);
  const std::string uid = Text(object, {"metadata", "uid"});
  for (const ObjectId& dependent : index_.DependentsOf(uid)) {
    Outcome outcome = Outcome::kDone;
    if (orphan) {
      outcome = DropOwner(dependent, uid);
    } else if (const ObjectPtr held = objects_.Get(dependent.resource, dependent.key)) {
      if (!IsBeingDeleted(*held->body))
        queue_.Add({Duty::kCollect, fmt::format("{}/{}|{}", dependent.resource.group,
                                                dependent.resource.plural, dependent.key)},
                   {});
    }
    if (outcome == Outcome::kRetry) return outcome;
  }
  DropFinalizer(object, kOrphan);
  DropFinalizer(object, kForeground);
  return Send("PUT", PathOf(id.resource, id.key), object);
}

Outcome Duties::EmptyNamespace(const std::string& name, WallTime now) {
  const ObjectPtr current = objects_.Get(kNamespaceResource, ObjectKey("", name));
  if (current == nullptr || !IsBeingDeleted(*current->body)) return Outcome::kDone;
  const auto kinds = kinds_();
  bool left = false;
  for (const auto& kind : kinds->kinds()) {
    if (!kind->namespaced || !kind->storage) continue;
    const ResourceName resource{kind->group, kind->plural};
    for (const ObjectPtr& object : objects_.List(resource, name + "/").objects) {
      left = true;
      if (!IsBeingDeleted(*object->body)) Delete({resource, object->key}, *object->body);
    }
  }
  if (left) {
    // Deletions may take time (graceful pods, finalizers of others); look again soon.
    queue_.Add({Duty::kNamespace, name}, now + kNamespaceAgain);
    return Outcome::kDone;
  }
  Json object = *current->body;
  object["spec"]["finalizers"] = Json::array();
  return Send("PUT", PathOf(kNamespaceResource, name, "finalize"), object);
}

Outcome Duties::WatchNode(const std::string& name, WallTime now) {
  const ObjectPtr current = objects_.Get(kNodeResource, ObjectKey("", name));
  if (current == nullptr) return Outcome::kDone;
  const auto seen = index_.LastHeartbeat(name);
  if (seen && *seen + kNodeGracePeriod > now) {
    queue_.Add({Duty::kNode, name}, *seen + kNodeGracePeriod);
    return Outcome::kDone;
  }
  // Silent. Its lease's next renewal is seen by the next look, its agent then writes its status.
  queue_.Add({Duty::kNode, name}, now + kNodeGracePeriod);
  Json conditions = Json::array();
  for (const Json& condition : Field(*current->body, {"status", "conditions"})) {
    if (Text(condition, {"type"}) != "Ready" || Text(condition, {"status"}) == "Unknown") continue;
    conditions.push_back({{"type", "Ready"},
                          {"status", "Unknown"},
                          {"reason", "NodeStatusUnknown"},
                          {"message", "Kubelet stopped posting node status."},
                          {"lastTransitionTime", FormatTime(now)}});
  }
  if (conditions.empty()) return Outcome::kDone;
  return Send("PATCH", PathOf(kNodeResource, name, "status"),
              {{"status", {{"conditions", conditions}}}}, "application/strategic-merge-patch+json");
}

Outcome Duties::RemoveLostPod(const std::string& pod_key, WallTime) {
  const ObjectPtr pod = objects_.Get(kPodResource, pod_key);
  if (pod == nullptr) return Outcome::kDone;
  const std::string node = Text(*pod->body, {"spec", "nodeName"});
  if (node.empty() || objects_.Get(kNodeResource, ObjectKey("", node)) != nullptr) {
    return Outcome::kDone;
  }
  return Delete({kPodResource, pod_key}, *pod->body, 0);
}

}  // namespace tahoma::controller
