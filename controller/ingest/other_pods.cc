#include "controller/ingest/other_pods.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller {

OtherPods::Needs OtherPods::KindOf(kube::PodNeeds needs) {
  if (const auto known = kinds_.find(needs); known != kinds_.end()) return *known;
  if (kinds_.size() >= sweep_at_) {
    absl::erase_if(kinds_, [](const Needs& kind) { return kind.use_count() == 1; });
    sweep_at_ = std::max<std::size_t>(64, 2 * kinds_.size());
  }
  return *kinds_.insert(std::make_shared<const kube::PodNeeds>(std::move(needs))).first;
}

std::optional<OtherPodMoved> OtherPods::OnPod(const kube::ObjectKey& key, const std::string& node,
                                              kube::PodNeeds needs) {
  if (node.empty()) return OnPodGone(key);
  Placed& placed = pods_[key];
  if (placed.node == node && *placed.needs == needs) return std::nullopt;
  OtherPodMoved moved{.left = placed.node, .removed = placed.needs, .node = node, .added = nullptr};
  placed = {.node = node, .needs = KindOf(std::move(needs))};
  moved.added = placed.needs;
  return moved;
}

std::optional<OtherPodMoved> OtherPods::OnPodGone(const kube::ObjectKey& key) {
  const auto known = pods_.find(key);
  if (known == pods_.end()) return std::nullopt;
  OtherPodMoved moved{
      .left = known->second.node, .removed = known->second.needs, .node = "", .added = nullptr};
  pods_.erase(known);
  return moved;
}

}  // namespace tahoma::controller
