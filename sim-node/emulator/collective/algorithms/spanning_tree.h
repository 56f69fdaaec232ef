// A spanning tree of a set of chips that changes by one branch at a time.
//
//   SpanningTree tree(cables, branches);               // as it was grown
//   const torus::ChipMask side = tree.SideOf(cable);   // chips that the cable joins to the root
//   tree.Replace(cable, other);                        // joins them over another cable
//   tree.Branches();                                   // level by level again
//
// Scope: sets of at most 64 chips, which are known by their places in the set.
//
// Thread safety: none; each thread has its own.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/torus/box.h"

namespace tahoma::sim {

// A cable between two chips of a set, and how many trees use it.
struct TreeCable {
  std::size_t one = 0;  // chips of the set
  std::size_t other = 0;
  std::uint64_t rate = 0;  // of its slower direction
  std::uint64_t trees = 0;

  std::size_t FarEnd(std::size_t chip) const { return one == chip ? other : one; }
};

struct TreeBranch {
  std::size_t chip = 0;    // of the set
  std::size_t parent = 0;  // the chip one link nearer to the root
  std::size_t cable = 0;   // between the two
  std::size_t depth = 1;   // links to the root
};

class SpanningTree {
 public:
  // The branches of all chips but the root, each after that of its parent. There are at most 65,535
  // cables, which must outlive the tree.
  SpanningTree(const std::vector<TreeCable>& cables, const std::vector<TreeBranch>& branches);

  std::size_t root() const { return root_; }
  bool Uses(std::size_t cable) const { return LowerEndOf(cable) != kNoChip; }
  // The chips that hang on the root by this cable, which must be in use.
  torus::ChipMask SideOf(std::size_t cable) const { return Below(LowerEndOf(cable)); }
  // Links from the root to the farthest chip.
  std::size_t Height() const;
  // The height if another cable, which leads out of its side, replaced this one.
  std::size_t HeightWith(std::size_t cable, std::size_t other) const;

  void Replace(std::size_t cable, std::size_t other);

  // Level by level: the branches of one parent follow one another, in the order of the parents.
  std::vector<TreeBranch> Branches() const;

 private:
  static constexpr std::size_t kNoChip = 64;

  // The end of the cable that is farther from the root, if the cable is in use.
  std::size_t LowerEndOf(std::size_t cable) const;
  torus::ChipMask Below(std::size_t chip) const;
  std::size_t DepthOf(std::size_t chip) const;
  // Links from a chip to the farthest of these, which the tree joins.
  std::size_t FarthestOf(std::size_t chip, torus::ChipMask chips) const;
  // Turns the branches between the chip and `top`, which then hangs below it.
  void Turn(std::size_t chip, std::size_t top);

  const std::vector<TreeCable>* cables_;
  std::size_t root_ = 0;
  std::array<std::uint8_t, 64> parent_{};    // of all chips but the root
  std::array<std::uint16_t, 64> cable_{};    // to the parent
  std::array<torus::ChipMask, 64> below_{};  // the chips whose parent each is
};

}  // namespace tahoma::sim
