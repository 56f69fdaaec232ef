#include "controller/plan/room_by_ending.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>

#include "controller/plan/box_packing.h"
#include "controller/plan/fleet_index.h"
#include "controller/plan/search.h"

namespace tahoma::controller {
namespace {

using torus::ChipMask;

// Returns the chips of a pod's placement; nullopt when the pod gets a part of a chip.
std::optional<int> WholeChipsOf(const MemberPlacement& member, const Node& node) {
  std::uint16_t chips = 0;
  for (const ClaimPlacement& claim : member.claims) {
    for (const Holding::HeldDevice& device : HeldDevices(claim.allocation)) {
      if (device.admin_access) continue;
      if (node.RoleNamed(device.device).kind == DeviceKind::kCore) return std::nullopt;
      chips |= node.ChipsNamed(device.device);
    }
  }
  return std::popcount(chips);
}

// Returns whether every pod of the gang makes the same demand on its node.
bool DemandsAreAlike(const GangSpec& gang) {
  const std::string first = TextOf(gang.members.front().node);
  return std::ranges::all_of(
      gang.members, [&](const MemberSpec& member) { return TextOf(member.node) == first; });
}

// Returns the chips of the domain whose nodes may take the gang's pods.
ChipMask AdmittedIn(const ClusterState& view, const DomainState& domain, const NodeDemand* demand) {
  ChipMask admitted = 0;
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    const NodeId node = domain.nodes[z];
    if (!node.valid()) continue;
    if (demand == nullptr || demand->Admits(*view.node(node).node)) admitted |= kInstance << 16 * z;
  }
  return admitted;
}

}  // namespace

ClusterState Without(const ClusterState& view, std::span<const RunningGang> gangs,
                     std::span<const std::size_t> ended) {
  ClusterState fleet = view;
  for (const std::size_t i : ended) {
    for (const std::string& claim : gangs[i].claims) fleet.Release(claim);
    for (const PodKey& pod : gangs[i].pods) fleet.RemovePod(pod);
  }
  return fleet;
}

RoomByEnding::RoomByEnding(const ClusterState& view, const GangSpec& gang, const Placement& all,
                           std::span<const RunningGang> gangs, WallTime now, EndOrder order_of_cost)
    : order_(order_of_cost),
      gangs_(gangs.begin(), gangs.end()),
      rank_(gangs.size()),
      sites_of_(gangs.size()) {
  std::vector<std::size_t> order(gangs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::tuple(gangs_[i].work, gangs_[i].priority, -gangs_[i].begun.time_since_epoch());
  });
  for (std::size_t i = 0; i < order.size(); ++i) rank_[order[i]] = i;
  known_ = !gang.members.empty() && LearnParts(view, gang, all);
  if (known_) LearnSites(view, gang, now);
}

// Returns whether the parts are alike.
bool RoomByEnding::LearnParts(const ClusterState& view, const GangSpec& gang,
                              const Placement& all) {
  std::vector<int> chips;  // of pods, in a gang with boxes those of the first box
  for (const MemberPlacement& member : all.members) {
    const auto node = view.FindNode(member.node);
    if (!node) return false;
    const auto taken = WholeChipsOf(member, *view.node(*node).node);
    if (!taken || *taken == 0) return false;
    if (all.slices.empty() || member.slice == 0) chips.push_back(*taken);
  }
  if (all.slices.empty()) {
    parts_ = all.members.size();
    chips_ = chips.front();
    return std::ranges::all_of(chips, [&](int one) { return one == chips_; });
  }
  parts_ = all.slices.size();
  const torus::Shape& shape = all.slices.front().box.size;
  chips_ = shape.chip_count();
  const auto shapes = gang.shape_text.empty() ? torus::ShapesOf(chips_) : std::vector{shape};
  for (const torus::Shape& one : shapes) {
    for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).Rotations(one)) {
      if (std::ranges::find(sizes_, box.size) != sizes_.end()) continue;
      const int layer = box.size.extent(torus::Axis::kX) * box.size.extent(torus::Axis::kY);
      if (TileLayers(chips, box.size.extent(torus::Axis::kZ), layer)) sizes_.push_back(box.size);
    }
  }
  return !sizes_.empty();
}

