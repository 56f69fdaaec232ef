#include "sim-node/collective/algorithms.h"

#include <algorithm>
#include <bit>

#include "lib/base/check.h"
#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// Part `part` of `parts` of block `block`, as a send of those bytes.
class Cutter {
 public:
  Cutter(const Layout& layout, std::uint64_t parts) : layout_(layout), parts_(parts) {}

  void Append(Step& step, ChipIndex from, ChipIndex to, std::size_t block, std::uint64_t part,
              Action action) const {
    const std::uint64_t begin = layout_.bounds[block];
    const std::uint64_t count = layout_.bounds[block + 1] - begin;
    const std::uint64_t first = begin + count * part / parts_;
    const std::uint64_t last = begin + count * (part + 1) / parts_;
    if (first == last) return;
    step.push_back({.from = from,
                    .to = to,
                    .offset = first * layout_.element_bytes,
                    .bytes = (last - first) * layout_.element_bytes,
                    .action = action});
  }

 private:
  const Layout& layout_;
  const std::uint64_t parts_;
};

Action ActionOf(Phase phase) {
  return phase == Phase::kReduceScatter ? Action::kReduce : Action::kCopy;
}

std::vector<Step> MeshSteps(Phase phase, const ChipSet& set, const Layout& layout) {
  const Cutter cutter(layout, 1);
  Step step;
  for (std::size_t to = 0; to < set.size(); ++to) {
    for (std::size_t from = 0; from < set.size(); ++from) {
      if (from == to) continue;
      const std::size_t block = phase == Phase::kReduceScatter ? to : from;
      cutter.Append(step, set.chips()[from], set.chips()[to], block, 0, ActionOf(phase));
    }
  }
  return {std::move(step)};
}

std::vector<Step> RingSteps(Phase phase, const ChipSet& set, const TorusLinks& links,
                            const Layout& layout) {
  std::vector<std::vector<ChipIndex>> lanes;
  for (auto& ring : set.Rings(links)) {
    lanes.push_back(ring);
    std::reverse(ring.begin(), ring.end());
    lanes.push_back(std::move(ring));
  }
  const std::size_t n = set.size();
  const Cutter cutter(layout, lanes.size());
  std::vector<Step> steps(n - 1);
  for (std::size_t t = 0; t + 1 < n; ++t) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      for (std::size_t i = 0; i < n; ++i) {
        // Who owns the block that place i passes on: in all-gather it starts with its own, in
        // reduce-scatter it ends with receiving its own.
        const std::size_t behind = phase == Phase::kReduceScatter ? t + 1 : t;
        const ChipIndex owner = lanes[lane][(i + n - behind) % n];
        cutter.Append(steps[t], lanes[lane][i], lanes[lane][(i + 1) % n], set.PlaceOf(owner), lane,
                      ActionOf(phase));
      }
    }
  }
  return steps;
}

std::vector<Step> RdhSteps(Phase phase, const ChipSet& set, const torus::Shape& torus,
                           const Layout& layout) {
  const std::vector<ChipIndex> chips = torus::BoxChips(*set.box(), torus);
  std::vector<std::size_t> place;
  for (const ChipIndex chip : chips) place.push_back(set.PlaceOf(chip));
  const auto orders = DimensionOrders(*set.box(), torus);
  const Cutter cutter(layout, orders.size());
  const auto dimensions = static_cast<std::size_t>(std::countr_zero(chips.size()));
  std::vector<Step> steps(dimensions);
  for (std::size_t t = 0; t < dimensions; ++t) {
    // All-gather undoes reduce-scatter: last exchange first.
    const std::size_t depth = phase == Phase::kReduceScatter ? t : dimensions - 1 - t;
    for (std::size_t part = 0; part < orders.size(); ++part) {
      std::size_t fixed = 0;  // dimensions on which the sent blocks agree with their side
      for (std::size_t d = 0; d <= depth; ++d) fixed |= std::size_t{1} << orders[part][d];
      const std::size_t across = std::size_t{1} << orders[part][depth];
      for (std::size_t from = 0; from < chips.size(); ++from) {
        const std::size_t to = from ^ across;
        const std::size_t side = phase == Phase::kReduceScatter ? to : from;
        for (std::size_t block = 0; block < chips.size(); ++block) {
          if (((block ^ side) & fixed) != 0) continue;
          cutter.Append(steps[t], chips[from], chips[to], place[block], part, ActionOf(phase));
        }
      }
    }
  }
  return steps;
}

}  // namespace

