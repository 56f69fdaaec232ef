#include "sim-node/emulator/collective/domains/nic_pairs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "lib/base/check.h"
#include "sim-node/emulator/collective/domains/between_domains.h"
#include "sim-node/emulator/collective/domains/domain_trees.h"

namespace tahoma::sim {
namespace {

// The rates that pairs may lose to have whole NICs, or halves.
constexpr double kLossMost = 0.01;

// The NICs of a group that are not in pairs yet.
class FreeNics {
 public:
  explicit FreeNics(const std::vector<int>& nics) : left_(nics) { SkipEmpty(); }

  std::size_t place() const { return place_; }
  int left() const { return place_ < left_.size() ? left_[place_] : 0; }
  void Take(int permille) {
    left_[place_] -= permille;
    SkipEmpty();
  }

 private:
  void SkipEmpty() {
    while (place_ < left_.size() && left_[place_] == 0) ++place_;
  }
  std::vector<int> left_;
  std::size_t place_ = 0;
};

// The rates between groups that let the most trees use them: where each tree has its root in a home
// and the homes have weights such that no group has more to carry than it must, groups a and b
// share the trees of which one of them is the home.
EdgeRates BestRates(const std::vector<std::uint64_t>& nics) {
  const std::vector<int> homes = HomeWeights(nics);
  const auto whole =
      static_cast<double>(std::accumulate(homes.begin(), homes.end(), std::int64_t{0}));
  const auto share = [&](std::size_t group) { return homes[group] / whole; };
  double time = 0;  // in which the buffer crosses
  for (std::size_t group = 0; group < nics.size(); ++group) {
    const double load = 1 + static_cast<double>(nics.size() - 2) * share(group);
    time = std::max(time, load / static_cast<double>(nics[group]));
  }
  EdgeRates rates(nics.size(), std::vector<double>(nics.size()));
  for (std::size_t one = 0; one < nics.size(); ++one) {
    for (std::size_t other = 0; other < nics.size(); ++other) {
      if (one != other) rates[one][other] = (share(one) + share(other)) / time;
    }
  }
  return rates;
}

// Rounds the rates to whole numbers of a quantum, each down or up, such that the most trees can use
// them.
class Rounding {
 public:
  Rounding(const EdgeRates& rates, const std::vector<std::uint64_t>& nics, double quantum)
      : rates_(rates), nics_(nics), quantum_(quantum), trial_(rates), best_(rates) {}

  // Returns how many trees can use the best() rates.
  double Round() {
    most_ = -1;
    Try(0, 1);
    return most_;
  }
  const EdgeRates& best() const { return best_; }

 private:
  void Try(std::size_t one, std::size_t other) {
    if (one + 1 == rates_.size()) {
      const double rate = TreeRate(trial_);
      if (IsAllowed() && rate > most_) {
        most_ = rate;
        best_ = trial_;
      }
      return;
    }
    const bool last = other + 1 == rates_.size();
    for (const int more : {0, 1}) {
      trial_[one][other] = (std::floor(rates_[one][other] / quantum_ + 1e-6) + more) * quantum_;
      trial_[other][one] = trial_[one][other];
      Try(last ? one + 1 : one, last ? one + 2 : other + 1);
    }
  }
  bool IsAllowed() const {
    for (std::size_t group = 0; group < nics_.size(); ++group) {
      const double sum = std::accumulate(trial_[group].begin(), trial_[group].end(), 0.0);
      if (sum > static_cast<double>(nics_[group])) return false;
    }
    return true;
  }

  const EdgeRates& rates_;
  const std::vector<std::uint64_t>& nics_;
  const double quantum_;
  EdgeRates trial_;
  EdgeRates best_;
  double most_ = -1;
};

EdgeRates RatesBetween(const std::vector<std::uint64_t>& nics) {
  const EdgeRates best = BestRates(nics);
  const double most = TreeRate(best);
  for (const double quantum : {1000.0, 500.0, 250.0, 100.0}) {
    Rounding rounding(best, nics, quantum);
    if (rounding.Round() >= most * (1 - kLossMost)) return rounding.best();
  }
  return best;
}

}  // namespace

std::vector<NicPair> PairNics(const std::vector<std::vector<int>>& nics) {
  TAHOMA_CHECK(nics.size() > 1 && nics.size() <= kDomainTreesMost);
  std::vector<std::uint64_t> all;
  std::vector<FreeNics> free;
  for (const std::vector<int>& of_group : nics) {
    all.push_back(std::accumulate(of_group.begin(), of_group.end(), std::uint64_t{0}));
    free.emplace_back(of_group);
    TAHOMA_CHECK(all.back() > 0);
  }
  const EdgeRates rates = RatesBetween(all);
  std::vector<NicPair> pairs;
  for (std::size_t one = 0; one < nics.size(); ++one) {
    for (std::size_t other = one + 1; other < nics.size(); ++other) {
      auto wanted = static_cast<int>(std::lround(rates[one][other]));
      while (wanted > 0) {
        const int both = std::min({wanted, free[one].left(), free[other].left()});
        if (both == 0) break;  // rates are rounded
        pairs.push_back({.one = {.group = one, .place = free[one].place()},
                         .other = {.group = other, .place = free[other].place()},
                         .permille = both});
        free[one].Take(both);
        free[other].Take(both);
        wanted -= both;
      }
    }
  }
  return pairs;
}

}  // namespace tahoma::sim
