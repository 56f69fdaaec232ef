// Follows the Capacity Blocks of every leader, and reports forbidden changes.
//
// The checks count by themselves, by intervals of time and not by the slots of the book:
//
//   - Sold hosts are no more than the healthy hosts, at the moment of the sale.
//   - No host has two owners at a time, and no host runs a gang of another owner.
//   - A block's state moves along docs/reference/capacity-blocks.md#states, nothing that was bought
//     changes, and fees are rate times time.
//   - An acknowledged block is there for good, whoever leads. A token has bought one block.
//   - A gang that names an active block does not wait at rest while only gangs that went on into
//     the block run on its hosts.
//   - Objects show the book's values, whatever a client has written into their status.
//
// Thread safety: one thread.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/core/journal/gang_decision.h"
#include "controller/core/snapshot.h"
#include "tests/sim/api_host.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

class BlockChecks {
 public:
  BlockChecks(World& world, ApiHost& api) : world_(world), api_(api) {}

  void OnBegin(const std::string& controller) { lives_.erase(controller); }
  void OnStep(const std::string& controller, const controller::Snapshot& snapshot);
  // A gang gets a place from the core with this last snapshot.
  void OnDecided(const controller::GangDecision& decision, const controller::Snapshot& snapshot);
  void OnAcknowledged(const controller::Block& block);
  // A user has deleted the block's object after its end.
  void OnDeleted(const std::string& name) { deleted_[name] = true; }

  void AtRest(const controller::Snapshot& snapshot);

 private:
  using Blocks = std::map<std::string, std::shared_ptr<const controller::Block>>;

  void CheckBlock(const controller::Block& block, WallTime now);
  void CheckStep(const controller::Block& before, const controller::Block& after);
  void CheckOwners(const Blocks& blocks);
  void CheckSale(const Blocks& blocks, const controller::Block& sold, WallTime from, WallTime to,
                 const controller::ClusterState& fleet);
  void CheckPublished(const Blocks& blocks);
  void CheckWaiting(const controller::Snapshot& snapshot);
  void CheckAcknowledged(const Blocks& blocks, WallTime now);

  World& world_;
  ApiHost& api_;
  std::map<std::string, Blocks> lives_;  // by controller: the blocks after its last step
  Blocks firsts_;                        // each block when first seen
  Blocks lasts_;                         // … when last seen
  Blocks acknowledged_;                  // each block as last acknowledged to a buyer
  std::map<std::string, bool> deleted_;  // by name of the object
};

}  // namespace tahoma::simulation
