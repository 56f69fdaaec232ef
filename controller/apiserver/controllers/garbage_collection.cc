// Garbage collection, namespaces, nodes. The rules of garbage collection are Kubernetes' own
// (pkg/controller/garbagecollector/garbagecollector.go).

#include <algorithm>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::chrono::milliseconds kNamespaceAgain{200};
constexpr char kNamespaceFinalizer[] = "kubernetes";  // removed once the namespace is empty

std::string NamespaceOfKey(const std::string& key) { return key.substr(0, key.find('/')); }

}  // namespace

std::optional<ObjectId> Controllers::OwnerId(const Json& reference,
                                             const std::string& dependent_key) const {
  const auto kinds = kinds_();
  const Kind* kind =
      kinds->FindKind(TextAt(reference, {"apiVersion"}), TextAt(reference, {"kind"}));
  if (kind == nullptr) return std::nullopt;
  const std::string space = kind->namespaced ? NamespaceOfKey(dependent_key) : "";
  if (kind->namespaced && space.empty()) return std::nullopt;
  return ObjectId{{kind->group, kind->plural}, ObjectKey(space, TextAt(reference, {"name"}))};
}

Controllers::OwnerState Controllers::StateOf(const Json& reference,
                                             const std::string& dependent_key) const {
  const std::optional<ObjectId> id = OwnerId(reference, dependent_key);
  if (!id) return OwnerState::kSolid;  // not ours to judge
  const ObjectPtr owner = objects_.Get(id->resource, id->key);
  if (owner == nullptr || TextAt(*owner->body, {"metadata", "uid"}) != TextAt(reference, {"uid"})) {
    return OwnerState::kGone;
  }
  return WaitsForDependents(*owner->body) ? OwnerState::kWaits : OwnerState::kSolid;
}

Outcome Controllers::Collect(const ObjectId& id) {
  const ObjectPtr current = objects_.Get(id.resource, id.key);
  if (current == nullptr || IsBeingDeleted(*current->body)) return Outcome::kDone;
  const Json& owners = ValueAt(*current->body, {"metadata", "ownerReferences"});
  if (owners.empty()) return Outcome::kDone;
  Json solid = Json::array();
  bool awaited = false;
  for (const Json& owner : owners) {
    const OwnerState state = StateOf(owner, id.key);
    if (state == OwnerState::kSolid) solid.push_back(owner);
    awaited |= state == OwnerState::kWaits;
  }
  if (solid.size() == owners.size()) return Outcome::kDone;
  Json object = *current->body;
  if (!solid.empty()) {
    object["metadata"]["ownerReferences"] = std::move(solid);
    return Send(Update(id, std::move(object)));
  }
  const auto dependents = index_.DependentsOf(TextAt(object, {"metadata", "uid"}));
  if (awaited && !dependents.empty()) return DeleteInForeground(id, std::move(object), dependents);
  // The object's own finalizers decide how its dependents are deleted.
  if (HasFinalizer(object, kOrphanFinalizer)) return Delete(id, object, "Orphan");
  if (HasFinalizer(object, kForegroundFinalizer)) return Delete(id, object, "Foreground");
  return Delete(id, object, "Background");
}

Outcome Controllers::DropOwner(const ObjectId& dependent, const std::string& owner_uid) {
  const ObjectPtr current = objects_.Get(dependent.resource, dependent.key);
  if (current == nullptr) return Outcome::kDone;
  Json object = *current->body;
  Json kept = Json::array();
  for (const Json& owner : ValueAt(object, {"metadata", "ownerReferences"})) {
    if (TextAt(owner, {"uid"}) != owner_uid) kept.push_back(owner);
  }
  if (kept.empty()) {
    object["metadata"].erase("ownerReferences");
  } else {
    object["metadata"]["ownerReferences"] = std::move(kept);
  }
  return Send(Update(dependent, std::move(object)));
}

// A circle of waiting owners would wait for ever: an object no longer holds up its owners when one
// of its dependents waits, too.
Outcome Controllers::DeleteInForeground(const ObjectId& id, Json object,
                                        const std::vector<ObjectId>& dependents) {
  const bool circle = std::any_of(dependents.begin(), dependents.end(), [&](const ObjectId& one) {
    const ObjectPtr held = objects_.Get(one.resource, one.key);
    return held != nullptr && WaitsForDependents(*held->body);
  });
  if (circle) {
    for (Json& owner : object["metadata"]["ownerReferences"]) {
      if (owner.contains("blockOwnerDeletion")) owner["blockOwnerDeletion"] = false;
    }
    const Outcome outcome = Send(Update(id, object));
    if (outcome == Outcome::kRetry) return outcome;
  }
  return Delete(id, object, "Foreground");
}

