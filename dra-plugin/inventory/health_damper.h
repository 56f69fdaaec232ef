// Hides flapping from the API server: a fault is shown at once, but a repair only after a time that
// grows with the number of earlier faults.
//
//   HealthDamper damper;
//   inventory = damper.Damp(std::move(inventory), now);
//   if (const auto wake = damper.wake()) …        // then the same inventory shows a repair
//
// The first fault of a chip, link or NIC is hidden as soon as it is repaired. A fault that returns
// within `memory` is shown for `hold` after its repair, the next for twice as long, up to
// `longest`. Each change costs writes of ResourceSlices, evicts pods and starts pods again.
//
// Scope: the state of chips, links and NICs in an inventory. Without randomness or clock.
//
// Thread safety: belongs to one thread.

#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/clock.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {

struct DampingOptions {
  std::chrono::nanoseconds hold = std::chrono::seconds(10);
  std::chrono::nanoseconds longest = std::chrono::minutes(5);
  std::chrono::nanoseconds memory = std::chrono::minutes(10);
};

class HealthDamper {
 public:
  explicit HealthDamper(DampingOptions options = {}) : options_(options) {}

  // Returns the inventory to show.
  wire::Inventory Damp(wire::Inventory inventory, MonotonicTime now);

  // The time when Damp of the same inventory shows a repair; nothing when no repair is hidden.
  std::optional<MonotonicTime> wake() const { return wake_; }

 private:
  struct Fault {
    std::string reason = {};  // of a chip
    bool there = false;
    MonotonicTime ended = {};  // unless there
    int times = 0;             // its occurrences, each within `memory` of the previous end
  };
  // A chip and its link, or "efa" for its NIC; "" for the chip itself.
  using Place = std::pair<int, std::string>;

  void See(const Place& place, const std::string& reason, MonotonicTime now);
  std::chrono::nanoseconds HoldOf(const Fault& fault) const;

  const DampingOptions options_;
  std::map<Place, Fault> faults_;
  std::optional<MonotonicTime> wake_;
};

}  // namespace tahoma::dra
