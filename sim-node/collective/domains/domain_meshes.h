// The phases of one block between topology domains that all send to each other, for domains that
// are alike: not N^2 messages of N domains but one with the domains that make it.
//
//   const auto phases = MeshPhasesOf(request, chip, /*domains=*/4096, block, /*stride=*/0);
//   phases[0][0].mesh.senders;      // 4096, of an all-reduce; then they spread what is summed up
//
//   const TwinMeshes twins(request, /*own=*/0, /*others=*/{1, 2, 3});
//   twins.ToHomes(pieces);          // from chips of one domain to their twins in all others
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

// Topology domains that follow one another.
struct DomainRun {
  int first = 0;
  int count = 0;
};
// Domains in ascending order as runs.
std::vector<DomainRun> RunsOf(const std::vector<int>& domains);

// Meshes between chips at the same place of different domains, each for pieces of any chips. The
// domains but one's own are homes of equal parts of each piece. There is a mesh for each run of
// them, or for each two.
class TwinMeshes {
 public:
  // At least one other, in ascending order. The request outlives it.
  TwinMeshes(const Request& request, int own, const std::vector<int>& others);

  int own() const { return own_; }
  const std::vector<int>& others() const { return others_; }
  // Pieces are cut evenly for the homes if their elements are a multiple of this.
  std::uint64_t grain() const { return others_.size(); }

  // From one's own domain. What is left of a piece that does not divide goes to all others at once.
  MeshPhase ToHomes(const std::vector<TwinPiece>& pieces) const;
  // From the homes to each other; empty for a single one.
  MeshPhase BetweenHomes(const std::vector<TwinPiece>& pieces) const;
  // From the homes to one's own domain. Pieces must divide.
  MeshPhase FromHomes(const std::vector<TwinPiece>& pieces) const;

 private:
  // Homes that follow one another, and the number of the first.
  struct Homes {
    DomainRun run;
    std::uint64_t number = 0;
  };
  MeshStep Make(const std::vector<TwinPiece>& pieces, const DomainRun& from, const DomainRun& to,
                const Homes& homes) const;

  const Request& request_;
  const int own_;
  const std::vector<int> others_;
  std::vector<Homes> homes_;
};

}  // namespace tahoma::sim
