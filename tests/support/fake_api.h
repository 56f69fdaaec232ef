// A Kubernetes API server reduced to the gang commit protocol, at the level of ApiWrites: objects
// with resourceVersions, preconditions, watches, and faults.
//
//   FakeApi api;
//   api.AddNode("node-a");
//   api.AddPodWithClaim("p-0", "train", 4);
//   std::vector<Command> seen = api.TakeEvents();
//   ApiResult result = api.Execute(write);
//
// FakeApi keeps the guarantees of the real API: an allocation is only set and cleared, never
// changed; a pod is bound once; a claim in use is not cleared. A write against a guarantee is
// recorded in `faults`.
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
  void ChangeNode(const std::string& name, const std::function<void(NodeFacts&)>& change);
  // The DeviceClass of whole chips, requested by a real planner.
  void AddClass();
  void AddGang(const std::string& name, int members);
  void ChangeGang(const std::string& name, const std::function<void(GangFact&)>& change);
  void RemoveGang(const std::string& name);
  // A budget of pods with the label app.
  void PutBudget(const std::string& name, const std::string& app, std::int64_t allowed);
  // A Queue for all namespaces, in place of the one of that name.
  void PutQueue(const std::string& name, const std::function<void(QueueSpec&)>& change);
  void RemoveQueue(const std::string& name);
  // A QueueCalendar, in place of the one of that name.
  void PutQueueCalendar(const std::string& name,
                        const std::function<void(QueueCalendarSpec&)>& change);
  void RemoveQueueCalendar(const std::string& name);
  // A MaintenanceWindow of that node, in place of the window of that name.
  void PutWindow(const std::string& name, const std::string& node,
                 const std::function<void(WindowSpec&)>& change);
  void RemoveWindow(const std::string& name);
  // A Defragmentation, in place of the one of that name. The status stays.
  void PutDefragmentation(const std::string& name,
                          const std::function<void(DefragmentationSpec&)>& change);
  void RemoveDefragmentation(const std::string& name);
  void ChangePod(const std::string& name, const std::function<void(PodFact&)>& change);
  // A CapacityBlock that buys the offering.
  void AddBlock(const std::string& name, const std::string& offering, const BlockTerms& terms,
                const std::string& owner = "default");
  void ChangeBlock(const std::string& name, const std::function<void(BlockFact&)>& change);
  void AddPod(const std::string& name, const std::string& gang,
              const std::vector<std::string>& claims);
  void AddClaim(const std::string& name, int chips);
  // A PersistentVolumeClaim of the class "ssd", whose volumes are made for a selected node.
  void AddVolumeClaim(const std::string& name);
  void AddVolume(const VolumeFact& volume);
  void ChangeVolumeClaim(const std::string& name,
                         const std::function<void(VolumeClaimFact&)>& change);
  // A DeviceClass of chips that pods may ask for by the resource's name.
  void AddExtendedClass(const std::string& name, const std::string& resource);
  void RemoveClass(const std::string& name);
  // A pod that asks for chips by the name of an extended resource, and has no claim yet.
  void AddAskingPod(const std::string& name, const std::string& gang, const std::string& resource,
                    int chips);
  void AddWorkload(const WorkloadFact& workload);
  void RemoveWorkload(const std::string& name);
  // Somebody's ResourceClaimTemplate.
  void AddClaimTemplate(const std::string& name);
  void RemoveClaimTemplate(const std::string& name);
  // A pod whose claim, "<name>-chips" of 10 chips, is made when the template is there.
  void AddPodOfTemplate(const std::string& name, const std::string& claim_template);
  // A pod with a claim of its own, "<name>-chips".
  void AddPodWithClaim(const std::string& name, const std::string& gang, int chips);
  // as a user: an unbound pod at once, a bound pod after its end
  void DeletePod(const std::string& name);
  void FinishPod(const std::string& name, bool succeeded);
  // Gone with its allocation: a watch that missed the steps before tells only this.
  void RemoveClaim(const std::string& name);
  // Acts as another scheduler: gives neuron-device-0 of the node to the claim, then binds the pod.
  void BindByOther(const std::string& pod, const std::string& claim, const std::string& node);

  // Makes claims with their finalizer, as claims of templates in standalone mode.
  bool protects_claims = false;
  // Whether a pod is ready as soon as it is bound.
  bool starts_pods = true;
  // Whether status.extendedResourceClaimStatus of pods is kept.
  bool keeps_extended = true;
  // The time at which pods are bound.
  WallTime now;

  // Acts as kube-controller-manager and kubelets: ends deleted pods, takes back reservations of
  // ended pods, clears claims nobody uses, removes their finalizer.
  void RunControllers();

  ApiResult Execute(const ApiWrite& write);
  // Returns all changes since the last call; after Relist() all objects.
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
  const std::map<std::string, GangFact>& gangs() const { return gangs_; }
  const std::map<std::string, ClaimTemplateFact>& claim_templates() const { return templates_; }
  const std::map<std::string, WorkloadStatus>& workload_statuses() const {
    return workload_statuses_;
  }
  const std::map<std::string, GangStatus>& statuses() const { return statuses_; }
  const std::map<std::string, std::string>& conditions() const { return conditions_; }
  const std::vector<EventNote>& events() const { return notes_; }
  // Returns the published status of a window; nullptr without one.
  std::shared_ptr<const WindowStatus> StatusOfWindow(const std::string& name) const;
  const std::map<std::string, VolumeClaimFact>& volume_claims() const { return volume_claims_; }
  const std::map<std::string, DefragmentationFact>& defragmentations() const {
    return defragmentations_;
  }
  const std::map<std::string, BlockFact>& blocks() const { return blocks_; }
  // Returns the published status of a block; nullptr before the purchase.
  std::shared_ptr<const BlockView> BlockStatus(const std::string& name) const;

  // Mistakes that would harm a real cluster: double allocation, a partial gang at rest, …
  std::vector<std::string> faults;
  // Checks the rules of a system at rest: devices given once, gangs whole or absent, allocations
  // exactly for bound pods.
  void CheckAtRest();
  // Devices given once: holds at every moment.
  void CheckDevices();

 private:
  // Carry out a write, and set what its result says.
  void CarryOut(const ClaimWrite& write, ApiResult& result);
  void CarryOut(const PodWrite& write, ApiResult& result);
  void CarryOut(const PodDeletion& write, ApiResult& result);
  void CarryOut(const GangCreation& write, ApiResult& result);
  void CarryOut(const VolumeNodeWrite& write, ApiResult& result);
  void CarryOut(const PodClaimStatusWrite& write, ApiResult& result);
  void CarryOut(const ExtendedClaimCreation& write, ApiResult& result);
  void CarryOut(const ClaimTemplateCreation& write, ApiResult& result);
  void CarryOut(const WorkloadStatusWrite& write, ApiResult& result);
  void CarryOut(const BlockCreation& write, ApiResult& result);
  void CarryOut(const BlockFinalizerWrite& write, ApiResult& result);
  void CarryOut(const BlockStatusWrite& write, ApiResult& result);
  void CarryOut(const GangStatusWrite& write, ApiResult& result);
  void CarryOut(const PodConditionWrite& write, ApiResult& result);
  void CarryOut(const EventNote& event, ApiResult& result);
  // Of others it knows no objects.
  void CarryOut(const RequestStatusWrite&, ApiResult&) {}
  void CarryOut(const QueueCalendarStatusWrite&, ApiResult&) {}
  void CarryOut(const QueueStatusWrite&, ApiResult&) {}
  void CarryOut(const WindowStatusWrite& write, ApiResult& result);
  void CarryOut(const DefragmentationStatusWrite& write, ApiResult& result);
  void CarryOut(const PodReclaimWrite& write, ApiResult& result);
  void Touch(BlockFact& block);
  void Touch(PodFact& pod);
  void Touch(ClaimFact& claim);
  void Touch(VolumeClaimFact& claim);
  void RemovePod(const std::string& name);
  void PutTemplate(const ClaimTemplateFact& made);
  void MakeClaimsOfTemplates();

  std::uint64_t version_ = 100;
  std::uint64_t uids_ = 0;
  std::map<std::string, PodFact> pods_;
  std::map<std::string, ClaimFact> claims_;
  std::map<std::string, GangFact> gangs_;
  std::map<std::string, std::shared_ptr<const BudgetFact>> budgets_;
  std::map<std::string, std::shared_ptr<const QueueCalendarSpec>> queue_calendars_;
  std::map<std::string, std::shared_ptr<const QueueSpec>> queues_;
  std::map<std::string, std::shared_ptr<const WindowSpec>> windows_;
  std::map<std::string, std::shared_ptr<const WindowStatus>> window_status_;
  std::map<std::string, DefragmentationFact> defragmentations_;
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, WorkloadFact> workloads_;
  std::map<std::string, ClaimTemplateFact> templates_;
  std::map<std::string, WorkloadStatus> workload_statuses_;
  std::map<std::string, GangStatus> statuses_;
  std::map<std::string, std::string> conditions_;
  std::vector<EventNote> notes_;
  std::map<std::string, BlockFact> blocks_;
  std::map<std::string, std::shared_ptr<const BlockView>> block_status_;
  std::map<std::string, VolumeClaimFact> volume_claims_;
  std::map<std::string, VolumeFact> volumes_;
  bool has_class_ = false;
  std::map<std::string, ClassFact> extended_classes_;
  std::vector<Command> events_;
};

// The simplest planner: every claim asks for `count` chips of its first request; members go to the
// first node with room, in order.
std::vector<Decision> FirstFit(const ClusterState& view, const Queue& queue, WallTime now,
                               Explaining explaining);

}  // namespace tahoma::controller
