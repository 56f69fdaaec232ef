#include "tests/unit/lib/collective/route_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <utility>

#include "lib/base/check.h"
#include "lib/torus/path.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

// Load of a block on the fastest link. On slower links a block counts more often: 2,000 times on a
// link with the least rate, a thousandth of half the rate of the fastest.
constexpr std::uint64_t kUnit = 16;
constexpr std::uint64_t kUnitHealthy = 2 * kUnit;  // of the slow links of a healthy torus
constexpr std::uint64_t kUnitMax = 4096 * kUnit;

// Doublings of a price over the load that is aimed at, from stage to stage. Steep prices see only
// the fullest links, flat prices move the obstacles: a flat stage prepares a steep stage.
constexpr std::array<std::uint64_t, 4> kStages = {16, 32, 64, 128};
// Rounds without gain after which the next stage begins; the last stage is long.
constexpr int kPatience = 2;
constexpr int kLastPatience = 16;
// Doublings that a price can be below and above that of a link with the load aimed at.
constexpr std::uint64_t kBelow = 16;
constexpr std::uint64_t kAbove = 8;
// The price of a full link where all others cost 1.
constexpr std::uint64_t kNoRoom = std::uint64_t{1} << 40;
// Parts are looked at in strides, so that the parts of one chip do not follow each other.
constexpr std::size_t kStride = 7919;  // a prime

// 256 * 2^(eighths / 8).
std::uint64_t Power(std::uint64_t eighths) {
  static constexpr std::array<std::uint64_t, 8> kRoots = {256, 279, 304, 332, 362, 395, 431, 470};
  return kRoots.at(eighths % 8) << (eighths / 8);
}

// The usable links of a torus, with their loads and prices.
class Prices {
 public:
  Prices(const DomainLinks& links, ChipMask through, std::uint64_t block)
      : links_(links), block_(block) {
    for (int arc = 0; arc < links.arc_count(); ++arc) {
      fastest_ = std::max(fastest_, links.rate(static_cast<Arc>(arc)));
    }
    for (ChipMask left = through & links.chips(); left != 0; left &= left - 1) {
      const int chip = std::countr_zero(left);
      for (int port = 0; port < kPortsPerChip; ++port) {
        const auto arc = static_cast<Arc>(chip * kPortsPerChip + port);
        const std::uint64_t rate = links.rate(arc);
        if (rate == 0 || (through >> links.to(arc) & 1) == 0) continue;
        unit_.at(arc) = std::min((fastest_ * kUnit + rate - 1) / rate, kUnitMax);
        auto& count = count_.at(static_cast<std::size_t>(chip));
        out_.at(static_cast<std::size_t>(chip)).at(count++) = arc;
      }
    }
  }

  bool IsUsable(Arc arc) const { return unit_[arc] != 0; }
  bool HasRoom(std::span<const Arc> route) const {
    return std::ranges::none_of(route, [&](Arc arc) { return price_[arc] == kNoRoom; });
  }
  // The load of links as full as the cut, in the unit of load().
  std::uint64_t LoadOf(const Cut& cut, std::uint32_t parts) const {
    const Wide load = static_cast<Wide>(cut.blocks) * parts * fastest_ * kUnit;
    return static_cast<std::uint64_t>((load + cut.rate - 1) / cut.rate);
  }
  std::uint64_t load(Arc arc) const { return blocks_[arc] * unit_[arc]; }
  // Whether parts should leave the link, for a load of at most `most`. A link slower than all of a
  // healthy torus carries few parts, and needs room for the parts of the chip behind the link.
  bool IsFull(Arc arc, std::uint64_t most) const {
    return load(arc) > most || (unit_[arc] > kUnitHealthy && LoadWithOneMore(arc) > most);
  }
  std::uint64_t FullestLoad() const {
    std::uint64_t most = 0;
    for (int arc = 0; arc < links_.arc_count(); ++arc) {
      most = std::max(most, load(static_cast<Arc>(arc)));
    }
    return most;
  }

  // Aims at a load with prices of the stage. Without doublings every link with room for one more
  // message costs 1, and each other link more than all of these together.
  void Set(std::uint64_t aim, std::uint64_t doublings) {
    aim_ = std::max<std::uint64_t>(aim, 1);
    doublings_ = doublings;
    for (int arc = 0; arc < links_.arc_count(); ++arc) Reprice(static_cast<Arc>(arc));
  }
  void Put(std::span<const Arc> route, std::uint64_t blocks) {
    for (const Arc arc : route) blocks_[arc] += blocks;
    for (const Arc arc : route) Reprice(arc);
  }
  void Remove(std::span<const Arc> route, std::uint64_t blocks) {
    for (const Arc arc : route) blocks_[arc] -= blocks;
    for (const Arc arc : route) Reprice(arc);
  }

