// Collectives on any set of chips that hangs together, damaged or not: each piece of the buffer
// spreads along a tree of its own (spread.h), such that all links are busy in nearly every step.
//
//   const auto trees = Trees::Of(Phase::kAllGather, set, links, {.pieces = {4, 4, 3, 5}});
//   std::vector<Step> steps = trees->Steps(Phase::kAllGather, layout);
//
// More pieces fill the links better and need more steps. A reduce-scatter is an all-gather
// backwards, on the links of the other direction.
//
// Thread safety: immutable after construction.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/collective/spread.h"
#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

using collective::Edge;
using collective::PieceSend;
using collective::Spread;

// Links that take so many steps of the fastest link for what that carries in one are always used.
inline constexpr std::uint64_t kSlowestAlways = 8;

// How a buffer is cut for trees.
struct TreeCut {
  // The number of pieces that lie on each chip of the set, or are summed up there.
  std::vector<std::size_t> pieces;
  // The steps that a piece takes over the fastest link. A slower link takes a whole number of
  // steps, too, so more of them leave less of its rate unused.
  std::size_t grain = 1;
  // Or the pieces that the fastest link carries in a step, where grain is 1: fewer steps for
  // buffers so small that starts count more than bytes.
  std::size_t bundle = 1;
  // The most steps of the fastest link that a link may take for what that carries in one; slower
  // ones are left alone.
  std::uint64_t slowest = kSlowestAlways;

  std::size_t piece_count() const;
};

// The rate of the fastest link between the chips; 0 if there is none.
std::uint64_t FastestLink(const ChipSet& set, const TorusLinks& links);

// Whether every link between the chips is as fast as the one back. Then the trees of an all-gather
// serve a reduce-scatter, too.
bool HasLikeDirections(const ChipSet& set, const TorusLinks& links);

class Trees {
 public:
  // Nothing when the links that are fast enough do not join the set.
  static std::optional<Trees> Of(Phase phase, const ChipSet& set, const TorusLinks& links,
                                 TreeCut cut);

  std::size_t step_count() const { return step_count_; }
  // The parts of the buffer that are sent alone: pieces * grain.
  std::uint64_t grains() const { return cut_.piece_count() * cut_.grain; }
  // By step of an all-gather, how many of them the fastest link could carry while the fullest
  // carries its own.
  const std::vector<double>& loads() const { return loads_; }
  std::uint64_t fastest() const { return fastest_; }
  // The most parts that a chip sends in a step.
  int degree() const;
  // Pieces lie in the blocks of their chips, or, when it does not matter which chip has which block
  // (layout.fixed), one after the other in the whole buffer. Steps may be empty when there are
  // fewer elements than pieces.
  std::vector<Step> Steps(Phase phase, const Layout& layout) const;

 private:
  Trees() = default;

  TreeCut cut_;
  std::vector<torus::ChipIndex> chips_;
  std::vector<Edge> edges_;
  std::vector<PieceSend> sends_;
  std::size_t step_count_ = 0;
  std::vector<double> loads_;
  std::uint64_t fastest_ = 0;
};

}  // namespace tahoma::sim
