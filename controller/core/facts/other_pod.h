// The traits of a pod of another scheduler: everything Tahoma must know of the pod except the node.
//
//   TAHOMA_ASSIGN_OR_RETURN(OtherPodTraits traits, ParseOtherPod(object));
//   cluster.AddUse(node, traits.needs);
//
// A cluster has far more pods of other schedulers than nodes, and the pods of one Deployment or
// DaemonSet have equal traits. Equal traits are kept once.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/objects/metadata.h"
#include "lib/kube/objects/pod_affinity.h"
#include "lib/kube/objects/pod_needs.h"

namespace tahoma::controller {

struct OtherPodTraits {
  kube::PodNeeds needs = {};
  std::string ns = {};
  kube::Labels labels = {};
  bool deleting = false;
  std::vector<kube::PodAffinityTerm> apart = {};  // required anti-affinity

  friend bool operator==(const OtherPodTraits&, const OtherPodTraits&) = default;
  // Pods that differ only in `apart` are rare.
  template <typename H>
  friend H AbslHashValue(H h, const OtherPodTraits& traits) {
    return H::combine(std::move(h), traits.needs, traits.ns, traits.labels, traits.deleting);
  }
};

// Fails with kInvalidArgument when a field has another type. Leaves anti-affinity out that
// kube::ParsePodAffinity cannot follow, because the pod takes room on the node all the same.
absl::StatusOr<OtherPodTraits> ParseOtherPod(const Json& object);

}  // namespace tahoma::controller