void RoomByEnding::LearnSites(const ClusterState& view, const GangSpec& gang, WallTime now) {
  absl::flat_hash_map<std::string, std::size_t> gang_of;
  absl::flat_hash_set<DomainId> touched;
  for (std::size_t i = 0; i < gangs_.size(); ++i) {
    for (const std::string& claim : gangs_[i].claims) {
      gang_of[claim] = i;
      const Holding* holding = view.FindHolding(claim);
      if (holding == nullptr) continue;
      const std::string* last = nullptr;
      for (const Holding::HeldDevice& device : holding->devices) {
        if (last != nullptr && *last == device.node) continue;
        last = &device.node;
        const auto node = view.FindNode(device.node);
        if (node && view.node(*node).domain.valid()) touched.insert(view.node(*node).domain);
      }
    }
  }
  const NodeDemand* demand = DemandsAreAlike(gang) ? &gang.members.front().node : nullptr;
  for (std::size_t i = 0; i < view.domain_count(); ++i) {
    const DomainState& domain = view.domain(DomainId(i));
    const bool held = touched.contains(DomainId(i));
    if (domain.name.empty() || (!held && (parts_ == 1 || elsewhere_ >= parts_))) continue;
    if (!held && std::popcount(domain.free) < chips_) continue;
    if (!BlocksAdmit(domain, gang, now)) continue;
    Site site = {.usable = domain.present & AdmittedIn(view, domain, demand)};
    if (held) HoldIn(view, domain, gang_of, site);
    if (!held) site.usable &= domain.free;
    AddSites(domain, site);
  }
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    for (const auto& [holder, mask] : sites_[i].held) sites_of_[holder].push_back(i);
  }
}

// Finds the chips of the gangs in the domain. Chips of other gangs are not usable.
void RoomByEnding::HoldIn(const ClusterState& view, const DomainState& domain,
                          const absl::flat_hash_map<std::string, std::size_t>& gang_of,
                          Site& site) {
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid()) continue;
    const NodeState& node = view.node(domain.nodes[z]);
    for (const auto& holding : node.holdings) {
      const ChipMask chips = ChipMask{ChipsOf(*holding, *node.node)} << 16 * z;
      const auto gang = gang_of.find(holding->claim_uid);
      if (gang == gang_of.end()) {
        site.usable &= ~chips;
        continue;
      }
      const auto known = std::ranges::find(site.held, gang->second, &HeldChips::gang);
      if (known != site.held.end()) known->chips |= chips;
      if (known == site.held.end()) site.held.push_back({gang->second, chips});
    }
  }
}

// Cuts the domain into nodes where a part is a pod.
void RoomByEnding::AddSites(const DomainState& domain, const Site& whole) {
  const bool boxes = !sizes_.empty();
  for (std::size_t z = 0; z < (boxes ? 1 : domain.nodes.size()); ++z) {
    const ChipMask within = boxes ? ~ChipMask{0} : kInstance << 16 * z;
    Site site = {.usable = whole.usable & within};
    for (const HeldChips& held : whole.held) {
      if ((held.chips & site.usable) == 0) continue;
      site.held.push_back({held.gang, held.chips & site.usable});
    }
    if (std::popcount(site.usable) < chips_) continue;
    if (boxes) site.boxes = BoxesIn(domain, site.usable);
    if (boxes && site.boxes.empty()) continue;
    if (site.held.empty()) {
      elsewhere_ += static_cast<std::size_t>(PartsIn(site, site.usable));
    } else {
      sites_.push_back(std::move(site));
    }
  }
}

