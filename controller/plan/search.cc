#include "controller/plan/search.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "controller/plan/box_around.h"
#include "controller/plan/box_packing.h"
#include "controller/plan/order.h"
#include "controller/plan/ring_turns.h"
#include "controller/plan/score.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// How many domains of equal rank have their end times compared.
constexpr std::size_t kEndCandidates = 32;

// Returns all distinct orders of a shape's sides.
std::vector<torus::Shape> Rotations(const torus::Shape& shape) {
  std::array<int, 3> sides = {shape.extent(torus::Axis::kX), shape.extent(torus::Axis::kY),
                              shape.extent(torus::Axis::kZ)};
  std::sort(sides.begin(), sides.end());
  std::vector<torus::Shape> rotations;
  do {
    rotations.push_back(*torus::Shape::Create(sides[0], sides[1], sides[2]));
  } while (std::next_permutation(sides.begin(), sides.end()));
  return rotations;
}

int LayerChips(const torus::Shape& size) {
  return size.extent(torus::Axis::kX) * size.extent(torus::Axis::kY);
}

// Returns how much later the domain becomes wholly free if a gang that runs until `end` is placed
// there.
std::chrono::nanoseconds Extension(const DomainState& domain, WallTime now, WallTime end) {
  if (domain.end_unknown) return std::chrono::nanoseconds(0);
  const WallTime free_at = std::max(now, domain.end.value_or(now));
  return std::max(std::chrono::nanoseconds(0), end - free_at);
}

// Returns whether the box lies in `open`, works, and is of one of the sizes.
bool Allows(const DomainState& domain, torus::ChipMask open, const std::vector<torus::Shape>& sizes,
            const torus::Box& place) {
  return (place.mask & ~open) == 0 && !domain.down.Intersects(place.links) &&
         domain.modes.Serve(place) &&
         std::find(sizes.begin(), sizes.end(), place.size) != sizes.end();
}

// Returns how many of `others` boxes can stay free when one of `places` is taken. An untied box may
// be taken anywhere: then the answer is the best packing less one.
int MostBeside(std::span<const torus::ChipMask> boxes, torus::ChipMask free, int others, bool tied,
               std::span<const torus::Box* const> places) {
  if (!tied) return MostBoxes(boxes, free, others + 1) - 1;
  int most = 0;
  for (const torus::Box* place : places) {
    most = std::max(most, MostBoxes(boxes, free & ~place->mask, others));
  }
  return most;
}

}  // namespace

std::optional<std::vector<int>> TileLayers(std::span<const int> demands, int layers,
                                           int per_layer) {
  std::vector<int> of_member;
  int layer = 0;
  int used = 0;
  for (const int demand : demands) {
    if (demand > 0 && used == per_layer) {
      ++layer;
      used = 0;
    }
    if (used + demand > per_layer || layer >= layers) return std::nullopt;
    used += demand;
    of_member.push_back(layer);
  }
  if (layer != layers - 1 || used != per_layer) return std::nullopt;
  return of_member;
}

bool Search::HoldsSome(const CompiledGang& gang) const {
  return std::any_of(gang.members.begin(), gang.members.end(), [&](const CompiledMember& member) {
    return !member.pinned_node.empty() ||
           std::any_of(member.claims.begin(), member.claims.end(), [&](const CompiledClaim& claim) {
             return state_.FindHolding(claim.spec->uid) != nullptr;
           });
  });
}

Kept Search::KeptOf(const CompiledMember& member) const {
  Kept kept;
  if (member.pinned_node.empty()) return kept;
  const auto domain_of = [&](const std::string& name) {
    const auto id = state_.FindNode(name);
    return id && state_.node(*id).node != nullptr ? state_.node(*id).domain : DomainId();
  };
  kept.domain = domain_of(member.pinned_node);
  kept.boxable = kept.domain.valid();
  for (const std::string& uid : member.kept) {
    const Holding* held = state_.FindHolding(uid);
    if (held == nullptr) continue;
    for (const Holding::HeldDevice& device : held->devices) {
      if (device.admin_access) continue;
      kept.boxable = kept.boxable && domain_of(device.node) == kept.domain;
      if (!kept.boxable) return kept;
      const NodeState& node = state_.node(*state_.FindNode(device.node));
      kept.boxable = node.node->RoleNamed(device.device).kind != DeviceKind::kCore;
      kept.chips |= torus::ChipMask{node.node->ChipsNamed(device.device)} << (16 * node.z);
    }
  }
  return kept;
}

void Search::CountKept(const CompiledGang& gang) {
  kept_.clear();
  kept_of_box_.assign(static_cast<std::size_t>(gang.boxes), {});
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Kept& one = kept_.emplace_back(KeptOf(members_[i]));
    Kept& all = kept_of_box_[i / gang.members_per_box()];
    const bool apart = one.domain.valid() && all.domain.valid() && one.domain != all.domain;
    all.boxable = all.boxable && one.boxable && !apart;
    if (one.domain.valid()) all.domain = one.domain;
    all.chips |= one.chips;
  }
}

