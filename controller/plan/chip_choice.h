// Chooses which chips of one node to take.
//
// Boxes whose links work come first, by the predicted time of an all-reduce (score.h), then by how
// little they hurt later requests. For other counts, or when links are down, it takes the connected
// set with the least predicted time. When no connected set is free it takes any chips, because
// Kubernetes promises a count and no shape.
//
// On a ring of chips (Inf2) only a run of neighbours will do. On other instances without a torus
// the chips are behind a switch and equal: the lowest are taken.
//
// Scope: arithmetic on 16 bits.
//
// Thread safety: one thread (it remembers what it computed).

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "controller/plan/score.h"
#include "lib/torus/box.h"

namespace tahoma::controller {

class ChipChoice {
 public:
  ChipChoice();

  // Returns `count` chips of `free`; nullopt when there are fewer and, on a ring, when no run of
  // that length is free. Links in `down` are avoided where a faster choice is free, on a ring
  // always.
  std::optional<std::uint16_t> Choose(std::uint16_t free, int count, const torus::LinkMask& down,
                                      const torus::Shape& shape,
                                      const hw::ChipModel& model = hw::kTrainium2) const;

  // Returns how fragmented the free chips of an instance are: the expected number of unusable chips
  // over a usual mix of requests, times 100 (docs/reference/torus.md#order-of-places).
  int Fragmentation(std::uint16_t free) const;

 private:
  std::optional<std::uint16_t> BestBox(std::uint16_t free, int count,
                                       const torus::LinkMask& down) const;
  std::optional<std::uint16_t> BestOther(std::uint16_t free, int count, const torus::LinkMask& down,
                                         const hw::ChipModel& model) const;

  PlaceScores scores_;
  mutable std::vector<std::int16_t> fragmentation_;  // by state; -1 until asked for
};

}  // namespace tahoma::controller
