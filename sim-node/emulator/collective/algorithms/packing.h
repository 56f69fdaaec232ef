// Packs spanning trees into a set of chips such that all cables carry as many of them as their
// rates allow, and no tree is much higher than it must be.
//
//   const std::optional<TreePacking> packing = TreePacking::Of(set, links, /*most=*/256);
//   packing->trees()[0][0].depth;          // links from the root
//   packing->cables()[3].trees;            // that cross this cable
//
// The worst partition of the set (lib/collective/partition.h) says how many trees a cable carries
// when the packing is perfect. A tree may use each cable that is not far ahead of
// that number, and grows level by level from a chip near the middle, over the emptiest of these
// cables. Where these do not join the chips it also takes those of a spanning tree of least load,
// which is how a packing comes as close to the perfect one as one likes (Thorup 2007). With 256
// trees the fullest cable has mostly 1 % more than its share. Then trees exchange cables
// (tree_exchange.h) until none is farther above its share than whole trees require: some shares are
// rounded down and others up.
//
// Cables so slow that a piece would be on one for long carry no trees where they are hardly missed.
//
// Thread safety: immutable after construction.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/algorithms/spanning_tree.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

class TreePacking {
 public:
  using Cable = TreeCable;
  using Branch = TreeBranch;
  // Level by level: the branches of one parent follow one another, in the order of the parents.
  using Tree = std::vector<Branch>;

  // Packs at most so many trees: the number, near to it, that cables can share the most evenly.
  // Nothing when cables that work in both directions do not join the set, which must have two or
  // more chips.
  static std::optional<TreePacking> Of(const ChipSet& set, const TorusLinks& links,
                                       std::size_t most);
  // Packs exactly so many trees.
  static std::optional<TreePacking> Exactly(const ChipSet& set, const TorusLinks& links,
                                            std::size_t count);

  // Returns the packing after trees have exchanged cables (tree_exchange.h) until none carries more
  // trees than `most` says, or no exchange helps that leaves trees nearly as low as they are.
  TreePacking Exchanged(const std::vector<std::uint64_t>& most) const;
  // Whether there are as many trees, of any height, of which no cable carries more than `most` says
  // (Tutte 1961, Nash-Williams 1961). Takes some 50 us for 64 chips.
  bool CanCarry(const std::vector<std::uint64_t>& most) const;

  // Returns a tree with another root, a chip of the set.
  Tree From(std::size_t tree, std::size_t root) const;
  void SetRoot(std::size_t tree, std::size_t root) { trees_[tree] = From(tree, root); }
  // Arranges the trees in another order, which has the number of each.
  void Arrange(const std::vector<std::size_t>& order);
  // Takes the trees so many times, one round of all of them after the other.
  void Repeat(std::size_t times);
  // Returns, by chip of the set, how high the tree would be with this root.
  std::vector<std::size_t> HeightsOf(std::size_t tree) const;

  const std::vector<torus::ChipIndex>& chips() const { return chips_; }
  const std::vector<Cable>& cables() const { return cables_; }
  const std::vector<Tree>& trees() const { return trees_; }
  // The rate of the fastest cable.
  std::uint64_t fastest() const;

 private:
  explicit TreePacking(const torus::Shape& torus) : torus_(torus) {}

  torus::Shape torus_;
  std::vector<torus::ChipIndex> chips_;
  std::vector<Cable> cables_;
  std::vector<std::array<LinkId, 2>> links_;  // of each cable, there and back
  std::vector<Tree> trees_;

  friend class TreePacker;
};

}  // namespace tahoma::sim
