#include "controller/plan/chip_choice.h"

#include <array>
#include <bit>
#include <utility>

#include "controller/plan/order.h"

namespace tahoma::controller {
namespace {

// The shares of requests for 1, 2, 4, 8 and 16 chips, in percent
// (docs/reference/torus.md#mix-of-requests).
constexpr std::array kShares = {35, 15, 20, 15, 15};

std::uint16_t Chips(const torus::Box& box) { return static_cast<std::uint16_t>(box.mask); }

// For each chip, the chips that it has a working link to.
using Neighbours = std::array<std::uint16_t, 16>;

Neighbours NeighboursOf(const torus::LinkMask& down) {
  Neighbours near{};
  for (int chip = 0; chip < 16; ++chip) {
    for (const torus::Axis axis : {torus::Axis::kX, torus::Axis::kY}) {
      if ((down.along(axis) >> chip & 1) != 0) continue;
      const int next = axis == torus::Axis::kX ? chip / 4 * 4 + (chip + 1) % 4 : (chip + 4) % 16;
      near[static_cast<std::size_t>(chip)] |= static_cast<std::uint16_t>(1U << next);
      near[static_cast<std::size_t>(next)] |= static_cast<std::uint16_t>(1U << chip);
    }
  }
  return near;
}

// Grows a set from one chip, each time by the chip with the most links into the set. Returns
// nullopt when fewer than `count` chips are connected to `seed`.
std::optional<std::uint16_t> Grow(const Neighbours& near, std::uint16_t free, int count, int seed) {
  auto set = static_cast<std::uint16_t>(1U << seed);
  while (std::popcount(set) < count) {
    int best = -1;
    int best_links = 0;
    for (int chip = 0; chip < 16; ++chip) {
      const auto bit = static_cast<std::uint16_t>(1U << chip);
      if ((free & bit) == 0 || (set & bit) != 0) continue;
      const int links =
          std::popcount(static_cast<std::uint16_t>(near[static_cast<std::size_t>(chip)] & set));
      if (links > best_links) {
        best = chip;
        best_links = links;
      }
    }
    if (best < 0) return std::nullopt;
    set |= static_cast<std::uint16_t>(1U << best);
  }
  return set;
}

std::uint16_t Lowest(std::uint16_t free, int count) {
  std::uint16_t taken = 0;
  for (; count > 0; --count) {
    const auto bit = static_cast<std::uint16_t>(free & static_cast<std::uint16_t>(-free));
    taken |= bit;
    free &= static_cast<std::uint16_t>(~bit);
  }
  return taken;
}

// Returns neighbouring chips on a ring, from the shortest free run that is long enough, so that
// long runs stay. nullopt when none is: AWS's scheduler extension gives contiguous sets only
// (aws-neuron-sdk deploy/infrastructure/scheduler.rst).
std::optional<std::uint16_t> ChooseOnRing(std::uint16_t free, int count,
                                          const torus::LinkMask& down, int chips) {
  const std::uint64_t cut = down.along(torus::Axis::kX);
  std::optional<std::uint16_t> best;
  int best_run = 0;
  for (int first = 0; first < chips; ++first) {
    const int before = (first + chips - 1) % chips;
    const bool begins = (free >> before & 1) == 0 || (cut >> before & 1) != 0;
    std::uint16_t set = 0;
    int run = 0;
    for (int chip = first; run < chips && (free >> chip & 1) != 0; chip = (chip + 1) % chips) {
      if (run < count) set |= static_cast<std::uint16_t>(1U << chip);
      ++run;
      if ((cut >> chip & 1) != 0) break;
    }
    // A run is counted from its first chip, unless the whole ring is one run.
    if (run < count || (!begins && run < chips)) continue;
    if (best && run >= best_run) continue;
    best = set;
    best_run = run;
  }
  return best;
}

}  // namespace

ChipChoice::ChipChoice() : fragmentation_(std::size_t{1} << 16, std::int16_t{-1}) {}

int ChipChoice::Fragmentation(std::uint16_t free) const {
  std::int16_t& known = fragmentation_[free];
  if (known >= 0) return known;
  std::array<std::uint16_t, kShares.size()> covered{};
  for (const torus::Box& box : torus::BoxTable::Of(torus::kInstanceShape).all()) {
    if ((Chips(box) & ~free) != 0) continue;
    covered[static_cast<std::size_t>(
        std::countr_zero(static_cast<unsigned>(torus::ChipCount(box.mask))))] |= Chips(box);
  }
  int sum = 0;
  for (std::size_t d = 0; d < kShares.size(); ++d) {
    sum += kShares[d] * std::popcount(static_cast<std::uint16_t>(free & ~covered[d]));
  }
  known = static_cast<std::int16_t>(sum);
  return sum;
}

std::optional<std::uint16_t> ChipChoice::BestBox(std::uint16_t free, int count,
                                                 const torus::LinkMask& down) const {
  std::optional<std::pair<ChipSetOrder, std::uint16_t>> best;
  for (const torus::Shape& wanted : torus::ShapesOf(count)) {
    for (const torus::Box& box : torus::BoxTable::Of(torus::kInstanceShape).Rotations(wanted)) {
      if ((Chips(box) & ~free) != 0 || down.Intersects(box.links)) continue;
      const auto rest = static_cast<std::uint16_t>(free & ~Chips(box));
      const ChipSetOrder order{AllReduceTime(box.size), Fragmentation(rest)};
      if (!best || order < best->first) best.emplace(order, Chips(box));
    }
  }
  return best ? std::optional(best->second) : std::nullopt;
}

// Returns the best connected set over working links, or a box in which some links are down.
std::optional<std::uint16_t> ChipChoice::BestOther(std::uint16_t free, int count,
                                                   const torus::LinkMask& down,
                                                   const hw::ChipModel& model) const {
  std::vector<std::uint16_t> candidates;
  for (const torus::Shape& wanted : torus::ShapesOf(count)) {
    for (const torus::Box& box : torus::BoxTable::Of(torus::kInstanceShape).Rotations(wanted)) {
      if ((Chips(box) & ~free) == 0) candidates.push_back(Chips(box));
    }
  }
  const Neighbours near = NeighboursOf(down);
  for (int seed = 0; seed < 16; ++seed) {
    if ((free >> seed & 1) == 0) continue;
    if (const auto set = Grow(near, free, count, seed)) candidates.push_back(*set);
  }
  std::optional<std::pair<ChipSetOrder, std::uint16_t>> best;
  for (const std::uint16_t set : candidates) {
    const auto rest = static_cast<std::uint16_t>(free & ~set);
    const ChipSetOrder order{scores_.AllReduceTime(set, down, model), Fragmentation(rest)};
    if (!best || order < best->first) best.emplace(order, set);
  }
  return best ? std::optional(best->second) : std::nullopt;
}

std::optional<std::uint16_t> ChipChoice::Choose(std::uint16_t free, int count,
                                                const torus::LinkMask& down,
                                                const torus::Shape& shape,
                                                const hw::ChipModel& model) const {
  if (std::popcount(free) < count) return std::nullopt;
  if (shape.extent(torus::Axis::kY) == 1 && shape.chip_count() > 1) {
    return ChooseOnRing(free, count, down, shape.chip_count());
  }
  if (std::popcount(free) == count) return free;
  if (shape.chip_count() != 16) return Lowest(free, count);
  if (const auto box = BestBox(free, count, down)) return box;
  const auto other = BestOther(free, count, down, model);
  return other ? *other : Lowest(free, count);
}

}  // namespace tahoma::controller
