// Finds places for one gang in a state of the fleet.
//
// All or nothing: `state` and the index are as before when no placement is found. Devices that
// claims of the gang hold already stay where they are: a box is found around them, or none is.
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
#include "controller/plan/fleet_index.h"
#include "controller/plan/member_fit.h"
#include "controller/plan/request.h"

namespace tahoma::controller {

// The obstacle that kept a gang from being placed; users get it as the reason.
struct Obstacle {
  std::size_t domains_tried = 0;  // domains that were looked at closely
  std::size_t member = 0;         // the first without a place; in a box, that no node can serve
  int box = 0;                    // in a gang with boxes: the first that found no place
  int boxes_found = 0;            // before that one
  absl::Status contradiction;   // set when the gang's own holdings exclude any place, in any fleet
  absl::Status selector_error;  // a CEL selector's error on some device
  // The claims of a box ask for `first` chips (the least on any node), the box has `second`.
  std::optional<std::pair<int, int>> chips_mismatch;
  bool spans_nodes = false;  // no rotation leaves each pod within one node
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
  // Returns whether some claim of the gang is allocated already.
  bool HoldsSome(const CompiledGang& gang) const;
  // Returns what the pods of a box hold, as the last Place of a gang with boxes saw it.
  const Kept& KeptOf(int box) const { return kept_of_box_[static_cast<std::size_t>(box)]; }

  // Returns the sizes, as placed, of the gang's boxes that leave each pod of that box within one
  // node, on nodes like this one; whether they are free does not matter. Fastest first (score.h).
  std::vector<torus::Shape> SizesOn(const CompiledGang& gang, int box, const Node& node);
  // Returns whether each pod that holds chips has them in the layer that is its own at that place.
  bool Contains(const CompiledGang& gang, int box, const DomainState& domain,
                const torus::Box& place);
  std::optional<MemberFitter::Demand> DemandOf(const CompiledMember& member, const Node& node);
  // Returns the only domains that have devices with the values that selectors require, where these
  // values are nodes' own; nullopt when any domain may.
  std::optional<std::vector<DomainId>> PinnedDomains(const CompiledMember& member);
  // Returns whether nodes of one family, all of them free, may differ in whether the member fits.
  bool FitReadsOwn(const CompiledMember& member, const Node& node);
  // Returns whether nodes of some kind could take the pods of the box if everything were free. If
  // not, obstacle() says why, for this box and whatever the search has met before.
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
    Room room;                 // the free devices of that part
    torus::ChipMask kept = 0;  // chips of the domain that are held by pods of later ranks
  };

  absl::Status Resolve(const CompiledGang& gang);
  // Returns how many chips each pod of the box takes or holds; nullopt when a request selects
  // nothing there.
  std::optional<std::vector<int>> ChipsOn(const CompiledGang& gang, int box, const Node& node);
  Kept KeptOf(const CompiledMember& member) const;
  void CountKept(const CompiledGang& gang);
  const CompiledMember& Member(const CompiledGang& gang, int box, std::size_t index) const;

  // Places each box where it looks best and, if the last ones find no room, where it leaves most
  // room.
  bool PlaceBoxes(const CompiledGang& gang, const ClusterState& before, WallTime now,
                  Placement& placement);
  bool PlaceBoxesInOrder(const CompiledGang& gang, WallTime now, Placement& placement);
  std::optional<BoxFit> FindBox(const CompiledGang& gang, int box, WallTime now);
  std::optional<BoxFit> TryDomain(const CompiledGang& gang, int box, DomainId domain,
                                  collective::Picoseconds time);
  // Returns the free places of such a box in the domain.
  static std::vector<torus::ChipMask> FreeBoxes(const CompiledGang& gang, const DomainState& domain,
                                                const std::vector<torus::Shape>& sizes);
  // Returns the places of the box in the domain that may be taken, best first.
  std::vector<const torus::Box*> Candidates(const CompiledGang& gang, int box,
                                            const DomainState& domain,
                                            const std::vector<torus::Shape>& sizes,
                                            collective::Picoseconds time);
  std::optional<BoxFit> TryBox(const CompiledGang& gang, int box, DomainId domain,
                               const torus::Box& place);

