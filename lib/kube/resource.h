// The kinds of the Kubernetes API by their place in its paths, and those that our programs use.
//
//   kPods.CollectionPath("training");                     // "/api/v1/namespaces/training/pods"
//   kPods.ObjectPath({"training", "worker-0"}, "status");
//
// Thread safety: values and constants.

#pragma once

#include <string>
#include <string_view>

#include "lib/kube/object.h"

namespace tahoma::kube {

struct Resource {
  std::string group;  // empty for core
  std::string version;
  std::string plural;
  bool namespaced = true;

  // Returns "/api/v1/namespaces/NS/pods"; the path of all namespaces when `ns` is empty.
  std::string CollectionPath(std::string_view ns) const;
  std::string ObjectPath(const ObjectKey& key, std::string_view subresource = "") const;
};

inline const Resource kPods{.group = "", .version = "v1", .plural = "pods"};
inline const Resource kNodes{.group = "", .version = "v1", .plural = "nodes", .namespaced = false};
inline const Resource kEvents{.group = "", .version = "v1", .plural = "events"};
inline const Resource kConfigMaps{.group = "", .version = "v1", .plural = "configmaps"};
inline const Resource kSecrets{.group = "", .version = "v1", .plural = "secrets"};
inline const Resource kVolumes{
    .group = "", .version = "v1", .plural = "persistentvolumes", .namespaced = false};
inline const Resource kVolumeClaims{
    .group = "", .version = "v1", .plural = "persistentvolumeclaims"};
inline const Resource kStorageClasses{
    .group = "storage.k8s.io", .version = "v1", .plural = "storageclasses", .namespaced = false};
inline const Resource kLeases{.group = "coordination.k8s.io", .version = "v1", .plural = "leases"};
inline const Resource kResourceClaims{
    .group = "resource.k8s.io", .version = "v1", .plural = "resourceclaims"};
inline const Resource kResourceSlices{
    .group = "resource.k8s.io", .version = "v1", .plural = "resourceslices", .namespaced = false};
inline const Resource kDeviceClasses{
    .group = "resource.k8s.io", .version = "v1", .plural = "deviceclasses", .namespaced = false};

}  // namespace tahoma::kube
