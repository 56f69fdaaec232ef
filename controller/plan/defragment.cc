#include "controller/plan/defragment.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// The most sets that are looked at to make room for a gang.
constexpr std::size_t kSetsForOneMost = 16;

using ChipsByNode = absl::flat_hash_map<std::string, std::uint16_t>;

// Adds the holding's chips, by node.
void AddChips(const ClusterState& view, const Holding& holding, ChipsByNode& chips) {
  for (const Holding::HeldDevice& device : holding.devices) {
    const auto id = view.FindNode(device.node);
    if (device.admin_access || !id) continue;
    chips[device.node] |= view.node(*id).node->ChipsNamed(device.device);
  }
}

bool Overlap(const ChipsByNode& a, const ChipsByNode& b) {
  return std::ranges::any_of(a, [&](const auto& entry) {
    const auto found = b.find(entry.first);
    return found != b.end() && (found->second & entry.second) != 0;
  });
}

// Holds a place for later: the claims have other devices until then.
void HoldLater(const Placement& placement, const GangSpec& gang, WallTime now,
               ClusterState& fleet) {
  for (const auto& holding : placement.Holdings(gang, now)) {
    Holding later = *holding;
    later.claim_uid = "later for " + later.claim_uid;
    fleet.Hold(std::make_shared<const Holding>(std::move(later)));
  }
}

class MoveSearch {
 public:
  MoveSearch(const ClusterState& view, const std::shared_ptr<const GangSpec>& wanted,
             std::span<const MovableGang> movable, const MoveBounds& bounds, WallTime now,
             PlaceOneFunction place)
      : view_(view), wanted_(wanted), movable_(movable), bounds_(bounds), now_(now), place_(place) {
    for (const MovableGang& gang : movable) {
      runs_.push_back(gang.run);
      ChipsByNode& chips = chips_.emplace_back();
      for (const std::string& claim : gang.run.claims) {
        if (const Holding* holding = view.FindHolding(claim)) AddChips(view, *holding, chips);
      }
    }
  }

  absl::StatusOr<Defragmentation> Find() {
    open_.emplace(0, Ended());
    for (std::size_t tried = 0; !open_.empty() && tried < kSetsMost; ++tried) {
      const Ended set = open_.begin()->second;
      open_.erase(open_.begin());
      if (auto plan = Try(set)) return *std::move(plan);
    }
    return FailedPrecondition("{} finds no place by moving gangs: {}", wanted_->Describe(), why_);
  }

 private:
  struct Target {
    std::size_t gang = 0;
    Placement to;
    ChipsByNode chips;
  };

  std::int64_t CostOf(const Ended& set) const {
    return std::accumulate(set.begin(), set.end(), std::int64_t{0},
                           [&](std::int64_t sum, std::size_t i) { return sum + runs_[i].work; });
  }