// Drops claims that are allocated in `state_` from the members, and pins the members to their
// nodes. Fails when a member is pinned to two nodes.
absl::Status Search::Resolve(const CompiledGang& gang) {
  members_ = gang.members;
  const auto pin = [](CompiledMember& member, const std::string& node) {
    if (!member.pinned_node.empty() && member.pinned_node != node) {
      return InvalidArgument("claims of pod {} are allocated on different nodes, {} and {}",
                             ToString(member.spec->pod), member.pinned_node, node);
    }
    member.pinned_node = node;
    return absl::OkStatus();
  };
  for (CompiledMember& member : members_) {
    for (auto claim = member.claims.begin(); claim != member.claims.end();) {
      const Holding* held = state_.FindHolding(claim->spec->uid);
      if (held == nullptr || (held->devices.empty() && held->others.empty())) {
        ++claim;
        continue;
      }
      TAHOMA_RETURN_IF_ERROR(
          pin(member, held->devices.empty() ? held->others_node : held->devices.front().node));
      member.kept.push_back(claim->spec->uid);
      claim = member.claims.erase(claim);
    }
  }
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    for (const std::size_t other : member->beside) {
      if (member->pinned_node.empty()) continue;
      TAHOMA_RETURN_IF_ERROR(pin(members_[other], member->pinned_node));
    }
  }
  return absl::OkStatus();
}

const CompiledMember& Search::Member(const CompiledGang& gang, int box, std::size_t index) const {
  return members_[static_cast<std::size_t>(box) * gang.members_per_box() + index];
}

std::optional<Placement> Search::Place(const CompiledGang& gang, WallTime now) {
  obstacle_ = {};
  demands_.clear();
  fitter_.StartDecision();
  obstacle_.contradiction = Resolve(gang);
  if (!obstacle_.contradiction.ok()) return std::nullopt;
  if (!gang.shapes.empty()) CountKept(gang);
  const ClusterState before = state_;
  Placement placement;
  const bool placed = gang.shapes.empty() ? PlaceMembers(gang, before, now, placement)
                                          : PlaceBoxes(gang, before, now, placement);
  if (placed && KeepRules(gang, placement)) return placement;
  state_ = before;
  index_.Sync(state_);
  obstacle_.rules_broken = placed;
  if (placed) return std::nullopt;
  obstacle_.contradiction = Resolve(gang);  // PlaceInOrder has tied pods to nodes
  return obstacle_.contradiction.ok() ? PlaceExactly(gang, now) : std::nullopt;
}

bool Search::KeepRules(const CompiledGang& gang, const Placement& placement) const {
  if (gang.spec->rules.empty() || gang.shapes.empty()) return true;  // PlaceInOrder has kept rules
  PlaceKeeper keeper(gang.spec->rules, placement.members.size());
  for (std::size_t i = 0; i < placement.members.size(); ++i) {
    const Node& node = *state_.node(*state_.FindNode(placement.members[i].node)).node;
    if (!keeper.MayPut(i, node)) return false;
    keeper.Put(i, node);
  }
  return keeper.AllKept();
}

bool Search::OrderIsEnough(const CompiledGang& gang) {
  if (gang.boxes > 1 || !gang.spec->rules.empty()) return false;
  const auto is_plain = [&](const CompiledMember& member) {
    const bool tied = member.spec->node.ties();
    if (member.alike != 0 || !member.beside.empty() || member.chooses) return false;
    if (member.wants_others()) return false;
    if (member.claims.size() > 1 || (tied && !gang.shapes.empty())) return false;
    return member.claims.empty() || (member.claims.front().requests.size() == 1 &&
                                     member.claims.front().constraints.empty());
  };
  if (!std::all_of(members_.begin(), members_.end(), is_plain)) return false;
  // Cores of either size: which chips are started is a choice.
  const std::vector<Demand> demands = DemandsOf(members_.front());
  return members_.size() == 1 || std::all_of(demands.begin(), demands.end(), [](const Demand& one) {
           return one.cores == 0 || one.lnc1 != one.lnc2;
         });
}

std::optional<Placement> Search::PlaceExactly(const CompiledGang& gang, WallTime now) {
  const bool keeps = !gang.shapes.empty() && HoldsSome(gang);
  if (keeps || OrderIsEnough(gang)) {
    obstacle_.bound_reached = fitter_.gave_up();
    return std::nullopt;
  }
  ExactAnswer answer = Prove(gang, FleetKind::kNow, now, true);
  if (answer.kind == ExactAnswer::Kind::kPlaced) {
    obstacle_.rules_broken = !KeepRules(gang, *answer.placement);
    if (obstacle_.rules_broken) return std::nullopt;
    Hold(*gang.spec, answer.placement->members, now);
    return std::move(answer.placement);
  }
  obstacle_.bound_reached = answer.kind == ExactAnswer::Kind::kBoundReached;
  obstacle_.proof = std::move(answer.cause);
  if (answer.alone) {
    obstacle_.member = *answer.alone;
    if (!gang.shapes.empty()) {
      obstacle_.box = static_cast<int>(*answer.alone / gang.members_per_box());
      obstacle_.boxes_found = 0;
    }
  }
  return std::nullopt;
}

