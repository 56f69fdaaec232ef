// Tells which devices of a node a request selects.
//
// Selectors are evaluated once per family of nodes. A selector that may read an attribute which
// differs between nodes of the family is evaluated once per combination of that attribute's values.
// Nodes without a value that a selector requires are not evaluated at all.
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
  absl::Status error;                    // a selector's error on a device
  std::uint16_t error_device = 0;        // the first device with an error
  std::vector<std::uint16_t> devices;    // selected devices, in the order of publication
  DeviceKind kind = DeviceKind::kOther;  // the kind that the request gets here: chips, then
                                         // whole nodes, then cores; kOther when nothing is selected
  std::uint16_t chips = 0;               // chips of the devices of that kind
};

class Eligibility {
 public:
  // Returns a reference that is valid until the next call.
  const Eligible& Of(const std::shared_ptr<const SelectorSet>& selectors, const Node& node);
  // Returns whether the selection may differ between nodes of the node's family. The answer depends
  // on the family alone.
  bool ReadsOwn(const std::shared_ptr<const SelectorSet>& selectors, const Node& node);

  // Counts the selector sets that were evaluated on a node, for tests.
  std::size_t evaluations() const { return evaluations_; }

 private:
  using Key = std::pair<const SelectorSet*, const NodeFamily*>;
  // A node's values in the own slots that selectors read, as pointers to shared values.
  using OwnKey = std::vector<const SlotValues*>;
  struct OwnEntry {
    std::vector<std::shared_ptr<const SlotValues>> values;  // kept alive: the pointers are the key
    Eligible eligible;
  };
  struct Entry {
    std::shared_ptr<const SelectorSet> selectors;  // kept alive: the pointers are the key
    std::shared_ptr<const NodeFamily> family;
    std::vector<std::uint16_t> own;  // the node's own slots that may be read
    Eligible eligible;               // for every node of the family, when no own slot is read
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
