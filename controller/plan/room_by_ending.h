// Where a gang would have room if running gangs ended: by chips alone.
//
// A gang consists of parts: boxes or, without a shape, pods. Parts are taken to be alike, and to
// need chips only. The planner checks everything else: a set of gangs that frees too few chips
// frees no place, but a set that frees enough chips may free no place either.
//
// Scope: which sets of gangs free chips, and their cost. victims.h chooses.
//
// Thread safety: values.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "lib/base/clock.h"
#include "lib/torus/box.h"

namespace tahoma::controller {

// A gang that runs and may be ended.
struct RunningGang {
  std::vector<std::string> claims;  // uids
  std::vector<PodKey> pods;
  std::int64_t work = 0;  // lost at the end: chip-seconds
  std::int32_t priority = 0;
  WallTime begun{};
};

// Gangs that end together, ascending.
using Ended = std::vector<std::size_t>;

// Returns the fleet without those gangs.
ClusterState Without(const ClusterState& view, std::span<const RunningGang> gangs,
                     std::span<const std::size_t> ended);

enum class EndOrder : std::uint8_t {
  kFewest,     // the fewest gangs, then the least work
  kLeastWork,  // the least work, then the fewest gangs
};

// The cost of ending gangs: their number and their work in the order that counts, then the lowest
// priorities and the gangs that began last.
struct EndCost {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::vector<std::size_t> ranks;  // ascending; the first in rank ends first

  friend auto operator<=>(const EndCost&, const EndCost&) = default;
};

class RoomByEnding {
 public:
  // How many sets of gangs are compared at most for one gang of several parts, and for one node.
  static constexpr int kStepsMost = 20000;
  static constexpr int kStepsOnNodeMost = 5000;

  // `all` is the gang's placement in the fleet where each of `gangs` has ended.
  RoomByEnding(const ClusterState& view, const GangSpec& gang, const Placement& all,
               std::span<const RunningGang> gangs, WallTime now,
               EndOrder order = EndOrder::kFewest);

  // Returns whether the gang's parts are alike. Else the room is not known.
  bool known() const { return known_; }
  std::size_t parts() const { return parts_; }
  // Returns the sets that free chips for a part, the cheapest first: for a gang of one part the
  // cheapest of all.
  std::vector<Ended> ForOne() const;
  // A set that frees chips for each part. `cheapest` says that each cheaper set was looked at.
  struct Choice {
    Ended ended;
    bool cheapest = false;
  };
  // Begins with the set that costs least per part, and then compares others.
  Choice ForAll() const;
  EndCost CostOf(const Ended& ended) const;

 private:
  struct HeldChips {
    std::size_t gang = 0;
    torus::ChipMask chips = 0;
  };
  // A topology domain or, for parts without a box, a node.
  struct Site {
    torus::ChipMask usable = 0;  // free, or held by nobody but the gangs
    std::vector<HeldChips> held = {};
    std::vector<torus::ChipMask> boxes = {};  // in `usable`
  };
  using Flags = std::vector<bool>;
  class Comparison;

  bool LearnParts(const ClusterState& view, const GangSpec& gang, const Placement& all);
  void LearnSites(const ClusterState& view, const GangSpec& gang, WallTime now);
  static void HoldIn(const ClusterState& view, const DomainState& domain,
                     const absl::flat_hash_map<std::string, std::size_t>& gang_of, Site& site);
  void AddSites(const DomainState& domain, const Site& whole);
  std::vector<torus::ChipMask> BoxesIn(const DomainState& domain, torus::ChipMask usable) const;
  int PartsIn(const Site& site, torus::ChipMask free) const;
  static torus::ChipMask FreeOf(const Site& site, const Flags& ended);
  std::vector<Ended> ToOneMore(const Site& site, const Flags& ended) const;
  Ended FewestOnNode(const Site& site, const Flags& ended) const;
  std::size_t Gain(const Ended& more, Flags& ended) const;
  Ended Greedy() const;
  void Spare(Ended& chosen) const;
  std::size_t PartsWith(const Flags& ended) const;
  Flags FlagsOf(const Ended& ended) const;

  const EndOrder order_;
  std::vector<RunningGang> gangs_;
  std::vector<std::size_t> rank_;  // by gang
  bool known_ = false;
  std::size_t parts_ = 0;
  int chips_ = 0;                    // of a part
  std::vector<torus::Shape> sizes_;  // of a part's box, as placed; empty: parts are pods
  std::vector<Site> sites_;          // where some gang holds chips
  std::vector<std::vector<std::size_t>> sites_of_;  // by gang
  std::size_t elsewhere_ = 0;                       // parts for which other domains have room
};

}  // namespace tahoma::controller
