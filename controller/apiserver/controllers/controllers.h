// The controllers of a standalone cluster, in the place of kube-controller-manager.
//
//   Controllers controllers([&] { return server->Kinds(); }, server->objects(), api);
//   controllers.Step(clock.WallNow());   // the simulator: take in events, do what is due
//
// They make claims from templates, reserve claims for pods bound by hand and drop reservations of
// pods that are gone, collect garbage by owner references, empty deleted namespaces, mark silent
// nodes, delete pods of deleted nodes and pods on devices tainted NoExecute, tell pods that wait in
// vain, drop old Events, and give each namespace its account "default". They keep Jobs, Deployments
// and their like (workloads.h). The store's events drive them, whatever the size of the cluster.
// Writes go through `api` like all others: they are validated, and a conflict is tried again.
//
// Scope: decisions. Threads are in controller_threads.h.
//
// Thread safety: Observe from one thread at a time; DoSome from any thread.

#pragma once

#include <absl/status/status.h>

#include <array>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/apiserver/controllers/cluster_index.h"
#include "controller/apiserver/controllers/work_queue.h"
#include "controller/apiserver/controllers/workloads/workloads.h"
#include "controller/apiserver/schema/kind.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"
#include "lib/kube/requests.h"
#include "lib/kube/resource.h"
#include "lib/kube/transport.h"

namespace tahoma::controller::apiserver {

// The age of a node's lease above which the node is not known to be ready
// (kube-controller-manager's --node-monitor-grace-period in its usual setting).
inline constexpr std::chrono::seconds kNodeGracePeriod{40};
// The time from a node's removal to the removal of its pods (podgc's quarantine).
inline constexpr std::chrono::seconds kLostPodDelay{40};

// The time from the last write of an Event to its removal (kube-apiserver's --event-ttl in its
// usual setting).
inline constexpr std::chrono::hours kEventLife{1};

// A pod that is deleted although nobody has asked for that.
struct Eviction {
  std::string pod;  // "default/p"
  std::string node;
  const char* cause = "";  // one of kEvictionCauses
};
inline constexpr std::array<const char*, 2> kEvictionCauses{"DeviceTaint", "NodeGone"};

struct ControllerOptions {
  // Gives claims from templates the finalizer resource.kubernetes.io/delete-protection from the
  // start: the allocation then need not write it. kube-controller-manager does not. A core must
  // then not take the finalizer for a commit that was begun (journal_beside_api).
  bool protect_claims = true;
  // The schedulers whose pods this program places (spec.schedulerName). A pod of another scheduler
  // gets an Event that says so. Empty: no pod does.
  std::vector<std::string> scheduler_names = {};
  // The folder of the volumes that are made for claims, and who removes such a volume's folder.
  // Empty: no volume is made.
  std::string volume_folder = {};
  std::function<absl::Status(const std::string& folder)> remove_folder = nullptr;
  // Called for work that threw, which is our own mistake; the work is tried again.
  std::function<void(const std::string& line)> log = nullptr;
  // Called for each pod that was evicted, on any of the controllers' threads.
  std::function<void(const Eviction& eviction)> evicted = nullptr;
};

// The key of work about an object of any kind: "resource.k8s.io/resourceclaims|default/a".
std::string WorkKey(const ObjectId& id);

class Controllers {
 public:
  using KindSource = std::function<std::shared_ptr<const KindTable>()>;

  // All must outlive the controllers.
  Controllers(KindSource kinds, const ObjectStore& objects, kube::Transport& api,
              ControllerOptions options = {})
      : kinds_(std::move(kinds)), objects_(objects), api_(api), options_(std::move(options)) {}

  // Takes in all changes since the last call (at the first call, everything) and queues work.
  void Observe(WallTime now);

  // Does and finishes due work, at most `limit` pieces. Returns how many.
  int DoSome(WallTime now, int limit);

  // Calls Observe, and does due work until none is left, at most `limit` pieces. Returns how many.
  int Step(WallTime now, int limit = 100000);

  std::optional<WallTime> NextDue() const { return queue_.NextDue(); }
  std::size_t CountDue(WallTime now, std::size_t most) const { return queue_.CountDue(now, most); }

 private:
  void ObserveOnce(WallTime now);
  void ObserveAll(const Kind& kind, WallTime now);
  void ObserveEverything(const KindTable& kinds, WallTime now);
  void ObserveOne(const ResourceName& resource, const std::string& key, const Json* previous,
                  const Json* object, WallTime now);
  void QueueForPod(const std::string& key, const Json* previous, const Json* pod, WallTime now);
  void QueueForOwners(const ObjectId& id, const Json* previous, const Json* object, WallTime now);

  // A mistake about one object must not stop the work for others: an exception is logged, and its
  // work waits to be tried again.
  Outcome TryDo(const Work& work, WallTime now);
  std::vector<Outcome> TryMakeClaims(const std::vector<std::string>& pod_keys, WallTime now);
  void TryObserveOne(const ResourceName& resource, const std::string& key, const Json* previous,
                     const Json* object, WallTime now);
  void Tell(const std::string& about, const std::exception& error) const;

