#include "sim-node/collective/bound.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

// Beyond, the parts of a set are too many to look at each.
constexpr int kEnumeratedChips = 16;

class Cuts {
 public:
  Cuts(const ChipSet& set, const TorusLinks& links)
      : links_(links), members_(set.mask()), through_(set.through()) {
    for (LinkId link = 0; link < links.id_count(); ++link) {
      if (links.capacity(link) == 0) continue;
      const torus::Hop hop = links.HopOf(link);
      if (((MaskOf(hop.from) | MaskOf(hop.to)) & ~through_) != 0) continue;
      hops_.push_back(
          {.from = MaskOf(hop.from), .to = MaskOf(hop.to), .rate = links.capacity(link)});
    }
  }

  std::uint64_t total_rate() const { return RateInto(through_, ~ChipMask{0}); }

  // Calls each(part, rate of the links into it) for non-empty parts of the members that are not all
  // of them.
  template <typename Each>
  void ForEach(const Each& each) const {
    const auto look = [&](ChipMask part) {
      // Chips outside of the set may forward, so no border can be drawn through them.
      const bool alone = through_ == members_ || std::has_single_bit(part);
      if (part != 0 && part != members_ && alone) each(part, RateInto(part, ~part));
    };
    if (std::popcount(members_) <= kEnumeratedChips) {
      for (ChipMask part = members_; part != 0; part = (part - 1) & members_) look(part);
      return;
    }
    for (const torus::Box& box : torus::BoxTable::Of(links_.torus()).all()) {
      look(box.mask & members_);
      look(members_ & ~box.mask);
    }
  }

 private:
  struct Crossing {
    ChipMask from;
    ChipMask to;
    std::uint64_t rate;
  };
  std::uint64_t RateInto(ChipMask part, ChipMask from) const {
    std::uint64_t rate = 0;
    for (const Crossing& hop : hops_) {
      if ((hop.to & part) != 0 && (hop.from & from) != 0) rate += hop.rate;
    }
    return rate;
  }

  const TorusLinks& links_;
  const ChipMask members_;
  const ChipMask through_;
  std::vector<Crossing> hops_;
};

// The time that `numerator / denominator` bytes take at `rate`, rounded down: a bound must not be
// more than the truth.
VirtualDuration AtLeast(Wide numerator, std::uint64_t denominator, std::uint64_t rate) {
  if (numerator == 0) return VirtualDuration(0);
  if (rate == 0) return VirtualDuration::max();
  const Wide time = numerator * kPicosecondsPerSecond / (static_cast<Wide>(denominator) * rate);
  return VirtualDuration(static_cast<VirtualDuration::rep>(time));
}

// Links that the messages of an all-to-all take at least, over all pairs.
std::uint64_t Hops(const ChipSet& set, const torus::Shape& torus) {
  std::uint64_t hops = 0;
  for (const ChipIndex from : set.chips()) {
    for (const ChipIndex to : set.chips()) hops += torus::Route(torus, from, to).size();
  }
  return hops;
}

// Blocks, of which a chip's buffer has as many as there are chips, that must enter a part of
// `inside` of `all` chips.
std::uint64_t BlocksInto(Operation operation, std::uint64_t inside, std::uint64_t all,
                         bool has_root) {
  switch (operation) {
    case Operation::kAllToAll:
      return inside * (all - inside);
    case Operation::kBroadcast:
      return has_root ? 0 : all;
    case Operation::kSendReceive:
    case Operation::kPermute:
      return inside == 1 ? all : 0;
    default:
      return all - inside;
  }
}

}  // namespace

VirtualDuration LowerBound(Operation operation, const ChipSet& set, std::uint64_t bytes,
                           const TorusLinks& links) {
  const auto chips = static_cast<std::uint64_t>(set.size());
  if (chips == 1) return VirtualDuration(0);
  const Cuts cuts(set, links);
  VirtualDuration bound(0);
  cuts.ForEach([&](ChipMask part, std::uint64_t rate) {
    const auto inside = static_cast<std::uint64_t>(std::popcount(part));
    const bool has_root = (part & MaskOf(set.chips()[0])) != 0;
    const std::uint64_t blocks = BlocksInto(operation, inside, chips, has_root);
    bound = std::max(bound, AtLeast(static_cast<Wide>(bytes) * blocks, chips, rate));
  });
  if (operation == Operation::kAllToAll) {
    const Wide volume = static_cast<Wide>(bytes) * Hops(set, links.torus());
    bound = std::max(bound, AtLeast(volume, chips, cuts.total_rate()));
  }
  // The sum first, then everybody's copy of it: what enters a part once must enter it twice.
  if (operation == Operation::kAllReduce && bound != VirtualDuration::max()) bound *= 2;
  return bound;
}

}  // namespace tahoma::sim
