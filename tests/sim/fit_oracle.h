// Does it fit? By trying everything, without masks, tables or indexes: the planner's slow judge.
//
// Scope: "yes" is certain, "no" is not: layouts that need knowledge of the planner's rules (several
// pods on one node's part of a box) are left out, and so are domains with broken links.
//
// Thread safety: pure functions.

#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::simulation {

using Position = std::array<int, 3>;  // x, y, z

struct OracleDomain {
  Position size = {4, 4, 1};
  std::set<Position> free;
  bool links_whole = true;
};

// "4x4x2", "4x4", "2"; nullopt when it is none of them.
std::optional<Position> ParseSides(std::string_view shape);

// Whether the chips are a box of that shape in some rotation, wrap-around included.
bool IsBox(const std::set<Position>& chips, const Position& torus, const Position& shape);

struct ShapeWish {
  Position shape;
  int slices = 1;
  int chips_per_pod = 16;
};
bool CanPlace(std::vector<OracleDomain> fleet, const ShapeWish& wish);

}  // namespace tahoma::simulation
