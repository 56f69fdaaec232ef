// A Pod as a scheduler sees it: allowed nodes, claims, and progress.
//
//   Reading reading(object);
//   const Pod pod = ParsePod(reading.root());
//   for (const PodClaim& claim : pod.claims) …
//
// Thread safety: values and pure functions.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/extended_resource.h"
#include "lib/kube/objects/metadata.h"
#include "lib/kube/objects/node_selector.h"
#include "lib/kube/objects/taint.h"

namespace tahoma::kube {

// A pod's spec.nodeSelector and required node affinity. A node must meet every requirement in `all`
// and, unless `any_term` is empty, every requirement of one of its terms.
struct NodeSelection {
  std::vector<NodeRequirement> all;
  NodeTerms any_term;
  std::vector<Toleration> tolerations;  // the pod's, against taints of the Node
};

// An entry of a pod's spec.resourceClaims, or the claim of the pod's extended resources.
struct PodClaim {
  std::string entry;  // the entry's name in the pod; empty: of the extended resources
  std::string claim;  // the ResourceClaim; empty until the template's claim is made
  bool none = false;  // the template's status says that no claim is needed
};

// A PersistentVolumeClaim that a pod uses.
struct PodVolume {
  std::string claim;
  bool ephemeral = false;  // the claim is made for the pod, and must be the pod's
};

struct Pod {
  ObjectMeta metadata;
  std::string node;  // spec.nodeName; empty until bound
  std::string phase;
  std::int32_t priority = 0;
  std::int64_t grace_seconds = 30;  // spec.terminationGracePeriodSeconds
  bool gated = false;               // has spec.schedulingGates
  NodeSelection selection;
  std::vector<PodClaim> claims;
  std::vector<PodVolume> volumes;
  std::vector<ExtendedAsk> extended_asks;
  std::optional<ExtendedClaimStatus> extended_claim;
  // The message of the condition PodScheduled=False.
  std::string unschedulable_message;
  // The time since which the condition PodScheduled is True.
  std::optional<WallTime> scheduled_at;
  // The condition Ready is True; without that condition, the phase is Running.
  bool ready = false;
  // Why the pod failed, or why a container of a pod that is not ready waits, in one line of at most
  // 300 bytes: "container main: CreateContainerConfigError: configmap \"c\" not found".
  std::string trouble;
  bool controlled = false;  // a Job or another controller owns the pod and replaces it
};

Pod ParsePod(Field object);

// Returns the claims of a pod's spec, and last the claim of the pod's extended resources. The pod's
// status names the claims made from templates, and the last claim.
std::vector<PodClaim> ParsePodClaims(Field object);

}  // namespace tahoma::kube