void Search::Hold(const GangSpec& gang, const std::vector<MemberPlacement>& members, WallTime now) {
  Placement part;
  part.members = members;
  for (auto& holding : part.Holdings(gang, now)) {
    CheckNobodyHolds(state_, *holding);
    state_.Hold(std::move(holding));
  }
  for (const MemberPlacement& member : members) {
    if (member.needs != nullptr) state_.PutPod(member.pod, member.node, member.needs);
  }
  index_.Sync(state_);
}

template <typename Try>
bool Search::Visit(std::span<const std::size_t> keys, const Among& among, const GangSpec& gang,
                   WallTime now, const Try& attempt) {
  const std::optional<std::vector<DomainId>> hosts = DomainsOfBlock(state_, gang);
  const auto& domains = hosts ? hosts : among.domains;
  const auto visit_all = [&](const FleetIndex::VisitDomain& visit) {
    const auto admitted = [&](DomainId domain, int cost) {
      return BlocksAdmit(state_.domain(domain), gang, now) && visit(domain, cost);
    };
    return domains ? index_.VisitAmong(*domains, keys, admitted)
                   : index_.Visit(keys, among.classes, admitted);
  };
  if (!gang.max_runtime) return visit_all([&](DomainId domain, int) { return attempt(domain); });
  const WallTime end = EndOf(now, *gang.max_runtime);
  std::vector<DomainId> batch;
  int batch_cost = -1;
  const auto flush = [&] {
    std::stable_sort(batch.begin(), batch.end(), [&](DomainId a, DomainId b) {
      return Extension(state_.domain(a), now, end) < Extension(state_.domain(b), now, end);
    });
    const bool found = std::any_of(batch.begin(), batch.end(), attempt);
    batch.clear();
    return found;
  };
  const bool found = visit_all([&](DomainId domain, int cost) {
    if ((cost != batch_cost || batch.size() == kEndCandidates) && flush()) return true;
    batch_cost = cost;
    batch.push_back(domain);
    return false;
  });
  return found || flush();
}

std::optional<MemberFitter::Demand> Search::DemandOf(const CompiledMember& member,
                                                     const Node& node) {
  if (fitter_.ReadsOwn(member, node)) {
    return fitter_.DemandOn(member, node, obstacle_.selector_error);
  }
  // Members that lost claims to Resolve do not share their demand with others.
  const bool whole = member.pinned_node.empty();
  const std::pair key(member.alike, node.family.get());
  if (whole) {
    if (const auto found = demands_.find(key); found != demands_.end()) return found->second;
  }
  const auto demand = fitter_.DemandOn(member, node, obstacle_.selector_error);
  if (whole) demands_.emplace(key, demand);
  return demand;
}

std::optional<std::vector<int>> Search::ChipsOn(const CompiledGang& gang, int box,
                                                const Node& node) {
  std::vector<int> chips;
  for (std::size_t i = 0; i < gang.members_per_box(); ++i) {
    const auto& member =
        members_.empty() ? gang.members[static_cast<std::size_t>(box) * gang.members_per_box() + i]
                         : Member(gang, box, i);
    const auto demand = DemandOf(member, node);
    const std::size_t index = static_cast<std::size_t>(box) * gang.members_per_box() + i;
    if (!demand) {
      obstacle_.member = std::max(obstacle_.member, index);
      return std::nullopt;
    }
    chips.push_back(demand->chips + (kept_.empty() ? 0 : torus::ChipCount(kept_[index].chips)));
  }
  return chips;
}

bool Search::Contains(const CompiledGang& gang, int box, const DomainState& domain,
                      const torus::Box& place) {
  const NodeId first = domain.nodes[static_cast<std::size_t>(place.origin.z)];
  const auto chips = first.valid() ? ChipsOn(gang, box, *state_.node(first).node) : std::nullopt;
  if (!chips) return false;
  const auto layers =
      TileLayers(*chips, place.size.extent(torus::Axis::kZ), LayerChips(place.size));
  if (!layers) return false;
  TAHOMA_CHECK(layers->size() == chips->size());  // one for each pod of the box
  for (std::size_t i = 0; i < chips->size(); ++i) {
    const int z = (place.origin.z + (*layers)[i]) % domain.shape().extent(torus::Axis::kZ);
    const torus::ChipMask its = place.mask & kInstance << (16 * z);
    const std::size_t index = static_cast<std::size_t>(box) * gang.members_per_box() + i;
    if ((kept_[index].chips & ~its) != 0) return false;
  }
  return true;
}

