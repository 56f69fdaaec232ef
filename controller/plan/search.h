// Finds places for one gang in a state of the fleet.
//
// All or nothing: without a placement, `state` and the index are as before. Devices that claims of
// the gang hold already stay in place: the search finds a box around them, or no box.
//
// Thread safety: one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/chip_choice.h"
#include "controller/plan/decision.h"
#include "controller/plan/eligibility.h"
#include "controller/plan/exact_search.h"
#include "controller/plan/fleet_index.h"
#include "controller/plan/fleet_view.h"
#include "controller/plan/member_fit.h"
#include "controller/plan/place_keeper.h"
#include "controller/plan/request.h"

namespace tahoma::controller {

// The obstacle that kept a gang from being placed; users get it as the reason.
struct Obstacle {
  std::size_t domains_tried = 0;  // domains that were searched closely
  std::size_t member = 0;         // the first without a place; in a box, the first without a node
  int box = 0;                    // in a gang with boxes: the first that found no place
  int boxes_found = 0;            // boxes placed before `box`
  absl::Status contradiction;   // set when the gang's own holdings exclude any place, in any fleet
  absl::Status selector_error;  // a CEL selector's error on some device
  // The claims of a box ask for `first` chips (the least on any node), the box has `second`.
  std::optional<std::pair<int, int>> chips_mismatch;
  bool spans_nodes = false;  // no rotation leaves each pod within one node
  // Every way to place the gang was tried: why none exists now. Empty without such a proof.
  std::string proof;
  bool bound_reached = false;  // the steps ended before every way was tried
  bool rules_broken = false;   // the boxes that were found do not keep the gang's place rules
};

// The devices that allocated claims of some pods hold already.
struct Kept {
  DomainId domain;            // where the pods must run; invalid when nothing is held
  torus::ChipMask chips = 0;  // held chips of that domain
  bool boxable = true;        // false: logical cores, or devices of another domain, are held too
};

class Search {
 public:
  Search(FleetIndex& index, const ChipChoice& choice, Eligibility& eligibility, ClusterState& state)
      : index_(index), choice_(choice), fitter_(eligibility, choice), state_(state) {}

  std::optional<Placement> Place(const CompiledGang& gang, WallTime now);
  const Obstacle& obstacle() const { return obstacle_; }
  // The gang's members as the last Place saw them: without the claims that are allocated by now.
  const std::vector<CompiledMember>& members() const { return members_; }
  // Returns whether the gang that Place saw last would have a place in the fleet of that kind. None
  // of its claims may be allocated.
  ExactAnswer Prove(const CompiledGang& gang, FleetKind kind, WallTime now, bool write) {
    return ExactSearch(index_, fitter_, FleetView(state_, kind)).Find(gang, members_, now, write);
  }
  // Returns whether, at the last Place, a node had too little cpu, memory or ports for a pod.
  bool DrainLacked() { return fitter_.DrainLacked(); }
  // Returns the kinds of room that a box or a pod of the gang may take, on the kinds of nodes that
  // exist; kAnyRoom where a selection reads values that differ between nodes of one kind. Valid
  // after a Place of the gang that found no place.
  RoomKinds RoomsFor(const CompiledGang& gang);
  // Returns whether some claim of the gang is allocated already.
  bool HoldsSome(const CompiledGang& gang) const;
  // Returns the devices that pods of a box held at the last Place of a gang with boxes.
  const Kept& KeptOf(int box) const { return kept_of_box_[static_cast<std::size_t>(box)]; }

  // Returns the sizes, as placed, of the gang's boxes that leave each pod of the box within one
  // node, on nodes like `node`, free or not. Fastest first (score.h).
  std::vector<torus::Shape> SizesOn(const CompiledGang& gang, int box, const Node& node);
  // Returns whether at `place` each pod that holds chips holds them in its own layer.
  bool Contains(const CompiledGang& gang, int box, const DomainState& domain,
                const torus::Box& place);
  std::optional<MemberFitter::Demand> DemandOf(const CompiledMember& member, const Node& node);
  // Returns the only domains whose devices have the values that selectors require, where these
  // values are nodes' own; nullopt when any domain may have them.
  std::optional<std::vector<DomainId>> PinnedDomains(const CompiledMember& member);
  // Returns whether nodes of one family, all of them free, may differ in whether the member fits.
  bool FitReadsOwn(const CompiledMember& member, const Node& node) {
    return fitter_.FitReadsOwn(member, node);
  }
  // Returns whether nodes of some kind could take the pods of the box if everything were free.
  // Otherwise obstacle() explains this box, and every obstacle of the search before.
  bool BoxIsPossible(const CompiledGang& gang, int box);

 private:
  using Demand = MemberFitter::Demand;
  using Keys = std::vector<std::size_t>;
  struct BoxFit {
    SlicePlacement slice;
    std::vector<MemberPlacement> members;
  };
  // The part of a box that lies on one node.
  struct Layer {
    Room room;                 // the free devices in the layer
    torus::ChipMask kept = 0;  // chips of the domain that pods of later ranks hold
  };

  absl::Status Resolve(const CompiledGang& gang);
  // Returns how many chips each pod of the box takes or holds; nullopt when a request selects
  // nothing there.
  std::optional<std::vector<int>> ChipsOn(const CompiledGang& gang, int box, const Node& node);
  Kept KeptOf(const CompiledMember& member) const;
  void CountKept(const CompiledGang& gang);
  // Returns whether one place after the other finds a place for the gang whenever there is any.
  bool OrderIsEnough(const CompiledGang& gang);
  // Returns whether boxes keep the rules about places.
  bool KeepRules(const CompiledGang& gang, const Placement& placement) const;
  // Tries every way, after one place after the other has failed.
  std::optional<Placement> PlaceExactly(const CompiledGang& gang, WallTime now);
  const CompiledMember& Member(const CompiledGang& gang, int box, std::size_t index) const;

