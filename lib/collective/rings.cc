#include "lib/collective/rings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

#include "lib/base/check.h"
#include "lib/collective/masks.h"
#include "lib/torus/path.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;

// Walks from chip 0,0,0: a capital letter goes in plus direction along its axis, a small one in
// minus.
constexpr std::string_view kWalks[] = {
    "XyxyZxZxxzXYYYzXZXXyyxZxzYXZXYXXyxyxZXXXYXXZyXyxxyxzzYZXyXYXyyZX",
    "YXXYYxyxxyyxxzzzxYXYxYxYYYxyyyxZXYYYxyxyxyXyxyZxyyyXXYXyyxyxyZXY",
    "yXZyxyZYXZZxyxyyyxZXyxxZyyxYZyyyxYYYxzYZxyyXyzYXyyyzxxzYXyyZXXYz",
    "YYzyXzYYYXXXYxxYzYZZYYZXzyXXyyXZYxYYYZyXXyXYYZYZxzyZZZYzXZXYXzXX",
    "zYxxYxxxYxZXYZxZxxyXyxxxYXYZxxYZZyxyyxYxxyXyZxxxzXzxYXYzXZyXyyxx",
};

Ring Walk(std::string_view steps) {
  const torus::Shape& torus = torus::kUltraServerShape;
  torus::Coord at;
  Ring cycle;
  for (const char step : steps) {
    cycle.push_back(torus.IndexOf(at));
    const bool plus = step <= 'Z';
    const auto axis = static_cast<Axis>(step - (plus ? 'X' : 'x'));
    at.set(axis, (at.along(axis) + (plus ? 1 : 3)) % 4);
  }
  TAHOMA_CHECK(at == torus::Coord{});
  return cycle;
}

// Extensions of a path that the search for a Hamiltonian cycle may try. A cycle in a set of 64
// chips is found in a few hundred; the bound keeps sets without one from taking exponential time.
constexpr int kSearchSteps = 100'000;

// Neighbours of each chip over cables that are up in both directions.
using Adjacency = std::array<ChipMask, kChipsMax>;

Adjacency AdjacencyOf(const DomainLinks& links, ChipMask within) {
  Adjacency near{};
  for (ChipMask left = within; left != 0; left &= left - 1) {
    const int chip = Lowest(left);
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto out = static_cast<Arc>(chip * kPortsPerChip + port);
      if (links.rate(out) == 0) continue;
      const auto back = static_cast<Arc>(links.to(out) * kPortsPerChip + (port ^ 1));
      if (links.rate(back) == 0) continue;
      near.at(static_cast<std::size_t>(chip)) |= Bit(links.to(out)) & within;
    }
  }
  return near;
}

ChipMask NearOf(const Adjacency& near, ChipIndex chip) {
  return near.at(static_cast<std::size_t>(chip.value()));
}

// Whether the set may have a cycle: the torus is bipartite, like a chessboard, so a cycle has as
// many chips of either colour; and each of its chips has two neighbours. A set that passes may
// still have none.
bool MayHaveCycle(const Adjacency& near, ChipMask chips, const torus::Shape& torus) {
  int balance = 0;
  for (ChipMask left = chips; left != 0; left &= left - 1) {
    const ChipIndex chip(Lowest(left));
    const torus::Coord at = torus.CoordOf(chip);
    balance += (at.x + at.y + at.z) % 2 == 0 ? 1 : -1;
    if (CountOf(NearOf(near, chip)) < 2) return false;
  }
  return balance == 0;
}

class CycleSearch {
 public:
  CycleSearch(const Adjacency& near, ChipMask all) : near_(near), all_(all) {}

  Ring Run(ChipIndex start) {
    path_ = {start};
    if (!Extend(MaskOf(start))) path_.clear();
    return path_;
  }

 private:
  // Chips with the fewest free neighbours come first (Warnsdorff's rule), so that chips that would
  // be cut off are visited early.
  std::vector<ChipIndex> Candidates(ChipMask used) const {
    std::vector<std::pair<std::uint64_t, ChipIndex>> found;
    for (ChipMask left = NearOf(near_, path_.back()) & ~used; left != 0; left &= left - 1) {
      const ChipIndex chip(Lowest(left));
      found.emplace_back(CountOf(NearOf(near_, chip) & ~used), chip);
    }
    std::sort(found.begin(), found.end());
    std::vector<ChipIndex> order;
    for (const auto& [neighbours, chip] : found) order.push_back(chip);
    return order;
  }

