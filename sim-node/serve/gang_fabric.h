// The fabric that the ranks of one communicator span: the units in which they are, joined by EFA.
//
//   TAHOMA_ASSIGN_OR_RETURN(const GangFabric gang, GangFabric::Of(places));   // one for each rank
//   gang.ChipsOf(/*rank=*/5, members);          // by their numbers in gang.fabric()
//   gang.ViewFrom(/*rank=*/5, view);            // what a node of that unit says of its links
//
// Units are numbered in the order of ranks. So every node that knows the ranks makes the same
// fabric, and one of a single UltraServer has that UltraServer's numbers.
//
// Thread safety: immutable.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lib/hw/catalogue.h"
#include "sim-node/collective/participants/participant.h"
#include "sim-node/link/fabric.h"

namespace tahoma::sim {

// What nodes of other units must know of a node.
struct NodePlace {
  std::string name{};                         // of the node
  std::string ultra_server{};                 // empty: in none, the node is a unit of its own
  int node_id = 0;                            // its place in the UltraServer, else 0
  std::string instance_type{};                // of the catalogue
  std::vector<std::string> network_layers{};  // three, top first, or none
  EfaTiming efa{};                            // what it takes the network for
  friend bool operator==(const NodePlace&, const NodePlace&) = default;

  // The same for all nodes of a unit: "ultraServer us-1" or "node n3".
  std::string Unit() const;
  // Of the unit. The instance type must be in the catalogue.
  const torus::Shape& torus() const;
};

class GangFabric {
 public:
  // `ranks[r]` is the place of rank r's node; at least one. kFailedPrecondition when chips of
  // different models would be joined, a network node would be in two places, or two nodes take the
  // network for different ones: each would work out times of its own.
  static absl::StatusOr<GangFabric> Of(const std::vector<NodePlace>& ranks);

  // All `ranks` are in one unit with these links.
  static GangFabric OneUnit(TorusLinks links, std::size_t ranks) {
    return {Fabric(std::move(links)), std::vector<int>(ranks, 0)};
  }

  const Fabric& fabric() const { return fabric_; }
  int UnitOf(int rank) const { return units_.at(static_cast<std::size_t>(rank)); }
  // Members by their numbers in the rank's unit, to their numbers in the fabric.
  std::vector<Member> ChipsOf(int rank, std::vector<Member> members) const;
  // The view of a node in the unit of `rank`, with the numbers of nodes and links in the fabric.
  // NICs of the unit have ids from the torus's id_count() on: 2 * chip, and 1 more for the way in.
  NodeLinks ViewFrom(int rank, NodeLinks view) const;

 private:
  GangFabric(Fabric fabric, std::vector<int> units)
      : fabric_(std::move(fabric)), units_(std::move(units)) {}

  Fabric fabric_;
  std::vector<int> units_;  // by rank
};

}  // namespace tahoma::sim
