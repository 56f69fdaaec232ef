// The fleet of later moments: what runs ends when, and who is promised hardware.
//
//   Timeline timeline({.fleet = cluster, .now = now, .ends = ends, .release = release});
//   if (auto start = timeline.FindEarliest(gang, planner)) Show(start->when, start->placement);
//
// A moment is a time at which something ends. FindEarliest asks the planner about the first moments
// that are not certainly too early, in order, then about moments further and further away, and
// halves the time before the first moment with room.
//
// Runs without a known end (End::kUnknown) end last, in their order, and only for a question that
// says Beyond::kUnknown.
//
// Scope: pure, but for the planner's memory, which changes no answer. A question looks at
// kLooksMost moments, and a few more where all are far away.
//
// Thread safety: one thread at a time.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "controller/timeline/promise.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Returns a decision for each gang, in the order of the queue (Planner::Plan).
using PlanFunction =
    std::function<std::vector<Decision>(const ClusterState&, const Queue&, WallTime, Explaining)>;

// Something that ends and gives hardware back.
struct End {
  static constexpr WallTime kUnknown = WallTime::max();

  WallTime when;
  std::uint64_t what = 0;  // for TimelineParts::release

  friend auto operator<=>(const End&, const End&) = default;
};

struct TimelineParts {
  ClusterState fleet;  // of now
  WallTime now;
  std::vector<End> ends = {};  // ascending; an end before now is about to happen
  // Frees the hardware of an end in the fleet.
  std::function<void(std::uint64_t what, ClusterState&)> release;
  // Returns the most chips that the end may free.
  std::function<std::int64_t(std::uint64_t what)> chips = nullptr;  // nullptr: not known
  // Keeps booked hardware in the fleet of a moment.
  std::function<void(WallTime when, ClusterState&)> keep = nullptr;
  // The promises to others that bind the gang.
  std::vector<std::shared_ptr<const Promise>> promises = {};
  std::size_t held = 0;  // the first so many promises are held in `fleet` already
};

class Timeline {
 public:
  static constexpr int kLooksMost = 24;

  struct Start {
    WallTime when;       // End::kUnknown: when some runs without a known end have ended
    bool exact = false;  // false: an earlier start may exist
    Placement placement;
    ClusterState fleet;  // of that time, without the gang
  };
  // Whether a start is looked for only at known times, or beyond.
  enum class Beyond : std::uint8_t { kKnown, kUnknown };

  explicit Timeline(TimelineParts parts);

  // Returns the earliest start after now; nullopt when none was found.
  std::optional<Start> FindEarliest(const std::shared_ptr<const GangSpec>& gang,
                                    const PlanFunction& plan, Beyond beyond = Beyond::kKnown) const;
  // Returns the start at the latest moment before `when`, if the gang has a place there.
  std::optional<Start> FindBefore(WallTime when, const std::shared_ptr<const GangSpec>& gang,
                                  const PlanFunction& plan) const;

 private:
  // The fleet at a time, and how much has ended by then.
  struct Moment {
    ClusterState fleet;
    std::size_t ends = 0;         // of parts_.ends
    std::vector<bool> kept = {};  // which promises are held
  };
  // Each end without a known time is a point of its own.
  struct Point {
    WallTime when;
    std::size_t ends = 0;  // that have happened by then
  };

  Moment Begin() const;
  bool HoldsAt(const Promise& promise, WallTime when, const GangSpec& gang) const;
  void Move(Moment& moment, const Point& to, const GangSpec& gang) const;
  std::size_t TooEarlyFor(std::int64_t chips) const;
  std::optional<Start> Look(const Moment& moment, const Point& at,
                            const std::shared_ptr<const GangSpec>& gang,
                            const PlanFunction& plan) const;

  TimelineParts parts_;
  std::vector<Point> points_;  // ascending
  std::size_t known_ = 0;      // points at known times
};

// Returns the fewest chips that the gang needs, as far as its shape or its number of chips says; 0
// for a gang without.
std::int64_t LeastChips(const GangSpec& gang);

}  // namespace tahoma::controller
