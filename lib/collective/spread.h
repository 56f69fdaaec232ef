// Plans how pieces of data that lie on some chips reach all of them, for any set of chips.
//
// Greedy, step by step: every idle edge takes a piece that its receiver lacks, if possible one that
// none of the receiver's other neighbours has, and of these the one that the fewest chips have;
// edges with the least choice go first. The routes of a piece form a tree.
// (The idea of matching links with chunks over expanding time is TACOS's, arXiv 2304.05301.) On
// healthy and damaged planes alike that needs as many steps as the chip with the fewest links must
// have, or one or two more.
//
// Scope: combinatorics. trees.h makes trees of pieces.
//
// Thread safety: pure functions; the same on every machine.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tahoma::collective {

// A link from one chip to a neighbour; chips are numbered from 0.
struct Edge {
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t steps = 1;  // that it needs for a piece
};

// An edge carries a piece in steps [begin, begin + its steps).
struct PieceSend {
  std::size_t piece = 0;
  std::size_t edge = 0;
  std::size_t begin = 0;
};

// `owners[i]` is the chip that has piece i at first; nothing when the edges do not lead from
// every owner to every chip. The sends are in order of begin.
std::optional<std::vector<PieceSend>> Spread(const std::vector<std::size_t>& owners,
                                             const std::vector<Edge>& edges, std::size_t chips);

}  // namespace tahoma::collective
