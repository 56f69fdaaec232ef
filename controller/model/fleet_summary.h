// The fleet counted by network layer: nodes, UltraServers, chips and who has them.
//
//   const FleetSummary summary = SummarizeFleet(cluster);
//   for (const FleetSummary::Row& row : summary.rows) …   // {"nn-1", "nn-11"}: 256 nodes, …
//
// A row counts what lies below the layers that it names: the first is the network's top. Rows go
// down as many layers as give no more than kSummaryRowsMax of them. An UltraServer or instance
// counts where its first node lies; a whole domain is one that is wholly free.
//
// Scope: counting. As text: controller/ctl/summary.h; in the API: fleet_summary_object.h.
//
// Thread safety: values, and a pure function.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "controller/model/cluster.h"

namespace tahoma::controller {

inline constexpr std::size_t kSummaryRowsMax = 60;

struct LayerCounts {
  int nodes = 0, not_ready = 0, ultra_servers = 0, chips = 0, free = 0, held = 0, broken = 0;
  int whole_domains = 0;

  void Add(const LayerCounts& other);
  friend bool operator==(const LayerCounts&, const LayerCounts&) = default;
};

struct FleetSummary {
  struct Row {
    std::vector<std::string> layers;  // the top first; {"-"} where a node names none
    LayerCounts counts;

    friend bool operator==(const Row&, const Row&) = default;
  };

  std::vector<Row> rows;  // in the order of their layers
  std::size_t rows_left_out = 0;
  LayerCounts all;

  friend bool operator==(const FleetSummary&, const FleetSummary&) = default;
};

FleetSummary SummarizeFleet(const ClusterState& cluster);

}  // namespace tahoma::controller
