// Metrics of a node's links: bytes carried, time busy, utilization and rate of each.
//
//   LinkCounters counters(metrics, live);
//   communicators.Observe([&](const auto& traffic) { counters.Add(traffic); });
//   live.Listen([&] { counters.ShowStates(); });
//   counters.HeatMap();                            // a table, chips down, ports across
//
// Metrics, with labels chip (0 to 15) and port (x- to z+), 96 series each at most:
//   tahoma_link_bytes_total                  carried
//   tahoma_link_busy_seconds_total           virtual time in which something was being sent
//   tahoma_link_utilization_ratio            carried in the last operation, of what it could carry
//   tahoma_link_rate_ratio                   of its full rate: 0 is down
//
// Scope: the directed links that this node's chips send on, and of their traffic the part that
// operations of this node's pods reported.
//
// Thread safety: all members may be called from any thread.

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/rest/metrics.h"
#include "lib/rest/server.h"
#include "sim-node/serve/communicator.h"
#include "sim-node/serve/live_instance.h"

namespace tahoma::sim {

class LinkCounters {
 public:
  // Both arguments must outlive the object.
  LinkCounters(rest::Metrics& metrics, const LiveInstance& live);

  void Add(const Communicators::Traffic& traffic);

  // Sets tahoma_link_rate_ratio from the instance; to be called when its links have changed.
  void ShowStates();

  // Returns a table of each link's utilization in its last operation, in per cent; "down" for a
  // link that is down and "-" where there is none.
  std::string HeatMap() const;

 private:
  struct Link {
    rest::Counter* bytes = nullptr;
    rest::Counter* busy = nullptr;
    rest::Gauge* use = nullptr;
    rest::Gauge* rate = nullptr;
  };

  const LiveInstance& live_;
  const TorusLinks healthy_;
  const LinkId first_;            // of the node's first chip
  std::map<LinkId, Link> links_;  // by id in the torus of its communicators
};

// Serves GET /v1/links, which answers with the heat map as text. `counters` must outlive the
// server.
void InstallLinkRoutes(rest::Server& server, const LinkCounters& counters);

}  // namespace tahoma::sim
