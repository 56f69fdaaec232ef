#include "sim-node/collective/lanes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>

#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// The dimensions of a box by the rate of their links.
struct Dimensions {
  std::vector<int> fast;  // X and Y
  std::vector<int> slow;  // Z
};

Dimensions DimensionsOf(const torus::Box& box, const torus::Shape& torus) {
  const std::vector<ChipIndex> chips = torus::BoxChips(box, torus);
  Dimensions found;
  for (int d = 0; d < std::countr_zero(chips.size()); ++d) {
    const torus::Coord from = torus.CoordOf(chips[0]);
    const torus::Coord to = torus.CoordOf(chips[std::size_t{1} << d]);
    (from.z == to.z ? found.fast : found.slow).push_back(d);
  }
  return found;
}

std::vector<int> Rotated(std::vector<int> list, std::size_t by) {
  std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(by), list.end());
  return list;
}

// A lane that uses a dimension in each step.
Lane WithoutPause(std::vector<int> order) {
  std::vector<int> step(order.size());
  std::iota(step.begin(), step.end(), 0);
  return {.order = std::move(order), .step = std::move(step)};
}

// Shares of the lanes that use the slow dimension in step 0, 1, ..., in millionths; for three fast
// dimensions within 4.9 % of the bound, for four within 0.02 %. All fast dimensions together carry
// 2 x 3 or 2 x 4 times what the slow one does.
constexpr std::array<std::uint32_t, 6> kSharesOfThree = {95'656,  121'072, 214'418,
                                                         238'447, 136'784, 193'623};
constexpr std::array<std::uint32_t, 8> kSharesOfFour = {78'092,  101'274, 131'308, 170'862,
                                                        221'293, 143'363, 92'896,  60'912};

// The lane that uses the slow dimension in `slow_step` of 2 x fast.size() steps.
Lane Staggered(const std::vector<int>& fast, int slow, int slow_step, std::uint32_t weight) {
  const auto count = static_cast<int>(fast.size());
  // Early: the fast dimensions that are left come last. Late: all come before, as late as possible.
  const int before = std::min(slow_step, count);
  const int delay = slow_step - before;
  Lane lane;
  lane.weight = weight;
  for (int i = 0; i < count; ++i) {
    if (i == before) {
      lane.order.push_back(slow);
      lane.step.push_back(slow_step);
    }
    lane.order.push_back(fast[static_cast<std::size_t>(i)]);
    lane.step.push_back(i < before ? i + delay : i + count);
  }
  if (before == count) {
    lane.order.push_back(slow);
    lane.step.push_back(slow_step);
  }
  return lane;
}

}  // namespace

std::vector<Lane> BalancedLanes(const torus::Box& box, const torus::Shape& torus) {
  const auto [fast, slow] = DimensionsOf(box, torus);
  std::vector<Lane> lanes;
  if (fast.empty() || slow.empty()) {
    const std::vector<int>& only = fast.empty() ? slow : fast;
    for (std::size_t r = 0; r < only.size(); ++r) lanes.push_back(WithoutPause(Rotated(only, r)));
    if (lanes.empty()) lanes.emplace_back();
    return lanes;
  }
  // Row i of the Latin square has the first slow dimension in step i and each fast one once.
  const std::size_t n = fast.size() + 1;
  for (std::size_t s = 0; s < slow.size(); ++s) {
    const std::vector<int> slow_order = Rotated(slow, s);
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<int> order;
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t symbol = (i + n - j) % n;
        order.push_back(symbol == 0 ? slow_order[0] : fast[symbol - 1]);
      }
      order.insert(order.end(), slow_order.begin() + 1, slow_order.end());
      lanes.push_back(WithoutPause(std::move(order)));
    }
  }
  // A Z link has half the rate of an X/Y link. Two Z dimensions together carry what one X/Y
  // dimension does, so the square is balanced; a single one needs as many lanes again without it.
  for (std::size_t r = 0; slow.size() == 1 && r < fast.size(); ++r) {
    std::vector<int> order = Rotated(fast, r);
    order.push_back(slow[0]);
    lanes.push_back(WithoutPause(std::move(order)));
  }
  return lanes;
}

std::vector<Lane> StaggeredLanes(const torus::Box& box, const torus::Shape& torus) {
  const auto [fast, slow] = DimensionsOf(box, torus);
  if (slow.size() != 1 || fast.size() < 3) return {};
  const std::span<const std::uint32_t> shares =
      fast.size() == 3 ? std::span<const std::uint32_t>(kSharesOfThree) : kSharesOfFour;
  std::vector<Lane> lanes;
  for (std::size_t slow_step = 0; slow_step < shares.size(); ++slow_step) {
    for (std::size_t r = 0; r < fast.size(); ++r) {
      lanes.push_back(
          Staggered(Rotated(fast, r), slow[0], static_cast<int>(slow_step), shares[slow_step]));
    }
  }
  return lanes;
}

}  // namespace tahoma::sim
