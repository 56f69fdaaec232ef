// Blocks, offerings and extensions of the book (controller/reserve) as EC2's objects.
//
//   const Offering offering = OfferingOf(found);
//   const std::vector<Block> blocks = BlocksOf(bought);       // one, or one for each UltraServer
//   const Reservation reservation = ReservationOf(bought, "111122223333", hosts);
//
// Scope: pure functions of values.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/ec2/requests.h"
#include "controller/ec2/values.h"
#include "controller/model/cluster.h"
#include "controller/model/persistent.h"
#include "controller/reserve/block.h"
#include "controller/reserve/book.h"
#include "controller/reserve/host_table.h"
#include "controller/reserve/offering.h"
#include "controller/reserve/search.h"

namespace tahoma::controller::ec2 {

using Hosts = PersistentMap<std::string, HostState>;

// One query for each instance type, or one for UltraServers.
std::vector<OfferingQuery> QueriesOf(const OfferingSearch& search);
PurchaseOrder OrderOf(const BlockPurchase& purchase, const std::string& owner);

Offering OfferingOf(const controller::Offering& offering);
// In the order of the block's ids.
std::vector<Block> BlocksOf(const controller::Block& block);
// `account` owns it. Instances of hosts on which something runs are used; those of hosts that are
// not healthy, or not there, are not available.
Reservation ReservationOf(const controller::Block& block, const std::string& account,
                          const Hosts& hosts);
// One for each of the block's ids.
std::vector<BlockStatus> StatusesOf(const controller::Block& block, const Hosts& hosts);
ExtensionOffering ExtensionOfferingOf(const controller::ExtensionOffering& offering,
                                      const controller::Block& block);
Extension ExtensionOf(const controller::Extension& extension, const controller::Block& block);
// `block_id`: of the block that has the instance; empty when there is none.
InstanceTopology InstanceOf(const Node& node, const std::string& block_id);

}  // namespace tahoma::controller::ec2
