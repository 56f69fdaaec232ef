// The load of links that messages between many chips share.
//
// Messages go by dimension order, as torus::Route says; where the route is broken or leaves the
// chips that may be crossed, over the first shortest whole route: the emulator's rules.
// When all messages are of one size and links are shared fairly, the fullest link is never idle and
// its messages finish last: its load is the time.
//
// Thread safety: none.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/collective/domain_links.h"

namespace tahoma::collective {

// The dimension-order routes between all chips of a torus.
class DimensionOrderRoutes {
 public:
  explicit DimensionOrderRoutes(const torus::Shape& torus);

  std::span<const Arc> Route(int from, int to) const {
    const std::size_t at = Place(from, to);
    return std::span(arcs_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }
  // The chips on the route, both ends included.
  torus::ChipMask Chips(int from, int to) const { return chips_on_[Place(from, to)]; }

 private:
  std::size_t Place(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(chips_) +
           static_cast<std::size_t>(to);
  }

  int chips_;
  std::vector<std::uint32_t> begin_;  // by from * chips + to, into arcs_
  std::vector<Arc> arcs_;
  std::vector<torus::ChipMask> chips_on_;
};

class MessageLoad {
 public:
  // `links` must outlive it. Detours cross only chips of `through`.
  MessageLoad(const DomainLinks& links, torus::ChipMask through);

  // One message more from the chip to each of the others. False when there is no route to one of
  // them; then the load is of no more use.
  bool Add(int from, torus::ChipMask to);
  // One from each of these chips to each other.
  bool AddAllPairs(torus::ChipMask members);
  // One from each chip of the order to the next, from the last to the first.
  bool AddShift(std::span<const std::uint8_t> order);

  std::size_t longest() const { return longest_; }  // links on the longest route taken
  // Messages on the fullest link, and its rate; 0 messages when none was added.
  struct Fullest {
    std::uint64_t messages = 0;
    std::uint64_t rate = 1;
  };
  Fullest fullest() const;

  // What decides when the last of some messages, which have been added, has arrived: those over the
  // fullest links, and those with the most hops.
  struct Ends {
    Fullest fullest;
    std::size_t hops = 0;  // the most of messages over a link as full
    Fullest of_longest;    // the fullest link of messages with longest() hops
  };
  Ends LastOf(std::span<const std::pair<std::uint8_t, std::uint8_t>> messages);

 private:
  MessageLoad(const DomainLinks& links, torus::ChipMask through,
              const DimensionOrderRoutes* shared);
  bool IsDirect(int from, int to) const;
  bool CountDirect(int from, int to);
  std::vector<Arc> RouteOf(int from, int to);
  bool CountDetours(int from, torus::ChipMask to);
  // Finds the arc by which each of the chips is reached first, breadth first from `from`.
  bool Search(int from, torus::ChipMask to);

  const DomainLinks& links_;
  const torus::ChipMask through_;
  std::optional<DimensionOrderRoutes> own_;  // for a torus that has no shared table
  const DimensionOrderRoutes& table_;
  bool broken_ = false;  // some link between chips of through_ is down
  std::array<std::array<Arc, kPortsPerChip>, kChipsMax> usable_{};  // arcs, in order
  std::array<std::uint8_t, kChipsMax> usable_count_{};
  std::array<torus::ChipMask, kChipsMax> reachable_{};  // over them
  std::array<std::uint32_t, kChipsMax * kPortsPerChip> messages_{};
  std::size_t longest_ = 0;
  std::array<std::uint8_t, kChipsMax> found_{};  // by the last search, in order
  std::size_t found_count_ = 0;
  std::array<Arc, kChipsMax> came_by_{};
  std::array<std::uint8_t, kChipsMax> came_from_{};
};

}  // namespace tahoma::collective
