#include "lib/isa/slice.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tahoma::isa {
namespace {

// Leaves out steps of one element and joins neighbours that are contiguous.
std::vector<Step> Joined(std::span<const Step> steps) {
  std::vector<Step> joined;
  for (const Step& step : steps) {
    if (step.count == 1) continue;
    if (!joined.empty() && joined.back().stride == step.stride * step.count) {
      joined.back() = {.stride = step.stride, .count = joined.back().count * step.count};
    } else {
      joined.push_back(step);
    }
  }
  if (joined.empty()) joined.push_back({});
  return joined;
}

void Reach(const Step& step, Hull& hull) {
  const std::int64_t reach = step.stride * (step.count - 1);
  (reach < 0 ? hull.low : hull.high) += reach;
}

}  // namespace

View Slice(const Buffer& buffer, BufferId id, std::span<const Range> ranges) {
  const bool on_chip = buffer.memory != Memory::kHbm;
  View view = {.buffer = id};
  std::vector<Step> steps;  // the innermost first
  std::int64_t pitch = 1;
  for (std::size_t at = buffer.shape.size(); at-- > 0;) {
    const std::int64_t extent = buffer.shape[at];
    const Range range = at < ranges.size() ? ranges[at] : Range{.end = extent};
    const std::int64_t count = range.end - range.begin;
    if (on_chip && at == 0) {
      view.partition = static_cast<int>(range.begin);
      view.rows.count = count;
      break;
    }
    view.offset += range.begin * pitch;
    if (!range.index) steps.push_back({.stride = pitch, .count = count});
    pitch *= extent;
  }
  std::ranges::reverse(steps);
  std::span<const Step> free = steps;
  if (!on_chip && steps.size() > 1) {
    if (steps.front().count > 1) view.rows = steps.front();
    free = free.subspan(1);
  }
  view.free = Joined(free);
  return view;
}

Hull HullOf(const Buffer& buffer, const View& view) {
  Hull hull = {.low = view.offset, .high = view.offset};
  for (const Step& step : view.free) Reach(step, hull);
  if (buffer.memory == Memory::kHbm) Reach(view.rows, hull);
  return hull;
}

}  // namespace tahoma::isa
