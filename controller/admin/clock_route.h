// The route that tells by which clock Capacity Blocks live.
//
//   routes.Add(ClockRoute(clock, BlockTime(origin, 1440)));   // GET /v1/clock
//
// Whoever reads blocks of a test needs to know how far away their times really are.
//
// Scope: one answer (docs/formats/admin-api.md).
//
// Thread safety: the route answers on any thread.

#pragma once

#include "controller/admin/route_table.h"
#include "controller/reserve/block_time.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// `clock`, the wall's, must outlive the route.
Route ClockRoute(const Clock& clock, const BlockTime& time);

}  // namespace tahoma::controller
