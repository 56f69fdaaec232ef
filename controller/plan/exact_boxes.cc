// Finds places for the boxes of a gang side by side.

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "controller/plan/box_around.h"
#include "controller/plan/box_packing.h"
#include "controller/plan/exact_search.h"
#include "controller/plan/fleet_index.h"
#include "controller/plan/ring_turns.h"

namespace tahoma::controller {
namespace {

using Kind = ExactAnswer::Kind;

// A place of a box, with layers that the pods fill.
struct Spot {
  DomainId domain;
  const torus::Box* place = nullptr;
};

// The part of a node that pods of chosen boxes take beside chips.
struct TakenBeside {
  std::shared_ptr<const kube::NodeUse> use;
  std::shared_ptr<const std::vector<HeldOther>> others;
};

// Boxes with equal pods.
struct BoxType {
  std::vector<int> boxes;
  std::vector<Spot> spots;  // of a hard type all, else one in each of enough domains
  std::size_t domains = 0;  // with a spot
  bool easy = false;        // placed after the others, see exact_search.h
};

class BoxAssignment {
 public:
  BoxAssignment(const CompiledGang& gang, const std::vector<CompiledMember>& members,
                const FleetIndex& index, MemberFitter& fitter, const FleetView& view, WallTime now,
                bool write)
      : gang_(gang),
        members_(members),
        index_(index),
        fitter_(fitter),
        view_(view),
        now_(now),
        write_(write) {}

  ExactAnswer Find();

 private:
  using Layered = std::vector<MemberPlacement>;

  void MakeTypes();
  void FindSpots(BoxType& type);
  // Calls f for the domains that may have room, until it returns false.
  template <typename F>
  void ForEachDomain(F&& f) const;
  // Adds all places of such a box in the domain, or the first.
  bool AddSpots(const BoxType& type, DomainId id, bool all, std::vector<Spot>& spots);
  // Returns the chips of the domain on nodes that admit some pod of the box.
  torus::ChipMask OpenTo(int box, const DomainState& domain) const;
  const CompiledMember& Member(int box, std::size_t i) const {
    return members_[static_cast<std::size_t>(box) * gang_.members_per_box() + i];
  }
  // Fills the layers from `layer` on with the box's pods from `first` on.
  bool FillLayers(int box, std::size_t first, std::span<const Room> layers, std::size_t layer,
                  Layered* placed);
  // Returns whether the box's pods fill the place; writes them to `placed` unless nullptr.
  bool Fill(int box, const Spot& spot, Layered* placed);
  bool Follows(int box, std::size_t i) const;
  bool FollowersFit(int box, std::span<const Room> layers, Layered* placed);
  bool HaveEnough(int box, std::span<const Room> layers);
  // Chooses the place for the box, beside the boxes that are chosen. Returns false, and changes
  // nothing, where its pods find too little beside chips; then `undo` is empty.
  using Undo = std::vector<std::pair<NodeId, std::optional<TakenBeside>>>;
  bool Choose(int box, const Spot& spot, Layered* placed, Undo& undo);
  void Unchoose(int box, const Spot& spot, const Undo& undo);
  std::vector<NodeId> NodesOf(const Spot& spot) const;
  // The nodes of a place: its domain, and the first and the number of its layers.
  using Layers = std::tuple<DomainId, int, int>;
  static Layers LayersOf(const Spot& spot) {
    return {spot.domain, spot.place->origin.z, spot.place->size.extent(torus::Axis::kZ)};
  }
  void PutEasyLast();
  bool EnoughSpots();
  bool Next(std::size_t at, std::size_t from);
  bool PlaceEasy();
  bool IsFree(const Spot& spot) const;
  std::optional<Placement> MakePlacement();
  ExactAnswer Answer(Kind kind);
  std::vector<std::size_t> RanksOf(int box) const;

