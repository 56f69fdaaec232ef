#include "controller/run/test_clock.h"

#include <fmt/format.h>

#include <string>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr const char* kOrAnother = "or begin in another dataDir";

}  // namespace

WriteBatch TestClockEntry(std::int64_t scale, WallTime now) {
  WriteBatch batch;
  if (scale == 1) return batch;
  batch.Put(Keyspace::kLedger, std::string(kTestClockKey), EncodeBlockTime(BlockTime(now, scale)));
  return batch;
}

absl::StatusOr<BlockTime> BlockTimeOf(const Store& store, const std::string& dir,
                                      std::int64_t scale, WallTime now) {
  const absl::StatusOr<std::string> mark = store.Get(Keyspace::kLedger, kTestClockKey);
  if (!mark.ok() && !absl::IsNotFound(mark.status())) return mark.status();
  if (!mark.ok()) {
    if (scale == 1) return BlockTime();
    return FailedPrecondition(
        "timeScale: the store in {} was created without it, and its Capacity Blocks are no test; "
        "leave timeScale out, {}",
        dir, kOrAnother);
  }
  absl::StatusOr<BlockTime> time = DecodeBlockTime(*mark);
  if (!time.ok()) return Annotate(time.status(), fmt::format("the store in {}", dir));
  if (time->scale() != scale) {
    return FailedPrecondition(
        "timeScale: the store in {} is a test's for ever, created on {}: its Capacity Blocks live "
        "{} times as fast; give timeScale {}, {}",
        dir, FormatTime(time->origin()), time->scale(), time->scale(), kOrAnother);
  }
  const WallTime at = time->ToBlock(now);
  if (at == time->ToBlock(WallTime::max())) {
    return FailedPrecondition(
        "timeScale: the test clock of the store in {} stands at its end, {}; "
        "begin in another dataDir",
        dir, FormatTime(at));
  }
  return time;
}

std::string TestClockLine(const BlockTime& time, WallTime now) {
  return fmt::format(
      "TEST CLOCK: Capacity Blocks live {} times as fast (timeScale): a day takes {:.3g} s, and "
      "for "
      "them it is {}",
      time.scale(), 86400.0 / static_cast<double>(time.scale()), FormatTime(time.ToBlock(now)));
}

}  // namespace tahoma::controller
