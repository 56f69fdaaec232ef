// The part of Core that moves gangs: runs forward, new gangs into runs, and tells about both.

#include <algorithm>

#include "controller/ledger/core.h"
#include "controller/plan/score.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// A message lists at most this many nodes by name.
constexpr std::size_t kNodesListed = 8;

std::string JoinNodes(const GangDecision& decision) {
  std::vector<std::string> nodes;
  for (const DecidedPod& pod : decision.pods) {
    if (std::find(nodes.begin(), nodes.end(), pod.node) == nodes.end()) nodes.push_back(pod.node);
  }
  const std::size_t listed = std::min(nodes.size(), kNodesListed);
  std::string text = fmt::format(
      "{}", fmt::join(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(listed), ", "));
  if (nodes.size() > listed) text += fmt::format(" and {} more", nodes.size() - listed);
  return text;
}

std::string PlacementOf(const GangDecision& decision) {
  std::vector<std::string> slices;
  for (const DecidedSlice& slice : decision.slices) slices.push_back(PlacementText(slice));
  return slices.empty() ? JoinNodes(decision) : fmt::format("{}", fmt::join(slices, "; "));
}

GangDecision DecisionOf(const GangSpec& spec, const Placement& placement, WallTime now) {
  GangDecision decision;
  decision.key = spec.key;
  decision.uid = spec.uid;
  decision.single = spec.single_pod;
  if (spec.max_runtime) decision.end = now + *spec.max_runtime;
  for (const SlicePlacement& slice : placement.slices) {
    DecidedSlice& added = decision.slices.emplace_back();
    added.unit = slice.unit;
    added.shape = slice.box.size.ToString();
    added.origin = torus::ToString(slice.box.origin);
    added.nodes = slice.nodes;
  }
  absl::flat_hash_map<std::string, std::uint32_t> claim_index;  // by name
  for (const MemberPlacement& member : placement.members) {
    decision.pods.push_back({.name = member.pod.name,
                             .uid = member.uid,
                             .node = member.node,
                             .rank = static_cast<std::uint32_t>(member.rank),
                             .slice = static_cast<std::uint32_t>(member.slice)});
    for (const ClaimPlacement& claim : member.claims) {
      claim_index[claim.claim.name] = static_cast<std::uint32_t>(decision.claims.size());
      DecidedClaim decided;
      decided.name = claim.claim.name;
      decided.uid = claim.uid;
      decided.allocation = claim.allocation;
      decision.claims.push_back(std::move(decided));
    }
  }
  for (const MemberSpec& member : spec.members) {
    const auto pod = std::find_if(decision.pods.begin(), decision.pods.end(),
                                  [&](const DecidedPod& p) { return p.name == member.pod.name; });
    TAHOMA_CHECK(pod != decision.pods.end());
    const auto index = static_cast<std::uint32_t>(pod - decision.pods.begin());
    for (const ClaimSpec& claim : member.claims) {
      const auto [found, added] = claim_index.try_emplace(
          claim.key.name, static_cast<std::uint32_t>(decision.claims.size()));
      if (added) {  // allocated before: only reserved for our pods
        DecidedClaim decided;
        decided.name = claim.key.name;
        decided.uid = claim.uid;
        decided.allocation.node = claim.allocated_node.value_or("");
        decided.allocated_before = true;
        decision.claims.push_back(std::move(decided));
      }
      auto& consumers = decision.claims[found->second].consumers;
      if (consumers.empty() || consumers.back() != index) consumers.push_back(index);
    }
  }
  return decision;
}

// What a pod waits for that is not one of those for which its gang was placed.
std::string BecauseOthersRun(const GangRef& ref) {
  if (ref.single) return "a pod of this name that was placed before still has its claims";
  return fmt::format("{} runs with other pods; it is placed again when they have ended",
                     Describe(ref));
}

GangCondition Condition(ConditionType type, bool holds, GangReason reason, std::string message) {
  return {.type = type,
          .status = holds ? ConditionStatus::kTrue : ConditionStatus::kFalse,
          .reason = reason,
          .message = std::move(message),
          .since = {}};
}

