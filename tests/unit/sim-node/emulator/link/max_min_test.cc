// The solver against an oracle that raises all rates in tiny steps, and against the definition: no
// flow gets faster unless a flow that is no faster loses.

#include "sim-node/emulator/link/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

using Paths = std::vector<std::vector<LinkId>>;

std::vector<std::uint64_t> Solve(const Paths& paths, const std::vector<std::uint64_t>& capacities) {
  std::vector<std::span<const LinkId>> spans(paths.begin(), paths.end());
  return MaxMinRates(spans, capacities);
}

// Water filling in steps of 1.
std::vector<std::uint64_t> SlowRates(const Paths& paths,
                                     const std::vector<std::uint64_t>& capacities) {
  std::vector<std::uint64_t> left = capacities;
  std::vector<std::uint64_t> rates(paths.size(), 0);
  std::vector<bool> grows(paths.size(), true);
  for (bool any = true; any;) {
    any = false;
    std::vector<std::uint64_t> wanted(capacities.size(), 0);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (const LinkId link : paths[i]) wanted[link] += grows[i] ? 1u : 0u;
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (const LinkId link : paths[i]) grows[i] = grows[i] && left[link] >= wanted[link];
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (!grows[i]) continue;
      any = true;
      rates[i] += 1;
      for (const LinkId link : paths[i]) left[link] -= 1;
    }
  }
  return rates;
}

Paths RandomPaths(Rng& rng, std::uint64_t links) {
  Paths paths(1 + rng.Below(8));
  for (auto& path : paths) {
    std::set<LinkId> chosen;
    for (std::uint64_t i = 0; i < 1 + rng.Below(4); ++i) {
      chosen.insert(static_cast<LinkId>(rng.Below(links)));
    }
    path.assign(chosen.begin(), chosen.end());
  }
  return paths;
}

TEST(MaxMinRatesTest, OneFlowGetsItsSlowestLink) {
  EXPECT_EQ(Solve({{0, 1}}, {128, 64}), (std::vector<std::uint64_t>{64}));
}

TEST(MaxMinRatesTest, AFlowLimitedElsewhereLeavesItsShareToOtherFlows) {
  // The textbook case: three flows share link 0, and link 1 holds one of the flows at 10.
  EXPECT_EQ(Solve({{0}, {0}, {0, 1}}, {110, 10}), (std::vector<std::uint64_t>{50, 50, 10}));
}

TEST(MaxMinRatesTest, AFlowWithoutLinksIsUnlimitedAndOneOverADeadLinkStandsStill) {
  EXPECT_EQ(Solve({{}, {0}}, {0}), (std::vector<std::uint64_t>{kUnlimitedRate, 0}));
  EXPECT_TRUE(Solve({}, {1, 2}).empty());
}

TEST(MaxMinRatesTest, RatesAreThoseOfFillingDropByDrop) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const Paths paths = RandomPaths(rng, 6);
    std::vector<std::uint64_t> capacities;
    for (int i = 0; i < 6; ++i) capacities.push_back(5000 + rng.Below(20000));
    const auto rates = Solve(paths, capacities);
    const auto slow = SlowRates(paths, capacities);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      // Both round shares down, in different places, by less than 1 per flow.
      EXPECT_NEAR(static_cast<double>(rates[i]), static_cast<double>(slow[i]), 16.0)
          << "seed " << seed << " flow " << i;
    }
  }
}

TEST(MaxMinRatesTest, NoLinkCarriesMoreThanItCanAndEveryFlowHasABottleneck) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const Paths paths = RandomPaths(rng, 6);
    std::vector<std::uint64_t> capacities;
    for (int i = 0; i < 6; ++i) capacities.push_back(1'000'000 + rng.Below(128'000'000'000));
    const auto rates = Solve(paths, capacities);
    std::vector<std::uint64_t> load(capacities.size(), 0), fastest(capacities.size(), 0);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (const LinkId link : paths[i]) {
        load[link] += rates[i];
        fastest[link] = std::max(fastest[link], rates[i]);
      }
    }
    for (std::size_t link = 0; link < load.size(); ++link) EXPECT_LE(load[link], capacities[link]);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const bool held = std::any_of(paths[i].begin(), paths[i].end(), [&](LinkId link) {
        const bool full = capacities[link] - load[link] < paths.size();
        return full && rates[i] + paths.size() >= fastest[link];
      });
      EXPECT_TRUE(held) << "seed " << seed << " flow " << i << " could be faster";
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
