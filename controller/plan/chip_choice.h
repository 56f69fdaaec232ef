// Which chips of one node to take.
//
//   ChipChoice choice;
//   choice.Choose(0x00ff, 4, {}, torus::kInstanceShape);    // a row or a square, least fragmenting
//
// Boxes whose links work come first, by bandwidth, then by how little they hurt later requests;
// other counts get a connected set that keeps together; what is left over when nothing connected
// is free gets any chips, because Kubernetes promises a count and no shape.
//
// On a ring of chips (Inf2) only a run of neighbours will do; elsewhere without a torus, behind a
// switch, all chips are equal and the lowest are taken.
//
// Scope: arithmetic on 16 bits.
//
// Thread safety: one thread (it remembers what it computed).

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/torus/box.h"

namespace tahoma::controller {

// Bytes per second that each chip of a box can send to the others, over links inside it, in units
// of 64 GB/s: what bounds collectives (reference: torus-and-links 1.1, closed form by shape).
int Bandwidth(const torus::Shape& box);

class ChipChoice {
 public:
  ChipChoice();

  // `count` chips of `free`; nullopt when there are fewer, and on a ring when no such run is free.
  // Links in `down` are avoided where something else is free; on a ring always.
  std::optional<std::uint16_t> Choose(std::uint16_t free, int count, const torus::LinkMask& down,
                                      const torus::Shape& shape) const;

  // How much the free chips of an instance are in pieces: expected unusable chips over a usual mix
  // of requests, times 100 (reference: torus-and-links 1.5, F).
  int Fragmentation(std::uint16_t free) const;

 private:
  mutable std::vector<std::int16_t> fragmentation_;  // by state; -1 until asked for
};

}  // namespace tahoma::controller
