// How many hosts of each pool are free in each slot. Offerings, the binding of hardware and gangs
// with a maxRuntime all use this profile.
//
//   TimeProfile profile(SlotOf(now));
//   const PoolId pool = profile.IdOf({.product = product, .zone = "tahoma-1a", .cell = "nn-1"});
//   profile.SetSupply(pool, {.healthy = 32, .spare = 1});
//   profile.Book(pool, {today + 1, today + 8}, 16);
//   profile.LeastFree(pool, {today, today + 2});         // 15
//
// Hosts are sold by counts: a block may be sold when, in each of its slots, the booked and occupied
// hosts including its own are no more than the healthy hosts without the spares. The condition is
// necessary. It is sufficient too, because hosts of a pool are alike and are bound to blocks late
// (docs/reference/capacity-blocks.md#counting).
//
// Gangs outside of blocks occupy hosts, too: until the end of their last slot, or for ever when
// their end is not known.
//
// Scope: counting. book.h knows the blocks and their hosts.
//
// Thread safety: belongs to one thread. A copy is cheap, because copies share all unchanged parts,
// and any thread may read a copy.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "controller/model/ids.h"
#include "controller/model/persistent.h"
#include "controller/reserve/calendar.h"
#include "controller/reserve/capacity.h"
#include "controller/reserve/slot_counts.h"

namespace tahoma::controller {

using PoolId = Index<struct PoolTag>;

// The present hosts of a pool; all later slots are taken to have the same hosts.
struct Supply {
  int healthy = 0;
  int spare = 0;  // among the healthy: not sold, but delivered in place of failed hosts

  friend bool operator==(const Supply&, const Supply&) = default;
};

class TimeProfile {
 public:
  // An occupation without a known end.
  static constexpr Slot kForEver = std::numeric_limits<Slot>::max();

  explicit TimeProfile(Slot today) : today_(today) {}

  Slot today() const { return today_; }
  // Forgets the slots before `today`. Ignores a day earlier than the present day.
  void AdvanceTo(Slot today);

  // Returns the pool's id. The first call gives the pool its id.
  PoolId IdOf(const Pool& pool);
  // nullopt when IdOf has not seen the pool.
  std::optional<PoolId> Find(const Pool& pool) const;
  std::size_t pool_count() const { return pools_.size(); }
  const Pool& pool(PoolId id) const { return pools_[id.value()]->pool; }

  void SetSupply(PoolId id, Supply supply);
  const Supply& supply(PoolId id) const { return pools_[id.value()]->supply; }

  // Books hosts in the slots of `range` from today on; a negative count gives hosts back.
  void Book(PoolId id, SlotRange range, int count);
  // Counts hosts in use outside of blocks from today to the beginning of slot `until`. Returns the
  // slot to give to Vacate: kForEver where `until` is beyond all slots.
  Slot Occupy(PoolId id, Slot until, int count);
  // Ends an occupation early. Ignores an occupation that has passed already.
  void Vacate(PoolId id, Slot until, int count);

  int Booked(PoolId id, Slot slot) const;
  // Returns the hosts that can be sold in a slot of today or later; negative when sold hardware
  // failed.
  int Free(PoolId id, Slot slot) const;
  // Returns Free of each slot of the range.
  std::vector<int> FreeIn(PoolId id, SlotRange range) const;
  // Returns the least of Free over a range, which may not be empty.
  int LeastFree(PoolId id, SlotRange range) const;

  // Calls f(PoolId) for each pool of `b` that the two do not share: every pool that differs, and
  // perhaps a few equal pools.
  template <typename F>
  static void ForEachChangedPool(const TimeProfile& a, const TimeProfile& b, F&& f) {
    ForEachDifference(a.pools_, b.pools_, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < std::min(last, b.pools_.size()); ++i) f(PoolId(i));
    });
  }

 private:
  struct Row {
    Pool pool;
    Supply supply;
    SlotCounts booked;
    SlotCounts ending;          // occupations by their last slot
    std::int32_t occupied = 0;  // in all, with those for ever
    std::uint64_t owner = 0;    // the EditRight that may change the row
  };

  // Returns whether the row keeps a count for the slot.
  bool Keeps(Slot slot) const { return slot < today_ + static_cast<Slot>(SlotCounts::kPlaces); }
  Row& Change(PoolId id);
  void AddOccupation(PoolId id, Slot until, int count);

  Slot today_;
  EditRight right_;
  PersistentVector<std::shared_ptr<Row>> pools_;
  PersistentMap<Pool, PoolId> ids_;
};

}  // namespace tahoma::controller