std::string_view Name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kMesh:
      return "mesh";
    case Algorithm::kRdh:
      return "rdh";
    case Algorithm::kRing:
      return "ring";
  }
  return "";
}

Layout Layout::Weighted(const std::vector<int>& weights, std::uint64_t elements,
                        std::uint64_t element_bytes) {
  std::uint64_t total = 0;
  for (const int weight : weights) total += static_cast<std::uint64_t>(weight);
  TAHOMA_CHECK(total > 0);
  Layout layout{.element_bytes = element_bytes, .bounds = {0}};
  std::uint64_t sum = 0;
  for (const int weight : weights) {
    sum += static_cast<std::uint64_t>(weight);
    layout.bounds.push_back(elements * sum / total);
  }
  return layout;
}

std::vector<std::vector<int>> DimensionOrders(const torus::Box& box, const torus::Shape& torus) {
  const std::vector<ChipIndex> chips = torus::BoxChips(box, torus);
  std::vector<int> fast, slow;
  for (int d = 0; d < std::countr_zero(chips.size()); ++d) {
    const torus::Coord from = torus.CoordOf(chips[0]);
    const torus::Coord to = torus.CoordOf(chips[std::size_t{1} << d]);
    (from.z == to.z ? fast : slow).push_back(d);
  }
  const auto rotated = [](const std::vector<int>& list, std::size_t by) {
    std::vector<int> order = list;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(by), order.end());
    return order;
  };
  std::vector<std::vector<int>> orders;
  if (fast.empty() || slow.empty()) {
    const std::vector<int>& only = fast.empty() ? slow : fast;
    for (std::size_t r = 0; r < only.size(); ++r) orders.push_back(rotated(only, r));
    if (orders.empty()) orders.emplace_back();
    return orders;
  }
  // Row i of the Latin square has the first slow dimension in step i and each fast one once.
  const std::size_t n = fast.size() + 1;
  for (std::size_t s = 0; s < slow.size(); ++s) {
    const std::vector<int> slow_order = rotated(slow, s);
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<int>& order = orders.emplace_back();
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t symbol = (i + n - j) % n;
        order.push_back(symbol == 0 ? slow_order[0] : fast[symbol - 1]);
      }
      order.insert(order.end(), slow_order.begin() + 1, slow_order.end());
    }
  }
  // A Z link has half the rate of an X/Y link. Two Z dimensions together carry what one X/Y
  // dimension does, so the square is balanced; a single one needs as many parts again without it.
  for (std::size_t r = 0; slow.size() == 1 && r < fast.size(); ++r) {
    std::vector<int>& order = orders.emplace_back(rotated(fast, r));
    order.push_back(slow[0]);
  }
  return orders;
}

std::vector<Step> Steps(Algorithm algorithm, Phase phase, const ChipSet& set,
                        const TorusLinks& links, const Layout& layout) {
  TAHOMA_CHECK(layout.bounds.size() == set.size() + 1);
  if (set.size() == 1) return {};
  std::vector<Step> steps;
  switch (algorithm) {
    case Algorithm::kMesh:
      steps = MeshSteps(phase, set, layout);
      break;
    case Algorithm::kRdh:
      TAHOMA_CHECK(set.box() != nullptr);
      steps = RdhSteps(phase, set, links.torus(), layout);
      break;
    case Algorithm::kRing:
      steps = RingSteps(phase, set, links, layout);
      break;
  }
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  return steps;
}

}  // namespace tahoma::sim
