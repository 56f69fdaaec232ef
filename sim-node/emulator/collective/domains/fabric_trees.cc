#include "sim-node/emulator/collective/domains/fabric_trees.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/algorithms/packing.h"
#include "sim-node/emulator/collective/domains/domain_trees.h"
#include "sim-node/emulator/collective/domains/nic_pairs.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {
namespace {

// Links that EFA's latency counts as, when trees of little depth are chosen.
constexpr std::size_t kDepthOfEfa = 4;

// Packs as many trees into each group.
absl::StatusOr<std::vector<TreePacking>> PackingsOf(const DomainSet& set, const Fabric& fabric,
                                                    std::size_t most) {
  std::vector<std::optional<TreePacking>> of_group(set.size());
  std::size_t count = 0;
  for (const DomainSet::Kind& kind : set.kinds()) {
    const DomainSet::Group& group = set.groups()[kind.front()];
    const TorusLinks& links = fabric.domain(group.domain);
    const ChipSet chips = SetOf(group.local, links);
    std::optional<TreePacking> packing;
    if (chips.size() > 1) {
      packing = count == 0 ? TreePacking::Of(chips, links, most)
                           : TreePacking::Exactly(chips, links, count);
    }
    if (!packing) return FailedPrecondition("cables do not join chips of domain {}", group.domain);
    count = packing->trees().size();
    for (const std::size_t one : kind) of_group[one] = packing;
  }
  std::vector<TreePacking> packings;
  for (std::optional<TreePacking>& packing : of_group) packings.push_back(*std::move(packing));
  return packings;
}

// Chooses one of several again and again, such that each has been chosen in proportion to its
// weight at any time.
class Shares {
 public:
  explicit Shares(std::vector<int> weights)
      : weights_(std::move(weights)),
        taken_(weights_.size()),
        whole_(std::accumulate(weights_.begin(), weights_.end(), std::uint64_t{0})) {}

  // The rank of a candidate must be the least among those that are not ahead of their share.
  template <typename Rank>
  std::size_t Choose(const Rank& rank) {
    // One choice belongs to somebody by half, or to those to whom it belongs the most.
    double least = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) least = std::max(least, Behind(i));
    least = std::min(least, 0.5);
    std::size_t best = weights_.size();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (Behind(i) < least) continue;
      if (best == weights_.size() || rank(i) < rank(best)) best = i;
    }
    TAHOMA_CHECK(best < weights_.size());
    ++taken_[best];
    ++all_;
    return best;
  }

 private:
  // The part of the next choice that one is behind its share.
  double Behind(std::size_t one) const {
    return static_cast<double>(weights_[one]) * static_cast<double>(all_ + 1) /
               static_cast<double>(whole_) -
           static_cast<double>(taken_[one]);
  }

  std::vector<int> weights_;
  std::vector<std::uint64_t> taken_;
  std::uint64_t whole_;
  std::uint64_t all_ = 0;
};

// Chooses trees over the groups such that pairs of groups are in trees in proportion to the rates
// of their NIC pairs, low ones rather than high ones.
class DomainTreeChoice {
 public:
  explicit DomainTreeChoice(const EdgeRates& rates)
      : rates_(rates),
        taken_(rates.size(), std::vector<double>(rates.size())),
        trees_(DomainTreesOf(rates.size())) {
    std::ranges::stable_sort(trees_, {}, &DomainTree::height);
  }

  const DomainTree& Next() {
    const DomainTree* best = nullptr;
    double least = 0;
    for (const DomainTree& tree : trees_) {
      const double load = LoadAfter(tree);
      if (best != nullptr && load >= least * (1 - 1e-9)) continue;
      best = &tree;
      least = load;
    }
    ForEachEdge(*best, [&](std::size_t one, std::size_t other) { taken_[one][other] += 1; });
    return *best;
  }

 private:
  template <typename Visit>
  static void ForEachEdge(const DomainTree& tree, const Visit& visit) {
    for (std::size_t group = 0; group < tree.parent.size(); ++group) {
      const auto [one, other] = std::minmax(group, tree.parent[group]);
      if (one != other) visit(one, other);
    }
  }
  // The loads of its edges together if it were taken. Trees of least load come as close to a
  // perfect packing as one likes (Thorup 2007).
  double LoadAfter(const DomainTree& tree) const {
    double load = 0;
    ForEachEdge(tree, [&](std::size_t one, std::size_t other) {
      load += (taken_[one][other] + 1) / rates_[one][other];
    });
    return load;
  }

