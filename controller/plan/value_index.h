// Finds the domains on which some device has a value of an attribute, without looking at the fleet.
//
// An attribute is indexed at the first question for it, which looks at every node once; at most
// kAttributesMax are.
//
// Thread safety: one thread.

#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "controller/model/cluster.h"

namespace tahoma::controller {

class ValueIndex {
 public:
  static constexpr std::size_t kAttributesMax = 16;

  void Sync(const ClusterState& state);

  // Returns the domains in ascending order. Nodes that wait for a place in their domain do not
  // count. nullopt when the attribute is not indexed and no more may be.
  std::optional<std::vector<DomainId>> DomainsWith(const QualifiedName& attribute,
                                                   std::span<const AttributeValue> values);

 private:
  struct ValueHash {
    std::size_t operator()(const AttributeValue& value) const { return HashOf(value); }
  };
  using Domains = absl::btree_set<std::uint32_t>;
  using ByValue = absl::flat_hash_map<AttributeValue, Domains, ValueHash>;
  using Nodes = std::array<std::shared_ptr<const Node>, hw::kUltraServerNodes>;

  void Update(const ClusterState& state, DomainId id);

  ClusterState synced_;
  std::vector<Nodes> domains_;  // as they are in the index
  absl::flat_hash_map<QualifiedName, ByValue> attributes_;
};

}  // namespace tahoma::controller
