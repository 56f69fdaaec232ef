// How many hosts of each pool are free in each slot: the one profile of time that offerings, the
// binding of hardware and gangs with a maxRuntime stand on.
//
//   TimeProfile profile(SlotOf(now));
//   const PoolId pool = profile.IdOf({.product = product, .zone = "tahoma-1a", .cell = "nn-1"});
//   profile.SetSupply(pool, {.healthy = 32, .spare = 1});
//   profile.Book(pool, {today + 1, today + 8}, 16);
//   profile.LeastFree(pool, {today, today + 2});         // 15
//
// Hosts are sold by counts: a block may be sold when, in each of its slots, what is booked and
// occupied together with it is no more than the healthy hosts without the spares. That is necessary
// and, because hosts are bound to blocks late and are alike, sufficient
// (docs/reference/capacity-blocks.md#counting).
//
// Gangs outside of blocks occupy hosts, too: until the end of the slot in which they end, or for
// ever when their end is not known.
//
// Scope: counting. book.h knows the blocks, and which hosts they are bound to.
//
// Thread safety: belongs to one thread; a copy is cheap (it shares what did not change) and may be
// read by any.

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

// The hosts of a pool at this moment, which are taken for those of all slots to come.
struct Supply {
  int healthy = 0;
  int spare = 0;  // of these: not sold, but delivered in place of others

  friend bool operator==(const Supply&, const Supply&) = default;
};

class TimeProfile {
 public:
  // An occupation without a known end.
  static constexpr Slot kForEver = std::numeric_limits<Slot>::max();

  explicit TimeProfile(Slot today) : today_(today) {}

  Slot today() const { return today_; }
  // Slots before `today` are forgotten. Earlier days than the present one are ignored.
  void AdvanceTo(Slot today);

  // Returns the pool's id, which it gets at the first call.
  PoolId IdOf(const Pool& pool);
  // nullopt when no such pool was named.
  std::optional<PoolId> Find(const Pool& pool) const;
  std::size_t pool_count() const { return pools_.size(); }
  const Pool& pool(PoolId id) const { return pools_[id.value()]->pool; }

  void SetSupply(PoolId id, Supply supply);
  const Supply& supply(PoolId id) const { return pools_[id.value()]->supply; }

  // Books hosts (or, with a negative count, gives them back) in the slots of `range` from today on.
  void Book(PoolId id, SlotRange range, int count);
  // Counts hosts that are in use outside of blocks from today to the beginning of slot `until`.
  // Returns what Vacate takes for them: kForEver where `until` is beyond all slots.
  Slot Occupy(PoolId id, Slot until, int count);
  // Ends such an occupation earlier. One that has passed already is ignored.
  void Vacate(PoolId id, Slot until, int count);

  int Booked(PoolId id, Slot slot) const;
  // Returns the hosts that can be sold in a slot of today or later; negative when hardware failed
  // that was sold.
  int Free(PoolId id, Slot slot) const;
  // Returns Free of each slot of the range.
  std::vector<int> FreeIn(PoolId id, SlotRange range) const;
  // Returns the least of Free over a range, which may not be empty.
  int LeastFree(PoolId id, SlotRange range) const;

  // Calls f(PoolId) for each pool of `b` that the two do not share. Pools that differ are among
  // them; a few that are equal may be too.
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
    SlotCounts ending;          // occupations whose last slot it is
    std::int32_t occupied = 0;  // in all, with those for ever
    std::uint64_t owner = 0;    // whose right it is to change it
  };

  // Returns whether a slot's count is kept.
  bool Keeps(Slot slot) const { return slot < today_ + static_cast<Slot>(SlotCounts::kPlaces); }
  Row& Change(PoolId id);
  void AddOccupation(PoolId id, Slot until, int count);

  Slot today_;
  EditRight right_;
  PersistentVector<std::shared_ptr<Row>> pools_;
  PersistentMap<Pool, PoolId> ids_;
};

}  // namespace tahoma::controller
