// The block time of a store, which the store has since it was created.
//
//   const StoreOptions options{.dir = dir, .first = TestClockEntry(1440, clock.WallNow())};
//   TAHOMA_ASSIGN_OR_RETURN(const auto store, Store::Open(options));
//   TAHOMA_ASSIGN_OR_RETURN(const BlockTime time, BlockTimeOf(*store, dir, 1440, clock.WallNow()));
//
// A store created with --time-scale is marked as a test's for ever: its blocks were sold by a clock
// of its own. Such a store is refused without the same scale, and a store without the mark is
// refused with a scale: no real block is rushed through.
//
// Scope: the mark (docs/formats/store.md). reserve/block_time.h defines the scaled time.
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

// The key of the mark in Keyspace::kLedger, a keyspace that backups copy.
inline constexpr std::string_view kTestClockKey = "test-clock";

// Returns the mark of a store that is created now; nothing for the scale 1.
WriteBatch TestClockEntry(std::int64_t scale, WallTime now);

// kFailedPrecondition when the store in `dir` has another scale; the message says how to go on.
absl::StatusOr<BlockTime> BlockTimeOf(const Store& store, const std::string& dir,
                                      std::int64_t scale, WallTime now);

// Returns the log line about a test clock at a start.
std::string TestClockLine(const BlockTime& time, WallTime now);

}  // namespace tahoma::controller
