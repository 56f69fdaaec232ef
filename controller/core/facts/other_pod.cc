#include "controller/core/facts/other_pod.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"

namespace tahoma::controller {

absl::StatusOr<OtherPodTraits> ParseOtherPod(const Json& object) {
  kube::Reading reading(object);
  const kube::Field metadata = reading.root().At("metadata");
  OtherPodTraits traits{.needs = kube::ParsePodNeeds(reading.root()),
                        .ns = std::string(metadata.At("namespace").Text()),
                        .labels = kube::ParseLabels(metadata),
                        .deleting = metadata.At("deletionTimestamp").has_value()};
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("pod"));
  kube::Reading of_affinity(object);
  kube::PodAffinity affinity = kube::ParsePodAffinity(of_affinity.root().At("spec"));
  if (of_affinity.status().ok()) traits.apart = std::move(affinity.apart);
  return traits;
}

}  // namespace tahoma::controller