std::vector<ChipMask> RoomByEnding::BoxesIn(const DomainState& domain, ChipMask usable) const {
  std::vector<ChipMask> boxes;
  if (!domain.torus_known) return boxes;
  for (const torus::Box& box : torus::BoxTable::Of(domain.shape()).all()) {
    if ((box.mask & ~usable) != 0 || std::popcount(box.mask) != chips_) continue;
    if (std::ranges::find(sizes_, box.size) == sizes_.end()) continue;
    if (domain.down.Intersects(box.links) || !domain.modes.Serve(box)) continue;
    boxes.push_back(box.mask);
  }
  return boxes;
}

int RoomByEnding::PartsIn(const Site& site, ChipMask free) const {
  if (sizes_.empty()) return std::popcount(free) / chips_;
  return MostBoxes(site.boxes, free, static_cast<int>(std::min<std::size_t>(parts_, 64)));
}

// Returns the chips that are free when those gangs have ended.
ChipMask RoomByEnding::FreeOf(const Site& site, const Flags& ended) {
  ChipMask free = site.usable;
  for (const HeldChips& held : site.held) {
    if (!ended[held.gang]) free &= ~held.chips;
  }
  return free;
}

EndCost RoomByEnding::CostOf(const Ended& ended) const {
  EndCost cost = {.first = std::ssize(ended), .second = 0, .ranks = {}};
  for (const std::size_t i : ended) {
    cost.second += gangs_[i].work;
    cost.ranks.push_back(rank_[i]);
  }
  if (order_ == EndOrder::kLeastWork) std::swap(cost.first, cost.second);
  std::ranges::sort(cost.ranks);
  return cost;
}

RoomByEnding::Flags RoomByEnding::FlagsOf(const Ended& ended) const {
  Flags flags(gangs_.size());
  for (const std::size_t i : ended) flags[i] = true;
  return flags;
}

// Returns the sets that, beside `ended`, free a part more on the site.
std::vector<Ended> RoomByEnding::ToOneMore(const Site& site, const Flags& ended) const {
  std::vector<Ended> sets;
  for (const ChipMask box : site.boxes) {
    Ended set;
    for (const HeldChips& held : site.held) {
      if ((held.chips & box) != 0 && !ended[held.gang]) set.push_back(held.gang);
    }
    std::ranges::sort(set);
    if (!set.empty()) sets.push_back(std::move(set));
  }
  if (sizes_.empty()) {
    if (Ended set = FewestOnNode(site, ended); !set.empty()) sets.push_back(std::move(set));
  }
  std::ranges::sort(sets);
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return sets;
}

// Looks at sets of gangs, small sets first, until some set frees enough chips for a part more.
// Beyond the bound of steps the gangs with most chips end.
Ended RoomByEnding::FewestOnNode(const Site& site, const Flags& ended) const {
  const ChipMask free = FreeOf(site, ended);
  const int want = (std::popcount(free) / chips_ + 1) * chips_;
  if (std::popcount(site.usable) < want) return {};
  std::vector<HeldChips> held;
  for (const HeldChips& one : site.held) {
    if (!ended[one.gang]) held.push_back(one);
  }
  std::ranges::stable_sort(held, std::greater(),
                           [](const HeldChips& one) { return std::popcount(one.chips); });
  Flags all = ended;
  Ended most;  // the gangs with most chips: the fewest where no chip is shared
  for (const HeldChips& one : held) {
    if (std::popcount(FreeOf(site, all)) >= want) break;
    all[one.gang] = true;
    most.push_back(one.gang);
  }
  std::ranges::sort(most);
  Ended best = most;
  int steps = kStepsOnNodeMost;
  Flags flags = ended;
  const auto next = [&](const auto& self, std::size_t from, const Ended& set) -> void {
    if (std::popcount(FreeOf(site, flags)) >= want) {
      Ended sorted = set;
      std::ranges::sort(sorted);
      if (CostOf(sorted) < CostOf(best)) best = std::move(sorted);
      return;
    }
    for (std::size_t i = from; i < held.size() && set.size() < best.size() && --steps > 0; ++i) {
      Ended more = set;
      more.push_back(held[i].gang);
      flags[held[i].gang] = true;
      self(self, i + 1, more);
      flags[held[i].gang] = false;
    }
  };
  next(next, 0, {});
  return best;
}

