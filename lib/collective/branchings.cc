#include "lib/collective/branchings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/collective/flow.h"
#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

// The part of the bound that may stay without a tree, and the least of it that a tree is worth.
constexpr std::uint64_t kLeftOver = 100;
constexpr std::uint64_t kLeastTree = 512;
// Passes over all chips that make trees lower; the fourth or so finds nothing any more.
constexpr int kPasses = 8;

// A spanning tree that may still change.
class Tree {
 public:
  Tree(std::uint64_t rate, int root, ChipMask members)
      : rate_(rate), root_(root), members_(members) {}

  std::uint64_t rate() const { return rate_; }
  int parent(int chip) const { return parent_[At(chip)]; }
  void SetParent(int chip, int parent) { parent_[At(chip)] = static_cast<std::int8_t>(parent); }

  // Computes what the parents make of the other chips.
  void Settle() {
    order_.assign(1, root_);
    depth_[At(root_)] = 0;
    std::array<ChipMask, kChipsMax> children{};
    for (ChipMask left = members_ & ~Bit(root_); left != 0; left &= left - 1) {
      children[At(parent(Lowest(left)))] |= Bit(Lowest(left));
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const int at = order_[i];
      for (ChipMask left = children[At(at)]; left != 0; left &= left - 1) {
        depth_[At(Lowest(left))] = depth_[At(at)] + 1;
        order_.push_back(Lowest(left));
      }
    }
    TAHOMA_CHECK(order_.size() == static_cast<std::size_t>(std::popcount(members_)));
    for (std::size_t i = order_.size(); i-- > 0;) {
      const int at = order_[i];
      below_[At(at)] = Bit(at);
      weight_[At(at)] = std::ldexp(1.0, 2 * depth_[At(at)]);
      for (ChipMask left = children[At(at)]; left != 0; left &= left - 1) {
        below_[At(at)] |= below_[At(Lowest(left))];
        weight_[At(at)] += weight_[At(Lowest(left))];
      }
    }
  }

  // Returns by how much less the tree would weigh if this parent sent to the chip: each chip weighs
  // as much as four that are one link nearer to the root. Nothing if the parent gets its data from
  // the chip.
  std::optional<double> GainOf(int chip, int parent) const {
    if ((below_[At(chip)] & Bit(parent)) != 0) return std::nullopt;
    const int deeper = depth_[At(parent)] + 1 - depth_[At(chip)];
    return weight_[At(chip)] * (1 - std::ldexp(1.0, 2 * deeper));
  }

  Branching ToBranching() const {
    Branching branching{.rate = rate_, .branches = {}};
    for (const int chip : order_) {
      if (chip == root_) continue;
      branching.branches.push_back({.chip = chip,
                                    .parent = parent(chip),
                                    .depth = static_cast<std::size_t>(depth_[At(chip)])});
    }
    return branching;
  }

 private:
  static std::size_t At(int chip) { return static_cast<std::size_t>(chip); }

  std::uint64_t rate_;
  int root_;
  ChipMask members_;
  std::array<std::int8_t, kChipsMax> parent_{};
  std::vector<int> order_;  // parents first
  std::array<int, kChipsMax> depth_{};
  std::array<ChipMask, kChipsMax> below_{};  // the chip and all that get their data through it
  std::array<double, kChipsMax> weight_{};   // of all of these
};

class Packer {
 public:
  Packer(const DomainLinks& links, ChipMask members, int root)
      : graph_(links, members, /*backwards=*/false), members_(members), root_(root) {}

  std::vector<Branching> Pack() {
    const std::uint64_t bound = LeastRateFrom(graph_, members_, root_);
    left_ = bound;
    while (left_ > bound / kLeftOver) {
      std::optional<Tree> tree = Largest(bound / kLeastTree);
      if (!tree) break;
      trees_.push_back(*std::move(tree));
    }
    for (Tree& tree : trees_) tree.Settle();
    for (int pass = 0; pass < kPasses && Lower(); ++pass) {
    }
    std::vector<Branching> branchings;
    for (const Tree& tree : trees_) branchings.push_back(tree.ToBranching());
    return branchings;
  }

 private:
  // Finds a tree of a large rate: the rate of some link, so that it is used up, or a part of it.
  std::optional<Tree> Largest(std::uint64_t least) {
    std::uint64_t rate = left_;
    for (std::uint64_t below = FastestUpTo(rate); below > least; below = FastestUpTo(below - 1)) {
      rate = below;
      if (auto tree = TreeOf(rate)) return tree;
    }
    for (rate /= 2; rate > least; rate /= 2) {
      if (auto tree = TreeOf(rate)) return tree;
    }
    return std::nullopt;
  }

