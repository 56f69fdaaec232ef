// A node's links in numbers: what each has carried, how long, how full it was last, what it can do.
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
// Scope: the directed links that this node's chips send on, as far as they carried what its pods'
// operations sent between the gang's own chips.
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
  // Both must outlive the object.
  LinkCounters(rest::Metrics& metrics, const LiveInstance& live);

  void Add(const Communicators::Traffic& traffic);

  // The instance's links have changed.
  void ShowStates();

  // The last operation on each link, in per cent of what it could carry; "down", and "-" where
  // there is no link.
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

// GET /v1/links answers the heat map as text. `counters` must outlive the server.
void InstallLinkRoutes(rest::Server& server, const LinkCounters& counters);

}  // namespace tahoma::sim
