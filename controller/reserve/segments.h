// Splits the days of a search into segments: pieces of time with gaps between them.
//
//   const auto segments = SplitDays(
//       {.days = 14, .segments_most = 3, .first_start = today, .last_start = today + 56,
//        .end = today + 100},
//       [&](int days) { return starts_with_room_for(days); });
//   segments;                  // {{today + 2, 7}, {today + 12, 7}}; empty: none exist
//
// Scope: the choice of times. search.h knows the free hosts, and makes offerings of the segments.
//
// Thread safety: a pure function, if `can_start` is.

#pragma once

#include <absl/functional/function_ref.h>

#include <vector>

#include "controller/reserve/calendar.h"

namespace tahoma::controller {

// The most segments of one offering.
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

// Returns the segments that end first; of several such choices, the choice with the fewest
// segments. Calls `can_start` once for each number of days; the answer tells for each start from
// `first_start` to `last_start` whether that many days can begin there. Segments do not overlap,
// but may follow one another without a gap. Takes days × segments × legal durations steps.
std::vector<Segment> SplitDays(const SplitQuery& query,
                               absl::FunctionRef<std::vector<bool>(int days)> can_start);

}  // namespace tahoma::controller
