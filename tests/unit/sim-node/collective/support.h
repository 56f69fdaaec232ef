// Helpers for tests of collectives: links of the two tori, and sets of members.

#pragma once

#include <vector>

#include "lib/hw/catalogue.h"
#include "lib/torus/box.h"
#include "sim-node/collective/plan/plan.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim::testing {

// Timing of docs/reference/collectives.md#times-of-an-all-reduce: 1.5 us a step, nothing for
// further hops.
inline constexpr LinkTiming kTableTiming = {.step = Microseconds(1.5), .hop = Microseconds(0)};

inline TorusLinks UltraServer(const LinkTiming& timing = kTableTiming) {
  return {torus::kUltraServerShape, hw::kTrainium2.links, timing};
}
inline TorusLinks Instance(const LinkTiming& timing = kTableTiming) {
  return {torus::kInstanceShape, hw::kTrainium2.links, timing};
}

inline double MicrosecondsOf(const Plan& plan) {
  return Nanoseconds(plan.times.end - plan.times.start) / 1e3;
}

}  // namespace tahoma::sim::testing
