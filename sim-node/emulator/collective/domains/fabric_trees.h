// Trees over the chips of few topology domains: in each domain those of a packing
// (emulator/collective/algorithms/packing.h), joined over pairs of NICs (nic_pairs.h).
//
//   auto trees = PackFabricTrees(set, fabric, /*most=*/512);
//   trees->trees[0].branches[0].parent;     // the root, or one of two
//   trees->links[branch.up].rate;           // of what takes the sum of a branch to its parent
//
// Every cable and pair of NICs has trees in proportion to its rate. A tree over two domains has two
// roots, the ends of a NIC pair: they swap their sums. One over more has one root.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

// One direction of a cable, or what a NIC has of its rate for another.
struct FabricLink {
  torus::ChipIndex from;
  torus::ChipIndex to;
  std::uint64_t rate = 0;
  bool efa = false;
};

struct FabricTree {
  struct Branch {
    torus::ChipIndex chip;
    torus::ChipIndex parent;
    std::uint32_t up = 0;  // links
    std::uint32_t down = 0;
  };
  // The chips at the ends of a NIC pair.
  struct Roots {
    torus::ChipIndex one;  // of the first group
    torus::ChipIndex other;
    std::uint32_t there = 0;  // links
    std::uint32_t back = 0;
  };
  std::vector<Branch> branches;  // parents before their children
  std::optional<Roots> swap;     // of two domains
};

struct FabricTrees {
  std::vector<FabricLink> links;
  std::vector<FabricTree> trees;

  std::uint64_t fastest() const;  // the rate of the fastest NeuronLink
};

// Packs at most so many trees, and at least nine tenths of that. kFailedPrecondition when cables do
// not join the chips of a domain, or no NIC of a domain is up.
absl::StatusOr<FabricTrees> PackFabricTrees(const DomainSet& set, const Fabric& fabric,
                                            std::size_t most);

}  // namespace tahoma::sim
