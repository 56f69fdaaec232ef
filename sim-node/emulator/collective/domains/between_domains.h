// The moves of one part of a buffer between topology domains (UltraServers or lone
// instances), each of which has one chip that answers for it.
//
//   for (const DomainMove& move : ReduceTo(InterAlgorithm::kRing, 4, /*home=*/2)) …
//
// ring         every domain passes to the next: N - 1 steps
// mesh         every domain sends to the home directly: one step
// rdh          halves of the domains that are left pair up: log2 N steps, N a power of two
// levels       as mesh, but for each layer of the network whose uplinks limit: first among the
//              domains below one node, then among such nodes, each with one domain for the part
// single-step  as mesh, but an all-reduce has no homes: every domain sends all to every other;
//              and all of a broadcast is at home where its root is
//
// A broadcast's root sends each part to its home, which spreads it among the others. Rings and
// meshes have homes in all domains but the root's: then each part leaves that domain once, and
// every other receives it once and sends less than that. Levels have them below all nodes of the
// highest level but the root's, for the same reason.
//
// These are the inter-node algorithms that AWS names
// (docs/reference/trainium2.md#costs-of-collectives); with one part for each domain at home, all
// domains send and receive alike. Spreading is reducing backwards.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tahoma::sim {

enum class InterAlgorithm : std::uint8_t { kRing, kMesh, kRdh, kLevels, kSingleStep };

// "ring", "mesh", "rdh", "levels", "single-step".
std::string_view Name(InterAlgorithm algorithm);

// A move between two domains, which are numbered from 0 to `domains` - 1.
struct DomainMove {
  int step = 0;
  int from = 0;
  int to = 0;
  friend bool operator==(const DomainMove&, const DomainMove&) = default;
};

// The nodes of the network above the domains, by level from the nearest on and by domain. Only
// kLevels looks at them; without any it is a mesh.
using NetworkLevels = std::vector<std::vector<int>>;

// Whether the algorithm supports so many domains.
bool Serves(InterAlgorithm algorithm, int domains);
// Steps of one of the two phases.
int StepsAmong(InterAlgorithm algorithm, int domains, const NetworkLevels& levels = {});

// Returns the moves that combine all domains' versions of the part at `home`, or that bring the
// home's to all, in order of step. The algorithm must support so many domains.
std::vector<DomainMove> ReduceTo(InterAlgorithm algorithm, int domains, int home,
                                 const NetworkLevels& levels = {});
std::vector<DomainMove> SpreadFrom(InterAlgorithm algorithm, int domains, int home,
                                   const NetworkLevels& levels = {});
// Returns the moves of a broadcast's part, which domain 0 has, to its home and to all others.
std::vector<DomainMove> BroadcastVia(InterAlgorithm algorithm, int domains, int home,
                                     const NetworkLevels& levels = {});

// Returns weights of the parts of an all-reduce of which the domains are the homes, for domains
// whose NICs together have these rates (none 0). Of N domains one with the share s sends and
// receives 1 + (N - 2) s times the buffer: the shares are such that the one that takes the longest
// takes the least time. Equal rates give equal weights.
std::vector<int> HomeWeights(const std::vector<std::uint64_t>& rates);
// Returns the weights of the parts of a broadcast.
std::vector<int> BroadcastWeights(InterAlgorithm algorithm, int domains,
                                  const NetworkLevels& levels = {});

}  // namespace tahoma::sim
