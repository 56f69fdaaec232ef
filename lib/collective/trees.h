// Trees along which the pieces of a buffer spread over any set of chips that hangs together,
// damaged or not (spread.h): all links are busy in nearly every step.
//
// More pieces fill the links better and need more steps. A reduce-scatter is an all-gather
// backwards, on the links of the other direction.
//
// Thread safety: immutable after construction; pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/collective/domain_links.h"
#include "lib/collective/neuron_work.h"
#include "lib/collective/operation.h"
#include "lib/collective/spread.h"
#include "lib/torus/shape.h"

namespace tahoma::collective {

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

// Whether every link between the chips is as fast as the one back. Then the trees of an all-gather
// serve a reduce-scatter, too.
bool HasLikeDirections(std::span<const torus::ChipIndex> chips, const DomainLinks& links);

class Trees {
 public:
  // Nothing when the links that are fast enough do not join the chips.
  static std::optional<Trees> Of(Phase phase, std::span<const torus::ChipIndex> chips,
                                 const DomainLinks& links, TreeCut cut);

  const TreeCut& cut() const { return cut_; }
  // The links, between chips by their places in the list, and what each carries when.
  const std::vector<Edge>& edges() const { return edges_; }
  const std::vector<PieceSend>& sends() const { return sends_; }
  std::size_t step_count() const { return loads_.size(); }
  // The parts of the buffer that are sent alone: pieces * grain.
  std::uint64_t grains() const { return cut_.piece_count() * cut_.grain; }
  // By step of an all-gather, how many of them the fastest link could carry while the fullest
  // carries its own.
  const std::vector<double>& loads() const { return loads_; }
  // Returns the time of the steps for a buffer, in so many HBM banks of each chip.
  Picoseconds Time(Phase phase, std::uint64_t bytes, int banks, const LinkCosts& costs) const;

 private:
  Trees() = default;
  // The most chips to which a chip sends.
  std::uint64_t Destinations() const;
  // By step of an all-gather, how often the busiest chip touches a whole piece.
  std::vector<double> Touched(Phase phase, const ChipUse& use) const;

  TreeCut cut_;
  std::size_t chips_ = 0;
  std::vector<Edge> edges_;
  std::vector<PieceSend> sends_;
  std::vector<double> loads_;
  std::uint64_t fastest_ = 0;
};

// A collective along trees, phase after phase. In a single phase chips own equal parts of the
// buffer; in two of them the chips sum up shares such that no part of the set sends more than it
// must (partition.h).
struct TreeRequest {
  std::vector<Phase> phases;
  std::uint64_t bytes = 0;   // of all phases
  int banks = kHbmBanksMax;  // of each chip's HBM, with the buffer
};

// The trees of each phase, and their time.
struct TreePlan {
  std::vector<std::pair<Phase, Trees>> phases;
  Picoseconds time = Picoseconds::max();
};

// Returns the fastest trees; nothing when the links do not join the chips, or when no trees are
// faster than `limit`.
std::optional<TreePlan> FastestTrees(const TreeRequest& request,
                                     std::span<const torus::ChipIndex> chips,
                                     const DomainLinks& links, const LinkCosts& costs,
                                     Picoseconds limit = Picoseconds::max());

}  // namespace tahoma::collective
