#include "sim-node/collective/units/between_units.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {

std::string_view Name(InterAlgorithm algorithm) {
  switch (algorithm) {
    case InterAlgorithm::kRing:
      return "ring";
    case InterAlgorithm::kMesh:
      return "mesh";
    case InterAlgorithm::kRdh:
      return "rdh";
    case InterAlgorithm::kSingleStep:
      return "single-step";
  }
  return "";
}

bool Serves(InterAlgorithm algorithm, int units) {
  return algorithm != InterAlgorithm::kRdh || std::has_single_bit(static_cast<unsigned>(units));
}

int StepsAmong(InterAlgorithm algorithm, int units) {
  if (units == 1) return 0;
  switch (algorithm) {
    case InterAlgorithm::kRing:
      return units - 1;
    case InterAlgorithm::kMesh:
    case InterAlgorithm::kSingleStep:
      return 1;
    case InterAlgorithm::kRdh:
      return std::countr_zero(static_cast<unsigned>(units));
  }
  return 0;
}

std::vector<UnitMove> ReduceTo(InterAlgorithm algorithm, int units, int home) {
  TAHOMA_CHECK(Serves(algorithm, units) && home >= 0 && home < units);
  std::vector<UnitMove> moves;
  switch (algorithm) {
    case InterAlgorithm::kRing:
      for (int step = 0; step + 1 < units; ++step) {
        const int from = (home + 1 + step) % units;
        moves.push_back({.step = step, .from = from, .to = (from + 1) % units});
      }
      break;
    case InterAlgorithm::kMesh:
    case InterAlgorithm::kSingleStep:
      for (int from = 0; from < units; ++from) {
        if (from != home) moves.push_back({.step = 0, .from = from, .to = home});
      }
      break;
    case InterAlgorithm::kRdh:
      // A domain that agrees with the home in all higher bits still holds the part.
      for (int step = 0, across = units / 2; across > 0; ++step, across /= 2) {
        for (int from = 0; from < units; ++from) {
          const int differs = from ^ home;
          if (differs < 2 * across && (differs & across) != 0) {
            moves.push_back({.step = step, .from = from, .to = from ^ across});
          }
        }
      }
      break;
  }
  return moves;
}

std::vector<UnitMove> SpreadFrom(InterAlgorithm algorithm, int units, int home) {
  std::vector<UnitMove> moves = ReduceTo(algorithm, units, home);
  const int steps = StepsAmong(algorithm, units);
  for (UnitMove& move : moves) {
    std::swap(move.from, move.to);
    move.step = steps - 1 - move.step;
  }
  std::reverse(moves.begin(), moves.end());
  return moves;
}

}  // namespace tahoma::sim