  const EdgeRates rates_;
  EdgeRates taken_;
  std::vector<DomainTree> trees_;
};

class Packer {
 public:
  Packer(const DomainSet& set, const Fabric& fabric, std::vector<TreePacking> packings)
      : set_(set), packings_(std::move(packings)) {
    for (std::size_t group = 0; group < packings_.size(); ++group) {
      first_link_.push_back(static_cast<std::uint32_t>(trees_.links.size()));
      for (const TreePacking::Cable& cable : packings_[group].cables()) {
        AddLinks(ChipOf(group, cable.one), ChipOf(group, cable.other), cable.rate, false);
      }
    }
    AddJoints(NicRate(fabric));
  }

  FabricTrees Pack() && {
    EdgeRates rates(set_.size(), std::vector<double>(set_.size()));
    for (const auto& [groups, joints] : joints_) {
      for (const Joint& joint : joints) rates[groups.first][groups.second] += joint.pair.permille;
    }
    DomainTreeChoice choice(rates);
    for (std::size_t tree = 0; tree < packings_[0].trees().size(); ++tree) {
      heights_.clear();
      for (const TreePacking& packing : packings_) heights_.push_back(packing.HeightsOf(tree));
      trees_.trees.push_back(set_.size() == 2 ? Swapping(tree) : Rooted(tree, choice.Next()));
    }
    return std::move(trees_);
  }

 private:
  using Groups = std::pair<std::size_t, std::size_t>;
  // A NIC pair that joins two domains, and the first of its two links.
  struct Joint {
    NicPair pair;
    std::uint32_t link = 0;
  };

  void AddJoints(std::uint64_t nic_rate) {
    std::vector<std::vector<int>> nics;
    for (const DomainSet::Group& group : set_.groups()) nics.push_back(group.nics);
    std::map<Groups, std::vector<int>> weights;
    for (const NicPair& pair : PairNics(nics)) {
      const Groups groups(pair.one.group, pair.other.group);
      joints_[groups].push_back(
          {.pair = pair, .link = static_cast<std::uint32_t>(trees_.links.size())});
      weights[groups].push_back(pair.permille);
      const std::uint64_t rate = nic_rate * static_cast<std::uint64_t>(pair.permille) / 1000;
      AddLinks(ChipOf(pair.one.group, pair.one.place), ChipOf(pair.other.group, pair.other.place),
               std::max<std::uint64_t>(rate, 1), true);
    }
    for (auto& [groups, list] : weights) shares_.emplace(groups, Shares(std::move(list)));
  }

  // The rate of an undamaged NIC.
  std::uint64_t NicRate(const Fabric& fabric) const {
    std::uint64_t most = 0;
    for (std::size_t group = 0; group < set_.size(); ++group) {
      for (std::size_t place = 0; place < set_.groups()[group].local.size(); ++place) {
        const LinkId nic = fabric.NicOf(ChipOf(group, place), NicDirection::kOut);
        const std::uint64_t permille = fabric.permille(nic);
        if (permille > 0) most = std::max(most, fabric.capacity(nic) * 1000 / permille);
      }
    }
    return most;
  }
  torus::ChipIndex ChipOf(std::size_t group, std::size_t place) const {
    return set_.ChipOf(group, place);
  }
  void AddLinks(torus::ChipIndex one, torus::ChipIndex other, std::uint64_t rate, bool efa) {
    trees_.links.push_back({.from = one, .to = other, .rate = rate, .efa = efa});
    trees_.links.push_back({.from = other, .to = one, .rate = rate, .efa = efa});
  }

  // Returns the joint of two groups that is not ahead of its share and makes the tree the lowest.
  const Joint& NextJoint(std::size_t group, std::size_t other) {
    const Groups groups = std::minmax(group, other);
    const std::vector<Joint>& joints = joints_.at(groups);
    return joints[shares_.at(groups).Choose([&](std::size_t i) {
      const NicPair& pair = joints[i].pair;
      return heights_[pair.one.group][pair.one.place] +
             heights_[pair.other.group][pair.other.place];
    })];
  }

  // Appends the branches of a group's tree from a root.
  void AppendFrom(std::size_t group, std::size_t tree, std::size_t root,
                  std::vector<FabricTree::Branch>& branches) const {
    const TreePacking& packing = packings_[group];
    for (const TreePacking::Branch& branch : packing.From(tree, root)) {
      const std::uint32_t link = first_link_[group] + static_cast<std::uint32_t>(2 * branch.cable);
      const std::uint32_t turned = packing.cables()[branch.cable].one == branch.chip ? 0 : 1;
      branches.push_back({.chip = ChipOf(group, branch.chip),
                          .parent = ChipOf(group, branch.parent),
                          .up = link + turned,
                          .down = link + 1 - turned});
    }
  }

