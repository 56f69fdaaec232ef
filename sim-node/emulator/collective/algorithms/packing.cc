#include "sim-node/emulator/collective/algorithms/packing.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/collective/domain_links.h"
#include "lib/collective/masks.h"
#include "lib/collective/partition.h"
#include "sim-node/emulator/collective/algorithms/tree_exchange.h"

namespace tahoma::sim {
namespace {

using collective::Bit;
using collective::Lowest;
using torus::ChipMask;
using Cable = TreePacking::Cable;

// Numbers of trees are counted in parts of one.
constexpr std::uint64_t kOneTree = 1 << 20;
// How many trees a cable of the highest rate may be ahead of its share.
constexpr std::uint64_t kAhead = 6;
// The part of its share that a cable may carry too much at the end, before trees exchange cables.
// With less, the last trees would find few cables and become high.
constexpr std::uint64_t kExcess = 20;  // a 20th
// How much farther from the farthest chip a root may be than the middle of the set. With few roots
// some links would only ever sum up, and others only spread.
constexpr std::size_t kOffTheMiddle = 1;
// So many trees that use a cable towards their roots count as one tree more.
constexpr std::uint64_t kTreesForSum = 128;
// A packing is even enough when no cable is farther above its share than this part of it. The least
// part beyond is found by doubling it, and then so many halvings between the last two.
constexpr double kAboveLeast = 1.0 / 512;
constexpr int kHalvings = 3;
// Cables of less than one of these parts of the highest rate are left out, the most of them first,
// if all takes hardly longer without them: a larger part for cables that are slower.
struct SlowCables {
  std::uint64_t part;
  std::uint64_t missed;  // one of so many parts longer
};
constexpr std::array<SlowCables, 7> kSlowCables = {
    {{8, 256}, {16, 128}, {32, 64}, {64, 32}, {128, 32}, {256, 32}, {512, 32}}};
// How much higher than trees are on average one may become by an exchange, if need be.
constexpr std::size_t kHigherMost = 4;

// The cables between chips of a set, and the two links of each.
struct Joints {
  std::vector<Cable> cables;
  std::vector<std::array<LinkId, 2>> links;
};

Joints JointsOf(const ChipSet& set, const TorusLinks& links) {
  Joints joints;
  for (LinkId link = 0; link < links.id_count(); ++link) {
    if (links.capacity(link) == 0) continue;
    const torus::Hop hop = links.HopOf(link);
    // Every cable has one plus link.
    if (hop.direction != torus::Direction::kPlus) continue;
    if (!set.HasBothEnds(hop)) continue;
    const LinkId back = TorusLinks::IdOf(hop.to, hop.axis, Opposite(hop.direction));
    const std::uint64_t rate = std::min(links.capacity(link), links.capacity(back));
    if (rate == 0) continue;
    joints.cables.push_back(
        {.one = set.PlaceOf(hop.from), .other = set.PlaceOf(hop.to), .rate = rate});
    joints.links.push_back({link, back});
  }
  return joints;
}

// Returns the worst partition of the chips if each cable had this rate in both directions.
collective::Cut WorstOf(const torus::Shape& torus, const std::vector<torus::ChipIndex>& chips,
                        const std::vector<std::array<LinkId, 2>>& links,
                        const std::vector<std::uint64_t>& rates) {
  std::vector<std::uint64_t> of_links(static_cast<std::size_t>(torus.chip_count()) *
                                      collective::kPortsPerChip);
  for (std::size_t cable = 0; cable < rates.size(); ++cable) {
    for (const LinkId link : links[cable]) of_links[link] = rates[cable];
  }
  ChipMask set = 0;
  for (const torus::ChipIndex chip : chips) set |= Bit(chip.value());
  return collective::WorstPartition(collective::DomainLinks(torus, of_links, {}), set);
}

// Chips that are joined already, by a representative of each group.
class Groups {
 public:
  explicit Groups(std::size_t chips) : next_(chips) {
    std::iota(next_.begin(), next_.end(), std::size_t{0});
  }
  // False if they were joined before.
  bool Join(std::size_t one, std::size_t other) {
    one = Find(one);
    other = Find(other);
    next_[one] = other;
    return one != other;
  }

