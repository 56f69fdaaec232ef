#include "controller/reserve/segments.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

constexpr Slot kNever = std::numeric_limits<Slot>::max();

// The next start at which a number of days can begin, for each start asked for.
class NextStarts {
 public:
  NextStarts(const SplitQuery& query, int days, const std::vector<bool>& can_start)
      : first_(query.first_start) {
    TAHOMA_CHECK(static_cast<Slot>(can_start.size()) == query.last_start - first_ + 1);
    next_.assign(can_start.size(), kNever);
    Slot next = kNever;
    for (std::size_t i = can_start.size(); i-- > 0;) {
      const Slot start = first_ + static_cast<Slot>(i);
      if (can_start[i] && start + days <= query.end) next = start;
      next_[i] = next;
    }
  }

  // Returns the first start from `from` on, or kNever.
  Slot From(Slot from) const {
    const auto place = static_cast<std::size_t>(from - first_);
    return place < next_.size() ? next_[place] : kNever;
  }

 private:
  const Slot first_;
  std::vector<Slot> next_;
};

// How so many days end first.
struct Best {
  Slot end = kNever;
  Segment last = {};
};

}  // namespace

// A prefix that ends earlier is never worse: so the earliest end of d days in j segments follows
// from the earliest ends of fewer days in j - 1.
std::vector<Segment> SplitDays(const SplitQuery& query,
                               absl::FunctionRef<std::vector<bool>(int days)> can_start) {
  if (query.last_start < query.first_start) return {};
  std::vector<int> lengths;
  std::vector<NextStarts> starts;
  for (const int days : LegalDays()) {
    if (days > query.days) break;
    lengths.push_back(days);
    starts.emplace_back(query, days, can_start(days));
  }
  const auto days = static_cast<std::size_t>(query.days);
  std::vector<std::vector<Best>> best(1, std::vector<Best>(days + 1));
  best[0][0].end = query.first_start;
  for (int count = 1; count <= query.segments_most; ++count) {
    std::vector<Best> ends(days + 1);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto length = static_cast<std::size_t>(lengths[i]);
      for (std::size_t done = length; done <= days; ++done) {
        const Slot from = best.back()[done - length].end;
        const Slot start = from == kNever ? kNever : starts[i].From(from);
        if (start == kNever || start + lengths[i] >= ends[done].end) continue;
        ends[done] = {.end = start + lengths[i], .last = {.start = start, .days = lengths[i]}};
      }
    }
    best.push_back(std::move(ends));
  }
  std::size_t count = 1;
  for (std::size_t more = 2; more < best.size(); ++more) {
    if (best[more][days].end < best[count][days].end) count = more;
  }
  if (best[count][days].end == kNever) return {};
  std::vector<Segment> segments(count);
  for (std::size_t left = days; count > 0; --count) {
    segments[count - 1] = best[count][left].last;
    left -= static_cast<std::size_t>(segments[count - 1].days);
  }
  return segments;
}

}  // namespace tahoma::controller
