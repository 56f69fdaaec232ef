// Blocked gangs, by the kinds of room that may help them.
//
// Gangs with the same kinds of room are kept together, and NextAfter looks at the first of each
// group: gangs that free room cannot help cost nothing.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "controller/core/facts/gang_membership.h"
#include "controller/core/queue/service_place.h"
#include "controller/plan/room_kinds.h"

namespace tahoma::controller {

class WakeIndex {
 public:
  // Adds the gang, or replaces its place and its kinds of room.
  void Put(const ServicePlace& place, RoomKinds rooms);
  // Returns the gang's place; nullopt when the gang was not there.
  std::optional<ServicePlace> Remove(const GangRef& ref);
  // Removes all gangs.
  std::vector<ServicePlace> Drain();

  // Returns the first gang behind `last` (nullopt: of all) that some of the kinds may help.
  std::optional<ServicePlace> NextAfter(const std::optional<ServicePlace>& last,
                                        RoomKinds rooms) const;
  std::size_t size() const { return gangs_.size(); }

 private:
  struct Gang {
    ServicePlace place;
    RoomKinds rooms = 0;
  };
  absl::flat_hash_map<GangRef, Gang> gangs_;
  std::map<RoomKinds, std::set<ServicePlace>> by_rooms_;
};

}  // namespace tahoma::controller