  Outcome Do(const Work& work, WallTime now);
  // Makes the claims of all the pods together. Returns an outcome for each pod.
  std::vector<Outcome> MakeClaims(const std::vector<std::string>& pod_keys, WallTime now);
  Outcome KeepReservations(const std::string& claim_key);
  Outcome Collect(const ObjectId& id);
  Outcome Release(const ObjectId& id);
  Outcome EmptyNamespace(const std::string& name, WallTime now);
  Outcome WatchNode(const std::string& name, WallTime now);
  Outcome TellOtherPod(const std::string& pod_key, WallTime now);
  Outcome RemoveLostPod(const std::string& pod_key, WallTime now);
  Outcome Expire(const ObjectId& id, WallTime now);
  Outcome SyncWorkload(const ObjectId& id, WallTime now);
  Outcome EvictFromTainted(const std::string& claim_key, WallTime now);

  void QueueForAccounts(const ResourceName& resource, const std::string& key, const Json* previous,
                        const Json* object, WallTime now);
  Outcome KeepAccount(const std::string& name_space);

  void QueueForWorkloads(const ObjectId& id, const Json* previous, const Json* object,
                         WallTime now);
  void QueueController(const ObjectId& id, const Json& object, WallTime now);
  void QueueForTracked(const ObjectId& id, const Json* previous, const Json* object, WallTime now);
  std::optional<ObjectId> ControllerId(const Json& object) const;
  void QueueForVolumes(const ObjectId& id, const Json* previous, const Json* object, WallTime now);
  void QueueUnboundClaims(WallTime now);
  ClaimSurroundings SurroundingsOf(const Json& claim) const;
  Decision DecideVolume(const ObjectId& id, const Json& object) const;
  Decision Decide(const ObjectId& id, const Json& object, WallTime now) const;
  // The dependents of a kind, and the objects without a controller that the selector may match.
  Bodies ChildrenOf(const Json& owner, const ResourceName& resource) const;
  Bodies PodsOf(const Bodies& sets) const;
  Bodies SelectedPods(const Json& owner, const Json& selector) const;
  std::optional<std::int64_t> WantedPods(const Bodies& pods) const;
  Outcome Carry(const Json& object, const Decision& decision, WallTime now);
  kube::Request EventOf(const Json& object, const Note& note, WallTime now) const;
  // An Event of that name about a stored object.
  static kube::Request EventRequest(const Json& about, const Note& note, const std::string& name,
                                    const char* component, WallTime now);
  Outcome DropEndpoints(const std::string& key);
  Outcome ReleaseTracked(const ObjectId& id, const Json& pod);

  void QueueForTaints(const ResourceName& resource, const std::string& key, const Json* previous,
                      const Json* object, WallTime now);
  std::optional<WallTime> EvictionTime(const std::string& claim_key, const Json& claim,
                                       WallTime now);
  Json TaintsOf(const Json& result) const;
  Outcome Evict(const Json& pod, WallTime now);
  void TellEvicted(const Json& pod, const char* cause) const;
  void QueueTainted(WallTime now);

  // Returns whether the pod waits for a scheduler that this program is not.
  bool IsOfOtherScheduler(const Json& pod) const;
  // Tells the pod that the template of an entry of spec.resourceClaims does not exist, as
  // kube-controller-manager does.
  void WarnOfTemplate(const Json& pod, const Json& entry, WallTime now);
  // Writes an Event of the pod, unless the same Event is there.
  void Warn(const Json& pod, const char* reason, const std::string& message, WallTime now);
  struct PodClaims;
  void FindClaims(PodClaims& of) const;
  void CreateClaims(std::vector<PodClaims>& pods);
  void TellPods(std::vector<PodClaims>& pods);
  std::optional<std::string> ExistingClaim(const Json& pod, const std::string& name) const;
  bool HasItsClaim(const Json& pod, const std::string& name) const;
  Outcome ReserveFor(const Json& pod);
  Outcome WriteClaim(const std::string& key, Json claim, bool deallocate);
  // Returns the object that an owner reference names. nullopt when the kind is not served, or when
  // the owner has a namespace and the dependent none: such a reference is not valid.
  std::optional<ObjectId> OwnerId(const Json& reference, const std::string& dependent_key) const;
  enum class OwnerState : std::uint8_t { kGone, kSolid, kWaits };  // kWaits: for its dependents
  OwnerState StateOf(const Json& reference, const std::string& dependent_key) const;
  Outcome DropOwner(const ObjectId& dependent, const std::string& owner_uid);
  Outcome DeleteInForeground(const ObjectId& id, Json object,
                             const std::vector<ObjectId>& dependents);
  bool AnyHoldsUp(const std::vector<ObjectId>& dependents, const std::string& owner_uid);

  // Returns a resource without a version when the kind is not served: a request finds nothing
  // there.
  kube::Resource Served(const ResourceName& resource) const;
  // kDone for 2xx and 404; kRetry otherwise.
  static Outcome OutcomeOf(const absl::StatusOr<kube::Response>& answer);
  Outcome Send(const kube::Request& request) { return OutcomeOf(api_.Send(request)); }
  kube::Request Update(const ObjectId& id, Json object, const char* subresource = "") const;
  Outcome Delete(const ObjectId& id, const Json& object, const char* propagation,
                 std::optional<int> grace = {});

  const KindSource kinds_;
  const ObjectStore& objects_;
  kube::Transport& api_;
  const ControllerOptions options_;
  ClusterIndex index_;
  WorkQueue queue_;
  Mutex taints_mutex_;
  // For each claim, when each taint of its devices ("pool/device key=value") was first seen.
  std::map<std::string, std::map<std::string, WallTime>> tainted_since_
      ABSL_GUARDED_BY(taints_mutex_);
  std::map<ResourceName, std::int64_t> seen_;  // the version up to which events were taken in
  std::vector<ObjectId> releases_;             // found by Observe, not yet queued
};

}  // namespace tahoma::controller::apiserver
