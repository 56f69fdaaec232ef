#include "controller/reserve/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "controller/reserve/segments.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// The starts that a block may have, from today on.
constexpr std::size_t kStarts = kSlotsAhead - kDaysMost + 1;

// Returns the least value of each window of `width` values.
std::vector<int> WindowMinima(std::span<const int> values, std::size_t width) {
  std::vector<int> minima;
  minima.reserve(values.size());
  std::vector<std::size_t> rising(values.size());  // places in the window, values rising
  std::size_t front = 0, back = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    while (back > front && values[rising[back - 1]] >= values[i]) --back;
    rising[back++] = i;
    if (rising[front] + width <= i) ++front;
    if (i + 1 >= width) minima.push_back(values[rising[front]]);
  }
  return minima;
}

// The pools of one product in one zone, and the free hosts in them from today on.
class Zone {
 public:
  Zone(const TimeProfile& profile, std::string name, const std::vector<PoolId>& pools,
       bool any_cell)
      : name_(std::move(name)), today_(profile.today()), any_cell_(any_cell) {
    for (const PoolId pool : pools) {
      free_.push_back(profile.FreeIn(pool, {today_, today_ + kSlotsAhead}));
    }
  }

  const std::string& name() const { return name_; }

  // Returns, for each start from today on, the hosts that a block of `days` days can have.
  std::vector<int> HostsByStart(int days) const {
    std::vector<int> hosts(kStarts, 0);
    const auto width = static_cast<std::size_t>(days);
    for (const std::vector<int>& free : free_) {
      const std::vector<int> least =
          WindowMinima(std::span(free).first(kStarts + width - 1), width);
      for (std::size_t i = 0; i < hosts.size(); ++i) Add(least[i], hosts[i]);
    }
    return hosts;
  }

  // Returns the hosts that a block in these slots can have.
  int HostsIn(SlotRange slots) const {
    int hosts = 0;
    for (const std::vector<int>& free : free_) {
      Add(*std::min_element(free.begin() + (slots.first - today_),
                            free.begin() + (slots.last - today_)),
          hosts);
    }
    return hosts;
  }

 private:
  void Add(int least, int& hosts) const {
    hosts = any_cell_ ? hosts + std::max(least, 0) : std::max(hosts, least);
  }

  const std::string name_;
  const Slot today_;
  const bool any_cell_;
  std::vector<std::vector<int>> free_;  // by pool and slot
};

std::vector<Zone> ZonesOf(const TimeProfile& profile, const OfferingSearch& search) {
  std::map<std::string, std::vector<PoolId>> pools;
  for (std::size_t i = 0; i < profile.pool_count(); ++i) {
    const Pool& pool = profile.pool(PoolId(i));
    if (pool.product != search.product) continue;
    if (!search.zones.empty() &&
        std::find(search.zones.begin(), search.zones.end(), pool.zone) == search.zones.end()) {
      continue;
    }
    pools[pool.zone].emplace_back(PoolId(i));
  }
  std::vector<Zone> zones;
  for (const auto& [name, ids] : pools) zones.emplace_back(profile, name, ids, search.any_cell);
  return zones;
}

// One search while it runs.
class Searcher {
 public:
  Searcher(Slot today, const PriceList& prices, const OfferingSearch& search, WallTime now)
      : today_(today), rate_(prices.RateOf(*search.product)), search_(search) {
    const WallTime soonest = std::chrono::ceil<std::chrono::minutes>(now + kEarliestStart);
    at_once_ = soonest;
    // The first and the last boundary at which a block may begin.
    const WallTime first = std::max(soonest, search.earliest_start);
    first_start_ = IsBoundary(first) ? SlotOf(first) : SlotOf(first) + 1;
    last_start_ = SlotOf(now + kHorizon);
  }

  // Adds the zone's offerings that last `days` to `offerings`.
  void AddOfferings(const Zone& zone, int days, std::vector<Offering>& offerings) const {
    AddAtOnce(zone, days, offerings);
    const std::vector<int> hosts = zone.HostsByStart(days);
    const SlotRange starts = Starts(days);
    for (Slot start = starts.first; start < starts.last; ++start) {
      if (hosts[static_cast<std::size_t>(start - today_)] < search_.count) continue;
      if (!QuotaOf(search_.count, {start, start + days}).ok()) continue;
      offerings.push_back(Make(zone, search_.count, StartOf(start), start + days));
      return;
    }
  }

