// The controller's view of the fleet: nodes, topology domains, which claims hold which devices, and
// what pods need on each node.
//
//   ClusterState state;
//   state.PutNode(std::move(facts));                       // a node and its devices
//   state.Hold(std::make_shared<const Holding>(holding));  // an allocated claim
//   auto view = std::make_shared<const ClusterState>(state);   // a snapshot, ~microseconds
//   view->domain(DomainId(0)).free;                            // one bit per chip: x + 4y + 16z
//
// A domain is a torus: an UltraServer (four nodes, 64 bits) or a lone instance (16 bits, or 1 for a
// trn2.3xlarge). Facts may come in any order: a holding may name a node that is not known yet, and
// takes effect when the node comes.
//
// Scope: values and their invariants. Decisions are made in controller/plan and recorded in
// controller/core.
//
// Thread safety: one thread changes a ClusterState and copies it; meanwhile any thread may read
// const copies.

#pragma once

#include <absl/functional/function_ref.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/model/block_use.h"
#include "controller/model/claim.h"
#include "controller/model/ids.h"
#include "controller/model/inventory.h"
#include "controller/model/node_offers.h"
#include "controller/model/persistent.h"
#include "lib/base/clock.h"
#include "lib/torus/box.h"

namespace tahoma::controller {

// The devices that one claim holds.
struct Holding {
  struct HeldDevice {
    std::string node;
    std::string device;
    bool admin_access = false;  // uses the device without occupying it
  };

  ClaimKey claim;
  std::string claim_uid;
  std::string holder;  // for people: "gang default/train" or "pod default/p"
  std::vector<HeldDevice> devices;
  std::string others_node = {};        // the node of `others`, none when empty
  std::vector<HeldOther> others = {};  // devices of other drivers
  std::optional<WallTime> end;         // the latest time at which the gang ends, if known
  std::optional<WallTime> since;       // the time of the decision, if known
  bool preemptible = false;            // its gang may be ended when others need the devices
  std::chrono::seconds grace{30};      // … and its pods take this long at most
  std::string reservation;             // of the Capacity Block in which the gang runs; empty: none

  // Returns whether the holding must give its hardware back when a Capacity Block needs the
  // hardware.
  bool borrows() const { return preemptible && reservation.empty(); }
};

// Returns the chips of a node that the holding occupies, wholly or in part: bit n is chip n.
std::uint16_t ChipsOf(const Holding& holding, const Node& node);
// Returns how many eighths of the node's chips the holding occupies. A core is its part of a chip:
// of a Trainium2 an eighth.
int EighthsOf(const Holding& holding, const Node& node);

// Returns the devices of our driver that an allocation gives.
std::vector<Holding::HeldDevice> HeldDevices(const Allocation& allocation);
// Gives the holding all devices of the allocation, in place of the devices it has. Devices of other
// drivers count where they are of a single node.
void HoldDevicesOf(const Allocation& allocation, Holding& holding);

// The state of one node, beside its inventory.
struct NodeState {
  std::shared_ptr<const Node>
      node;            // nullptr when only holdings name the node, or the id is unused
  DomainId domain;     // invalid without devices
  std::uint8_t z = 0;  // place in the domain
  std::array<std::uint8_t, kChipsPerNode> busy_cores{};  // physical cores held, by chip
  std::array<std::uint8_t, kChipsPerNode> lnc{};  // the logical core size in use: 0 none, 1 or 2
  std::vector<std::shared_ptr<const Holding>> holdings;
  // The devices of other drivers that holdings have; nullptr: none.
  std::shared_ptr<const std::vector<HeldOther>> others;
  // The needs of all pods on the node, pods that are decided for the node included; nullptr: none.
  std::shared_ptr<const kube::NodeUse> use;

  std::uint16_t BusyChips() const;  // the chips with any core held
};

// How the nodes of an UltraServer may work together now: by the modes that they have elected, and
// by the chosen mode where there is one. Nodes that take part in no election may do anything.
struct DomainModes {
  bool four = true;             // all four, as X4
  std::uint8_t pairs = 0b1111;  // bit z: nodes z and z + 1, as X2V (z even) or X2H
  bool elected = false;         // some node has elected modes
  std::uint8_t chosen = 0;      // bit z: a mode is chosen on node z

  // Returns whether the nodes of the box may work together: any single node, a pair, or all four.
  bool Serve(const torus::Box& box) const;
  // Returns 1 when some node of a box that the modes serve has not chosen a mode yet. Returns 0
  // when the nodes are in the box's mode already, when the box lies on one node, and where nothing
  // was elected.
  int ChangeCost(const torus::Box& box) const;

  friend bool operator==(const DomainModes&, const DomainModes&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const DomainModes& m) {
    return H::combine(std::move(h), m.four, m.pairs, m.elected, m.chosen);
  }
};

// Narrows `modes` to those that the node at place z has elected. A chosen mode excludes all others.
void AddModes(int z, const ElectedModes& elected, DomainModes& modes);

struct DomainState {
  std::string name;  // UltraServer id, or the node's name; empty when the id is unused
  bool ultra = false;
  bool torus_known = false;  // false where chips form no boxes: rings, switches, unknown types
  std::array<NodeId, hw::kUltraServerNodes> nodes;  // by z; a lone instance is at 0
  torus::ChipMask present = 0;                      // chips of schedulable nodes, healthy
  torus::ChipMask free = 0;                         // present and wholly unused
  torus::ChipMask broken = 0;                       // chips published but unhealthy
  torus::LinkMask down;
  DomainModes modes;
  std::optional<WallTime> end;  // when everything held here has ended; nullopt: nothing held
  bool end_unknown = false;     // something held here has no known end
  BlockUse block;

