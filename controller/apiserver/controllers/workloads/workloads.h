// The decisions of the controllers of workloads: which writes an object needs next.
//
//   Decision next = SyncJob(*job, pods, clock.WallNow());
//   for (const Write& write : next.writes) Send(write);
//
// A function sees the object and its dependents as they are stored, and knows nothing else. The
// writes of one decision are independent: any of them may fail or come twice, and the next decision
// goes on from the result. A change of the object or of a dependent asks for the next decision;
// `again` asks for one at a later time.
//
// Scope: Job, ReplicaSet, Deployment, StatefulSet, DaemonSet, PodDisruptionBudget, and the
// Endpoints of a Service, volumes and their claims, as kube-controller-manager decides. Objects
// have passed the API server's validation and have its defaults.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::controller::apiserver {

inline const kube::Resource kJobs{.group = "batch", .version = "v1", .plural = "jobs"};
inline const kube::Resource kReplicaSets{.group = "apps", .version = "v1", .plural = "replicasets"};
inline const kube::Resource kDeployments{.group = "apps", .version = "v1", .plural = "deployments"};
inline const kube::Resource kStatefulSets{
    .group = "apps", .version = "v1", .plural = "statefulsets"};
inline const kube::Resource kDaemonSets{.group = "apps", .version = "v1", .plural = "daemonsets"};
inline const kube::Resource kRevisions{
    .group = "apps", .version = "v1", .plural = "controllerrevisions"};
inline const kube::Resource kServices{.group = "", .version = "v1", .plural = "services"};
inline const kube::Resource kEndpoints{.group = "", .version = "v1", .plural = "endpoints"};
inline const kube::Resource kBudgets{
    .group = "policy", .version = "v1", .plural = "poddisruptionbudgets"};

// The finalizer that keeps a pod of a Job until the Job's status has counted the pod's end.
inline constexpr char kJobTracking[] = "batch.kubernetes.io/job-tracking";

struct Write {
  enum class Verb : std::uint8_t { kCreate, kUpdate, kUpdateStatus, kDelete };
  Verb verb = Verb::kCreate;
  kube::Resource resource;
  std::shared_ptr<const Json> object;  // kDelete: as it was read
  std::string event = {};              // "Created pod: {}": an Event of the owner, if it succeeds
  const char* propagation = "Background";  // kDelete
};

// An Event about the object.
struct Note {
  const char* type = "Normal";
  std::string reason;
  std::string message;
  bool once = false;  // an equal Note about the object is the same Event, as for each Warning
};

struct Decision {
  std::vector<Write> writes = {};
  std::vector<Note> notes = {};  // written once all writes have succeeded
  std::optional<WallTime> again = {};
  // A folder to remove, with all that is in the folder, before the writes.
  std::string remove_folder = {};
};

using Bodies = std::vector<std::shared_ptr<const Json>>;

// In each function the pods (and `sets`, `revisions`) are those that have the object as their
// controller, and those of the namespace without a controller that the object's selector matches.
Decision SyncJob(const Json& job, const Bodies& pods, WallTime now);
Decision SyncReplicaSet(const Json& set, const Bodies& pods, WallTime now);
// `pods` are those of the ReplicaSets.
Decision SyncDeployment(const Json& deployment, const Bodies& sets, const Bodies& pods,
                        WallTime now);
// `claims` finds a PersistentVolumeClaim of the namespace by its name; null when there is none.
using ClaimLookup = std::function<std::shared_ptr<const Json>(const std::string& name)>;
Decision SyncStatefulSet(const Json& set, const Bodies& pods, const Bodies& revisions,
                         const ClaimLookup& claims, WallTime now);
// `nodes` are all nodes.
Decision SyncDaemonSet(const Json& set, const Bodies& pods, const Bodies& revisions,
                       const Bodies& nodes, WallTime now);
// `expected` is how many pods the controllers of the pods want in all; nullopt when unknown.
Decision SyncBudget(const Json& budget, const Bodies& pods, std::optional<std::int64_t> expected,
                    WallTime now);
// `endpoints` is the object of the Service's name; null when there is none.
Decision SyncEndpoints(const Json& service, const Json* endpoints, const Bodies& pods);

// The provisioner of StorageClasses whose volumes are folders of the host, made and removed here.
inline constexpr char kHostPathProvisioner[] = "tahoma.dev/host-path";

struct ClaimSurroundings {
  Bodies volumes = {};  // all; those that the claim cannot get may be missing
  std::shared_ptr<const Json> storage_class = {};  // the claim's; null without one
  bool in_use = false;                             // by a pod that has a node and has not ended
  std::string folder = {};  // of the folders that are volumes; empty: none is made
};
Decision SyncVolumeClaim(const Json& claim, const ClaimSurroundings& around);
// `claim` is the one that spec.claimRef names; null when there is none. `folder` as above.
Decision SyncVolume(const Json& volume, const Json* claim, const std::string& folder);

}  // namespace tahoma::controller::apiserver
