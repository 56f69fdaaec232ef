#include "dra-plugin/run/plugin_metrics.h"

#include <fmt/format.h>

#include <array>

#include "dra-plugin/kubelet/health_board.h"
#include "lib/base/version.h"

namespace tahoma::dra {

namespace {

// Why a try failed, in few words: what is away comes back, `refused` is for the claim's author.
constexpr std::array<std::string_view, 5> kReasons = {"away", "overlap", "refused", "full",
                                                      "internal"};

std::string_view ReasonOf(const absl::Status& status) {
  if (IsAway(status)) return "away";
  if (absl::IsAlreadyExists(status)) return "overlap";
  if (absl::IsResourceExhausted(status)) return "full";
  const bool refused = absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
                       absl::IsNotFound(status);
  return refused ? "refused" : "internal";
}

rest::Gauge& AddPrepared(rest::Metrics& metrics, const char* kind) {
  return metrics.AddGauge("tahoma_dra_prepared_devices", "Devices of claims that are prepared.",
                          {{"kind", kind}});
}

rest::Counter& AddPublications(rest::Metrics& metrics, const char* result) {
  return metrics.AddCounter("tahoma_dra_publications_total",
                            "Comparisons of the node's ResourceSlices with its devices.",
                            {{"result", result}});
}

}  // namespace

PluginMetrics::Calls PluginMetrics::AddCalls(rest::Metrics& metrics, const std::string& verb) {
  const auto add = [&](const char* result) -> rest::Histogram& {
    return metrics.AddHistogram(fmt::format("tahoma_dra_{}_seconds", verb),
                                fmt::format("One try to {} a claim.", verb), rest::kLatencySeconds,
                                {{"result", result}});
  };
  Calls calls = {.done = add("ok"), .failed = add("error"), .failures = {}};
  for (const std::string_view reason : kReasons) {
    calls.failures[reason] = &metrics.AddCounter(
        fmt::format("tahoma_dra_{}_failures_total", verb),
        fmt::format("Tries to {} a claim that failed: sim-node or the API server was away, another "
                    "claim has the device, the claim or its configuration is refused, the disk or "
                    "the node is full, or something else.",
                    verb),
        {{"reason", std::string(reason)}});
  }
  return calls;
}

void PluginMetrics::Calls::Observe(double seconds, const absl::Status& status) {
  (status.ok() ? done : failed).Observe(seconds);
  if (!status.ok()) failures.at(ReasonOf(status))->Increment();
}

PluginMetrics::PluginMetrics(rest::Metrics& metrics, rest::Probes& probes)
    : prepare_(AddCalls(metrics, "prepare")),
      unprepare_(AddCalls(metrics, "unprepare")),
      requests_(metrics.AddGauge("tahoma_dra_requests_in_flight",
                                 "Requests of the kubelet that wait for their answer.")),
      claims_(metrics.AddGauge("tahoma_dra_prepared_claims", "Claims that are prepared.")),
      chips_(AddPrepared(metrics, "chip")),
      cores_(AddPrepared(metrics, "core")),
      nodes_(AddPrepared(metrics, "node")),
      dropped_(metrics.AddCounter("tahoma_dra_stale_claims_dropped_total",
                                  "Claims unprepared because the API server has them no more.")),
      healthy_(metrics.AddGauge("tahoma_dra_devices", "Devices that the node shows.",
                                {{"health", "healthy"}})),
      unhealthy_(metrics.AddGauge("tahoma_dra_devices", "Devices that the node shows.",
                                  {{"health", "unhealthy"}})),
      published_(AddPublications(metrics, "ok")),
      not_published_(AddPublications(metrics, "error")),
      following_gauge_(metrics.AddGauge("tahoma_dra_sim_node_connected",
                                        "1 while sim-node's inventory is followed.")),
      registered_gauge_(metrics.AddGauge("tahoma_dra_registered",
                                         "1 when a kubelet has registered the plugin.")) {
  metrics
      .AddGauge("tahoma_dra_build_info", "Always 1; the label is the program's version.",
                {{"version", std::string(kVersion)}})
      .Set(1);
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
  prepare_.Observe(seconds, status);
}

void PluginMetrics::ObserveUnprepare(double seconds, const absl::Status& status) {
  unprepare_.Observe(seconds, status);
}

void PluginMetrics::CountRequests(int change) {
  if (change > 0) {
    requests_.Increment(change);
  } else {
    requests_.Decrement(-change);
  }
}

void PluginMetrics::SetPrepared(const PreparedCount& prepared) {
  claims_.Set(static_cast<double>(prepared.claims));
  chips_.Set(static_cast<double>(prepared.chips));
  cores_.Set(static_cast<double>(prepared.cores));
  nodes_.Set(static_cast<double>(prepared.nodes));
}

void PluginMetrics::CountDroppedClaim() { dropped_.Increment(); }

void PluginMetrics::SetDevices(const DevicePool& pool) {
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
