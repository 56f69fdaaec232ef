// Which devices of a node a request selects.
//
//   Eligibility eligibility;
//   const Eligible& on = eligibility.Of(*alternative.selectors, node);
//   if (on.error.ok()) on.chips;             // one bit per chip whose device is selected
//
// Evaluated once per family of nodes, unless a selector may read what differs between its nodes.
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

 private:
  using Key = std::pair<const SelectorSet*, const NodeFamily*>;
  struct Entry {
    std::shared_ptr<const SelectorSet> selectors;  // kept alive: the pointers are the key
    std::shared_ptr<const NodeFamily> family;
    Eligible eligible;
  };
  absl::flat_hash_map<Key, std::unique_ptr<Entry>> cache_;
  Eligible scratch_;
};

}  // namespace tahoma::controller
