#include "controller/run/ahead_log.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "controller/admin/clock_route.h"

namespace tahoma::controller {
namespace {

// Machines correct their clocks by less all the time.
constexpr std::chrono::minutes kWorthALine{1};

}  // namespace

void AheadLog::Look(const Snapshot& snapshot, WallTime now) {
  const std::chrono::nanoseconds ahead = BlocksAhead(snapshot, now);
  // Between the two nothing is said again.
  const bool is_ahead = was_ahead_ ? ahead.count() > 0 : ahead > kWorthALine;
  if (is_ahead == std::exchange(was_ahead_, is_ahead)) return;
  if (!is_ahead) return log_("the clock has caught up with the Capacity Blocks");
  log_(fmt::format(
      "Capacity Blocks have lived until {} and the clock is {} s behind: it was set back, or was "
      "wrong before. Until then nothing of them is due, and what is sold begins later",
      FormatTime(snapshot.block_now),
      std::chrono::duration_cast<std::chrono::seconds>(ahead).count()));
}

}  // namespace tahoma::controller