GangReason ReasonOf(BlockedReason reason) {
  switch (reason) {
    case BlockedReason::kWaitsForCapacity:
      return GangReason::kWaitsForCapacity;
    case BlockedReason::kNeverFits:
      return GangReason::kNeverFits;
    case BlockedReason::kInvalid:
      return GangReason::kInvalid;
  }
  TAHOMA_CHECK(false);
  return GangReason::kNone;
}

}  // namespace

// Where a gang stands, found once for everybody who is told.
struct Core::Standing {
  GangPhase phase = GangPhase::kPending;
  GangReason reason = GangReason::kNone;
  std::string message;
  const GangRun* run = nullptr;  // nullptr: it waits, or has ended
  const Waiting* waiting = nullptr;
};

void Core::AdvanceRuns() {
  while (!wakes_.empty() && wakes_.begin()->first <= now_.monotonic) {
    touched_runs_.insert(wakes_.begin()->second);
    FindRun(wakes_.begin()->second)->wake.reset();
    wakes_.erase(wakes_.begin());
  }
  touched_runs_.insert(held_back_.begin(), held_back_.end());
  const std::set<RunId> touched = std::move(touched_runs_);
  touched_runs_.clear();
  for (const RunId id : touched) AdvanceRun(id);
}

void Core::AdvanceRun(RunId id) {
  RunEntry* entry = FindRun(id);
  if (entry == nullptr) return;
  const GangRef ref = entry->ref;
  if (entry->restored) {
    const bool held_back = IsHeldBack(*entry);
    entry->run.HoldBack(held_back);
    held_back ? static_cast<void>(held_back_.insert(id)) : static_cast<void>(held_back_.erase(id));
  }
  while (std::optional<Record> record = entry->run.Next(now_.monotonic, attempts_, out_.writes)) {
    CommitAndTell(*record);
    if (std::holds_alternative<GangReleased>(*record)) return;  // the entry is gone
    touched_gangs_.insert(ref);
  }
  if (entry->wake == entry->run.wake()) return;
  if (entry->wake) wakes_.erase({*entry->wake, id});
  entry->wake = entry->run.wake();
  if (entry->wake) wakes_.insert({*entry->wake, id});
}

// Whether devices that the journal gave to the run are in claims of others, in an API that was
// restored from a backup.
bool Core::IsHeldBack(const RunEntry& entry) const {
  return entry.run.phase() != RunPhase::kUndoing && HoldsWhatOthersHave(entry.run.decision());
}

// Tells people about a record that is about to be committed.
void Core::Tell(const RunEntry& entry, const Record& record) {
  const GangDecision& decision = entry.run.decision();
  if (std::holds_alternative<GangBound>(record)) {
    ++counters_.gangs_bound;
    counters_.pods_bound += decision.pods.size();
    for (const DecidedPod& pod : decision.pods) {
      TellPod({decision.key.ns, pod.name}, EventReason::kScheduled,
              fmt::format("Successfully assigned {}/{} to {}", decision.key.ns, pod.name, pod.node),
              false);
    }
  } else if (const auto* undoing = std::get_if<GangUndoing>(&record)) {
    ++counters_.gangs_undone;
    TellGang(entry.ref, EventReason::kGangUndone, undoing->reason, true);
  } else if (std::holds_alternative<GangReleased>(record) &&
             entry.run.phase() == RunPhase::kUndoing) {
    const MonotonicTime until = now_.monotonic + kUndoneWait;
    undone_until_[entry.ref] = until;
    undone_wakes_.insert({until, entry.ref});
  }
}

void Core::AssessTouched() {
  while (!undone_wakes_.empty() && undone_wakes_.begin()->first <= now_.monotonic) {
    const GangRef ref = undone_wakes_.begin()->second;
    undone_wakes_.erase(undone_wakes_.begin());
    undone_until_.erase(ref);
    touched_gangs_.insert(ref);
  }
  const std::set<GangRef> touched = std::move(touched_gangs_);
  touched_gangs_.clear();
  for (const GangRef& ref : touched) Assess(ref);
}

