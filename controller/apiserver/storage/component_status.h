// The componentstatuses of this server: what the parts of the controller say of themselves.
//
//   ComponentStatuses components;
//   components.Add("store", [&] { return store.writable() ? "" : "no commit succeeds"; });
//   components.Objects();              // kubectl get componentstatuses
//
// They are asked when somebody reads them and are stored nowhere, so that they also tell of a store
// that takes no writes. The form is that of core/v1 ComponentStatus: one condition, Healthy.
//
// Thread safety: every member may be called from any thread; a check is called from many at once.

#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "controller/apiserver/storage/object.h"

namespace tahoma::controller::apiserver {

class ComponentStatuses {
 public:
  // Empty: all is well; else why not. At once.
  using Check = std::function<std::string()>;

  void Add(std::string name, Check check);
  // As of now, by name. Without a version: they have no history.
  std::vector<ObjectPtr> Objects() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Check> checks_;
};

}  // namespace tahoma::controller::apiserver
