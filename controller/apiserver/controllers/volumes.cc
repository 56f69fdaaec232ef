// Queues volumes and claims after events, and reads what workloads/ needs to decide about a volume
// or a claim. Makes the claims of ephemeral volumes.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

// Returns the key of the claim that a volume is for; empty without one.
std::string ClaimKeyOf(const Json& volume) {
  const Json& reference = ValueAt(volume, {"spec", "claimRef"});
  if (!reference.is_object()) return "";
  return ObjectKey(TextAt(reference, {"namespace"}), TextAt(reference, {"name"}));
}

bool IsBound(const Json& claim) { return TextAt(claim, {"status", "phase"}) == "Bound"; }

// Returns the names of the claims that the pod's volumes are of.
std::vector<std::string> ClaimNamesOf(const Json& pod) {
  std::vector<std::string> names;
  for (const Json& volume : kube::ListAt(pod, {"spec", "volumes"})) {
    if (const std::string name = TextAt(volume, {"persistentVolumeClaim", "claimName"});
        !name.empty()) {
      names.push_back(name);
    } else if (volume.contains("ephemeral")) {
      names.push_back(fmt::format("{}-{}", kube::NameOf(pod), TextAt(volume, {"name"})));
    }
  }
  return names;
}

// Returns the claim that an ephemeral volume of the pod is to have.
Json ClaimFor(const Json& pod, const Json& volume) {
  const Json& form = ValueAt(volume, {"ephemeral", "volumeClaimTemplate"});
  Json metadata = {{"name", fmt::format("{}-{}", kube::NameOf(pod), TextAt(volume, {"name"}))},
                   {"namespace", kube::NamespaceOf(pod)},
                   {"ownerReferences", Json::array({OwnerReferenceTo(pod, "v1", "Pod")})}};
  for (const char* field : {"labels", "annotations"}) {
    if (const Json& given = ValueAt(form, {"metadata", field}); !given.is_null()) {
      metadata[field] = given;
    }
  }
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"metadata", std::move(metadata)},
          {"spec", ValueAt(form, {"spec"})}};
}

bool HasEphemeral(const Json& pod) {
  const Json& volumes = kube::ListAt(pod, {"spec", "volumes"});
  return std::ranges::any_of(volumes, [](const Json& one) { return one.contains("ephemeral"); });
}

// The claims go with the pod, by their owner.
Decision EphemeralClaims(const Json& pod, const ObjectStore& objects) {
  Decision decision;
  if (IsBeingDeleted(pod) || IsFinished(pod)) return decision;
  for (const Json& volume : kube::ListAt(pod, {"spec", "volumes"})) {
    if (!volume.contains("ephemeral")) continue;
    Json claim = ClaimFor(pod, volume);
    const std::string key = ObjectKey(kube::NamespaceOf(claim), kube::NameOf(claim));
    if (objects.Get(kVolumeClaimResource, key) != nullptr) continue;
    decision.writes.push_back({.verb = Write::Verb::kCreate,
                               .resource = kube::kVolumeClaims,
                               .object = Shared(std::move(claim))});
  }
  return decision;
}

}  // namespace

void Controllers::QueueUnboundClaims(WallTime now) {
  for (const ObjectPtr& claim : objects_.List(kVolumeClaimResource, "").objects) {
    if (IsBound(*claim->body)) continue;
    queue_.Add({Task::kWorkload, WorkKey({kVolumeClaimResource, claim->key})}, now);
  }
}

void Controllers::QueueForVolumes(const ObjectId& id, const Json* previous, const Json* object,
                                  WallTime now) {
  const auto queue = [&](const ResourceName& resource, const std::string& key) {
    queue_.Add({Task::kWorkload, WorkKey({resource, key})}, now);
  };
  if (id.resource == kStorageClassResource && object != nullptr) QueueUnboundClaims(now);
  if (id.resource == kPodResource && object != nullptr && HasEphemeral(*object)) {
    queue(id.resource, id.key);
  }
  if (id.resource == kPodResource && (object == nullptr || IsFinished(*object))) {
    const Json& pod = object != nullptr ? *object : *previous;
    for (const std::string& name : ClaimNamesOf(pod)) {
      queue(kVolumeClaimResource, ObjectKey(kube::NamespaceOf(pod), name));
    }
  }
  if (id.resource == kVolumeClaimResource) {
    queue(id.resource, id.key);
    const Json& claim = object != nullptr ? *object : *previous;
    if (const std::string name = TextAt(claim, {"spec", "volumeName"}); !name.empty()) {
      queue(kVolumeResource, ObjectKey("", name));
    }
    // A volume may be the claim's although the claim does not name the volume yet.
    if (object != nullptr) return;
    for (const ObjectPtr& volume : objects_.List(kVolumeResource, "").objects) {
      if (ClaimKeyOf(*volume->body) == id.key) queue(kVolumeResource, volume->key);
    }
  }
  if (id.resource != kVolumeResource) return;
  queue(id.resource, id.key);
  for (const Json* one : {previous, object}) {
    if (one == nullptr) continue;
    if (const std::string claim = ClaimKeyOf(*one); !claim.empty()) {
      queue(kVolumeClaimResource, claim);
    }
  }
  const bool was_free = previous != nullptr && ClaimKeyOf(*previous).empty();
  if (object != nullptr && !was_free && ClaimKeyOf(*object).empty()) QueueUnboundClaims(now);
}

// An unbound claim alone looks at all volumes, and a claim at its end alone at all pods of its
// namespace.
ClaimSurroundings Controllers::SurroundingsOf(const Json& claim) const {
  ClaimSurroundings around{.folder = options_.volume_folder};
  const std::string volume_name = TextAt(claim, {"spec", "volumeName"});
  if (!volume_name.empty()) {
    if (const ObjectPtr volume = objects_.Get(kVolumeResource, ObjectKey("", volume_name))) {
      around.volumes.push_back(volume->body);
    }
  } else {
    for (const ObjectPtr& volume : objects_.List(kVolumeResource, "").objects) {
      around.volumes.push_back(volume->body);
    }
  }
  if (const std::string name = TextAt(claim, {"spec", "storageClassName"}); !name.empty()) {
    const ObjectPtr found = objects_.Get(kStorageClassResource, ObjectKey("", name));
    if (found != nullptr) around.storage_class = found->body;
  }
  if (!IsBeingDeleted(claim)) return around;
  const std::string space = fmt::format("{}/", kube::NamespaceOf(claim));
  for (const ObjectPtr& pod : objects_.List(kPodResource, space).objects) {
    if (IsFinished(*pod->body) || TextAt(*pod->body, {"spec", "nodeName"}).empty()) continue;
    for (const std::string& name : ClaimNamesOf(*pod->body)) {
      around.in_use = around.in_use || name == kube::NameOf(claim);
    }
  }
  return around;
}

Decision Controllers::DecideVolume(const ObjectId& id, const Json& object) const {
  if (id.resource == kPodResource) return EphemeralClaims(object, objects_);
  if (id.resource == kVolumeClaimResource) return SyncVolumeClaim(object, SurroundingsOf(object));
  const std::string key = ClaimKeyOf(object);
  const ObjectPtr claim = key.empty() ? nullptr : objects_.Get(kVolumeClaimResource, key);
  return SyncVolume(object, claim ? claim->body.get() : nullptr, options_.volume_folder);
}

}  // namespace tahoma::controller::apiserver
