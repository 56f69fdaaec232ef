// The status of CapacityReservations and UltraServers: a block's reservation in EC2's words, and
// the hardware with its owner.
//
// Members without a value are null.
//
// Thread safety: pure functions.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/model/cluster.h"
#include "controller/reserve/block.h"
#include "controller/reserve/block_time.h"
#include "controller/reserve/block_view.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

inline const kube::Resource kCapacityReservations{
    .group = "tahoma.dev", .version = "v1alpha1", .plural = "capacityreservations"};
inline const kube::Resource kUltraServers{
    .group = "tahoma.dev", .version = "v1alpha1", .plural = "ultraservers", .namespaced = false};

// `view.block` must be set.
Json ReservationStatus(const BlockView& view);

// The blocks that have an UltraServer's hardware; nullptr where none is known.
struct Owners {
  const Block* now = nullptr;
  const Block* next = nullptr;  // among blocks whose hosts are chosen
};
// All times are block times, also kept_from.
Json UltraServerStatus(const ClusterState& cluster, DomainId id, const Owners& owners,
                       const BlockTime& time = {});

// Returns an UltraServer's health in a word: "OK"; "Impaired" where a chip or a link is broken or a
// node takes no pods; "Incomplete" where a node is missing.
std::string_view HealthOf(const ClusterState& cluster, const DomainState& domain);

// Returns the name of an UltraServer's object: its id, or the legal part of the id with a digest.
std::string UltraServerName(const std::string& id);

}  // namespace tahoma::controller
