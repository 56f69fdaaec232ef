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
    // The box's own text is "4x4x2+0,0,2".
    const std::string box = slice.box.ToString();
    const std::size_t plus = box.find('+');
    TAHOMA_CHECK(plus != std::string::npos);
    added.shape = box.substr(0, plus);
    added.origin = box.substr(plus + 1);
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

GangCondition Condition(std::string type, bool holds, std::string reason, std::string message) {
  return {.type = std::move(type),
          .status = holds ? ConditionStatus::kTrue : ConditionStatus::kFalse,
          .reason = std::move(reason),
          .message = std::move(message),
          .since = {}};
}

}  // namespace

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
      TellPod({decision.key.ns, pod.name}, "Scheduled",
              fmt::format("Successfully assigned {}/{} to {}", decision.key.ns, pod.name, pod.node),
              false);
    }
  } else if (const auto* undoing = std::get_if<GangUndoing>(&record)) {
    ++counters_.gangs_undone;
    TellGang(entry.ref, "GangUndone", undoing->reason, true);
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
  if (!exists || (ref.single && ready.reason == "Finished")) {
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
    TellGang(ref, "GangPlaced", fmt::format("Placed on {}", PlacementOf(*decision)), false);
  }
  Show(ref);
}

void Core::Block(const GangRef& ref, const Blocked& blocked) {
  Waiting& waiting = waiting_.at(ref);
  const std::string reason(ToString(blocked.reason));
  const bool news = waiting.reason != reason;
  waiting.reason = reason;
  waiting.message = blocked.message;
  blocked_.insert(ref);
  if (news && !ref.single) TellGang(ref, "GangBlocked", blocked.message, true);
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

// Brings the gang's view, status and pod conditions up to date.
void Core::Show(const GangRef& ref) {
  auto view = std::make_shared<GangView>();
  view->ref = ref;
  const auto gang = ref.single ? nullptr : facts_.gangs.Find(ref.key);
  std::string pods_wait;  // what the pods are told, while they wait
  if (const auto run = run_of_gang_.find(ref); run != run_of_gang_.end()) {
    const GangRun& gang_run = runs_.at(run->second).run;
    view->decision = gang_run.shared_decision();
    view->bound_pods = gang_run.bound_pods();
    if (gang_run.phase() != RunPhase::kUndoing && gang == nullptr) {
      view->predicted_all_reduce = PredictedAllReduce(*view->decision);
    }
    view->phase = gang_run.phase() == RunPhase::kBound     ? "Running"
                  : gang_run.phase() == RunPhase::kUndoing ? "Pending"
                                                           : "Placed";
    view->reason = gang_run.phase() == RunPhase::kBound     ? "Bound"
                   : gang_run.phase() == RunPhase::kUndoing ? "Undone"
                                                            : "Committing";
    view->message = gang_run.phase() == RunPhase::kUndoing ? gang_run.undo_reason()
                                                           : PlacementOf(*view->decision);
  } else {
    const Waiting& waiting = waiting_.at(ref);
    view->phase = !waiting.finished ? "Pending" : waiting.succeeded ? "Finished" : "Failed";
    view->reason = waiting.finished ? "PodsEnded" : waiting.reason;
    view->message = waiting.finished ? "all pods have ended" : waiting.message;
    if (!waiting.finished && !waiting.message.empty()) pods_wait = waiting.message;
  }
  if (gang != nullptr) {
    GangStatus status = StatusOf(ref, *gang);
    view->phase = status.phase;
    view->predicted_all_reduce = status.predicted_all_reduce;
    notices_.SetGang(*gang, std::move(status), now_);
  }
  ShowPods(ref, pods_wait);
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

// Its pods have ended and its run is over: the conditions say what was true of them.
GangStatus Core::EndedStatus(const GangRef& ref, const GangFact& gang, bool succeeded) const {
  bool all_bound = true;
  for (const std::string& name : roster_.PodsOf(ref.key)) {
    const auto pod = facts_.pods.Find(PodKey{ref.key.ns, name});
    if (pod != nullptr && pod->finished) all_bound = all_bound && !pod->node.empty();
  }
  GangStatus status;
  status.observed_generation = gang.generation;
  status.phase = succeeded ? "Finished" : "Failed";
  status.reason = "PodsEnded";
  for (const char* type : {"PodsReady", "Placed", "Bound"}) {
    const bool holds = all_bound || type == std::string_view("PodsReady");
    status.conditions.push_back(Condition(type, holds, status.reason, "all pods have ended"));
  }
  return status;
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

GangStatus Core::StatusOf(const GangRef& ref, const GangFact& gang) const {
  GangStatus status;
  status.observed_generation = gang.generation;
  const auto found = run_of_gang_.find(ref);
  if (found == run_of_gang_.end()) {
    const Waiting& waiting = waiting_.at(ref);
    if (waiting.finished) return EndedStatus(ref, gang, waiting.succeeded);
    const bool ready = waiting.spec != nullptr;
    status.phase = "Pending";
    status.reason = waiting.reason;
    status.conditions = {Condition("PodsReady", ready, ready ? "AllPodsExist" : waiting.reason,
                                   ready ? "" : waiting.message),
                         Condition("Placed", false, ready ? waiting.reason : "PodsNotReady",
                                   ready ? waiting.message : ""),
                         Condition("Bound", false, "NotPlaced", "")};
    return status;
  }
  const GangRun& run = runs_.at(found->second).run;
  const GangDecision& decision = run.decision();
  std::size_t finished = 0;
  std::size_t succeeded = 0;
  for (const DecidedPod& pod : decision.pods) {
    const auto fact = facts_.pods.Find(PodKey{decision.key.ns, pod.name});
    if (fact == nullptr || fact->uid != pod.uid) continue;
    finished += fact->finished ? 1U : 0U;
    succeeded += fact->succeeded ? 1U : 0U;
  }
  const std::string placement = PlacementOf(decision);
  const bool undoing = run.phase() == RunPhase::kUndoing;
  const bool bound = run.phase() == RunPhase::kBound;
  status.phase = undoing ? "Pending" : bound ? "Running" : "Placed";
  status.reason = undoing ? "Undone" : bound ? "Bound" : "Committing";
  if (bound && finished == decision.pods.size()) {
    status.phase = succeeded == finished ? "Finished" : "Failed";
    status.reason = "PodsEnded";
  } else if (bound && succeeded < finished) {
    status.phase = "Failed";
    status.reason = "PodFailed";
  }
  status.placement = undoing ? "" : placement;
  status.predicted_all_reduce = undoing ? "" : PredictedAllReduce(decision);
  status.slices = decision.slices;
  status.bound_members = bound ? static_cast<std::int32_t>(decision.pods.size()) : 0;
  status.conditions = {Condition("PodsReady", true, "AllPodsExist", ""),
                       Condition("Placed", !undoing, undoing ? "Undone" : "Placed",
                                 undoing ? run.undo_reason() : placement),
                       Condition("Bound", bound, bound ? "AllPodsBound" : status.reason, "")};
  return status;
}

void Core::TellPod(const PodKey& key, std::string reason, std::string message, bool warning) {
  const auto pod = facts_.pods.Find(key);
  if (pod == nullptr) return;
  notices_.Tell({.about_gang = false,
                 .ns = key.ns,
                 .name = key.name,
                 .uid = pod->uid,
                 .warning = warning,
                 .reason = std::move(reason),
                 .message = std::move(message),
                 .when = now_.wall});
}

void Core::TellGang(const GangRef& ref, std::string reason, std::string message, bool warning) {
  if (ref.single) {
    TellPod({ref.key.ns, ref.key.name}, std::move(reason), std::move(message), warning);
    return;
  }
  const auto gang = facts_.gangs.Find(ref.key);
  if (gang == nullptr) return;
  notices_.Tell({.about_gang = true,
                 .ns = ref.key.ns,
                 .name = ref.key.name,
                 .uid = gang->uid,
                 .warning = warning,
                 .reason = std::move(reason),
                 .message = std::move(message),
                 .when = now_.wall});
}

}  // namespace tahoma::controller