  // Returns the segments that end first, if there are at least two.
  std::vector<Offering> Split(const Zone& zone) const {
    const SplitQuery query{.days = search_.days.front(),
                           .segments_most = search_.segments_most,
                           .first_start = first_start_,
                           .last_start = last_start_,
                           .end = SlotOf(search_.latest_end)};
    const std::vector<Segment> segments = SplitDays(query, [&](int days) {
      const std::vector<int> hosts = zone.HostsByStart(days);
      std::vector<bool> can_start;
      for (Slot start = first_start_; start <= last_start_; ++start) {
        can_start.push_back(hosts[static_cast<std::size_t>(start - today_)] >= search_.count &&
                            QuotaOf(search_.count, {start, start + days}).ok());
      }
      return can_start;
    });
    std::vector<Offering> offerings;
    if (segments.size() < 2) return offerings;
    for (const Segment& segment : segments) {
      offerings.push_back(Make(zone, search_.count, StartOf(segment.start), segment.end()));
    }
    return offerings;
  }

  Shortage ShortageOf(const Zone& zone) const {
    const int days = search_.days.front();
    const std::vector<int> hosts = zone.HostsByStart(days);
    const SlotRange starts = Starts(days);
    Shortage shortage{.zone = zone.name()};
    for (Slot start = starts.first; start < starts.last; ++start) {
      shortage.most = std::max(shortage.most, hosts[static_cast<std::size_t>(start - today_)]);
    }
    if (shortage.most >= search_.count) return QuotaShortage(std::move(shortage), hosts, starts);
    shortage.missing = search_.count - shortage.most;
    shortage.message =
        starts.empty()
            ? fmt::format("zone {}: no boundary at 11:30 UTC between {} and {} leaves {} h",
                          zone.name(), FormatTime(search_.earliest_start),
                          FormatTime(search_.latest_end), days * 24)
            : fmt::format(
                  "zone {}: at most {} of {} {} are free for {} h with a start from {} to {}",
                  zone.name(), shortage.most, search_.count, search_.product->name, days * 24,
                  FormatTime(StartOf(starts.first)), FormatTime(StartOf(starts.last - 1)));
    return shortage;
  }

  // Adds the zone's offerings for a search relaxed in one point: another time, fewer hosts, less
  // time.
  void AddNearest(const Zone& zone, std::vector<Offering>& nearest) const {
    const int days = search_.days.front();
    const std::vector<int> hosts = zone.HostsByStart(days);
    const auto earliest = [&](const std::vector<int>& by_start, SlotRange starts, int wanted) {
      for (Slot start = starts.first; start < starts.last; ++start) {
        if (by_start[static_cast<std::size_t>(start - today_)] < wanted) continue;
        if (QuotaOf(wanted, {start, start + days}).ok()) return start;
      }
      return starts.last;
    };
    const SlotRange all{SlotOf(at_once_) + (IsBoundary(at_once_) ? 0 : 1), last_start_ + 1};
    if (const Slot start = earliest(hosts, all, search_.count); start < all.last) {
      nearest.push_back(Make(zone, search_.count, StartOf(start), start + days));
    }
    const SlotRange starts = Starts(days);
    if (starts.empty()) return;
    int fewer = 0, too_many = std::min(ShortageOf(zone).most + 1, search_.count);
    while (fewer + 1 < too_many) {
      const int middle = fewer + (too_many - fewer) / 2;
      (earliest(hosts, starts, middle) < starts.last ? fewer : too_many) = middle;
    }
    if (fewer > 0) {
      const Slot start = earliest(hosts, starts, fewer);
      nearest.push_back(Make(zone, fewer, StartOf(start), start + days));
    }
    AddShorter(zone, nearest);
  }

 private:
  // Returns whether the owner's quota allows `hosts` hosts.
  absl::Status QuotaOf(int hosts, SlotRange slots) const {
    if (search_.quotas == nullptr) return absl::OkStatus();
    return search_.quotas->Check(search_.owner, slots, hosts * search_.product->instances);
  }

  // Explains why the first start with enough hosts in the zone is not offered.
  Shortage QuotaShortage(Shortage shortage, const std::vector<int>& hosts, SlotRange starts) const {
    Slot start = starts.first;
    while (hosts[static_cast<std::size_t>(start - today_)] < search_.count) ++start;
    const absl::Status refused = QuotaOf(search_.count, {start, start + search_.days.front()});
    shortage.quota = true;
    shortage.message = fmt::format("zone {}: {}", shortage.zone, Message(refused));
    return shortage;
  }

  // The boundaries at which a block of `days` days may begin.
  SlotRange Starts(int days) const {
    const Slot latest = SlotOf(search_.latest_end) - days;
    return {first_start_, std::max(first_start_, std::min(last_start_, latest) + 1)};
  }

  void AddAtOnce(const Zone& zone, int days, std::vector<Offering>& offerings) const {
    if (search_.earliest_start > at_once_ || IsBoundary(at_once_)) return;
    const Slot slot = SlotOf(at_once_);
    for (const int slots : {days, days + 1}) {
      if (slots > kDaysMost || StartOf(slot + slots) > search_.latest_end) continue;
      const auto usable = StartOf(slot + slots) - at_once_ - search_.product->reclaim;
      if (usable < kLeastUse) continue;
      if (zone.HostsIn({slot, slot + slots}) < search_.count) continue;
      if (!QuotaOf(search_.count, {slot, slot + slots}).ok()) continue;
      offerings.push_back(Make(zone, search_.count, at_once_, slot + slots));
    }
  }

