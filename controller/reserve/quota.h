// How many instances the blocks of one owner may have at the same time, and on average.
//
//   QuotaTable quotas(today);
//   quotas.Set("team-a", Quota{.instances = 64, .average = 32});
//   TAHOMA_RETURN_IF_ERROR(quotas.Check("team-a", slots, 16));    // InstanceLimitExceeded
//   quotas.Add("team-a", slots, 16);
//
// EC2 allows 256 instances across all blocks of an account on any date
// (docs/reference/capacity-blocks.md#limits); that is the usual quota, of an owner for whom none is
// set. An average over a window is an addition, for owners who may have much now and then.
//
// A copy shares the counts of owners who have not changed since.
//
// Scope: counting. An owner is a namespace.
//
// Thread safety: belongs to one thread; any thread may read a copy.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/reserve/calendar.h"
#include "controller/reserve/slot_counts.h"

namespace tahoma::controller {

struct Quota {
  int instances = 256;              // in each slot
  std::optional<int> average = {};  // over any `window_days` slots in a row
  int window_days = 28;

  friend bool operator==(const Quota&, const Quota&) = default;
};

// The instances of an owner, from today on.
struct QuotaUse {
  Quota limits = {};               // as they apply
  int today = 0;                   // instances in the slot that is under way
  int peak = 0;                    // the most instances in a slot
  WallTime peak_at = {};           // when the first such slot begins
  std::int64_t instance_days = 0;  // the most in `limits.window_days` slots in a row

  bool over() const { return peak > limits.instances; }
  bool over_average() const {
    return limits.average && instance_days > std::int64_t{*limits.average} * limits.window_days;
  }
  friend bool operator==(const QuotaUse&, const QuotaUse&) = default;
};

class QuotaTable {
 public:
  // `usual` is the quota of an owner for whom none is set.
  explicit QuotaTable(Slot today, Quota usual = {}) : usual_(usual), today_(today) {}

  void AdvanceTo(Slot today);
  // nullopt: the owner's quota is the usual one again.
  void Set(const std::string& owner, std::optional<Quota> quota);
  Quota QuotaOf(std::string_view owner) const;

  // Adds instances to the slots from today on; a negative number takes them back.
  void Add(const std::string& owner, SlotRange slots, int instances);
  // Returns the most instances that the owner has in a slot of the range.
  int Most(std::string_view owner, SlotRange slots) const;
  QuotaUse UseOf(std::string_view owner) const;
  // Returns whether the owner may have so many more in each slot. Refused with
  // InstanceLimitExceeded.
  absl::Status Check(const std::string& owner, SlotRange slots, int instances) const;

 private:
  Quota usual_;
  Slot today_;
  std::map<std::string, Quota, std::less<>> quotas_;
  absl::flat_hash_map<std::string, std::shared_ptr<const SlotCounts>> held_;
};

}  // namespace tahoma::controller
