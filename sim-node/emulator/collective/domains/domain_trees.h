// Spanning trees over few topology domains, each edge of which is a pair of NICs.
//
//   for (const DomainTree& tree : DomainTreesOf(3)) …      // three: each domain is a root
//   TreeRate({{0, 6, 6}, {6, 0, 10}, {6, 10, 0}});          // 11 trees at a time
//
// Thread safety: values and pure functions.

#pragma once

#include <cstddef>
#include <vector>

namespace tahoma::sim {

// More domains have too many trees to list.
inline constexpr std::size_t kDomainTreesMost = 4;

struct DomainTree {
  std::vector<std::size_t> parent;  // by domain; the root is its own
  std::size_t height = 0;
};

// Returns all spanning trees of 2 to kDomainTreesMost domains, each with a root from which it is
// the lowest.
std::vector<DomainTree> DomainTreesOf(std::size_t domains);

// The rates of the edges between any two domains.
using EdgeRates = std::vector<std::vector<double>>;

// Returns how many trees of rate 1 can use the edges at the same time (Tutte 1961, Nash-Williams
// 1961: the least sum of the rates between the parts of a partition, over their number less 1).
double TreeRate(const EdgeRates& rates);

}  // namespace tahoma::sim
