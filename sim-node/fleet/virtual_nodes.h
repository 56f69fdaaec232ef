// The objects of virtual nodes in an API server: a Node, its Lease and its ResourceSlices, as a
// kubelet and a dra-plugin would keep them.
//
// Existing objects are taken over: only differences are written. A Node without the label of
// virtual nodes belongs to somebody else and is left alone. Lease and slices are owned by the Node,
// so Kubernetes' garbage collection removes them: `kubectl delete nodes -l tahoma.dev/fleet=NAME`
// removes a fleet.
//
// A virtual node has the labels, capacity and conditions of a node with a pod runner
// (podrunner/node_object.h), and the devices of a dra-plugin. Three marks show a virtual node: the
// label tahoma.dev/fleet with the fleet's name, the label tahoma.dev/virtual-node, and a taint of
// that key.
//
// The annotation tahoma.dev/broken-chips of a Node, such as "3=hbm-uncorrectable", breaks chips.
// Removing the annotation repairs the chips. The next Ensure of the node adds the taint to the
// chips' devices, or removes the taint.
//
// Scope: one node at a time. fleet_schedule.h chooses the node and the time.
//
// Thread safety: any thread; calls for the same node one at a time.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dra-plugin/slices/completeness.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"
#include "lib/kube/client.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"
#include "sim-node/fleet/fleet_plan.h"

namespace tahoma::sim {

inline constexpr std::string_view kFleetLabel = "tahoma.dev/fleet";
inline constexpr std::string_view kVirtualNodeKey = "tahoma.dev/virtual-node";  // label and taint

inline constexpr std::string_view kBrokenChips = "tahoma.dev/broken-chips";  // annotation

// The Node to create.
Json VirtualNodeObject(const FleetPlan& plan, const VirtualNode& node, WallTime now);

// Returns the merge patch that gives `there` the node's labels and taint, with the version of
// `there`; null when nothing differs. Labels and taints of other writers stay.
Json VirtualNodeRepair(const FleetPlan& plan, const VirtualNode& node, const Json& there);

// Returns the strategic merge patch of the status that makes `there` Ready, with the node's
// resources; null when nothing differs.
Json VirtualNodeStatusRepair(const VirtualNode& node, const Json& there, WallTime now);

class VirtualNodes {
 public:
  // `transport` and `clock` must outlive this object.
  VirtualNodes(FleetPlan plan, kube::Transport& transport, const Clock& clock);

  // kNothing: this process has not seen the node, so the node is created without a look first.
  enum class Known : std::uint8_t { kNothing, kMade };
  // Makes Node, Lease and slices as wanted; returns the number of slices. Fails with the server's
  // refusal and message; kAborted when somebody else wrote at the same moment.
  absl::StatusOr<std::size_t> Ensure(std::uint32_t index, Known known);

  // kNodeToo: the lease is so old that Kubernetes may have taken the node for lost; only a new
  // status takes the verdict back.
  enum class Look : std::uint8_t { kLeaseOnly, kNodeToo };
  // A missing lease was deleted, perhaps with its node, so everything is ensured.
  absl::Status RenewLease(std::uint32_t index, Look look);

  // Returns the name of the first node beyond the fleet when the server has the node: a larger
  // fleet of the same name was here. Empty otherwise, and when the server does not answer.
  std::string FirstBeyond();

  const FleetPlan& plan() const { return plan_; }

 private:
  struct NodeState {
    std::string uid = {};
    bool is_new = false;
    std::string broken_chips = {};  // as the annotation says
  };
  absl::StatusOr<NodeState> EnsureNode(const VirtualNode& node, Known known);
  absl::StatusOr<NodeState> CreateNode(const VirtualNode& node);
  absl::Status Repair(const VirtualNode& node, const Json& there);
  absl::Status EnsureLease(const VirtualNode& node, const NodeState& state);
  absl::Status Renew(const std::string& name);
  absl::StatusOr<std::size_t> EnsureSlices(const VirtualNode& node, const NodeState& state);

  const FleetPlan plan_;
  kube::Transport& transport_;
  const Clock& clock_;
  kube::InterruptibleSleeper no_sleep_;  // nothing is repeated here: the schedule says when
  kube::Client api_;
  Mutex mutex_;
  // The server's support, found with the first published node.
  std::optional<dra::ServerSupport> server_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::sim
