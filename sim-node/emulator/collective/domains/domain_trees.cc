#include "sim-node/emulator/collective/domains/domain_trees.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

using Edges = std::vector<std::pair<std::size_t, std::size_t>>;

// The tree of these edges from a root; of height 0 when they do not reach all domains.
DomainTree From(std::size_t root, std::size_t domains, const Edges& edges) {
  DomainTree tree{.parent = std::vector<std::size_t>(domains, domains), .height = 0};
  tree.parent[root] = root;
  std::vector<std::size_t> layer = {root};
  std::size_t reached = 1;
  for (std::size_t height = 1; !layer.empty(); ++height) {
    std::vector<std::size_t> next;
    for (const std::size_t domain : layer) {
      for (const auto& [one, other] : edges) {
        if (one != domain && other != domain) continue;
        const std::size_t to = one == domain ? other : one;
        if (tree.parent[to] != domains) continue;
        tree.parent[to] = domain;
        tree.height = height;
        next.push_back(to);
        ++reached;
      }
    }
    layer = std::move(next);
  }
  if (reached < domains) tree.height = 0;
  return tree;
}

// Calls visit(part of each domain, parts) for all partitions into two or more parts.
template <typename Visit>
void ForEachPartition(std::vector<std::size_t>& part_of, std::size_t parts, std::size_t domains,
                      const Visit& visit) {
  if (part_of.size() == domains) {
    if (parts > 1) visit(part_of, parts);
    return;
  }
  for (std::size_t part = 0; part <= parts; ++part) {
    part_of.push_back(part);
    ForEachPartition(part_of, std::max(parts, part + 1), domains, visit);
    part_of.pop_back();
  }
}

}  // namespace

std::vector<DomainTree> DomainTreesOf(std::size_t domains) {
  TAHOMA_CHECK(domains > 1 && domains <= kDomainTreesMost);
  Edges all;
  for (std::size_t one = 0; one < domains; ++one) {
    for (std::size_t other = one + 1; other < domains; ++other) all.emplace_back(one, other);
  }
  std::vector<DomainTree> trees;
  for (unsigned chosen = 0; chosen < 1U << all.size(); ++chosen) {
    Edges edges;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((chosen >> i & 1U) != 0) edges.push_back(all[i]);
    }
    if (edges.size() + 1 != domains) continue;
    DomainTree lowest;
    for (std::size_t root = 0; root < domains; ++root) {
      DomainTree tree = From(root, domains, edges);
      if (tree.height == 0) break;
      if (lowest.height == 0 || tree.height < lowest.height) lowest = std::move(tree);
    }
    if (lowest.height > 0) trees.push_back(std::move(lowest));
  }
  return trees;
}

double TreeRate(const EdgeRates& rates) {
  double least = std::numeric_limits<double>::max();
  std::vector<std::size_t> part_of;
  ForEachPartition(part_of, 0, rates.size(), [&](const auto& part, std::size_t parts) {
    double between = 0;
    for (std::size_t one = 0; one < rates.size(); ++one) {
      for (std::size_t other = one + 1; other < rates.size(); ++other) {
        if (part[one] != part[other]) between += rates[one][other];
      }
    }
    least = std::min(least, between / static_cast<double>(parts - 1));
  });
  return least;
}

}  // namespace tahoma::sim