void Core::Assess(const GangRef& ref) {
  Unqueue(ref);
  if (run_of_gang_.contains(ref)) {
    waiting_.erase(ref);
    Show(ref);
    return;
  }
  const bool exists =
      ref.single ? facts_.pods.Find(PodKey{ref.key.ns, ref.key.name}) != nullptr
                 : facts_.gangs.Find(ref.key) != nullptr || !roster_.PodsOf(ref.key).empty();
  Readiness ready;
  if (exists) {
    ready = roster_.Assess(ref, facts_, [this](const ClaimKey& key) { return BusyClaim(key); });
  }
  if (!exists || (ref.single && ready.reason == GangReason::kFinished)) {
    waiting_.erase(ref);
    views_.Erase(ref);
    if (ref.single) notices_.ForgetPod({ref.key.ns, ref.key.name});
    return;
  }
  Waiting& waiting = waiting_[ref];
  // What the planner said last stays until it is asked again.
  if (waiting.spec == nullptr || ready.spec == nullptr) {
    waiting.reason = ready.reason;
    waiting.message = ready.message;
  }
  waiting.spec = ready.spec;
  waiting.finished = ready.finished;
  waiting.succeeded = ready.succeeded;
  if (waiting.spec != nullptr && !undone_until_.contains(ref)) Enqueue(ref, waiting);
  Show(ref);
}

void Core::Enqueue(const GangRef& ref, const Waiting& waiting) {
  to_plan_.insert({-std::int64_t{waiting.spec->priority},
                   waiting.spec->created.time_since_epoch().count(), ref});
}

void Core::Unqueue(const GangRef& ref) {
  blocked_.erase(ref);
  const auto found = waiting_.find(ref);
  if (found == waiting_.end() || found->second.spec == nullptr) return;
  to_plan_.erase({-std::int64_t{found->second.spec->priority},
                  found->second.spec->created.time_since_epoch().count(), ref});
}

void Core::PlanSome() {
  if (capacity_freed_) {
    capacity_freed_ = false;
    for (const GangRef& ref : blocked_) Enqueue(ref, waiting_.at(ref));
    blocked_.clear();
  }
  const std::size_t room =
      runs_in_flight_ < kRunsInFlightMost ? kRunsInFlightMost - runs_in_flight_ : 0;
  Queue queue;
  while (!to_plan_.empty() && queue.size() < std::min(room, kPlansPerStepMost)) {
    queue.push_back(waiting_.at(std::get<GangRef>(*to_plan_.begin())).spec);
    to_plan_.erase(to_plan_.begin());
  }
  if (queue.empty()) return;
  counters_.plans += queue.size();
  absl::flat_hash_set<std::string> taken;  // claims given away by this very plan
  for (const Decision& decision : plan_(cluster_, queue, now_.wall)) {
    const GangRef ref{decision.gang->key, decision.gang->single_pod};
    const bool shared_claim = std::any_of(
        decision.gang->members.begin(), decision.gang->members.end(), [&](const MemberSpec& m) {
          return std::any_of(m.claims.begin(), m.claims.end(),
                             [&](const ClaimSpec& claim) { return taken.contains(claim.uid); });
        });
    if (shared_claim) {
      touched_gangs_.insert(ref);  // assessed again: it now waits for that claim
    } else if (decision.placement) {
      for (const MemberPlacement& member : decision.placement->members) {
        for (const ClaimPlacement& claim : member.claims) taken.insert(claim.uid);
      }
      Place(*decision.gang, *decision.placement);
    } else {
      Block(ref, *decision.blocked);
    }
  }
}

void Core::Place(const GangSpec& spec, const Placement& placement) {
  const GangRef ref{spec.key, spec.single_pod};
  auto decision = std::make_shared<const GangDecision>(DecisionOf(spec, placement, now_.wall));
  ++counters_.gangs_prepared;
  Commit(GangPrepared{decision});
  waiting_.erase(ref);
  for (const DecidedPod& pod : decision->pods) TellRunsOfPod({decision->key.ns, pod.name});
  for (const DecidedClaim& claim : decision->claims) {
    TellRunsOfClaim({decision->key.ns, claim.name});
  }
  touched_runs_.insert(run_of_gang_.at(ref));
  if (!ref.single) {
    TellGang(ref, EventReason::kGangPlaced, fmt::format("Placed on {}", PlacementOf(*decision)),
             false);
  }
  Show(ref);
}

