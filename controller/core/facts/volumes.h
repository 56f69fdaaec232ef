// The places that a pod's volumes leave to the pod, by the rules of kube-scheduler.
//
//   const VolumePlace place = PlaceOf(pod, pod.volumes[0], facts);
//   if (!place.waits.empty()) Say(place.waits);   // persistentvolumeclaim "data" not found
//
// Scope: claims that are bound already, and claims whose volume is made for a selected node.
// Volumes that were made beforehand are not chosen for a claim. Source: kubernetes
// pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go); the sentences are
// those of kube-scheduler where it has any.
//
// Thread safety: values and pure functions.

#pragma once

#include <string>

#include "controller/core/facts/facts.h"

namespace tahoma::controller {

struct VolumePlace {
  std::string waits;      // why the pod cannot be placed yet; empty when it can
  kube::NodeTerms nodes;  // where the pod can use the volume; empty: on every node
};
VolumePlace PlaceOf(const PodFact& pod, const kube::PodVolume& volume, const Facts& facts);

// Returns whether the pod uses the claim. An ephemeral volume uses only the claim that was made for
// the pod.
bool Uses(const PodFact& pod, const VolumeClaimFact& claim);

// Returns whether the claim gets its volume when a node is selected, and none is selected.
bool AwaitsNode(const VolumeClaimFact& claim, const Facts& facts);

}  // namespace tahoma::controller
