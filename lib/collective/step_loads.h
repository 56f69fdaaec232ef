// The loads that the steps of Neuron's algorithms put on the links of a set of chips, for each byte
// of the buffer.
//
// All messages of a step are of one size and links are shared fairly, so the messages on the
// fullest link end last, and that link is never idle (routes.h). One rank or several: the chips of
// a set have equal blocks. The loads of a reduce-scatter are those of an all-gather backwards.
//
// Loads are computed when they are first asked for, and kept.
//
// Thread safety: none before ComputeAll.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/collective/cuts.h"
#include "lib/collective/domain_links.h"
#include "lib/collective/operation.h"
#include "lib/collective/rings.h"
#include "lib/torus/box.h"

namespace tahoma::collective {

// One step, or several alike one after the other.
struct StepLoad {
  std::uint64_t count = 1;
  // Of messages over the fullest links: picoseconds for each byte of the buffer, and hops.
  double link = 0;
  std::uint64_t hops = 1;
  // Of messages with more hops, if they are over links that are less full.
  double far_link = 0;
  std::uint64_t far_hops = 0;
  double sent = 0;      // the part of the buffer that leaves the busiest chip
  double received = 0;  // that it gets meanwhile
  std::uint64_t destinations = 1;
};
using StepLoads = std::vector<StepLoad>;

class SetLoads {
 public:
  // `links` must outlive it. `first` is the root of a broadcast, one of the chips; so is the chip
  // where a searched ring begins.
  SetLoads(torus::ChipMask chips, const DomainLinks& links, torus::ChipIndex first);

  torus::ChipMask chips() const { return chips_; }
  std::uint64_t count() const { return count_; }
  const DomainLinks& links() const { return links_; }
  torus::ChipMask through() const { return through_; }
  // Whether the chips are a subcube in full health: all its links of an axis are equally fast.
  bool regular() const { return box_ != nullptr && !damaged_; }

  // One phase of a reduce-scatter or an all-gather. nullptr where a chip is cut off, and of rdh
  // where the chips are no subcube. The steps of rdh are those of a reduce-scatter.
  const StepLoads* Mesh() const;
  // The mesh of an all-gather (or a reduce-scatter) of fewer elements than chips: so many chips
  // have a block of one element, the others none.
  StepLoads ThinMesh(bool gathers, std::uint64_t elements) const;
  const StepLoads* Halving() const;
  const StepLoads* AlongRings() const;
  // The root sends its whole buffer to all, or each its block.
  const StepLoads* FromRoot(bool whole) const;
  // An exchange of `ranks` ranks on each chip.
  std::optional<StepLoad> Exchange(Operation operation, int ranks) const;

  // Computes what is kept, once: afterwards threads may read it together.
  void ComputeAll() const;

 private:
  using Kept = std::optional<StepLoads>;  // empty: a chip is cut off

  Kept MakeMesh() const;
  Kept MakeHalving() const;
  Kept MakeAlongRings() const;
  std::optional<StepLoad> Permute(std::uint64_t ranks) const;
  const std::vector<Ring>& Rings() const;

  const torus::ChipMask chips_;
  const DomainLinks& links_;
  const torus::ChipIndex first_;
  const std::uint64_t count_;
  const torus::ChipMask through_;
  const torus::Box* const box_;
  bool damaged_ = false;
  mutable std::optional<std::vector<Ring>> rings_;
  mutable std::optional<Kept> mesh_;
  mutable std::optional<Kept> halving_;
  mutable std::optional<Kept> ring_;
  mutable std::optional<Kept> from_root_[2];
};

}  // namespace tahoma::collective