 private:
  std::size_t Find(std::size_t chip) {
    while (next_[chip] != chip) chip = next_[chip] = next_[next_[chip]];
    return chip;
  }
  std::vector<std::size_t> next_;
};

// Whether one tree more loads the first cable less, for its rate.
bool LessLoaded(const Cable& a, const Cable& b) {
  return static_cast<Wide>(a.trees + 1) * b.rate < static_cast<Wide>(b.trees + 1) * a.rate;
}

std::uint64_t FastestOf(const std::vector<Cable>& cables) {
  std::uint64_t fastest = 0;
  for (const Cable& cable : cables) fastest = std::max(fastest, cable.rate);
  return fastest;
}

}  // namespace

class TreePacker {
 public:
  TreePacker(const ChipSet& set, const torus::Shape& torus, Joints joints,
             const collective::Cut& worst, std::size_t least, std::size_t most)
      : packing_(torus),
        all_(set.size() == 64 ? ~ChipMask{0} : Bit(static_cast<int>(set.size())) - 1),
        ports_of_(set.size()),
        roots_(set.size()) {
    cables_ = std::move(joints.cables);
    packing_.links_ = std::move(joints.links);
    packing_.chips_ = set.chips();
    order_.resize(cables_.size());
    sums_over_.resize(2 * cables_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    for (const std::size_t cable : order_) {
      for (const std::size_t chip : {cables_[cable].one, cables_[cable].other}) {
        const std::size_t far = cables_[cable].FarEnd(chip);
        ports_of_[chip].push_back({.cable = cable,
                                   .link = 2 * cable + (cables_[cable].one == chip ? 0 : 1),
                                   .far = far,
                                   .far_bit = Bit(static_cast<int>(far))});
      }
    }
    const std::uint64_t fastest = FastestOf(cables_);
    for (const Cable& cable : cables_) {
      const Wide trees = static_cast<Wide>(cable.rate) * worst.blocks * kOneTree;
      const Wide one = static_cast<Wide>(cable.rate) * kOneTree;
      limits_.push_back(
          {.share = static_cast<std::uint64_t>(trees / (Wide{worst.rate} * set.size())),
           .one = static_cast<std::uint64_t>(one / fastest)});
    }
    count_ = EvenCount(least, most);
    for (Limit& limit : limits_) {
      const std::uint64_t all = limit.share * count_;
      limit.last = std::max(all + all / kExcess, all + limit.one / 2);
    }
  }

  std::optional<TreePacking> Pack() {
    for (std::size_t tree = 0; tree < count_; ++tree) {
      random_ = rng_.Next();
      OfferCables(tree);
      if (ReachFrom(0).chips != all_ && !OfferLeastLoaded()) return std::nullopt;
      packing_.trees_.push_back(Grow(ChooseRoot()));
    }
    return packing_.Exchanged(EvenLoads());
  }

 private:
  // In parts of a tree.
  struct Limit {
    std::uint64_t share = 0;  // of each tree
    std::uint64_t one = 0;    // what one tree is to a cable of the highest rate, for this one's
    std::uint64_t last = 0;   // of all trees
  };
  // A cable, seen from one of its chips.
  struct Port {
    std::size_t cable = 0;
    std::size_t link = 0;  // of two for each cable: from that chip
    std::size_t far = 0;   // chip
    ChipMask far_bit = 0;
  };
  struct Reach {
    ChipMask chips = 0;
    std::size_t links = 0;  // to the farthest of them
  };

  // The trees that each cable may carry for none to be farther above its share than this part.
  std::vector<std::uint64_t> LoadsWithin(double above) const {
    std::vector<std::uint64_t> loads;
    for (const Limit& limit : limits_) {
      // The share of each tree was rounded down to parts of one.
      const double share = static_cast<double>((limit.share + 1) * count_) / kOneTree;
      loads.push_back(static_cast<std::uint64_t>(share * (1 + above)));
    }
    return loads;
  }

  // The trees of each cable in the packing in which the fullest is the nearest to its share.
  // Rounding up is always possible.
  std::vector<std::uint64_t> EvenLoads() const {
    const double rounded_up = ExcessOf(count_);
    if (rounded_up <= kAboveLeast) return LoadsWithin(rounded_up);
    double below = 0;
    double above = kAboveLeast;
    while (!packing_.CanCarry(LoadsWithin(above))) {
      below = above;
      above *= 2;
      TAHOMA_CHECK(above < kOneTree);
    }
    for (int i = 0; i < kHalvings && below > 0; ++i) {
      const double middle = (below + above) / 2;
      (packing_.CanCarry(LoadsWithin(middle)) ? above : below) = middle;
    }
    return LoadsWithin(above);
  }

  // By which part of its share the share of a cable is exceeded the most when that of each is
  // rounded up to whole trees.
  double ExcessOf(std::size_t count) const {
    std::uint64_t excess = 0;  // in parts of one
    for (const Limit& limit : limits_) {
      const std::uint64_t share = limit.share * count;
      const std::uint64_t whole = (share + kOneTree - 1) / kOneTree * kOneTree;
      if (share > 0) excess = std::max(excess, (whole - share) * kOneTree / share);
    }
    return static_cast<double>(excess) / kOneTree;
  }

  // The number of trees, of these, at which that is the least.
  std::size_t EvenCount(std::size_t fewest, std::size_t most) const {
    std::size_t best = most;
    double least = ExcessOf(most);
    for (std::size_t count = most; count-- > fewest;) {
      const double excess = ExcessOf(count);
      if (excess >= least) continue;
      least = excess;
      best = count;
    }
    return best;
  }

  void Offer(std::size_t cable) {
    const Cable& offered = cables_[cable];
    near_.at(offered.one) |= Bit(static_cast<int>(offered.other));
    near_.at(offered.other) |= Bit(static_cast<int>(offered.one));
  }

  // Offers the next tree all cables that are not too far ahead of their share.
  void OfferCables(std::size_t tree) {
    near_.fill(0);
    for (std::size_t cable = 0; cable < cables_.size(); ++cable) {
      const Limit& limit = limits_[cable];
      const std::uint64_t most =
          std::min((tree + 1) * limit.share + kAhead * limit.one, limit.last);
      if ((cables_[cable].trees + 1) * kOneTree <= most) Offer(cable);
    }
  }

  // Offers the cables of a spanning tree of least load, too; false when there is none.
  bool OfferLeastLoaded() {
    for (std::size_t i = order_.size(); i > 1; --i) {
      std::swap(order_[i - 1], order_[rng_.Below(i)]);
    }
    std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
      return LessLoaded(cables_[a], cables_[b]);
    });
    Groups groups(roots_.size());
    std::size_t joined = 1;
    for (const std::size_t cable : order_) {
      if (!groups.Join(cables_[cable].one, cables_[cable].other)) continue;
      Offer(cable);
      ++joined;
    }
    return joined == roots_.size();
  }

