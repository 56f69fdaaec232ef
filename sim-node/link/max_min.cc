#include "sim-node/link/max_min.h"

#include <algorithm>

namespace tahoma::sim {
namespace {

struct Load {
  std::uint64_t left = 0;     // capacity not yet given away
  std::uint32_t growing = 0;  // flows whose rate is open
};

// The smallest share any link can still give each of its growing flows.
std::uint64_t SmallestShare(std::span<const Load> loads, std::span<const LinkId> used) {
  std::uint64_t share = kUnlimitedRate;
  for (const LinkId link : used) {
    if (loads[link].growing > 0) share = std::min(share, loads[link].left / loads[link].growing);
  }
  return share;
}

bool IsFull(const Load& load, std::uint64_t share) { return load.left / load.growing <= share; }

}  // namespace

std::vector<std::uint64_t> MaxMinRates(std::span<const std::span<const LinkId>> paths,
                                       std::span<const std::uint64_t> capacities) {
  std::vector<Load> loads(capacities.size());
  std::vector<LinkId> used;
  std::vector<std::uint64_t> rates(paths.size(), kUnlimitedRate);
  std::vector<std::size_t> growing;
  for (std::size_t flow = 0; flow < paths.size(); ++flow) {
    if (!paths[flow].empty()) growing.push_back(flow);
    for (const LinkId link : paths[flow]) {
      if (loads[link].growing++ == 0) used.push_back(link);
      loads[link].left = capacities[link];
    }
  }
  std::vector<std::size_t> stopped;
  while (!growing.empty()) {
    const std::uint64_t share = SmallestShare(loads, used);
    // Whoever crosses a full link stops. Decide for all before the loads change.
    stopped.clear();
    std::erase_if(growing, [&](std::size_t flow) {
      const bool stops = std::any_of(paths[flow].begin(), paths[flow].end(),
                                     [&](LinkId link) { return IsFull(loads[link], share); });
      if (stops) stopped.push_back(flow);
      return stops;
    });
    for (const std::size_t flow : stopped) {
      rates[flow] = share;
      for (const LinkId link : paths[flow]) {
        loads[link].left -= share;
        loads[link].growing -= 1;
      }
    }
  }
  return rates;
}

}  // namespace tahoma::sim
