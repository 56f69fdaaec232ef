#include "dra-plugin/slices/node_labeller.h"

#include <spdlog/spdlog.h>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"
#include "lib/wire/node_labels.h"

namespace tahoma::dra {

absl::Status NodeLabeller::Publish(const wire::Inventory& inventory) {
  const absl::StatusOr<Json> node = api_.Get(kube::kNodes, {"", node_name_});
  if (!node.ok()) return Annotate(node.status(), fmt::format("reading node {}", node_name_));
  const Json* metadata = FindMember(*node, "metadata");
  const Json* labels = metadata == nullptr ? nullptr : FindMember(*metadata, "labels");
  Json changes = Json::object();
  for (const auto& [name, value] : wire::InstanceLabels(inventory)) {
    const Json* there = labels == nullptr ? nullptr : FindMember(*labels, name);
    const Json wanted = value ? Json(*value) : Json();
    if (there == nullptr ? value.has_value() : *there != wanted) changes[name] = wanted;
  }
  if (changes.empty()) return absl::OkStatus();
  const std::size_t count = changes.size();
  const Json patch = {{"metadata", {{"labels", std::move(changes)}}}};
  const auto written = api_.Patch(kube::kNodes, {"", node_name_}, kube::PatchType::kMerge, patch);
  if (!written.ok())
    return Annotate(written.status(), fmt::format("labelling node {}", node_name_));
  spdlog::info("node {}: {} labels are as its instance is now", node_name_, count);
  return absl::OkStatus();
}

}  // namespace tahoma::dra
