// The messages of a broadcast between chips at the same place of different topology domains, its
// twins (lib/collective/twin_trees.h): one for each piece, with the domains that make it.
//
//   TwinMeshes twins(request, /*own=*/0, /*others=*/{1, 2, 3});
//   twins.ToHomes(pieces);          // from chips of one domain to their twins in all others
//
// The domains but one's own are homes of equal parts of each piece, which they then send each
// other: so a NIC of one's own domain sends a piece once, however many domains there are.
//
// Scope: internal to twin_broadcast.h.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim-node/emulator/collective/domains/domain_meshes.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"

namespace tahoma::sim {

// Elements of the buffer that a chip, by its number in its domain, has for its twins.
struct TwinPiece {
  torus::ChipIndex chip;
  Extent elements;
};

class TwinMeshes {
 public:
  // At least one other. The request outlives it.
  TwinMeshes(const Request& request, int own, const std::vector<int>& others);

  int own() const { return own_->front().domain; }
  // Pieces are cut evenly for the homes if their elements are a multiple of this.
  std::uint64_t grain() const { return others_->size(); }

  // From one's own domain. What is left of a piece that does not divide goes to all others at once.
  std::vector<MeshSend> ToHomes(const std::vector<TwinPiece>& pieces) const;
  // From the homes to each other; empty for a single one.
  std::vector<MeshSend> BetweenHomes(const std::vector<TwinPiece>& pieces) const;
  // From the homes to one's own domain. Pieces must divide.
  std::vector<MeshSend> FromHomes(const std::vector<TwinPiece>& pieces) const;

 private:
  using Domains = std::shared_ptr<const MeshDomains>;

  MeshSend Make(const TwinPiece& piece, const Domains& from, const Domains& to,
                const DomainMesh::Stride& by_sender, const DomainMesh::Stride& by_receiver) const;
  // The bytes of a home's part.
  DomainMesh::Stride PartOf(const TwinPiece& piece) const;
  // The part of the home with number 0; empty where a piece has less than an element for each.
  TwinPiece FirstOf(const TwinPiece& piece) const;

  const Request& request_;
  const Domains own_;
  const Domains others_;  // numbered as homes
};

}  // namespace tahoma::sim
