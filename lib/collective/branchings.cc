#include "lib/collective/branchings.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lib/base/check.h"
#include "lib/collective/masks.h"
#include "lib/collective/tree_packer.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

Branching BranchingOf(const PackedTree& tree, int root) {
  Branching branching{.rate = tree.rate(), .branches = {}};
  for (const int chip : tree.order()) {
    if (chip == root) continue;
    branching.branches.push_back({.chip = chip,
                                  .parent = tree.parent(chip),
                                  .depth = static_cast<std::size_t>(tree.depth(chip))});
  }
  return branching;
}

}  // namespace

std::vector<Branching> PackBranchings(const DomainLinks& links, ChipMask members, int root) {
  TAHOMA_CHECK((members & Bit(root)) != 0);
  if (std::has_single_bit(members)) return {};
  std::array<std::uint64_t, kChipsMax> entries{};
  entries[static_cast<std::size_t>(root)] = kUnlimitedEntry;
  EntryDepths depths;
  depths.fill(kNoEntry);
  depths[static_cast<std::size_t>(root)] = 0;
  TreePacker packer(links, members, entries);
  packer.Want(packer.Bound());
  packer.Pack(packer.Bound(), depths);
  packer.Lower();
  std::vector<Branching> branchings;
  for (const PackedTree& tree : packer.trees()) branchings.push_back(BranchingOf(tree, root));
  return branchings;
}

std::uint64_t RateOf(const std::vector<Branching>& trees) {
  std::uint64_t rate = 0;
  for (const Branching& tree : trees) rate += tree.rate;
  return rate;
}

std::size_t HeightOf(const std::vector<Branching>& trees) {
  std::size_t height = 0;
  for (const Branching& tree : trees) height = std::max(height, tree.branches.back().depth);
  return height;
}

}  // namespace tahoma::collective
