// Packs the trees of a broadcast to several topology domains that are alike. Chips at the same
// place of two domains are twins, joined over EFA by their NICs. The root sends along trees in its
// own domain; there chips hand what they have to their twins, which go on in their domains.
//
//   const std::vector<TwinTree> trees = PackTwinTrees(links, members, /*root=*/0, nics);
//   trees[0].own[0];                  // in the root's domain, as in branchings.h
//   trees[0].twins[0].parent;         // in each other domain; kOutside: the chip's twin has it
//
// One tree leaves the root over its NIC, and all others of its domain get it back from their twins:
// so the root's NIC carries a part that its links need not. All domains but the root's do the same
// at the same time, so they are packed as one: a NIC of each of them gets what the twin in the
// root's domain sends, in equal parts from there and from the other domains.
//
// Scope: combinatorics. The emulator makes schedules of the trees.
//
// Thread safety: pure functions; the same on every machine.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/collective/branchings.h"
#include "lib/collective/domain_links.h"
#include "lib/collective/tree_packer.h"
#include "lib/torus/box.h"

namespace tahoma::collective {

struct TwinTree {
  std::uint64_t rate = 0;
  // In the root's domain; empty if its chips get everything from their twins.
  std::vector<Branch> own;
  // In each other domain, parents first. A chip whose parent is kOutside has the depth that its
  // twin has in the root's domain; below it depths go on.
  std::vector<Branch> twins;
};

// The rates of the NICs, by chip. Empty when links that are up do not lead from the root to all
// members, or nothing can enter.
std::vector<TwinTree> PackTwinTrees(const DomainLinks& links, torus::ChipMask members, int root,
                                    const std::array<std::uint64_t, kChipsMax>& nics);

std::uint64_t RateOf(const std::vector<TwinTree>& trees);

// The depth of the chip that is farthest from the root, NICs not counted.
std::size_t HeightOf(const std::vector<TwinTree>& trees);

// How a buffer flows through the trees: in chunks, of which each stripe has every `stripes`-th. One
// stripe starts up while the other is in flight.
struct TwinCourse {
  std::uint64_t chunks = 1;
  std::uint64_t stripes = 2;
};
TwinCourse TwinCourseOf(std::uint64_t bytes, std::uint64_t rate);

}  // namespace tahoma::collective
