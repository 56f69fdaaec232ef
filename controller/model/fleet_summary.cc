#include "controller/model/fleet_summary.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace tahoma::controller {
namespace {

using Path = std::vector<std::string>;

// Returns the names of the layers above the node, the top first; "-" for a node that names none.
Path PathOf(const Node& node) {
  Path path = node.NetworkLayers();
  if (path.empty()) path.emplace_back("-");
  return path;
}

LayerCounts CountDomain(const ClusterState& cluster, const DomainState& domain) {
  LayerCounts counts;
  counts.ultra_servers = domain.ultra ? 1 : 0;
  counts.free = std::popcount(domain.free);
  for (const NodeId id : domain.nodes) {
    if (!id.valid() || cluster.node(id).node == nullptr) continue;
    const NodeState& node = cluster.node(id);
    const NodeTemplate& devices = *node.node->family->devices;
    ++counts.nodes;
    counts.not_ready += node.node->schedulable() ? 0 : 1;
    counts.chips += std::popcount(devices.chip_mask);
    counts.broken +=
        std::popcount(static_cast<std::uint16_t>(devices.chip_mask & ~devices.healthy_mask));
    counts.held += std::popcount(static_cast<std::uint16_t>(devices.chip_mask & node.BusyChips()));
  }
  counts.whole_domains = counts.chips > 0 && counts.free == counts.chips ? 1 : 0;
  return counts;
}

}  // namespace

void LayerCounts::Add(const LayerCounts& other) {
  nodes += other.nodes;
  not_ready += other.not_ready;
  ultra_servers += other.ultra_servers;
  chips += other.chips;
  free += other.free;
  held += other.held;
  broken += other.broken;
  whole_domains += other.whole_domains;
}

FleetSummary SummarizeFleet(const ClusterState& cluster) {
  FleetSummary summary;
  std::map<Path, LayerCounts> lowest;
  for (std::size_t i = 0; i < cluster.domain_count(); ++i) {
    const DomainState& domain = cluster.domain(DomainId(i));
    const auto first = std::find_if(domain.nodes.begin(), domain.nodes.end(), [&](NodeId id) {
      return id.valid() && cluster.node(id).node != nullptr;
    });
    if (first == domain.nodes.end()) continue;
    const LayerCounts counts = CountDomain(cluster, domain);
    summary.all.Add(counts);
    lowest[PathOf(*cluster.node(*first).node)].Add(counts);
  }
  // Splits the rows of a layer into the layers below, as long as there are few.
  std::map<Path, LayerCounts> rows;
  for (std::size_t depth = 1; depth <= kNetworkLayers.size(); ++depth) {
    std::map<Path, LayerCounts> deeper = rows;
    for (const auto& [path, counts] : lowest) {
      const auto end = path.begin() + static_cast<std::ptrdiff_t>(std::min(depth, path.size()));
      if (path.size() >= depth) deeper[Path(path.begin(), end)].Add(counts);
    }
    if (depth > 1 && deeper.size() > kSummaryRowsMax) break;
    rows = std::move(deeper);
  }
  for (auto& [path, counts] : rows) {
    if (summary.rows.size() == kSummaryRowsMax) break;
    summary.rows.push_back({.layers = path, .counts = counts});
  }
  summary.rows_left_out = rows.size() - summary.rows.size();
  return summary;
}

}  // namespace tahoma::controller
