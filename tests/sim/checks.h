// Checks the invariants after every step, and when everything has come to rest.
//
// The checks read the API server's objects and the nodes' own state, never what the controller
// believes, except where that belief is what is checked. The first failure is kept in the World.
//
// Thread safety: one thread.

#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "tests/sim/api_host.h"
#include "tests/sim/block_checks.h"
#include "tests/sim/controller_host.h"
#include "tests/sim/fit_oracle.h"
#include "tests/sim/promise_checks.h"
#include "tests/sim/queue_checks.h"
#include "tests/sim/virtual_node.h"
#include "tests/sim/window_checks.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

using Nodes = std::vector<std::unique_ptr<VirtualNode>>;

class Checks final : public DecisionWatcher {
 public:
  Checks(World& world, ApiHost& api, const Nodes& nodes)
      : world_(world),
        api_(api),
        nodes_(nodes),
        blocks_(world, api),
        promises_(world),
        use_(world) {}

  void AfterStep();
  void OnDecided(const controller::GangDecision& decision,
                 const controller::ClusterState& view) override;
  void OnBegin(const std::string& controller) override {
    blocks_.OnBegin(controller);
    promises_.OnBegin();
  }
  void OnStep(const std::string& controller, const controller::Snapshot& snapshot) override {
    blocks_.OnStep(controller, snapshot);
    promises_.OnStep(snapshot);
    if (world_.swarm.queues && world_.swarm.one_process) {
      limits_.AfterStep(world_, snapshot);
    }
    // The clock of worlds with Capacity Blocks is set, and only one disk knows all use.
    if (world_.swarm.purchases == 0 && world_.swarm.one_process) use_.OnStep(snapshot);
  }
  void OnPlaced(const controller::GangDecision& decision,
                const controller::Snapshot& snapshot) override {
    blocks_.OnDecided(decision, snapshot);
    if (world_.swarm.windows) CheckWindows(world_, decision);
    promises_.OnPlaced(decision, snapshot);
  }
  void OnUndoing(const controller::GangUndoing& undoing) override { promises_.OnUndoing(undoing); }
  void OnBlockDeleted(const std::string& name) override { blocks_.OnDeleted(name); }
  BlockChecks& blocks() { return blocks_; }
  void OnBound(const controller::GangDecision& decision, std::size_t pod) override;

  void AtRest(const controller::Snapshot& snapshot, controller::Journal& journal);
  void AtEnd(const controller::Snapshot& snapshot, controller::Journal& journal);

 private:
  using Core = std::pair<std::string, int>;  // node, chip * 8 + physical core
  struct PlacedDevice {
    std::uint32_t slice = 0;  // of the gang
    std::string pool;
    std::string device;
  };
  struct Run {  // as the journal has it
    std::shared_ptr<const controller::GangDecision> decision;
    bool bound = false;
    bool undoing = false;
    std::set<std::uint32_t> released;
  };

  void Reload();
  void OnClaim(const std::string& key, const Json* claim);
  const VirtualNode* NodeOf(const std::string& name) const;
  void CheckChips(const controller::GangDecision& decision, const controller::ClusterState& view);
  void CheckNeeds(const std::string& node);
  bool IsAllocated(const std::string& ns, const std::string& claim) const;
  std::vector<PlacedDevice> PlacedDevices(const controller::GangDecision& decision) const;
  void CheckShape(const controller::GangDecision& decision);

  // checks_at_rest.cc
  std::map<controller::RunId, Run> ReadJournal(controller::Journal& journal);
  bool AwaitsNextPod(const controller::GangDecision& decision,
                     const controller::DecidedClaim& claim) const;
  void CheckClaims(const std::map<controller::RunId, Run>& runs);
  void CheckJournal(const std::map<controller::RunId, Run>& runs);
  void CheckPods(const std::map<controller::RunId, Run>& runs);
  void CheckNodes(const controller::Snapshot& snapshot);
  void CheckWaiting(const controller::Snapshot& snapshot);
  void CheckGangRuns(const controller::GangView& view, const Json& gang);
  void CheckSize(const controller::GangView& view, const Json& gang);
  void CheckGangWaits(const controller::GangView& view, const Json& gang);
  void CheckPodWaits(const controller::GangView& view, const Json& pod);
  std::vector<OracleDomain> Fleet(bool empty) const;
  bool SomeNodeHas(int chips, bool empty) const;
  bool Usable(const VirtualNode& node) const;
  bool UsesBrokenChip(const std::string& pod_uid) const;

  World& world_;
  ApiHost& api_;
  const Nodes& nodes_;
  LimitChecks limits_;
  BlockChecks blocks_;
  PromiseChecks promises_;
  UseChecks use_;
  int life_ = 0;
  std::int64_t version_ = 0;
  std::map<std::string, std::vector<Core>> cores_of_claim_;  // by key "ns/name"
  std::map<Core, std::string> claim_of_core_;
};

// "neuron-device-3" and so on: the chips' physical cores as chip * 8 + core.
std::vector<int> CoresOf(const std::string& device, int chips);

}  // namespace tahoma::simulation
