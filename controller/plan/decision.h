// The planner's decision about one gang: a placement of all its members, or why the gang waits.
//
//   for (const Decision& decision : planner.Plan(view, queue, now)) {
//     if (decision.placement) Commit(*decision.placement);
//     else Report(decision.gang, decision.blocked->reason, decision.blocked->message);
//   }
//
// Scope: values. core/commit turns placements into records, publish turns them into API writes.
//
// Thread safety: values.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/model/claim.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/model/ids.h"
#include "controller/plan/room_kinds.h"
#include "lib/torus/box.h"

namespace tahoma::controller {

// Returns the latest end of a gang that starts now: the end of time when the sum cannot be
// represented. `now` is not before 1970.
WallTime EndOf(WallTime now, std::chrono::seconds runtime);

// The time that is counted as a gang's maxRuntime begins this long after the gang is placed, at the
// most (GangRun::kCommitTimeout).
inline constexpr std::chrono::seconds kBindingMost{60};

// Returns whether Capacity Blocks let the gang be placed on the domain at `now`: on hardware of its
// own block, on hardware that is not kept for others before its end, or as a preemptible gang on
// lent hardware.
bool BlocksAdmit(const DomainState& domain, const GangSpec& gang, WallTime now);
// Returns the longest maxRuntime with which the gang may use hardware that is kept for a block;
// nullopt where none is kept.
std::optional<std::chrono::seconds> LongestRuntime(const BlockUse& use, const GangSpec& gang,
                                                   WallTime now);
// Returns the domains of the gang's block; nullopt when the gang runs in no block.
std::optional<std::vector<DomainId>> DomainsOfBlock(const ClusterState& state,
                                                    const GangSpec& gang);

struct ClaimPlacement {
  ClaimKey claim;
  std::string uid;
  Allocation allocation;
};

struct MemberPlacement {
  PodKey pod;
  std::string uid;
  std::string node;
  int rank = 0;
  int slice = 0;
  std::shared_ptr<const kube::PodNeeds> needs;  // what the pod takes of its node
  std::vector<ClaimPlacement> claims;  // allocated by this decision; each claim once a gang
};

// Returns the pod's place on the node, without rank, slice and claims.
MemberPlacement PlacementOn(const MemberSpec& pod, const Node& node);

// A slice on the torus. A gang without a shape has no slices.
struct SlicePlacement {
  std::string domain;
  torus::Box box;
  std::vector<std::string> nodes;  // in torus order, ascending z from the box's origin

  // Returns "us-0123456789abcdef 4x4x2+0,0,2", the tahoma.dev/placement annotation.
  std::string ToString() const;
};

struct Placement {
  std::vector<MemberPlacement> members;  // in the order of their ranks
  std::vector<SlicePlacement> slices;

  // Returns all slices joined by "; ", or for a gang without boxes the nodes joined by ", ".
  std::string ToString() const;
  // Returns the holdings, one per claim, that the ledger gives to ClusterState::Hold.
  std::vector<std::shared_ptr<const Holding>> Holdings(const GangSpec& gang, WallTime now) const;
};

// Aborts when a core of `holding` is held in `state` already: each core is in at most one claim,
// and a plan gives out only free cores.
void CheckNobodyHolds(const ClusterState& state, const Holding& holding);

enum class BlockedReason : std::uint8_t {
  kWaitsForCapacity,  // would fit if all held devices were free
  kWaitsForRepair,    // would fit if nodes that are not ready, or chips and links that do not work,
                      // came back and all were free
  kNeverFits,         // not with the nodes that exist now, even if all of them were free
  kNotFound,          // not found within the bound of steps (exact_search.h): nothing is proven
  kInvalid,           // the request contradicts itself or is not supported: has to be changed
};

// Returns the CamelCase text of conditions and events: "WaitsForCapacity", "WaitsForRepair", …
std::string_view ToString(BlockedReason reason);

struct Blocked {
  BlockedReason reason = BlockedReason::kWaitsForCapacity;
  std::string message;  // a sentence with numbers and names, for people
  int domains_tried = 0;
  int domains_eligible = 0;                  // domains with hardware and selectors that match
  std::optional<torus::Shape> largest_free;  // the largest free box in an eligible domain
  std::string largest_free_domain;
  std::vector<std::string> blockers;  // "gang default/a (32 chips)", most chips first
  // The kinds of room that may help: a domain without any of them need not be tried again.
  RoomKinds rooms = kAnyRoom;
  // Explaining::kNone: nothing above is known.
  bool explained = true;
  // Some node had too little cpu, memory or ports for a pod, or a pod needs no devices. The end of
  // any pod, and the change of any node, may help.
  bool lacks_room = false;
};

// For which gangs without a place Plan says why. An explanation looks at every node.
enum class Explaining : std::uint8_t { kEach, kNone };

struct Decision {
  std::shared_ptr<const GangSpec> gang;
  std::optional<Placement> placement;
  std::optional<Blocked> blocked;  // exactly one of the two is set
  // What was placed in the place of `gang`, if not that: the gang of gang->drawn whose magnetic
  // Capacity Block has the placement, or its first pods (core/queue/scheduling_queue.h).
  std::shared_ptr<const GangSpec> drawn = {};
};

}  // namespace tahoma::controller
