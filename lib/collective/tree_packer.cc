#include "lib/collective/tree_packer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "lib/base/check.h"
#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

// The part of a rate that may stay without a tree, and the least of all rates that a tree is worth.
constexpr std::uint64_t kLeftOver = 100;
constexpr std::uint64_t kLeastTree = 2048;
// Passes over all chips that make trees lower; the fourth or so finds nothing any more.
constexpr int kPasses = 8;

}  // namespace

void PackedTree::Settle() {
  std::array<ChipMask, kChipsMax> children{};
  order_.clear();
  for (ChipMask left = members_; left != 0; left &= left - 1) {
    const int chip = Lowest(left);
    if (parent(chip) != kOutside) {
      children[At(parent(chip))] |= Bit(chip);
      continue;
    }
    order_.push_back(chip);
    depth_[At(chip)] = entry_depths_[At(chip)];
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

std::optional<double> PackedTree::GainOf(int chip, int parent) const {
  if (parent == kOutside && !MayEnterAt(chip)) return std::nullopt;
  if (parent != kOutside && (below_[At(chip)] & Bit(parent)) != 0) return std::nullopt;
  const int depth = parent == kOutside ? entry_depths_[At(chip)] : depth_[At(parent)] + 1;
  return weight_[At(chip)] * (1 - std::ldexp(1.0, 2 * (depth - depth_[At(chip)])));
}

TreePacker::TreePacker(const DomainLinks& links, ChipMask members,
                       const std::array<std::uint64_t, kChipsMax>& entries)
    : graph_(links, members, /*backwards=*/false), members_(members), entries_(entries) {}

std::uint64_t TreePacker::Bound() const {
  Flow flow(graph_, 1, /*sources=*/0, entries_);
  std::uint64_t least = kUnlimitedEntry;
  for (ChipMask left = members_; left != 0; left &= left - 1) {
    least = std::min(least, flow.Fill(Lowest(left), least));
    flow.AddSource(Lowest(left));
  }
  return least;
}

void TreePacker::Pack(std::uint64_t rate, const EntryDepths& depths) {
  std::uint64_t left = rate;
  while (left > rate / kLeftOver) {
    std::optional<PackedTree> tree = Largest(left, wanted_ / kLeastTree, depths);
    if (!tree) break;
    left -= tree->rate();
    trees_.push_back(*std::move(tree));
  }
  // What has no tree is not wanted any more.
  left_ -= left;
}

// Finds a tree of a large rate: the rate of some link, so that it is used up, or a part of it.
std::optional<PackedTree> TreePacker::Largest(std::uint64_t most, std::uint64_t least,
                                              const EntryDepths& depths) {
  std::uint64_t rate = most;
  for (std::uint64_t below = FastestUpTo(most, rate); below > least;
       below = FastestUpTo(most, below - 1)) {
    rate = below;
    if (auto tree = TreeOf(rate, depths)) return tree;
  }
  for (rate /= 2; rate > least; rate /= 2) {
    if (auto tree = TreeOf(rate, depths)) return tree;
  }
  return std::nullopt;
}

// The greatest rate of a link or an entry, of which `all` counts at most, that is not above `most`;
// 0 if there is none.
std::uint64_t TreePacker::FastestUpTo(std::uint64_t all, std::uint64_t most) const {
  std::uint64_t fastest = 0;
  const auto look = [&](std::uint64_t rate) {
    rate = std::min(rate, all);
    if (rate <= most) fastest = std::max(fastest, rate);
  };
  for (ChipMask left = members_; left != 0; left &= left - 1) {
    const int from = Lowest(left);
    look(RateOf(kOutside, from));
    for (ChipMask to = graph_.OutOf(from); to != 0; to &= to - 1)
      look(graph_.Rate(from, Lowest(to)));
  }
  return fastest;
}

// Grows a tree of this rate. On success its links have lost the rate; otherwise none has.
std::optional<PackedTree> TreePacker::TreeOf(std::uint64_t rate, const EntryDepths& depths) {
  const Graph graph = graph_;
  const auto entries = entries_;
  PackedTree tree(rate, members_, depths);
  const int deepest = *std::ranges::max_element(depths);
  ChipMask reached = 0;
  ChipMask layer = 0;
  for (int depth = 0; depth <= deepest || layer != 0; ++depth) {
    layer |= EnterAt(depth, depths, reached, tree);
    reached |= layer;
    layer = Grow(layer, reached, tree);
    reached |= layer;
  }
  if (reached != members_) {
    graph_ = graph;
    entries_ = entries;
    return std::nullopt;
  }
  left_ -= rate;
  return tree;
}

// Enters chips that nothing has reached at this depth. Returns them.
ChipMask TreePacker::EnterAt(int depth, const EntryDepths& depths, ChipMask reached,
                             PackedTree& tree) {
  ChipMask entered = 0;
  for (ChipMask left = members_ & ~reached; left != 0; left &= left - 1) {
    const int chip = Lowest(left);
    if (depths[static_cast<std::size_t>(chip)] != depth) continue;
    if (!Take(kOutside, chip, tree.rate())) continue;
    tree.SetParent(chip, kOutside);
    entered |= Bit(chip);
  }
  return entered;
}

// Takes links from the layer to chips that nothing has reached. Returns these.
ChipMask TreePacker::Grow(ChipMask layer, ChipMask reached, PackedTree& tree) {
  ChipMask next = 0;
  for (; layer != 0; layer &= layer - 1) {
    const int parent = Lowest(layer);
    for (ChipMask to = graph_.OutOf(parent) & ~(reached | next); to != 0; to &= to - 1) {
      if (!Take(parent, Lowest(to), tree.rate())) continue;
      tree.SetParent(Lowest(to), parent);
      next |= Bit(Lowest(to));
    }
  }
  return next;
}

// Takes the rate of a link or an entry if the trees that are still to come can do without it.
bool TreePacker::Take(int from, int to, std::uint64_t rate) {
  const std::uint64_t has = RateOf(from, to);
  if (has < rate) return false;
  SetRate(from, to, has - rate);
  if (left_ == rate) return true;
  Flow flow(graph_, 1, from == kOutside ? 0 : Bit(from), entries_);
  if (flow.Fill(to, left_ - rate) == left_ - rate) return true;
  SetRate(from, to, has);
  return false;
}

std::uint64_t TreePacker::RateOf(int from, int to) const {
  return from == kOutside ? entries_[static_cast<std::size_t>(to)] : graph_.Rate(from, to);
}
void TreePacker::SetRate(int from, int to, std::uint64_t rate) {
  if (from != kOutside) return graph_.SetRate(from, to, rate);
  entries_[static_cast<std::size_t>(to)] = rate;
}

void TreePacker::Lower() {
  for (PackedTree& tree : trees_) tree.Settle();
  for (int pass = 0; pass < kPasses && LowerAll(); ++pass) {
  }
}

// Returns whether any tree is lower.
bool TreePacker::LowerAll() {
  bool lower = false;
  for (ChipMask left = members_; left != 0; left &= left - 1) {
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

bool TreePacker::MoveLower(PackedTree& tree, int chip) {
  const auto gains = [&](int parent) {
    return RateOf(parent, chip) >= tree.rate() && tree.GainOf(chip, parent).value_or(0) > 0;
  };
  std::optional<int> better;
  if (gains(kOutside)) better = kOutside;
  for (ChipMask from = graph_.Into(chip); from != 0 && !better; from &= from - 1) {
    if (gains(Lowest(from))) better = Lowest(from);
  }
  if (!better) return false;
  Give(tree.parent(chip), chip, tree.rate());
  Enter(tree, chip, *better);
  return true;
}

bool TreePacker::ExchangeLower(PackedTree& one, PackedTree& other, int chip) {
  const int parent = one.parent(chip);
  const int others = other.parent(chip);
  if (parent == others) return false;
  if (RateOf(others, chip) + other.rate() < one.rate()) return false;
  if (RateOf(parent, chip) + one.rate() < other.rate()) return false;
  const auto gain = one.GainOf(chip, others);
  const auto others_gain = other.GainOf(chip, parent);
  if (!gain || !others_gain || *gain + *others_gain <= 0) return false;
  Give(parent, chip, one.rate());
  Give(others, chip, other.rate());
  Enter(one, chip, others);
  Enter(other, chip, parent);
  return true;
}

void TreePacker::Give(int from, int to, std::uint64_t rate) {
  SetRate(from, to, RateOf(from, to) + rate);
}
void TreePacker::Enter(PackedTree& tree, int chip, int parent) {
  SetRate(parent, chip, RateOf(parent, chip) - tree.rate());
  tree.SetParent(chip, parent);
  tree.Settle();
}

}  // namespace tahoma::collective
