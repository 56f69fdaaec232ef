#include "tests/sim/fit_oracle.h"

#include <algorithm>
#include <map>

namespace tahoma::simulation {
namespace {

// The chips of the box, or nothing when it does not lie inside the torus.
std::set<Position> BoxAt(const Position& origin, const Position& sides, const Position& torus) {
  std::set<Position> chips;
  for (int dx = 0; dx < sides[0]; ++dx) {
    for (int dy = 0; dy < sides[1]; ++dy) {
      for (int dz = 0; dz < sides[2]; ++dz) {
        chips.insert({(origin[0] + dx) % torus[0], (origin[1] + dy) % torus[1],
                      (origin[2] + dz) % torus[2]});
      }
    }
  }
  return chips;
}

bool Inside(const Position& sides, const Position& torus) {
  return sides[0] <= torus[0] && sides[1] <= torus[1] && sides[2] <= torus[2];
}

// One pod on each node that the box touches, and its chips are the node's part.
bool OnePodPerNode(const std::set<Position>& chips, int chips_per_pod) {
  std::map<int, int> of_node;
  for (const Position& chip : chips) ++of_node[chip[2]];
  return std::all_of(of_node.begin(), of_node.end(),
                     [&](const auto& node) { return node.second == chips_per_pod; });
}

std::vector<std::set<Position>> BoxesOf(const Position& shape, const Position& torus) {
  std::vector<std::set<Position>> boxes;
  Position sides = shape;
  std::sort(sides.begin(), sides.end());
  do {
    if (!Inside(sides, torus)) continue;
    for (int x = 0; x < torus[0]; ++x) {
      for (int y = 0; y < torus[1]; ++y) {
        for (int z = 0; z < torus[2]; ++z) boxes.push_back(BoxAt({x, y, z}, sides, torus));
      }
    }
  } while (std::next_permutation(sides.begin(), sides.end()));
  return boxes;
}

bool PlaceSlices(std::vector<OracleDomain>& fleet, const ShapeWish& wish, int left) {
  if (left == 0) return true;
  for (OracleDomain& domain : fleet) {
    if (!domain.links_whole) continue;
    for (const std::set<Position>& box : BoxesOf(wish.shape, domain.size)) {
      if (!OnePodPerNode(box, wish.chips_per_pod)) continue;
      if (!std::includes(domain.free.begin(), domain.free.end(), box.begin(), box.end())) continue;
      const std::set<Position> before = domain.free;
      for (const Position& chip : box) domain.free.erase(chip);
      if (PlaceSlices(fleet, wish, left - 1)) return true;
      domain.free = before;
    }
  }
  return false;
}

}  // namespace

std::optional<Position> ParseSides(std::string_view shape) {
  Position sides = {1, 1, 1};
  std::size_t axis = 0;
  int number = 0;
  for (const char c : std::string(shape) + "x") {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
    } else if (c == 'x' && axis < 3 && number > 0) {
      sides[axis++] = std::exchange(number, 0);
    } else {
      return std::nullopt;
    }
  }
  return sides;
}

bool IsBox(const std::set<Position>& chips, const Position& torus, const Position& shape) {
  const auto boxes = BoxesOf(shape, torus);
  return std::find(boxes.begin(), boxes.end(), chips) != boxes.end();
}

bool CanPlace(std::vector<OracleDomain> fleet, const ShapeWish& wish) {
  const int chips = wish.shape[0] * wish.shape[1] * wish.shape[2];
  // Sides that are not offered never fit, whatever is free.
  for (const int side : wish.shape) {
    if (side != 1 && side != 2 && side != 4) return false;
  }
  if (chips % wish.chips_per_pod != 0) return false;
  return PlaceSlices(fleet, wish, wish.slices);
}

}  // namespace tahoma::simulation
