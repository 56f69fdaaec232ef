// Which connection goes when a server has one more than it keeps: one of whoever has most.
//
// Strangers and known callers have seats of their own. Of strangers the oldest connection of its
// owner goes, since it has had its time to say who it is; of known callers the newest, since the
// older ones are at work. So a process that opens a thousand connections closes its own, and who
// has few keeps them.
//
// Scope: numbers and names; the server closes the connections.
//
// Thread safety: none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tahoma::wire {

class Seats {
 public:
  // Of a connection; a later one has a higher number.
  using Id = std::uint64_t;
  struct Limits {
    std::size_t strangers = 0;
    std::size_t known = 0;
  };

  explicit Seats(Limits limits) : limits_(limits) {}

  // Seats a new connection of a stranger. Returns the stranger that has lost its seat for it.
  std::optional<Id> Enter(Id id, std::string owner);
  // Makes the connection a known caller's, or another one's. Returns the connection of a known
  // caller that has lost its seat for it, which may be `id`. `id` must have a seat.
  std::optional<Id> Know(Id id, std::string owner);
  // Frees the seat; one without a seat has left already.
  void Leave(Id id) { seats_.erase(id); }

  bool Has(Id id) const { return seats_.contains(id); }

 private:
  struct Seat {
    std::string owner;
    bool known = false;
  };

  std::optional<Id> MakeRoom(bool known, std::size_t most);

  const Limits limits_;
  std::map<Id, Seat> seats_;
};

}  // namespace tahoma::wire
