// The terms on which a run may be ended for another gang: the lost work, and until when the run is
// kept.
//
// A run loses the work since the last checkpoint by an annotation of the Gang or of a pod; without
// a checkpoint, or where the gang is not checkpointable, the work since the last bind.
//
// Thread safety: pure functions.

#pragma once

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

EndTerms EndTermsOf(const GangRun& run, const Facts& facts, WallTime now);

// Returns how many devices the decision gives.
std::int64_t DevicesOf(const GangDecision& decision);

}  // namespace tahoma::controller
