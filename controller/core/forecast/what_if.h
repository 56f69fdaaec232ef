// Answers where a gang would go, when at the earliest, who would end for it, and what change of the
// gang would help, without giving the gang anything.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto gang, GangOfRequest({.members = 2, .shape = "4x4x2"}, key));
//   WhatIf what_if;
//   const Forecast forecast = what_if.Ask(snapshot, gang, now);
//   if (forecast.now) Show(*forecast.now);               // it would be placed there now
//   else Explain(*forecast.blocked, forecast.earliest);  // why not, and when
//
// Now is the planner's own answer for a gang that comes now, with its queue and priority: behind
// the promises that would bind the gang, and within the limits of its queue. Later is the same
// planner on the fleet as it will be: gangs with a maxRuntime have ended by then, blocks have given
// back their hardware at their end, promised hardware is its holder's, and of each pool as many
// hosts are kept as its profile of time has booked while the gang would run. Gangs without a
// maxRuntime are taken to run for ever, and gangs that wait without a promise are not seen, but may
// come first.
//
// Scope: pure but for what the planner remembers, which changes no answer. A question looks at the
// holdings, gangs and queues once, at Timeline::kLooksMost moments, beyond Preemption::kRunsMost
// runs and at kTriesMost changes.
//
// Thread safety: one thread at a time.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/facts/asked_gang.h"
#include "controller/core/facts/gang_status.h"
#include "controller/core/forecast/asked_queues.h"
#include "controller/core/forecast/cheapest_change.h"
#include "controller/core/forecast/victim_forecast.h"
#include "controller/core/journal/gang_decision.h"
#include "controller/core/queue/move_plan.h"
#include "controller/core/snapshot.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "controller/plan/planner.h"
#include "controller/timeline/timeline.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// A place that a gang would get.
struct ForeseenPlace {
  GangDecision decision;
  std::string predicted_all_reduce;  // as in GangStatus; empty for a single chip
};

struct Earliest {
  WallTime when;
  bool exact = false;  // false: it may be earlier
  std::optional<ForeseenPlace> place;
};

struct Forecast {
  std::string queue = {};  // in which the gang would wait; empty: there are no queues
  std::optional<ForeseenPlace> now = {};
  std::optional<Blocked> blocked = {};  // exactly one of the two is set
  // The queue keeps the gang waiting: why, in place of blocked->reason.
  std::optional<GangReason> by_queue = {};
  std::optional<Earliest> earliest = {};
  std::optional<ForeseenVictims> victims = {};  // of a gang that waits for capacity
  std::optional<Change> change = {};            // of a gang that waits
  // Likewise, where moves were asked for: who would move, or why no set of moves makes a place.
  std::optional<absl::StatusOr<MovePlan>> moves = {};
};

// Whether a question looks for gangs that would have to move: about as much work as all the rest.
enum class AskFor : std::uint8_t { kMovesToo, kNoMoves };

class WhatIf {
 public:
  static constexpr std::size_t kMovesMost = 10;

  Forecast Ask(const Snapshot& snapshot, const std::shared_ptr<const GangSpec>& gang, WallTime now,
               AskFor what = AskFor::kNoMoves);

  // Returns the promises to others but for which a gang that waits would begin now: hardware of
  // theirs is in the gang's place.
  std::vector<std::shared_ptr<const Promise>> KeptBy(const Snapshot& snapshot, const GangView& gang,
                                                     WallTime now);

 private:
  class Future;
  class Question;

  std::optional<ForeseenPlace> PlaceIn(const ClusterState& state,
                                       const std::shared_ptr<const GangSpec>& gang, WallTime when,
                                       std::optional<Blocked>* blocked);
  Forecast AskInBlock(const Snapshot& snapshot, const GangSpec& gang, WallTime now);

  Planner planner_;
};

}  // namespace tahoma::controller
