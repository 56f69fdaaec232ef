// The route that tells by which clock Capacity Blocks live.
//
//   AddClockRoute(server, clock, BlockTime(origin, 1440));   // GET /v1/clock
//
// Whoever reads blocks of a test needs to know how far away their times really are.
//
// Scope: one answer (docs/formats/admin-api.md).
//
// Thread safety: the route answers on any thread.

#pragma once

#include "controller/reserve/block_time.h"
#include "lib/base/clock.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

// Before the server starts; `clock`, the wall's, must outlive it.
void AddClockRoute(rest::Server& server, const Clock& clock, const BlockTime& time);

}  // namespace tahoma::controller
