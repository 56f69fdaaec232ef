#include "controller/core/queue/reclaim_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>

namespace tahoma::controller {
namespace {

// Milliseconds, as annotations of pods have them.
WallTime Shown(WallTime time) { return std::chrono::floor<std::chrono::milliseconds>(time); }

std::int64_t ChipsIn(const ChipCounts& counts, const std::string& type) {
  const auto found = counts.find(type);
  return found == counts.end() ? 0 : found->second;
}

// Gangs in Capacity Blocks have times of their own.
bool MayBeTold(const GangDecision& decision) { return decision.preemptible && !decision.reclaim; }

bool RunsThen(const GangDecision& decision, WallTime then) {
  return !decision.end || *decision.end > then;
}

// Returns whether the gang's queue, or a queue above, holds more than the guarantee.
bool IsBeyond(const ReclaimWarnings::Holder& holder, const QueueShares& shares) {
  const QueueTree& tree = shares.tree();
  for (const std::size_t above : tree.PathOf(*tree.IndexOf(holder.queue))) {
    const QueueTree::Node& node = tree.nodes()[above];
    for (const auto& [type, held] : shares.HeldOf(node.name)) {
      if (holder.amount.contains(type) && held > ChipsIn(node.guaranteed, type) * kEighthsOfChip) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

void ReclaimWarnings::AddWanted(const Holders& holders, const QueueTree& tree,
                                const QueueCalendars::Change& change, Wanted& wanted) const {
  const QueueTree then(EffectiveSpecs(facts_.queues, change.in_force));
  std::map<std::size_t, Eighths> held;  // then, by all that run on
  for (const auto& [ref, holder] : holders) {
    if (!RunsThen(*holder.decision, change.at)) continue;
    for (const std::size_t above : tree.PathOf(*tree.IndexOf(holder.queue))) {
      for (const auto& [type, eighths] : holder.amount) held[above][type] += eighths;
    }
  }
  std::map<std::pair<std::size_t, std::string>, std::string> lowered;  // why, by queue and type
  for (const auto& [index, amount] : held) {
    const QueueTree::Node& node = tree.nodes()[index];
    const QueueTree::Node* after = then.Find(node.name);
    for (const auto& [type, eighths] : amount) {
      const std::int64_t now = ChipsIn(node.guaranteed, type);
      const std::int64_t left = after == nullptr ? 0 : ChipsIn(after->guaranteed, type);
      if (left >= now || eighths <= left * kEighthsOfChip) continue;
      lowered[{index, type}] = fmt::format(
          "it may be ended on {}, when {}: queue {} is guaranteed {} chips of {} then, "
          "not {}",
          FormatTime(change.at), change.why, node.name, left, type, now);
    }
  }
  if (lowered.empty()) return;
  for (const auto& [ref, holder] : holders) {
    if (!MayBeTold(*holder.decision) || !RunsThen(*holder.decision, change.at)) continue;
    for (const std::size_t above : tree.PathOf(*tree.IndexOf(holder.queue))) {
      for (const auto& [type, eighths] : holder.amount) {
        const auto why = lowered.find({above, type});
        if (why != lowered.end()) wanted.try_emplace(ref, change.at, why->second);
      }
    }
  }
}

// Returns the time that a pod of the gang shows.
std::optional<WallTime> ReclaimWarnings::ShownBy(const GangDecision& decision) const {
  for (const DecidedPod& pod : decision.pods) {
    const auto fact = facts_.pods.Find(PodKey{decision.key.ns, pod.name});
    if (fact != nullptr && fact->uid == pod.uid && fact->bound_reclaim) return fact->bound_reclaim;
  }
  return std::nullopt;
}

void ReclaimWarnings::Compare(const GangRef& ref, const Holder& holder, const Wanted& wanted,
                              const QueueShares& shares, WallTime now) {
  if (!MayBeTold(*holder.decision)) return;
  auto told = told_.find(ref);
  if (told == told_.end() && first_) {
    if (const auto shown = ShownBy(*holder.decision)) {
      told = told_.try_emplace(ref, Told{holder.run, *shown, nullptr}).first;
    }
  }
  if (told != told_.end() && told->second.run != holder.run) {
    told_.erase(told);
    told = told_.end();
  }
  const auto want = wanted.find(ref);
  if (want == wanted.end()) {
    if (told == told_.end()) return;
    if (told->second.reclaim <= now && IsBeyond(holder, shares)) return;
    warnings_.push_back({.run = holder.run, .reclaim = std::nullopt, .message = ""});
    told_.erase(told);
    return;
  }
  const bool known = told != told_.end() && told->second.reclaim == Shown(want->second.first);
  if (known && told->second.decision == holder.decision) return;
  warnings_.push_back({.run = holder.run,
                       .reclaim = want->second.first,
                       .message = known ? "" : want->second.second});
  told_.insert_or_assign(ref, Told{holder.run, Shown(want->second.first), holder.decision});
}

std::optional<WallTime> ReclaimWarnings::EndToldTo(const GangRun& run) const {
  const GangDecision& decision = run.decision();
  const auto told = told_.find({decision.key, decision.single});
  if (told != told_.end() && told->second.run == run.id()) return told->second.reclaim;
  const bool unknown = first_ && !facts_.queue_calendars.empty() && MayBeTold(decision);
  return unknown ? ShownBy(decision) : std::nullopt;
}

void ReclaimWarnings::Find(const Holders& holders, const QueueShares& shares,
                           const CalendarKeeper& calendars, WallTime now) {
  Wanted wanted;
  next_.reset();
  open_ = false;
  for (const QueueCalendars::Change& change : calendars.coming()) {
    const WallTime from = change.at - change.warning;
    if (from > now) {
      next_ = std::min(next_.value_or(from), from);
      continue;
    }
    open_ = true;
    AddWanted(holders, shares.tree(), change, wanted);
  }
  if (!first_ && wanted.empty() && told_.empty()) return;
  for (const auto& [ref, holder] : holders) Compare(ref, holder, wanted, shares, now);
  first_ = false;
  absl::erase_if(told_, [&](const auto& one) { return !holders.contains(one.first); });
  open_ = open_ || !told_.empty();
  std::ranges::sort(warnings_, {}, &ReclaimWarning::run);
}

}  // namespace tahoma::controller