  // Finds the route of least price; the same among equals every time. False when there is none.
  bool Cheapest(int from, int to, std::vector<Arc>& route) {
    std::array<std::uint64_t, kChipsMax> price{};
    std::array<Arc, kChipsMax> came_by{};
    price.fill(~std::uint64_t{0});
    price[static_cast<std::size_t>(from)] = 0;
    heap_.assign(1, static_cast<std::uint64_t>(from));
    while (!heap_.empty()) {  // entries are price * 64 + chip
      std::ranges::pop_heap(heap_, std::greater<>());
      const auto chip = static_cast<std::size_t>(heap_.back() % kChipsMax);
      const std::uint64_t so_far = heap_.back() / kChipsMax;
      heap_.pop_back();
      if (so_far != price[chip]) continue;
      if (chip == static_cast<std::size_t>(to)) break;
      for (std::size_t i = 0; i < count_[chip]; ++i) {
        const Arc arc = out_[chip][i];
        const auto next = static_cast<std::size_t>(links_.to(arc));
        if (so_far + price_[arc] >= price[next]) continue;
        price[next] = so_far + price_[arc];
        came_by[next] = arc;
        heap_.push_back(price[next] * kChipsMax + next);
        std::ranges::push_heap(heap_, std::greater<>());
      }
    }
    if (price[static_cast<std::size_t>(to)] == ~std::uint64_t{0}) return false;
    route.clear();
    for (int at = to; at != from; at = route.back() / kPortsPerChip) {
      route.push_back(came_by[static_cast<std::size_t>(at)]);
    }
    std::ranges::reverse(route);
    return true;
  }

 private:
  std::uint64_t LoadWithOneMore(Arc arc) const { return (blocks_[arc] + block_) * unit_[arc]; }

  // The price with one more message. At most 64 links of 2^16 * 2^(8 + 24) fit beside a chip.
  void Reprice(Arc arc) {
    if (unit_[arc] == 0) return;
    const std::uint64_t load = LoadWithOneMore(arc);
    if (doublings_ == 0) {
      price_[arc] = load <= aim_ ? 1 : kNoRoom;
      return;
    }
    const std::uint64_t eighths = std::min(load * doublings_ * 8 / aim_, (doublings_ + kAbove) * 8);
    const std::uint64_t free = doublings_ > kBelow ? (doublings_ - kBelow) * 8 : 0;
    price_[arc] = unit_[arc] * Power(eighths > free ? eighths - free : 0);
  }

  const DomainLinks& links_;
  const std::uint64_t block_;  // of the largest message
  std::uint64_t fastest_ = 1;
  std::uint64_t aim_ = 1;
  std::uint64_t doublings_ = 0;
  std::array<std::uint64_t, std::size_t{kChipsMax} * kPortsPerChip> unit_{};  // 0 = not usable
  std::array<std::uint64_t, std::size_t{kChipsMax} * kPortsPerChip> blocks_{};
  std::array<std::uint64_t, std::size_t{kChipsMax} * kPortsPerChip> price_{};
  std::array<std::array<Arc, kPortsPerChip>, kChipsMax> out_{};  // usable links of each chip
  std::array<std::uint8_t, kChipsMax> count_{};
  std::vector<std::uint64_t> heap_;
};

std::uint64_t LargestOf(std::span<const Demand> demands) {
  std::uint64_t most = 1;
  for (const Demand& demand : demands) most = std::max<std::uint64_t>(most, demand.blocks);
  return most;
}

class RouteFinder {
 public:
  RouteFinder(const DomainLinks& links, ChipMask through, std::span<const Demand> demands,
              const RouteSearch& search)
      : links_(links),
        demands_(demands),
        search_(search),
        prices_(links, through, LargestOf(demands)),
        routes_(demands.size() * search.parts) {}

  // False when some message has no route.
  bool Begin() {
    prices_.Set(1, 0);
    for (std::size_t demand = 0; demand < demands_.size(); ++demand) {
      std::vector<Arc> route;
      if (search_.begin == nullptr && !FirstRoute(demands_[demand], route)) return false;
      for (std::uint32_t part = 0; part < search_.parts; ++part) {
        if (search_.begin != nullptr) {
          const std::uint32_t whole = part * search_.begin->parts() / search_.parts;
          const std::span<const Arc> known = search_.begin->Route(demand, whole);
          route.assign(known.begin(), known.end());
        }
        routes_[demand * search_.parts + part] = route;
        prices_.Put(route, demands_[demand].blocks);
      }
    }
    return true;
  }