void Core::Block(const GangRef& ref, const Blocked& blocked) {
  Waiting& waiting = waiting_.at(ref);
  const GangReason reason = ReasonOf(blocked.reason);
  const bool news = waiting.reason != reason;
  waiting.reason = reason;
  waiting.message = blocked.message;
  blocked_.insert(ref);
  if (news && !ref.single) TellGang(ref, EventReason::kGangBlocked, blocked.message, true);
  Show(ref);
}

std::string Core::BusyClaim(const ClaimKey& claim) const {
  const auto found = runs_of_claim_.find(claim);
  if (found == runs_of_claim_.end()) return "";
  for (const auto& [id, index] : found->second) {
    const RunEntry& entry = runs_.at(id);
    if (entry.run.phase() == RunPhase::kBound && !entry.run.claim_released(index)) continue;
    return fmt::format("claim {} is in use by {}", claim.name, Describe(entry.ref));
  }
  return "";
}

Core::Standing Core::StandingOf(const GangRun& run) const {
  const GangDecision& decision = run.decision();
  if (run.phase() == RunPhase::kUndoing) {
    return {GangPhase::kPending, GangReason::kUndone, run.undo_reason(), &run, nullptr};
  }
  Standing standing{GangPhase::kPlaced, GangReason::kCommitting, PlacementOf(decision), &run,
                    nullptr};
  if (run.phase() != RunPhase::kBound) return standing;
  standing.phase = GangPhase::kRunning;
  standing.reason = GangReason::kBound;
  std::size_t finished = 0;
  std::size_t succeeded = 0;
  for (const DecidedPod& pod : decision.pods) {
    const auto fact = facts_.pods.Find(PodKey{decision.key.ns, pod.name});
    if (fact == nullptr || fact->uid != pod.uid) continue;
    finished += fact->finished ? 1U : 0U;
    succeeded += fact->succeeded ? 1U : 0U;
  }
  if (finished == decision.pods.size()) {
    standing.phase = succeeded == finished ? GangPhase::kFinished : GangPhase::kFailed;
    standing.reason = GangReason::kPodsEnded;
  } else if (succeeded < finished) {
    standing.phase = GangPhase::kFailed;
    standing.reason = GangReason::kPodFailed;
  }
  return standing;
}

Core::Standing Core::StandingOf(const Waiting& waiting) {
  if (!waiting.finished) {
    return {GangPhase::kPending, waiting.reason, waiting.message, nullptr, &waiting};
  }
  return {waiting.succeeded ? GangPhase::kFinished : GangPhase::kFailed, GangReason::kPodsEnded,
          "all pods have ended", nullptr, &waiting};
}

// Brings the gang's view, status and pod conditions up to date.
void Core::Show(const GangRef& ref) {
  const auto run = run_of_gang_.find(ref);
  const Standing standing = run == run_of_gang_.end() ? StandingOf(waiting_.at(ref))
                                                      : StandingOf(runs_.at(run->second).run);
  auto view = std::make_shared<GangView>();
  view->ref = ref;
  view->phase = standing.phase;
  view->reason = standing.reason;
  view->message = standing.message;
  if (standing.run != nullptr) {
    view->decision = standing.run->shared_decision();
    view->bound_pods = standing.run->bound_pods();
    if (standing.run->phase() != RunPhase::kUndoing) {
      view->predicted_all_reduce = PredictedAllReduce(*view->decision);
    }
  }
  if (const auto gang = ref.single ? nullptr : facts_.gangs.Find(ref.key)) {
    GangStatus status = StatusOf(ref, standing);
    status.observed_generation = gang->generation;
    status.predicted_all_reduce = view->predicted_all_reduce;
    notices_.SetGang(*gang, std::move(status), now_);
  }
  const bool waits = standing.waiting != nullptr && !standing.waiting->finished;
  ShowPods(ref, waits ? standing.message : "");
  views_.Put(ref, std::move(view));
}

bool Core::IsPlaced(const PodFact& pod) const {
  const auto found = run_of_pod_.find(pod.key);
  if (found == run_of_pod_.end()) return false;
  const auto [id, index] = found->second;
  return runs_.at(id).run.decision().pods[index].uid == pod.uid;
}

