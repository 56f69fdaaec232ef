// Finds the Capacity Blocks that can be bought, and says what is nearest when there are none.
//
//   TAHOMA_ASSIGN_OR_RETURN(const OfferingSearch search, CheckQuery(query, now));
//   const SearchAnswer answer = SearchOfferings(profile, prices, search, now);
//   answer.offerings;     // at most three for each zone and duration, in the order asked for
//   answer.shortages;     // when there is none: how many hosts are missing, and where
//   answer.nearest;       // … offerings that ask for one thing less
//   answer.split;         // offerings in several segments that end sooner, when they are asked for
//
// A search for D days answers, for each zone, with three forms as EC2 does: from the first boundary
// on that has the capacity; at once, until the D-th boundary from now; and at once, until the one
// after it (docs/reference/capacity-blocks.md#offerings).
//
// Scope: a pure function of the profile. It reserves nothing.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/reserve/offering.h"
#include "controller/reserve/quota.h"
#include "controller/reserve/time_profile.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class OfferingOrder : std::uint8_t { kPrice, kStart, kEnd };

// A client's request, unchecked: either instances or UltraServers.
struct OfferingQuery {
  std::string instance_type = {};
  std::optional<std::int64_t> instance_count = {};
  std::string ultraserver_type = {};
  std::optional<std::int64_t> ultraserver_count = {};
  std::optional<std::int64_t> duration_hours = {};
  // Beyond EC2: the longest duration that will do as well; all legal ones between are answered.
  std::optional<std::int64_t> max_duration_hours = {};
  // Beyond EC2: so many segments at most, with gaps between them; at least 1.
  std::optional<std::int64_t> segments = {};
  std::optional<WallTime> start_date_range = {};  // the earliest start
  std::optional<WallTime> end_date_range = {};    // the latest end
  std::vector<std::string> zones = {};            // empty: all
  bool any_cell = false;                          // beyond EC2: hosts of several cells will do
  OfferingOrder order = OfferingOrder::kPrice;
};

struct OfferingSearch {
  const Product* product = nullptr;
  int count = 1;
  std::vector<int> days = {};  // legal durations, ascending; never empty
  int segments_most = 1;
  WallTime earliest_start = {};
  WallTime latest_end = {};
  std::vector<std::string> zones = {};
  bool any_cell = false;
  OfferingOrder order = OfferingOrder::kPrice;
  // Nothing is found that the quota of `owner` would refuse; nullptr: nobody's counts.
  std::shared_ptr<const QuotaTable> quotas = nullptr;
  std::string owner = {};
};

// Checks a query by EC2's rules. Refused with MissingParameter, InvalidParameterValue or
// InvalidParameterCombination; the message says what would be legal.
absl::StatusOr<OfferingSearch> CheckQuery(const OfferingQuery& query, WallTime now);

// The most hosts that a zone can give for the shortest duration asked for, and when.
struct Shortage {
  std::string zone = {};
  int most = 0;        // hosts, at one start within the window
  int missing = 0;     // to the count asked for
  bool quota = false;  // the zone has them, and the owner's quota refuses them
  std::string message = {};
};

struct SearchAnswer {
  std::vector<Offering> offerings;
  std::vector<Shortage> shortages;
  std::vector<Offering> nearest;
  // By zone, when more than one segment will do: segments of the shortest duration, together, that
  // begin at boundaries and end sooner than any single offering of it does that begins at one. The
  // segments are offerings of their own, in the order of their times.
  std::vector<std::vector<Offering>> split = {};
};

// The profile may be of an earlier moment.
SearchAnswer SearchOfferings(TimeProfile profile, const PriceList& prices,
                             const OfferingSearch& search, WallTime now);

// The hosts of a block in one cell.
struct CellShare {
  std::string cell;
  int hosts = 0;

  friend bool operator==(const CellShare&, const CellShare&) = default;
};

// Chooses the cells of a block: the one with the least room that suffices or, with `any_cell`, the
// fewest cells. Empty when there is no room.
std::vector<CellShare> ChooseCells(const TimeProfile& profile, const Product& product,
                                   const std::string& zone, SlotRange slots, int count,
                                   bool any_cell);

}  // namespace tahoma::controller
