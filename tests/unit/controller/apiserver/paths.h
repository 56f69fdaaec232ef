// Paths of collections that tests of the API server write to, in the namespace default.

#pragma once

#include <string>

namespace tahoma::controller::apiserver {

inline const std::string kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
inline const std::string kGangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";
inline const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
inline const std::string kMaps = "/api/v1/namespaces/default/configmaps";
inline const std::string kPods = "/api/v1/namespaces/default/pods";

}  // namespace tahoma::controller::apiserver
