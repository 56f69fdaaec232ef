#include "lib/kube/objects/volume.h"

#include <algorithm>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {

absl::StatusOr<Volume> ParseVolume(const Json& object) {
  Reading reading(object);
  Volume volume{.name = ParseMetadata(reading.root()).name, .nodes = {}};
  const Field affinity = reading.root().At("spec").At("nodeAffinity");
  volume.nodes = ParseNodeTerms(affinity.At("required"));
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("persistent volume"));
  return volume;
}

absl::StatusOr<VolumeClaim> ParseVolumeClaim(const Json& object) {
  Reading reading(object);
  VolumeClaim claim;
  claim.metadata = ParseMetadata(reading.root());
  const Field metadata = reading.root().At("metadata");
  for (const Field owner : metadata.At("ownerReferences").Items()) {
    if (owner.At("controller").Bool()) claim.owner = owner.At("uid").Text();
  }
  const Field annotations = metadata.At("annotations");
  claim.selected_node = annotations.At(kSelectedNode).Text();
  const Field spec = reading.root().At("spec");
  claim.volume = spec.At("volumeName").Text();
  // The annotation is older than the field and goes first (component-helpers,
  // GetPersistentVolumeClaimClass).
  claim.storage_class = annotations.At("volume.beta.kubernetes.io/storage-class").Text();
  if (claim.storage_class.empty()) claim.storage_class = spec.At("storageClassName").Text();
  const std::string_view phase = reading.root().At("status").At("phase").Text();
  claim.bound = phase == "Bound" && !claim.volume.empty();
  claim.lost = phase == "Lost";
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("persistent volume claim"));
  return claim;
}

absl::StatusOr<StorageClass> ParseStorageClass(const Json& object) {
  Reading reading(object);
  StorageClass parsed;
  parsed.name = ParseMetadata(reading.root()).name;
  parsed.waits = reading.root().At("volumeBindingMode").Text() == "WaitForFirstConsumer";
  const std::string_view provisioner = reading.root().At("provisioner").Text();
  parsed.provisions = !provisioner.empty() && provisioner != "kubernetes.io/no-provisioner";
  for (const Field term : reading.root().At("allowedTopologies").Items()) {
    std::vector<NodeRequirement>& added = parsed.nodes.emplace_back();
    for (const Field one : term.At("matchLabelExpressions").Items()) {
      std::vector<std::string> values = one.At("values").Texts();
      std::ranges::sort(values);
      added.push_back({.key = std::string(one.At("key").Text()), .values = std::move(values)});
    }
  }
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("storage class"));
  return parsed;
}

}  // namespace tahoma::kube
