// Splits the days of a search into segments: pieces of time with gaps between them.
//
//   const auto segments = SplitDays(
//       {.days = 14, .segments_most = 3, .first_start = today, .last_start = today + 56,
//        .end = today + 100},
//       [&](int days) { return starts_with_room_for(days); });
//   segments;                  // {{today + 2, 7}, {today + 12, 7}}; empty: there is none
//
// Scope: the choice of times. search.h knows what is free, and makes offerings of them.
//
// Thread safety: a pure function, as far as what it calls is.

#pragma once

#include <absl/functional/function_ref.h>

#include <vector>

#include "controller/reserve/calendar.h"

namespace tahoma::controller {

// As many segments as one offering may have.
inline constexpr int kSegmentsMost = 5;

struct Segment {
  Slot start = 0;
  int days = 0;  // a legal duration

  Slot end() const { return start + days; }
  friend bool operator==(const Segment&, const Segment&) = default;
};

struct SplitQuery {
  int days = 0;  // of all segments together
  int segments_most = 1;
  Slot first_start = 0;  // of the first segment
  Slot last_start = 0;   // of the last one
  Slot end = 0;          // of the last one, at the latest
};

// Returns the segments that end first; of such the fewest. `can_start` answers for a number of
// days, once for each, at which starts from `first_start` to `last_start` that many can begin.
// They do not overlap, but may follow one another without a gap. Takes days × segments × legal
// durations steps.
std::vector<Segment> SplitDays(const SplitQuery& query,
                               absl::FunctionRef<std::vector<bool>(int days)> can_start);

}  // namespace tahoma::controller
