// The terms on which a run may be ended for another gang: the lost work, and until when the run is
// kept.
//
//   const RunTerms terms = RunTermsOf(run, facts);        // hold at any time
//   if (!TermsAt(terms, now).kept_until) End(terms.run);  // the minRuntime is over
//
// A run loses the work since the last checkpoint by an annotation of the Gang or of a pod; without
// a checkpoint, or where the gang is not checkpointable, the work since the last bind.
//
// Thread safety: pure functions.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "controller/core/commit/gang_run.h"
#include "controller/core/facts/facts.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct EndTerms {
  WallTime begun;         // when the last pod was bound; before, the time of the decision
  WallTime since;         // the work since then is lost: the last checkpoint, or `begun`
  std::int64_t work = 0;  // lost at the end: chip-seconds
  std::optional<WallTime> kept_until;  // not ended for another gang before; later than now
  bool checkpointable = true;
  bool tells_checkpoints = false;  // by the annotation
};

// The part of the terms that time does not change.
struct RunTerms {
  RunId run = 0;
  bool ending = false;            // is on the way out
  bool bound = false;             // every pod was bound, at `begun`
  std::optional<WallTime> begun;  // as in EndTerms; nullopt: not known, taken to be now
  bool checkpointable = true;
  std::optional<WallTime> checkpoint;  // the last, by the annotation
  std::optional<std::chrono::seconds> min_runtime;
  std::int64_t devices = 0;

  friend bool operator==(const RunTerms&, const RunTerms&) = default;
};

RunTerms RunTermsOf(const GangRun& run, const Facts& facts);
EndTerms TermsAt(const RunTerms& run, WallTime now);
EndTerms EndTermsOf(const GangRun& run, const Facts& facts, WallTime now);

// Returns how many devices the decision gives.
std::int64_t DevicesOf(const GangDecision& decision);

}  // namespace tahoma::controller
