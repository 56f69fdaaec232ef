// Availability zones: their names, regions and ids.
//
//   ZoneOf(node);                // "us-east-2a", its label topology.kubernetes.io/zone
//   RegionOf("us-east-2a");      // "us-east-2"
//   FormZoneId("us-east-2a");    // "use2-az1"
//
// EC2 forms a zone's id from the region's abbreviation, and maps letters to numbers in another way
// for each account. A node's label topology.k8s.aws/zone-id says what the account has; FormZoneId
// is for fleets without it, and counts the letters.
//
// Scope: names. Which zones there are is the fleet's.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>

#include "controller/model/inventory.h"

namespace tahoma::controller {

// The label with the id of a node's availability zone.
inline constexpr std::string_view kZoneIdLabel = "topology.k8s.aws/zone-id";
// The zone of nodes that name none.
inline constexpr const char* kDefaultZone = "tahoma-1a";

std::string ZoneOf(const Node& node);
// Returns the zone's name where the name does not begin with a region.
std::string RegionOf(std::string_view zone);
// Likewise.
std::string FormZoneId(std::string_view zone);

}  // namespace tahoma::controller
