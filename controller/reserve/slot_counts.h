// A count for each slot from today on, in a ring.
//
// Scope: slots of at most kPlaces in a row, which its user sees to.
//
// Thread safety: a value.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "controller/reserve/calendar.h"
#include "lib/base/check.h"

namespace tahoma::controller {

class SlotCounts {
 public:
  static constexpr std::size_t kPlaces = 256;
  static_assert(kPlaces > static_cast<std::size_t>(kSlotsAhead));

  std::int32_t at(Slot slot) const { return counts_[PlaceOf(slot)]; }
  std::int32_t& at(Slot slot) { return counts_[PlaceOf(slot)]; }

  // No count may become negative.
  void Add(SlotRange range, int count) {
    TAHOMA_CHECK(range.size() <= static_cast<std::int64_t>(kPlaces));
    for (Slot slot = range.first; slot < range.last; ++slot) {
      at(slot) += count;
      TAHOMA_CHECK(at(slot) >= 0);
    }
  }

  std::int32_t Most(SlotRange range) const {
    std::int32_t most = 0;
    for (Slot slot = range.first; slot < range.last; ++slot) most = std::max(most, at(slot));
    return most;
  }

  // Sets the slots that have passed between two days to 0, for those to come.
  void Forget(Slot today, Slot next_today) {
    const Slot last = std::min(next_today, today + static_cast<Slot>(kPlaces));
    for (Slot slot = today; slot < last; ++slot) at(slot) = 0;
  }

 private:
  static std::size_t PlaceOf(Slot slot) { return static_cast<std::size_t>(slot) % kPlaces; }

  std::array<std::int32_t, kPlaces> counts_{};
};

}  // namespace tahoma::controller
