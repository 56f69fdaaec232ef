#include "controller/timeline/kept_fleet.h"

#include <algorithm>
#include <iterator>

namespace tahoma::controller {

void KeptFleet::Release(const Promise& promise) {
  for (const auto& holding : promise.holdings) fleet_.Release(holding->claim_uid);
}

void KeptFleet::Hold(const Promise& promise) {
  for (const auto& holding : promise.holdings) {
    const auto id = fleet_.FindNode(holding->devices.front().node);
    if (id && fleet_.node(*id).node != nullptr) fleet_.Hold(holding);
  }
}

const ClusterState& KeptFleet::Of(const ClusterState& cluster, List promises) {
  fleet_.Follow(cluster_, cluster);
  cluster_ = cluster;
  std::vector<std::shared_ptr<const Promise>> next(promises.begin(), promises.end());
  std::ranges::sort(next);
  // A promise in the place of another has the same claim uids: release first.
  for (const auto& promise : held_) {
    if (!std::ranges::binary_search(next, promise)) Release(*promise);
  }
  // In the order of the list: addresses are others in each process.
  for (const auto& promise : promises) {
    if (!std::ranges::binary_search(held_, promise)) Hold(*promise);
  }
  held_ = std::move(next);
  return fleet_;
}

}  // namespace tahoma::controller
