// The chips of a communicator and the geometry that its algorithms use.
//
//   const ChipSet set(links, chips);   // 0, 1, 4 and 5
//   set.box();                         // 2x2x1+0,0,0: a subcube, so halving and doubling works
//   set.Rings(links);                  // Hamiltonian cycles over links that are up
//
// Scope: any non-empty set of different chips of one torus.
//
// Thread safety: immutable after construction.

#pragma once

#include <cstdint>
#include <vector>

#include "lib/torus/box.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

class ChipSet {
 public:
  // The order of `chips` is the order of the communicator's blocks. All must be different and in
  // the torus of `links`.
  ChipSet(const TorusLinks& links, std::vector<torus::ChipIndex> chips);

  const std::vector<torus::ChipIndex>& chips() const { return chips_; }
  std::size_t size() const { return chips_.size(); }
  torus::ChipMask mask() const { return mask_; }
  // Whether the link leads from a member to a member.
  bool HasBothEnds(const torus::Hop& hop) const {
    return ((MaskOf(hop.from) | MaskOf(hop.to)) & ~mask_) == 0;
  }
  // The place of a member in chips().
  std::size_t PlaceOf(torus::ChipIndex chip) const;

  // nullptr unless the set is a box with sides 1, 2 and 4.
  const torus::Box* box() const { return box_; }

  // Chips that messages between members may cross: the set itself when it hangs together, so that
  // tenants stay apart even around a broken link; otherwise all.
  torus::ChipMask through() const { return through_; }
  bool hangs_together() const { return through_ == mask_; }

  // Closed paths through all members, to be used in both directions at once. Hamiltonian cycles
  // over links that are up (two without a common link on a 4x4 plane, the five of cycles.h on an
  // UltraServer, one elsewhere) if there are any; otherwise one order of the members whose
  // neighbours may be more than a link apart.
  std::vector<std::vector<torus::ChipIndex>> Rings(const TorusLinks& links) const;

 private:
  bool IsCycle(const TorusLinks& links, const std::vector<torus::ChipIndex>& ring) const;
  std::vector<std::vector<torus::ChipIndex>> PlaneCycles(const torus::Shape& torus) const;

  std::vector<torus::ChipIndex> chips_;
  torus::ChipMask mask_ = 0;
  torus::ChipMask through_ = 0;
  const torus::Box* box_ = nullptr;
};

}  // namespace tahoma::sim
