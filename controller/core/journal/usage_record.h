// The chip time of a queue of a namespace, the recent use of a queue, and their journal entries.
//
//   UsageSum sum{.as_of = now, .types = {{"trn2.48xlarge", 0, 16 * kEighthsOfChip}}};
//   sum.UpTo(now + std::chrono::hours(1)).types[0].eighth_ms;      // of 16 chip-hours
//   const std::string bytes = EncodeUsage({.key = {"team-a", "train"}, .sum = sum, .term = 3});
//
// Whole numbers: an eighth of a chip, a core of a Trainium2, for a millisecond. 62,500 instances
// reach the largest number in about 30 years. Recent use is stored in millionths of an eighth.
//
// The stored form is described in docs/formats/ledger.md. The newest entry of a queue replaces the
// entries before.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/reserve/usage.h"
#include "controller/share/queue_shares.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

inline constexpr std::int64_t kEighthsOfChip = 8;

struct UsageKey {
  std::string ns;
  std::string queue;

  friend auto operator<=>(const UsageKey&, const UsageKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const UsageKey& key) {
    return H::combine(std::move(h), key.ns, key.queue);
  }
};

struct UsageSum {
  struct OfType {
    std::string type;            // an instance type; "-" for a type that is not in the catalogue
    std::int64_t eighth_ms = 0;  // until as_of
    std::int64_t eighths = 0;    // held since then

    friend bool operator==(const OfType&, const OfType&) = default;
  };

  WallTime as_of;
  std::vector<OfType> types = {};  // by name

  // Moves as_of to `now`. Changes nothing when `now` is before: time does not go back.
  void Advance(WallTime now) {
    if (now <= as_of) return;
    const std::int64_t time = MillisecondsOf(now) - MillisecondsOf(as_of);
    for (OfType& one : types) one.eighth_ms += one.eighths * time;
    as_of = now;
  }
  UsageSum UpTo(WallTime now) const {
    UsageSum sum = *this;
    sum.Advance(now);
    return sum;
  }

  friend bool operator==(const UsageSum&, const UsageSum&) = default;
};

struct UsageRecord {
  UsageKey key;
  UsageSum sum;           // without what is held now: the runs of gangs say that
  std::int64_t term = 0;  // of the leadership that has counted
};

// The recent use of a queue in all namespaces. Chips held at `use.as_of` go on to be held, as the
// runs of gangs say.
struct QueueUseRecord {
  std::string queue;
  QueueUse use;
};

// Returns whether the entry is of these kinds, neither a record of a gang nor a Capacity Block.
bool IsUsageEntry(std::string_view bytes);
// Returns whether the entry is that of a QueueUseRecord.
bool IsQueueUseEntry(std::string_view bytes);

std::string EncodeUsage(const UsageRecord& record);
// kDataLoss for bytes that EncodeUsage did not write.
absl::StatusOr<UsageRecord> DecodeUsage(std::string_view bytes);

std::string EncodeQueueUse(const QueueUseRecord& record);
// kDataLoss for bytes that EncodeQueueUse did not write.
absl::StatusOr<QueueUseRecord> DecodeQueueUse(std::string_view bytes);

}  // namespace tahoma::controller
