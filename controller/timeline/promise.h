// A promise: hardware of topology domains is somebody's from one time to another.
//
//   Promise promise;
//   promise.holder = "gang default/train";
//   promise.from = now + std::chrono::hours(2);
//   promise.until = promise.from + std::chrono::hours(8);
//   Meets(promise, now, std::chrono::hours(1));  // false: the hour is over before
//
// Hardware is promised to a waiting gang that would begin later if others took the hardware first,
// to a gang that others are ended for, and to people who maintain the hardware.
//
// Scope: values. Who is promised hardware: core/queue/promises.h.
//
// Thread safety: values; pure functions.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/model/ids.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class PromiseKind : std::uint8_t {
  kStart,        // of a gang that waits until running gangs have ended
  kPatience,     // of a gang that has been passed by as much work as its queue bears
  kPreempt,      // of a gang that others are ended for
  kMaintenance,  // of a maintenance window: no gang runs there meanwhile
  kMove,         // of a gang that moves, and of whoever gets the place that the moves make
};

struct Promise {
  PromiseKind kind = PromiseKind::kStart;
  std::string holder;  // for people: "gang default/train"
  // The holder, if a gang: the Gang's key, or that of a pod without a Gang.
  std::optional<GangKey> gang = std::nullopt;
  bool single_pod = false;
  // The time from which the hardware is the holder's; WallTime::min(): as the hardware comes free.
  WallTime from = WallTime::min();
  WallTime until = WallTime::max();  // the holder's latest end
  // The start that was promised first, where `from` has moved on by little: gangs that pass go by
  // this start, else each of them could move `from` by a grain more.
  std::optional<WallTime> first_from = {};
  std::string place;  // for people: "us-0 4x4x4+0,0,0"
  // The devices, under uids of no claim.
  std::vector<std::shared_ptr<const Holding>> holdings;
};

// Promises are kept to this: pods start some seconds after their decision, and end some seconds
// after their time. Slurm's backfill has the same grain (bf_resolution).
inline constexpr std::chrono::seconds kPromiseGrain{60};

// Makes the gang the holder of the promise.
void SetHolder(const GangSpec& gang, Promise& promise);

// Returns whether a gang that begins at `start` and ends within `runtime` (nullopt: perhaps never)
// would run at a time of the promise, for longer than the grain.
bool Meets(const Promise& promise, WallTime start, std::optional<std::chrono::seconds> runtime);

// Returns by when the hardware must be promised to others from, so that the gang may begin at
// `start`: the gang has gone by then. A preemptible gang is ended in time; a shorter run than
// kLoanLeast is not begun.
WallTime GoneFrom(const GangSpec& gang, WallTime start);
// Returns whether the promise keeps a gang away that would begin at `start`. Maintenance begins on
// time, so the grain of other promises does not count.
bool Binds(const Promise& promise, const GangSpec& gang, WallTime start);

// Returns "Start", "Patience", "Preempt", "Move" or "Maintenance".
std::string_view ToString(PromiseKind kind);
// Returns "it begins by 2026-12-01T09:00:00Z on us-0 4x4x4+0,0,0", or what else is kept where.
std::string Describe(const Promise& promise);

}  // namespace tahoma::controller
