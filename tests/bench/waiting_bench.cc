// A node of 640 becomes free each second while 10,000 gangs wait: how many writes tell people about
// gangs other than the gang that ended and the gang that got the node.
//
// The core runs on an API server reduced to objects and writes (tests/support/fake_api.h), in
// virtual time.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "controller/core/core.h"
#include "controller/plan/planner.h"
#include "lib/base/check.h"
#include "tests/support/fake_api.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using std::chrono::milliseconds;

constexpr int kUltraServers = 160;
constexpr int kNodes = 4 * kUltraServers;
constexpr int kGangs = 10000;
constexpr int kFreed = 30;
constexpr milliseconds kStep{100};

// The name of the object that a message to people is about; empty for any other write.
std::string SubjectOf(const ApiWrite& write) {
  if (const auto* status = std::get_if<GangStatusWrite>(&write.what)) return status->key.name;
  if (const auto* condition = std::get_if<PodConditionWrite>(&write.what)) {
    return condition->key.name;
  }
  if (const auto* event = std::get_if<EventNote>(&write.what)) return event->name;
  return "";
}

// The gang of a Gang "wait-7" or of a pod "wait-7-0"; empty for others.
std::string GangOfObject(const std::string& name) {
  if (!name.starts_with("wait-")) return "";
  return name.substr(0, name.find('-', 5));
}

class World {
 public:
  World() {
    api.AddClass();
    for (int i = 0; i < kNodes; ++i) {
      api.AddNode(NodeFactsOf({.name = fmt::format("us-{}-n{}", i / 4, i % 4),
                               .type = "trn2u.48xlarge",
                               .ultra_server = fmt::format("us-{}", i / 4),
                               .z = i % 4,
                               .cores = false}));
      api.AddPodWithClaim(fmt::format("run-{}", i), "", 16);
    }
    api.Relist();
  }

  // Gangs of one, two and four whole instances.
  void AddGangs() {
    constexpr std::array<std::pair<int, const char*>, 3> kKinds = {
        {{1, "4x4"}, {2, "4x4x2"}, {4, "4x4x4"}}};
    for (int i = 0; i < kGangs; ++i) {
      const auto& kind = kKinds[static_cast<std::size_t>(i) % kKinds.size()];
      const std::string name = fmt::format("wait-{}", i);
      api.AddGang(name, kind.first);
      api.ChangeGang(name, [&](GangFact& gang) { gang.shape = kind.second; });
      for (int pod = 0; pod < kind.first; ++pod) {
        api.AddPodWithClaim(fmt::format("{}-{}", name, pod), name, 16);
      }
    }
  }

  // Passes `duration`, and then goes on until a step has no news and no writes.
  void Pass(milliseconds duration) {
    for (milliseconds passed{0}; passed < duration || !quiet_; passed += kStep) Step();
  }

  FakeApi api;
  std::vector<ApiWrite> writes;  // of all steps since they were taken

 private:
  void Step() {
    std::vector<Command> commands = api.TakeEvents();
    for (ApiResult& result : results_) commands.emplace_back(std::move(result));
    results_.clear();
    if (!synced_) commands.emplace_back(WatchesSynced{});
    synced_ = true;
    quiet_ = commands.empty();
    time_ += kStep;
    const Now now{.wall = WallTime(std::chrono::hours(1)) + time_,
                  .monotonic = MonotonicTime(time_)};
    api.now = now.wall;
    StepOutput out = core_.Step(commands, now);
    for (const ApiWrite& write : out.writes) results_.push_back(api.Execute(write));
    quiet_ = quiet_ && out.writes.empty();
    writes.insert(writes.end(), out.writes.begin(), out.writes.end());
    api.RunControllers();
  }

  Planner planner_;
  Core core_{[this](const ClusterState& view, const Queue& gangs, WallTime now,
                    Explaining explaining) { return planner_.Plan(view, gangs, now, explaining); }};
  std::vector<ApiResult> results_;
  std::chrono::nanoseconds time_{0};
  bool synced_ = false;
  bool quiet_ = false;
};

// The gangs of which a pod is bound.
std::set<std::string> Placed(const FakeApi& api) {
  std::set<std::string> placed;
  for (const auto& [name, pod] : api.pods()) {
    if (!pod.node.empty()) placed.insert(GangOfObject(name));
  }
  placed.erase("");
  return placed;
}

void WritesForOneNode(benchmark::State& run) {
  World world;
  world.Pass(std::chrono::seconds(1));
  world.AddGangs();
  world.Pass(std::chrono::minutes(1));  // messages that changed meanwhile are held back
  TAHOMA_CHECK(Placed(world.api).empty());
  world.writes.clear();
  for (auto unused : run) {
    for (int i = 0; i < kFreed; ++i) {
      world.api.FinishPod(fmt::format("run-{}", i), true);
      world.Pass(std::chrono::seconds(1));
    }
  }
  const std::set<std::string> placed = Placed(world.api);
  TAHOMA_CHECK(placed.size() == kFreed);
  int others = 0;
  for (const ApiWrite& write : world.writes) {
    const std::string gang = GangOfObject(SubjectOf(write));
    others += !gang.empty() && !placed.contains(gang) ? 1 : 0;
  }
  run.counters["writes"] = static_cast<double>(others) / kFreed;
}

BENCHMARK(WritesForOneNode)
    ->Name("writes_per_freed_node_10000_waiting")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::controller
