// The algorithms of collectives, each as the steps of one of two phases.
//
//   const Layout layout = Layout::Weighted(ranks_per_chip, elements, element_bytes);
//   auto steps = Steps(Algorithm::kRdh, Phase::kReduceScatter, set, links, layout);
//
// The buffer is cut into one block per chip. Reduce-scatter leaves each chip the combination of
// everybody's version of its own block; all-gather gives everybody all blocks. An all-reduce is one
// after the other.
//
// mesh   every chip sends to every other directly, one step; the hardware forwards
// rdh    recursive halving and doubling over the dimensions of the hypercube that a box is, one
//        link per step; lanes.h says how that fills all links
// ring   round Hamiltonian cycles in both directions, n - 1 steps (torus-and-links 2.2 a)
// tree   each part of a block along a tree of its own, on any set that hangs together (trees.h)
// hier   over the units of a fabric (hierarchical.h)
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim-node/collective/chip_set.h"
#include "sim-node/collective/lanes.h"
#include "sim-node/collective/schedule.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

enum class Algorithm : std::uint8_t { kMesh, kRdh, kRing, kTree, kHier };
enum class Phase : std::uint8_t { kReduceScatter, kAllGather };

// As nccom-test prints them: "mesh", "rdh", "ring", "tree", "hier".
std::string_view Name(Algorithm algorithm);

// Where each member's block lies.
struct Layout {
  std::uint64_t element_bytes = 1;
  std::vector<std::uint64_t> bounds;  // in elements; block i is [bounds[i], bounds[i + 1])

  // Blocks proportional to the weights (ranks per chip), to within an element.
  static Layout Weighted(const std::vector<int>& weights, std::uint64_t elements,
                         std::uint64_t element_bytes);
};

// Empty steps are left out. kRdh needs set.box() and uses BalancedLanes. kTree and
// kHier have functions of their own.
std::vector<Step> Steps(Algorithm algorithm, Phase phase, const ChipSet& set,
                        const TorusLinks& links, const Layout& layout);

// rdh with these lanes.
std::vector<Step> HalvingSteps(Phase phase, const ChipSet& set, const torus::Shape& torus,
                               const Layout& layout, const std::vector<Lane>& lanes);

// What the first chip of the set has goes block by block to its owners: halving, in which only
// chips that have got something send. Needs set.box().
std::vector<Step> ScatterSteps(const ChipSet& set, const torus::Shape& torus, const Layout& layout,
                               const std::vector<Lane>& lanes);

}  // namespace tahoma::sim
