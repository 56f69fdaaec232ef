// The resources that the controllers know by name, and accessors for fields of objects of any kind.
//
// Thread safety: pure functions and constants.

#pragma once

#include <string>
#include <string_view>

#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {

using kube::HasFinalizer;
using kube::IsBeingDeleted;

inline const ResourceName kPodResource = {"", "pods"};
inline const ResourceName kNodeResource = {"", "nodes"};
inline const ResourceName kNamespaceResource = {"", "namespaces"};
inline const ResourceName kClaimResource = {"resource.k8s.io", "resourceclaims"};
inline const ResourceName kTemplateResource = {"resource.k8s.io", "resourceclaimtemplates"};
inline const ResourceName kSliceResource = {"resource.k8s.io", "resourceslices"};
inline const ResourceName kLeaseResource = {"coordination.k8s.io", "leases"};

inline const ResourceName kReplicaSetResource = {"apps", "replicasets"};
inline const ResourceName kDeploymentResource = {"apps", "deployments"};
inline const ResourceName kStatefulSetResource = {"apps", "statefulsets"};
inline const ResourceName kDaemonSetResource = {"apps", "daemonsets"};
inline const ResourceName kRevisionResource = {"apps", "controllerrevisions"};
inline const ResourceName kJobResource = {"batch", "jobs"};
inline const ResourceName kServiceResource = {"", "services"};
inline const ResourceName kEndpointsResource = {"", "endpoints"};
inline const ResourceName kBudgetResource = {"policy", "poddisruptionbudgets"};
inline const ResourceName kVolumeResource = {"", "persistentvolumes"};
inline const ResourceName kVolumeClaimResource = {"", "persistentvolumeclaims"};
inline const ResourceName kStorageClassResource = {"storage.k8s.io", "storageclasses"};

// Returns whether a function of workloads.h decides about objects of the resource.
bool IsWorkload(const ResourceName& resource);

// The finalizers of an owner that is being deleted. The owner waits until its dependents no longer
// refer to it (orphan), or until they are deleted (foregroundDeletion).
inline constexpr std::string_view kOrphanFinalizer = "orphan";
inline constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

// Splits the key of an object of the store, "namespace/name" or a name.
kube::ObjectKey NamesOf(std::string_view key);

// A pool of devices, over all drivers.
inline std::string PoolKey(const std::string& driver, const std::string& pool) {
  return driver + "/" + pool;
}

// Returns whether a ResourceSlice has a device that is tainted NoExecute.
bool HasEvictingDevice(const Json& slice);

// Returns whether the pod has ended: Succeeded or Failed.
bool IsFinished(const Json& pod);
// Returns whether the object is being deleted in the foreground: after its dependents.
bool WaitsForDependents(const Json& object);
void DropFinalizer(Json& object, std::string_view finalizer);

}  // namespace tahoma::controller::apiserver
