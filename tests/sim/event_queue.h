// The events of a simulated world, in virtual time.
//
// Order: time, then urgency, then the order in which events were added. Nothing else decides, so a
// run repeats exactly. Background events repeat for ever (leases, samples) and do not keep a world
// from being quiet.
//
// Thread safety: one thread.

#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "lib/base/clock.h"

namespace tahoma::simulation {

using Duration = std::chrono::nanoseconds;

enum class Urgency : std::uint8_t { kFirst, kNormal, kBackground };

class EventQueue {
 public:
  explicit EventQueue(ManualClock& clock) : clock_(clock) {}

  void After(Duration delay, Urgency urgency, std::function<void()> action) {
    events_.emplace(Key{elapsed_ + delay, urgency, ++sequence_}, std::move(action));
  }

  // False when nothing is left.
  bool RunNext() {
    if (events_.empty()) return false;
    const auto next = events_.extract(events_.begin());
    clock_.Advance(next.key().when - elapsed_);
    elapsed_ = next.key().when;
    next.mapped()();
    return true;
  }

  Duration elapsed() const { return elapsed_; }

 private:
  struct Key {
    Duration when;
    Urgency urgency;
    std::uint64_t sequence;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  ManualClock& clock_;
  Duration elapsed_{0};
  std::uint64_t sequence_ = 0;
  std::map<Key, std::function<void()>> events_;
};

}  // namespace tahoma::simulation
