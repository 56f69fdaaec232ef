// The phases of one block between topology domains that all send to each other, for domains that
// are alike: not N^2 messages of N domains but one with the domains that make it.
//
//   const auto phases = MeshPhasesOf(request, chip, /*domains=*/4096, block, /*stride=*/0);
//   phases[0][0].mesh.senders;      // 4096, of an all-reduce; then they spread what is summed up
//
// Scope: internal to composition.h. The same bytes on every NIC as InterAlgorithm::kMesh.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <vector>

#include "sim-node/collective/domains/region.h"
#include "sim-node/collective/schedule/request.h"
#include "sim-node/collective/schedule/schedule.h"

namespace tahoma::sim {

struct MeshSends {
  Send send;
  DomainMesh mesh;
};
// Made at the same time.
using MeshPhase = std::vector<MeshSends>;

// `chip` is in the first of at least two domains, which follow one another; the chips at its place
// answer for the block. Of an all-gather and a reduce-scatter every domain is the home of a block,
// `stride` elements after that of the domain before. Other blocks have homes in as many domains as
// they can be cut for, in parts as large as the largest of equal ones.
std::vector<MeshPhase> MeshPhasesOf(const Request& request, torus::ChipIndex chip, int domains,
                                    const Extent& block, std::uint64_t stride);

}  // namespace tahoma::sim
