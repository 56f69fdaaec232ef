#include "sim-node/collective/algorithms.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// Cuts each block into parts in proportion to their weights, and makes sends of them.
class Cutter {
 public:
  Cutter(const Layout& layout, const std::vector<std::uint32_t>& weights) : layout_(layout) {
    for (const std::uint32_t weight : weights) ends_.push_back(ends_.back() + weight);
  }

  void Append(Step& step, ChipIndex from, ChipIndex to, std::size_t block, std::size_t part,
              Action action) const {
    const std::uint64_t begin = layout_.bounds[block];
    const std::uint64_t count = layout_.bounds[block + 1] - begin;
    const std::uint64_t first = begin + Share(count, ends_[part]);
    const std::uint64_t last = begin + Share(count, ends_[part + 1]);
    if (first == last) return;
    step.push_back({.from = from,
                    .to = to,
                    .offset = first * layout_.element_bytes,
                    .to_offset = first * layout_.element_bytes,
                    .bytes = (last - first) * layout_.element_bytes,
                    .action = action});
  }

 private:
  std::uint64_t Share(std::uint64_t count, std::uint64_t end) const {
    return static_cast<std::uint64_t>(static_cast<Wide>(count) * end / ends_.back());
  }

  const Layout& layout_;
  std::vector<std::uint64_t> ends_ = {0};  // of each part, in units of weight
};

Action ActionOf(Phase phase) {
  return phase == Phase::kReduceScatter ? Action::kReduce : Action::kCopy;
}

std::vector<Step> MeshSteps(Phase phase, const ChipSet& set, const Layout& layout) {
  const Cutter cutter(layout, {1});
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
  const Cutter cutter(layout, std::vector<std::uint32_t>(lanes.size(), 1));
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

std::vector<Step> HalvingSteps(Phase phase, const ChipSet& set, const torus::Shape& torus,
                               const Layout& layout, const std::vector<Lane>& lanes) {
  const std::vector<ChipIndex> chips = torus::BoxChips(*set.box(), torus);
  std::vector<std::size_t> place;
  for (const ChipIndex chip : chips) place.push_back(set.PlaceOf(chip));
  std::vector<std::uint32_t> weights;
  int last = -1;
  for (const Lane& lane : lanes) {
    weights.push_back(lane.weight);
    if (!lane.step.empty()) last = std::max(last, lane.step.back());
  }
  const Cutter cutter(layout, weights);
  std::vector<Step> steps(static_cast<std::size_t>(last + 1));
  for (std::size_t part = 0; part < lanes.size(); ++part) {
    const Lane& lane = lanes[part];
    std::size_t fixed = 0;  // dimensions on which the sent blocks agree with their side
    for (std::size_t depth = 0; depth < lane.order.size(); ++depth) {
      const std::size_t across = std::size_t{1} << lane.order[depth];
      fixed |= across;
      // All-gather undoes reduce-scatter: last exchange first.
      const int at = phase == Phase::kReduceScatter ? lane.step[depth] : last - lane.step[depth];
      for (std::size_t from = 0; from < chips.size(); ++from) {
        const std::size_t to = from ^ across;
        const std::size_t side = phase == Phase::kReduceScatter ? to : from;
        for (std::size_t block = 0; block < chips.size(); ++block) {
          if (((block ^ side) & fixed) != 0) continue;
          cutter.Append(steps[static_cast<std::size_t>(at)], chips[from], chips[to], place[block],
                        part, ActionOf(phase));
        }
      }
    }
  }
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  return steps;
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
      steps =
          HalvingSteps(phase, set, links.torus(), layout, BalancedLanes(*set.box(), links.torus()));
      break;
    case Algorithm::kRing:
      steps = RingSteps(phase, set, links, layout);
      break;
  }
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  return steps;
}

}  // namespace tahoma::sim
