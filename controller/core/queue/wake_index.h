// Blocked gangs, by the kinds of room that may help them and by the nodes that they may use.
//
// Gangs with the same kinds of room and equal demands on nodes are kept together, and the first
// answers for all: gangs without help from the free room cost nothing.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "controller/core/facts/gang_membership.h"
#include "controller/core/queue/service_place.h"
#include "controller/plan/room_kinds.h"

namespace tahoma::controller {

class WakeIndex {
 public:
  struct Kind {
    RoomKinds rooms = 0;
    std::size_t nodes = 0;  // equal for gangs with equal demands on nodes
    std::size_t line = 0;   // QueueLines::LineOf

    friend auto operator<=>(const Kind&, const Kind&) = default;
  };

  // Adds the gang, or replaces its place and its kind.
  void Put(const ServicePlace& place, const Kind& kind);
  // Returns the gang's place; nullopt when the gang was not there.
  std::optional<ServicePlace> Remove(const GangRef& ref);
  bool Has(const GangRef& ref) const { return gangs_.contains(ref); }
  // Removes all gangs.
  std::vector<ServicePlace> Drain();

  // Returns the kinds that some of the rooms may help and whose gangs may use the nodes, as
  // `may_use` says of one gang of each kind, with Kind::nodes.
  std::vector<Kind> KindsFor(RoomKinds rooms,
                             absl::FunctionRef<bool(const GangRef&, std::size_t)> may_use) const;
  // Returns the first gang of the kinds behind `last` (nullopt: of all).
  std::optional<ServicePlace> NextAfter(const std::optional<ServicePlace>& last,
                                        std::span<const Kind> kinds) const;
  // Returns the first gang of any kind behind `last`.
  std::optional<ServicePlace> NextAfter(const std::optional<ServicePlace>& last) const;
  std::size_t size() const { return gangs_.size(); }

 private:
  struct Gang {
    ServicePlace place;
    Kind kind;
  };
  absl::flat_hash_map<GangRef, Gang> gangs_;
  std::map<Kind, std::set<ServicePlace>> by_kind_;
  std::set<ServicePlace> all_;
};

}  // namespace tahoma::controller