std::vector<Ended> RoomByEnding::ForOne() const {
  std::vector<std::pair<EndCost, Ended>> sets;
  const Flags none(gangs_.size());
  for (const Site& site : sites_) {
    for (Ended& set : ToOneMore(site, none)) {
      EndCost cost = CostOf(set);
      sets.emplace_back(std::move(cost), std::move(set));
    }
  }
  std::ranges::sort(sets);
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  std::vector<Ended> ordered;
  for (auto& [cost, set] : sets) ordered.push_back(std::move(set));
  return ordered;
}

// Returns how many parts more have room when `more` have ended, too.
std::size_t RoomByEnding::Gain(const Ended& more, Flags& ended) const {
  std::vector<std::size_t> sites;
  for (const std::size_t i : more) {
    sites.insert(sites.end(), sites_of_[i].begin(), sites_of_[i].end());
  }
  std::ranges::sort(sites);
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  const auto parts = [&] {
    int sum = 0;
    for (const std::size_t i : sites) sum += PartsIn(sites_[i], FreeOf(sites_[i], ended));
    return sum;
  };
  const int before = parts();
  for (const std::size_t i : more) ended[i] = true;
  const int after = parts();
  for (const std::size_t i : more) ended[i] = false;
  return static_cast<std::size_t>(after - before);
}

std::size_t RoomByEnding::PartsWith(const Flags& ended) const {
  std::size_t parts = elsewhere_;
  for (const Site& site : sites_) {
    parts += static_cast<std::size_t>(PartsIn(site, FreeOf(site, ended)));
  }
  return parts;
}

// Ends the set with the least cost for each freed part, again and again.
Ended RoomByEnding::Greedy() const {
  struct Offer {
    Ended set;
    std::size_t gain = 0;
    EndCost cost;
  };
  Flags ended(gangs_.size());
  Ended chosen;
  std::vector<std::optional<Offer>> offers(sites_.size());
  std::vector<bool> old(sites_.size(), true);
  for (std::size_t have = PartsWith(ended); have < parts_;) {
    const auto is_better = [left = parts_ - have](const Offer& a, const Offer& b) {
      const auto x = static_cast<double>(std::min(a.gain, left));
      const auto y = static_cast<double>(std::min(b.gain, left));
      const double first_a = static_cast<double>(a.cost.first) / x;
      const double first_b = static_cast<double>(b.cost.first) / y;
      if (first_a != first_b) return first_a < first_b;
      const double second_a = static_cast<double>(a.cost.second) / x;
      const double second_b = static_cast<double>(b.cost.second) / y;
      return second_a != second_b ? second_a < second_b : a.cost.ranks < b.cost.ranks;
    };
    const Offer* best = nullptr;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (old[i]) offers[i].reset();
      for (Ended& set : old[i] ? ToOneMore(sites_[i], ended) : std::vector<Ended>()) {
        Offer offer = {.set = std::move(set), .gain = 0, .cost = {}};
        offer.gain = Gain(offer.set, ended);
        offer.cost = CostOf(offer.set);
        if (offer.gain == 0 || (offers[i] && !is_better(offer, *offers[i]))) continue;
        offers[i] = std::move(offer);
      }
      old[i] = false;
      if (offers[i] && (best == nullptr || is_better(*offers[i], *best))) best = &*offers[i];
    }
    if (best == nullptr) return {};
    have += best->gain;
    for (const std::size_t i : best->set) {
      ended[i] = true;
      chosen.push_back(i);
      for (const std::size_t site : sites_of_[i]) old[site] = true;
    }
  }
  std::ranges::sort(chosen);
  return chosen;
}