  bool single_chip = false;
  std::vector<NodeId> waiting;  // nodes whose place in the domain another node still has

  // Returns the torus: 4x4x4, 4x4x1 or 1x1x1.
  const torus::Shape& shape() const;
};

class ClusterState {
 public:
  ClusterState() : inventory_(std::make_shared<Inventory>()) {}

  // Adds the node, or replaces its earlier state.
  NodeId PutNode(std::shared_ptr<const Node> node);
  // Interns the node in an inventory of the state's own.
  NodeId PutNode(NodeFacts facts) { return PutNode(inventory_->Intern(std::move(facts))); }
  // Forgets the node; holdings on it are kept for its return. Unknown names are ignored.
  void RemoveNode(const std::string& name);

  // Sets the use of the domain of that name by Capacity Blocks. Unknown names are ignored. The
  // domain stays wanted while the same block has it.
  void SetBlockUse(const std::string& domain, BlockUse use);
  // Sets whether a gang of the block that has the domain is about to get it.
  void SetWanted(DomainId id, bool wanted);

  // Occupies the devices of an allocated claim, in place of earlier devices of the same claim uid.
  void Hold(std::shared_ptr<const Holding> holding);
  // Frees the claim's devices. Unknown uids are ignored.
  void Release(const std::string& claim_uid);

  // Makes the changes that lead from `before` to `after`. This state is `before` with more
  // holdings, each on one node that exists; such holdings go with their node.
  void Follow(const ClusterState& before, const ClusterState& after);

  // Counts what a pod needs on a node, in place of what it was counted with before.
  void PutPod(const PodKey& pod, const std::string& node,
              std::shared_ptr<const kube::PodNeeds> needs);
  // Counts the pod no longer. Returns whether it was counted.
  bool RemovePod(const PodKey& pod);
  // Count, and count no longer, a pod of another scheduler: its needs are all that is known of it.
  void AddUse(const std::string& node, const kube::PodNeeds& needs);
  void SubtractUse(const std::string& node, const kube::PodNeeds& needs);

  // Ids run from 0 to count - 1; some may be unused (no node, empty name).
  std::size_t node_count() const { return nodes_.size(); }
  std::size_t domain_count() const { return domains_.size(); }
  const NodeState& node(NodeId id) const { return nodes_[id.value()]; }
  const DomainState& domain(DomainId id) const { return domains_[id.value()]; }

  std::optional<NodeId> FindNode(const std::string& name) const;
  // Returns the UltraServer of that name, else the lone instance.
  std::optional<DomainId> FindDomain(const std::string& name) const;
  // Returns nullptr when the claim holds nothing.
  const Holding* FindHolding(const std::string& claim_uid) const;
  // Returns whether another claim for which `counts` is true holds a core of this holding. No plan
  // places two claims on one core, but an API server restored from a backup can, or a journal that
  // missed another leader's term.
  bool IsSharedWithOthers(const Holding& holding,
                          absl::FunctionRef<bool(const Holding&)> counts) const;
  std::size_t holding_count() const { return holdings_.size(); }

  template <typename F>
  void ForEachHolding(F&& f) const {
    holdings_.ForEach([&](const std::string&, const auto& holding) { f(*holding); });
  }

  // Counts the chips of the fleet, for reports: O(domains).
  struct Totals {
    std::size_t nodes = 0, ultra_servers = 0, chips = 0, free = 0, broken = 0;
  };
  Totals Count() const;

  // Calls f(DomainId) for each domain that the two states do not share: every domain that differs,
  // and perhaps a few equal domains.
  template <typename F>
  static void ForEachChangedDomain(const ClusterState& a, const ClusterState& b, F&& f) {
    ForEachDifference(a.domains_, b.domains_, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) f(DomainId(i));
    });
  }

 private:
  // A pod that is counted on its node.
  struct PlacedPod {
    std::string node;
    std::shared_ptr<const kube::PodNeeds> needs;
  };

  // Holdings of a node that another state lacks.
  struct More {
    NodeId node;
    std::vector<std::shared_ptr<const Holding>> holdings;
  };

  std::vector<More> MoreThan(const ClusterState& before, const ClusterState& after) const;
  NodeId NodeIdOf(const std::string& name);
  DomainId DomainIdOf(const std::string& name, bool ultra);
  void ForgetIfUnused(NodeId id, const std::string& name);
  void ForgetDomainIfUnused(DomainId id);
  void JoinDomain(NodeId id);
  void LeaveDomain(NodeId id);
  void RecountNode(NodeId id);
  void RecountDomain(DomainId id);

  std::shared_ptr<Inventory> inventory_;  // shared by copies; only the copy being changed uses it
  PersistentVector<NodeState> nodes_;
  PersistentVector<DomainState> domains_;
  PersistentMap<std::string, NodeId> node_ids_;
  PersistentMap<std::string, DomainId>
      domain_ids_;  // by DomainKey: an UltraServer may be named as a node
  PersistentMap<std::string, std::shared_ptr<const Holding>> holdings_;
  PersistentMap<PodKey, PlacedPod> pods_;
  std::vector<NodeId> unused_nodes_;
  std::vector<DomainId> unused_domains_;
};

using ClusterView = std::shared_ptr<const ClusterState>;

}  // namespace tahoma::controller
