#include "sim-node/emulator/collective/domains/between_domains.h"

#include <algorithm>
#include <bit>
#include <cstddef>
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
  }
  return "";
}

bool Serves(InterAlgorithm algorithm, int domains) {
  return algorithm != InterAlgorithm::kRdh || std::has_single_bit(static_cast<unsigned>(domains));
}

int StepsAmong(InterAlgorithm algorithm, int domains) {
  if (domains == 1) return 0;
  switch (algorithm) {
    case InterAlgorithm::kRing:
      return domains - 1;
    case InterAlgorithm::kMesh:
      return 1;
    case InterAlgorithm::kRdh:
      return std::countr_zero(static_cast<unsigned>(domains));
  }
  return 0;
}

std::vector<DomainMove> ReduceTo(InterAlgorithm algorithm, int domains, int home) {
  TAHOMA_CHECK(Serves(algorithm, domains) && home >= 0 && home < domains);
  std::vector<DomainMove> moves;
  switch (algorithm) {
    case InterAlgorithm::kRing:
      for (int step = 0; step + 1 < domains; ++step) {
        const int from = (home + 1 + step) % domains;
        moves.push_back({.step = step, .from = from, .to = (from + 1) % domains});
      }
      break;
    case InterAlgorithm::kMesh:
      for (int from = 0; from < domains; ++from) {
        if (from != home) moves.push_back({.step = 0, .from = from, .to = home});
      }
      break;
    case InterAlgorithm::kRdh:
      // A domain that agrees with the home in all higher bits still holds the part.
      for (int step = 0, across = domains / 2; across > 0; ++step, across /= 2) {
        for (int from = 0; from < domains; ++from) {
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

std::vector<DomainMove> SpreadFrom(InterAlgorithm algorithm, int domains, int home) {
  std::vector<DomainMove> moves = ReduceTo(algorithm, domains, home);
  const int steps = StepsAmong(algorithm, domains);
  for (DomainMove& move : moves) {
    std::swap(move.from, move.to);
    move.step = steps - 1 - move.step;
  }
  std::reverse(moves.begin(), moves.end());
  return moves;
}

std::vector<DomainMove> BroadcastVia(InterAlgorithm algorithm, int domains, int home) {
  std::vector<DomainMove> moves;
  if (home != 0) moves.push_back({.step = 0, .from = 0, .to = home});
  // Halves pair up among all domains or none.
  const int without = algorithm == InterAlgorithm::kRdh ? 0 : 1;
  for (DomainMove move : SpreadFrom(algorithm, domains - without, home - without)) {
    move.step += 1;
    move.from += without;
    move.to += without;
    if (move.to != 0) moves.push_back(move);
  }
  return moves;
}

std::vector<int> BroadcastWeights(InterAlgorithm algorithm, int domains) {
  std::vector<int> weights(static_cast<std::size_t>(domains), 1);
  if (algorithm != InterAlgorithm::kRdh) weights[0] = 0;
  return weights;
}

}  // namespace tahoma::sim
