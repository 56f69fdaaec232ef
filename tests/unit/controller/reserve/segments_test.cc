// Segments end as early as any choice of them can, and are as few.

#include "controller/reserve/segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

// At which starts so many days can begin.
using Starts = std::map<int, std::vector<bool>>;

std::vector<Segment> Split(const SplitQuery& query, const Starts& starts) {
  return SplitDays(query, [&](int days) { return starts.at(days); });
}

// Tries everything: the end and the number of segments of the best choice.
std::tuple<Slot, int> TryAll(const SplitQuery& query, const Starts& starts, int days, int left,
                             Slot from) {
  if (days == 0) return {from, 0};
  std::tuple<Slot, int> best{query.end + 1, 0};
  if (left == 0) return best;
  for (const auto& [length, can_start] : starts) {
    if (length > days) continue;
    for (Slot start = from; start <= query.last_start; ++start) {
      const Slot end = start + length;
      if (!can_start[static_cast<std::size_t>(start - query.first_start)]) continue;
      if (end > query.end) continue;
      const auto [last, more] = TryAll(query, starts, days - length, left - 1, end);
      if (last <= query.end) best = std::min(best, {last, more + 1});
    }
  }
  return best;
}

Starts Random(Rng& rng, const SplitQuery& query) {
  Starts starts;
  const std::uint64_t share = 1 + rng.Below(9);
  for (const int days : LegalDays()) {
    if (days > query.days) break;
    std::vector<bool>& can_start = starts[days];
    for (Slot start = query.first_start; start <= query.last_start; ++start) {
      can_start.push_back(rng.Below(10) < share);
    }
  }
  return starts;
}

TEST(SegmentsTest, NoOtherChoiceEndsSoonerOrHasFewerSegments) {
  Rng rng(7);
  int several = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Slot first = 20'000 + static_cast<Slot>(rng.Below(3));
    const SplitQuery query{.days = 1 + static_cast<int>(rng.Below(5)),
                           .segments_most = 1 + static_cast<int>(rng.Below(3)),
                           .first_start = first,
                           .last_start = first + static_cast<Slot>(rng.Below(8)),
                           .end = first + 3 + static_cast<Slot>(rng.Below(10))};
    const Starts starts = Random(rng, query);
    const std::vector<Segment> segments = Split(query, starts);
    const auto [end, count] =
        TryAll(query, starts, query.days, query.segments_most, query.first_start);
    ASSERT_EQ(segments.empty(), end > query.end) << "round " << round;
    if (segments.empty()) continue;
    EXPECT_EQ(segments.back().end(), end) << "round " << round;
    EXPECT_EQ(segments.size(), static_cast<std::size_t>(count)) << "round " << round;
    several += segments.size() > 1 ? 1 : 0;
    int days = 0;
    Slot free = query.first_start;
    for (const Segment& segment : segments) {
      EXPECT_GE(segment.start, free);
      EXPECT_LE(segment.start, query.last_start);
      EXPECT_TRUE(
          starts.at(segment.days)[static_cast<std::size_t>(segment.start - query.first_start)]);
      free = segment.end();
      days += segment.days;
    }
    EXPECT_EQ(days, query.days);
  }
  EXPECT_GT(several, 500);
}

TEST(SegmentsTest, WithoutATimeToStartThereIsNone) {
  EXPECT_TRUE(SplitDays({.days = 1, .first_start = 5, .last_start = 4, .end = 10}, [](int) {
                return std::vector<bool>();
              }).empty());
}

}  // namespace
}  // namespace tahoma::controller
