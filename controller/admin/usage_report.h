// The use of Capacity Blocks, over REST and as metrics.
//
//   const rest::Response answer = ShowUsage(*loop.snapshot(), block, block_clock.WallNow());
//   // tahoma_capacity_block_chip_hours{owner="team-a",use="lent"}
//   AddUsageMetrics(metrics, [&] { return loop.snapshot(); }, clock);
//
// Scope: output. core/blocks/usage_meter.h counts.
//
// Thread safety: any thread.

#pragma once

#include <functional>
#include <memory>

#include "controller/admin/schema.h"
#include "controller/core/snapshot.h"
#include "lib/base/clock.h"
#include "lib/rest/message.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {

// Answers for a block of the snapshot, up to `now` in block time.
rest::Response ShowUsage(const Snapshot& snapshot, const Block& block, WallTime now);

// Describes that answer.
Schema UsageSchema();

// `clock`, the wall clock, must outlive the metrics.
void AddUsageMetrics(rest::Metrics& metrics, std::function<std::shared_ptr<const Snapshot>()> take,
                     const Clock& clock);

}  // namespace tahoma::controller
