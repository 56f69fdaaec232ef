// What the planner decides about one gang: a placement of all its members, or why it waits.
//
//   for (const Decision& decision : planner.Plan(view, queue, now)) {
//     if (decision.placement) Commit(*decision.placement);
//     else Report(decision.gang, decision.blocked->reason, decision.blocked->message);
//   }
//
// Scope: values. The ledger turns placements into records, publish turns them into API writes.
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
#include "lib/torus/box.h"

namespace tahoma::controller {

// When something that starts now ends at the latest; the end of time when that is farther away than
// can be said. `now` is not before 1970.
WallTime EndOf(WallTime now, std::chrono::seconds runtime);

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
  std::vector<ClaimPlacement> claims;  // claims allocated by this decision; each claim once a gang
};

// One slice on the torus. Slices of gangs without a shape have none of these.
struct SlicePlacement {
  std::string unit;
  torus::Box box;
  std::vector<std::string> nodes;  // in torus order, ascending z from the box's origin

  // "us-0123456789abcdef 4x4x2+0,0,2", the tahoma.dev/placement annotation.
  std::string ToString() const;
};

struct Placement {
  std::vector<MemberPlacement> members;  // in the order of their ranks
  std::vector<SlicePlacement> slices;

  // All slices, "; " between them; for gangs without boxes the nodes, ", " between them.
  std::string ToString() const;
  // What the ledger gives to ClusterState::Hold, one per claim.
  std::vector<std::shared_ptr<const Holding>> Holdings(const GangSpec& gang, WallTime now) const;
};

// A core is in at most one claim: what a plan gives out, nobody holds. Aborts otherwise.
void CheckNobodyHolds(const ClusterState& state, const Holding& holding);

enum class BlockedReason : std::uint8_t {
  kWaitsForCapacity,  // would fit if what others hold were free
  kWaitsForRepair,    // would fit if nodes that are not ready, or chips and links that do not work,
                      // came back and all were free
  kNeverFits,         // not with the nodes that exist now, even if all of them were free
  kInvalid,           // the request contradicts itself or is not supported: has to be changed
};

// CamelCase, for conditions and events: "WaitsForCapacity", "WaitsForRepair", …
std::string_view ToString(BlockedReason reason);

struct Blocked {
  BlockedReason reason = BlockedReason::kWaitsForCapacity;
  std::string message;  // a sentence with numbers and names, for people
  int units_tried = 0;
  int units_eligible = 0;                    // units with hardware and selectors that match
  std::optional<torus::Shape> largest_free;  // the largest free box in an eligible unit
  std::string largest_free_unit;
  std::vector<std::string> blockers;  // "gang default/a (32 chips)", most chips first
};

struct Decision {
  std::shared_ptr<const GangSpec> gang;
  std::optional<Placement> placement;
  std::optional<Blocked> blocked;  // exactly one of the two is set
};

}  // namespace tahoma::controller
