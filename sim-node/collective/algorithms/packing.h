// An all-reduce over packed spanning trees: each tree sums up its share of the buffer towards its
// root and spreads the sum back over the same links, chunk after chunk, both at the same time.
//
//   const std::optional<TreePacking> packing = TreePacking::Of(set, links, /*trees=*/32);
//   std::vector<Step> steps = packing->Steps(/*chunks=*/64, layout, stripe);
//
// A cable of a tree carries the tree's share once in each direction, so trees that load all cables
// in proportion to their rates reach the bound of collective::WorstPartition, also where one phase
// after the other does not: around chips whose cables lead to few others. The first chunk needs
// twice the height of a tree until it is everywhere, so this pays for large buffers.
//
// The trees are packed greedily: each is a spanning tree of least load, every cable counting with
// what earlier trees have put on it for its rate. With 64 trees the fullest cable has 1 to 3 % more
// than its share (Thorup 2007 shows that it comes as close as one likes).
//
// Thread safety: immutable after construction.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim-node/collective/algorithms/algorithms.h"
#include "sim-node/collective/algorithms/chip_set.h"
#include "sim-node/collective/schedule/schedule.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

class TreePacking {
 public:
  // Nothing when cables that work in both directions do not join the set.
  static std::optional<TreePacking> Of(const ChipSet& set, const TorusLinks& links,
                                       std::size_t trees);

  std::size_t tree_count() const { return trees_.size(); }
  // Steps from that in which a chunk starts to that in which it is everywhere: twice the height of
  // the highest tree, with the first.
  std::size_t fill() const { return 2 * height_ - 1; }
  std::size_t StepCount(std::size_t chunks) const { return chunks + fill(); }
  // The cable with the most trees for its rate: it carries so many, at so many bytes per second.
  std::uint64_t fullest_load() const { return fullest_load_; }
  std::uint64_t fullest_rate() const { return fullest_rate_; }

  std::vector<Step> Steps(std::size_t chunks, const Layout& layout, Stripe stripe = {}) const;

 private:
  struct Branch {
    std::size_t chip = 0;    // of the set
    std::size_t parent = 0;  // the chip one link nearer to the root
    std::size_t depth = 1;   // links to the root
  };
  using Tree = std::vector<Branch>;
  TreePacking() = default;

  std::vector<torus::ChipIndex> chips_;
  std::vector<Tree> trees_;
  std::size_t height_ = 1;  // links from a root to the chip that is farthest away
  std::uint64_t fullest_load_ = 0;
  std::uint64_t fullest_rate_ = 1;

  friend class TreePacker;
};

}  // namespace tahoma::sim
