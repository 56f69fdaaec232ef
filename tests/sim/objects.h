// How those that judge the simulated API server name its objects and read them.
//
// Thread safety: pure functions.

#pragma once

#include "controller/apiserver/storage/object_store.h"
#include "lib/base/json.h"

namespace tahoma::simulation {

inline const controller::apiserver::ResourceName kClaims{"resource.k8s.io", "resourceclaims"};
inline const controller::apiserver::ResourceName kPods{"", "pods"};
inline const controller::apiserver::ResourceName kNodes{"", "nodes"};
inline const controller::apiserver::ResourceName kGangs{"tahoma.dev", "gangs"};
inline const controller::apiserver::ResourceName kBlocks{"tahoma.dev", "capacityblocks"};

// The value that the JSON pointer names; null when the object has none there.
inline const Json& At(const Json& object, const char* pointer) {
  static const Json kNone;
  const Json::json_pointer at(pointer);
  return object.contains(at) ? object.at(at) : kNone;
}

}  // namespace tahoma::simulation
