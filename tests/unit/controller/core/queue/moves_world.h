// A core with UltraServers on which gangs run that may be moved, for tests.
//
//   MovesWorld world;
//   world.Run("a", "4x4x2");            // packed: a and b share us-0
//   world.Run("b", "4x4x2");
//   world.End("b");                     // us-0 is half free
//
// Thread safety: one thread.

#pragma once

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/core.h"
#include "controller/plan/planner.h"
#include "lib/torus/shape.h"
#include "tests/support/fleet.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {

inline PlanFunction RealPlanner() {
  return [planner = std::make_shared<Planner>()](const ClusterState& view, const Queue& queue,
                                                 WallTime now, Explaining explaining) {
    return planner->Plan(view, queue, now, explaining);
  };
}

class MovesWorld : public World {
 public:
  explicit MovesWorld(int ultra_servers = 2) : World(CoreOptions{}, RealPlanner()) {
    api.AddClass();
    for (int i = 0; i < ultra_servers; ++i) AddUltraServerNodes(fmt::format("us-{}", i));
  }

  void AddUltraServerNodes(const std::string& id) {
    for (int z = 0; z < 4; ++z) {
      api.AddNode(NodeFactsOf({.name = fmt::format("{}-n{}", id, z),
                               .type = "trn2u.48xlarge",
                               .ultra_server = id,
                               .z = z,
                               .cores = false}));
    }
  }
  static int PodsOf(const std::string& shape) {
    return std::max(1, torus::Shape::Parse(shape)->chip_count() / 16);
  }
  // A preemptible gang whose pods a controller makes anew.
  void AddGangOf(const std::string& name, const std::string& shape, bool preemptible = true) {
    const int pods = PodsOf(shape);
    api.AddGang(name, pods);
    api.ChangeGang(name, [&](GangFact& gang) {
      gang.shape = shape;
      gang.preemptible = preemptible;
    });
    AddPods(name, 0);
  }
  // The next pods of the gang, as a controller makes them: "<name>-<generation>-<rank>".
  void AddPods(const std::string& name, int generation) {
    const std::string& shape = api.gangs().at(name).shape;
    const int pods = PodsOf(shape);
    for (int i = 0; i < pods; ++i) {
      const std::string pod = fmt::format("{}-{}-{}", name, generation, i);
      api.AddPodWithClaim(pod, name, torus::Shape::Parse(shape)->chip_count() / pods);
      api.ChangePod(pod, [](PodFact& fact) { fact.controlled = true; });
    }
  }
  void Run(const std::string& name, const std::string& shape, bool preemptible = true) {
    AddGangOf(name, shape, preemptible);
    Settle();
  }
  // The gang ends with success.
  void End(const std::string& name) {
    std::vector<std::string> pods;
    for (const auto& [pod, fact] : api.pods()) {
      if (fact.gang == name) pods.push_back(pod);
    }
    for (const std::string& pod : pods) api.FinishPod(pod, true);
    Settle();
  }
  // Returns the topology domain of the gang's pods; "" without a place.
  std::string DomainOf(const std::string& name) {
    const auto* view = core().snapshot()->gangs.Find(GangRef{{"default", name}, false});
    if (view == nullptr || (*view)->decision == nullptr || (*view)->bound_pods == 0) return "";
    return (*view)->decision->slices.front().domain;
  }
  PlanFunction planner = RealPlanner();
};

}  // namespace tahoma::controller
