#include "controller/app/metrics.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/admin/clock_route.h"
#include "controller/admin/queue_routes.h"
#include "controller/admin/usage_report.h"
#include "controller/admin/usage_routes.h"
#include "controller/core/decision_log.h"

namespace tahoma::controller {
namespace {

using Values = std::vector<std::pair<rest::Labels, double>>;

constexpr const char* kEvictions = "tahoma_evictions_total";
constexpr const char* kEvictionsHelp =
    "Gangs whose run was ended, and pods that a standalone cluster's controllers deleted, by "
    "cause.";
// The causes for which a gang's run ends.
constexpr std::array<GangReason, 7> kEndReasons{
    GangReason::kUndone,         GangReason::kReclaimed,  GangReason::kPreempted,
    GangReason::kMaxRuntimeOver, GangReason::kMemberLost, GangReason::kNotStarted,
    GangReason::kMoved};
// From a gang that finds its place at once to one that waits for a week.
const std::vector<double> kWaitSeconds{0.01, 0.03, 0.1,  0.3,  1,     3,     10,    30,
                                       100,  300,  1000, 3600, 10800, 36000, 86400, 604800};

rest::Counter& AddEvictions(rest::Metrics& metrics, std::string_view cause) {
  return metrics.AddCounter(kEvictions, kEvictionsHelp, {{"cause", std::string(cause)}});
}

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

int Count(std::uint16_t chips) { return std::popcount(chips); }

// Returns how many chips are in each state. Each chip is in the first that holds.
Values ChipsByState(const ClusterState& cluster) {
  std::int64_t broken = 0, used = 0, unavailable = 0, free = 0;
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    const NodeState& state = cluster.node(NodeId(i));
    if (state.node == nullptr || !state.domain.valid()) continue;
    const NodeTemplate& devices = *state.node->family->devices;
    const std::uint16_t healthy = devices.chip_mask & devices.healthy_mask;
    const auto busy = static_cast<std::uint16_t>(healthy & state.BusyChips());
    broken += Count(devices.chip_mask) - Count(healthy);
    used += Count(busy);
    (state.node->schedulable() ? free : unavailable) += Count(healthy) - Count(busy);
  }
  const auto value = [](const char* state, std::int64_t count) {
    return std::pair{rest::Labels{{"state", state}}, static_cast<double>(count)};
  };
  return {value("broken", broken), value("used", used), value("unavailable", unavailable),
          value("free", free)};
}

Values NodesByState(const ClusterState& cluster) {
  std::map<std::string, double> nodes{{"ready", 0}, {"cordoned", 0}, {"not_ready", 0}};
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    const NodeState& state = cluster.node(NodeId(i));
    if (state.node == nullptr || !state.domain.valid()) continue;
    ++nodes[!state.node->ready ? "not_ready" : state.node->cordoned ? "cordoned" : "ready"];
  }
  Values values;
  for (const auto& [state, count] : nodes) values.push_back({{{"state", state}}, count});
  return values;
}

void AddFleetMetrics(rest::Metrics& metrics, const ReadSnapshot& snapshot) {
  const auto of = [&](Values (*read)(const ClusterState&)) {
    return [snapshot, read] {
      const ClusterView cluster = snapshot()->cluster;
      static const ClusterState kNone;
      return read(cluster == nullptr ? kNone : *cluster);
    };
  };
  metrics.AddGaugeFamily(
      "tahoma_chips",
      "Chips by state: broken (or cordoned), used, unavailable (the node is not ready, or "
      "cordoned), free.",
      of(ChipsByState));
  metrics.AddGaugeFamily("tahoma_nodes",
                         "Nodes with Trainium devices by state: ready, cordoned, not_ready.",
                         of(NodesByState));
}

Values GangsByPhase(const Snapshot& snapshot) {
  std::map<std::tuple<bool, GangPhase, GangReason>, double> gangs;
  snapshot.gangs.ForEach([&](const GangRef& ref, const auto& view) {
    ++gangs[{ref.single, view->phase, view->reason}];
  });
  Values values;
  for (const auto& [key, count] : gangs) {
    const auto& [single, phase, reason] = key;
    values.push_back({{{"kind", single ? "Pod" : "Gang"},
                       {"phase", std::string(ToString(phase))},
                       {"reason", std::string(ToString(reason))}},
                      count});
  }
  return values;
}

double LongestWait(const Snapshot& snapshot, WallTime now) {
  WallTime first = now;
  snapshot.gangs.ForEach([&](const GangRef&, const auto& view) {
    if (view->waits_since) first = std::min(first, *view->waits_since);
  });
  return Seconds(now - first);
}

void AddGangMetrics(rest::Metrics& metrics, const GuardedClock& clock,
                    const ReadSnapshot& snapshot) {
  metrics.AddGaugeFamily("tahoma_gangs",
                         "Gangs, and pods without a Gang, by phase and reason; only those are "
                         "listed that there are.",
                         [snapshot] { return GangsByPhase(*snapshot()); });
  metrics.AddGaugeCallback(
      "tahoma_gang_longest_wait_seconds",
      "How long ago the oldest gang or pod was created that waits for a place alone.",
      [snapshot, &clock] { return LongestWait(*snapshot(), clock.WallNow()); });
}