  const CompiledGang& gang_;
  const std::vector<CompiledMember>& members_;
  const FleetIndex& index_;
  MemberFitter& fitter_;
  const FleetView& view_;
  WallTime now_;
  bool write_;
  std::vector<BoxType> types_;
  std::vector<std::size_t> easy_;
  std::vector<std::pair<std::size_t, int>> hard_;  // type and box
  std::map<DomainId, torus::ChipMask> taken_;
  std::map<NodeId, TakenBeside> beside_;  // of chosen boxes
  std::vector<TakenBeside> filled_;       // by layer of the box that was filled last
  bool unsure_ = false;         // a box found too little beside another, which might have left more
  bool alike_ = true;           // what pods need beside chips does not depend on their chips
  bool chips_matter_ = false;   // some box found its nodes full of chosen boxes
  std::map<int, Spot> chosen_;  // by box
  std::vector<std::size_t> layer_of_;  // by pod of the box that is being filled
  int steps_ = ExactSearch::kStepsMax;
  ExactAnswer answer_;
};

void BoxAssignment::MakeTypes() {
  std::map<std::vector<std::size_t>, std::size_t> known;
  for (int box = 0; box < gang_.boxes; ++box) {
    std::vector<std::size_t> key;
    for (std::size_t i = 0; i < gang_.members_per_box(); ++i) {
      const CompiledMember& member = Member(box, i);
      // Pods that share claims are compared with no others.
      key.push_back(member.beside.empty() ? member.alike : members_.size() + member.alike);
    }
    const auto [at, added] = known.emplace(std::move(key), types_.size());
    if (added) types_.emplace_back();
    types_[at->second].boxes.push_back(box);
  }
}

template <typename F>
void BoxAssignment::ForEachDomain(F&& f) const {
  const ClusterState& state = view_.state();
  absl::flat_hash_set<DomainId> seen;
  const auto visit = [&](DomainId id) {
    const DomainState& domain = state.domain(id);
    if (!seen.insert(id).second) return true;  // the index has a domain once for each size
    if (domain.name.empty() || !domain.torus_known) return true;
    return !view_.MayUse(domain, *gang_.spec, now_) || f(id);
  };
  if (view_.kind() != FleetKind::kNow) {
    for (std::size_t i = 0; i < state.domain_count(); ++i) {
      if (!visit(DomainId(i))) return;
    }
    return;
  }
  std::vector<std::size_t> keys;
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
    const bool wanted = std::any_of(gang_.shapes.begin(), gang_.shapes.end(), [&](const auto& one) {
      return one.Sorted() == box.size.Sorted();
    });
    const std::size_t key = FleetIndex::BoxKey(box.size);
    if (wanted && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  index_.Visit(
      keys, [](const FleetIndex::Class&) { return true; },
      [&](DomainId id, int) { return !visit(id); });
}

torus::ChipMask BoxAssignment::OpenTo(int box, const DomainState& domain) const {
  torus::ChipMask open = 0;
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid()) continue;
    const Node& node = *view_.state().node(domain.nodes[z]).node;
    for (std::size_t i = 0; i < gang_.members_per_box(); ++i) {
      const CompiledMember& member = Member(box, i);
      if (!view_.Admits(member.spec->node, node)) continue;
      open |= kInstance << (16 * z);
      break;
    }
  }
  return open;
}

// A pod without chips of its own goes where its shared claim is.
bool BoxAssignment::Follows(int box, std::size_t i) const {
  const CompiledMember& member = Member(box, i);
  return !member.beside.empty() && member.claims.empty();
}

bool BoxAssignment::FollowersFit(int box, std::span<const Room> layers, Layered* placed) {
  const std::size_t first = static_cast<std::size_t>(box) * gang_.members_per_box();
  for (std::size_t i = 0; i < gang_.members_per_box(); ++i) {
    if (!Follows(box, i)) continue;
    const CompiledMember& member = Member(box, i);
    const std::size_t layer = layer_of_[member.beside.front() - first];
    const bool together =
        std::all_of(member.beside.begin(), member.beside.end(),
                    [&](std::size_t other) { return layer_of_[other - first] == layer; });
    const Node& node = *layers[layer].node;
    if (!together || !view_.Admits(member.spec->node, node)) return false;
    layer_of_[i] = layer;
    if (placed != nullptr) (*placed)[i] = PlacementOn(*member.spec, node);
  }
  return HaveEnough(box, layers);
}

// Returns whether each layer has what all pods there need beside chips.
bool BoxAssignment::HaveEnough(int box, std::span<const Room> layers) {
  std::vector<Room> left(layers.begin(), layers.end());
  for (std::size_t i = 0; i < gang_.members_per_box(); ++i) {
    const MemberSpec& pod = *Member(box, i).spec;
    Room& room = left[layer_of_[i]];
    if (!fitter_.HasEnough(pod, room)) return false;
    room.use = UseBeside(pod, room.use);
  }
  for (std::size_t i = 0; i < left.size(); ++i) filled_[i].use = left[i].use;
  return true;
}

bool BoxAssignment::FillLayers(int box, std::size_t first, std::span<const Room> layers,
                               std::size_t layer, Layered* placed) {
  const std::size_t count = gang_.members_per_box();
  const std::size_t before = static_cast<std::size_t>(box) * count;
  while (layer == layers.size() && first < count && Follows(box, first)) ++first;
  if (layer == layers.size()) return first == count && FollowersFit(box, layers, placed);
  const Room& room = layers[layer];
  const int chips = std::popcount(room.chips);
  std::vector<const CompiledMember*> here;
  int least = 0;
  int most = 0;
  for (std::size_t next = first;; ++next) {
    const bool torn = std::any_of(here.begin(), here.end(), [&](const CompiledMember* one) {
      return std::any_of(one->beside.begin(), one->beside.end(),
                         [&](std::size_t other) { return layer_of_[other - before] != layer; });
    });
    if (least <= chips && most >= chips && !torn && --steps_ >= 0) {
      const auto joint = fitter_.FitTogether(here, room, true);
      if (joint && FillLayers(box, next, layers, layer + 1, placed)) {
        filled_[layer].others = joint->left.others;
        for (std::size_t i = 0; placed != nullptr && i < here.size(); ++i) {
          const auto rank = static_cast<std::size_t>(here[i] - members_.data());
          MemberPlacement& one = (*placed)[rank - before];
          one = PlacementOn(*here[i]->spec, *room.node);
          one.claims = joint->claims[i];
        }
        return true;
      }
    }
    if (next == count || least > chips) return false;
    if (Follows(box, next)) continue;
    const CompiledMember& member = Member(box, next);
    const auto range = fitter_.ChipsOn(member, *room.node);
    if (!range || !view_.Admits(member.spec->node, *room.node)) return false;
    least += range->least;
    most += range->most;
    layer_of_[next] = layer;
    here.push_back(&member);
  }
}

std::vector<NodeId> BoxAssignment::NodesOf(const Spot& spot) const {
  return controller::NodesOf(view_.state().domain(spot.domain), *spot.place);
}

bool BoxAssignment::Fill(int box, const Spot& spot, Layered* placed) {
  std::vector<Room> layers;
  for (const NodeId node : NodesOf(spot)) {
    if (!node.valid()) return false;
    Room& room = layers.emplace_back(view_.RoomOn(node));
    const int z = view_.state().node(node).z;
    room.chips = static_cast<std::uint16_t>(spot.place->mask >> (16 * z) & kInstance);
    room.busy_cores.fill(0xff);  // a box is of whole chips
    if (const auto taken = beside_.find(node); taken != beside_.end()) {
      room.use = taken->second.use;
      room.others = taken->second.others;
    }
  }
  layer_of_.assign(gang_.members_per_box(), layers.size());
  filled_.assign(layers.size(), {});
  return FillLayers(box, 0, layers, 0, placed);
}

bool BoxAssignment::Choose(int box, const Spot& spot, Layered* placed, Undo& undo) {
  const std::vector<NodeId> nodes = NodesOf(spot);
  const bool shared =
      std::ranges::any_of(nodes, [&](NodeId node) { return beside_.contains(node); });
  if (!Fill(box, spot, placed)) {
    unsure_ = unsure_ || (shared && (nodes.size() > 1 || !alike_));
    return false;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto at = beside_.find(nodes[i]);
    undo.emplace_back(nodes[i], at == beside_.end() ? std::nullopt : std::optional(at->second));
    beside_[nodes[i]] = filled_[i];
  }
  taken_[spot.domain] |= spot.place->mask;
  chosen_[box] = spot;
  return true;
}

void BoxAssignment::Unchoose(int box, const Spot& spot, const Undo& undo) {
  for (const auto& [node, before] : undo) {
    if (before) {
      beside_[node] = *before;
    } else {
      beside_.erase(node);
    }
  }
  taken_[spot.domain] &= ~spot.place->mask;
  chosen_.erase(box);
}

bool BoxAssignment::AddSpots(const BoxType& type, DomainId id, bool all, std::vector<Spot>& spots) {
  const DomainState& domain = view_.state().domain(id);
  const int box = type.boxes.front();
  const torus::ChipMask free = view_.FreeIn(domain) & OpenTo(box, domain);
  const std::size_t before = spots.size();
  for (const torus::Shape& shape : gang_.shapes) {
    for (const torus::Box& place : torus::BoxTable::Of(domain.shape()).Rotations(shape)) {
      if ((place.mask & ~free) != 0 || !view_.Serves(domain, place)) continue;
      Spot spot{id, &place};
      bool fills = Fill(box, spot, nullptr);
      for (const torus::Box& turn : TurnsOf(place)) {
        if (fills) break;
        spot.place = &turn;
        fills = Fill(box, spot, nullptr);
      }
      if (fills) spots.push_back(spot);
      if (fills && !all) return true;
    }
  }
  return spots.size() > before;
}

void BoxAssignment::FindSpots(BoxType& type) {
  const auto enough = static_cast<std::size_t>(gang_.boxes);
  ForEachDomain([&](DomainId id) {
    type.domains += AddSpots(type, id, false, type.spots) ? 1U : 0U;
    return type.domains < enough && steps_ >= 0;
  });
  if (type.domains >= enough || steps_ < 0) return;
  const std::vector<Spot> first = std::exchange(type.spots, {});
  for (const Spot& one : first) AddSpots(type, one.domain, true, type.spots);
}

void BoxAssignment::PutEasyLast() {
  std::size_t left = static_cast<std::size_t>(gang_.boxes);
  for (bool found = true; found;) {
    found = false;
    for (std::size_t t = 0; t < types_.size(); ++t) {
      if (types_[t].easy || types_[t].domains < left) continue;
      types_[t].easy = true;
      easy_.push_back(t);
      left -= types_[t].boxes.size();
      found = true;
    }
  }
  for (std::size_t t = 0; t < types_.size(); ++t) {
    for (const int box : types_[t].boxes) {
      if (!types_[t].easy) hard_.emplace_back(t, box);
    }
  }
  std::stable_sort(hard_.begin(), hard_.end(), [&](const auto& a, const auto& b) {
    return types_[a.first].spots.size() < types_[b.first].spots.size();
  });
}

std::vector<std::size_t> BoxAssignment::RanksOf(int box) const {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < gang_.members_per_box(); ++i) {
    ranks.push_back(static_cast<std::size_t>(box) * gang_.members_per_box() + i);
  }
  return ranks;
}

