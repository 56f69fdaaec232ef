// A Node as a scheduler sees it: its labels, its taints, and whether it takes pods.
//
//   absl::StatusOr<Node> node = ParseNode(object);
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/objects/taint.h"

namespace tahoma::kube {

struct Node {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // sorted by key
  std::vector<Taint> taints;
  bool schedulable = true;  // not cordoned: spec.unschedulable is not set
  bool ready = true;        // has no condition Ready that is not True

  friend bool operator==(const Node&, const Node&) = default;
};

absl::StatusOr<Node> ParseNode(const Json& object);

}  // namespace tahoma::kube
