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
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kHier:
      return "hier";
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

namespace {

// One swap of halving: over the dimension `across`, after those of `before`.
struct Swap {
  std::size_t lane;
  std::size_t step;
  std::size_t before;
  std::size_t across;
};

std::vector<Swap> SwapsOf(const std::vector<Lane>& lanes) {
  std::vector<Swap> swaps;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    std::size_t before = 0;
    for (std::size_t depth = 0; depth < lanes[lane].order.size(); ++depth) {
      const std::size_t across = std::size_t{1} << lanes[lane].order[depth];
      swaps.push_back({.lane = lane,
                       .step = static_cast<std::size_t>(lanes[lane].step[depth]),
                       .before = before,
                       .across = across});
      before |= across;
    }
  }
  return swaps;
}

std::vector<std::uint32_t> WeightsOf(const std::vector<Lane>& lanes) {
  std::vector<std::uint32_t> weights;
  for (const Lane& lane : lanes) weights.push_back(lane.weight);
  return weights;
}

// The places of the set's chips by hypercube address.
std::vector<std::size_t> PlacesOf(const ChipSet& set, const torus::Shape& torus) {
  std::vector<std::size_t> places;
  for (const ChipIndex chip : torus::BoxChips(*set.box(), torus)) {
    places.push_back(set.PlaceOf(chip));
  }
  return places;
}

std::size_t StepCount(const std::vector<Swap>& swaps) {
  std::size_t count = 0;
  for (const Swap& swap : swaps) count = std::max(count, swap.step + 1);
  return count;
}

}  // namespace

std::vector<Step> HalvingSteps(Phase phase, const ChipSet& set, const torus::Shape& torus,
                               const Layout& layout, const std::vector<Lane>& lanes) {
  const std::vector<std::size_t> places = PlacesOf(set, torus);
  const std::vector<Swap> swaps = SwapsOf(lanes);
  const Cutter cutter(layout, WeightsOf(lanes));
  std::vector<Step> steps(StepCount(swaps));
  for (const Swap& swap : swaps) {
    // All-gather undoes reduce-scatter: last exchange first.
    const bool gathers = phase == Phase::kAllGather;
    Step& step = steps[gathers ? steps.size() - 1 - swap.step : swap.step];
    const std::size_t fixed = swap.before | swap.across;
    for (std::size_t from = 0; from < places.size(); ++from) {
      const std::size_t to = from ^ swap.across;
      const std::size_t side = gathers ? from : to;
      for (std::size_t block = 0; block < places.size(); ++block) {
        if (((block ^ side) & fixed) != 0) continue;
        cutter.Append(step, set.chips()[places[from]], set.chips()[places[to]], places[block],
                      swap.lane, ActionOf(phase));
      }
    }
  }
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  return steps;
}

std::vector<Step> ScatterSteps(const ChipSet& set, const torus::Shape& torus, const Layout& layout,
                               const std::vector<Lane>& lanes) {
  const std::vector<std::size_t> places = PlacesOf(set, torus);
  const auto root = static_cast<std::size_t>(
      std::find(places.begin(), places.end(), std::size_t{0}) - places.begin());
  const std::vector<Swap> swaps = SwapsOf(lanes);
  const Cutter cutter(layout, WeightsOf(lanes));
  std::vector<Step> steps(StepCount(swaps));
  for (const Swap& swap : swaps) {
    const std::size_t fixed = swap.before | swap.across;
    for (std::size_t from = 0; from < places.size(); ++from) {
      if (((from ^ root) & ~swap.before) != 0) continue;  // has nothing yet
      const std::size_t to = from ^ swap.across;
      for (std::size_t block = 0; block < places.size(); ++block) {
        if (((block ^ to) & fixed) != 0) continue;
        cutter.Append(steps[swap.step], set.chips()[places[from]], set.chips()[places[to]],
                      places[block], swap.lane, Action::kCopy);
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
    case Algorithm::kTree:
    case Algorithm::kHier:
      TAHOMA_CHECK(algorithm != Algorithm::kTree && algorithm != Algorithm::kHier);
  }
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  return steps;
}

}  // namespace tahoma::sim
