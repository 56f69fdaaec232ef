#include "sim-node/link/max_min.h"

#include <algorithm>

namespace tahoma::sim {
namespace {

struct Load {
  std::uint64_t left = 0;     // capacity not yet given away
  std::uint32_t growing = 0;  // flows whose rate is open
};

// The smallest share any of the links can still give each of its growing flows.
std::uint64_t SmallestShare(std::span<const Load> loads, std::span<const LinkId> used) {
  std::uint64_t share = kUnlimitedRate;
  for (const LinkId link : used) {
    share = std::min(share, loads[link].left / loads[link].growing);
  }
  return share;
}

// The flows over each link, one link's after the other's.
class FlowsOf {
 public:
  FlowsOf(std::span<const std::span<const LinkId>> paths, std::span<const Load> loads)
      : begin_(loads.size() + 1) {
    for (std::size_t link = 0; link < loads.size(); ++link) {
      begin_[link + 1] = begin_[link] + loads[link].growing;
    }
    flows_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t flow = 0; flow < paths.size(); ++flow) {
      for (const LinkId link : paths[flow]) flows_[next[link]++] = static_cast<std::uint32_t>(flow);
    }
  }

  std::span<const std::uint32_t> operator[](LinkId link) const {
    return std::span(flows_).subspan(begin_[link], begin_[link + 1] - begin_[link]);
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> flows_;
};

}  // namespace

std::vector<std::uint64_t> MaxMinRates(std::span<const std::span<const LinkId>> paths,
                                       std::span<const std::uint64_t> capacities) {
  std::vector<Load> loads(capacities.size());
  std::vector<LinkId> used;
  std::vector<std::uint64_t> rates(paths.size(), kUnlimitedRate);
  for (const std::span<const LinkId> path : paths) {
    for (const LinkId link : path) {
      if (loads[link].growing++ == 0) used.push_back(link);
      loads[link].left = capacities[link];
    }
  }
  const FlowsOf flows_of(paths, loads);
  std::vector<LinkId> full;
  while (!used.empty()) {
    const std::uint64_t share = SmallestShare(loads, used);
    // A flow that crosses a full link stops growing. The full links are found before the loads
    // change.
    full.clear();
    for (const LinkId link : used) {
      if (loads[link].left / loads[link].growing <= share) full.push_back(link);
    }
    for (const LinkId link : full) {
      for (const std::uint32_t flow : flows_of[link]) {
        if (rates[flow] != kUnlimitedRate) continue;
        rates[flow] = share;
        for (const LinkId crossed : paths[flow]) {
          loads[crossed].left -= share;
          loads[crossed].growing -= 1;
        }
      }
    }
    std::erase_if(used, [&](LinkId link) { return loads[link].growing == 0; });
  }
  return rates;
}

}  // namespace tahoma::sim
