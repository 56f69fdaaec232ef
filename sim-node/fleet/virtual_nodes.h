// The objects of virtual nodes in an API server: a Node, its Lease and its ResourceSlices, as a
// kubelet and a dra-plugin would keep them.
//
// What is there already is taken over: only what differs is written, and nothing twice. A node
// without the label of virtual ones is somebody else's and left alone. Lease and
// slices belong to the Node, so that Kubernetes' garbage collection takes them with it:
// `kubectl delete nodes -l tahoma.dev/fleet=NAME` removes a fleet.
//
// Labels, capacity and conditions are those of a node with a pod runner (podrunner/node_object.h),
// the devices those of its dra-plugin. What tells a virtual node: the labels tahoma.dev/fleet with
// the fleet's name and tahoma.dev/virtual-node, and a taint of that key.
//
// A chip is broken by its Node's annotation tahoma.dev/broken-chips, "3=hbm-uncorrectable", and
// repaired by its removal: who ensures the node next gives the chip's devices their taint, or takes
// it.
//
// Scope: one node at a time. When which one: fleet_schedule.h.
//
// Thread safety: every member may be called from any thread, for one node by one at a time.

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

// Returns the merge patch that makes labels and taint of `there` those of the node, with the
// version that it is for; null when they are. Others' labels and taints stay.
Json VirtualNodeRepair(const FleetPlan& plan, const VirtualNode& node, const Json& there);

// Returns the strategic merge patch of the status that makes `there` Ready, with the node's
// resources; null when it is.
Json VirtualNodeStatusRepair(const VirtualNode& node, const Json& there, WallTime now);

class VirtualNodes {
 public:
  // `transport` and `clock` must outlive this object.
  VirtualNodes(FleetPlan plan, kube::Transport& transport, const Clock& clock);

  // kNothing: this process has not seen the node yet; then it is made without looking first.
  enum class Known : std::uint8_t { kNothing, kMade };
  // Makes Node, Lease and slices what they are to be; returns how many slices the node has. The
  // server's refusal, with its message; kAborted when somebody else wrote at the same moment.
  absl::StatusOr<std::size_t> Ensure(std::uint32_t index, Known known);

  // kNodeToo: the lease was not renewed for so long that the node may have been taken for lost,
  // which only its status takes back.
  enum class Look : std::uint8_t { kLeaseOnly, kNodeToo };
  // A lease that is not there was deleted, perhaps with its node: everything is ensured then.
  absl::Status RenewLease(std::uint32_t index, Look look);

  // Returns the name of the first node beyond the fleet when the server has it, as a larger fleet
  // of that name left it; else empty. What does not answer counts as not there.
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
  // What the server keeps; found with the first node that is published.
  std::optional<dra::ServerSupport> server_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::sim