Outcome Controllers::Release(const ObjectId& id) {
  const ObjectPtr current = objects_.Get(id.resource, id.key);
  if (current == nullptr || !IsBeingDeleted(*current->body)) return Outcome::kDone;
  Json object = *current->body;
  const std::string uid = TextAt(object, {"metadata", "uid"});
  const std::vector<ObjectId> dependents = index_.DependentsOf(uid);
  if (HasFinalizer(object, kOrphanFinalizer)) {
    for (const ObjectId& dependent : dependents) {
      const Outcome outcome = DropOwner(dependent, uid);
      if (outcome == Outcome::kRetry) return outcome;
    }
    DropFinalizer(object, kOrphanFinalizer);
  } else if (HasFinalizer(object, kForegroundFinalizer)) {
    // A deleted dependent, or a dependent that drops its owner, causes another call.
    if (AnyHoldsUp(dependents, uid)) return Outcome::kDone;
    DropFinalizer(object, kForegroundFinalizer);
  } else {
    return Outcome::kDone;
  }
  return Send(Update(id, std::move(object)));
}

// Has the dependents deleted; returns whether a dependent must still go before its owner.
bool Controllers::AnyHoldsUp(const std::vector<ObjectId>& dependents,
                             const std::string& owner_uid) {
  bool any = false;
  for (const ObjectId& dependent : dependents) {
    const ObjectPtr held = objects_.Get(dependent.resource, dependent.key);
    if (held == nullptr) continue;
    if (!IsBeingDeleted(*held->body)) queue_.Add({Task::kCollect, WorkKey(dependent)}, {});
    for (const Json& owner : ValueAt(*held->body, {"metadata", "ownerReferences"})) {
      any |= TextAt(owner, {"uid"}) == owner_uid &&
             ValueAt(owner, {"blockOwnerDeletion"}) == Json(true);
    }
  }
  return any;
}

Outcome Controllers::EmptyNamespace(const std::string& name, WallTime now) {
  const ObjectPtr current = objects_.Get(kNamespaceResource, ObjectKey("", name));
  if (current == nullptr || !IsBeingDeleted(*current->body)) return Outcome::kDone;
  const auto kinds = kinds_();
  bool left = false;
  for (const auto& kind : kinds->kinds()) {
    if (!kind->namespaced || !kind->storage) continue;
    const ResourceName resource{kind->group, kind->plural};
    for (const ObjectPtr& object : objects_.List(resource, name + "/").objects) {
      left = true;
      if (!IsBeingDeleted(*object->body)) {
        Delete({resource, object->key}, *object->body, "Background");
      }
    }
  }
  if (left) {
    // Deletions may take time (graceful pods, finalizers of other programs): look again soon.
    queue_.Add({Task::kNamespace, name}, now + kNamespaceAgain);
    return Outcome::kDone;
  }
  Json object = *current->body;
  Json others = Json::array();
  for (const Json& finalizer : ValueAt(object, {"spec", "finalizers"})) {
    if (finalizer != kNamespaceFinalizer) others.push_back(finalizer);
  }
  if (others.size() == SizeAt(object, {"spec", "finalizers"})) return Outcome::kDone;
  object["spec"]["finalizers"] = std::move(others);
  return Send(Update({kNamespaceResource, name}, std::move(object), "finalize"));
}

Outcome Controllers::WatchNode(const std::string& name, WallTime now) {
  const ObjectPtr current = objects_.Get(kNodeResource, ObjectKey("", name));
  if (current == nullptr) return Outcome::kDone;
  const auto seen = index_.LastHeartbeat(name);
  if (seen && *seen + kNodeGracePeriod > now) {
    queue_.Add({Task::kNode, name}, *seen + kNodeGracePeriod);
    return Outcome::kDone;
  }
  // Silent. The next look sees a renewed lease; then the node's agent writes the status.
  queue_.Add({Task::kNode, name}, now + kNodeGracePeriod);
  Json conditions = Json::array();
  for (const Json& condition : ValueAt(*current->body, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) != "Ready" || TextAt(condition, {"status"}) == "Unknown")
      continue;
    conditions.push_back({{"type", "Ready"},
                          {"status", "Unknown"},
                          {"reason", "NodeStatusUnknown"},
                          {"message", "Kubelet stopped posting node status."},
                          {"lastTransitionTime", FormatTime(now)}});
  }
  if (conditions.empty()) return Outcome::kDone;
  return Send(kube::PatchRequest(kube::kNodes, {"", name}, kube::PatchType::kStrategicMerge,
                                 {{"status", {{"conditions", std::move(conditions)}}}},
                                 {.subresource = "status"}));
}

Outcome Controllers::RemoveLostPod(const std::string& pod_key, WallTime) {
  const ObjectPtr pod = objects_.Get(kPodResource, pod_key);
  if (pod == nullptr) return Outcome::kDone;
  const std::string node = TextAt(*pod->body, {"spec", "nodeName"});
  if (node.empty() || objects_.Get(kNodeResource, ObjectKey("", node)) != nullptr) {
    return Outcome::kDone;
  }
  const Outcome deleted = Delete({kPodResource, pod_key}, *pod->body, "Background", 0);
  if (deleted == Outcome::kDone && !IsFinished(*pod->body)) {
    TellEvicted(*pod->body, kEvictionCauses[1]);
  }
  return deleted;
}

}  // namespace tahoma::controller::apiserver
