#include "controller/ctl/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/model/fleet_summary_object.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

std::string Line(const std::string& name, std::size_t width, const LayerCounts& c) {
  return fmt::format("{:<{}}{:>8}{:>12}{:>15}{:>10}{:>10}{:>10}{:>9}{:>16}\n", name, width, c.nodes,
                     c.not_ready, c.ultra_servers, c.chips, c.free, c.held, c.broken,
                     c.whole_domains);
}

}  // namespace

std::string SummaryText(const FleetSummary& summary) {
  std::vector<std::pair<std::string, LayerCounts>> lines;
  for (const FleetSummary::Row& row : summary.rows) {
    lines.emplace_back(fmt::format("{}", fmt::join(row.layers, "/")), row.counts);
  }
  std::size_t width = std::string_view("NETWORK LAYER").size();
  for (const auto& [name, counts] : lines) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}}{:>8}{:>12}{:>15}{:>10}{:>10}{:>10}{:>9}{:>16}\n",
                                 "NETWORK LAYER", width, "NODES", "NOT READY", "ULTRASERVERS",
                                 "CHIPS", "FREE", "HELD", "BROKEN", "WHOLE DOMAINS");
  for (const auto& [name, counts] : lines) text += Line(name, width, counts);
  if (summary.rows_left_out > 0) text += fmt::format("… and {} more\n", summary.rows_left_out);
  text += Line("all", width, summary.all);
  return text +
         "\nkubectl tahoma topology NAME draws an UltraServer or instance, --all draws all of "
         "them\n";
}

std::string SummarizeTopology(const ClusterState& cluster) {
  return SummaryText(SummarizeFleet(cluster));
}

Json SummaryJson(const FleetSummary& summary) {
  const Json object = FleetSummaryObject({.summary = summary});
  return TryParseJson(kube::StringAt(object, {"data", "summary"}));
}

}  // namespace tahoma::controller
