#include "lib/collective/routes.h"

#include <algorithm>
#include <bit>

#include "lib/torus/path.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

constexpr Arc kNoArc = 0xffff;

ChipMask Bit(int chip) { return ChipMask{1} << chip; }

// Making one takes longer than using it, so those of a Trainium2 are made once.
const RouteTable* SharedTable(const torus::Shape& torus) {
  static const RouteTable ultra_server(torus::kUltraServerShape);
  static const RouteTable instance(torus::kInstanceShape);
  if (torus == torus::kUltraServerShape) return &ultra_server;
  return torus == torus::kInstanceShape ? &instance : nullptr;
}

}  // namespace

RouteTable::RouteTable(const torus::Shape& torus) : chips_(torus.chip_count()), begin_{0} {
  for (int from = 0; from < chips_; ++from) {
    for (int to = 0; to < chips_; ++to) {
      for (const torus::Hop& hop : torus::Route(torus, ChipIndex(from), ChipIndex(to))) {
        arcs_.push_back(UnitLinks::ArcOf(hop.from, hop.axis, hop.direction));
      }
      begin_.push_back(static_cast<std::uint32_t>(arcs_.size()));
    }
  }
}

Crowd::Crowd(const UnitLinks& links, ChipMask through)
    : links_(links),
      through_(through),
      own_(SharedTable(links.torus()) == nullptr ? std::optional<RouteTable>(links.torus())
                                                 : std::nullopt),
      table_(own_ ? *own_ : *SharedTable(links.torus())) {}

void Crowd::Count(std::span<const Arc> route) {
  for (const Arc arc : route) ++messages_[arc];
  longest_ = std::max(longest_, static_cast<int>(route.size()));
}

const std::array<Arc, kChipsMax>& Crowd::CameBy(int from) {
  if (searched_from_ == from) return came_by_;
  searched_from_ = from;
  came_by_.fill(kNoArc);
  std::array<int, kChipsMax> frontier{};
  std::size_t found = 0;
  frontier[found++] = from;
  ChipMask seen = Bit(from);
  for (std::size_t next = 0; next < found; ++next) {
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto arc = static_cast<Arc>(frontier[next] * kPortsPerChip + port);
      if (links_.rate(arc) == 0) continue;
      const int neighbour = links_.to(arc);
      if (((seen | ~through_) & Bit(neighbour)) != 0) continue;
      seen |= Bit(neighbour);
      came_by_[static_cast<std::size_t>(neighbour)] = arc;
      frontier[found++] = neighbour;
    }
  }
  return came_by_;
}

bool Crowd::Add(int from, int to) {
  if (from == to) return true;
  const std::span<const Arc> direct = table_.Route(from, to);
  const bool usable = std::all_of(direct.begin(), direct.end(), [&](Arc arc) {
    return links_.rate(arc) != 0 && (through_ & Bit(links_.to(arc))) != 0;
  });
  if (usable) {
    Count(direct);
    return true;
  }
  const std::array<Arc, kChipsMax>& came_by = CameBy(from);
  std::array<Arc, kChipsMax> route{};
  std::size_t hops = 0;
  for (int at = to; at != from; at = route[hops - 1] / kPortsPerChip) {
    const Arc arc = came_by[static_cast<std::size_t>(at)];
    if (arc == kNoArc) return false;
    route[hops++] = arc;
  }
  Count(std::span(route).first(hops));
  return true;
}

Crowd::Fullest Crowd::fullest() const {
  Fullest found;
  for (int arc = 0; arc < links_.arc_count(); ++arc) {
    const std::uint64_t messages = messages_[static_cast<std::size_t>(arc)];
    const std::uint64_t rate = links_.rate(static_cast<Arc>(arc));
    if (static_cast<Wide>(messages) * found.rate > static_cast<Wide>(found.messages) * rate) {
      found = {.messages = messages, .rate = rate};
    }
  }
  return found;
}

Picoseconds Crowd::Time(Wide numerator, std::uint64_t denominator) const {
  const Fullest full = fullest();
  return TimeAtMost(numerator * full.messages, denominator, full.rate) +
         links_.costs().hop * longest_;
}

}  // namespace tahoma::collective
