#include "controller/reserve/time_profile.h"

#include <algorithm>
#include <memory>

#include "lib/base/check.h"

namespace tahoma::controller {

PoolId TimeProfile::IdOf(const Pool& pool) {
  if (const PoolId* id = ids_.Find(pool)) return *id;
  const PoolId id(pools_.size());
  auto row = std::make_shared<Row>();
  row->pool = pool;
  pools_.PushBack(std::move(row));
  ids_.Put(pool, id);
  return id;
}

std::optional<PoolId> TimeProfile::Find(const Pool& pool) const {
  const PoolId* id = ids_.Find(pool);
  return id == nullptr ? std::nullopt : std::optional(*id);
}

// Rows are shared with copies of the profile; a change first makes a row of its own.
TimeProfile::Row& TimeProfile::Change(PoolId id) {
  const std::shared_ptr<Row>& known = pools_[id.value()];
  if (known->owner == right_.id()) return *known;
  auto row = std::make_shared<Row>(*known);
  Row& changed = *row;
  changed.owner = right_.id();
  pools_.Mutable(id.value()) = std::move(row);
  return changed;
}

void TimeProfile::AdvanceTo(Slot today) {
  if (today <= today_) return;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    Row& row = Change(PoolId(i));
    for (Slot slot = today_; slot < today && Keeps(slot); ++slot) {
      row.occupied -= row.ending.at(slot);
    }
    row.ending.Forget(today_, today);
    row.booked.Forget(today_, today);
  }
  today_ = today;
}

void TimeProfile::SetSupply(PoolId id, Supply supply) {
  TAHOMA_CHECK(supply.healthy >= 0 && supply.spare >= 0);
  if (this->supply(id) == supply) return;
  Change(id).supply = supply;
}

void TimeProfile::Book(PoolId id, SlotRange range, int count) {
  range.first = std::max(range.first, today_);
  if (range.empty() || count == 0) return;
  TAHOMA_CHECK(Keeps(range.last - 1));
  Change(id).booked.Add(range, count);
}

Slot TimeProfile::Occupy(PoolId id, Slot until, int count) {
  if (!Keeps(until)) until = kForEver;
  AddOccupation(id, until, count);
  return until;
}

void TimeProfile::Vacate(PoolId id, Slot until, int count) { AddOccupation(id, until, -count); }

void TimeProfile::AddOccupation(PoolId id, Slot until, int count) {
  if (until <= today_ || count == 0) return;
  Row& row = Change(id);
  row.occupied += count;
  TAHOMA_CHECK(row.occupied >= 0);
  if (until == kForEver) return;
  row.ending.Add({until - 1, until}, count);
}

int TimeProfile::Booked(PoolId id, Slot slot) const {
  TAHOMA_CHECK(slot >= today_ && Keeps(slot));
  return pools_[id.value()]->booked.at(slot);
}

int TimeProfile::Free(PoolId id, Slot slot) const { return FreeIn(id, {slot, slot + 1}).front(); }

// Occupations only end: a slot's occupations are found by counting forward from today.
std::vector<int> TimeProfile::FreeIn(PoolId id, SlotRange range) const {
  TAHOMA_CHECK(range.first >= today_ && (range.empty() || Keeps(range.last - 1)));
  const Row& row = *pools_[id.value()];
  std::vector<int> free;
  free.reserve(static_cast<std::size_t>(std::max<Slot>(range.size(), 0)));
  int unused = row.supply.healthy - row.supply.spare - row.occupied;
  for (Slot slot = today_; slot < range.last; ++slot) {
    if (slot >= range.first) free.push_back(unused - row.booked.at(slot));
    unused += row.ending.at(slot);
  }
  return free;
}

int TimeProfile::LeastFree(PoolId id, SlotRange range) const {
  TAHOMA_CHECK(!range.empty() && range.first >= today_ && Keeps(range.last - 1));
  const Row& row = *pools_[id.value()];
  int unused = row.supply.healthy - row.supply.spare - row.occupied;
  int least = std::numeric_limits<int>::max();
  for (Slot slot = today_; slot < range.last; ++slot) {
    if (slot >= range.first) least = std::min(least, unused - row.booked.at(slot));
    unused += row.ending.at(slot);
  }
  return least;
}

}  // namespace tahoma::controller