  Reach ReachFrom(std::size_t chip) const {
    Reach reach{.chips = Bit(static_cast<int>(chip))};
    for (ChipMask layer = reach.chips; layer != 0;) {
      ChipMask next = 0;
      for (; layer != 0; layer &= layer - 1)
        next |= near_.at(static_cast<std::size_t>(Lowest(layer)));
      layer = next & ~reach.chips;
      reach.chips |= layer;
      if (layer != 0) ++reach.links;
    }
    return reach;
  }

  // The chip near the middle that has been the root of the fewest trees. The middle is that of the
  // first tree, and is looked for again only where no chip is near to it.
  std::size_t ChooseRoot() {
    std::size_t chosen = FewestTrees(middle_ + kOffTheMiddle);
    if (chosen == roots_.size()) {
      std::size_t least = roots_.size();
      for (std::size_t chip = 0; chip < roots_.size(); ++chip) {
        least = std::min(least, ReachFrom(chip).links);
      }
      if (middle_ == 0) middle_ = least;
      chosen = FewestTrees(least + kOffTheMiddle);
    }
    ++roots_[chosen];
    return chosen;
  }

  // The chip with the fewest trees, of those that reach all others over so many links.
  std::size_t FewestTrees(std::size_t links) const {
    std::size_t chosen = roots_.size();
    const std::size_t first = random_ % roots_.size();
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const std::size_t chip = first + i < roots_.size() ? first + i : first + i - roots_.size();
      if (chosen != roots_.size() && roots_[chip] >= roots_[chosen]) continue;
      if (ReachFrom(chip).links <= links) chosen = chip;
    }
    return chosen;
  }

  // Whether the first cable has less to carry for its rate. What goes towards the root counts a
  // little, too: links that never carry any have to wait for the first results (tree_flow.h).
  bool IsEmptier(const Port& a, const Port& b) const {
    const auto load = [this](const Port& port) {
      return kTreesForSum * (cables_[port.cable].trees + 1) + sums_over_[port.link];
    };
    return static_cast<Wide>(load(a)) * cables_[b.cable].rate <
           static_cast<Wide>(load(b)) * cables_[a.cable].rate;
  }

  // The least loaded of the offered cables between a chip and a layer, which must be joined.
  const Port& PortInto(ChipMask layer, std::size_t chip) const {
    const std::vector<Port>& ports = ports_of_[chip];
    const ChipMask ends = layer & near_.at(chip);
    const Port* best = nullptr;
    std::size_t at = ((random_ * (2 * chip + 1)) >> 40U) % ports.size();
    for (std::size_t i = 0; i < ports.size(); ++i, at = at + 1 < ports.size() ? at + 1 : 0) {
      const Port& port = ports[at];
      if ((ends & port.far_bit) == 0) continue;
      if (best == nullptr || IsEmptier(port, *best)) best = &port;
    }
    TAHOMA_CHECK(best != nullptr);
    return *best;
  }

  // Grows a tree level by level.
  TreePacking::Tree Grow(std::size_t root) {
    TreePacking::Tree tree;
    std::array<std::size_t, 64> cable_to{};
    std::vector<std::size_t> layer = {root};
    ChipMask reached = Bit(static_cast<int>(root));
    ChipMask in_layer = reached;
    for (std::size_t depth = 1; reached != all_; ++depth) {
      std::array<ChipMask, 64> children{};
      ChipMask next = 0;
      for (const std::size_t chip : layer) next |= near_.at(chip) & ~reached;
      for (ChipMask left = next; left != 0; left &= left - 1) {
        const auto chip = static_cast<std::size_t>(Lowest(left));
        const Port& port = PortInto(in_layer, chip);
        ++cables_[port.cable].trees;
        ++sums_over_[port.link];
        cable_to.at(chip) = port.cable;
        children.at(port.far) |= Bit(static_cast<int>(chip));
      }
      std::vector<std::size_t> following;
      for (const std::size_t parent : layer) {
        for (ChipMask left = children.at(parent); left != 0; left &= left - 1) {
          const auto chip = static_cast<std::size_t>(Lowest(left));
          tree.push_back(
              {.chip = chip, .parent = parent, .cable = cable_to.at(chip), .depth = depth});
          following.push_back(chip);
        }
      }
      layer = std::move(following);
      in_layer = next;
      reached |= next;
    }
    return tree;
  }

  TreePacking packing_;  // as far as it is
  std::vector<Cable>& cables_ = packing_.cables_;
  const ChipMask all_;
  std::size_t count_ = 0;                    // of trees
  std::vector<Limit> limits_;                // of each cable
  std::vector<std::size_t> order_;           // of the cables
  std::vector<std::vector<Port>> ports_of_;  // of each chip
  std::vector<std::uint64_t> sums_over_;     // the trees that use each link towards their root
  std::vector<std::size_t> roots_;           // the trees of which each chip is the root
  std::size_t middle_ = 0;                   // links from a chip in the middle to the farthest
  std::array<ChipMask, 64> near_{};          // over the cables that are offered
  Rng rng_{1};                               // breaks ties; any number does
  std::uint64_t random_ = 0;                 // of each tree
};