  void Improve() {
    const std::uint64_t goal = prices_.LoadOf(search_.goal, search_.parts);
    std::uint64_t least = prices_.FullestLoad();
    for (const std::uint64_t doublings : kStages) {
      const int patience = doublings == kStages.back() ? kLastPatience : kPatience;
      for (int stale = 0; stale < patience && least > goal && moves_ < search_.moves; ++stale) {
        // The aim is a little below the best load so far.
        const std::uint64_t aim = std::max(goal, least - least / 32);
        prices_.Set(aim, doublings);
        MoveParts(aim);
        const std::uint64_t fullest = prices_.FullestLoad();
        if (fullest >= least) continue;
        least = fullest;
        since_least_.clear();
        stale = -1;
      }
    }
    for (; !since_least_.empty(); since_least_.pop_back()) {
      auto& [at, route] = since_least_.back();
      const std::uint64_t blocks = demands_[at / search_.parts].blocks;
      prices_.Remove(routes_[at], blocks);
      prices_.Put(route, blocks);
      routes_[at] = std::move(route);
    }
  }

  // Leaves the longest routes for shorter ones on which there is room, until one has none.
  void Shorten() {
    prices_.Set(prices_.FullestLoad(), 0);
    std::vector<std::vector<std::size_t>> by_length;
    for (std::size_t at = 0; at < routes_.size(); ++at) {
      by_length.resize(std::max(by_length.size(), routes_[at].size() + 1));
      by_length[routes_[at].size()].push_back(at);
    }
    for (std::size_t length = by_length.size(); length-- > 2;) {
      for (const std::size_t at : by_length[length]) {
        if (!Shorten(at)) return;
        by_length[routes_[at].size()].push_back(at);
      }
    }
  }

  Routes Finish() { return {links_, demands_, search_.parts, std::move(routes_)}; }

 private:
  bool FirstRoute(const Demand& demand, std::vector<Arc>& route) {
    bool whole = true;
    for (const torus::Hop& hop :
         torus::Route(links_.torus(), ChipIndex(demand.from), ChipIndex(demand.to))) {
      route.push_back(DomainLinks::ArcOf(hop.from, hop.axis, hop.direction));
      whole = whole && prices_.IsUsable(route.back());
    }
    return whole || prices_.Cheapest(demand.from, demand.to, route);
  }

  // Moves every part on a link that is too full to the cheapest route.
  void MoveParts(std::uint64_t load) {
    std::vector<Arc> route;
    for (std::size_t i = 0; i < routes_.size() && moves_ < search_.moves; ++i) {
      const std::size_t at = i * kStride % routes_.size();
      const bool full =
          std::ranges::any_of(routes_[at], [&](Arc arc) { return prices_.IsFull(arc, load); });
      if (!full) continue;
      ++moves_;
      const Demand& demand = demands_[at / search_.parts];
      prices_.Remove(routes_[at], demand.blocks);
      TAHOMA_CHECK(prices_.Cheapest(demand.from, demand.to, route));
      prices_.Put(route, demand.blocks);
      if (route == routes_[at]) continue;
      std::swap(routes_[at], route);
      since_least_.emplace_back(at, route);
    }
  }

  bool Shorten(std::size_t at) {
    const Demand& demand = demands_[at / search_.parts];
    std::vector<Arc> route;
    prices_.Remove(routes_[at], demand.blocks);
    TAHOMA_CHECK(prices_.Cheapest(demand.from, demand.to, route));
    const bool shorter = route.size() < routes_[at].size() && prices_.HasRoom(route);
    if (shorter) routes_[at] = std::move(route);
    prices_.Put(routes_[at], demand.blocks);
    return shorter;
  }

  const DomainLinks& links_;
  const std::span<const Demand> demands_;
  const RouteSearch search_;
  Prices prices_;
  std::vector<std::vector<Arc>> routes_;
  // Routes that were left since the fullest link had the least load, in order.
  std::vector<std::pair<std::size_t, std::vector<Arc>>> since_least_;
  std::uint32_t moves_ = 0;
};

}  // namespace

Routes::Routes(const DomainLinks& links, std::span<const Demand> demands, std::uint32_t parts,
               std::vector<std::vector<Arc>> routes)
    : parts_(parts), routes_(std::move(routes)) {
  TAHOMA_CHECK(routes_.size() == demands.size() * parts);
  std::array<std::uint64_t, std::size_t{kChipsMax} * kPortsPerChip> blocks{};
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    for (const Arc arc : routes_[i]) blocks.at(arc) += demands[i / parts].blocks;
    longest_ = std::max(longest_, routes_[i].size());
  }
  for (int arc = 0; arc < links.arc_count(); ++arc) {
    const Cut load{.blocks = blocks.at(static_cast<std::size_t>(arc)),
                   .rate = links.rate(static_cast<Arc>(arc))};
    if (load.blocks != 0 && load.WorseThan(fullest_)) fullest_ = load;
  }
}

std::optional<Routes> FindRoutes(const DomainLinks& links, ChipMask through,
                                 std::span<const Demand> demands, const RouteSearch& search) {
  TAHOMA_CHECK(search.parts > 0 && search.goal.rate > 0);
  RouteFinder finder(links, through, demands, search);
  if (!finder.Begin()) return std::nullopt;
  finder.Improve();
  finder.Shorten();
  return finder.Finish();
}

}  // namespace tahoma::collective
