// The moves of one part of a buffer between topology domains (UltraServers or lone instances), each
// with one chip that answers for the part.
//
// ring  every domain passes to the next: N - 1 steps
// mesh  every domain sends to the home directly: one step
// rdh   halves of the domains that are left pair up: log2 N steps, N a power of two
//
// A broadcast's root sends each part to its home, and the home spreads the part. Rings and meshes
// have homes in all domains but the root's: then each part leaves the root's domain once, and every
// other domain receives the part once and sends less.
//
// AWS names these inter-node algorithms (docs/reference/trainium2.md#costs-of-collectives); with
// one part for each domain at home, all domains send and receive alike. Spreading is reducing
// backwards.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tahoma::sim {

enum class InterAlgorithm : std::uint8_t { kRing, kMesh, kRdh };
inline constexpr InterAlgorithm kInterAlgorithms[] = {InterAlgorithm::kRing, InterAlgorithm::kMesh,
                                                      InterAlgorithm::kRdh};

// "ring", "mesh", "rdh".
std::string_view Name(InterAlgorithm algorithm);

// A move between two domains, which are numbered from 0 to `domains` - 1.
struct DomainMove {
  int step = 0;
  int from = 0;
  int to = 0;
  friend bool operator==(const DomainMove&, const DomainMove&) = default;
};

// Whether the algorithm supports so many domains.
bool Serves(InterAlgorithm algorithm, int domains);
// Steps of one of the two phases.
int StepsAmong(InterAlgorithm algorithm, int domains);

// Returns the moves that combine all domains' versions of the part at `home`, or that bring the
// home's to all, in order of step. The algorithm must support so many domains.
std::vector<DomainMove> ReduceTo(InterAlgorithm algorithm, int domains, int home);
std::vector<DomainMove> SpreadFrom(InterAlgorithm algorithm, int domains, int home);
// Returns the moves of a broadcast's part, which domain 0 has, to its home and to all others.
std::vector<DomainMove> BroadcastVia(InterAlgorithm algorithm, int domains, int home);

// Returns the weights of the parts of a broadcast.
std::vector<int> BroadcastWeights(InterAlgorithm algorithm, int domains);

}  // namespace tahoma::sim
