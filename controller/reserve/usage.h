// How the chips of a Capacity Block were used, counted from the block's start on.
//
//   BlockUsage usage{.as_of = block.start()};
//   usage.Add({.used = 48, .lent = 0, .idle = 16, .lost = 0}, now);
//   usage.total() / kChipMsOfHour;                               // chip-hours
//
// At each moment every bought chip is in one state: used by a gang of the block, lent to a
// preemptible gang, idle, or lost (failed, its node away, or not delivered yet). The four sums
// together are therefore exactly the chips times the time. The sums need an update only when a chip
// changes its state.
//
// Scope: counting. core/blocks/usage_meter.h follows the fleet.
//
// Thread safety: values.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lib/base/clock.h"

namespace tahoma::controller {

// Chips by their state.
struct ChipTally {
  std::int64_t used = 0;
  std::int64_t lent = 0;
  std::int64_t idle = 0;
  std::int64_t lost = 0;

  std::int64_t total() const { return used + lent + idle + lost; }
  ChipTally& operator+=(const ChipTally& other) {
    used += other.used;
    lent += other.lent;
    idle += other.idle;
    lost += other.lost;
    return *this;
  }
  ChipTally operator-() const { return {-used, -lent, -idle, -lost}; }
  friend bool operator==(const ChipTally&, const ChipTally&) = default;
};

// Whole milliseconds since 1970. Sums of whole numbers are exact, and do not depend on when they
// are taken. All chips of the largest block, for its longest time, are 2^46.
inline std::int64_t MillisecondsOf(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// Chip-milliseconds of a chip-hour.
constexpr std::int64_t kChipMsOfHour = 3'600'000;

struct BlockUsage {
  ChipTally chip_ms = {};  // chip-milliseconds
  WallTime as_of = {};     // the end of the time counted

  // Adds the time from `as_of` to `now`, with this use of the chips. Adds nothing when `now` is
  // before `as_of`: time does not go back.
  void Add(const ChipTally& chips, WallTime now) {
    if (now <= as_of) return;
    const std::int64_t time = MillisecondsOf(now) - MillisecondsOf(as_of);
    chip_ms += {chips.used * time, chips.lent * time, chips.idle * time, chips.lost * time};
    as_of = now;
  }
  std::int64_t total() const { return chip_ms.total(); }

  friend bool operator==(const BlockUsage&, const BlockUsage&) = default;
};

// Returns chip-hours as a decimal text with two digits: "1536.00".
std::string HoursText(std::int64_t chip_ms);
// Returns the part of the chip time so far that was used or lent: "83%"; "" without any time.
std::string UtilizationText(const BlockUsage& usage);

}  // namespace tahoma::controller
