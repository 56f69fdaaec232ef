// How messages between many chips crowd the links that they share.
//
//   Crowd crowd(links, members);
//   for (auto [from, to] : pairs) if (!crowd.Add(from, to)) …      // links that are down are in the way
//   crowd.Time(bytes);                         // until the last of them has arrived
//
// Messages go by dimension order, as torus::Route says; where that way is broken or leaves the
// chips that may be crossed, over the first shortest way that is whole: the emulator's rules. When
// all messages are of one size and links are shared fairly, those on the fullest link finish last,
// and that link is never idle, so its load is the time.
//
// Thread safety: none.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/collective/unit_links.h"

namespace tahoma::collective {

// The dimension-order routes between all chips of a torus.
class RouteTable {
 public:
  explicit RouteTable(const torus::Shape& torus);

  std::span<const Arc> Route(int from, int to) const {
    const auto at = static_cast<std::size_t>(from * chips_ + to);
    return std::span(arcs_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }

 private:
  int chips_;
  std::vector<std::uint32_t> begin_;  // by from * chips + to, into arcs_
  std::vector<Arc> arcs_;
};

class Crowd {
 public:
  // `links` must outlive it. Detours cross only chips of `through`.
  Crowd(const UnitLinks& links, torus::ChipMask through);

  // One more message. False, and nothing added, when there is no way.
  bool Add(int from, int to);

  // The time that messages of `numerator / denominator` bytes each take, from when they leave
  // together until the last has arrived; without the software's step.
  Picoseconds Time(Wide numerator, std::uint64_t denominator) const;

  int longest() const { return longest_; }  // links on the longest way taken
  // Messages on the fullest link, and its rate; 0 messages when none was added.
  struct Fullest {
    std::uint64_t messages = 0;
    std::uint64_t rate = 1;
  };
  Fullest fullest() const;

 private:
  void Count(std::span<const Arc> route);
  // The arc by which each chip is reached first, breadth first from `from`.
  const std::array<Arc, kChipsMax>& CameBy(int from);

  const UnitLinks& links_;
  const torus::ChipMask through_;
  std::optional<RouteTable> own_;  // for a torus that has no shared table
  const RouteTable& table_;
  std::array<std::uint32_t, kChipsMax * kPortsPerChip> messages_{};
  int longest_ = 0;
  int searched_from_ = -1;
  std::array<Arc, kChipsMax> came_by_{};
};

}  // namespace tahoma::collective
