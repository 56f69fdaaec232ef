// The controller's own metrics, and a line of the log for each decision (docs/metrics.md).
//
// Scope: one place for the names. HTTP servers and the audit add theirs themselves.
//
// Thread safety: metrics may be added on any thread; a scrape reads the newest snapshot.

#pragma once

#include <functional>
#include <memory>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/core/snapshot.h"
#include "controller/run/core_loop.h"
#include "controller/store/store.h"
#include "lib/base/guarded_clock.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {

using ReadSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

// Those of gangs, fleet and Capacity Blocks. Clock and snapshots must outlive the scrapes.
void AddMetrics(rest::Metrics& metrics, const GuardedClock& clock, const ReadSnapshot& snapshot);

void AddStoreMetrics(rest::Metrics& metrics, const Store& store);

// Returns the gauge that is 1 while this controller leads, and 0 at first.
rest::Gauge& AddLeaderMetric(rest::Metrics& metrics);

// Lets the loop write a line for each decision and count the decisions. `metrics` must outlive the
// loop.
void TellDecisions(rest::Metrics& metrics, CoreLoopOptions& options);

// Returns the same for pods that the controllers of a standalone cluster evict.
std::function<void(const apiserver::Eviction& eviction)> TellEvictions(rest::Metrics& metrics);

}  // namespace tahoma::controller
