// Finds routes for many messages at once that keep the load of the fullest link minimal.
//
// Every message is cut into parts of one size, each with a route of its own. When links are shared
// fairly, equal parts that cross the fullest link are the last to end, and that link is never idle:
// its load is the time of all. So the search looks only for a small load of the fullest link.
//
// The search begins with routes of dimension order, or the shortest routes where these are broken,
// and takes parts off full links one by one. A part goes where the prices of the links add up to
// least, and a price doubles with every so many per cent of load (Garg and Koenemann's prices of
// 1998, here with whole parts that may move again). Prices rise more steeply from stage to stage.
// On boxes without a few cables or chips the fullest link ends within 2 % of the worst cut, on any
// chips within 7 % of the best flows (a linear program's, in exchange_test). All of it is integers:
// every process that shares the work gets the same routes.
//
// Scope: loads. The emulator's planner decides which number of parts is worth its start-up.
//
// Thread safety: pure functions; Routes are values.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/collective/cuts.h"
#include "lib/collective/domain_links.h"

namespace tahoma::collective {

class Routes;

// A message between two different chips.
struct Demand {
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  std::uint32_t blocks = 1;  // its size; at least 1
  friend bool operator==(const Demand&, const Demand&) = default;
};

struct RouteSearch {
  std::uint32_t parts = 1;  // of each message
  // A link with no more load than this is not relieved: no routes can beat it, or none need to.
  Cut goal{};
  // Where the search begins, if given: routes of the same messages in fewer parts, of which `parts`
  // is a multiple. The result is then at most as full.
  const Routes* begin = nullptr;
  // The number of parts that may change their route before the search ends.
  std::uint32_t moves = 10'000;
};

class Routes {
 public:
  // `routes` by message, then part.
  Routes(const DomainLinks& links, std::span<const Demand> demands, std::uint32_t parts,
         std::vector<std::vector<Arc>> routes);

  std::uint32_t parts() const { return parts_; }
  std::span<const Arc> Route(std::size_t demand, std::uint32_t part) const {
    return routes_[demand * parts_ + part];
  }
  // The load of the fullest link for its rate, in parts of blocks: parts() of them are a block.
  Cut fullest() const { return fullest_; }
  std::size_t longest() const { return longest_; }  // links on the longest route

 private:
  std::uint32_t parts_;
  std::vector<std::vector<Arc>> routes_;
  Cut fullest_;
  std::size_t longest_ = 0;
};

// Finds routes that cross only chips of `through`; nothing when links that are down leave some
// message without a route. The goal must have a rate.
std::optional<Routes> FindRoutes(const DomainLinks& links, torus::ChipMask through,
                                 std::span<const Demand> demands, const RouteSearch& search);

}  // namespace tahoma::collective
