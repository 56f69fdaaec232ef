// The fleet in a few lines, by network layer.
//
//   std::string text = SummarizeTopology(cluster);
//
//   NETWORK LAYER     NODES   NOT READY   ULTRASERVERS   CHIPS   FREE   HELD   BROKEN   WHOLE UNITS
//   nn-1                512           0            128    8192   1024   7152       16            12
//   nn-1/nn-11          256           0             64    4096    512   3576        8             6
//
// A row counts what lies below the names before it: layer 1 is the network's top. It goes down as
// many layers as give no more than kSummaryRowsMax rows. An UltraServer or instance counts where
// its first node lies; a whole unit is one that is wholly free.
//
// Thread safety: a pure function.

#pragma once

#include <cstddef>
#include <string>

#include "controller/model/cluster.h"

namespace tahoma::controller {

inline constexpr std::size_t kSummaryRowsMax = 60;

std::string SummarizeTopology(const ClusterState& cluster);

}  // namespace tahoma::controller
