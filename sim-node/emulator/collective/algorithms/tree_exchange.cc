#include "sim-node/emulator/collective/algorithms/tree_exchange.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "lib/base/check.h"
#include "lib/collective/masks.h"

namespace tahoma::sim {
namespace {

using torus::ChipMask;

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
// A chain is first looked for among so many of the trees that use each cable.
constexpr std::size_t kTreesAtFirst = 48;

// A set of cables; 64 chips with six neighbours each have 192.
class CableSet {
 public:
  static constexpr std::size_t kMost = 192;

  void Add(std::size_t cable) { words_.at(cable / 64) |= Bit(cable); }
  void Remove(std::size_t cable) { words_.at(cable / 64) &= ~Bit(cable); }
  bool Has(std::size_t cable) const { return (words_.at(cable / 64) & Bit(cable)) != 0; }
  // What only one of the two has.
  void TakeOdd(const CableSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] ^= other.words_[i];
  }
  // Calls visit(cable) for those that are in the other set, too, until it is true.
  template <typename Visit>
  bool AnyWith(const CableSet& other, const Visit& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t left = words_[i] & other.words_[i]; left != 0; left &= left - 1) {
        if (visit(i * 64 + static_cast<std::size_t>(std::countr_zero(left)))) return true;
      }
    }
    return false;
  }

 private:
  static std::uint64_t Bit(std::size_t cable) { return std::uint64_t{1} << (cable % 64); }
  std::array<std::uint64_t, kMost / 64> words_{};
};

class Exchange {
 public:
  Exchange(const std::vector<std::uint64_t>& most, std::size_t highest,
           std::vector<SpanningTree>& trees, std::vector<TreeCable>& cables)
      : most_(most), highest_(highest), trees_(trees), cables_(cables) {
    TAHOMA_CHECK(cables.size() <= CableSet::kMost);
    for (const SpanningTree& tree : trees) heights_.push_back(tree.Height());
    for (std::size_t cable = 0; cable < cables.size(); ++cable) {
      cables_of_.at(cables[cable].one).Add(cable);
      cables_of_.at(cables[cable].other).Add(cable);
      chips_ |= collective::Bit(static_cast<int>(cables[cable].one)) |
                collective::Bit(static_cast<int>(cables[cable].other));
      NoteRoom(cable);
    }
  }

  void Run() {
    for (std::size_t cable = 0; cable < cables_.size(); ++cable) {
      while (cables_[cable].trees > most_[cable]) {
        if (!Relieve(cable, kTreesAtFirst) && !Relieve(cable, trees_.size())) break;
      }
    }
  }

 private:
  // That a tree takes a cable for another.
  struct Swap {
    std::size_t tree = kNone;
    std::size_t cable = 0;  // that it gives up
  };

  void NoteRoom(std::size_t cable) {
    if (cables_[cable].trees < most_[cable]) {
      room_.Add(cable);
    } else {
      room_.Remove(cable);
    }
  }

  // Takes a tree away from the cable, by the fewest swaps of so many trees that use each; false
  // when there are none.
  bool Relieve(std::size_t cable, std::size_t trees) {
    swap_to_.assign(cables_.size(), {});
    full_ = {};
    for (std::size_t other = 0; other < cables_.size(); ++other) {
      if (other != cable && !room_.Has(other)) full_.Add(other);
    }
    reached_ = {cable};
    begin_ = cable;
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      const std::size_t end = Search(reached_[i], trees);
      if (end == kNone) continue;
      Apply(end);
      return true;
    }
    return false;
  }

  // Returns a cable with room that a tree may take for this one: the first by which a tree becomes
  // no higher, or else that by which it stays the lowest. If there is none, reaches all full ones
  // that a tree may take.
  std::size_t Search(std::size_t cable, std::size_t trees) {
    std::size_t best = kNone;
    std::size_t least = kNone;
    const std::size_t first = next_first_++ % trees_.size();
    for (std::size_t i = 0; i < trees_.size() && trees > 0; ++i) {
      const std::size_t index = first + i < trees_.size() ? first + i : first + i - trees_.size();
      const SpanningTree& tree = trees_[index];
      if (!tree.Uses(cable) || IsInChain(index, cable)) continue;
      --trees;
      const CableSet joining = Joining(tree.SideOf(cable));
      const bool found = joining.AnyWith(room_, [&](std::size_t other) {
        const std::size_t height = tree.HeightWith(cable, other);
        if (height > std::max(heights_[index], highest_) || height >= least) return false;
        swap_to_[other] = {.tree = index, .cable = cable};
        least = height;
        best = other;
        return height <= heights_[index];
      });
      if (found) return best;
      if (best != kNone) continue;
      joining.AnyWith(full_, [&](std::size_t other) {
        if (tree.HeightWith(cable, other) > std::max(heights_[index], highest_)) return false;
        swap_to_[other] = {.tree = index, .cable = cable};
        reached_.push_back(other);
        full_.Remove(other);
        return false;
      });
    }
    return best;
  }

  // The cables between a side of the set and the other one.
  CableSet Joining(ChipMask side) const {
    if (std::popcount(side) > std::popcount(chips_) / 2) side = chips_ & ~side;
    CableSet joining;
    for (; side != 0; side &= side - 1) {
      joining.TakeOdd(cables_of_.at(static_cast<std::size_t>(collective::Lowest(side))));
    }
    return joining;
  }

  // Whether the swaps that lead to the cable change the tree. A second change could spoil the
  // first.
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
    NoteRoom(end);
    NoteRoom(begin_);
  }

  const std::vector<std::uint64_t>& most_;
  const std::size_t highest_;
  std::vector<SpanningTree>& trees_;
  std::vector<TreeCable>& cables_;
  std::vector<std::size_t> heights_;  // of the trees
  ChipMask chips_ = 0;
  std::array<CableSet, 64> cables_of_{};  // of each chip
  CableSet room_;                         // cables that may carry more trees
  std::size_t begin_ = 0;                 // the cable that is to be relieved
  CableSet full_;                         // cables without room that are not reached yet
  std::vector<Swap> swap_to_;             // how each cable was reached
  std::vector<std::size_t> reached_;      // in the order of the swaps to them
  std::size_t next_first_ = 0;            // the tree with which the next search begins
};

}  // namespace

void EvenOut(const std::vector<std::uint64_t>& most, std::size_t highest,
             std::vector<SpanningTree>& trees, std::vector<TreeCable>& cables) {
  Exchange(most, highest, trees, cables).Run();
}

}  // namespace tahoma::sim