std::vector<torus::Shape> Search::SizesOn(const CompiledGang& gang, int box, const Node& node) {
  const auto demands = ChipsOn(gang, box, node);
  if (!demands) return {};
  const int sum = std::accumulate(demands->begin(), demands->end(), 0);
  if (sum != gang.chips_per_box()) {
    const int least = obstacle_.chips_mismatch ? obstacle_.chips_mismatch->first : sum;
    obstacle_.chips_mismatch = {std::min(sum, least), gang.chips_per_box()};
    return {};
  }
  std::vector<torus::Shape> sizes;
  for (const torus::Shape& shape : gang.shapes) {
    for (const torus::Shape& size : Rotations(shape)) {
      if (TileLayers(*demands, size.extent(torus::Axis::kZ), LayerChips(size))) {
        sizes.push_back(size);
      }
    }
  }
  if (sizes.empty()) obstacle_.spans_nodes = true;
  std::stable_sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
    return AllReduceTime(a) < AllReduceTime(b);
  });
  return sizes;
}

bool Search::BoxIsPossible(const CompiledGang& gang, int box) {
  obstacle_.box = box;
  obstacle_.member = static_cast<std::size_t>(box) * gang.members_per_box();
  obstacle_.chips_mismatch.reset();
  obstacle_.spans_nodes = false;
  bool possible = false;
  bool own = false;
  index_.ForEachClass([&](const FleetIndex::Class& nodes) {
    own = own || BoxReadsOwn(gang, box, nodes);
    possible = possible ||
               AnyNode(nodes, [&](const Node& node) { return !SizesOn(gang, box, node).empty(); });
  });
  if (own && !possible) {
    ForEachNode(PinnedDomains(gang, box), [&](const Node& node) {
      possible = possible || !SizesOn(gang, box, node).empty();
    });
  }
  return possible;
}

std::optional<std::vector<DomainId>> Search::PinnedDomains(const CompiledMember& member) {
  std::optional<std::vector<DomainId>> fewest;
  for (const CompiledClaim& claim : member.claims) {
    for (const CompiledRequest& request : claim.requests) {
      if (request.alternatives.size() != 1) continue;
      for (const SelectorSet::Pin& pin : request.alternatives.front().selectors->pins) {
        if (!index_.IsOwn(pin.attribute)) continue;
        auto domains = index_.DomainsWith(pin.attribute, pin.values);
        if (domains && (!fewest || domains->size() < fewest->size())) fewest = std::move(domains);
      }
    }
  }
  return fewest;
}

std::optional<std::vector<DomainId>> Search::PinnedDomains(const CompiledGang& gang, int box) {
  std::optional<std::vector<DomainId>> fewest;
  for (std::size_t i = 0; i < gang.members_per_box(); ++i) {
    auto domains = PinnedDomains(Member(gang, box, i));
    if (domains && (!fewest || domains->size() < fewest->size())) fewest = std::move(domains);
  }
  return fewest;
}

template <typename F>
void Search::ForEachNode(const std::optional<std::vector<DomainId>>& domains, F&& f) const {
  for (std::size_t i = 0; !domains && i < state_.node_count(); ++i) {
    const auto& node = state_.node(NodeId(i)).node;
    if (node != nullptr) f(*node);
  }
  for (std::size_t i = 0; domains && i < domains->size(); ++i) {
    for (const NodeId node : state_.domain((*domains)[i]).nodes) {
      if (node.valid()) f(*state_.node(node).node);
    }
  }
}

bool Search::BoxReadsOwn(const CompiledGang& gang, int box, const FleetIndex::Class& nodes) {
  for (std::size_t i = 0; i < gang.members_per_box(); ++i) {
    const CompiledMember& member = Member(gang, box, i);
    if (AnyNode(nodes, [&](const Node& node) { return fitter_.ReadsOwn(member, node); })) {
      return true;
    }
  }
  return false;
}

bool Search::PlaceBoxes(const CompiledGang& gang, const ClusterState& before, WallTime now,
                        Placement& placement) {
  sparing_ = false;
  if (PlaceBoxesInOrder(gang, now, placement)) return true;
  if (gang.boxes == 1) return false;
  state_ = before;
  index_.Sync(state_);
  sparing_ = true;
  return PlaceBoxesInOrder(gang, now, placement);
}

bool Search::PlaceBoxesInOrder(const CompiledGang& gang, WallTime now, Placement& placement) {
  // Boxes whose pods hold devices already are tied to a place: they come first.
  std::vector<int> order(static_cast<std::size_t>(gang.boxes));
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),
                        [&](int box) { return KeptOf(box).domain.valid(); });
  std::vector<BoxFit> fits(order.size());
  obstacle_.boxes_found = 0;
  for (const int box : order) {
    obstacle_.box = box;
    auto fit = FindBox(gang, box, now);
    if (!fit) return false;
    Hold(*gang.spec, fit->members, now);
    fits[static_cast<std::size_t>(box)] = *std::move(fit);
    ++obstacle_.boxes_found;
  }
  for (std::size_t box = 0; box < fits.size(); ++box) {
    for (MemberPlacement& member : fits[box].members) {
      member.rank = static_cast<int>(placement.members.size());
      member.slice = static_cast<int>(box) / gang.boxes_per_slice;
      placement.members.push_back(std::move(member));
    }
    placement.slices.push_back(std::move(fits[box].slice));
  }
  return true;
}

