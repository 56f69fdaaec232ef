#include "sim-node/collective/domains/fabric_trees.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/collective/algorithms/packing.h"
#include "sim-node/collective/domains/between_domains.h"
#include "sim-node/collective/domains/nic_pairs.h"
#include "sim-node/collective/plan/plan.h"

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

// Takes turns such that each of several has been chosen in proportion to its weight at any time.
class Shares {
 public:
  explicit Shares(std::vector<int> weights)
      : weights_(std::move(weights)),
        taken_(weights_.size()),
        whole_(std::accumulate(weights_.begin(), weights_.end(), std::uint64_t{0})) {}

  // Whether one has less than its share after the next choice.
  bool IsOpen(std::size_t one) const {
    return taken_[one] * whole_ < static_cast<std::uint64_t>(weights_[one]) * (all_ + 1);
  }
  // The part of a choice that one is behind its share.
  double Behind(std::size_t one) const {
    return static_cast<double>(weights_[one]) * static_cast<double>(all_ + 1) /
               static_cast<double>(whole_) -
           static_cast<double>(taken_[one]);
  }
  void Take(std::size_t one) {
    ++taken_[one];
    ++all_;
  }
  std::size_t size() const { return weights_.size(); }

 private:
  std::vector<int> weights_;
  std::vector<std::uint64_t> taken_;
  std::uint64_t whole_;
  std::uint64_t all_ = 0;
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
    std::vector<std::vector<int>> nics;
    for (const DomainSet::Group& group : set.groups()) nics.push_back(group.nics);
    std::map<Groups, std::vector<int>> weights;
    const std::uint64_t nic = NicRate(fabric);
    for (const NicPair& pair : PairNics(nics)) {
      const Groups groups(pair.one.group, pair.other.group);
      joints_[groups].push_back({.pair = pair,
                                 .link = static_cast<std::uint32_t>(trees_.links.size())});
      weights[groups].push_back(pair.permille);
      AddLinks(ChipOf(pair.one.group, pair.one.place), ChipOf(pair.other.group, pair.other.place),
               std::max<std::uint64_t>(nic * static_cast<std::uint64_t>(pair.permille) / 1000, 1),
               true);
    }
    for (auto& [groups, list] : weights) shares_.emplace(groups, Shares(std::move(list)));
    homes_.emplace(HomesOf(set));
  }

  FabricTrees Pack() && {
    for (std::size_t tree = 0; tree < packings_[0].trees().size(); ++tree) {
      heights_.clear();
      for (const TreePacking& packing : packings_) heights_.push_back(packing.HeightsOf(tree));
      trees_.trees.push_back(packings_.size() == 2 ? Swapping(tree) : Homed(tree));
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
  // The weights of the groups as homes: a group that has no NICs for another is none.
  std::vector<int> HomesOf(const DomainSet& set) const {
    std::vector<int> homes = HomeWeights(NicRates(set));
    for (std::size_t home = 0; home < homes.size(); ++home) {
      for (std::size_t other = 0; other < homes.size(); ++other) {
        if (home != other && !joints_.contains(std::minmax(home, other))) homes[home] = 0;
      }
    }
    return homes;
  }
  torus::ChipIndex ChipOf(std::size_t group, std::size_t place) const {
    return set_.ChipOf(group, place);
  }
  void AddLinks(torus::ChipIndex one, torus::ChipIndex other, std::uint64_t rate, bool efa) {
    trees_.links.push_back({.from = one, .to = other, .rate = rate, .efa = efa});
    trees_.links.push_back({.from = other, .to = one, .rate = rate, .efa = efa});
  }

  // The joint of two groups that is not ahead of its share and makes the next tree the lowest.
  const Joint& NextJoint(const Groups& groups) {
    Shares& shares = shares_.at(groups);
    const std::vector<Joint>& joints = joints_.at(groups);
    std::size_t best = joints.size();
    std::size_t least = 0;
    for (std::size_t i = 0; i < joints.size(); ++i) {
      if (!shares.IsOpen(i)) continue;
      const NicPair& pair = joints[i].pair;
      const std::size_t height = heights_[pair.one.group][pair.one.place] +
                                 heights_[pair.other.group][pair.other.place];
      if (best != joints.size() && height >= least) continue;
      best = i;
      least = height;
    }
    TAHOMA_CHECK(best < joints.size());  // fewer were taken than all shares together
    shares.Take(best);
    return joints[best];
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
    const Joint& joint = NextJoint({0, 1});
    FabricTree made;
    made.swap = {.one = ChipOf(0, joint.pair.one.place),
                 .other = ChipOf(1, joint.pair.other.place),
                 .there = joint.link,
                 .back = joint.link + 1};
    AppendFrom(0, tree, joint.pair.one.place, made.branches);
    AppendFrom(1, tree, joint.pair.other.place, made.branches);
    return made;
  }

  FabricTree Homed(std::size_t tree) {
    std::size_t home = 0;
    for (std::size_t group = 1; group < packings_.size(); ++group) {
      if (homes_->Behind(group) > homes_->Behind(home)) home = group;
    }
    homes_->Take(home);
    std::vector<Joint> joints;
    for (std::size_t other = 0; other < packings_.size(); ++other) {
      if (other != home) joints.push_back(NextJoint(std::minmax(home, other)));
    }
    FabricTree made;
    AppendFrom(home, tree, RootOf(home, tree, joints), made.branches);
    for (const Joint& joint : joints) {
      const bool first = joint.pair.one.group == home;
      const NicPair::End& at_home = first ? joint.pair.one : joint.pair.other;
      const NicPair::End& away = first ? joint.pair.other : joint.pair.one;
      made.branches.push_back({.chip = ChipOf(away.group, away.place),
                               .parent = ChipOf(home, at_home.place),
                               .up = joint.link + (first ? 1 : 0),
                               .down = joint.link + (first ? 0 : 1)});
      AppendFrom(away.group, tree, away.place, made.branches);
    }
    return made;
  }

  // The chip at home from which the tree is the lowest.
  std::size_t RootOf(std::size_t home, std::size_t tree, const std::vector<Joint>& joints) const {
    std::vector<std::size_t> heights = heights_[home];
    for (const Joint& joint : joints) {
      const bool first = joint.pair.one.group == home;
      const NicPair::End& at_home = first ? joint.pair.one : joint.pair.other;
      const NicPair::End& away = first ? joint.pair.other : joint.pair.one;
      const std::size_t below = kDepthOfEfa + heights_[away.group][away.place];
      heights[at_home.place] = std::max(heights[at_home.place], below);
      for (const TreePacking::Branch& branch : packings_[home].From(tree, at_home.place)) {
        heights[branch.chip] = std::max(heights[branch.chip], branch.depth + below);
      }
    }
    return static_cast<std::size_t>(std::ranges::min_element(heights) - heights.begin());
  }

  const DomainSet& set_;
  const std::vector<TreePacking> packings_;        // by group
  std::optional<Shares> homes_;                    // by group
  std::vector<std::uint32_t> first_link_;          // by group
  std::map<Groups, std::vector<Joint>> joints_;    // the earlier group first
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
