#include "controller/ingest/other_pods.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller {

OtherPods::Traits OtherPods::KindOf(OtherPodTraits traits) {
  if (const auto known = kinds_.find(traits); known != kinds_.end()) return *known;
  if (kinds_.size() >= sweep_at_) {
    absl::erase_if(kinds_, [](const Traits& kind) { return kind.use_count() == 1; });
    sweep_at_ = std::max<std::size_t>(64, 2 * kinds_.size());
  }
  return *kinds_.insert(std::make_shared<const OtherPodTraits>(std::move(traits))).first;
}

std::optional<OtherPodMoved> OtherPods::OnPod(const kube::ObjectKey& key, const std::string& node,
                                              OtherPodTraits traits) {
  if (node.empty()) return OnPodGone(key);
  Placed& placed = pods_[key];
  if (placed.node == node && *placed.traits == traits) return std::nullopt;
  OtherPodMoved moved{
      .left = placed.node, .removed = placed.traits, .node = node, .added = nullptr};
  placed = {.node = node, .traits = KindOf(std::move(traits))};
  moved.added = placed.traits;
  return moved;
}

std::optional<OtherPodMoved> OtherPods::OnPodGone(const kube::ObjectKey& key) {
  const auto known = pods_.find(key);
  if (known == pods_.end()) return std::nullopt;
  OtherPodMoved moved{
      .left = known->second.node, .removed = known->second.traits, .node = "", .added = nullptr};
  pods_.erase(known);
  return moved;
}

}  // namespace tahoma::controller
