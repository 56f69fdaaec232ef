// The hosts of Capacity Blocks, read from the state of the fleet.
//
//   BlockHosts hosts;
//   hosts.Update(cluster, book, now);       // tells the book of every domain that has changed
//
// A host is a topology domain of a product's type: an UltraServer of trn2u, or a lone instance. Its
// zone is the label topology.kubernetes.io/zone of its first node, its cell the top of the network
// layers that its devices name (docs/reference/capacity-blocks.md#counting).
//
// Scope: reading. book.h decides.
//
// Thread safety: belongs to one thread.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/zone.h"
#include "controller/reserve/block_time.h"
#include "controller/reserve/book.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Returns the host that a domain is; nullopt when none of its kind is sold.
std::optional<HostState> HostOf(const ClusterState& cluster, DomainId id);

class BlockHosts {
 public:
  // Returns the reservations of blocks that have one of the hosts that changed. `now` is the book's
  // time; the cluster's is wall time.
  std::set<std::string> Update(const ClusterState& cluster, BlockBook& book, WallTime now,
                               const BlockTime& time = {});

 private:
  ClusterState seen_;
  std::vector<std::string> names_;  // of the hosts that the book knows, by domain
};

}  // namespace tahoma::controller