  // Returns the plan that moves the gangs of the set, or adds larger sets to be tried.
  std::optional<Defragmentation> Try(const Ended& set) {
    ClusterState after = Without(view_, runs_, set);
    ClusterState before = Renamed(set);
    auto place = place_(after, wanted_);
    if (!place) {
      Extend(set, after, wanted_);
      return std::nullopt;
    }
    HoldLater(*place, *wanted_, now_, after);
    HoldLater(*place, *wanted_, now_, before);
    Ended order = set;  // the largest has the fewest places
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return Size(i); });
    std::vector<Target> targets;
    for (const std::size_t i : order) {
      const auto& spec = movable_[i].spec;
      auto to = place_(before, spec);  // waits for no other move
      if (!to) to = place_(after, spec);
      if (!to) {
        Extend(set, after, spec);
        return std::nullopt;
      }
      HoldLater(*to, *spec, now_, after);
      HoldLater(*to, *spec, now_, before);
      targets.push_back({.gang = i, .to = *std::move(to), .chips = {}});
      AddChipsOf(targets.back().to, *spec, targets.back().chips);
    }
    return Ordered(*std::move(place), std::move(targets));
  }

  // Returns the fleet in which other claims hold the chips of the set: the planner leaves a gang
  // whose own claims hold chips on these chips.
  ClusterState Renamed(const Ended& set) const {
    ClusterState fleet = Without(view_, runs_, set);
    for (const std::size_t i : set) {
      for (const std::string& claim : runs_[i].claims) {
        const Holding* holding = view_.FindHolding(claim);
        if (holding == nullptr) continue;
        Holding other = *holding;
        other.claim_uid = "before " + claim;
        fleet.Hold(std::make_shared<const Holding>(std::move(other)));
      }
    }
    return fleet;
  }

  int Size(std::size_t gang) const {
    int chips = 0;
    for (const auto& [node, mask] : chips_[gang]) chips += std::popcount(mask);
    return chips;
  }

  void AddChipsOf(const Placement& placement, const GangSpec& gang, ChipsByNode& chips) const {
    for (const auto& holding : placement.Holdings(gang, now_)) AddChips(view_, *holding, chips);
  }

  // Adds the sets that make room for the gang, too.
  void Extend(const Ended& set, const ClusterState& fleet,
              const std::shared_ptr<const GangSpec>& gang) {
    Ended rest;
    std::vector<RunningGang> others;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (std::ranges::binary_search(set, i)) continue;
      rest.push_back(i);
      others.push_back(runs_[i]);
    }
    Ended all(others.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto placement = place_(Without(fleet, others, all), gang);
    if (!placement) {
      why_ = gang == wanted_
                 ? std::string("it has none even without all gangs that may move")
                 : fmt::format("{} would have to move, and has no other place", gang->Describe());
      return;
    }
    const RoomByEnding room(fleet, *gang, *placement, others, now_, EndOrder::kLeastWork);
    if (!room.known()) {
      why_ = fmt::format("the pods of {} ask for different numbers of chips, or for parts of chips",
                         gang->Describe());
      return;
    }
    std::vector<Ended> sets;
    if (room.parts() == 1) sets = room.ForOne();
    if (room.parts() > 1) sets.push_back(room.ForAll().ended);
    if (sets.size() > kSetsForOneMost) sets.resize(kSetsForOneMost);
    for (const Ended& more : sets) {
      if (more.empty()) continue;
      Ended larger = set;
      for (const std::size_t i : more) larger.push_back(rest[i]);
      std::ranges::sort(larger);
      if (larger.size() > bounds_.moves) {
        why_ = fmt::format("{} gangs would have to move, and at most {} may", larger.size(),
                           bounds_.moves);
      } else if (seen_.insert(larger).second) {
        open_.insert({CostOf(larger), std::move(larger)});
      }
    }
  }

  // Leaves out moves that nobody needs, and orders the rest so that each place is free in time.
  // Without such an order there is no plan.
  std::optional<Defragmentation> Ordered(Placement place, std::vector<Target> targets) {
    ChipsByNode wanted;
    AddChipsOf(place, *wanted_, wanted);
    const auto is_needed = [&](std::size_t gang) {
      return Overlap(chips_[gang], wanted) || std::ranges::any_of(targets, [&](const Target& one) {
               return one.gang != gang && Overlap(chips_[gang], one.chips);
             });
    };
    while (std::erase_if(targets, [&](const Target& one) { return !is_needed(one.gang); }) != 0) {
    }
    Defragmentation plan = {.moves = {}, .wanted = std::move(place), .cost = 0};
    for (const Target& one : targets) plan.cost += runs_[one.gang].work;
    while (!targets.empty()) {
      const auto next = std::ranges::find_if(targets, [&](const Target& one) {
        return std::ranges::none_of(targets, [&](const Target& other) {
          return other.gang != one.gang && Overlap(one.chips, chips_[other.gang]);
        });
      });
      if (next == targets.end()) {
        why_ = "the gangs that would have to move wait for each other's places";
        return std::nullopt;
      }
      plan.moves.push_back({.gang = next->gang, .to = std::move(next->to)});
      targets.erase(next);
    }
    return plan;
  }

  const ClusterState& view_;
  const std::shared_ptr<const GangSpec>& wanted_;
  const std::span<const MovableGang> movable_;
  const MoveBounds bounds_;
  const WallTime now_;
  const PlaceOneFunction place_;
  std::vector<RunningGang> runs_;
  std::vector<ChipsByNode> chips_;
  std::set<std::pair<std::int64_t, Ended>> open_;  // sets to be tried, with their costs
  std::set<Ended> seen_;
  std::string why_ = "no set of gangs makes room";
};

}  // namespace

absl::StatusOr<Defragmentation> PlanMoves(const ClusterState& view,
                                          const std::shared_ptr<const GangSpec>& wanted,
                                          std::span<const MovableGang> movable,
                                          const MoveBounds& bounds, WallTime now,
                                          PlaceOneFunction place) {
  return MoveSearch(view, wanted, movable, bounds, now, place).Find();
}

}  // namespace tahoma::controller
