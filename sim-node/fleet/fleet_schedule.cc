#include "sim-node/fleet/fleet_schedule.h"

#include <algorithm>

namespace tahoma::sim {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kNever{-1};

}  // namespace

FleetSchedule::FleetSchedule(Options options, MonotonicTime start)
    : options_(options), start_(start), renewed_(options.nodes, kNever) {
  ensure_.reserve(options.nodes);
  renew_.reserve(options.nodes);
  // In the order of their index, which is that of a heap.
  for (std::uint32_t node = 0; node < options.nodes; ++node) {
    ensure_.push_back({.at = {}, .node = node});
  }
}

void FleetSchedule::Push(Entry entry, Heap& heap) {
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end());
}

std::optional<FleetSchedule::Entry> FleetSchedule::Pop(nanoseconds now, Heap& heap) {
  if (heap.empty() || heap.front().at > now) return std::nullopt;
  std::pop_heap(heap.begin(), heap.end());
  const Entry entry = heap.back();
  heap.pop_back();
  return entry;
}

nanoseconds FleetSchedule::MomentAfter(nanoseconds now, nanoseconds period,
                                       std::uint32_t node) const {
  // Nodes that follow each other are far apart in the period: renewals that are due while the
  // first nodes are still being made are spread, too.
  constexpr std::uint64_t kGoldenRatio = 2'654'435'769;  // of 2^32
  const std::uint64_t part = (node * kGoldenRatio & 0xffff'ffffU) >> 16;
  const nanoseconds offset = period / 65'536 * static_cast<std::int64_t>(part);
  if (now < offset) return offset;
  return offset + ((now - offset) / period + 1) * period;
}

std::optional<FleetTask> FleetSchedule::PopDue(MonotonicTime now) {
  const nanoseconds at = now - start_;
  if (const auto entry = Pop(at, renew_)) {
    return FleetTask{.node = entry->node,
                     .work = FleetWork::kRenewLease,
                     .late = at - entry->at,
                     .silent = at - renewed_[entry->node]};
  }
  if (const auto entry = Pop(at, ensure_)) {
    return FleetTask{.node = entry->node,
                     .work = FleetWork::kEnsure,
                     .first = renewed_[entry->node] == kNever,
                     .late = at - entry->at};
  }
  return std::nullopt;
}

std::optional<MonotonicTime> FleetSchedule::next() const {
  std::optional<nanoseconds> at;
  for (const Heap* heap : {&renew_, &ensure_}) {
    if (!heap->empty()) at = at ? std::min(*at, heap->front().at) : heap->front().at;
  }
  if (!at) return std::nullopt;
  return start_ + *at;
}

void FleetSchedule::Finish(const FleetTask& task, MonotonicTime now) {
  const nanoseconds at = now - start_;
  if (task.work == FleetWork::kRenewLease || task.first) {
    renewed_[task.node] = at;
    Push({MomentAfter(at, options_.lease_period, task.node), task.node}, renew_);
  }
  if (task.work == FleetWork::kRenewLease) return;
  if (task.first) ++ensured_;
  // Not sooner than half a period after the last time.
  const nanoseconds period = options_.resync_period;
  Push({MomentAfter(at + period / 2, period, task.node), task.node}, ensure_);
}

void FleetSchedule::PutBack(const FleetTask& task, MonotonicTime at) {
  Push({at - start_, task.node}, task.work == FleetWork::kRenewLease ? renew_ : ensure_);
}

}  // namespace tahoma::sim
