#include "controller/plan/ring_turns.h"

#include <cstdint>
#include <vector>

#include "lib/torus/shape.h"

namespace tahoma::controller {
namespace {

constexpr std::uint8_t kLayers = 4;  // of kUltraServerShape
constexpr std::size_t kTurns = kLayers - 1;

std::vector<torus::Box> MakeTurns() {
  std::vector<torus::Box> turns;
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
    if (box.size.extent(torus::Axis::kZ) != kLayers) continue;
    for (std::uint8_t z = 1; z < kLayers; ++z) {
      torus::Box turn = box;
      turn.origin.z = z;
      turns.push_back(turn);
    }
  }
  return turns;
}

}  // namespace

std::span<const torus::Box> TurnsOf(const torus::Box& place) {
  if (place.size.extent(torus::Axis::kZ) != kLayers) return {};
  static const std::vector<torus::Box> turns = MakeTurns();
  for (std::size_t i = 0; i < turns.size(); i += kTurns) {
    if (turns[i].mask == place.mask && turns[i].size == place.size) {
      return std::span(turns).subspan(i, kTurns);
    }
  }
  return {};
}

}  // namespace tahoma::controller
