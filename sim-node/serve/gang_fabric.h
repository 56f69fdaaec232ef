// The fabric of a communicator's ranks: the ranks' domains, joined by EFA.
//
// Domains are numbered in the order of ranks, so every node with the same ranks makes the same
// fabric. A fabric of a single UltraServer numbers chips and links as the UltraServer does.
//
// Thread safety: immutable.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lib/hw/catalogue.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/participants/participant.h"

namespace tahoma::sim {

// A node's place in the network, as nodes of other domains need it.
struct NodePlace {
  std::string name{};           // of the node
  std::string ultra_server{};   // empty: no UltraServer, the node is a domain of its own
  int node_id = 0;              // place in the UltraServer, else 0
  std::string instance_type{};  // of the catalogue
  std::vector<std::string> network_layers{};  // three, top first, or none
  EfaTiming efa{};                            // the node's configured EFA timing
  friend bool operator==(const NodePlace&, const NodePlace&) = default;

  // Names the domain, with the same name on all its nodes: "ultraServer us-1" or "node n3".
  std::string Domain() const;
  // Returns the torus of the domain. The instance type must be in the catalogue.
  const torus::Shape& torus() const;
};

class GangFabric {
 public:
  // `ranks[r]` is the place of rank r's node; at least one. kFailedPrecondition when the chips are
  // of different models, when a network node has two parents, or when two nodes have different EFA
  // timings: each node would compute other times.
  static absl::StatusOr<GangFabric> Of(const std::vector<NodePlace>& ranks);

  // Returns the fabric of `ranks` ranks in a single domain with these links.
  static GangFabric OneDomain(TorusLinks links, std::size_t ranks) {
    return {Fabric(std::move(links)), std::vector<int>(ranks, 0)};
  }

  const Fabric& fabric() const { return fabric_; }
  int DomainOf(int rank) const { return domains_.at(static_cast<std::size_t>(rank)); }
  // Renumbers members from the chips of the rank's domain to the chips of the fabric.
  std::vector<Member> ChipsOf(int rank, std::vector<Member> members) const;
  // Renumbers the view of a node in the domain of `rank`: nodes, links and chips get their numbers
  // in the fabric. In `view`, the NIC of chip c sends as link id_count() + 2c of the torus and
  // receives as link id_count() + 2c + 1.
  NodeLinks ViewFrom(int rank, NodeLinks view) const;

 private:
  GangFabric(Fabric fabric, std::vector<int> domains)
      : fabric_(std::move(fabric)), domains_(std::move(domains)) {}

  Fabric fabric_;
  std::vector<int> domains_;  // by rank
};

}  // namespace tahoma::sim
