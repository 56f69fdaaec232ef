// The time of Capacity Blocks: the wall clock's, or on a test clock a multiple of it.
//
//   const BlockTime time(origin, 1440);           // a day of blocks passes in a minute
//   book.Advance(time.ToBlock(now));
//   Sleep(time.ToWall(*book.wake()) - now);
//
// A book, its offerings and what is shown of its blocks are in block time. What leaves the book for
// gangs, pods and timers is translated back: their seconds are real. On a test clock both times are
// the same at the origin, when the store was created; the pair of origin and scale is kept there
// for ever (docs/formats/store.md), since other numbers would move the blocks that were sold.
//
// Block time ends with the year 2199, where a test clock stands still.
//
// Scope: the arithmetic, and how a store spells it.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/clock.h"

namespace tahoma::controller {

class BlockTime {
 public:
  static constexpr std::int64_t kScaleMost = 100'000;

  // The wall clock's time.
  BlockTime() = default;
  // `scale` is 2 to kScaleMost.
  BlockTime(WallTime origin, std::int64_t scale);

  bool test() const { return scale_ != 1; }
  std::int64_t scale() const { return scale_; }
  WallTime origin() const { return origin_; }

  WallTime ToBlock(WallTime wall) const;
  // Returns the first moment at which ToBlock gives `block` or later.
  WallTime ToWall(WallTime block) const;

  friend bool operator==(const BlockTime&, const BlockTime&) = default;

 private:
  WallTime origin_ = {};
  std::int64_t scale_ = 1;
};

// Returns "scale 1440 origin 1764095485000000000"; of a test clock.
std::string EncodeBlockTime(const BlockTime& time);
// kDataLoss for text that EncodeBlockTime did not write.
absl::StatusOr<BlockTime> DecodeBlockTime(std::string_view text);

// A clock that shows block time. Its monotonic time is the machine's.
class BlockClock final : public Clock {
 public:
  // `clock` must outlive it.
  BlockClock(const Clock& clock, BlockTime time) : clock_(clock), time_(time) {}
  WallTime WallNow() const override { return time_.ToBlock(clock_.WallNow()); }
  MonotonicTime MonotonicNow() const override { return clock_.MonotonicNow(); }

 private:
  const Clock& clock_;
  const BlockTime time_;
};

}  // namespace tahoma::controller
