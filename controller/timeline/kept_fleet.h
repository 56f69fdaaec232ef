// The fleet with the hardware of some promises held, at the cost of what has changed since the last
// look.
//
//   KeptFleet kept;
//   const ClusterState& fleet = kept.Of(cluster, promises);   // valid until the next call
//
// Each holding of these promises is on one node. A node that does not exist is left out.
//
// Scope: maintenance windows over many nodes, which bind most gangs. The few promises to gangs are
// held in copies of this fleet.
//
// Thread safety: one thread at a time.

#pragma once

#include <memory>
#include <span>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/timeline/promise.h"

namespace tahoma::controller {

class KeptFleet {
 public:
  using List = std::span<const std::shared_ptr<const Promise>>;

  const ClusterState& Of(const ClusterState& cluster, List promises);

 private:
  void Release(const Promise& promise);
  void Hold(const Promise& promise);

  ClusterState cluster_;                              // as of the last call
  ClusterState fleet_;                                // the same with `held_`
  std::vector<std::shared_ptr<const Promise>> held_;  // ascending by address
};

}  // namespace tahoma::controller
