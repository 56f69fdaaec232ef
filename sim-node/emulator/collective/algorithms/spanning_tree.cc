#include "sim-node/emulator/collective/algorithms/spanning_tree.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/collective/masks.h"

namespace tahoma::sim {

using torus::ChipMask;

namespace {

ChipMask Bit(std::size_t chip) { return collective::Bit(static_cast<int>(chip)); }
std::size_t Lowest(ChipMask chips) { return static_cast<std::size_t>(collective::Lowest(chips)); }

}  // namespace

SpanningTree::SpanningTree(const std::vector<TreeCable>& cables,
                           const std::vector<TreeBranch>& branches)
    : cables_(&cables), root_(branches.front().parent) {
  cable_.fill(0xffff);
  for (const TreeBranch& branch : branches) {
    parent_.at(branch.chip) = static_cast<std::uint8_t>(branch.parent);
    cable_.at(branch.chip) = static_cast<std::uint16_t>(branch.cable);
    below_.at(branch.parent) |= Bit(branch.chip);
  }
}

std::size_t SpanningTree::LowerEndOf(std::size_t cable) const {
  const TreeCable& ends = (*cables_)[cable];
  if (cable_.at(ends.one) == cable) return ends.one;
  return cable_.at(ends.other) == cable ? ends.other : kNoChip;
}

ChipMask SpanningTree::Below(std::size_t chip) const {
  ChipMask all = Bit(chip);
  for (ChipMask open = all; open != 0;) {
    const ChipMask next = below_.at(Lowest(open));
    open = (open & (open - 1)) | next;
    all |= next;
  }
  return all;
}

std::size_t SpanningTree::DepthOf(std::size_t chip) const {
  std::size_t depth = 0;
  for (; chip != root_; chip = parent_.at(chip)) ++depth;
  return depth;
}

std::size_t SpanningTree::FarthestOf(std::size_t chip, ChipMask chips) const {
  std::size_t farthest = 0;
  chips &= ~Bit(chip);
  for (ChipMask layer = Bit(chip);; ++farthest) {
    ChipMask next = 0;
    for (; layer != 0; layer &= layer - 1) {
      const std::size_t from = Lowest(layer);
      next |= below_.at(from);
      if (from != root_) next |= Bit(parent_.at(from));
    }
    layer = next & chips;
    if (layer == 0) return farthest;
    chips &= ~layer;
  }
}

std::size_t SpanningTree::Height() const { return FarthestOf(root_, ~ChipMask{0}); }

std::size_t SpanningTree::HeightWith(std::size_t cable, std::size_t other) const {
  const ChipMask side = SideOf(cable);
  const TreeCable& joins = (*cables_)[other];
  const std::size_t inner = (side & Bit(joins.one)) != 0 ? joins.one : joins.other;
  return std::max(FarthestOf(root_, ~side),
                  DepthOf(joins.FarEnd(inner)) + 1 + FarthestOf(inner, side));
}

void SpanningTree::Turn(std::size_t chip, std::size_t top) {
  std::size_t parent = parent_.at(chip);
  std::uint16_t cable = cable_.at(chip);
  while (chip != top) {
    const std::size_t next = parent_.at(parent);
    const std::uint16_t next_cable = cable_.at(parent);
    below_.at(parent) &= ~Bit(chip);
    below_.at(chip) |= Bit(parent);
    parent_.at(parent) = static_cast<std::uint8_t>(chip);
    cable_.at(parent) = cable;
    chip = parent;
    parent = next;
    cable = next_cable;
  }
}

void SpanningTree::Replace(std::size_t cable, std::size_t other) {
  const std::size_t top = LowerEndOf(cable);
  TAHOMA_CHECK(top != kNoChip);
  const ChipMask side = Below(top);
  const TreeCable& joins = (*cables_)[other];
  TAHOMA_CHECK(((side & Bit(joins.one)) != 0) != ((side & Bit(joins.other)) != 0));
  const std::size_t inner = (side & Bit(joins.one)) != 0 ? joins.one : joins.other;
  below_.at(parent_.at(top)) &= ~Bit(top);
  Turn(inner, top);
  parent_.at(inner) = static_cast<std::uint8_t>(joins.FarEnd(inner));
  cable_.at(inner) = static_cast<std::uint16_t>(other);
  below_.at(joins.FarEnd(inner)) |= Bit(inner);
}

std::vector<TreeBranch> SpanningTree::Branches() const {
  std::vector<TreeBranch> branches;
  branches.reserve(63);
  const auto add = [&](std::size_t parent, std::size_t depth) {
    for (ChipMask left = below_.at(parent); left != 0; left &= left - 1) {
      const std::size_t chip = Lowest(left);
      branches.push_back(
          {.chip = chip, .parent = parent, .cable = cable_.at(chip), .depth = depth});
    }
  };
  add(root_, 1);
  for (std::size_t i = 0; i < branches.size(); ++i) add(branches[i].chip, branches[i].depth + 1);
  return branches;
}

}  // namespace tahoma::sim
