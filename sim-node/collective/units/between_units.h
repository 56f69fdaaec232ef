// How one part of a buffer travels between units, each of which has one chip that answers for it.
//
//   for (const UnitMove& move : ReduceTo(InterAlgorithm::kRing, 4, /*home=*/2)) ...
//
// ring         every unit passes to the next: N - 1 steps
// mesh         every unit sends to the home directly: one step
// rdh          halves of the units that are left pair up: log2 N steps, N a power of two
// single-step  as mesh, but an all-reduce has no homes: every unit sends all it has to every other;
//              and all of a broadcast is at home where its root is
//
// These are the inter-node algorithms that AWS names
// (docs/reference/trainium2.md#costs-of-collectives); with one part for each unit at home, all
// units send and receive alike. Spreading is reducing backwards.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tahoma::sim {

enum class InterAlgorithm : std::uint8_t { kRing, kMesh, kRdh, kSingleStep };

// "ring", "mesh", "rdh", "single-step".
std::string_view Name(InterAlgorithm algorithm);

// Units are numbered from 0 to `units` - 1.
struct UnitMove {
  int step = 0;
  int from = 0;
  int to = 0;
  friend bool operator==(const UnitMove&, const UnitMove&) = default;
};

// Whether the algorithm is made for so many units.
bool Serves(InterAlgorithm algorithm, int units);
// Steps of one of the two phases.
int StepsAmong(InterAlgorithm algorithm, int units);

// What all hold of the part is combined at `home`, or what `home` has of it reaches all. In order
// of step; the algorithm must serve so many units.
std::vector<UnitMove> ReduceTo(InterAlgorithm algorithm, int units, int home);
std::vector<UnitMove> SpreadFrom(InterAlgorithm algorithm, int units, int home);

}  // namespace tahoma::sim
