#include "sim-node/emulator/collective/domains/nic_proxies.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

// Returns how many chips each NIC can serve in the least time in which all of them are served.
std::vector<std::int64_t> Capacities(const std::vector<int>& rates) {
  std::vector<std::int64_t> served(rates.size());
  std::size_t last = 0;
  for (std::size_t chip = 0; chip < rates.size(); ++chip) {
    // The NIC that is done first with one chip more.
    std::optional<std::size_t> first;
    for (std::size_t nic = 0; nic < rates.size(); ++nic) {
      if (rates[nic] == 0) continue;
      if (!first || (served[nic] + 1) * rates[*first] < (served[*first] + 1) * rates[nic]) {
        first = nic;
      }
    }
    last = *first;
    ++served[last];
  }
  // The last one taken is the last to be done.
  std::vector<std::int64_t> capacities;
  for (const int rate : rates) capacities.push_back(served[last] * rate / rates[last]);
  return capacities;
}

}  // namespace

std::vector<std::size_t> ProxiesOf(const std::vector<Member>& local, const std::vector<int>& rates,
                                   const torus::Shape& torus) {
  TAHOMA_CHECK(local.size() == rates.size());
  std::vector<std::size_t> proxies(local.size());
  std::iota(proxies.begin(), proxies.end(), std::size_t{0});
  if (std::ranges::all_of(rates, [&](int rate) { return rate == rates[0]; })) return proxies;
  std::vector<std::int64_t> room = Capacities(rates);
  std::vector<std::size_t> left;
  for (std::size_t place = 0; place < room.size(); ++place) {
    if (room[place] > 0) {
      --room[place];
    } else {
      left.push_back(place);
    }
  }
  for (const std::size_t place : left) {
    const torus::Coord at = torus.CoordOf(local[place].chip);
    std::optional<std::size_t> nearest;
    int least = 0;
    for (std::size_t other = 0; other < room.size(); ++other) {
      if (room[other] == 0) continue;
      const int hops = torus.HopDistance(at, torus.CoordOf(local[other].chip));
      if (nearest && hops >= least) continue;
      nearest = other;
      least = hops;
    }
    TAHOMA_CHECK(nearest.has_value());  // NICs have room for all
    proxies[place] = *nearest;
    --room[*nearest];
  }
  return proxies;
}

}  // namespace tahoma::sim
