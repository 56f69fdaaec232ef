// The fleet in a few lines, by network layer.
//
//   std::string text = SummarizeTopology(cluster);
//
// The text is, for example:
//
//   NETWORK LAYER   NODES   NOT READY   ULTRASERVERS   CHIPS   FREE   HELD   BROKEN   WHOLE DOMAINS
//   nn-1              512           0            128    8192   1024   7152       16              12
//   nn-1/nn-11        256           0             64    4096    512   3576        8               6
//
// Thread safety: pure functions.

#pragma once

#include <string>

#include "controller/model/cluster.h"
#include "controller/model/fleet_summary.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

std::string SummaryText(const FleetSummary& summary);
std::string SummarizeTopology(const ClusterState& cluster);
// Returns the counts in the form of docs/formats/topology.md.
Json SummaryJson(const FleetSummary& summary);

}  // namespace tahoma::controller