  // Places each member on some node, in the order of ranks and, if that fails, the hardest first.
  bool PlaceMembers(const CompiledGang& gang, const ClusterState& before, WallTime now,
                    Placement& placement);
  bool PlaceInOrder(const CompiledGang& gang, const std::vector<std::size_t>& order, WallTime now,
                    Placement& placement);
  std::vector<std::size_t> HardestFirst();
  // Returns the layer of the box that the member goes to, given the layers of the members before
  // it.
  static std::optional<std::size_t> LayerOf(const CompiledMember& member, std::size_t first,
                                            int chips, const std::vector<Layer>& layers,
                                            std::size_t& layer,
                                            const std::vector<std::size_t>& of_members);
  std::optional<MemberPlacement> FindNode(const CompiledGang& gang, const CompiledMember& member,
                                          WallTime now);
  std::vector<Demand> DemandsOf(const CompiledMember& member);
  // Returns whether nodes of one family may differ in what selectors select: a member's selectors
  // on any node of the fleet, or those of a box's members on some node of the class.
  bool ReadsOwn(const CompiledMember& member);
  bool BoxReadsOwn(const CompiledGang& gang, int box, const FleetIndex::Class& nodes);
  // Returns whether some node of the domain would meet the member's demand if everything were free.
  bool HasDemand(const CompiledMember& member, DomainId domain, const Demand& demand);
  static std::vector<Keys> KeysFor(const Demand& demand);
  std::optional<MemberPlacement> TryNode(const CompiledMember& member, NodeId node);
  std::optional<MemberPlacement> TryNodes(const CompiledMember& member, DomainId domain,
                                          std::span<const std::size_t> keys);
  // Returns whether one of the nodes that represent a class meets the condition.
  template <typename F>
  static bool AnyNode(const FleetIndex::Class& nodes, F&& condition) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const auto& node) { return node != nullptr && condition(*node); });
  }
  bool HasRoom(const NodeState& node, std::span<const std::size_t> keys) const;

  // The domains to visit: these or, without them, those of accepted classes.
  struct Among {
    std::optional<std::vector<DomainId>> domains;
    FleetIndex::AcceptsClass classes;
  };
  // Visits domains with such room in the order in which they should be tried.
  template <typename Try>
  bool Visit(std::span<const std::size_t> keys, const Among& among, const GangSpec& gang,
             WallTime now, const Try& attempt);
  // Does the same for all members of the box together.
  std::optional<std::vector<DomainId>> PinnedDomains(const CompiledGang& gang, int box);
  // Calls f for the nodes of these domains or, without them, of the whole fleet.
  template <typename F>
  void ForEachNode(const std::optional<std::vector<DomainId>>& domains, F&& f) const;
  void Hold(const GangSpec& gang, const std::vector<MemberPlacement>& members, WallTime now);

  FleetIndex& index_;
  const ChipChoice& choice_;
  MemberFitter fitter_;
  ClusterState& state_;
  Obstacle obstacle_;
  std::vector<CompiledMember> members_;  // as the last Place saw them, see Resolve
  std::vector<Kept> kept_;               // in a gang with boxes: by each member
  std::vector<Kept> kept_of_box_;        // in a gang with boxes: by the pods of each box together
  bool sparing_ = false;  // take only boxes that leave room for as many others as possible
  absl::flat_hash_map<std::pair<std::size_t, const NodeFamily*>, std::optional<Demand>> demands_;
};

// Fills the layers of a box, each `per_layer` chips of one node, with the members in order. Returns
// the layer of each member, or nullopt when a member would span two or chips would be left over.
std::optional<std::vector<int>> TileLayers(std::span<const int> demands, int layers, int per_layer);

}  // namespace tahoma::controller
