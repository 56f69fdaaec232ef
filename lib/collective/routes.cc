#include "lib/collective/routes.h"

#include <algorithm>
#include <bit>

#include "lib/collective/masks.h"
#include "lib/torus/path.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

// Making one takes longer than using it, so those of a Trainium2 are made once.
const DimensionOrderRoutes* SharedTable(const torus::Shape& torus) {
  static const DimensionOrderRoutes ultra_server(torus::kUltraServerShape);
  static const DimensionOrderRoutes instance(torus::kInstanceShape);
  if (torus == torus::kUltraServerShape) return &ultra_server;
  return torus == torus::kInstanceShape ? &instance : nullptr;
}

}  // namespace

DimensionOrderRoutes::DimensionOrderRoutes(const torus::Shape& torus)
    : chips_(torus.chip_count()), begin_{0} {
  for (int from = 0; from < chips_; ++from) {
    for (int to = 0; to < chips_; ++to) {
      ChipMask chips = Bit(from);
      for (const torus::Hop& hop : torus::Route(torus, ChipIndex(from), ChipIndex(to))) {
        arcs_.push_back(DomainLinks::ArcOf(hop.from, hop.axis, hop.direction));
        chips |= MaskOf(hop.to);
      }
      chips_on_.push_back(chips);
      begin_.push_back(static_cast<std::uint32_t>(arcs_.size()));
    }
  }
}

MessageLoad::MessageLoad(const DomainLinks& links, ChipMask through)
    : MessageLoad(links, through, SharedTable(links.torus())) {}

MessageLoad::MessageLoad(const DomainLinks& links, ChipMask through,
                         const DimensionOrderRoutes* shared)
    : links_(links),
      through_(through),
      own_(shared == nullptr ? std::optional<DimensionOrderRoutes>(links.torus()) : std::nullopt),
      table_(shared == nullptr ? *own_ : *shared) {
  for (ChipMask left = through; left != 0; left &= left - 1) {
    const int chip = std::countr_zero(left);
    const auto at = static_cast<std::size_t>(chip);
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto arc = static_cast<Arc>(chip * kPortsPerChip + port);
      if (links.torus().extent(torus::kAxes.at(static_cast<std::size_t>(port / 2))) == 1) continue;
      if ((through & Bit(links.to(arc))) == 0) continue;
      broken_ = broken_ || links.rate(arc) == 0;
      if (links.rate(arc) == 0) continue;
      usable_[at][usable_count_[at]++] = arc;
      reachable_[at] |= Bit(links.to(arc));
    }
  }
}

bool MessageLoad::Search(int from, ChipMask to) {
  found_count_ = 0;
  found_[found_count_++] = static_cast<std::uint8_t>(from);
  ChipMask open = through_ & ~Bit(from);
  for (std::size_t next = 0; next < found_count_ && (to & open) != 0; ++next) {
    const std::size_t at = found_[next];
    if ((reachable_[at] & open) == 0) continue;
    for (std::size_t i = 0; i < usable_count_[at]; ++i) {
      const Arc arc = usable_[at][i];
      const auto neighbour = static_cast<std::uint8_t>(links_.to(arc));
      if ((open & Bit(neighbour)) == 0) continue;
      open &= ~Bit(neighbour);
      came_by_[neighbour] = arc;
      came_from_[neighbour] = static_cast<std::uint8_t>(at);
      found_[found_count_++] = neighbour;
    }
  }
  return (to & open) == 0;
}

bool MessageLoad::IsDirect(int from, int to) const {
  if ((table_.Chips(from, to) & ~through_) != 0) return false;
  return !broken_ || std::ranges::all_of(table_.Route(from, to),
                                         [&](Arc arc) { return links_.rate(arc) != 0; });
}

bool MessageLoad::CountDirect(int from, int to) {
  if (!IsDirect(from, to)) return false;
  const std::span<const Arc> direct = table_.Route(from, to);
  for (const Arc arc : direct) ++messages_[arc];
  longest_ = std::max(longest_, direct.size());
  return true;
}

// There is a route.
std::vector<Arc> MessageLoad::RouteOf(int from, int to) {
  std::vector<Arc> route;
  if (IsDirect(from, to)) {
    const std::span<const Arc> direct = table_.Route(from, to);
    route.assign(direct.begin(), direct.end());
  } else if (Search(from, Bit(to))) {
    for (auto at = static_cast<std::size_t>(to); at != static_cast<std::size_t>(from);
         at = came_from_[at]) {
      route.push_back(came_by_[at]);
    }
  }
  return route;
}

MessageLoad::Ends MessageLoad::LastOf(
    std::span<const std::pair<std::uint8_t, std::uint8_t>> messages) {
  const auto fuller = [](const Fullest& a, const Fullest& b) {
    return static_cast<Wide>(a.messages) * b.rate > static_cast<Wide>(b.messages) * a.rate;
  };
  Ends ends{.fullest = fullest(), .hops = 0, .of_longest = {}};
  for (const auto& [from, to] : messages) {
    const std::vector<Arc> route = RouteOf(from, to);
    Fullest own;
    for (const Arc arc : route) {
      const Fullest link{.messages = messages_[arc], .rate = links_.rate(arc)};
      if (fuller(link, own)) own = link;
    }
    if (!fuller(ends.fullest, own)) ends.hops = std::max(ends.hops, route.size());
    if (route.size() == longest_ && fuller(own, ends.of_longest)) ends.of_longest = own;
  }
  return ends;
}

// The routes form a tree: messages that cross an arc of it go to the chips beyond.
bool MessageLoad::CountDetours(int from, ChipMask to) {
  if (to == 0) return true;
  if (!Search(from, to)) return false;
  std::array<std::uint8_t, kChipsMax> beyond{};
  std::array<std::uint8_t, kChipsMax> hops{};
  for (std::size_t i = 1; i < found_count_; ++i) {
    const std::size_t chip = found_[i];
    hops[chip] = static_cast<std::uint8_t>(hops[came_from_[chip]] + 1);
    if ((to & Bit(found_[i])) != 0) longest_ = std::max<std::size_t>(longest_, hops[chip]);
  }
  for (std::size_t i = found_count_ - 1; i > 0; --i) {
    const std::size_t chip = found_[i];
    beyond[chip] = static_cast<std::uint8_t>(beyond[chip] + (to >> found_[i] & 1));
    messages_[came_by_[chip]] += beyond[chip];
    beyond[came_from_[chip]] = static_cast<std::uint8_t>(beyond[came_from_[chip]] + beyond[chip]);
  }
  return true;
}

bool MessageLoad::Add(int from, ChipMask to) {
  ChipMask detours = 0;
  for (ChipMask left = to & ~Bit(from); left != 0; left &= left - 1) {
    if (!CountDirect(from, std::countr_zero(left))) detours |= left & (~left + 1);
  }
  return CountDetours(from, detours);
}

bool MessageLoad::AddAllPairs(ChipMask members) {
  for (ChipMask from = members; from != 0; from &= from - 1) {
    if (!Add(std::countr_zero(from), members)) return false;
  }
  return true;
}

bool MessageLoad::AddShift(std::span<const std::uint8_t> order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!Add(order[i], Bit(order[(i + 1) % order.size()]))) return false;
  }
  return true;
}

MessageLoad::Fullest MessageLoad::fullest() const {
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

}  // namespace tahoma::collective