// Returns whether the hard boxes of each type alone find room side by side.
bool BoxAssignment::EnoughSpots() {
  for (const BoxType& type : types_) {
    if (type.easy) continue;
    std::map<DomainId, std::vector<torus::ChipMask>> masks;
    for (const Spot& spot : type.spots) masks[spot.domain].push_back(spot.place->mask);
    const int wanted = static_cast<int>(type.boxes.size());
    int most = 0;
    bool exact = true;
    for (const auto& [domain, boxes] : masks) {
      most += MostBoxes(boxes, ~torus::ChipMask{0}, wanted, &exact);
    }
    if (most >= wanted || !exact) continue;
    answer_.cause = fmt::format("{} boxes like that of {} find room for {} at once", wanted,
                                RanksText(RanksOf(type.boxes.front())), most);
    return false;
  }
  return true;
}

bool BoxAssignment::IsFree(const Spot& spot) const {
  const auto at = taken_.find(spot.domain);
  return at == taken_.end() || (at->second & spot.place->mask) == 0;
}

// A place on the same nodes leaves as much beside chips as another: where the chips of other boxes
// were in nobody's way, the next place on nodes that failed need not be tried.
bool BoxAssignment::Next(std::size_t at, std::size_t from) {
  if (at == hard_.size()) return PlaceEasy();
  const auto [t, box] = hard_[at];
  const bool same = at + 1 < hard_.size() && hard_[at + 1].first == t;
  const auto& spots = types_[t].spots;
  std::map<Layers, bool> open;  // whether some place on the nodes is free
  std::set<Layers> vain;
  for (std::size_t s = from; s < spots.size(); ++s) {
    const Layers layers = LayersOf(spots[s]);
    if (vain.contains(layers)) continue;
    if (!IsFree(spots[s])) {
      open.emplace(layers, false);
      continue;
    }
    open[layers] = true;
    if (--steps_ < 0) return false;
    Undo undo;
    const bool chosen = Choose(box, spots[s], nullptr, undo);
    const bool before = std::exchange(chips_matter_, false);
    if (chosen && Next(at + 1, same ? s + 1 : 0)) return true;
    if (chosen) Unchoose(box, spots[s], undo);
    if (!chips_matter_ && alike_) vain.insert(layers);
    chips_matter_ = chips_matter_ || before;
  }
  const auto is_full = [](const auto& one) { return !one.second; };
  chips_matter_ = chips_matter_ || std::ranges::any_of(open, is_full);
  return false;
}

