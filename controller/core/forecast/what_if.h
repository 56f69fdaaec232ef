// Answers where a gang would go, and when at the earliest, without giving it anything.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto gang, GangOfRequest({.members = 2, .shape = "4x4x2"}, key));
//   WhatIf what_if;
//   const Forecast forecast = what_if.Ask(snapshot, gang, now);
//   if (forecast.now) Show(*forecast.now);               // it would be placed there now
//   else Explain(*forecast.blocked, forecast.earliest);  // why not, and when
//
// Now is the planner's own answer for a gang behind all promises. Later is the same planner on the
// fleet as it will be: gangs with a maxRuntime have ended by then, blocks have given back their
// hardware at their end, promised hardware is its holder's, and of each pool as many hosts are kept
// as its profile of time has booked while the gang would run. Gangs without a maxRuntime are taken
// to run for ever, and those that wait without a promise are not seen: they may come first.
//
// Scope: pure but for what the planner remembers, which changes no answer. A question looks at the
// holdings once and at Timeline::kLooksMost moments.
//
// Thread safety: one thread at a time.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/facts/asked_gang.h"
#include "controller/core/journal/gang_decision.h"
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
  std::optional<ForeseenPlace> now;
  std::optional<Blocked> blocked;  // exactly one of the two is set
  std::optional<Earliest> earliest;
};

class WhatIf {
 public:
  Forecast Ask(const Snapshot& snapshot, const std::shared_ptr<const GangSpec>& gang, WallTime now);

 private:
  class Future;

  std::optional<ForeseenPlace> PlaceIn(const ClusterState& state,
                                       const std::shared_ptr<const GangSpec>& gang, WallTime when,
                                       std::optional<Blocked>* blocked);
  std::optional<Earliest> FindEarliest(const Future& future,
                                       const std::shared_ptr<const GangSpec>& gang);
  Forecast AskInBlock(const Snapshot& snapshot, const GangSpec& gang, WallTime now);

  Planner planner_;
};

}  // namespace tahoma::controller
