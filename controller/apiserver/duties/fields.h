// Reading fields of API objects, and the resources that the duties know by name.
//
//   Text(pod, {"spec", "nodeName"});    // "" when there is none
//
// Thread safety: pure functions and constants.

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "controller/apiserver/object_store.h"
#include "controller/apiserver/validation_parts.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

inline const ResourceName kPodResource = {"", "pods"};
inline const ResourceName kNodeResource = {"", "nodes"};
inline const ResourceName kNamespaceResource = {"", "namespaces"};
inline const ResourceName kClaimResource = {"resource.k8s.io", "resourceclaims"};
inline const ResourceName kTemplateResource = {"resource.k8s.io", "resourceclaimtemplates"};
inline const ResourceName kSliceResource = {"resource.k8s.io", "resourceslices"};
inline const ResourceName kLeaseResource = {"coordination.k8s.io", "leases"};

inline const Json& Field(const Json& object, std::initializer_list<std::string_view> path) {
  return ValueAt(object, path);
}
inline std::string Text(const Json& object, std::initializer_list<std::string_view> path) {
  return TextAt(object, path);
}

// What an owner that is being deleted waits for: that its dependents forget it, or that they go.
inline constexpr std::string_view kOrphanFinalizer = "orphan";
inline constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

// A pool of devices, over all drivers.
inline std::string PoolKey(const std::string& driver, const std::string& pool) {
  return driver + "/" + pool;
}

// Whether a slice has a device that is tainted NoExecute.
bool HasEvictingDevice(const Json& slice);

// Succeeded or Failed: the pod will run no more.
bool IsFinished(const Json& pod);
bool IsBeingDeleted(const Json& object);
bool HasFinalizer(const Json& object, std::string_view finalizer);
// Whether it is being deleted in the foreground: it goes after its dependents.
bool WaitsForDependents(const Json& object);
void DropFinalizer(Json& object, std::string_view finalizer);

}  // namespace tahoma::controller
