// An all-reduce in which each piece of the buffer flows along a tree of its own (packing.h): it is
// summed up towards the root and spread back over the same cables.
//
//   const TreeFlow flow(packing, /*grain=*/2);
//   std::vector<Step> steps = flow.Steps(layout, stripe);
//
// A cable carries each piece of its trees once in each direction, so trees that load all cables in
// proportion to their rates reach the bound of collective::WorstPartition, also where a
// reduce-scatter and an all-gather one after the other do not: around chips whose cables lead to
// few others.
//
// In each step the fastest link carries `grain` pieces, a slower one fewer, or a part of one. Which
// ones is decided step by step: of the pieces that a link may carry, first those that have the
// longest way before them, and of these the earlier pieces. The order is then improved backwards
// and forwards, as is usual for projects with scarce resources (Li and Willis 1992): backwards,
// what ends last goes last; forwards, what then begins first goes first. So links are idle only in
// the last steps, which are about as many as a tree is high, but for those that mostly spread, for
// they wait for the first results. More orders may be tried, in which what they wait for comes
// earlier; the best one is kept.
//
// Thread safety: immutable after construction.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/algorithms/packing.h"
#include "sim-node/emulator/collective/schedule/schedule.h"

namespace tahoma::sim {

class TreeFlow {
 public:
  // The more orders are tried beside the first, the fewer steps. None are where links are hardly
  // idle.
  TreeFlow(const TreePacking& packing, std::uint64_t grain, std::size_t orders = 0);

  std::size_t step_count() const { return step_count_; }
  // The steps of one stripe; all stripes have as many. They may be empty when there are fewer
  // elements than pieces. What a step sums up stands before what it spreads.
  std::vector<Step> Steps(const Layout& layout, Stripe stripe = {}) const;

 private:
  // A part of a piece on a link in one step.
  struct Crossing {
    std::uint32_t step = 0;
    std::uint32_t piece = 0;
    std::uint8_t from = 0;  // chips of the set
    std::uint8_t to = 0;
    Action action = Action::kCopy;
    std::uint64_t begin = 0;  // of the rate of the fastest link
    std::uint64_t end = 0;
  };

  std::vector<torus::ChipIndex> chips_;
  std::vector<Crossing> crossings_;  // in the order of their steps
  std::size_t step_count_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint64_t whole_ = 1;  // parts of a piece

  friend class FlowPlanner;
};

}  // namespace tahoma::sim