std::optional<Search::BoxFit> Search::FindBox(const CompiledGang& gang, int box, WallTime now) {
  std::vector<torus::Shape> sizes;
  for (const torus::Shape& shape : gang.shapes) {
    for (const torus::Shape& size : Rotations(shape)) sizes.push_back(size);
  }
  std::vector<collective::Picoseconds> times;
  for (const torus::Shape& size : sizes) times.push_back(AllReduceTime(size));
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());

  std::optional<BoxFit> found;
  if (const Kept& kept = KeptOf(box); kept.domain.valid() || !kept.boxable) {
    for (std::size_t i = 0; i < times.size() && kept.boxable && !found; ++i) {
      found = TryDomain(gang, box, kept.domain, times[i]);
    }
    return found;
  }
  Among among{.domains = PinnedDomains(gang, box), .classes = {}};
  for (const collective::Picoseconds time : times) {
    Keys keys;
    for (const torus::Shape& size : sizes) {
      if (AllReduceTime(size) == time) keys.push_back(FleetIndex::BoxKey(size));
    }
    // Selectors that read nodes' own attributes are evaluated in TryDomain.
    among.classes = [&](const FleetIndex::Class& nodes) {
      return BoxReadsOwn(gang, box, nodes) ||
             AnyNode(nodes, [&](const Node& node) { return !SizesOn(gang, box, node).empty(); });
    };
    const bool placed = Visit(keys, among, *gang.spec, now, [&](DomainId domain) {
      found = TryDomain(gang, box, domain, time);
      return found.has_value();
    });
    if (placed) return found;
  }
  return std::nullopt;
}

std::optional<Search::BoxFit> Search::TryDomain(const CompiledGang& gang, int box, DomainId id,
                                                collective::Picoseconds time) {
  const DomainState& domain = state_.domain(id);
  std::vector<torus::Shape> sizes;
  for (const NodeId node : domain.nodes) {
    if (sizes.empty() && node.valid()) sizes = SizesOn(gang, box, *state_.node(node).node);
  }
  if (sizes.empty()) return std::nullopt;
  ++obstacle_.domains_tried;
  const auto places = Candidates(gang, box, domain, sizes, time);
  std::vector<torus::ChipMask> boxes;
  int others = 0;
  if (sparing_) {
    boxes = FreeBoxes(gang, domain, sizes);
    const bool tied = KeptOf(box).chips != 0;
    others = MostBeside(boxes, domain.free, gang.boxes - obstacle_.boxes_found - 1, tied, places);
  }
  for (const torus::Box* place : places) {
    if (MostBoxes(boxes, domain.free & ~place->mask, others) < others) continue;
    if (auto fit = TryBox(gang, box, id, *place)) return fit;
  }
  return std::nullopt;
}

std::vector<torus::ChipMask> Search::FreeBoxes(const CompiledGang& gang, const DomainState& domain,
                                               const std::vector<torus::Shape>& sizes) {
  std::vector<torus::ChipMask> masks;
  for (const torus::Shape& shape : gang.shapes) {
    for (const torus::Box& place : torus::BoxTable::Of(domain.shape()).Rotations(shape)) {
      if (Allows(domain, domain.free, sizes, place)) masks.push_back(place.mask);
    }
  }
  return masks;
}

const torus::Box* Search::BegunFor(const CompiledGang& gang, int box, const DomainState& domain,
                                   const torus::Box& place) {
  if (KeptOf(box).chips == 0 || Contains(gang, box, domain, place)) return &place;
  for (const torus::Box& turn : TurnsOf(place)) {
    if (Contains(gang, box, domain, turn)) return &turn;
  }
  return nullptr;
}

std::vector<const torus::Box*> Search::Candidates(const CompiledGang& gang, int box,
                                                  const DomainState& domain,
                                                  const std::vector<torus::Shape>& sizes,
                                                  collective::Picoseconds time) {
  const torus::ChipMask kept = KeptOf(box).chips;
  const torus::ChipMask open = domain.free | (kept & domain.present);
  std::vector<std::pair<BoxOrder, const torus::Box*>> candidates;
  for (const torus::Shape& shape : gang.shapes) {
    for (const torus::Box& place : torus::BoxTable::Of(domain.shape()).Rotations(shape)) {
      if (!Allows(domain, open, sizes, place) || AllReduceTime(place.size) != time) continue;
      const torus::Box* its = BegunFor(gang, box, domain, place);
      if (its == nullptr) continue;
      int fragmentation = 0;
      for (int shift = 0; shift < 64 && domain.shape().chip_count() >= 16; shift += 16) {
        const torus::ChipMask rest = (domain.free & ~place.mask) >> shift & kInstance;
        fragmentation += choice_.Fragmentation(static_cast<std::uint16_t>(rest));
      }
      const int cost = BreakCost(domain, place.mask) + domain.modes.ChangeCost(place);
      candidates.push_back({{cost, fragmentation, candidates.size()}, its});
    }
  }
  std::sort(candidates.begin(), candidates.end());
  std::vector<const torus::Box*> places;
  for (const auto& [order, place] : candidates) places.push_back(place);
  return places;
}

