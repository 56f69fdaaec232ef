#include "sim-node/emulator/collective/algorithms/cycles.h"

#include <string_view>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

// Walks from chip 0,0,0: a capital letter goes in plus direction along its axis, a small one in
// minus.
constexpr std::string_view kWalks[] = {
    "XyxyZxZxxzXYYYzXZXXyyxZxzYXZXYXXyxyxZXXXYXXZyXyxxyxzzYZXyXYXyyZX",
    "YXXYYxyxxyyxxzzzxYXYxYxYYYxyyyxZXYYYxyxyxyXyxyZxyyyXXYXyyxyxyZXY",
    "yXZyxyZYXZZxyxyyyxZXyxxZyyxYZyyyxYYYxzYZxyyXyzYXyyyzxxzYXyyZXXYz",
    "YYzyXzYYYXXXYxxYzYZZYYZXzyXXyyXZYxYYYZyXXyXYYZYZxzyZZZYzXZXYXzXX",
    "zYxxYxxxYxZXYZxZxxyXyxxxYXYZxxYZZyxyyxYxxyXyZxxxzXzxYXYzXZyXyyxx",
};

std::vector<torus::ChipIndex> Walk(std::string_view steps) {
  const torus::Shape& torus = torus::kUltraServerShape;
  torus::Coord at;
  std::vector<torus::ChipIndex> cycle;
  for (const char step : steps) {
    cycle.push_back(torus.IndexOf(at));
    const bool plus = step <= 'Z';
    const auto axis = static_cast<torus::Axis>(step - (plus ? 'X' : 'x'));
    at.set(axis, (at.along(axis) + (plus ? 1 : 3)) % 4);
  }
  TAHOMA_CHECK(at == torus::Coord{});
  return cycle;
}

}  // namespace

const std::vector<std::vector<torus::ChipIndex>>& UltraServerCycles() {
  static const std::vector<std::vector<torus::ChipIndex>> cycles = [] {
    std::vector<std::vector<torus::ChipIndex>> walked;
    for (const std::string_view steps : kWalks) walked.push_back(Walk(steps));
    return walked;
  }();
  return cycles;
}

}  // namespace tahoma::sim
