#include "sim-node/collective/domains/nic_pairs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "lib/base/check.h"
#include "sim-node/collective/domains/between_domains.h"

namespace tahoma::sim {
namespace {

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

}  // namespace

std::vector<NicPair> PairNics(const std::vector<std::vector<int>>& nics) {
  std::vector<std::uint64_t> rates;
  std::vector<FreeNics> free;
  for (const std::vector<int>& of_group : nics) {
    rates.push_back(std::accumulate(of_group.begin(), of_group.end(), std::uint64_t{0}));
    free.emplace_back(of_group);
    TAHOMA_CHECK(rates.back() > 0);
  }
  const std::vector<int> homes = HomeWeights(rates);
  const auto whole = static_cast<double>(std::accumulate(homes.begin(), homes.end(), std::int64_t{0}));
  const auto share = [&](std::size_t group) { return homes[group] / whole; };
  double time = 0;  // in which the buffer crosses, at a thousandth of a NIC's rate
  for (std::size_t group = 0; group < nics.size(); ++group) {
    const double load = 1 + static_cast<double>(nics.size() - 2) * share(group);
    time = std::max(time, load / static_cast<double>(rates[group]));
  }
  std::vector<NicPair> pairs;
  for (std::size_t one = 0; one < nics.size(); ++one) {
    for (std::size_t other = one + 1; other < nics.size(); ++other) {
      auto wanted = static_cast<int>(std::lround((share(one) + share(other)) / time));
      while (wanted > 0) {
        const int both = std::min({wanted, free[one].left(), free[other].left()});
        if (both == 0) break;  // shares are rounded
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
