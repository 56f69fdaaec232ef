// The algorithms of collectives, each as the steps of one of two phases.
//
//   const Layout layout = Layout::Weighted(ranks_per_chip, elements, element_bytes);
//   auto steps = Steps(Algorithm::kRdh, Phase::kReduceScatter, set, links, layout);
//
// The buffer is cut into one block per chip. Reduce-scatter leaves each chip the combination of
// everybody's version of its own block; all-gather gives everybody all blocks. An all-reduce is one
// after the other.
//
// mesh       every chip sends to every other directly, one step; the hardware forwards
// rdh        recursive halving and doubling over the dimensions of the hypercube that a box is, one
//            link per step; channels.h says how channels fill all links
// ring       round Hamiltonian cycles in both directions, n - 1 steps
//            (docs/reference/collectives.md#cycles-of-an-instance, #cycles-of-an-ultraserver)
// kangaring  the same cycles; two and two ranks of a chip act as one (chip_cost.h). For chips with
//            all their ranks
// tree       each part of a block along a tree of its own, on any set that hangs together (trees.h)
// hier       over the topology domains of a fabric (hierarchical.h)
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/collective/operation.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

using collective::Algorithm;
using collective::kAllAlgorithms;
using collective::ParseAlgorithm;
using collective::Phase;

// The place of each member's block.
struct Layout {
  std::uint64_t element_bytes = 1;
  std::vector<std::uint64_t> bounds;  // in elements; block i is [bounds[i], bounds[i + 1])
  // Whether it matters which chip has which block between the phases. It does not in an all-reduce:
  // then rdh cuts as it likes and sends all blocks for one chip in one message for each channel.
  bool fixed = true;

  // Blocks proportional to the weights (ranks per chip), to within an element.
  static Layout Weighted(const std::vector<int>& weights, std::uint64_t elements,
                         std::uint64_t element_bytes);
};

// Returns the steps of mesh, rdh (needs set.box()), or ring (kangaring is the same). Steps may be
// empty when a block has fewer elements than parts.
std::vector<Step> Steps(Algorithm algorithm, Phase phase, const ChipSet& set,
                        const TorusLinks& links, const Layout& layout);

// Returns the steps that bring each block of the first chip's buffer to its owner: halving, in
// which only chips that have received data send. Needs set.box().
std::vector<Step> ScatterSteps(const ChipSet& set, const torus::Shape& torus, const Layout& layout);

}  // namespace tahoma::sim
