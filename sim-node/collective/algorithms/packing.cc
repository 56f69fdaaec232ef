#include "sim-node/collective/algorithms/packing.h"

#include <algorithm>
#include <numeric>

#include "lib/base/check.h"
#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

struct Cable {
  std::size_t one = 0;  // chips of the set
  std::size_t other = 0;
  std::uint64_t rate = 0;  // of its slower direction
  std::uint64_t load = 0;  // trees
};

std::vector<Cable> CablesOf(const ChipSet& set, const TorusLinks& links) {
  std::vector<Cable> cables;
  for (LinkId link = 0; link < links.id_count(); ++link) {
    if (links.capacity(link) == 0) continue;
    const torus::Hop hop = links.HopOf(link);
    // Every cable has one plus link.
    if (hop.direction != torus::Direction::kPlus) continue;
    if (!set.HasBothEnds(hop)) continue;
    const LinkId back = TorusLinks::IdOf(hop.to, hop.axis, Opposite(hop.direction));
    const std::uint64_t rate = std::min(links.capacity(link), links.capacity(back));
    if (rate == 0) continue;
    cables.push_back({.one = set.PlaceOf(hop.from), .other = set.PlaceOf(hop.to), .rate = rate});
  }
  return cables;
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
  return static_cast<Wide>(a.load + 1) * b.rate < static_cast<Wide>(b.load + 1) * a.rate;
}

}  // namespace

class TreePacker {
 public:
  TreePacker(const ChipSet& set, const TorusLinks& links)
      : chips_(set.size()), cables_(CablesOf(set, links)) {}

  std::optional<TreePacking> Pack(const ChipSet& set, std::size_t trees) {
    TreePacking packing;
    packing.chips_ = set.chips();
    for (std::size_t i = 0; i < trees; ++i) {
      if (!AddLightest()) return std::nullopt;
      packing.trees_.push_back(Rooted());
      for (const TreePacking::Branch& branch : packing.trees_.back()) {
        packing.height_ = std::max(packing.height_, branch.depth);
      }
    }
    const Cable& fullest =
        *std::max_element(cables_.begin(), cables_.end(), [](const Cable& a, const Cable& b) {
          return static_cast<Wide>(a.load) * b.rate < static_cast<Wide>(b.load) * a.rate;
        });
    packing.fullest_load_ = fullest.load;
    packing.fullest_rate_ = fullest.rate;
    return packing;
  }

 private:
  // Finds the spanning tree of least load; false when there is none.
  bool AddLightest() {
    for (std::size_t i = cables_.size(); i > 1; --i) {
      std::swap(cables_[i - 1], cables_[rng_.Below(i)]);
    }
    std::stable_sort(cables_.begin(), cables_.end(), LessLoaded);
    Groups groups(chips_);
    near_.assign(chips_, {});
    std::size_t joined = 1;
    for (Cable& cable : cables_) {
      if (!groups.Join(cable.one, cable.other)) continue;
      near_[cable.one].push_back(cable.other);
      near_[cable.other].push_back(cable.one);
      ++cable.load;
      ++joined;
    }
    return joined == chips_;
  }

  TreePacking::Tree From(std::size_t root) const {
    TreePacking::Tree tree;
    for (const std::size_t chip : near_[root]) tree.push_back({.chip = chip, .parent = root});
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const TreePacking::Branch branch = tree[i];
      for (const std::size_t chip : near_[branch.chip]) {
        if (chip == branch.parent) continue;
        tree.push_back({.chip = chip, .parent = branch.chip, .depth = branch.depth + 1});
      }
    }
    return tree;
  }
  // With the root in the middle: half way between the two chips that are farthest apart.
  TreePacking::Tree Rooted() const {
    const std::size_t end = From(0).back().chip;
    const TreePacking::Tree longest = From(end);
    std::size_t at = longest.back().chip;
    for (std::size_t up = longest.back().depth / 2; up > 0; --up) {
      at = std::find_if(longest.begin(), longest.end(), [at](const auto& branch) {
             return branch.chip == at;
           })->parent;
    }
    return From(at);
  }

  const std::size_t chips_;
  std::vector<Cable> cables_;
  std::vector<std::vector<std::size_t>> near_;  // in the tree that was added last
  Rng rng_{1};                                  // breaks ties; any number does
};

std::optional<TreePacking> TreePacking::Of(const ChipSet& set, const TorusLinks& links,
                                           std::size_t trees) {
  TAHOMA_CHECK(set.size() > 1 && trees > 0);
  return TreePacker(set, links).Pack(set, trees);
}

std::vector<Step> TreePacking::Steps(std::size_t chunks, const Layout& layout,
                                     Stripe stripe) const {
  const std::uint64_t parts = trees_.size() * chunks * stripe.count;
  const auto begin_of = [&](std::uint64_t part) {
    return static_cast<std::uint64_t>(static_cast<Wide>(layout.bounds.back()) * part / parts) *
           layout.element_bytes;
  };
  std::vector<Step> steps(StepCount(chunks));
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::size_t tree = 0; tree < trees_.size(); ++tree) {
      const std::uint64_t part = (tree * chunks + chunk) * stripe.count + stripe.index;
      const std::uint64_t begin = begin_of(part);
      const std::uint64_t bytes = begin_of(part + 1) - begin;
      if (bytes == 0) continue;
      for (const Branch& branch : trees_[tree]) {
        Send send{.from = chips_[branch.chip],
                  .to = chips_[branch.parent],
                  .offset = begin,
                  .to_offset = begin,
                  .bytes = bytes,
                  .action = Action::kReduce};
        steps[chunk + height_ - branch.depth].push_back(send);
        std::swap(send.from, send.to);
        send.action = Action::kCopy;
        steps[chunk + height_ + branch.depth - 1].push_back(send);
      }
    }
  }
  return steps;
}

}  // namespace tahoma::sim