namespace {

// Takes slow cables away, as many as are hardly missed, and returns the worst partition without
// them. A piece is on such a cable for long, and so are those that wait for it.
collective::Cut LeaveOutSlow(const ChipSet& set, const torus::Shape& torus, Joints& joints) {
  const auto worst_from = [&](std::uint64_t least_rate) {
    std::vector<std::uint64_t> rates;
    for (const Cable& cable : joints.cables) {
      rates.push_back(cable.rate < least_rate ? 0 : cable.rate);
    }
    return WorstOf(torus, set.chips(), joints.links, rates);
  };
  const collective::Cut worst = worst_from(0);
  if (worst.rate == 0) return worst;
  const std::uint64_t slowest = std::ranges::min_element(joints.cables, {}, &Cable::rate)->rate;
  for (const auto& [part, missed] : kSlowCables) {
    const std::uint64_t least_rate = FastestOf(joints.cables) / part;
    if (slowest >= least_rate) break;
    const collective::Cut without = worst_from(least_rate);
    if (!without.HardlyWorseThan(worst, missed)) continue;
    std::size_t kept = 0;
    for (std::size_t cable = 0; cable < joints.cables.size(); ++cable) {
      if (joints.cables[cable].rate < least_rate) continue;
      joints.cables[kept] = joints.cables[cable];
      joints.links[kept++] = joints.links[cable];
    }
    joints.cables.resize(kept);
    joints.links.resize(kept);
    return without;
  }
  return worst;
}

// A number of trees between these.
std::optional<TreePacking> PackedBetween(const ChipSet& set, const TorusLinks& links,
                                         std::size_t least, std::size_t most) {
  TAHOMA_CHECK(set.size() > 1 && least > 0 && least <= most);
  Joints joints = JointsOf(set, links);
  const collective::Cut worst = LeaveOutSlow(set, links.torus(), joints);
  if (worst.rate == 0) return std::nullopt;
  return TreePacker(set, links.torus(), std::move(joints), worst, least, most).Pack();
}

// A tree by the cables at each chip.
class Unrooted {
 public:
  Unrooted(const TreePacking::Tree& tree, std::size_t chips) : near_(chips) {
    for (const TreePacking::Branch& branch : tree) {
      near_[branch.chip].push_back({.chip = branch.parent, .cable = branch.cable});
      near_[branch.parent].push_back({.chip = branch.chip, .cable = branch.cable});
    }
  }

