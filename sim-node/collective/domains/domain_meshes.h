// The phases of one block between topology domains that all send to each other, for domains that
// are alike: not N^2 messages of N domains but one with the domains that make it.
//
//   const auto phases = MeshPhasesOf(request, chip, /*domains=*/4096, block, /*stride=*/0);
//   phases[0][0].mesh.senders;      // 4096, of an all-reduce; then they spread what is summed up
//
//   const TwinMeshes twins(request, /*first=*/0, /*domains=*/4096);
//   twins.ToHomes(pieces);          // from chips of the first domain to their twins in all others
//
// Scope: internal to hierarchical.h. The same bytes on every NIC as InterAlgorithm::kMesh.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <vector>

#include "sim-node/collective/domains/region.h"
#include "sim-node/collective/schedule/request.h"
#include "sim-node/collective/schedule/schedule.h"

namespace tahoma::sim {

struct MeshStep {
  Step step;
  DomainMesh mesh;
};
// Made at the same time.
using MeshPhase = std::vector<MeshStep>;

// `chip` is in the first of at least two domains, which follow one another; the chips at its place
// answer for the block. Of an all-gather and a reduce-scatter every domain is the home of a block,
// `stride` elements after that of the domain before. Other blocks have homes in as many domains as
// they can be cut for, in parts as large as the largest of equal ones.
std::vector<MeshPhase> MeshPhasesOf(const Request& request, torus::ChipIndex chip, int domains,
                                    const Extent& block, std::uint64_t stride);

// Elements of the buffer that a chip, by its number in its domain, has for its twins.
struct TwinPiece {
  torus::ChipIndex chip;
  Extent elements;
};

// Meshes between chips at the same place of different domains, each for pieces of any chips. The
// domains but the first are homes of equal parts of each piece.
class TwinMeshes {
 public:
  // At least two domains that follow one another. The request outlives it.
  TwinMeshes(const Request& request, int first, int domains)
      : request_(request), first_(first), others_(domains - 1) {}

  int first() const { return first_; }
  int domains() const { return others_ + 1; }
  // Pieces are cut evenly for the homes if their elements are a multiple of this.
  std::uint64_t grain() const { return static_cast<std::uint64_t>(others_); }

  // From the first domain. What is left of a piece that does not divide goes to all others at once.
  MeshPhase ToHomes(const std::vector<TwinPiece>& pieces) const;
  // From the homes to each other; empty for two domains.
  MeshPhase BetweenHomes(const std::vector<TwinPiece>& pieces) const;
  // From the homes to the first domain. Pieces must divide.
  MeshPhase FromHomes(const std::vector<TwinPiece>& pieces) const;

 private:
  MeshPhase Make(const std::vector<TwinPiece>& pieces, bool from_first, bool to_first) const;
  Send MakeOne(const TwinPiece& piece, bool from_first, bool to_first) const;

  const Request& request_;
  const int first_;
  const int others_;
};

}  // namespace tahoma::sim
