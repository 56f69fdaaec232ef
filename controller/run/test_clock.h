// The time of Capacity Blocks that a store was created with.
//
//   const StoreOptions options{.dir = dir, .first = TestClockEntry(1440, clock.WallNow())};
//   TAHOMA_ASSIGN_OR_RETURN(const auto store, Store::Open(options));
//   TAHOMA_ASSIGN_OR_RETURN(const BlockTime time, BlockTimeOf(*store, dir, 1440, clock.WallNow()));
//
// A store that was created with --time-scale is marked as a test's for ever: its blocks were sold
// by a clock that nobody else has. It is refused without the same scale, and a store without the
// mark is refused with one, so that no real block is rushed through.
//
// Scope: the mark (docs/formats/store.md). What it means is reserve/block_time.h's.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "controller/reserve/block_time.h"
#include "controller/store/store.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// The key of the mark in Keyspace::kLedger: there, because a backup has it too.
inline constexpr std::string_view kTestClockKey = "test-clock";

// Returns the mark of a store that is created now; nothing for the scale 1.
WriteBatch TestClockEntry(std::int64_t scale, WallTime now);

// kFailedPrecondition says what to do when the store in `dir` was created with another scale.
absl::StatusOr<BlockTime> BlockTimeOf(const Store& store, const std::string& dir,
                                      std::int64_t scale, WallTime now);

// Returns what the log says of a test clock at a start.
std::string TestClockLine(const BlockTime& time, WallTime now);

}  // namespace tahoma::controller
