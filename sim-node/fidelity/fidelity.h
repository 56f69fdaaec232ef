// Times a collective at one of three levels of detail.
//
//   TimeAt(Fidelity::kClosedForm, request, members, links);   // a formula
//   TimeAt(Fidelity::kFlows, request, members, links);        // every message: the default
//   TimeAt(Fidelity::kFlits, request, members, links);        // every 64 bytes, up to 1 MiB
//
// The closed form (lib/collective) knows the sums, not the messages; it serves planning for a
// million chips. Flows are max-min fair within a step, with events between steps. Flits go through
// routers with credits and virtual channels (emulator/flit), so that packets wait for each other.
// On healthy boxes, where no two messages want one link, the levels agree: closed form and flows to
// two picoseconds a step (each rounds up), flits and flows to the time in which the flits of a step
// fill and leave the routers of their route. Where messages crowd, flits take longer: packets wait
// behind others that go elsewhere (an all-to-all of 1 MiB on an instance 1.4 times as long).
//
// Scope: the time of one collective that has the links to itself.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {

enum class Fidelity : std::uint8_t { kClosedForm, kFlows, kFlits };

// "closed-form", "flows", "flits".
std::string_view Name(Fidelity level);
// kInvalidArgument lists them.
absl::StatusOr<Fidelity> ParseFidelity(std::string_view name);

// The limit of the level of flits: more would take hours
// (docs/reference/collectives.md#network-models-to-compare-with).
inline constexpr std::uint64_t kFlitBytesMax = std::uint64_t{1} << 20;

// Times the collective as PlanCollective plans it; the closed form is the best algorithm's. Errors
// are those of PlanCollective and, kInvalidArgument, unequal ranks for the closed
// form, or more than kFlitBytesMax for flits, which also need links in full health
// (kFailedPrecondition).
absl::StatusOr<VirtualDuration> TimeAt(Fidelity level, const Request& request,
                                       const std::vector<Member>& members, const TorusLinks& links,
                                       const PlanOptions& options = {});

// The same of a plan that has been made for this request.
absl::StatusOr<VirtualDuration> TimeOf(Fidelity level, const Plan& plan, const Request& request,
                                       const std::vector<Member>& members, const TorusLinks& links,
                                       const PlanOptions& options = {});

// Times a schedule at the level of flits, step after step as TimeSchedules does.
absl::StatusOr<VirtualDuration> FlitTimeOf(const Schedule& schedule, const TorusLinks& links);

}  // namespace tahoma::sim