std::optional<Search::BoxFit> Search::TryBox(const CompiledGang& gang, int box, DomainId id,
                                             const torus::Box& place) {
  const DomainState& domain = state_.domain(id);
  const torus::ChipMask kept = KeptOf(box).chips;
  BoxFit fit;
  fit.slice = SliceOn(state_, id, place);
  std::vector<Layer> layers;
  for (const NodeId node : NodesOf(domain, place)) {
    if (!node.valid()) return std::nullopt;
    const int z = state_.node(node).z;
    Layer& layer = layers.emplace_back(Layer{.room = RoomOf(state_.node(node))});
    layer.room.chips = static_cast<std::uint16_t>((place.mask & ~kept) >> (16 * z) & kInstance);
    layer.kept = kept & kInstance << (16 * z);
  }
  std::size_t layer = 0;
  std::vector<std::size_t> of_members;
  const std::size_t first = static_cast<std::size_t>(box) * gang.members_per_box();
  for (std::size_t i = 0; i < gang.members_per_box(); ++i) {
    const CompiledMember& member = Member(gang, box, i);
    const torus::ChipMask its_kept = kept_[first + i].chips;
    const auto demand = DemandOf(member, *layers[layer].room.node);
    if (!demand || demand->cores > 0) return std::nullopt;
    const int chips = demand->chips + torus::ChipCount(its_kept);
    const auto at = LayerOf(member, first, chips, layers, layer, of_members);
    if (!at) return std::nullopt;
    of_members.push_back(*at);
    Layer& its = layers[*at];
    auto member_fit = fitter_.Fit(member, its.room);
    if (!member_fit) return std::nullopt;
    its.room = member_fit->left;
    its.kept &= ~its_kept;
    MemberPlacement placed = PlacementOn(*member.spec, *its.room.node);
    placed.claims = std::move(member_fit->claims);
    fit.members.push_back(std::move(placed));
  }
  const bool filled = std::all_of(layers.begin(), layers.end(),
                                  [](const Layer& one) { return one.room.chips == 0; });
  return filled ? std::optional(std::move(fit)) : std::nullopt;
}

std::optional<std::size_t> Search::LayerOf(const CompiledMember& member, std::size_t first,
                                           int chips, const std::vector<Layer>& layers,
                                           std::size_t& layer,
                                           const std::vector<std::size_t>& of_members) {
  const auto is_full = [](const Layer& one) { return one.room.chips == 0 && one.kept == 0; };
  if (chips > 0 && is_full(layers[layer]) && ++layer == layers.size()) return std::nullopt;
  std::size_t its = layer;
  // A member that takes no chips goes to its shared claim.
  if (chips == 0 && !member.beside.empty()) its = of_members[member.beside.front() - first];
  const std::string& pinned = member.pinned_node;
  for (std::size_t i = 0; chips == 0 && !pinned.empty() && i < layers.size(); ++i) {
    if (layers[i].room.node->name == pinned) its = i;
  }
  if (!pinned.empty() && layers[its].room.node->name != pinned) return std::nullopt;
  const bool together =
      std::all_of(member.beside.begin(), member.beside.end(),
                  [&](std::size_t other) { return of_members[other - first] == its; });
  return together ? std::optional(its) : std::nullopt;
}

