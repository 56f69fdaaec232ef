#include "controller/plan/victims.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tahoma::controller {
namespace {

class Choosing {
 public:
  Choosing(const ClusterState& view, const GangSpec& gang, std::span<const RunningGang> among,
           WallTime now, PlaceFunction place)
      : view_(view), gang_(gang), among_(among), now_(now), place_(place) {}

  std::optional<Placement> PlaceWithout(const Ended& ended) const {
    return place_(Without(view_, among_, ended));
  }

  // Returns the victims if the gang has a place without them: only those that are in its way,
  // unless others hold something that it needs beside chips.
  std::optional<Victims> Try(const Ended& ended) const {
    auto placement = PlaceWithout(ended);
    if (!placement) return std::nullopt;
    Ended in_way = InTheWay(*placement, ended);
    if (in_way.size() < ended.size()) {
      if (auto smaller = PlaceWithout(in_way)) {
        return Victims{.gangs = std::move(in_way), .placement = *std::move(smaller)};
      }
    }
    return Victims{.gangs = ended, .placement = *std::move(placement)};
  }

  // Lets victims stay one by one, those with most work first, where the gang has a place all the
  // same.
  void Spare(Victims& victims) const {
    Ended order = victims.gangs;
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return among_[i].work; });
    if (order.size() > kSparedMost) order.resize(kSparedMost);
    for (const std::size_t spared : order) {
      Ended rest = victims.gangs;
      if (std::erase(rest, spared) == 0) continue;  // another attempt has spared it
      if (auto fewer = Try(rest)) victims = *std::move(fewer);
    }
  }

 private:
  // Returns those of the gangs that hold chips of the placement, wholly or in part.
  Ended InTheWay(const Placement& placement, const Ended& ended) const {
    absl::flat_hash_map<std::string, std::size_t> gang_of;
    for (const std::size_t i : ended) {
      for (const std::string& claim : among_[i].claims) gang_of[claim] = i;
    }
    std::map<std::string, std::uint16_t> taken;  // by node
    for (const auto& holding : placement.Holdings(gang_, now_)) {
      for (const Holding::HeldDevice& device : holding->devices) {
        const auto id = view_.FindNode(device.node);
        if (device.admin_access || !id) continue;
        taken[device.node] |= view_.node(*id).node->ChipsNamed(device.device);
      }
    }
    std::set<std::size_t> found;
    for (const auto& [name, chips] : taken) {
      const NodeState& node = view_.node(*view_.FindNode(name));
      for (const auto& other : node.holdings) {
        const auto gang = gang_of.find(other->claim_uid);
        if (gang == gang_of.end() || found.contains(gang->second)) continue;
        if ((ChipsOf(*other, *node.node) & chips) != 0) found.insert(gang->second);
      }
    }
    return {found.begin(), found.end()};
  }

  const ClusterState& view_;
  const GangSpec& gang_;
  const std::span<const RunningGang> among_;
  const WallTime now_;
  const PlaceFunction place_;
};

}  // namespace

std::optional<Victims> ChooseVictims(const ClusterState& view, const GangSpec& gang,
                                     std::span<const RunningGang> among, WallTime now,
                                     PlaceFunction place) {
  const Choosing choosing(view, gang, among, now, place);
  if (auto placement = place(view)) {
    return Victims{.gangs = {}, .placement = *std::move(placement), .fewest = true};
  }
  if (among.empty()) return std::nullopt;
  Ended all(among.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto without_all = choosing.PlaceWithout(all);
  if (!without_all) return std::nullopt;
  const RoomByEnding room(view, gang, *without_all, among, now);
  if (room.known() && room.parts() == 1) {
    const std::vector<Ended> sets = room.ForOne();
    for (std::size_t i = 0; i < std::min(sets.size(), kPlacesMost); ++i) {
      auto victims = choosing.Try(sets[i]);
      if (!victims) continue;
      victims->fewest = victims->gangs.size() == sets.front().size();
      return victims;
    }
  } else if (room.known()) {
    const RoomByEnding::Choice choice = room.ForAll();
    if (auto victims = choosing.Try(choice.ended)) {
      // None of the choice's own could stay: too few chips would be free.
      const bool same = victims->gangs.size() == choice.ended.size();
      if (!same) choosing.Spare(*victims);
      victims->fewest = same && choice.cheapest;
      return victims;
    }
  }
  auto victims = choosing.Try(all);
  if (victims) choosing.Spare(*victims);
  return victims;
}

}  // namespace tahoma::controller
