#include "lib/kube/objects/node.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::kube {

absl::StatusOr<Node> ParseNode(const Json& object, const std::string& annotation) {
  Reading reading(object);
  Node node;
  const Field metadata = reading.root().Required("metadata");
  node.name = metadata.Required("name").Text();
  node.labels = ParseLabels(metadata);
  if (!annotation.empty()) node.annotation = metadata.At("annotations").At(annotation).Text();
  const Field spec = reading.root().At("spec");
  for (const Field taint : spec.At("taints").Items()) node.taints.push_back(ParseTaint(taint));
  node.schedulable = !spec.At("unschedulable").Bool();
  for (const Field condition : reading.root().At("status").At("conditions").Items()) {
    if (condition.At("type").Text() == "Ready" && condition.At("status").Text() != "True") {
      node.ready = false;
    }
  }
  const Field allocatable = reading.root().At("status").At("allocatable");
  if (allocatable.has_value()) node.allocatable = ParseAmounts(allocatable);
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("node"));
  return node;
}

}  // namespace tahoma::kube
