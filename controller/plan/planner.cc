#include "controller/plan/planner.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <utility>

#include "controller/plan/chip_choice.h"
#include "controller/plan/eligibility.h"
#include "controller/plan/fleet_index.h"
#include "controller/plan/request.h"
#include "controller/plan/search.h"
#include "controller/plan/why.h"
#include "lib/base/check.h"

namespace tahoma::controller {

namespace {

bool HasPodWithoutClaims(const GangSpec& gang) {
  return std::any_of(gang.members.begin(), gang.members.end(),
                     [](const MemberSpec& member) { return member.claims.empty(); });
}

}  // namespace

// State kept between calls. No answer depends on it.
struct Planner::Memory {
  Compiler compiler;
  Eligibility eligibility;
  ChipChoice choice;
  FleetIndex index;
};

Planner::Planner() : memory_(std::make_unique<Memory>()) {}
Planner::~Planner() = default;
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;

std::vector<Decision> Planner::Plan(const ClusterState& view, const Queue& queue, WallTime now,
                                    Explaining explaining) {
  ClusterState state = view;
  memory_->index.Sync(state);
  Search search(memory_->index, memory_->choice, memory_->eligibility, state);
  MemberFitter fitter(memory_->eligibility, memory_->choice);
  std::vector<Decision> decisions;
  // Nothing becomes free within a call: a request that did not fit once does not fit again.
  absl::flat_hash_map<std::string, Blocked> blocked;
  for (const auto& spec : queue) {
    Decision& decision = decisions.emplace_back();
    decision.gang = spec;
    const auto gang = memory_->compiler.Compile(spec);
    if (!gang->valid.ok()) {
      decision.blocked = ExplainInvalid(gang->valid);
      decision.blocked->rooms = 0;
      continue;
    }
    // A gang that holds devices already differs from others with the same request.
    const bool holds_some = search.HoldsSome(*gang);
    const bool alone = holds_some || !spec->drawn.empty();
    const auto known = alone ? blocked.end() : blocked.find(gang->signature);
    if (known != blocked.end()) {
      decision.blocked = known->second;
      continue;
    }
    search.DrainLacked();  // of an earlier gang
    for (const auto& drawn : spec->drawn) {
      decision.placement = search.Place(*memory_->compiler.Compile(drawn), now);
      if (decision.placement) decision.drawn = drawn;
      if (decision.placement) break;
    }
    for (const auto& preferred : spec->preferred) {
      if (!decision.placement)
        decision.placement = search.Place(*memory_->compiler.Compile(preferred), now);
    }
    if (!decision.placement) decision.placement = search.Place(*gang, now);
    if (decision.placement) {
      TAHOMA_CHECK(decision.placement->members.size() == spec->members.size());  // whole or absent
      continue;
    }
    const bool lacked = search.DrainLacked();
    decision.blocked.emplace();
    decision.blocked->explained = explaining == Explaining::kEach;
    if (decision.blocked->explained) {
      decision.blocked = Explain(*gang, search, fitter, state);
      decision.blocked->rooms = search.RoomsFor(*gang);
    }
    decision.blocked->lacks_room = lacked || HasPodWithoutClaims(*spec);
    if (!alone) blocked.emplace(gang->signature, *decision.blocked);
  }
  return decisions;
}

}  // namespace tahoma::controller
