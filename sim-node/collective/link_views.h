// What the participants of an operation know of the links together, and what that means for it.
//
//   TAHOMA_ASSIGN_OR_RETURN(const LinkOutlook outlook, LinkOutlook::Of(healthy, views, now));
//   TAHOMA_RETURN_IF_ERROR(outlook.CheckAlive(chips));
//   PlanCollective(request, members, outlook.links());
//
// Every node speaks of the links that its own chips send on, and of its dead chips; the newest
// statement of each counts. All participants have the same statements, so all see the same.
//
// Scope: states of links in the clock of one communicator. A flapping link is down during the first
// part of each of its periods, counted from the communicator's beginning.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "lib/torus/box.h"
#include "sim-node/collective/schedule.h"
#include "sim-node/collective/timing.h"
#include "sim-node/engine/fault_plan.h"
#include "sim-node/engine/virtual_time.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

// NRT_EXEC_HW_ERR_COLLECTIVES (aws-neuron-sdk nrt/nrt_status.h): the code of a collective that a
// sick peer ended.
inline constexpr int kNrtExecHwErrCollectives = 1200;

// What a node says about the directed links that it owns. A later statement has a higher epoch.
struct NodeLinks {
  int node = 0;
  std::uint64_t epoch = 0;
  std::vector<LinkState> unhealthy{};
  torus::ChipMask dead = 0;  // its chips that are no more: nothing goes in or out
  friend bool operator==(const NodeLinks&, const NodeLinks&) = default;
};

// For every node the statement with the highest epoch, in order of node. The result does not
// depend on the order of `views`.
std::vector<NodeLinks> Newest(std::vector<NodeLinks> views);

class LinkOutlook {
 public:
  // `healthy` are all links without faults, `now` is the communicator's clock. kInvalidArgument for
  // a link that does not exist or a state out of its range.
  static absl::StatusOr<LinkOutlook> Of(const TorusLinks& healthy, std::vector<NodeLinks> views,
                                        VirtualTime now);

  // As they are now.
  const TorusLinks& links() const { return links_; }

  // kAborted, with the NRT code that a real job would see, when one of the chips is dead.
  absl::Status CheckAlive(torus::ChipMask chips) const;

  // Whether all links stay as they are.
  bool IsSteady() const { return flapping_.empty(); }

  // The changes of flapping links after now and before `until`, as times since now.
  FaultPlan ChangesWithin(VirtualDuration until) const;

  // When a schedule that starts now is over, with all that flaps on its way; times are since now.
  // Errors as TimeSchedules.
  absl::StatusOr<ScheduleTimes> TimesOf(const Schedule& schedule) const;

 private:
  LinkOutlook(TorusLinks links, VirtualTime now) : links_(std::move(links)), now_(now) {}
  absl::Status Apply(const LinkState& state);
  void Kill(torus::ChipIndex chip);

  TorusLinks links_;
  VirtualTime now_;
  torus::ChipMask dead_ = 0;
  std::vector<LinkState> flapping_;
};

}  // namespace tahoma::sim
