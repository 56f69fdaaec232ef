// The view of a plugin for operators of many nodes: its counters, and whether the plugin is ready.
//
//   PluginMetrics counters(metrics, probes);
//   counters.ObservePrepare(0.012, status);
//   counters.SetDevices(pool);
//
// Ready is a plugin that follows its sim-node, has published its devices and is registered with a
// kubelet: then pods can start here.
//
// Scope: the plugin's own. Chips and links have theirs in sim-node.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <map>
#include <string>
#include <string_view>

#include "dra-plugin/claims/claims.h"
#include "dra-plugin/inventory/pool.h"
#include "lib/rest/metrics.h"
#include "lib/rest/probes.h"

namespace tahoma::dra {

class PluginMetrics {
 public:
  // Both must outlive this object, and this object the last question to `probes`.
  PluginMetrics(rest::Metrics& metrics, rest::Probes& probes);

  // One try; the kubelet's call may take several.
  void ObservePrepare(double seconds, const absl::Status& status);
  void ObserveUnprepare(double seconds, const absl::Status& status);
  void CountRequests(int change);  // of the kubelet, that wait for their answer
  void SetPrepared(const PreparedCount& prepared);
  void CountDroppedClaim();

  void SetDevices(const DevicePool& pool);  // that are published
  void ObservePublication(const absl::Status& status);
  void SetFollowing(bool following);  // sim-node's inventory
  void SetRegistered(bool registered);

 private:
  // Counts tries to prepare, or to unprepare.
  struct Calls {
    rest::Histogram& done;
    rest::Histogram& failed;
    std::map<std::string_view, rest::Counter*> failures;  // by reason

    void Observe(double seconds, const absl::Status& status);
  };
  static Calls AddCalls(rest::Metrics& metrics, const std::string& verb);

  Calls prepare_;
  Calls unprepare_;
  rest::Gauge& requests_;
  rest::Gauge& claims_;
  rest::Gauge& chips_;
  rest::Gauge& cores_;
  rest::Gauge& nodes_;
  rest::Counter& dropped_;
  rest::Gauge& healthy_;
  rest::Gauge& unhealthy_;
  rest::Counter& published_;
  rest::Counter& not_published_;
  rest::Gauge& following_gauge_;
  rest::Gauge& registered_gauge_;
  std::atomic<bool> following_ = false;
  std::atomic<bool> has_published_ = false;
  std::atomic<bool> registered_ = false;
};

}  // namespace tahoma::dra