  // The greatest rate of a link, or all that is left to pack, that is not above `most`; 0 if there
  // is none.
  std::uint64_t FastestUpTo(std::uint64_t most) const {
    std::uint64_t fastest = 0;
    for (ChipMask left = members_; left != 0; left &= left - 1) {
      const int from = Lowest(left);
      for (ChipMask to = graph_.OutOf(from); to != 0; to &= to - 1) {
        const std::uint64_t rate = std::min(graph_.Rate(from, Lowest(to)), left_);
        if (rate <= most) fastest = std::max(fastest, rate);
      }
    }
    return fastest;
  }

  // Grows a tree of this rate. On success its links have lost the rate; otherwise none has.
  std::optional<Tree> TreeOf(std::uint64_t rate) {
    const Graph before = graph_;
    Tree tree(rate, root_, members_);
    ChipMask reached = Bit(root_);
    for (ChipMask layer = reached; layer != 0;) {
      ChipMask next = 0;
      for (; layer != 0; layer &= layer - 1) {
        const int parent = Lowest(layer);
        for (ChipMask to = graph_.OutOf(parent) & ~reached; to != 0; to &= to - 1) {
          if (!Take(parent, Lowest(to), rate)) continue;
          tree.SetParent(Lowest(to), parent);
          next |= Bit(Lowest(to));
          reached |= Bit(Lowest(to));
        }
      }
      layer = next;
    }
    if (reached != members_) {
      graph_ = before;
      return std::nullopt;
    }
    left_ -= rate;
    return tree;
  }

  // Takes the rate of a link if the trees that are still to come can do without it.
  bool Take(int from, int to, std::uint64_t rate) {
    const std::uint64_t has = graph_.Rate(from, to);
    if (has < rate) return false;
    graph_.SetRate(from, to, has - rate);
    if (left_ == rate) return true;
    Flow flow(graph_, 1, Bit(root_) | Bit(from), 0, 0);
    if (flow.Fill(to, left_ - rate) == left_ - rate) return true;
    graph_.SetRate(from, to, has);
    return false;
  }

  // Makes the trees lower where two of them gain by an exchange of the links over which they enter
  // a chip, or one by another link that has rate left. Returns whether any did.
  bool Lower() {
    bool lower = false;
    for (ChipMask left = members_ & ~Bit(root_); left != 0; left &= left - 1) {
      const int chip = Lowest(left);
      for (std::size_t i = 0; i < trees_.size(); ++i) {
        lower |= MoveLower(trees_[i], chip);
        for (std::size_t j = i + 1; j < trees_.size(); ++j) {
          lower |= ExchangeLower(trees_[i], trees_[j], chip);
        }
      }
    }
    return lower;
  }

  bool MoveLower(Tree& tree, int chip) {
    for (ChipMask from = graph_.Into(chip); from != 0; from &= from - 1) {
      const int parent = Lowest(from);
      if (graph_.Rate(parent, chip) < tree.rate()) continue;
      if (tree.GainOf(chip, parent).value_or(0) <= 0) continue;
      Give(tree.parent(chip), chip, tree.rate());
      Enter(tree, chip, parent);
      return true;
    }
    return false;
  }

  bool ExchangeLower(Tree& one, Tree& other, int chip) {
    const int parent = one.parent(chip);
    const int others = other.parent(chip);
    if (parent == others) return false;
    if (graph_.Rate(others, chip) + other.rate() < one.rate()) return false;
    if (graph_.Rate(parent, chip) + one.rate() < other.rate()) return false;
    const auto gain = one.GainOf(chip, others);
    const auto others_gain = other.GainOf(chip, parent);
    if (!gain || !others_gain || *gain + *others_gain <= 0) return false;
    Give(parent, chip, one.rate());
    Give(others, chip, other.rate());
    Enter(one, chip, others);
    Enter(other, chip, parent);
    return true;
  }

  void Give(int from, int to, std::uint64_t rate) {
    graph_.SetRate(from, to, graph_.Rate(from, to) + rate);
  }
  void Enter(Tree& tree, int chip, int parent) {
    graph_.SetRate(parent, chip, graph_.Rate(parent, chip) - tree.rate());
    tree.SetParent(chip, parent);
    tree.Settle();
  }

  Graph graph_;  // at the rates that trees have left
  const ChipMask members_;
  const int root_;
  std::uint64_t left_ = 0;  // of the bound
  std::vector<Tree> trees_;
};

}  // namespace

std::vector<Branching> PackBranchings(const DomainLinks& links, ChipMask members, int root) {
  TAHOMA_CHECK((members & Bit(root)) != 0);
  if (std::has_single_bit(members)) return {};
  return Packer(links, members, root).Pack();
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
