// Packs spanning trees from one chip to all others: the routes of a broadcast that reaches its
// bound.
//
// The summed rates come as close as 1 % to that of the worst cut (WorstBroadcastCut), and no link
// carries more than its rate: a link's rate is shared by the trees that use it. That such trees
// exist is Edmonds' branching theorem (1973). They are found one after the other as Lovász proves
// it (1976): a tree takes a link if, without it, what is left of the links still brings every chip
// what is left of the bound, which one maximum flow tells. Trees grow breadth first, so they are
// low.
//
// Scope: combinatorics. The emulator makes schedules of the trees.
//
// Thread safety: pure functions; the same on every machine.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/collective/domain_links.h"
#include "lib/torus/box.h"

namespace tahoma::collective {

struct Branch {
  int chip = 0;
  int parent = 0;         // the chip one link nearer to the root
  std::size_t depth = 1;  // links from the root
};

struct Branching {
  std::uint64_t rate = 0;
  std::vector<Branch> branches;  // of all members but the root, parents before their children
};

// Messages cross members only. Empty when links that are up do not lead from the root to all of
// them, or there is no other.
std::vector<Branching> PackBranchings(const DomainLinks& links, torus::ChipMask members, int root);

// The rate of all trees together.
std::uint64_t RateOf(const std::vector<Branching>& trees);

// Links from the root to the chip that is farthest away, in the highest tree.
std::size_t HeightOf(const std::vector<Branching>& trees);

}  // namespace tahoma::collective
