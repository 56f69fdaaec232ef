// Helpers for tests of collectives: links of the two tori, and sets of members.

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/hw/catalogue.h"
#include "lib/torus/box.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

inline constexpr Operation kExchanges[] = {Operation::kAllToAll, Operation::kSendReceive,
                                           Operation::kPermute};
inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

namespace testing {

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

// The time of the fastest plan, as a multiple of what nothing can beat; 0 when there is no plan.
inline double TimeOverBound(Operation operation, torus::ChipMask mask, std::uint64_t bytes,
                            const TorusLinks& links) {
  const std::vector<Member> members = MembersOf(mask);
  const auto plan = PlanCollective({.operation = operation, .bytes = bytes}, members, links);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const VirtualDuration bound = LowerBound(operation, SetOf(members, links), bytes, links);
  return plan.ok() ? MicrosecondsOf(*plan) * 1e3 / Nanoseconds(bound) : 0;
}

// Both directions of the cable that leaves the chip in plus direction.
inline void SlowCable(TorusLinks& links, int chip, torus::Axis axis, std::uint16_t permille) {
  const LinkId link = TorusLinks::IdOf(torus::ChipIndex(chip), axis, torus::Direction::kPlus);
  ASSERT_TRUE(links.SetCablePermille(link, permille).ok());
}

// Half of the cables, at random, work at one to three thousandths of their rate.
inline void SlowHalfOfTheCables(TorusLinks& links, std::uint64_t seed) {
  Rng rng(seed);
  for (int chip = 0; chip < links.torus().chip_count(); ++chip) {
    for (const torus::Axis axis : torus::kAxes) {
      const std::uint64_t permille = rng.Below(2) == 0 ? 1 + rng.Below(3) : 1000;
      if (links.Exists(TorusLinks::IdOf(torus::ChipIndex(chip), axis, torus::Direction::kPlus))) {
        SlowCable(links, chip, axis, static_cast<std::uint16_t>(permille));
      }
    }
  }
}

// Every cable of the chip.
inline void SlowCablesOf(TorusLinks& links, int chip, std::uint16_t permille) {
  for (const torus::Axis axis : torus::kAxes) {
    for (const auto direction : {torus::Direction::kPlus, torus::Direction::kMinus}) {
      const LinkId link = TorusLinks::IdOf(torus::ChipIndex(chip), axis, direction);
      if (links.Exists(link)) {
        ASSERT_TRUE(links.SetCablePermille(link, permille).ok());
      }
    }
  }
}

}  // namespace testing
}  // namespace tahoma::sim
