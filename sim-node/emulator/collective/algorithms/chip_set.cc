#include "sim-node/emulator/collective/algorithms/chip_set.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "lib/base/check.h"
#include "lib/torus/path.h"
#include "sim-node/emulator/collective/algorithms/cycles.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

// Extensions of a path that the search for a Hamiltonian cycle may try. A cycle in a set of 64
// chips is found in a few hundred; the bound keeps sets without one from taking exponential time.
constexpr int kSearchSteps = 100'000;

// Neighbours of each chip over cables that are up in both directions.
std::array<ChipMask, 64> Adjacency(const TorusLinks& links, ChipMask within) {
  std::array<ChipMask, 64> near{};
  for (ChipMask left = within; left != 0; left &= left - 1) {
    const ChipIndex chip(std::countr_zero(left));
    for (const Axis axis : torus::kAxes) {
      for (const Direction direction : torus::kDirections) {
        const LinkId link = TorusLinks::IdOf(chip, axis, direction);
        if (links.capacity(link) == 0) continue;
        const torus::Hop hop = links.HopOf(link);
        if (links.capacity(TorusLinks::IdOf(hop.to, axis, Opposite(direction))) == 0) continue;
        near.at(static_cast<std::size_t>(chip.value())) |= MaskOf(hop.to) & within;
      }
    }
  }
  return near;
}

class CycleSearch {
 public:
  CycleSearch(const std::array<ChipMask, 64>& near, ChipMask all) : near_(near), all_(all) {}

  std::vector<ChipIndex> Run(ChipIndex start) {
    path_ = {start};
    if (!Extend(MaskOf(start))) path_.clear();
    return path_;
  }

 private:
  // Chips with the fewest free neighbours come first (Warnsdorff's rule), so that chips that would
  // be cut off are visited early.
  std::vector<ChipIndex> Candidates(ChipMask used) const {
    std::vector<std::pair<int, ChipIndex>> found;
    const ChipMask open = near_.at(static_cast<std::size_t>(path_.back().value())) & ~used;
    for (ChipMask left = open; left != 0; left &= left - 1) {
      const ChipIndex chip(std::countr_zero(left));
      const ChipMask onward = near_.at(static_cast<std::size_t>(chip.value())) & ~used;
      found.emplace_back(std::popcount(onward), chip);
    }
    std::sort(found.begin(), found.end());
    std::vector<ChipIndex> order;
    for (const auto& [neighbours, chip] : found) order.push_back(chip);
    return order;
  }

  bool Extend(ChipMask used) {
    if (used == all_) {
      return (near_.at(static_cast<std::size_t>(path_.back().value())) & MaskOf(path_[0])) != 0;
    }
    for (const ChipIndex next : Candidates(used)) {
      if (++steps_ > kSearchSteps) return false;
      path_.push_back(next);
      if (Extend(used | MaskOf(next))) return true;
      path_.pop_back();
    }
    return false;
  }

  const std::array<ChipMask, 64>& near_;
  const ChipMask all_;
  std::vector<ChipIndex> path_;
  int steps_ = 0;
};

// Members in depth-first order, so that following ones are close; what cannot be reached comes
// after, in order.
std::vector<ChipIndex> DepthFirst(const std::array<ChipMask, 64>& near, ChipMask all) {
  std::vector<ChipIndex> order;
  std::vector<ChipIndex> stack;
  ChipMask seen = 0;
  while (seen != all) {
    if (stack.empty()) stack.emplace_back(std::countr_zero(all & ~seen));
    const ChipIndex chip = stack.back();
    stack.pop_back();
    if ((seen & MaskOf(chip)) != 0) continue;
    seen |= MaskOf(chip);
    order.push_back(chip);
    const ChipMask onward = near.at(static_cast<std::size_t>(chip.value())) & ~seen;
    for (ChipMask left = onward; left != 0; left &= left - 1) {
      stack.emplace_back(std::countr_zero(left));
    }
  }
  return order;
}

}  // namespace

ChipSet::ChipSet(const TorusLinks& links, std::vector<ChipIndex> chips) : chips_(std::move(chips)) {
  TAHOMA_CHECK(!chips_.empty());
  for (const ChipIndex chip : chips_) {
    TAHOMA_CHECK(chip.value() < links.torus().chip_count() && (mask_ & MaskOf(chip)) == 0);
    mask_ |= MaskOf(chip);
  }
  through_ = links.IsConnected(mask_) ? mask_ : kAllChips;
  for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
    if (box.mask == mask_) box_ = &box;
  }
}

std::size_t ChipSet::PlaceOf(ChipIndex chip) const {
  const auto place = std::find(chips_.begin(), chips_.end(), chip);
  TAHOMA_CHECK(place != chips_.end());
  return static_cast<std::size_t>(place - chips_.begin());
}

bool ChipSet::IsCycle(const TorusLinks& links, const std::vector<ChipIndex>& ring) const {
  const auto near = Adjacency(links, mask_);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const ChipIndex next = ring[(i + 1) % ring.size()];
    if ((near.at(static_cast<std::size_t>(ring[i].value())) & MaskOf(next)) == 0) return false;
  }
  return true;
}

// Returns the two edge-disjoint cycles of an instance, laid into the plane, for a box that is a 4x4
// plane.
std::vector<std::vector<ChipIndex>> ChipSet::PlaneCycles(const torus::Shape& torus) const {
  std::vector<Axis> sides;
  for (const Axis axis : torus::kAxes) {
    if (box_->size.extent(axis) == 4) sides.push_back(axis);
  }
  if (sides.size() != 2 || size() != 16) return {};
  std::vector<std::vector<ChipIndex>> cycles;
  for (const auto& devices : torus::InstanceCycles()) {
    std::vector<ChipIndex>& cycle = cycles.emplace_back();
    for (const int device : devices) {
      torus::Coord at = box_->origin;
      at.set(sides[0], device % 4);
      at.set(sides[1], device / 4);
      cycle.push_back(torus.IndexOf(at));
    }
  }
  return cycles;
}

std::vector<std::vector<ChipIndex>> ChipSet::Rings(const TorusLinks& links) const {
  std::vector<std::vector<ChipIndex>> rings;
  if (size() < 3) return {chips_};
  if (box_ != nullptr) {
    rings = links.torus() == torus::kUltraServerShape && size() == 64 ? UltraServerCycles()
                                                                      : PlaneCycles(links.torus());
    if (rings.empty()) rings.push_back(GrayCycle(*box_, links.torus()));
    std::erase_if(rings, [&](const auto& ring) { return !IsCycle(links, ring); });
    if (!rings.empty()) return rings;
  }
  const auto near = Adjacency(links, mask_);
  if (size() % 2 == 0) {  // the torus is bipartite: no odd cycle
    std::vector<ChipIndex> cycle = CycleSearch(near, mask_).Run(chips_[0]);
    if (!cycle.empty()) return {std::move(cycle)};
  }
  return {DepthFirst(near, mask_)};
}

}  // namespace tahoma::sim
