// Finds domains with room, best first, without a look at the whole fleet.
//
// For each domain and each of kKeys kinds of room (a free box of that oriented size, n free chips
// on one node, n free logical cores in a started chip) the index knows the break cost: whether
// taking the room breaks a whole UltraServer, pairs of instances or instances
// (docs/reference/torus.md#order-of-places). Domains are kept in classes by the families of their
// nodes: hardware that a request does not select is never visited.
//
// Thread safety: one thread.

#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/plan/order.h"
#include "controller/plan/value_index.h"

namespace tahoma::controller {

// The chips of the first instance of a domain.
inline constexpr torus::ChipMask kInstance = 0xffff;

// Returns the break cost of a placement: 100 for a whole UltraServer, 10 for each pair ({0,1} and
// {2,3} as X2V, or {1,2} and {3,0} as X2H where the first two were not elected), 1 for each whole
// instance. A placement that takes a whole breaks nothing and costs 0. A free combination that was
// not elected cannot be broken: a pair costs nothing where four nodes do not work together.
int BreakCost(const DomainState& domain, torus::ChipMask taken);

class FleetIndex {
 public:
  static constexpr std::size_t kBoxKeys = 27;  // sides 1, 2, 4 in each axis
  static constexpr std::size_t kChipKeys = kChipsPerNode;
  static constexpr std::size_t kCoreKeys = 8 + 4;
  static constexpr std::size_t kKeys = kBoxKeys + kChipKeys + kCoreKeys;
  static constexpr std::uint8_t kNoRoom = 0xff;  // above every cost

  static std::size_t BoxKey(const torus::Shape& size);
  // The key of n chips free on one node, 1 <= n <= 16.
  static std::size_t ChipKey(int chips);
  // The key of n logical cores free in one started chip.
  static std::size_t CoreKey(int lnc, int cores);

  // By z, a node that represents the family of the domain's node there; nullptr without a node.
  using Class = std::array<std::shared_ptr<const Node>, hw::kUltraServerNodes>;

  void Sync(const ClusterState& state);

  // Visits domains of accepted classes with one of the kinds of room, in ascending order of (break
  // cost, domain), until `visit` returns true. Returns whether `visit` did. `visit` also gets the
  // cost and must not change the index.
  using AcceptsClass = std::function<bool(const Class&)>;
  using VisitDomain = std::function<bool(DomainId, int cost)>;
  bool Visit(std::span<const std::size_t> keys, const AcceptsClass& accepts,
             const VisitDomain& visit) const;

  // Does the same among `domains` only, whatever their class.
  bool VisitAmong(std::span<const DomainId> domains, std::span<const std::size_t> keys,
                  const VisitDomain& visit) const;
  // Returns whether, in some class, nodes of one family differ in the attribute.
  bool IsOwn(const QualifiedName& attribute) const;
  // Returns the domains where some device has one of the values; nullopt when the attribute is not
  // indexed (value_index.h).
  std::optional<std::vector<DomainId>> DomainsWith(const QualifiedName& attribute,
                                                   std::span<const AttributeValue> values);

  // Calls f(Class) for each class, in no particular order.
  template <typename F>
  void ForEachClass(F&& f) const {
    for (const auto& [key, entry] : classes_) f(entry->nodes);
  }

 private:
  using Costs = std::array<std::uint8_t, kKeys>;
  using Ranked = absl::btree_set<DomainOrder>;

  struct ClassEntry {
    Class nodes;
    std::array<Ranked, kKeys> rooms;
    std::size_t domains = 0;
  };
  struct DomainEntry {
    ClassEntry* in = nullptr;
    Costs costs;
  };
  using ClassKey = std::array<const NodeFamily*, hw::kUltraServerNodes>;
  // Everything that determines the box costs.
  struct BoxState {
    std::uint64_t free;
    std::array<std::uint64_t, 3> down;
    std::uint8_t shape;
    DomainModes modes;
    friend bool operator==(const BoxState&, const BoxState&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const BoxState& s) {
      return H::combine(std::move(h), s.free, s.down, s.shape, s.modes);
    }
  };
  using BoxCosts = std::array<std::uint8_t, kBoxKeys>;

  void Update(const ClusterState& state, DomainId id);
  ClassEntry* ClassOf(const ClusterState& state, const DomainState& domain);
  Costs CostsOf(const ClusterState& state, const DomainState& domain);
  const BoxCosts& BoxCostsOf(const DomainState& domain);

  ClusterState synced_;
  std::vector<DomainEntry> domains_;
  absl::flat_hash_map<ClassKey, std::unique_ptr<ClassEntry>> classes_;
  absl::flat_hash_map<BoxState, BoxCosts> box_costs_;
  ValueIndex values_;  // synced at the first use
};

}  // namespace tahoma::controller