  bool Extend(ChipMask used) {
    if (used == all_) return (NearOf(near_, path_.back()) & MaskOf(path_[0])) != 0;
    for (const ChipIndex next : Candidates(used)) {
      if (++steps_ > kSearchSteps) return false;
      path_.push_back(next);
      if (Extend(used | MaskOf(next))) return true;
      path_.pop_back();
    }
    return false;
  }

  const Adjacency& near_;
  const ChipMask all_;
  Ring path_;
  int steps_ = 0;
};

// Chips in depth-first order, so that following ones are close; what cannot be reached comes after,
// in order.
Ring DepthFirst(const Adjacency& near, ChipMask all) {
  Ring order;
  std::vector<ChipIndex> stack;
  ChipMask seen = 0;
  while (seen != all) {
    if (stack.empty()) stack.emplace_back(Lowest(all & ~seen));
    const ChipIndex chip = stack.back();
    stack.pop_back();
    if ((seen & MaskOf(chip)) != 0) continue;
    seen |= MaskOf(chip);
    order.push_back(chip);
    for (ChipMask left = NearOf(near, chip) & ~seen; left != 0; left &= left - 1) {
      stack.emplace_back(Lowest(left));
    }
  }
  return order;
}

bool IsCycle(const Adjacency& near, const Ring& ring) {
  for (std::size_t i = 0; i < ring.size(); ++i) {
    if ((NearOf(near, ring[i]) & MaskOf(ring[(i + 1) % ring.size()])) == 0) return false;
  }
  return true;
}

// Returns the two edge-disjoint cycles of an instance, laid into the plane, for a box that is a 4x4
// plane.
std::vector<Ring> PlaneCycles(const torus::Box& box, const torus::Shape& torus) {
  std::vector<Axis> sides;
  for (const Axis axis : torus::kAxes) {
    if (box.size.extent(axis) == 4) sides.push_back(axis);
  }
  if (sides.size() != 2 || box.size.chip_count() != 16) return {};
  std::vector<Ring> cycles;
  for (const auto& devices : torus::InstanceCycles()) {
    Ring& cycle = cycles.emplace_back();
    for (const int device : devices) {
      torus::Coord at = box.origin;
      at.set(sides[0], device % 4);
      at.set(sides[1], device / 4);
      cycle.push_back(torus.IndexOf(at));
    }
  }
  return cycles;
}

}  // namespace

const std::vector<Ring>& UltraServerCycles() {
  static const std::vector<Ring> cycles = [] {
    std::vector<Ring> walked;
    for (const std::string_view steps : kWalks) walked.push_back(Walk(steps));
    return walked;
  }();
  return cycles;
}

const torus::Box* BoxOf(const torus::Shape& torus, ChipMask chips) {
  if (!std::has_single_bit(CountOf(chips))) return nullptr;
  for (const torus::Box& box : torus::BoxTable::Of(torus).all()) {
    if (box.mask == chips) return &box;
  }
  return nullptr;
}

std::vector<Ring> RingsOf(const DomainLinks& links, ChipMask chips, ChipIndex first) {
  const Adjacency near = AdjacencyOf(links, chips);
  if (CountOf(chips) < 3) return {DepthFirst(near, chips)};
  if (const torus::Box* const box = BoxOf(links.torus(), chips)) {
    std::vector<Ring> rings = links.torus() == torus::kUltraServerShape && CountOf(chips) == 64
                                  ? UltraServerCycles()
                                  : PlaneCycles(*box, links.torus());
    if (rings.empty()) rings.push_back(GrayCycle(*box, links.torus()));
    std::erase_if(rings, [&](const Ring& ring) { return !IsCycle(near, ring); });
    if (!rings.empty()) return rings;
  }
  if (MayHaveCycle(near, chips, links.torus())) {
    Ring cycle = CycleSearch(near, chips).Run(first);
    if (!cycle.empty()) return {std::move(cycle)};
  }
  return {DepthFirst(near, chips)};
}

}  // namespace tahoma::collective
