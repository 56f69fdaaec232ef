// The cost of news while 10,000 unlike gangs wait on 640 nodes: a node becomes free, until the
// first gang has the node; a node comes, and no gang may use the node. And the cost of 10,000 new
// gangs, until each is told why the gang waits.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/queue/scheduling_queue.h"
#include "controller/plan/planner.h"
#include "lib/base/check.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

constexpr int kUltraServers = 160;
constexpr int kGangs = 10000;

// A gang of one, two or four whole instances; no two need the same memory.
std::shared_ptr<const GangSpec> MakeGang(int number) {
  constexpr std::array<std::pair<int, const char*>, 3> kKinds = {
      {{1, "4x4"}, {2, "4x4x2"}, {4, "4x4x4"}}};
  const auto& [members, shape] = kKinds[static_cast<std::size_t>(number) % kKinds.size()];
  GangSpec gang = GangOf(fmt::format("gang-{}", number), members,
                         [](const std::string& pod) { return ChipClaim(pod, 16); });
  gang.shape_text = shape;
  gang.created = WallTime(std::chrono::seconds(number));
  for (MemberSpec& member : gang.members) {
    member.needs = std::make_shared<const kube::PodNeeds>(
        kube::PodNeeds{.amounts = {{"memory", number + 1}, {"pods", 1}}, .ports = {}});
  }
  return std::make_shared<const GangSpec>(std::move(gang));
}

std::shared_ptr<const Holding> WholeNode(const std::string& node) {
  Holding holding;
  holding.claim_uid = "uid-" + node;
  holding.holder = "gang default/running";
  for (int chip = 0; chip < 16; ++chip) {
    holding.devices.push_back({.node = node, .device = fmt::format("neuron-device-{}", chip)});
  }
  return std::make_shared<const Holding>(std::move(holding));
}

class World {
 public:
  World() {
    for (int i = 0; i < kUltraServers; ++i) {
      AddUltraServer(cluster_, fmt::format("us-{}", i), /*cores=*/false);
      for (int z = 0; z < 4; ++z) cluster_.Hold(WholeNode(fmt::format("us-{}-n{}", i, z)));
    }
  }
  void AddGangs() {
    for (int i = 0; i < kGangs; ++i) {
      Readiness ready;
      ready.spec = MakeGang(i);
      queue_.Put({ready.spec->key, ready.spec->single_pod}, ready);
    }
  }
  // Plans until the queue has nothing to do; returns how many gangs got a place.
  int PlanAll() {
    int placed = 0;
    do {
      for (const Planned& planned : queue_.Plan(cluster_, 1024, WallTime())) {
        if (!planned.placement) continue;
        ++placed;
        for (auto& holding : planned.placement->Holdings(*planned.gang, WallTime())) {
          taken_.push_back(holding->claim_uid);
          cluster_.Hold(std::move(holding));
        }
      }
    } while (queue_.has_active());
    return placed;
  }
  // Adds gangs that may use none of the nodes but some that do not exist.
  void AddGangsForOtherNodes() {
    for (int i = 0; i < kGangs; ++i) {
      GangSpec gang = *MakeGang(i);
      for (MemberSpec& member : gang.members) {
        member.node.all.push_back(
            {.key = "pool", .op = NodeOperator::kIn, .values = {fmt::format("pool-{}", i % 10)}});
      }
      Readiness ready;
      ready.spec = std::make_shared<const GangSpec>(std::move(gang));
      queue_.Put({ready.spec->key, ready.spec->single_pod}, ready);
    }
  }
  void AddNode(const std::string& name) {
    cluster_.PutNode(NodeFactsOf({.name = name, .cores = false}));
    queue_.OnRoomFreed();  // as Core does for each node
  }
  void Free(const std::string& node) { cluster_.Release("uid-" + node); }

 private:
  ClusterState cluster_;
  Planner planner_;
  SchedulingQueue queue_{
      [this](const ClusterState& view, const Queue& gangs, WallTime now, Explaining explaining) {
        return planner_.Plan(view, gangs, now, explaining);
      }};
  std::vector<std::string> taken_;
};

void WakeForOneNode(benchmark::State& run) {
  World world;
  world.AddGangs();
  world.PlanAll();
  int next = 0;
  while (run.KeepRunning()) {
    world.Free(fmt::format("us-{}-n{}", next / 4 % kUltraServers, next % 4));
    ++next;
    TAHOMA_CHECK(world.PlanAll() == 1);
  }
}

void BlockTenThousand(benchmark::State& run) {
  while (run.KeepRunning()) {
    run.PauseTiming();
    World world;
    world.AddGangs();
    run.ResumeTiming();
    world.PlanAll();
  }
}

// A node comes that none of the waiting gangs may use.
void WakeForOthersNode(benchmark::State& run) {
  World world;
  world.AddNode("first");  // of its kind
  world.AddGangsForOtherNodes();
  world.PlanAll();
  int next = 0;
  while (run.KeepRunning()) {
    world.AddNode(fmt::format("new-{}", next++));
    TAHOMA_CHECK(world.PlanAll() == 0);
  }
}

BENCHMARK(WakeForOthersNode)
    ->Name("new_node_10000_waiting_cpu_ms")
    ->Iterations(400)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(WakeForOneNode)
    ->Name("wake_10000_waiting_cpu_ms")
    ->Iterations(400)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BlockTenThousand)
    ->Name("block_10000_gangs_cpu_ms")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::controller
