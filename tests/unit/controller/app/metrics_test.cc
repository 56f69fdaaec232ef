// The controller's metrics: fleet and gangs by state, and what is counted of each decision.

#include "controller/app/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/guarded_clock.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ControllerMetricsTest : public ::testing::Test {
 protected:
  std::string Text() {
    AddMetrics(metrics_, clock_, [this] { return snapshot_; });
    return metrics_.Text();
  }
  void Put(Snapshot& snapshot, const std::string& name, bool single, GangPhase phase,
           GangReason reason, std::optional<WallTime> since = {}) {
    auto view = std::make_shared<GangView>();
    view->ref = {{"a", name}, single};
    view->phase = phase;
    view->reason = reason;
    view->waits_since = since;
    const GangRef ref = view->ref;
    snapshot.gangs.Put(ref, std::move(view));
  }
  void Show(Snapshot snapshot) {
    snapshot_ = std::make_shared<const Snapshot>(std::move(snapshot));
  }

  ManualClock machine_{WallTime(std::chrono::seconds(1'800'000'000))};
  GuardedClock clock_{machine_, [](const std::string&) {}};
  rest::Metrics metrics_;
  std::shared_ptr<const Snapshot> snapshot_ = std::make_shared<const Snapshot>();
};

TEST_F(ControllerMetricsTest, WithoutAFleetEachStateIsZero) {
  const std::string text = Text();
  for (const char* line :
       {"tahoma_chips{state=\"broken\"} 0\n", "tahoma_chips{state=\"free\"} 0\n",
        "tahoma_nodes{state=\"ready\"} 0\n", "tahoma_gang_longest_wait_seconds 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(ControllerMetricsTest, EachChipAndNodeIsInOneState) {
  ClusterState fleet;
  AddUltraServer(fleet, "us-0");
  fleet.PutNode(NodeFactsOf({.name = "lone", .broken = 0b101}));
  NodeFacts away = NodeFactsOf({.name = "away"});
  away.ready = false;
  fleet.PutNode(away);
  NodeFacts kept = NodeFactsOf({.name = "kept"});
  kept.schedulable = false;
  fleet.PutNode(kept);
  auto holding = std::make_shared<Holding>();
  holding->claim_uid = "u";
  holding->devices = {{.node = "lone", .device = "neuron-device-3"}};
  fleet.Hold(holding);
  Snapshot snapshot;
  snapshot.cluster = std::make_shared<const ClusterState>(fleet);
  Show(std::move(snapshot));
  const std::string text = Text();
  for (const char* line :
       {"tahoma_chips{state=\"broken\"} 2\n", "tahoma_chips{state=\"free\"} 77\n",
        "tahoma_chips{state=\"unavailable\"} 32\n", "tahoma_chips{state=\"used\"} 1\n",
        "tahoma_nodes{state=\"cordoned\"} 1\n", "tahoma_nodes{state=\"not_ready\"} 1\n",
        "tahoma_nodes{state=\"ready\"} 5\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(ControllerMetricsTest, GangsAreCountedByKindPhaseAndReason) {
  const WallTime now = machine_.WallNow();
  Snapshot snapshot;
  Put(snapshot, "x", false, GangPhase::kPending, GangReason::kWaitsForCapacity,
      now - std::chrono::seconds(90));
  Put(snapshot, "y", false, GangPhase::kPending, GangReason::kWaitsForCapacity,
      now - std::chrono::seconds(30));
  Put(snapshot, "p", true, GangPhase::kRunning, GangReason::kBound);
  Show(std::move(snapshot));
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("tahoma_gangs{kind=\"Gang\",phase=\"Pending\",reason="
                              "\"WaitsForCapacity\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tahoma_gangs{kind=\"Pod\",phase=\"Running\",reason=\"Bound\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tahoma_gang_longest_wait_seconds 90\n"));
}

TEST_F(ControllerMetricsTest, WaitsAndEndsOfGangsAreCounted) {
  CoreLoopOptions options;
  TellDecisions(metrics_, options);
  LoggedDecision decision{.gang = {{"a", "x"}, false}, .waited = std::chrono::seconds(2)};
  decision.kind = DecisionKind::kPlaced;  // counts when all is bound
  options.decided(decision);
  decision.kind = DecisionKind::kBound;
  options.decided(decision);
  decision.kind = DecisionKind::kUndone;
  decision.reason = GangReason::kPreempted;
  options.decided(decision);
  options.planned(3, std::chrono::milliseconds(2));
  const std::string text = metrics_.Text();
  for (const char* line :
       {"tahoma_gang_admission_wait_seconds_count 1\n",
        "tahoma_gang_admission_wait_seconds_bucket{le=\"1\"} 0\n",
        "tahoma_gang_admission_wait_seconds_bucket{le=\"3\"} 1\n",
        "tahoma_decision_seconds_sum 0.002\n", "tahoma_evictions_total{cause=\"Preempted\"} 1\n",
        "tahoma_evictions_total{cause=\"MemberLost\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("DeviceTaint")));
}

TEST_F(ControllerMetricsTest, PodsThatControllersEvictAreCountedBesideGangs) {
  const auto evicted = TellEvictions(metrics_);
  evicted({.pod = "a/p", .node = "n", .cause = apiserver::kEvictionCauses[1]});
  EXPECT_THAT(metrics_.Text(), HasSubstr("tahoma_evictions_total{cause=\"NodeGone\"} 1\n"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("tahoma_evictions_total{cause=\"DeviceTaint\"} 0\n"));
}

}  // namespace
}  // namespace tahoma::controller
