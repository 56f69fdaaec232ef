#include "controller/core/queue/wake_index.h"

namespace tahoma::controller {

void WakeIndex::Put(const ServicePlace& place, RoomKinds rooms) {
  Remove(place.gang);
  gangs_[place.gang] = {.place = place, .rooms = rooms};
  by_rooms_[rooms].insert(place);
}

std::optional<ServicePlace> WakeIndex::Remove(const GangRef& ref) {
  const auto found = gangs_.find(ref);
  if (found == gangs_.end()) return std::nullopt;
  const ServicePlace place = found->second.place;
  const auto alike = by_rooms_.find(found->second.rooms);
  alike->second.erase(place);
  if (alike->second.empty()) by_rooms_.erase(alike);
  gangs_.erase(found);
  return place;
}

std::vector<ServicePlace> WakeIndex::Drain() {
  std::vector<ServicePlace> places;
  for (const auto& [ref, gang] : gangs_) places.push_back(gang.place);
  gangs_.clear();
  by_rooms_.clear();
  return places;
}

std::optional<ServicePlace> WakeIndex::NextAfter(const std::optional<ServicePlace>& last,
                                                 RoomKinds rooms) const {
  std::optional<ServicePlace> next;
  for (const auto& [kinds, places] : by_rooms_) {
    if ((kinds & rooms) == 0) continue;
    const auto at = last ? places.upper_bound(*last) : places.begin();
    if (at != places.end() && (!next || *at < *next)) next = *at;
  }
  return next;
}

}  // namespace tahoma::controller
