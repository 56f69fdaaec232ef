#include "controller/core/commit/gang_usage.h"

#include <algorithm>
#include <utility>

#include "controller/core/journal/gang_decision.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

// The catalogue bounds the types: any other name is one.
std::string TypeOf(const Node& node) {
  return node.family == nullptr || node.family->type == nullptr ? "-" : node.family->instance_type;
}

}  // namespace

void GangUsage::Restore(Sequence sequence, UsageRecord record) {
  counted_by_ = std::max(counted_by_, record.term);
  if (sums_.Find(record.key) == nullptr) ++queues_of_[record.key.ns];
  entries_[record.key] = sequence;
  sums_.Put(record.key, std::move(record.sum));
}

// Returns the eighths of chips that a bound run holds, of nodes that are there.
GangUsage::Tally GangUsage::TallyOf(const GangRun& run, const ClusterState& cluster) {
  Tally tally;
  if (run.phase() != RunPhase::kBound && !run.bound_at()) return tally;
  const std::vector<DecidedClaim>& claims = run.decision().claims;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].allocated_before || run.claim_released(i)) continue;
    Holding holding;
    HoldDevicesOf(claims[i].allocation, holding);
    std::set<std::string> nodes;
    for (const Holding::HeldDevice& device : holding.devices) nodes.insert(device.node);
    for (const std::string& name : nodes) {
      const std::optional<NodeId> id = cluster.FindNode(name);
      const Node* node = id ? cluster.node(*id).node.get() : nullptr;
      if (node == nullptr) continue;
      if (const int eighths = EighthsOf(holding, *node); eighths > 0) {
        tally[TypeOf(*node)] += eighths;
      }
    }
  }
  return tally;
}

// Returns the key under which the queue is counted.
UsageKey GangUsage::PlaceOf(UsageKey key) const {
  if (sums_.Find(key) != nullptr) return key;
  if (sums_.size() >= kQueuesMost) return {kOtherQueues, kOtherQueues};
  const auto queues = queues_of_.find(key.ns);
  if (queues != queues_of_.end() && queues->second >= kQueuesOfNamespace) key.queue = kOtherQueues;
  return key;
}

// Counts `tally` more from `since` on, or less for the sign -1. Before `since` it was as it was.
void GangUsage::Change(const UsageKey& key, const Tally& tally, int sign, WallTime since,
                       WallTime now) {
  if (tally.empty()) return;
  UsageSum sum{.as_of = now};
  if (const UsageSum* known = sums_.Find(key)) {
    sum = *known;
  } else {
    ++queues_of_[key.ns];
  }
  const std::int64_t before =
      std::max<std::int64_t>(MillisecondsOf(since) - MillisecondsOf(sum.as_of), 0);
  for (const auto& [type, eighths] : tally) {
    auto one = std::ranges::lower_bound(sum.types, type, {}, &UsageSum::OfType::type);
    if (one == sum.types.end() || one->type != type) one = sum.types.insert(one, {.type = type});
    one->eighths += sign * eighths;
    one->eighth_ms -= sign * eighths * before;
    TAHOMA_CHECK(one->eighths >= 0);
  }
  sums_.Put(key, std::move(sum));
  changed_.insert(key);
}

void GangUsage::Take(const GangRef& ref, const GangRuns& runs, const ClusterState& cluster,
                     WallTime now) {
  const GangRun* run = runs.Find(ref);
  Held next;
  if (run != nullptr) {
    next.tally = TallyOf(*run, cluster);
    const std::string& queue = run->decision().queue;
    // Decisions of earlier versions name none.
    next.key = PlaceOf({ref.key.ns, queue.empty() ? "default" : queue});
  }
  const auto held = held_.find(ref);
  if (held != held_.end() && held->second.key == next.key && held->second.tally == next.tally) {
    return;
  }
  // The time in which no controller ran counts.
  const bool goes_on = !begun_ && run != nullptr && run->bound_at();
  const WallTime since = goes_on ? std::min(*run->bound_at(), now) : now;
  if (held != held_.end()) {
    Change(held->second.key, held->second.tally, -1, now, now);
    held_.erase(held);
  }
  if (next.tally.empty()) return;
  Change(next.key, next.tally, 1, since, now);
  held_.emplace(ref, std::move(next));
}

void GangUsage::TakeTouched(const GangRuns& runs, const ClusterState& cluster, WallTime now) {
  for (const GangRef& ref : std::exchange(touched_, {})) Take(ref, runs, cluster, now);
}

void GangUsage::Begin(const GangRuns& runs, const ClusterState& cluster, WallTime now) {
  now_ = now;
  // Another controller has led since this one counted, and has counted the time in between.
  if (term_ > counted_by_ + 1) {
    std::vector<std::pair<UsageKey, UsageSum>> all;
    sums_.ForEach([&](const UsageKey& key, const UsageSum& sum) { all.emplace_back(key, sum); });
    for (auto& [key, sum] : all) {
      sum.as_of = std::max(sum.as_of, now);
      sums_.Put(key, std::move(sum));
    }
  }
  TakeTouched(runs, cluster, now);
  begun_ = true;
}

void GangUsage::Update(const GangRuns& runs, const ClusterState& cluster, WallTime now,
                       JournalBuffer& journal) {
  now_ = now = std::max(now, now_);
  TakeTouched(runs, cluster, now);
  if (now >= recorded_ + kRecordEvery) {
    for (const auto& [ref, held] : held_) changed_.insert(held.key);
    recorded_ = now;
  }
  for (const UsageKey& key : std::exchange(changed_, {})) {
    UsageSum sum = sums_.Find(key)->UpTo(now);
    const auto entry = entries_.find(key);
    if (entry != entries_.end()) journal.Drop(entry->second);
    entries_[key] = journal.Add(EncodeUsage({.key = key, .sum = sum, .term = term_}));
    sums_.Put(key, std::move(sum));
  }
}

std::optional<WallTime> GangUsage::wake() const {
  if (held_.empty()) return std::nullopt;
  return recorded_ + kRecordEvery;
}

}  // namespace tahoma::controller