  // The longest duration with the count and within the window: the longer, the fewer hosts.
  void AddShorter(const Zone& zone, std::vector<Offering>& nearest) const {
    std::optional<Offering> found;
    const std::span<const int> legal = LegalDays();
    std::size_t low = 0;
    auto high = static_cast<std::size_t>(
        std::lower_bound(legal.begin(), legal.end(), search_.days.front()) - legal.begin());
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const int days = legal[middle];
      const std::vector<int> hosts = zone.HostsByStart(days);
      const SlotRange starts = Starts(days);
      Slot start = starts.first;
      while (start < starts.last &&
             (hosts[static_cast<std::size_t>(start - today_)] < search_.count ||
              !QuotaOf(search_.count, {start, start + days}).ok())) {
        ++start;
      }
      if (start < starts.last) {
        found = Make(zone, search_.count, StartOf(start), start + days);
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (found) nearest.push_back(*std::move(found));
  }

  Offering Make(const Zone& zone, int count, WallTime start, Slot end) const {
    return {.product = search_.product,
            .count = count,
            .zone = zone.name(),
            .any_cell = search_.any_cell,
            .start = start,
            .end = StartOf(end),
            .rate = rate_};
  }

  const Slot today_;
  const Money rate_;
  const OfferingSearch& search_;
  WallTime at_once_;
  Slot first_start_ = 0;
  Slot last_start_ = 0;
};

void Sort(OfferingOrder order, std::vector<Offering>& offerings) {
  const auto key = [order](const Offering& offering) {
    const std::int64_t fee = offering.fee().millionths;
    const std::int64_t start = offering.start.time_since_epoch().count();
    const std::int64_t end = offering.end.time_since_epoch().count();
    switch (order) {
      case OfferingOrder::kPrice:
        return std::array{fee, start, end};
      case OfferingOrder::kStart:
        return std::array{start, fee, end};
      case OfferingOrder::kEnd:
        return std::array{end, start, fee};
    }
    return std::array{fee, start, end};
  };
  std::stable_sort(offerings.begin(), offerings.end(),
                   [&](const Offering& a, const Offering& b) { return key(a) < key(b); });
}

}  // namespace

SearchAnswer SearchOfferings(TimeProfile profile, const PriceList& prices,
                             const OfferingSearch& search, WallTime now) {
  TAHOMA_CHECK(!search.days.empty());
  profile.AdvanceTo(SlotOf(now));
  now = std::max(now, StartOf(profile.today()));  // a clock may step back
  const Searcher searcher(profile.today(), prices, search, now);
  const std::vector<Zone> zones = ZonesOf(profile, search);
  SearchAnswer answer;
  for (const Zone& zone : zones) {
    for (const int days : search.days) searcher.AddOfferings(zone, days, answer.offerings);
  }
  Sort(search.order, answer.offerings);
  if (search.segments_most > 1) {
    for (const Zone& zone : zones) {
      std::vector<Offering> split = searcher.Split(zone);
      if (!split.empty()) answer.split.push_back(std::move(split));
    }
  }
  if (!answer.offerings.empty()) return answer;
  for (const Zone& zone : zones) {
    answer.shortages.push_back(searcher.ShortageOf(zone));
    searcher.AddNearest(zone, answer.nearest);
  }
  if (zones.empty()) {
    answer.shortages.push_back(
        {.missing = search.count,
         .message = fmt::format("no zone has {} here", search.product->name)});
  }
  Sort(OfferingOrder::kStart, answer.nearest);
  return answer;
}

std::vector<CellShare> ChooseCells(const TimeProfile& profile, const Product& product,
                                   const std::string& zone, SlotRange slots, int count,
                                   bool any_cell) {
  using Room = std::pair<int, std::string_view>;  // hosts, and the cell
  std::vector<Room> room;
  std::optional<Room> enough;
  for (std::size_t i = 0; i < profile.pool_count(); ++i) {
    const Pool& pool = profile.pool(PoolId(i));
    if (pool.product != &product || pool.zone != zone) continue;
    const Room here{profile.LeastFree(PoolId(i), slots), pool.cell};
    if (here.first >= count && (!enough || here < *enough)) enough = here;
    if (any_cell && here.first > 0) room.push_back(here);
  }
  if (enough) return {{.cell = std::string(enough->second), .hosts = count}};
  std::sort(room.begin(), room.end(), std::greater<>());
  std::vector<CellShare> chosen;
  int left = count;
  for (auto share = room.begin(); share != room.end() && left > 0; ++share) {
    const int hosts = std::min(left, share->first);
    chosen.push_back({.cell = std::string(share->second), .hosts = hosts});
    left -= hosts;
  }
  if (left > 0) chosen.clear();
  return chosen;
}

}  // namespace tahoma::controller
