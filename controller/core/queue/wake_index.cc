#include "controller/core/queue/wake_index.h"

namespace tahoma::controller {
namespace {

std::optional<ServicePlace> NextIn(const std::set<ServicePlace>& places,
                                   const std::optional<ServicePlace>& last) {
  const auto at = last ? places.upper_bound(*last) : places.begin();
  return at == places.end() ? std::nullopt : std::optional(*at);
}

}  // namespace

void WakeIndex::Put(const ServicePlace& place, const Kind& kind) {
  Remove(place.gang);
  gangs_[place.gang] = {.place = place, .kind = kind};
  by_kind_[kind].insert(place);
  all_.insert(place);
}

std::optional<ServicePlace> WakeIndex::Remove(const GangRef& ref) {
  const auto found = gangs_.find(ref);
  if (found == gangs_.end()) return std::nullopt;
  const ServicePlace place = found->second.place;
  const auto alike = by_kind_.find(found->second.kind);
  alike->second.erase(place);
  if (alike->second.empty()) by_kind_.erase(alike);
  all_.erase(place);
  gangs_.erase(found);
  return place;
}

std::vector<ServicePlace> WakeIndex::Drain() {
  std::vector<ServicePlace> places(all_.begin(), all_.end());
  gangs_.clear();
  by_kind_.clear();
  all_.clear();
  return places;
}

std::vector<WakeIndex::Kind> WakeIndex::KindsFor(
    RoomKinds rooms, absl::FunctionRef<bool(const GangRef&, std::size_t)> may_use) const {
  std::vector<Kind> kinds;
  for (const auto& [kind, places] : by_kind_) {
    if ((kind.rooms & rooms) != 0 && may_use(places.begin()->gang, kind.nodes))
      kinds.push_back(kind);
  }
  return kinds;
}

std::optional<ServicePlace> WakeIndex::NextAfter(const std::optional<ServicePlace>& last,
                                                 std::span<const Kind> kinds) const {
  std::optional<ServicePlace> next;
  for (const Kind& kind : kinds) {
    const auto places = by_kind_.find(kind);
    if (places == by_kind_.end()) continue;  // all have been removed
    const auto first = NextIn(places->second, last);
    if (first && (!next || *first < *next)) next = first;
  }
  return next;
}

std::optional<ServicePlace> WakeIndex::NextAfter(const std::optional<ServicePlace>& last) const {
  return NextIn(all_, last);
}

}  // namespace tahoma::controller
