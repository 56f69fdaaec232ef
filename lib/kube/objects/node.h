// A Node as a scheduler sees it: labels, taints, resources, and readiness for pods.
//
//   absl::StatusOr<Node> node = ParseNode(object);
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/objects/pod_needs.h"
#include "lib/kube/objects/taint.h"

namespace tahoma::kube {

struct Node {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // sorted by key
  std::vector<Taint> taints;
  bool schedulable = true;  // not cordoned: spec.unschedulable is not set
  bool ready = true;        // no condition Ready with a status other than True
  // What pods may use: status.allocatable; nullopt before the kubelet has said.
  std::optional<Amounts> allocatable;
  std::string annotation;  // the value of the annotation given to ParseNode; empty when absent

  friend bool operator==(const Node&, const Node&) = default;
};

// `annotation` is the key of the annotation to read: a node has many annotations, and most change
// often.
absl::StatusOr<Node> ParseNode(const Json& object, const std::string& annotation = "");

}  // namespace tahoma::kube
