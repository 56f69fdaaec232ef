// Keeps what flaps from the API server: a fault is believed at once, but that it has gone only
// after a time that grows with how often it came back.
//
//   HealthDamper damper;
//   inventory = damper.Damp(std::move(inventory), now);
//   if (const auto wake = damper.wake()) …        // then the same inventory shows a repair
//
// The first fault of a chip or link goes as soon as it is repaired. One that comes back within
// `memory` stays shown for `hold` after its repair, then twice as long, and so on up to `longest`:
// each change costs writes of ResourceSlices, evicts pods and starts them again.
//
// Scope: chips' health and links' state in an inventory. Without randomness or clock.
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

  // Returns the inventory as it is to be shown.
  wire::Inventory Damp(wire::Inventory inventory, MonotonicTime now);

  // When Damp of the inventory of the last call shows a repair; nothing when it hides none.
  std::optional<MonotonicTime> wake() const { return wake_; }

 private:
  struct Fault {
    std::string reason = {};  // of a chip
    bool there = false;
    MonotonicTime ended = {};  // unless it is there
    int times = 0;             // that it came, each within `memory` of the end before
  };
  // A chip, and a link of it; of the chip itself: "".
  using Place = std::pair<int, std::string>;

  void See(const Place& place, const std::string& reason, MonotonicTime now);
  std::chrono::nanoseconds HoldOf(const Fault& fault) const;

  const DampingOptions options_;
  std::map<Place, Fault> faults_;
  std::optional<MonotonicTime> wake_;
};

}  // namespace tahoma::dra
