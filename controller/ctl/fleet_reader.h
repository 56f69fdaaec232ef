// Reads from the Kubernetes API what `kubectl tahoma` shows, in any cluster.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Fleet fleet, ReadFleet(transport));
//   fmt::print("{}", DrawTopology(fleet.cluster, fleet.notes));
//
// Scope: reading. Reasons come from the conditions that the controller wrote.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "controller/ctl/fleet_builder.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/requests.h"
#include "lib/kube/resource.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// Gives every object of a kind that the options select to `each`, once, in pages. The error names
// the path.
absl::Status ReadAll(kube::Transport& transport, const kube::Resource& resource,
                     const std::function<void(const Json& object)>& each,
                     kube::ListOptions options = {});

absl::StatusOr<Fleet> ReadFleet(kube::Transport& transport);

// The object that was asked for, and the Gang that a pod belongs to; null where there is none.
struct Why {
  std::shared_ptr<const Json> pod = {};
  std::shared_ptr<const Json> gang = {};
};

// Reads the Gang, or else the pod, of that name. kNotFound when there is neither.
absl::StatusOr<Why> ReadWhy(kube::Transport& transport, const std::string& ns,
                            const std::string& name);

// Says why it waits, or where it is.
std::string WhyText(const Why& why);

// {"pod": {namespace, name, phase, node, conditions}, "gang": {namespace, name, phase, reason,
// queue, placement, predictedAllReduce, conditions}}, without the part that is not there.
Json WhyJson(const Why& why);

}  // namespace tahoma::controller