// Lets gangs stay that are not needed, gangs with most work first.
void RoomByEnding::Spare(Ended& chosen) const {
  Ended order = chosen;
  std::ranges::sort(order, std::greater(), [&](std::size_t i) { return rank_[i]; });
  Flags ended = FlagsOf(chosen);
  std::size_t parts = PartsWith(ended);
  for (const std::size_t i : order) {
    ended[i] = false;
    const std::size_t lost = Gain({i}, ended);
    if (parts - lost < parts_) {
      ended[i] = true;
      continue;
    }
    parts -= lost;
    std::erase(chosen, i);
  }
}

// Compares all sets that may be cheaper than a known set, up to a bound of steps.
class RoomByEnding::Comparison {
 public:
  Comparison(const RoomByEnding& room, Ended known)
      : room_(room), best_(std::move(known)), cost_(room.CostOf(best_)) {
    for (std::size_t i = 0; i < room.gangs_.size(); ++i) {
      if (!room.sites_of_[i].empty()) order_.push_back(i);
    }
    std::ranges::sort(order_, {}, [&](std::size_t i) { return room.rank_[i]; });
    // A part that a gang's end frees has a chip of the gang.
    most_.resize(order_.size() + 1);
    for (std::size_t i = order_.size(); i-- > 0;) {
      std::size_t chips = 0;
      for (const std::size_t site : room.sites_of_[order_[i]]) {
        const auto& held = room.sites_[site].held;
        const auto own = std::ranges::find(held, order_[i], &HeldChips::gang);
        chips += static_cast<std::size_t>(std::popcount(own->chips));
      }
      most_[i] = std::max(most_[i + 1], chips);
    }
  }

  Choice Run() {
    Flags ended(room_.gangs_.size());
    Next(0, {}, 0, room_.PartsWith(ended), ended);
    return {.ended = best_, .cheapest = steps_ > 0};
  }

 private:
  void Next(std::size_t from, const Ended& set, std::int64_t work, std::size_t parts,
            Flags& ended) {
    if (parts >= room_.parts_) {
      Ended sorted = set;
      std::ranges::sort(sorted);
      EndCost cost = room_.CostOf(sorted);
      if (cost < cost_) std::tie(best_, cost_) = std::pair(std::move(sorted), std::move(cost));
      return;
    }
    const std::size_t left = room_.parts_ - parts;
    for (std::size_t i = from; i < order_.size() && steps_ > 0; ++i, --steps_) {
      const std::int64_t with = work + room_.gangs_[order_[i]].work;  // the rest lose no less
      const auto size = static_cast<std::int64_t>(set.size());
      if (room_.order_ == EndOrder::kLeastWork) {
        if (with > cost_.first) return;
      } else {
        const auto more = static_cast<std::int64_t>((left + most_[i] - 1) / most_[i]);
        if (size + more > cost_.first) return;
        if (size + 1 == cost_.first && with > cost_.second) return;
      }
      Ended larger = set;
      larger.push_back(order_[i]);
      const std::size_t gain = room_.Gain({order_[i]}, ended);
      ended[order_[i]] = true;
      Next(i + 1, larger, with, parts + gain, ended);
      ended[order_[i]] = false;
    }
  }

  const RoomByEnding& room_;
  Ended best_;
  EndCost cost_;
  std::vector<std::size_t> order_;  // the gangs that hold chips somewhere, by rank
  std::vector<std::size_t> most_;   // from that gang on, the most parts that a gang frees
  int steps_ = kStepsMost;
};

RoomByEnding::Choice RoomByEnding::ForAll() const {
  Ended known = Greedy();
  if (known.empty()) return {};
  Spare(known);
  Choice choice = Comparison(*this, std::move(known)).Run();
  Spare(choice.ended);
  return choice;
}

}  // namespace tahoma::controller
