// Narrows where the leader of one more group may go, beside groups that have an UltraServer each:
// what the exclusive topology of a LeaderWorkerSet costs as groups become many. And plans it in
// a fleet of 15,625 UltraServers of which all others are free.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "controller/core/core.h"
#include "controller/core/facts/read_facts.h"
#include "controller/core/queue/neighbours.h"
#include "controller/plan/planner.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

constexpr const char* kGroup = "leaderworkerset.sigs.k8s.io/group-key";

Json Requirement(const char* op, Json values) {
  Json made = {{"key", kGroup}, {"operator", op}};
  if (!values.empty()) made["values"] = std::move(values);
  return made;
}

Json Term(Json requirements) {
  return Json::array({{{"topologyKey", "tahoma.dev/ultraserver"},
                       {"labelSelector", {{"matchExpressions", std::move(requirements)}}}}});
}

// As LeaderWorkerSet's webhook makes the leader of a group.
std::shared_ptr<const PodFact> Leader(std::size_t group, const std::string& node) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const std::string name = fmt::format("set-{}", group);
  const Json own = Json::array({name});
  const Json pod = {
      {"metadata",
       {{"name", name}, {"namespace", "ml"}, {"uid", name}, {"labels", {{kGroup, name}}}}},
      {"spec",
       {{"nodeName", node},
        {"affinity",
         {{"podAffinity", {{kRequired, Term(Json::array({Requirement("In", own)}))}}},
          {"podAntiAffinity",
           {{kRequired, Term(Json::array({Requirement("Exists", Json::array()),
                                          Requirement("NotIn", own)}))}}}}}}}};
  auto parsed = ParsePod(pod);
  TAHOMA_CHECK(parsed.ok());
  return *parsed;
}

void NarrowOneMoreGroup(benchmark::State& run) {
  const auto groups = static_cast<std::size_t>(run.range(0));
  Facts facts;
  ClusterState cluster;
  JournalBuffer journal;
  WriteBuffer writes;
  GangRuns runs{facts, cluster, journal, writes, ReadPublishedOptions{}};
  Neighbours neighbours{facts, runs, cluster};
  const auto put = [&](const std::shared_ptr<const PodFact>& pod) {
    facts.pods.Put(pod);
    neighbours.OnPod(nullptr, *pod);
  };
  for (std::size_t i = 0; i < groups; ++i) {
    NodeFacts node = NodeFactsOf({.name = fmt::format("n{}", i), .cores = false});
    node.labels = {{"tahoma.dev/ultraserver", fmt::format("us-{}", i)}};
    cluster.PutNode(node);
    put(Leader(i, node.name));
  }
  const auto leader = Leader(groups, "");
  put(leader);
  auto gang = std::make_shared<GangSpec>();
  gang->key = {leader->key.ns, leader->key.name};
  gang->single_pod = true;
  gang->members.emplace_back().pod = leader->key;
  while (run.KeepRunning()) benchmark::DoNotOptimize(neighbours.Narrow(gang));
}
// The requirement as Neighbours makes it.
void PlaceOneMoreGroup(benchmark::State& run) {
  constexpr std::size_t kUltraServers = 15625;
  const auto groups = static_cast<std::size_t>(run.range(0));
  ClusterState cluster;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < kUltraServers; ++i) {
    const std::string id = fmt::format("us-{}", i);
    for (int z = 0; z < 4; ++z) {
      NodeFacts node = NodeFactsOf({.name = fmt::format("{}-n{}", id, z),
                                    .type = "trn2u.48xlarge",
                                    .ultra_server = id,
                                    .z = z,
                                    .cores = false});
      node.labels = {{"tahoma.dev/ultraserver", id}};
      cluster.PutNode(node);
    }
    if (i < groups) taken.insert(id);
  }
  GangSpec gang = GangOf("one", 1, [](const std::string& pod) { return ChipClaim(pod, 16); });
  gang.members[0].node.all.push_back({.key = "tahoma.dev/ultraserver",
                                      .op = NodeOperator::kNotIn,
                                      .values = {taken.begin(), taken.end()}});
  const auto spec = std::make_shared<const GangSpec>(std::move(gang));
  Planner planner;
  TAHOMA_CHECK(planner.Plan(cluster, {spec}, WallTime{})[0].placement.has_value());
  while (run.KeepRunning()) {
    // As after the group before, whose places are one more: nothing can be remembered.
    auto next = std::make_shared<GangSpec>(*spec);
    next->members[0].node.all[0].values.pop_back();
    benchmark::DoNotOptimize(planner.Plan(cluster, {next}, WallTime{}));
  }
}

BENCHMARK(PlaceOneMoreGroup)->Arg(1000)->Arg(4000)->Arg(15000)->Unit(benchmark::kMicrosecond);
BENCHMARK(NarrowOneMoreGroup)->Arg(1000)->Arg(4000)->Arg(15625)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tahoma::controller
