// Which devices of a node a request selects.
//
//   Eligibility eligibility;
//   const Eligible& on = eligibility.Of(*alternative.selectors, node);
//   if (on.error.ok()) on.chips;             // one bit per chip whose device is selected
//
// Evaluated once per family of nodes or, where a selector may read what differs between its nodes,
// once per combination of the values that it may read there. Nodes that lack a value which a
// selector requires are not evaluated at all.
//
// Thread safety: one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "controller/model/inventory.h"
#include "controller/plan/request.h"

namespace tahoma::controller {

struct Eligible {
  absl::Status error;                    // of a selector, on the first device that had one
  std::uint16_t error_device = 0;        // that device
  std::vector<std::uint16_t> devices;    // selected, in the order in which they are published
  DeviceKind kind = DeviceKind::kOther;  // what the request gets here: chips before whole nodes
                                         // before cores; kOther when nothing is selected
  std::uint16_t chips = 0;               // of devices of that kind
};

class Eligibility {
 public:
  // The reference is valid until the next call.
  const Eligible& Of(const std::shared_ptr<const SelectorSet>& selectors, const Node& node);
  // Whether nodes of its family may differ in what is selected, which depends on the family alone.
  bool ReadsOwn(const std::shared_ptr<const SelectorSet>& selectors, const Node& node);

  // Selector sets that were evaluated on a node, for tests.
  std::size_t evaluations() const { return evaluations_; }

 private:
  using Key = std::pair<const SelectorSet*, const NodeFamily*>;
  // The values that a node has in the slots of its own that are read, as pointers to shared ones.
  using OwnKey = std::vector<const SlotValues*>;
  struct OwnEntry {
    std::vector<std::shared_ptr<const SlotValues>> values;  // kept alive: the pointers are the key
    Eligible eligible;
  };
  struct Entry {
    std::shared_ptr<const SelectorSet> selectors;  // kept alive: the pointers are the key
    std::shared_ptr<const NodeFamily> family;
    std::vector<std::uint16_t> own;  // slots of nodes' own that may be read
    Eligible eligible;               // of all its nodes, when there are none
    absl::flat_hash_map<OwnKey, std::unique_ptr<OwnEntry>> by_values;
  };

  void Forget();
  Entry& EntryOf(const std::shared_ptr<const SelectorSet>& selectors, const Node& node);
  Eligible Evaluate(const SelectorSet& set, const Node& node);

  absl::flat_hash_map<Key, std::unique_ptr<Entry>> cache_;
  std::size_t own_entries_ = 0;
  std::size_t evaluations_ = 0;
  Eligible nothing_;
};

}  // namespace tahoma::controller
