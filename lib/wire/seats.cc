#include "lib/wire/seats.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::wire {

std::optional<Seats::Id> Seats::Enter(Id id, std::string owner) {
  TAHOMA_CHECK(seats_.emplace(id, Seat{.owner = std::move(owner)}).second);
  return MakeRoom(/*known=*/false, limits_.strangers);
}

std::optional<Seats::Id> Seats::Know(Id id, std::string owner) {
  seats_.at(id) = Seat{.owner = std::move(owner), .known = true};
  return MakeRoom(/*known=*/true, limits_.known);
}

// Closes a connection when there are more than `most` of this kind.
std::optional<Seats::Id> Seats::MakeRoom(bool known, std::size_t most) {
  struct Owned {
    std::size_t count = 0;
    Id oldest = 0;
    Id newest = 0;
  };
  std::map<std::string, Owned> owners;
  std::size_t all = 0;
  for (const auto& [id, seat] : seats_) {
    if (seat.known != known) continue;
    Owned& owned = owners[seat.owner];
    if (owned.count++ == 0) owned.oldest = id;
    owned.newest = id;
    ++all;
  }
  if (all <= most) return std::nullopt;
  // Breaks a tie between owners: strangers by the oldest connection, known callers by the newest.
  const auto greedier = [known](const auto& one, const auto& other) {
    const Owned& a = one.second;
    const Owned& b = other.second;
    if (a.count != b.count) return a.count < b.count;
    return known ? a.newest < b.newest : a.oldest > b.oldest;
  };
  const Owned& greediest = std::max_element(owners.begin(), owners.end(), greedier)->second;
  const Id gone = known ? greediest.newest : greediest.oldest;
  seats_.erase(gone);
  return gone;
}

}  // namespace tahoma::wire
