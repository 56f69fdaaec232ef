// The grid of time on which Capacity Blocks are sold: slots of a day that begin at 11:30 UTC.
//
//   const Slot today = SlotOf(now);                // the slot that `now` lies in
//   StartOf(today + 1);                            // the next 11:30 UTC
//   IsLegalDuration(168);                          // true: a week
//
// Every block ends at a slot's boundary, and begins at a boundary unless it begins at once. The
// free capacity therefore changes at boundaries only: one number for each slot describes it.
//
// EC2's rules: docs/reference/capacity-blocks.md#time.
//
// Scope: arithmetic in UTC, which has no daylight saving.
//
// Thread safety: pure functions.

#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/clock.h"

namespace tahoma::controller {

// The number of a slot: 0 is the day that began on 1970-01-01 at 11:30 UTC.
using Slot = std::int64_t;

// Slots from `first` on and before `last`.
struct SlotRange {
  Slot first = 0;
  Slot last = 0;

  std::int64_t size() const { return last - first; }
  bool empty() const { return last <= first; }
  bool Overlaps(const SlotRange& other) const { return first < other.last && other.first < last; }
  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

inline constexpr std::chrono::hours kSlotLength{24};
// The latest start, counted from the time of the purchase.
inline constexpr std::chrono::hours kHorizon{24 * 56};
// The earliest start, counted from the time of the search.
inline constexpr std::chrono::minutes kEarliestStart{30};
// A block that begins at once is sold only when this much is left before it is reclaimed.
inline constexpr std::chrono::minutes kLeastUse{30};
// The longest block, with all of its extensions.
inline constexpr int kDaysMost = 182;
// The slots that a block may lie in, counted from today's: 56 days ahead, 182 long, and the rest of
// today.
inline constexpr int kSlotsAhead = 56 + kDaysMost + 1;

Slot SlotOf(WallTime time);
WallTime StartOf(Slot slot);
bool IsBoundary(WallTime time);
// Returns the slots that a block from `start` to `end` touches. `end` must be a boundary.
SlotRange SlotsOf(WallTime start, WallTime end);

// The 38 durations that are sold: 1 to 14 days, then whole weeks up to 26, in ascending order.
std::span<const int> LegalDays();
bool IsLegalDuration(std::int64_t hours);
// Returns "24 to 336 in steps of 24, or 504 to 4368 in steps of 168", for messages.
std::string LegalHoursText();

}  // namespace tahoma::controller
