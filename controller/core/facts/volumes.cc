#include "controller/core/facts/volumes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tahoma::controller {
namespace {

std::string NoVolume(const VolumeClaimFact& claim) {
  return fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
                     claim.key.name, claim.volume);
}

// Returns the class of a claim that gets its volume after the node of a pod is known; nullptr: the
// claim is to be bound before. A claim that asks for a volume by name is one of these.
const StorageClassFact* DelayingClass(const VolumeClaimFact& claim, const Facts& facts) {
  const auto found = facts.storage_classes.find(claim.storage_class);
  if (found == facts.storage_classes.end() || !found->second->waits) return nullptr;
  return claim.volume.empty() ? found->second.get() : nullptr;
}

std::string WhyUnusable(const PodFact& pod, const kube::PodVolume& volume,
                        const VolumeClaimFact* claim) {
  if (claim == nullptr && volume.ephemeral) {
    return fmt::format(
        "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
        volume.claim);
  }
  if (claim == nullptr) return fmt::format("persistentvolumeclaim \"{}\" not found", volume.claim);
  if (claim->lost) return NoVolume(*claim);
  if (claim->deleting) {
    return fmt::format("persistentvolumeclaim \"{}\" is being deleted", volume.claim);
  }
  if (volume.ephemeral && claim->owner != pod.uid) {
    return fmt::format("PVC {} was not created for pod {} (pod is not owner)", ToString(claim->key),
                       ToString(pod.key));
  }
  return "";
}

}  // namespace

VolumePlace PlaceOf(const PodFact& pod, const kube::PodVolume& volume, const Facts& facts) {
  const auto claim = facts.volume_claims.Find(VolumeClaimKey{pod.key.ns, volume.claim});
  if (std::string why = WhyUnusable(pod, volume, claim.get()); !why.empty()) {
    return {.waits = std::move(why), .nodes = {}};
  }
  if (claim->bound) {
    const auto bound = facts.volumes.find(claim->volume);
    if (bound == facts.volumes.end()) return {.waits = NoVolume(*claim), .nodes = {}};
    return {.waits = "", .nodes = bound->second->nodes};
  }
  const StorageClassFact* made = DelayingClass(*claim, facts);
  if (made == nullptr) {
    return {.waits = "pod has unbound immediate PersistentVolumeClaims: " + volume.claim,
            .nodes = {}};
  }
  if (!made->provisions) {
    return {.waits = fmt::format("persistentvolumeclaim \"{}\" is not bound, and StorageClass {} "
                                 "has no provisioner: name the claim in the claimRef of a volume",
                                 volume.claim, made->name),
            .nodes = {}};
  }
  if (claim->selected_node.empty()) return {.waits = "", .nodes = made->nodes};
  return {.waits = "",
          .nodes = {{{.key = "metadata.name", .values = {claim->selected_node}, .field = true}}}};
}

bool Uses(const PodFact& pod, const VolumeClaimFact& claim) {
  return std::ranges::any_of(pod.volumes, [&](const kube::PodVolume& volume) {
    return volume.claim == claim.key.name && (!volume.ephemeral || claim.owner == pod.uid);
  });
}

bool AwaitsNode(const VolumeClaimFact& claim, const Facts& facts) {
  if (claim.bound || claim.lost || claim.deleting || !claim.selected_node.empty()) return false;
  const StorageClassFact* made = DelayingClass(claim, facts);
  return made != nullptr && made->provisions;
}

}  // namespace tahoma::controller
