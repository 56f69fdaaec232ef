// Blocks, offerings and extensions of the book (controller/reserve) as EC2's objects.
//
// Scope: pure functions of values.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "controller/ec2/requests.h"
#include "controller/ec2/values.h"
#include "controller/model/cluster.h"
#include "controller/reserve/block.h"
#include "controller/reserve/book.h"
#include "controller/reserve/host_table.h"
#include "controller/reserve/offering.h"
#include "controller/reserve/search.h"

namespace tahoma::controller::ec2 {

// Finds a host's present state by its name; nullopt when there is no such host.
using FindHost = std::function<std::optional<HostState>(const std::string& name)>;

// One query for each instance type that is sold, or one for UltraServers.
std::vector<OfferingQuery> QueriesOf(const OfferingSearch& search);
PurchaseOrder OrderOf(const BlockPurchase& purchase, const std::string& owner);

Ec2Offering OfferingOf(const Offering& offering, const OfferingKey& key);
// The Capacity Block with the id at place `part` of the block's ids.
Ec2Block BlockOf(const Block& block, std::size_t part);
BlockStatus StatusOf(const Block& block, std::size_t part, const FindHost& find_host);
// `account` owns the reservation. Instances of hosts in use are used; instances of hosts that are
// unhealthy or gone are not available.
Reservation ReservationOf(const Block& block, const std::string& account,
                          const FindHost& find_host);
ExtensionOffering ExtensionOfferingOf(const controller::ExtensionOffering& offering,
                                      const Block& block, const OfferingKey& key);
Extension ExtensionOf(const controller::Extension& extension, const Block& block);
// `block_id`: of the block that has the instance; empty without a block.
InstanceTopology InstanceOf(const Node& node, const std::string& block_id);

}  // namespace tahoma::controller::ec2