bool BoxAssignment::PlaceEasy() {
  for (auto type = easy_.rbegin(); type != easy_.rend(); ++type) {
    for (const int box : types_[*type].boxes) {
      const auto& spots = types_[*type].spots;
      // There are as many domains as boxes, so one is untouched.
      const auto spot = std::ranges::find_if(spots, [&](const Spot& one) {
        Undo undo;
        const auto taken = taken_.find(one.domain);
        const bool touched = taken != taken_.end() && taken->second != 0;
        return !touched && Choose(box, one, nullptr, undo);
      });
      if (spot == spots.end()) return false;
    }
  }
  return true;
}

std::optional<Placement> BoxAssignment::MakePlacement() {
  fitter_.StartDecision();
  steps_ = ExactSearch::kStepsMax;
  Placement placement;
  beside_.clear();
  const std::map<int, Spot> chosen = std::exchange(chosen_, {});
  for (const auto& [box, spot] : chosen) {
    const std::size_t first = placement.members.size();
    Layered placed(gang_.members_per_box());
    Undo undo;
    if (!Choose(box, spot, &placed, undo)) return std::nullopt;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      placed[i].rank = static_cast<int>(first + i);
      placed[i].slice = box / gang_.boxes_per_slice;
      placement.members.push_back(std::move(placed[i]));
    }
    placement.slices.push_back(SliceOn(view_.state(), spot.domain, *spot.place));
  }
  return placement;
}

