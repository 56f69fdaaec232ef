// Reads and changes objects of the Kubernetes API for the admin API's callers.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto gang, Send(api, kube::GetRequest(kGangs, key)));
//   const EndedPods ended = Evict(api, pods);
//
// Everything that the admin API changes besides Capacity Blocks is a Kubernetes object: kubectl
// shows the change, and the next leader reads it. Send uses the controller's own rights; the route
// has checked the caller's.
//
// Scope: requests, and the meaning of their answers for a caller of the admin API.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "controller/model/ids.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// Returns the answered object. An error of the API server is the caller's error only where the
// caller can act on it; otherwise kUnavailable.
absl::StatusOr<std::shared_ptr<const Json>> Send(kube::Transport& api,
                                                 const kube::Request& request);

// A known pod; a new pod of its name is another pod. Without a uid: any pod of the name.
struct KnownPod {
  PodKey key;
  std::string uid = {};
};

struct EndedPods {
  std::size_t ended = 0;                  // deleted with their grace: they may take that long
  std::size_t gone = 0;                   // had ended already
  std::vector<std::string> refused = {};  // by name and reason: a disruption budget, or no answer
};

// Evicts pods: PodDisruptionBudgets hold.
EndedPods Evict(kube::Transport& api, const std::vector<KnownPod>& pods);
// Deletes pods without regard to budgets.
EndedPods Delete(kube::Transport& api, const std::vector<KnownPod>& pods);

}  // namespace tahoma::controller
