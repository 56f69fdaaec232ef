// The route that tells by which clock Capacity Blocks live.
//
//   routes.Add(ClockRoute(clock, BlockTime(origin, 1440),      // GET /v1/clock
//                         [&] { return loop.snapshot(); }));
//
// Whoever reads blocks of a test needs to know how far away their times really are; and where the
// clock was set back, how long blocks stand still until it has caught up with them.
//
// Scope: one answer (docs/formats/admin-api.md).
//
// Thread safety: the route answers on any thread.

#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "controller/admin/route_table.h"
#include "controller/core/snapshot.h"
#include "controller/reserve/block_time.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Returns how far the blocks have lived ahead of the wall clock, because it was set back.
std::chrono::nanoseconds BlocksAhead(const Snapshot& snapshot, WallTime now);

// `clock`, the wall's, must outlive the route.
Route ClockRoute(const Clock& clock, const BlockTime& time,
                 std::function<std::shared_ptr<const Snapshot>()> snapshot);

}  // namespace tahoma::controller
