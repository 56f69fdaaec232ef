// Chooses the connection to close when a server has more connections than seats: a connection of
// the owner with the most.
//
// Strangers and known callers have separate seats. Among strangers the owner's oldest connection is
// closed, because the oldest has had the most time to introduce its caller. Among known callers the
// newest is closed, because the older connections are at work. So a process that opens a thousand
// connections loses its own connections, and a process with few keeps them.
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
  // Names a connection; a later connection has a higher number.
  using Id = std::uint64_t;
  struct Limits {
    std::size_t strangers = 0;
    std::size_t known = 0;
  };

  explicit Seats(Limits limits) : limits_(limits) {}

  // Seats a new connection of a stranger. Returns the stranger's connection that lost its seat.
  std::optional<Id> Enter(Id id, std::string owner);
  // Makes the connection a known caller's, or another known caller's. Returns the connection of a
  // known caller that lost its seat, possibly `id`. `id` must have a seat.
  std::optional<Id> Know(Id id, std::string owner);
  // Frees the seat; does nothing for a connection without a seat.
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