void AddClockMetrics(rest::Metrics& metrics, const GuardedClock& clock,
                     const ReadSnapshot& snapshot) {
  metrics.AddGaugeCallback("tahoma_clock_leap_seconds",
                           "How far the machine's clock has leapt ahead, until it is believed.",
                           [&clock] { return Seconds(clock.leap()); });
  metrics.AddGaugeCallback(
      "tahoma_capacity_blocks_ahead_seconds",
      "How far Capacity Blocks live ahead of a clock that was set back.",
      [&clock, snapshot] { return Seconds(BlocksAhead(*snapshot(), clock.WallNow())); });
}

}  // namespace

void AddMetrics(rest::Metrics& metrics, const GuardedClock& clock, const ReadSnapshot& snapshot) {
  const auto of = [&](auto read) {
    return [snapshot, read] { return static_cast<double>(read(*snapshot())); };
  };
  metrics.AddCounterCallback("tahoma_gangs_prepared_total", "Gangs whose commit was begun.",
                             of([](const Snapshot& s) { return s.counters.gangs_prepared; }));
  metrics.AddCounterCallback("tahoma_gangs_bound_total", "Gangs that were bound as a whole.",
                             of([](const Snapshot& s) { return s.counters.gangs_bound; }));
  metrics.AddCounterCallback("tahoma_gangs_undone_total", "Gangs whose commit was taken back.",
                             of([](const Snapshot& s) { return s.counters.gangs_undone; }));
  metrics.AddCounterCallback("tahoma_pods_bound_total", "Pods that were bound.",
                             of([](const Snapshot& s) { return s.counters.pods_bound; }));
  metrics.AddGaugeCallback("tahoma_gangs_in_flight", "Gangs between decision and last bind.",
                           of([](const Snapshot& s) { return s.runs_in_flight; }));
  metrics.AddGaugeCallback("tahoma_gangs_waiting", "Gangs and single pods that wait.",
                           of([](const Snapshot& s) { return s.gangs_waiting; }));
  metrics.AddCounterCallback("tahoma_journal_records_total", "Records written to the journal.",
                             of([](const Snapshot& s) { return s.counters.journal_records; }));
  metrics.AddCounterCallback("tahoma_api_writes_total", "Requests to the Kubernetes API.",
                             of([](const Snapshot& s) { return s.counters.api_writes; }));
  AddFleetMetrics(metrics, snapshot);
  AddGangMetrics(metrics, clock, snapshot);
  AddUsageMetrics(metrics, snapshot, clock);
  AddChipSeconds(metrics, snapshot, clock);
  AddQueueMetrics(metrics, snapshot);
  AddClockMetrics(metrics, clock, snapshot);
}

void AddStoreMetrics(rest::Metrics& metrics, const Store& store) {
  metrics.AddGaugeCallback("tahoma_store_writable", "1 while commits succeed, 0 after one failed.",
                           [&store] { return store.health().ok() ? 1.0 : 0.0; });
  metrics.AddCounterCallback("tahoma_store_failures_total",
                             "How often the store has stopped after a failure.",
                             [&store] { return static_cast<double>(store.failures()); });
}

rest::Gauge& AddLeaderMetric(rest::Metrics& metrics) {
  return metrics.AddGauge("tahoma_leader",
                          "1 while this controller decides, 0 while it stands by.");
}

void TellDecisions(rest::Metrics& metrics, CoreLoopOptions& options) {
  auto& waited = metrics.AddHistogram(
      "tahoma_gang_admission_wait_seconds",
      "From the creation of a gang's last pod until all of its pods were bound.", kWaitSeconds);
  auto& took =
      metrics.AddHistogram("tahoma_decision_seconds", "Steps of the core that have planned gangs.",
                           rest::kLatencySeconds);
  std::map<GangReason, rest::Counter*> ended;
  for (const GangReason reason : kEndReasons) {
    ended[reason] = &AddEvictions(metrics, ToString(reason));
  }
  options.decided = [&waited, ended = std::move(ended)](const LoggedDecision& decision) {
    if (spdlog::should_log(spdlog::level::info)) spdlog::info("{}", DecisionLine(decision));
    if (decision.kind == DecisionKind::kBound && decision.waited) {
      waited.Observe(Seconds(*decision.waited));
    }
    const auto counter = ended.find(decision.reason);
    if (decision.kind == DecisionKind::kUndone && counter != ended.end()) {
      counter->second->Increment();
    }
  };
  options.planned = [&took](std::uint64_t gangs, std::chrono::nanoseconds time) {
    took.Observe(Seconds(time));
    spdlog::debug("planned {} gangs in {:.3f} ms", gangs, Seconds(time) * 1000);
  };
}

std::function<void(const apiserver::Eviction& eviction)> TellEvictions(rest::Metrics& metrics) {
  std::map<std::string_view, rest::Counter*> counters;
  for (const char* cause : apiserver::kEvictionCauses) {
    counters[cause] = &AddEvictions(metrics, cause);
  }
  return [counters = std::move(counters)](const apiserver::Eviction& eviction) {
    spdlog::info("pod {}: evicted from {} ({})", eviction.pod, eviction.node, eviction.cause);
    counters.at(eviction.cause)->Increment();
  };
}

}  // namespace tahoma::controller
