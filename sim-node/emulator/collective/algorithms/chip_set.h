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

#include <vector>

#include "lib/collective/domain_links.h"
#include "lib/collective/rings.h"
#include "lib/torus/box.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// Returns the links as lib/collective knows them, at their rates of now, and the costs of a step.
collective::DomainLinks RatesOf(const TorusLinks& links, const collective::LinkCosts& costs = {});

class ChipSet {
 public:
  // The order of `chips` is the order of the communicator's blocks. All must be different and in
  // the torus of `links`.
  ChipSet(const TorusLinks& links, std::vector<torus::ChipIndex> chips);

  const std::vector<torus::ChipIndex>& chips() const { return chips_; }
  std::size_t size() const { return chips_.size(); }
  torus::ChipMask mask() const { return mask_; }
  // The place of a member in chips().
  std::size_t PlaceOf(torus::ChipIndex chip) const;

  // nullptr unless the set is a box with sides 1, 2 and 4.
  const torus::Box* box() const { return box_; }

  // Chips that messages between members may cross: the set itself when it hangs together, so that
  // tenants stay apart even around a broken link; otherwise all.
  torus::ChipMask through() const { return through_; }

  // Closed paths through all members, to be used in both directions at once
  // (lib/collective/rings.h).
  std::vector<std::vector<torus::ChipIndex>> Rings(const TorusLinks& links) const {
    return collective::RingsOf(RatesOf(links), mask_, chips_[0]);
  }

 private:
  std::vector<torus::ChipIndex> chips_;
  torus::ChipMask mask_ = 0;
  torus::ChipMask through_ = 0;
  const torus::Box* box_ = nullptr;
};

}  // namespace tahoma::sim
