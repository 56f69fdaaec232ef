// Persistent volumes, claims to them and their classes as a scheduler sees them: which nodes may
// use a volume, and who waits for whom.
//
//   absl::StatusOr<Volume> volume = ParseVolume(object);
//   absl::StatusOr<VolumeClaim> claim = ParseVolumeClaim(object);
//   if (!claim->bound && storage_class.waits && claim->selected_node.empty()) …
//
// Source: kubernetes pkg/scheduler/framework/plugins/volumebinding.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "lib/base/json_fwd.h"
#include "lib/kube/objects/metadata.h"
#include "lib/kube/objects/pod.h"

namespace tahoma::kube {

// Names the node for which a claim's volume is to be made. A scheduler writes the annotation, and
// the provisioner removes the annotation when no volume can be made there.
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";

// A PersistentVolume.
struct Volume {
  std::string name;
  NodeTerms nodes;  // required node affinity; empty: every node

  friend bool operator==(const Volume&, const Volume&) = default;
};

// A PersistentVolumeClaim.
struct VolumeClaim {
  ObjectMeta metadata;
  std::string volume;         // spec.volumeName; empty until it is bound, or asked for
  bool bound = false;         // phase Bound
  bool lost = false;          // phase Lost
  std::string storage_class;  // empty without one
  std::string selected_node;  // kSelectedNode
  std::string owner;          // the uid of the controller that owns the claim; empty without one
};

struct StorageClass {
  std::string name;
  bool waits = false;      // volumeBindingMode WaitForFirstConsumer
  bool provisions = true;  // has a provisioner; else its volumes are made beforehand
  NodeTerms nodes;         // allowedTopologies; empty: every node

  friend bool operator==(const StorageClass&, const StorageClass&) = default;
};

absl::StatusOr<Volume> ParseVolume(const Json& object);
absl::StatusOr<VolumeClaim> ParseVolumeClaim(const Json& object);
absl::StatusOr<StorageClass> ParseStorageClass(const Json& object);

}  // namespace tahoma::kube
