#include "controller/reserve/quota.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "controller/reserve/refusal.h"

namespace tahoma::controller {
namespace {

// Returns the most instances together in any window that overlaps the range.
std::int64_t MostInWindow(const std::vector<std::int64_t>& counts, std::size_t width) {
  std::int64_t sum = 0, most = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum += counts[i];
    if (i >= width) sum -= counts[i - width];
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

void QuotaTable::AdvanceTo(Slot today) {
  if (today <= today_) return;
  for (auto& [owner, counts] : held_) {
    auto left = std::make_shared<SlotCounts>(*counts);
    left->Forget(today_, today);
    counts = std::move(left);
  }
  today_ = today;
  absl::erase_if(held_, [&](const auto& held) {
    return held.second->Most({today, today + kSlotsAhead}) == 0;
  });
}

void QuotaTable::Set(const std::string& owner, std::optional<Quota> quota) {
  if (quota) {
    quotas_[owner] = *quota;
  } else {
    quotas_.erase(owner);
  }
}

Quota QuotaTable::QuotaOf(std::string_view owner) const {
  const auto found = quotas_.find(owner);
  return found == quotas_.end() ? usual_ : found->second;
}

void QuotaTable::Add(const std::string& owner, SlotRange slots, int instances) {
  slots.first = std::max(slots.first, today_);
  if (slots.empty()) return;
  std::shared_ptr<const SlotCounts>& held = held_[owner];
  auto counts =
      held == nullptr ? std::make_shared<SlotCounts>() : std::make_shared<SlotCounts>(*held);
  counts->Add(slots, instances);
  held = std::move(counts);
}

int QuotaTable::Most(std::string_view owner, SlotRange slots) const {
  const auto found = held_.find(std::string(owner));
  return found == held_.end() ? 0 : found->second->Most(slots);
}

QuotaUse QuotaTable::UseOf(std::string_view owner) const {
  QuotaUse use{.limits = QuotaOf(owner)};
  const auto found = held_.find(std::string(owner));
  if (found == held_.end()) return use;
  use.today = found->second->at(today_);
  std::vector<std::int64_t> counts;
  for (Slot slot = today_; slot < today_ + kSlotsAhead; ++slot) {
    const int held = found->second->at(slot);
    counts.push_back(held);
    if (held <= use.peak) continue;
    use.peak = held;
    use.peak_at = StartOf(slot);
  }
  use.instance_days = MostInWindow(counts, static_cast<std::size_t>(use.limits.window_days));
  return use;
}

absl::Status QuotaTable::Check(const std::string& owner, SlotRange slots, int instances) const {
  const Quota quota = QuotaOf(owner);
  const int most = Most(owner, slots);
  if (most + instances > quota.instances) {
    return Refuse(kInstanceLimitExceeded,
                  "{} instances beside the {} that the blocks of {} have then are more than the "
                  "{} that are allowed on any date",
                  instances, most, owner, quota.instances);
  }
  if (!quota.average) return absl::OkStatus();
  const auto found = held_.find(owner);
  std::vector<std::int64_t> counts;
  const Slot first = std::max(today_, slots.first - quota.window_days + 1);
  const Slot last = std::min(today_ + kSlotsAhead, slots.last + quota.window_days - 1);
  for (Slot slot = first; slot < last; ++slot) {
    const std::int64_t held = found == held_.end() ? 0 : found->second->at(slot);
    counts.push_back(held + (slot >= slots.first && slot < slots.last ? instances : 0));
  }
  const std::int64_t window = MostInWindow(counts, static_cast<std::size_t>(quota.window_days));
  if (window > std::int64_t{*quota.average} * quota.window_days) {
    return Refuse(kInstanceLimitExceeded,
                  "the blocks of {} would have {} instance-days in {} days; an average of {} "
                  "instances is allowed",
                  owner, window, quota.window_days, *quota.average);
  }
  return absl::OkStatus();
}

}  // namespace tahoma::controller