  // Places each box at its best place. If the last boxes find no room, places each box where most
  // room is left.
  bool PlaceBoxes(const CompiledGang& gang, const ClusterState& before, WallTime now,
                  Placement& placement);
  bool PlaceBoxesInOrder(const CompiledGang& gang, WallTime now, Placement& placement);
  std::optional<BoxFit> FindBox(const CompiledGang& gang, int box, WallTime now);
  std::optional<BoxFit> TryDomain(const CompiledGang& gang, int box, DomainId domain,
                                  collective::Picoseconds time);
  // Returns the free places in the domain for boxes of these sizes.
  static std::vector<torus::ChipMask> FreeBoxes(const CompiledGang& gang, const DomainState& domain,
                                                const std::vector<torus::Shape>& sizes);
  // Returns the places of the box in the domain that may be taken, best first.
  std::vector<const torus::Box*> Candidates(const CompiledGang& gang, int box,
                                            const DomainState& domain,
                                            const std::vector<torus::Shape>& sizes,
                                            collective::Picoseconds time);
  // Returns the place, begun at the layer at which the box's pods keep what they hold; nullptr when
  // there is none.
  const torus::Box* BegunFor(const CompiledGang& gang, int box, const DomainState& domain,
                             const torus::Box& place);
  std::optional<BoxFit> TryBox(const CompiledGang& gang, int box, DomainId domain,
                               const torus::Box& place);

  // Places each member on some node, in the order of ranks and, if this fails, the hardest first.
  bool PlaceMembers(const CompiledGang& gang, const ClusterState& before, WallTime now,
                    Placement& placement);
  bool PlaceInOrder(const CompiledGang& gang, const std::vector<std::size_t>& order, WallTime now,
                    Placement& placement);
  std::vector<std::size_t> HardestFirst();
  // Returns the layer of the box that the member goes to, given the layers of the earlier members.
  static std::optional<std::size_t> LayerOf(const CompiledMember& member, std::size_t first,
                                            int chips, const std::vector<Layer>& layers,
                                            std::size_t& layer,
                                            const std::vector<std::size_t>& of_members);
  std::optional<MemberPlacement> FindNode(const CompiledGang& gang, const CompiledMember& member,
                                          WallTime now);
  std::vector<Demand> DemandsOf(const CompiledMember& member);
  // Returns whether the selection may differ between nodes of one family: for a member on any node
  // of the fleet, or for a box's members on some node of the class.
  bool ReadsOwn(const CompiledMember& member);
  bool BoxReadsOwn(const CompiledGang& gang, int box, const FleetIndex::Class& nodes);
  // Returns whether some node of the domain would meet the member's demand if everything were free.
  bool HasDemand(const CompiledMember& member, DomainId domain, const Demand& demand);
  static std::vector<Keys> KeysFor(const Demand& demand);
  // Return whether the index does not know all room for such a member: then every node is tried.
  static bool IsUnknownToIndex(const CompiledMember& member);
  static bool IsUnknownToIndex(const Demand& demand);
  std::optional<MemberPlacement> TryNode(const CompiledMember& member, NodeId node);
  std::optional<MemberPlacement> TryNodes(const CompiledMember& member, DomainId domain,
                                          std::span<const std::size_t> keys);
  // Returns whether a representative node of the class meets the condition.
  template <typename F>
  static bool AnyNode(const FleetIndex::Class& nodes, F&& condition) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const auto& node) { return node != nullptr && condition(*node); });
  }
  bool HasRoom(const NodeState& node, std::span<const std::size_t> keys) const;

  // The domains to visit: `domains` or, without them, the domains of accepted classes.
  struct Among {
    std::optional<std::vector<DomainId>> domains;
    FleetIndex::AcceptsClass classes;
  };
  // Visits the domains that have such room in the order of places.
  template <typename Try>
  bool Visit(std::span<const std::size_t> keys, const Among& among, const GangSpec& gang,
             WallTime now, const Try& attempt);
  // Returns the pinned domains of all members of the box together.
  std::optional<std::vector<DomainId>> PinnedDomains(const CompiledGang& gang, int box);
  // Calls f for the nodes of `domains` or, without them, of the whole fleet.
  template <typename F>
  void ForEachNode(const std::optional<std::vector<DomainId>>& domains, F&& f) const;
  void Hold(const GangSpec& gang, const std::vector<MemberPlacement>& members, WallTime now);

  FleetIndex& index_;
  const ChipChoice& choice_;
  MemberFitter fitter_;
  ClusterState& state_;
  Obstacle obstacle_;
  std::vector<CompiledMember> members_;      // as the last Place saw them, see Resolve
  PlaceKeeper keeper_ = PlaceKeeper({}, 0);  // of the last Place, in a gang without boxes
  std::vector<Kept> kept_;                   // in a gang with boxes: by each member
  std::vector<Kept> kept_of_box_;  // in a gang with boxes: by the pods of each box together
  bool sparing_ = false;           // take only boxes that leave room for the most other boxes
  absl::flat_hash_map<std::pair<std::size_t, const NodeFamily*>, std::optional<Demand>> demands_;
};

// Fills the layers of a box, each `per_layer` chips of one node, with the members in order. Returns
// the layer of each member, or nullopt when a member would span two layers or chips would be left
// over.
std::optional<std::vector<int>> TileLayers(std::span<const int> demands, int layers, int per_layer);

}  // namespace tahoma::controller
