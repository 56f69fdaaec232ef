// Which running gangs end so that another gang gets a place: the fewest gangs, then the least work,
// then the lowest priorities and the gangs that began last.
//
//   const std::vector<RunningGang> lower = {{.claims = {"uid-a"}, .pods = {}, .work = 9000}};
//   const auto victims = ChooseVictims(view, *gang, lower, now, [&](const ClusterState& without) {
//     return planner.Plan(without, {gang}, now, Explaining::kNone)[0].placement;
//   });
//   if (victims) End(victims->gangs);
//
// The choice is the best of all for a gang of one box or one pod that needs chips only, and for
// other gangs of equal parts as long as there are few choices (RoomByEnding::kStepsMost). In other
// cases more gangs may end than necessary, for each part at most as many as the best choice ends
// for all parts; but no victim could stay, of the first kSparedMost where parts are not alike.
//
// Scope: the choice among the gangs that the caller names. Who may be ended: preemption.h.
//
// Thread safety: a pure function.

#pragma once

#include <absl/functional/function_ref.h>

#include <cstddef>
#include <optional>
#include <span>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "controller/plan/room_by_ending.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct Victims {
  Ended gangs;          // none: there is a place already
  Placement placement;  // in the fleet without them
  bool fewest = false;  // proven: no choice ends fewer
};

// Returns the gang's place in a fleet.
using PlaceFunction = absl::FunctionRef<std::optional<Placement>(const ClusterState&)>;

// How often `place` is called at most, beside once for each victim that could stay.
inline constexpr std::size_t kPlacesMost = 32;
// How many victims of a choice are tried one by one to stay.
inline constexpr std::size_t kSparedMost = 64;

// Returns nullopt when the gang has no place even without all of `among`.
std::optional<Victims> ChooseVictims(const ClusterState& view, const GangSpec& gang,
                                     std::span<const RunningGang> among, WallTime now,
                                     PlaceFunction place);

}  // namespace tahoma::controller
