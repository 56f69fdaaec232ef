#include "dra-plugin/app/plugin_metrics.h"

#include "dra-plugin/kubelet/health_board.h"

namespace tahoma::dra {

PluginMetrics::Calls PluginMetrics::AddCalls(rest::Metrics& metrics, const std::string& name,
                                             const std::string& help) {
  const auto add = [&](const char* result) -> rest::Histogram& {
    return metrics.AddHistogram(name, help, rest::kLatencySeconds, {{"result", result}});
  };
  return {.done = add("ok"), .failed = add("error")};
}

PluginMetrics::PluginMetrics(rest::Metrics& metrics, rest::Probes& probes)
    : prepare_(AddCalls(metrics, "tahoma_dra_prepare_seconds", "One try to prepare a claim.")),
      unprepare_(
          AddCalls(metrics, "tahoma_dra_unprepare_seconds", "One try to unprepare a claim.")),
      claims_(metrics.AddGauge("tahoma_dra_prepared_claims", "Claims that are prepared.")),
      dropped_(metrics.AddCounter("tahoma_dra_stale_claims_dropped_total",
                                  "Claims unprepared because the API server has them no more.")),
      healthy_(metrics.AddGauge("tahoma_dra_devices", "Devices that the node shows.",
                                {{"health", "healthy"}})),
      unhealthy_(metrics.AddGauge("tahoma_dra_devices", "Devices that the node shows.",
                                  {{"health", "unhealthy"}})),
      published_(metrics.AddCounter("tahoma_dra_publications_total",
                                    "Comparisons of the node's ResourceSlices with its devices.",
                                    {{"result", "ok"}})),
      not_published_(metrics.AddCounter(
          "tahoma_dra_publications_total",
          "Comparisons of the node's ResourceSlices with its devices.", {{"result", "error"}})),
      following_gauge_(metrics.AddGauge("tahoma_dra_sim_node_connected",
                                        "1 while sim-node's inventory is followed.")),
      registered_gauge_(metrics.AddGauge("tahoma_dra_registered",
                                         "1 when a kubelet has registered the plugin.")) {
  const auto ready = [&probes](const char* name, const std::atomic<bool>& holds,
                               const char* reason) {
    probes.Add(rest::Probes::Kind::kReadyz, name,
               [&holds, reason] { return holds ? std::string() : std::string(reason); });
  };
  ready("sim-node", following_, "sim-node is not connected");
  ready("slices", has_published_, "the node's devices have not been published");
  ready("kubelet", registered_, "no kubelet has registered the plugin");
}

void PluginMetrics::ObservePrepare(double seconds, const absl::Status& status) {
  (status.ok() ? prepare_.done : prepare_.failed).Observe(seconds);
}

void PluginMetrics::ObserveUnprepare(double seconds, const absl::Status& status) {
  (status.ok() ? unprepare_.done : unprepare_.failed).Observe(seconds);
}

void PluginMetrics::SetPreparedClaims(std::size_t claims) {
  claims_.Set(static_cast<double>(claims));
}

void PluginMetrics::CountDroppedClaim() { dropped_.Increment(); }

void PluginMetrics::SetDevices(const Pool& pool) {
  std::size_t all = 0;
  std::size_t healthy = 0;
  for (const DeviceHealth& device : HealthOf(pool, "")) {
    ++all;
    healthy += device.healthy ? 1 : 0;
  }
  healthy_.Set(static_cast<double>(healthy));
  unhealthy_.Set(static_cast<double>(all - healthy));
}

void PluginMetrics::ObservePublication(const absl::Status& status) {
  (status.ok() ? published_ : not_published_).Increment();
  if (status.ok()) has_published_ = true;
}

void PluginMetrics::SetFollowing(bool following) {
  following_ = following;
  following_gauge_.Set(following ? 1 : 0);
}

void PluginMetrics::SetRegistered(bool registered) {
  registered_ = registered;
  registered_gauge_.Set(registered ? 1 : 0);
}

}  // namespace tahoma::dra