  FabricTree Swapping(std::size_t tree) {
    const Joint& joint = NextJoint(0, 1);
    FabricTree made;
    made.swap = {.one = ChipOf(0, joint.pair.one.place),
                 .other = ChipOf(1, joint.pair.other.place),
                 .there = joint.link,
                 .back = joint.link + 1};
    AppendFrom(0, tree, joint.pair.one.place, made.branches);
    AppendFrom(1, tree, joint.pair.other.place, made.branches);
    return made;
  }

  FabricTree Rooted(std::size_t tree, const DomainTree& domains) {
    std::vector<Below> below(set_.size());  // by group
    std::size_t root = 0;
    for (std::size_t group = 0; group < set_.size(); ++group) {
      const std::size_t parent = domains.parent[group];
      if (parent == group) {
        root = group;
        continue;
      }
      const Joint& joint = NextJoint(group, parent);
      const bool first = joint.pair.one.group == group;
      below[group].chip = first ? joint.pair.one.place : joint.pair.other.place;
      below[group].parent = first ? joint.pair.other.place : joint.pair.one.place;
      below[group].up = joint.link + (first ? 0 : 1);
      below[group].down = joint.link + (first ? 1 : 0);
      below[parent].groups.push_back(group);
    }
    FabricTree made;
    below[root].chip = LowestRoot(root, tree, below);
    AppendGroup(root, tree, below, made.branches);
    return made;
  }

  // How a group is joined to its parent, and the groups of which it is the parent.
  struct Below {
    std::size_t chip = 0;    // its own: the root of its tree
    std::size_t parent = 0;  // the parent's
    std::uint32_t up = 0;
    std::uint32_t down = 0;
    std::vector<std::size_t> groups;
  };

  void AppendGroup(std::size_t group, std::size_t tree, const std::vector<Below>& below,
                   std::vector<FabricTree::Branch>& branches) const {
    AppendFrom(group, tree, below[group].chip, branches);
    for (const std::size_t other : below[group].groups) {
      branches.push_back({.chip = ChipOf(other, below[other].chip),
                          .parent = ChipOf(group, below[other].parent),
                          .up = below[other].up,
                          .down = below[other].down});
      AppendGroup(other, tree, below, branches);
    }
  }

  // The chip of the group from which the tree is the lowest.
  std::size_t LowestRoot(std::size_t group, std::size_t tree,
                         const std::vector<Below>& below) const {
    std::vector<std::size_t> heights = heights_[group];
    for (const std::size_t other : below[group].groups) {
      const std::size_t more = kDepthOfEfa + heights_[other][below[other].chip];
      const std::size_t joined = below[other].parent;
      heights[joined] = std::max(heights[joined], more);
      for (const TreePacking::Branch& branch : packings_[group].From(tree, joined)) {
        heights[branch.chip] = std::max(heights[branch.chip], branch.depth + more);
      }
    }
    return static_cast<std::size_t>(std::ranges::min_element(heights) - heights.begin());
  }

  const DomainSet& set_;
  const std::vector<TreePacking> packings_;      // by group
  std::vector<std::uint32_t> first_link_;        // by group
  std::map<Groups, std::vector<Joint>> joints_;  // the earlier group first
  std::map<Groups, Shares> shares_;
  std::vector<std::vector<std::size_t>> heights_;  // of the tree that is made, by group and root
  FabricTrees trees_;
};

}  // namespace

std::uint64_t FabricTrees::fastest() const {
  std::uint64_t fastest = 0;
  for (const FabricLink& link : links) {
    if (!link.efa) fastest = std::max(fastest, link.rate);
  }
  return fastest;
}

absl::StatusOr<FabricTrees> PackFabricTrees(const DomainSet& set, const Fabric& fabric,
                                            std::size_t most) {
  TAHOMA_CHECK(set.size() > 1);
  for (const DomainSet::Group& group : set.groups()) {
    if (std::ranges::max(group.nics) == 0) {
      return FailedPrecondition("the EFA NICs of all chips of domain {} are down", group.domain);
    }
  }
  TAHOMA_ASSIGN_OR_RETURN(std::vector<TreePacking> packings, PackingsOf(set, fabric, most));
  return Packer(set, fabric, std::move(packings)).Pack();
}

}  // namespace tahoma::sim
