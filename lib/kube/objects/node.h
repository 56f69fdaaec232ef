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
  std::string annotation;   // the value of the one that the reader asked for; empty without it

  friend bool operator==(const Node&, const Node&) = default;
};

// `annotation` is the key of the one that the reader wants: a node has many, which change often.
absl::StatusOr<Node> ParseNode(const Json& object, const std::string& annotation = "");

}  // namespace tahoma::kube