void Core::ShowPods(const GangRef& ref, const std::string& message) {
  const auto show = [&](const PodKey& key) {
    const auto pod = facts_.pods.Find(key);
    if (pod == nullptr) return;
    const bool waits = pod->alive() && pod->node.empty();
    std::string text = waits ? message : "";
    if (waits && run_of_gang_.contains(ref) && !IsPlaced(*pod)) text = BecauseOthersRun(ref);
    notices_.SetPod(*pod, text, now_);
  };
  if (ref.single) {
    show({ref.key.ns, ref.key.name});
    return;
  }
  for (const std::string& name : roster_.PodsOf(ref.key)) show({ref.key.ns, name});
}

// Of a gang whose pods have ended and whose run is over: whether all of them had been bound.
bool Core::EndedBound(const GangRef& ref) const {
  const auto& names = roster_.PodsOf(ref.key);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto pod = facts_.pods.Find(PodKey{ref.key.ns, name});
    return pod == nullptr || !pod->finished || !pod->node.empty();
  });
}

std::string Core::PredictedAllReduce(const GangDecision& decision) const {
  std::vector<const Holding*> holdings;
  for (const DecidedClaim& claim : decision.claims) {
    const Holding* held = cluster_.FindHolding(claim.uid);
    if (held == nullptr) return "";
    holdings.push_back(held);
  }
  const auto time = PredictAllReduce(cluster_, holdings);
  return time ? TimeText(*time) : "";
}

GangStatus Core::StatusOf(const GangRef& ref, const Standing& standing) const {
  GangStatus status;
  status.phase = standing.phase;
  status.reason = standing.reason;
  if (standing.run == nullptr && standing.waiting->finished) {
    const bool bound = EndedBound(ref);  // the conditions say what was true of its pods
    status.conditions = {
        Condition(ConditionType::kPodsReady, true, standing.reason, standing.message),
        Condition(ConditionType::kPlaced, bound, standing.reason, standing.message),
        Condition(ConditionType::kBound, bound, standing.reason, standing.message)};
    return status;
  }
  if (standing.run == nullptr) {
    const bool ready = standing.waiting->spec != nullptr;
    status.conditions = {
        ready ? Condition(ConditionType::kPodsReady, true, GangReason::kAllPodsExist, "")
              : Condition(ConditionType::kPodsReady, false, standing.reason, standing.message),
        ready ? Condition(ConditionType::kPlaced, false, standing.reason, standing.message)
              : Condition(ConditionType::kPlaced, false, GangReason::kPodsNotReady, ""),
        Condition(ConditionType::kBound, false, GangReason::kNotPlaced, "")};
    return status;
  }
  const GangRun& run = *standing.run;
  const bool undoing = run.phase() == RunPhase::kUndoing;
  const bool bound = run.phase() == RunPhase::kBound;
  status.placement = undoing ? "" : standing.message;
  status.slices = run.decision().slices;
  status.bound_members = bound ? static_cast<std::int32_t>(run.decision().pods.size()) : 0;
  status.conditions = {
      Condition(ConditionType::kPodsReady, true, GangReason::kAllPodsExist, ""),
      Condition(ConditionType::kPlaced, !undoing,
                undoing ? GangReason::kUndone : GangReason::kPlaced, standing.message),
      Condition(ConditionType::kBound, bound, bound ? GangReason::kAllPodsBound : standing.reason,
                "")};
  return status;
}

void Core::TellPod(const PodKey& key, EventReason reason, std::string message, bool warning) {
  const auto pod = facts_.pods.Find(key);
  if (pod == nullptr) return;
  notices_.Tell({.about_gang = false,
                 .ns = key.ns,
                 .name = key.name,
                 .uid = pod->uid,
                 .warning = warning,
                 .reason = reason,
                 .message = std::move(message),
                 .when = now_.wall});
}

void Core::TellGang(const GangRef& ref, EventReason reason, std::string message, bool warning) {
  if (ref.single) {
    TellPod({ref.key.ns, ref.key.name}, reason, std::move(message), warning);
    return;
  }
  const auto gang = facts_.gangs.Find(ref.key);
  if (gang == nullptr) return;
  notices_.Tell({.about_gang = true,
                 .ns = ref.key.ns,
                 .name = ref.key.name,
                 .uid = gang->uid,
                 .warning = warning,
                 .reason = reason,
                 .message = std::move(message),
                 .when = now_.wall});
}

}  // namespace tahoma::controller
