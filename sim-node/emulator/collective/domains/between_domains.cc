#include "sim-node/emulator/collective/domains/between_domains.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {

namespace {

// In each level one of the domains below a node that hold a version gets those of the others: the
// home where it is below, elsewhere the one with the home's place among its own.
std::vector<DomainMove> ReduceByLevels(int domains, int home, const NetworkLevels& levels) {
  std::vector<DomainMove> moves;
  std::vector<int> holders(static_cast<std::size_t>(domains));
  std::iota(holders.begin(), holders.end(), 0);
  for (std::size_t level = 0; level <= levels.size(); ++level) {
    const auto node_of = [&](int domain) {
      return level < levels.size() ? levels[level][static_cast<std::size_t>(domain)] : 0;
    };
    std::map<int, std::vector<int>> below;  // holders, by node
    for (const int domain : holders) below[node_of(domain)].push_back(domain);
    const std::vector<int>& own = below.at(node_of(home));
    const auto place = static_cast<std::size_t>(std::ranges::find(own, home) - own.begin());
    holders.clear();
    for (const auto& [node, members] : below) {
      const int to = members[place % members.size()];
      holders.push_back(to);
      for (const int from : members) {
        if (from != to) moves.push_back({.step = static_cast<int>(level), .from = from, .to = to});
      }
    }
  }
  return moves;
}

}  // namespace

std::string_view Name(InterAlgorithm algorithm) {
  switch (algorithm) {
    case InterAlgorithm::kRing:
      return "ring";
    case InterAlgorithm::kMesh:
      return "mesh";
    case InterAlgorithm::kRdh:
      return "rdh";
    case InterAlgorithm::kLevels:
      return "levels";
    case InterAlgorithm::kSingleStep:
      return "single-step";
  }
  return "";
}

bool Serves(InterAlgorithm algorithm, int domains) {
  return algorithm != InterAlgorithm::kRdh || std::has_single_bit(static_cast<unsigned>(domains));
}

int StepsAmong(InterAlgorithm algorithm, int domains, const NetworkLevels& levels) {
  if (domains == 1) return 0;
  switch (algorithm) {
    case InterAlgorithm::kRing:
      return domains - 1;
    case InterAlgorithm::kMesh:
    case InterAlgorithm::kSingleStep:
      return 1;
    case InterAlgorithm::kRdh:
      return std::countr_zero(static_cast<unsigned>(domains));
    case InterAlgorithm::kLevels:
      return static_cast<int>(levels.size()) + 1;
  }
  return 0;
}

std::vector<DomainMove> ReduceTo(InterAlgorithm algorithm, int domains, int home,
                                 const NetworkLevels& levels) {
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
    case InterAlgorithm::kSingleStep:
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
    case InterAlgorithm::kLevels:
      return ReduceByLevels(domains, home, levels);
  }
  return moves;
}

std::vector<DomainMove> SpreadFrom(InterAlgorithm algorithm, int domains, int home,
                                   const NetworkLevels& levels) {
  std::vector<DomainMove> moves = ReduceTo(algorithm, domains, home, levels);
  const int steps = StepsAmong(algorithm, domains, levels);
  for (DomainMove& move : moves) {
    std::swap(move.from, move.to);
    move.step = steps - 1 - move.step;
  }
  std::reverse(moves.begin(), moves.end());
  return moves;
}

std::vector<DomainMove> BroadcastVia(InterAlgorithm algorithm, int domains, int home,
                                     const NetworkLevels& levels) {
  if (algorithm == InterAlgorithm::kSingleStep) return SpreadFrom(algorithm, domains, home);
  std::vector<DomainMove> moves;
  if (home != 0) moves.push_back({.step = 0, .from = 0, .to = home});
  // Halves pair up among all domains or none, and levels have the places of all.
  const int without =
      algorithm == InterAlgorithm::kRing || algorithm == InterAlgorithm::kMesh ? 1 : 0;
  for (DomainMove move : SpreadFrom(algorithm, domains - without, home - without, levels)) {
    move.step += 1;
    move.from += without;
    move.to += without;
    if (move.to != 0) moves.push_back(move);
  }
  return moves;
}

std::vector<int> BroadcastWeights(InterAlgorithm algorithm, int domains,
                                  const NetworkLevels& levels) {
  // Whether it is the root's domain, or below its node of the highest level.
  const auto with_root = [&](std::size_t domain) {
    if (algorithm != InterAlgorithm::kLevels || levels.empty()) return domain == 0;
    return levels.back()[domain] == levels.back()[0];
  };
  std::vector<int> weights(static_cast<std::size_t>(domains), 1);
  if (algorithm == InterAlgorithm::kRdh) return weights;
  const bool at_root = algorithm == InterAlgorithm::kSingleStep;
  for (std::size_t domain = 0; domain < weights.size(); ++domain) {
    weights[domain] = with_root(domain) == at_root ? 1 : 0;
  }
  return weights;
}

std::vector<int> HomeWeights(const std::vector<std::uint64_t>& rates) {
  const std::size_t domains = rates.size();
  if (domains <= 2 || std::ranges::count(rates, rates[0]) == std::ssize(rates)) {
    return std::vector<int>(domains, 1);
  }
  // The share that a domain can be the home of in a time, in units of the buffer over the rate.
  const auto share = [&](std::uint64_t rate, double time) {
    return std::max(0.0, time * static_cast<double>(rate) - 1) / static_cast<double>(domains - 2);
  };
  const auto all = [&](double time) {
    double sum = 0;
    for (const std::uint64_t rate : rates) sum += share(rate, time);
    return sum;
  };
  const auto least = static_cast<double>(std::ranges::min(rates));
  double low = 1 / least;  // the poorest sends and receives the buffer once
  double high = static_cast<double>(domains) / least;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (all(middle) < 1 ? low : high) = middle;
  }
  constexpr double kScale = 1 << 20;
  std::vector<int> weights;
  for (const std::uint64_t rate : rates) {
    weights.push_back(static_cast<int>(kScale * std::min(share(rate, high), 1.0)));
  }
  return weights;
}

}  // namespace tahoma::sim