bool Search::PlaceMembers(const CompiledGang& gang, const ClusterState& before, WallTime now,
                          Placement& placement) {
  std::vector<std::size_t> order(gang.members.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (PlaceInOrder(gang, order, now, placement)) return true;
  const std::vector<std::size_t> hardest = HardestFirst();
  if (hardest == order) return false;
  const Obstacle obstacle = obstacle_;
  state_ = before;
  index_.Sync(state_);
  if (Resolve(gang).ok() && PlaceInOrder(gang, hardest, now, placement)) return true;
  obstacle_ = obstacle;
  return false;
}

bool Search::PlaceInOrder(const CompiledGang& gang, const std::vector<std::size_t>& order,
                          WallTime now, Placement& placement) {
  placement.members.assign(gang.members.size(), {});
  keeper_ = PlaceKeeper(gang.spec->rules, gang.members.size());
  for (const std::size_t i : order) {
    obstacle_.member = i;
    CompiledMember& member = members_[i];
    for (const std::size_t other : member.beside) {
      const std::string& node = placement.members[other].node;
      if (!member.pinned_node.empty() && member.pinned_node != node) return false;
      member.pinned_node = node;
    }
    auto placed = FindNode(gang, member, now);
    if (!placed) return false;
    placed->rank = static_cast<int>(i);
    placed->slice =
        static_cast<int>(i * static_cast<std::size_t>(gang.spec->slices) / gang.members.size());
    Hold(*gang.spec, {*placed}, now);
    keeper_.Put(i, *state_.node(*state_.FindNode(placed->node)).node);
    placement.members[i] = *std::move(placed);
  }
  return keeper_.AllKept();
}

std::vector<std::size_t> Search::HardestFirst() {
  std::vector<MemberOrder> ranked;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const CompiledMember& member = members_[i];
    const bool tied = !member.pinned_node.empty() || member.spec->node.ties();
    int chips = 0;
    int cores = 0;
    for (const Demand& demand : DemandsOf(member)) {
      chips = std::max(chips, demand.chips);
      cores = std::max(cores, demand.cores);
    }
    // Pods that share claims come in their order: a pod may be beside another such pod.
    const bool shares = !member.beside.empty();
    ranked.push_back(shares ? MemberOrder{.shares_claim = true, .member = i}
                            : MemberOrder{false, !tied, -chips, -cores, i});
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::size_t> order;
  for (const MemberOrder& one : ranked) order.push_back(one.member);
  return order;
}

std::vector<MemberFitter::Demand> Search::DemandsOf(const CompiledMember& member) {
  std::vector<Demand> demands;
  const auto add = [&](const Node& node) {
    const auto demand = DemandOf(member, node);
    if (demand && (demands.empty() || demands.back() != *demand)) demands.push_back(*demand);
  };
  if (ReadsOwn(member)) {
    ForEachNode(PinnedDomains(member), add);
  } else {
    index_.ForEachClass([&](const FleetIndex::Class& nodes) {
      for (const auto& node : nodes) {
        if (node != nullptr) add(*node);
      }
    });
  }
  std::sort(demands.begin(), demands.end());
  demands.erase(std::unique(demands.begin(), demands.end()), demands.end());
  return demands;
}

bool Search::ReadsOwn(const CompiledMember& member) {
  bool own = false;
  index_.ForEachClass([&](const FleetIndex::Class& nodes) {
    own = own || AnyNode(nodes, [&](const Node& node) { return fitter_.ReadsOwn(member, node); });
  });
  return own;
}

bool Search::HasDemand(const CompiledMember& member, DomainId id, const Demand& demand) {
  const auto& nodes = state_.domain(id).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    return node.valid() && DemandOf(member, *state_.node(node).node) == demand;
  });
}

// Returns the kinds of room that may do, best first.
std::vector<Search::Keys> Search::KeysFor(const Demand& demand) {
  std::vector<Keys> groups;
  if (demand.cores == 0) {
    std::vector<torus::Shape> sizes;
    for (const torus::Shape& shape : torus::ShapesOf(demand.chips)) {
      for (const torus::Shape& size : Rotations(shape)) {
        if (size.extent(torus::Axis::kZ) == 1) sizes.push_back(size);
      }
    }
    std::stable_sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
      return AllReduceTime(a) < AllReduceTime(b);
    });
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i == 0 || AllReduceTime(sizes[i]) != AllReduceTime(sizes[i - 1])) groups.emplace_back();
      groups.back().push_back(FleetIndex::BoxKey(sizes[i]));
    }
  }
  for (const int lnc : {2, 1}) {
    const int per_chip = kCoresPerChip / lnc;
    if (demand.cores == 0 || !(lnc == 1 ? demand.lnc1 : demand.lnc2)) continue;
    if (demand.cores <= per_chip && demand.chips == 0) {
      groups.push_back({FleetIndex::CoreKey(lnc, demand.cores)});
    }
    const int chips = demand.chips + (demand.cores + per_chip - 1) / per_chip;
    if (chips <= kChipsPerNode) groups.push_back({FleetIndex::ChipKey(chips)});
  }
  if (demand.cores == 0 && demand.chips >= 1 && demand.chips <= kChipsPerNode) {
    groups.push_back({FleetIndex::ChipKey(demand.chips)});
  }
  return groups;
}

bool Search::IsUnknownToIndex(const CompiledMember& member) {
  return member.claims.empty() || member.tolerates || member.chooses;
}

bool Search::IsUnknownToIndex(const Demand& demand) {
  return demand.cores > 1 || demand.chips == 0;
}

