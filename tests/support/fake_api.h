// A Kubernetes API server reduced to what the gang commit protocol touches, at the level of
// ApiWrites: objects with resourceVersions, preconditions, watches, and faults.
//
//   FakeApi api;
//   api.AddNode("node-a");
//   api.AddPodWithClaim("p-0", "train", 4);
//   std::vector<Command> seen = api.TakeEvents();
//   ApiResult result = api.Execute(write);
//
// It keeps what the real one guarantees: an allocation cannot be changed, only set and cleared; a
// pod is bound once; a claim in use is not cleared. Breaking one of these is recorded in `faults`.
//
// Thread safety: one thread.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/core/command.h"
#include "controller/core/facts/facts.h"
#include "controller/core/writes/api_write.h"
#include "controller/model/cluster.h"
#include "controller/plan/decision.h"

namespace tahoma::controller {

class FakeApi {
 public:
  // A node with `chips` chips named neuron-device-0, 1, …
  void AddNode(const std::string& name, int chips = 16);
  void AddNode(NodeFacts node);
  void RemoveNode(const std::string& name);
  // The DeviceClass of whole chips, which a real planner asks for.
  void AddClass();
  void AddGang(const std::string& name, int members);
  void ChangeGang(const std::string& name, const std::function<void(GangFact&)>& change);
  void ChangePod(const std::string& name, const std::function<void(PodFact&)>& change);
  // A CapacityBlock that buys the offering.
  void AddBlock(const std::string& name, const std::string& offering, const BlockTerms& terms,
                const std::string& owner = "default");
  void ChangeBlock(const std::string& name, const std::function<void(BlockFact&)>& change);
  void AddPod(const std::string& name, const std::string& gang,
              const std::vector<std::string>& claims);
  void AddClaim(const std::string& name, int chips);
  // A pod with one claim of its own, "<name>-chips".
  void AddPodWithClaim(const std::string& name, const std::string& gang, int chips);
  void DeletePod(const std::string& name);  // as a user: at once when unbound, else ends it first
  void FinishPod(const std::string& name, bool succeeded);
  // Gone with its allocation: all that a watch which missed the steps before has to tell of it.
  void RemoveClaim(const std::string& name);
  // As another scheduler does it: neuron-device-0 of the node for the claim, then the pod.
  void BindByOther(const std::string& pod, const std::string& claim, const std::string& node);

  // Claims are made with their finalizer, as those from templates are in standalone mode.
  bool protects_claims = false;
  // The time by which pods are bound.
  WallTime now;

  // Acts as kube-controller-manager and kubelets: ends deleted pods, takes back reservations of
  // ended pods, clears claims nobody uses, removes their finalizer.
  void RunControllers();

  ApiResult Execute(const ApiWrite& write);
  // Everything that changed since the last call; after Relist() everything that exists.
  std::vector<Command> TakeEvents();
  void Relist();

  // A copy of all objects, to be put back later: a restored backup.
  struct Backup {
    std::map<std::string, PodFact> pods;
    std::map<std::string, ClaimFact> claims;
  };
  Backup Save() const { return {pods_, claims_}; }
  void Restore(const Backup& backup);

  const std::map<std::string, PodFact>& pods() const { return pods_; }
  const std::map<std::string, ClaimFact>& claims() const { return claims_; }
  const std::map<std::string, GangStatus>& statuses() const { return statuses_; }
  const std::map<std::string, std::string>& conditions() const { return conditions_; }
  const std::vector<EventNote>& events() const { return notes_; }
  const std::map<std::string, BlockFact>& blocks() const { return blocks_; }
  // Returns the published status of a block; nullptr before the purchase.
  std::shared_ptr<const BlockView> BlockStatus(const std::string& name) const;

  // Every mistake that a real API would suffer from: double allocation, a partial gang at rest, …
  std::vector<std::string> faults;
  // Checks what must hold once nothing moves: devices given once, gangs whole or absent,
  // allocation exactly where a bound pod is.
  void CheckAtRest();
  // Devices given once: holds at every moment.
  void CheckDevices();

 private:
  // Carry out a write, and set what its result says.
  void CarryOut(const ClaimWrite& write, ApiResult& result);
  void CarryOut(const PodWrite& write, ApiResult& result);
  void CarryOut(const PodDeletion& write, ApiResult& result);
  void CarryOut(const BlockCreation& write, ApiResult& result);
  void CarryOut(const BlockFinalizerWrite& write, ApiResult& result);
  void CarryOut(const BlockStatusWrite& write, ApiResult& result);
  void CarryOut(const GangStatusWrite& write, ApiResult& result);
  void CarryOut(const PodConditionWrite& write, ApiResult& result);
  void CarryOut(const EventNote& event, ApiResult& result);
  // Of others it knows no objects.
  void CarryOut(const RequestStatusWrite&, ApiResult&) {}
  void CarryOut(const PodReclaimWrite&, ApiResult&) {}
  void Touch(BlockFact& block);
  void Touch(PodFact& pod);
  void Touch(ClaimFact& claim);
  void RemovePod(const std::string& name);

  std::uint64_t version_ = 100;
  std::uint64_t uids_ = 0;
  std::map<std::string, PodFact> pods_;
  std::map<std::string, ClaimFact> claims_;
  std::map<std::string, GangFact> gangs_;
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, GangStatus> statuses_;
  std::map<std::string, std::string> conditions_;
  std::vector<EventNote> notes_;
  std::map<std::string, BlockFact> blocks_;
  std::map<std::string, std::shared_ptr<const BlockView>> block_status_;
  bool has_class_ = false;
  std::vector<Command> events_;
};

// A planner as simple as can be: every claim asks for `count` chips of its first request, members
// go to the first node with room, in order.
std::vector<Decision> FirstFit(const ClusterState& view, const Queue& queue, WallTime now);

}  // namespace tahoma::controller
