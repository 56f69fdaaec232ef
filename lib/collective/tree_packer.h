// Packs spanning trees of some chips that bytes enter from outside: at one chip, a broadcast's root
// (branchings.h), or over the NICs of several (twin_trees.h).
//
// That trees of the bound exist is Edmonds' branching theorem (1973). They are found one after the
// other as Lovász proves it (1976): a tree takes a link if, without it, what is left of the links
// still brings every chip what is left to pack, which one maximum flow tells. Trees grow breadth
// first, so they are low.
//
// Scope: internal to lib/collective.
//
// Thread safety: const members may run together.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/collective/domain_links.h"
#include "lib/collective/flow.h"
#include "lib/torus/box.h"

namespace tahoma::collective {

// The parent of a chip that a tree enters from outside.
inline constexpr int kOutside = -1;
// By chip, its depth in a tree that enters there; kNoEntry where none may.
using EntryDepths = std::array<int, kChipsMax>;
inline constexpr int kNoEntry = -1;
// The rate of an entry that limits nothing.
inline constexpr std::uint64_t kUnlimitedEntry = std::uint64_t{1} << 62U;

// A spanning tree that may still change.
class PackedTree {
 public:
  PackedTree(std::uint64_t rate, torus::ChipMask members, const EntryDepths& entry_depths)
      : rate_(rate), members_(members), entry_depths_(entry_depths) {}

  std::uint64_t rate() const { return rate_; }
  // A neighbour or kOutside.
  int parent(int chip) const { return parent_[At(chip)]; }
  void SetParent(int chip, int parent) { parent_[At(chip)] = static_cast<std::int8_t>(parent); }
  bool MayEnterAt(int chip) const { return entry_depths_[At(chip)] != kNoEntry; }

  // Computes what the parents make of the other chips.
  void Settle();
  // These hold after Settle.
  const std::vector<int>& order() const { return order_; }  // parents first
  int depth(int chip) const { return depth_[At(chip)]; }
  // Returns by how much less the tree would weigh if this parent sent to the chip: each chip weighs
  // as much as four that are one link nearer to the beginning. Nothing if the parent gets its data
  // from the chip, or the tree may not enter there.
  std::optional<double> GainOf(int chip, int parent) const;

 private:
  static std::size_t At(int chip) { return static_cast<std::size_t>(chip); }

  std::uint64_t rate_;
  torus::ChipMask members_;
  EntryDepths entry_depths_;
  std::array<std::int8_t, kChipsMax> parent_{};
  std::vector<int> order_;
  std::array<int, kChipsMax> depth_{};
  std::array<torus::ChipMask, kChipsMax> below_{};  // the chip and all that get data through it
  std::array<double, kChipsMax> weight_{};          // of all of these
};

class TreePacker {
 public:
  // The rates at which bytes can enter, by chip.
  TreePacker(const DomainLinks& links, torus::ChipMask members,
             const std::array<std::uint64_t, kChipsMax>& entries);

  // The least rate at which links and entries reach a member. Before any tree is packed.
  std::uint64_t Bound() const;

  // Says for how much together the trees of all calls of Pack shall be.
  void Want(std::uint64_t rate) { left_ = wanted_ = rate; }
  // Packs trees of this rate; a hundredth of it may stay without a tree.
  void Pack(std::uint64_t rate, const EntryDepths& depths);
  // Makes the trees lower where two of them gain by an exchange, or one by a link that has rate
  // left.
  void Lower();

  const std::vector<PackedTree>& trees() const { return trees_; }

 private:
  std::optional<PackedTree> Largest(std::uint64_t most, std::uint64_t least,
                                    const EntryDepths& depths);
  std::uint64_t FastestUpTo(std::uint64_t all, std::uint64_t most) const;
  std::optional<PackedTree> TreeOf(std::uint64_t rate, const EntryDepths& depths);
  torus::ChipMask Grow(torus::ChipMask layer, torus::ChipMask reached, PackedTree& tree);
  torus::ChipMask EnterAt(int depth, const EntryDepths& depths, torus::ChipMask reached,
                          PackedTree& tree);
  bool Take(int from, int to, std::uint64_t rate);
  std::uint64_t RateOf(int from, int to) const;
  void SetRate(int from, int to, std::uint64_t rate);
  bool LowerAll();
  bool MoveLower(PackedTree& tree, int chip);
  bool ExchangeLower(PackedTree& one, PackedTree& other, int chip);
  void Give(int from, int to, std::uint64_t rate);
  void Enter(PackedTree& tree, int chip, int parent);

  Graph graph_;  // at the rates that trees have left
  const torus::ChipMask members_;
  std::array<std::uint64_t, kChipsMax> entries_;  // what they have left
  std::uint64_t left_ = 0;                        // of what is wanted
  std::uint64_t wanted_ = 0;
  std::vector<PackedTree> trees_;
};

}  // namespace tahoma::collective