RoomKinds Search::RoomsFor(const CompiledGang& gang) {
  if (!obstacle_.contradiction.ok() || HoldsSome(gang)) return kAnyRoom;
  RoomKinds rooms = 0;
  for (const torus::Shape& shape : gang.shapes) {
    for (const torus::Shape& size : Rotations(shape)) {
      rooms |= RoomKinds{1} << FleetIndex::BoxKey(size);
    }
  }
  for (std::size_t i = 0; gang.shapes.empty() && i < members_.size(); ++i) {
    const CompiledMember& member = members_[i];
    if (IsUnknownToIndex(member) || member.wants_others() || ReadsOwn(member)) return kAnyRoom;
    if (member.alike != i) continue;
    for (const Demand& demand : DemandsOf(member)) {
      if (IsUnknownToIndex(demand)) return kAnyRoom;
      for (const Keys& keys : KeysFor(demand)) {
        for (const std::size_t key : keys) rooms |= RoomKinds{1} << key;
      }
    }
  }
  return rooms;
}

std::optional<MemberPlacement> Search::FindNode(const CompiledGang& gang,
                                                const CompiledMember& member, WallTime now) {
  if (!member.pinned_node.empty()) {
    const auto node = state_.FindNode(member.pinned_node);
    return node ? TryNode(member, *node) : std::nullopt;
  }
  std::optional<MemberPlacement> found;
  bool scan = IsUnknownToIndex(member);
  const bool own = ReadsOwn(member);
  Among among{.domains = own ? PinnedDomains(member) : std::nullopt, .classes = {}};
  for (const Demand& demand : DemandsOf(member)) {
    for (const Keys& keys : KeysFor(demand)) {
      // In a class whose nodes differ in the selection, every domain is tried.
      among.classes = [&](const FleetIndex::Class& nodes) {
        return AnyNode(nodes, [&](const Node& node) {
          return fitter_.ReadsOwn(member, node) || DemandOf(member, node) == demand;
        });
      };
      const auto attempt = [&](DomainId domain) {
        if (own && !HasDemand(member, domain, demand)) return false;
        found = TryNodes(member, domain, keys);
        return found.has_value();
      };
      const bool placed = Visit(keys, among, *gang.spec, now, attempt);
      if (placed) return found;
    }
    scan = scan || IsUnknownToIndex(demand);
  }
  // The index does not know pods without devices, cores spread over started chips, devices with
  // tolerated taints, and alternatives after the first: in these cases every node is tried.
  for (std::size_t i = 0; scan && i < state_.node_count(); ++i) {
    const NodeState& node = state_.node(NodeId(i));
    // Blocks consist of devices: a pod without devices may run beside them.
    const bool admitted = member.claims.empty() || !node.domain.valid() ||
                          BlocksAdmit(state_.domain(node.domain), *gang.spec, now);
    if (node.node == nullptr || !admitted) continue;
    if ((found = TryNode(member, NodeId(i)))) return found;
  }
  return std::nullopt;
}

bool Search::HasRoom(const NodeState& node, std::span<const std::size_t> keys) const {
  const std::uint64_t free = state_.domain(node.domain).free >> (16 * node.z) & kInstance;
  if (keys.front() >= FleetIndex::kBoxKeys || node.node->family->type == nullptr) return true;
  const torus::BoxTable& table = torus::BoxTable::Of(node.node->family->type->torus);
  return std::any_of(table.all().begin(), table.all().end(), [&](const torus::Box& box) {
    return (box.mask & ~free) == 0 && !node.node->family->devices->down.Intersects(box.links) &&
           std::find(keys.begin(), keys.end(), FleetIndex::BoxKey(box.size)) != keys.end();
  });
}

std::optional<MemberPlacement> Search::TryNodes(const CompiledMember& member, DomainId id,
                                                std::span<const std::size_t> keys) {
  const DomainState& domain = state_.domain(id);
  ++obstacle_.domains_tried;
  std::vector<NodeOrder> order;
  for (int z = 0; z < hw::kUltraServerNodes; ++z) {
    const NodeId node = domain.nodes[static_cast<std::size_t>(z)];
    if (!node.valid()) continue;
    const torus::ChipMask free = domain.free & (kInstance << (16 * z));
    order.push_back({BreakCost(domain, free & (~free + 1)), z});
  }
  std::sort(order.begin(), order.end());
  for (const auto& [cost, z] : order) {
    const NodeId node = domain.nodes[static_cast<std::size_t>(z)];
    if (!HasRoom(state_.node(node), keys)) continue;
    if (auto placed = TryNode(member, node)) return placed;
  }
  return std::nullopt;
}

std::optional<MemberPlacement> Search::TryNode(const CompiledMember& member, NodeId id) {
  const NodeState& node = state_.node(id);
  if (node.node == nullptr) return std::nullopt;
  const auto index = static_cast<std::size_t>(&member - members_.data());
  if (!keeper_.empty() && !keeper_.MayPut(index, *node.node)) return std::nullopt;
  auto fit = fitter_.Fit(member, RoomOf(node));
  if (!fit) return std::nullopt;
  MemberPlacement placed = PlacementOn(*member.spec, *node.node);
  placed.claims = std::move(fit->claims);
  return placed;
}

}  // namespace tahoma::controller
