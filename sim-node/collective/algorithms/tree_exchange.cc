#include "sim-node/collective/algorithms/tree_exchange.h"

#include <algorithm>
#include <limits>

#include "lib/collective/masks.h"

namespace tahoma::sim {
namespace {

using torus::ChipMask;

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// Whether the cable leads out of the side.
bool LeadsOut(const TreeCable& cable, ChipMask side) {
  return ((side >> cable.one ^ side >> cable.other) & 1) != 0;
}

class Exchange {
 public:
  Exchange(const std::vector<std::uint64_t>& most, std::size_t highest,
           std::vector<SpanningTree>& trees, std::vector<TreeCable>& cables)
      : most_(most), highest_(highest), trees_(trees), cables_(cables) {
    for (const SpanningTree& tree : trees) heights_.push_back(tree.Height());
  }

  void Run() {
    for (std::size_t cable = 0; cable < cables_.size(); ++cable) {
      while (cables_[cable].trees > most_[cable]) {
        if (!Relieve(cable)) break;
      }
    }
  }

 private:
  // That a tree takes a cable for another.
  struct Swap {
    std::size_t tree = kNone;
    std::size_t cable = 0;  // that it gives up
  };

  bool HasRoom(std::size_t cable) const { return cables_[cable].trees < most_[cable]; }

  // Takes a tree away from the cable, by the fewest swaps; false when there are none.
  bool Relieve(std::size_t cable) {
    swap_to_.assign(cables_.size(), {});
    reached_ = {cable};
    begin_ = cable;
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      const std::size_t end = FindRoom(reached_[i]);
      if (end == kNone) continue;
      Apply(end);
      return true;
    }
    return false;
  }

  // Returns a cable with room that a tree may take for this one: the first by which a tree becomes
  // no higher, or else that by which it stays the lowest. If there is none, reaches all full ones.
  std::size_t FindRoom(std::size_t cable) {
    std::size_t best = kNone;
    std::size_t least = kNone;
    std::vector<std::size_t> room;
    for (std::size_t other = 0; other < cables_.size(); ++other) {
      if (HasRoom(other)) room.push_back(other);
    }
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      if (!trees_[i].Uses(cable) || IsInChain(i, cable)) continue;
      const ChipMask side = trees_[i].SideOf(cable);
      for (const std::size_t other : room) {
        if (!LeadsOut(cables_[other], side)) continue;
        const std::size_t height = trees_[i].HeightWith(cable, other);
        if (height > std::max(heights_[i], highest_) || height >= least) continue;
        swap_to_[other] = {.tree = i, .cable = cable};
        if (height <= heights_[i]) return other;
        least = height;
        best = other;
      }
    }
    if (best == kNone) ReachFull(cable);
    return best;
  }

  void ReachFull(std::size_t cable) {
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      if (!trees_[i].Uses(cable) || IsInChain(i, cable)) continue;
      const ChipMask side = trees_[i].SideOf(cable);
      for (std::size_t other = 0; other < cables_.size(); ++other) {
        if (other == begin_ || swap_to_[other].tree != kNone) continue;
        if (!LeadsOut(cables_[other], side) || trees_[i].Uses(other)) continue;
        if (trees_[i].HeightWith(cable, other) > std::max(heights_[i], highest_)) continue;
        swap_to_[other] = {.tree = i, .cable = cable};
        reached_.push_back(other);
      }
    }
  }

  // Whether the swaps that lead to the cable change the tree. A second change could spoil the first.
  bool IsInChain(std::size_t tree, std::size_t cable) const {
    for (; cable != begin_; cable = swap_to_[cable].cable) {
      if (swap_to_[cable].tree == tree) return true;
    }
    return false;
  }

  // Makes the swaps that lead to the cable.
  void Apply(std::size_t end) {
    for (std::size_t cable = end; cable != begin_; cable = swap_to_[cable].cable) {
      const Swap& swap = swap_to_[cable];
      trees_[swap.tree].Replace(swap.cable, cable);
      heights_[swap.tree] = trees_[swap.tree].Height();
    }
    ++cables_[end].trees;
    --cables_[begin_].trees;
  }

  const std::vector<std::uint64_t>& most_;
  const std::size_t highest_;
  std::vector<SpanningTree>& trees_;
  std::vector<TreeCable>& cables_;
  std::vector<std::size_t> heights_;  // of the trees
  std::size_t begin_ = 0;             // the cable that is to be relieved
  std::vector<Swap> swap_to_;         // how each cable was reached
  std::vector<std::size_t> reached_;  // in the order of the swaps to them
};

}  // namespace

void EvenOut(const std::vector<std::uint64_t>& most, std::size_t highest,
             std::vector<SpanningTree>& trees, std::vector<TreeCable>& cables) {
  Exchange(most, highest, trees, cables).Run();
}

}  // namespace tahoma::sim
