#include "controller/ctl/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <variant>
#include <vector>

namespace tahoma::controller {
namespace {

constexpr std::array<std::string_view, 3> kLayers = {"networkNodeLayer1", "networkNodeLayer2",
                                                     "networkNodeLayer3"};
using Path = std::vector<std::string>;

struct Counts {
  int nodes = 0, not_ready = 0, ultra_servers = 0, chips = 0, free = 0, held = 0, broken = 0;
  int whole_units = 0;

  void Add(const Counts& other) {
    nodes += other.nodes;
    not_ready += other.not_ready;
    ultra_servers += other.ultra_servers;
    chips += other.chips;
    free += other.free;
    held += other.held;
    broken += other.broken;
    whole_units += other.whole_units;
  }
};

// The names of the layers above the node, the top first; "-" where it names none.
Path PathOf(const Node& node) {
  Path path;
  for (const std::string_view layer : kLayers) {
    const AttributeValue* value = node.Lookup(0, kNeuronDriver, layer);
    const auto* name = value == nullptr ? nullptr : std::get_if<std::string>(value);
    if (name == nullptr) break;
    path.push_back(*name);
  }
  if (path.empty()) path.emplace_back("-");
  return path;
}

Counts CountUnit(const ClusterState& cluster, const UnitState& unit) {
  Counts counts;
  counts.ultra_servers = unit.ultra ? 1 : 0;
  counts.free = std::popcount(unit.free);
  for (const NodeId id : unit.nodes) {
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
  counts.whole_units = counts.chips > 0 && counts.free == counts.chips ? 1 : 0;
  return counts;
}

std::string Line(const std::string& name, std::size_t width, const Counts& c) {
  return fmt::format("{:<{}}{:>8}{:>12}{:>15}{:>10}{:>10}{:>10}{:>9}{:>14}\n", name, width, c.nodes,
                     c.not_ready, c.ultra_servers, c.chips, c.free, c.held, c.broken,
                     c.whole_units);
}

}  // namespace

std::string SummarizeTopology(const ClusterState& cluster) {
  std::array<std::map<Path, Counts>, kLayers.size()> by_depth;
  Counts all;
  for (std::size_t i = 0; i < cluster.unit_count(); ++i) {
    const UnitState& unit = cluster.unit(UnitId(i));
    const auto first = std::find_if(unit.nodes.begin(), unit.nodes.end(), [&](NodeId id) {
      return id.valid() && cluster.node(id).node != nullptr;
    });
    if (first == unit.nodes.end()) continue;
    const Counts counts = CountUnit(cluster, unit);
    all.Add(counts);
    Path path = PathOf(*cluster.node(*first).node);
    for (std::size_t depth = kLayers.size(); depth > 0; --depth) {
      if (path.size() > depth) path.resize(depth);
      by_depth[depth - 1][path].Add(counts);
    }
  }
  // Rows of a layer with those below it, as deep as they are few.
  std::map<Path, Counts> rows = by_depth.front();
  for (std::size_t depth = 1; depth < kLayers.size(); ++depth) {
    std::map<Path, Counts> deeper = rows;
    deeper.insert(by_depth[depth].begin(), by_depth[depth].end());
    if (deeper.size() > kSummaryRowsMax) break;
    rows = std::move(deeper);
  }
  std::vector<std::pair<std::string, Counts>> lines;
  for (const auto& [path, counts] : rows) {
    if (lines.size() == kSummaryRowsMax) break;
    lines.emplace_back(fmt::format("{}", fmt::join(path, "/")), counts);
  }
  std::size_t width = std::string_view("NETWORK LAYER").size();
  for (const auto& [name, counts] : lines) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}}{:>8}{:>12}{:>15}{:>10}{:>10}{:>10}{:>9}{:>14}\n",
                                 "NETWORK LAYER", width, "NODES", "NOT READY", "ULTRASERVERS",
                                 "CHIPS", "FREE", "HELD", "BROKEN", "WHOLE UNITS");
  for (const auto& [name, counts] : lines) text += Line(name, width, counts);
  if (rows.size() > lines.size()) {
    text += fmt::format("… and {} more\n", rows.size() - lines.size());
  }
  text += Line("all", width, all);
  return text +
         "\nkubectl tahoma topology NAME draws an UltraServer or instance, --all draws all of "
         "them\n";
}

}  // namespace tahoma::controller
