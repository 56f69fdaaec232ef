// Reads and changes objects of the Kubernetes API for the admin API's callers.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto gang, Send(api, kube::GetRequest(kGangs, key)));
//   const EndedPods ended = Evict(api, pods);
//
// Everything that the admin API changes besides Capacity Blocks is an object there: kubectl sees
// it, and whoever leads next knows it. It is done with the controller's own rights; the caller's
// were checked before.
//
// Scope: requests and what their answers mean to a caller of the admin API.
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

// Returns the object that is answered. An error of the API server's is a caller's error only where
// the caller can do something about it; otherwise it is kUnavailable.
absl::StatusOr<std::shared_ptr<const Json>> Send(kube::Transport& api,
                                                 const kube::Request& request);

// A pod as it was known; another of its name is another pod. Without a uid: whichever it is.
struct KnownPod {
  PodKey key;
  std::string uid = {};
};

struct EndedPods {
  std::size_t ended = 0;  // deleted with their grace; they may take that long to end
  std::size_t gone = 0;   // had ended already
  std::vector<std::string> refused = {};  // by name and reason: a disruption budget, or no answer
};

// Evicts pods: PodDisruptionBudgets hold.
EndedPods Evict(kube::Transport& api, const std::vector<KnownPod>& pods);
// Deletes pods, whatever budgets say.
EndedPods Delete(kube::Transport& api, const std::vector<KnownPod>& pods);

}  // namespace tahoma::controller