ExactAnswer BoxAssignment::Answer(Kind kind) {
  answer_.kind = kind;
  if (kind == Kind::kPlaced && write_) {
    answer_.placement = MakePlacement();
    if (!answer_.placement) answer_.kind = Kind::kBoundReached;
  }
  return answer_;
}

ExactAnswer BoxAssignment::Find() {
  MakeTypes();
  alike_ = std::ranges::none_of(members_, [](const auto& one) { return one.wants_others(); });
  for (BoxType& type : types_) {
    FindSpots(type);
    if (steps_ < 0) return Answer(Kind::kBoundReached);
    if (!type.spots.empty()) continue;
    const std::vector<std::size_t> ranks = RanksOf(type.boxes.front());
    answer_.alone = ranks.front();
    answer_.cause = fmt::format("the box of {} finds no room where its pods may be, in their order",
                                RanksText(ranks));
    return Answer(Kind::kNone);
  }
  PutEasyLast();
  if (!EnoughSpots()) return Answer(Kind::kNone);
  if (Next(0, 0)) return Answer(Kind::kPlaced);
  if (steps_ < 0 || unsure_) return Answer(Kind::kBoundReached);
  answer_.cause = fmt::format("no choice of places for {} boxes leaves room for all {}",
                              hard_.size(), gang_.boxes);
  return Answer(Kind::kNone);
}

}  // namespace

ExactAnswer ExactSearch::FindBoxes(const CompiledGang& gang,
                                   const std::vector<CompiledMember>& members, WallTime now,
                                   bool write) {
  return BoxAssignment(gang, members, index_, fitter_, view_, now, write).Find();
}

}  // namespace tahoma::controller
