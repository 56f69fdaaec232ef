#include "sim-node/emulator/link/max_min.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

struct Load {
  std::uint64_t left = 0;     // capacity not yet given away
  std::uint64_t growing = 0;  // flows with an open rate
  std::uint32_t listed = 0;   // of the growing flows, the flows in the list
};

using Counts = std::span<const std::span<const std::uint64_t>>;

std::uint64_t CountAt(Counts counts, std::size_t flow, std::size_t link) {
  return counts.empty() ? 1 : counts[flow][link];
}

// A link used by at most so many flows is a link of few flows.
constexpr std::size_t kFew = 16;

// The smallest share that a link can still give each of its growing flows.
std::uint64_t SmallestShare(std::span<const Load> loads, std::span<const LinkId> used) {
  std::uint64_t share = kUnlimitedRate;
  for (const LinkId link : used) {
    share = std::min(share, loads[link].left / loads[link].growing);
  }
  return share;
}

// The flows over each link, in the order of the links.
class FlowsOf {
 public:
  FlowsOf(std::span<const std::span<const LinkId>> paths, std::span<const Load> loads)
      : begin_(loads.size() + 1) {
    for (std::size_t link = 0; link < loads.size(); ++link) {
      begin_[link + 1] = begin_[link] + loads[link].listed;
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

std::vector<std::uint64_t> Solve(std::span<const std::span<const LinkId>> paths,
                                 std::span<const std::uint64_t> capacities, Counts counts) {
  std::vector<Load> loads(capacities.size());
  std::vector<LinkId> used;
  std::vector<std::uint64_t> rates(paths.size(), kUnlimitedRate);
  for (std::size_t flow = 0; flow < paths.size(); ++flow) {
    TAHOMA_CHECK(counts.empty() || counts[flow].size() == paths[flow].size());
    for (std::size_t i = 0; i < paths[flow].size(); ++i) {
      Load& load = loads[paths[flow][i]];
      if (load.listed++ == 0) used.push_back(paths[flow][i]);
      load.growing += CountAt(counts, flow, i);
      load.left = capacities[paths[flow][i]];
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
        for (std::size_t i = 0; i < paths[flow].size(); ++i) {
          const std::uint64_t count = CountAt(counts, flow, i);
          loads[paths[flow][i]].left -= share * count;
          loads[paths[flow][i]].growing -= count;
        }
      }
    }
    std::erase_if(used, [&](LinkId link) { return loads[link].growing == 0; });
  }
  return rates;
}

}  // namespace

std::vector<std::uint64_t> MaxMinRates(std::span<const std::span<const LinkId>> paths,
                                       std::span<const std::uint64_t> capacities, Counts counts) {
  std::size_t crossed = 0;
  for (const std::span<const LinkId> path : paths) crossed += path.size();
  if (crossed * kFew > capacities.size()) return Solve(paths, capacities, counts);
  // Few links are used; renumbered, the unused links cost no time.
  absl::flat_hash_map<LinkId, LinkId> number;
  std::vector<std::uint64_t> used;
  std::vector<LinkId> links;
  links.reserve(crossed);
  std::vector<std::span<const LinkId>> renumbered;
  for (const std::span<const LinkId> path : paths) {
    const std::size_t begin = links.size();
    for (const LinkId link : path) {
      const auto [entry, added] = number.try_emplace(link, static_cast<LinkId>(used.size()));
      if (added) used.push_back(capacities[link]);
      links.push_back(entry->second);
    }
    renumbered.emplace_back(std::span(links).subspan(begin));
  }
  return Solve(renumbered, used, counts);
}

}  // namespace tahoma::sim