  TreePacking::Tree From(std::size_t root) const {
    TreePacking::Tree tree;
    const auto append = [&](std::size_t parent, std::size_t before, std::size_t depth) {
      for (const Near& next : near_[parent]) {
        if (next.chip == before) continue;
        tree.push_back({.chip = next.chip, .parent = parent, .cable = next.cable, .depth = depth});
      }
    };
    append(root, root, 1);
    for (std::size_t i = 0; i < tree.size(); ++i) {
      append(tree[i].chip, tree[i].parent, tree[i].depth + 1);
    }
    return tree;
  }

 private:
  struct Near {
    std::size_t chip = 0;
    std::size_t cable = 0;
  };
  std::vector<std::vector<Near>> near_;
};

}  // namespace

std::optional<TreePacking> TreePacking::Of(const ChipSet& set, const TorusLinks& links,
                                           std::size_t most) {
  return PackedBetween(set, links, most - most / 10, most);
}

std::optional<TreePacking> TreePacking::Exactly(const ChipSet& set, const TorusLinks& links,
                                                std::size_t count) {
  return PackedBetween(set, links, count, count);
}

TreePacking TreePacking::Exchanged(const std::vector<std::uint64_t>& most) const {
  TreePacking changed = *this;
  std::size_t heights = 0;
  std::vector<SpanningTree> trees;
  for (const Tree& tree : trees_) {
    trees.emplace_back(changed.cables_, tree);
    heights += tree.back().depth;
  }
  const std::size_t height = (heights + trees.size() - 1) / trees.size();
  for (std::size_t more = 1; more <= kHigherMost; more *= 2) {
    EvenOut(most, height + more, trees, changed.cables_);
  }
  for (std::size_t i = 0; i < trees.size(); ++i) changed.trees_[i] = trees[i].Branches();
  return changed;
}

bool TreePacking::CanCarry(const std::vector<std::uint64_t>& most) const {
  TAHOMA_CHECK(most.size() == cables_.size());
  const collective::Cut worst = WorstOf(torus_, chips_, links_, most);
  return static_cast<Wide>(worst.rate) * chips_.size() >=
         static_cast<Wide>(worst.blocks) * trees_.size();
}

TreePacking::Tree TreePacking::From(std::size_t tree, std::size_t root) const {
  return Unrooted(trees_[tree], chips_.size()).From(root);
}

std::vector<std::size_t> TreePacking::HeightsOf(std::size_t tree) const {
  const Tree& branches = trees_[tree];
  // Below each chip, the links to the farthest, and to the farthest over another branch.
  std::array<std::size_t, 64> below{};
  std::array<std::size_t, 64> next{};
  for (std::size_t i = branches.size(); i-- > 0;) {
    const Branch& branch = branches[i];
    const std::size_t over = below.at(branch.chip) + 1;
    next.at(branch.parent) =
        std::max(next.at(branch.parent), std::min(over, below.at(branch.parent)));
    below.at(branch.parent) = std::max(below.at(branch.parent), over);
  }
  std::vector<std::size_t> heights(chips_.size());
  std::array<std::size_t, 64> above{};  // over the parent
  const std::size_t root = branches.front().parent;
  heights[root] = below.at(root);
  for (const Branch& branch : branches) {
    const bool farthest = below.at(branch.parent) == below.at(branch.chip) + 1;
    const std::size_t aside = farthest ? next.at(branch.parent) : below.at(branch.parent);
    above.at(branch.chip) = std::max(above.at(branch.parent), aside) + 1;
    heights[branch.chip] = std::max(above.at(branch.chip), below.at(branch.chip));
  }
  return heights;
}

void TreePacking::Arrange(const std::vector<std::size_t>& order) {
  TAHOMA_CHECK(order.size() == trees_.size());
  std::vector<Tree> arranged;
  for (const std::size_t tree : order) arranged.push_back(std::move(trees_[tree]));
  trees_ = std::move(arranged);
}

void TreePacking::Repeat(std::size_t times) {
  TAHOMA_CHECK(times > 0);
  const std::size_t count = trees_.size();
  trees_.reserve(count * times);
  for (std::size_t i = count; i < count * times; ++i) trees_.push_back(trees_[i - count]);
  for (Cable& cable : cables_) cable.trees *= times;
}

std::uint64_t TreePacking::fastest() const { return FastestOf(cables_); }

}  // namespace tahoma::sim
