// The state of all links as the participants of an operation know it together, and its effect on
// the operation.
//
// Every node speaks for its dead chips and for the links that its own chips send on; the newest
// statement of each node counts. All participants have the same statements and so the same view.
//
// Scope: states of links in the clock of a communicator. A flapping link is down during the first
// part of each of its periods, counted from the communicator's beginning.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/collective/schedule/timing.h"
#include "sim-node/emulator/engine/fault_plan.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

// NRT_EXEC_HW_ERR_COLLECTIVES (aws-neuron-sdk nrt/nrt_status.h): the code of a collective ended by
// a sick peer.
inline constexpr int kNrtExecHwErrCollectives = 1200;

// The statement of a node about its chips and its directed links, by their numbers in the fabric. A
// later statement has a higher epoch.
struct NodeLinks {
  int node = 0;
  std::uint64_t epoch = 0;
  std::vector<LinkState> unhealthy{};
  std::vector<torus::ChipIndex> dead{};      // chips without any traffic
  std::vector<torus::ChipIndex> efa_down{};  // chips with a broken NIC
  friend bool operator==(const NodeLinks&, const NodeLinks&) = default;
};

// Returns for every node the statement with the highest epoch, in order of node. The result does
// not depend on the order of `views`.
std::vector<NodeLinks> Newest(std::vector<NodeLinks> views);

class LinkOutlook {
 public:
  // `healthy` has all links without faults; `now` is the communicator's clock. kInvalidArgument for
  // an unknown link or chip, or a state out of its range.
  static absl::StatusOr<LinkOutlook> Of(const Fabric& healthy, std::vector<NodeLinks> views,
                                        VirtualTime now);

  // The fabric in its present state.
  const Fabric& fabric() const { return fabric_; }

  // kAborted, with the NRT code of a real job, when one of the chips is dead.
  absl::Status CheckAlive(const std::vector<Member>& members) const;

  // Whether no link will change its state.
  bool IsSteady() const { return flapping_.empty(); }

  // The changes of flapping links after now and before `until`, as times since now.
  FaultPlan ChangesWithin(VirtualDuration until) const;

  // Returns the times, since now, of a schedule that starts now, with its flapping links. Fails as
  // TimeSchedules; kResourceExhausted when links flap too often to compute the times.
  absl::StatusOr<ScheduleTimes> TimesOf(const Schedule& schedule) const;
  // As above, for schedules that start together and share the links.
  absl::StatusOr<std::vector<ScheduleTimes>> TimesOf(
      const std::vector<const Schedule*>& schedules) const;

 private:
  LinkOutlook(Fabric fabric, VirtualTime now) : fabric_(std::move(fabric)), now_(now) {}
  absl::Status Apply(const LinkState& state);
  // Whether the link leads from or to a dead chip.
  bool IsOfTheDead(LinkId link) const;

  Fabric fabric_;
  VirtualTime now_;
  std::set<torus::ChipIndex> dead_;
  std::vector<LinkState> flapping_;
};

}  // namespace tahoma::sim
