#include "controller/core/status_reporter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

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

// Explains why a replacement pod waits: its gang is running with the pods it was placed for.
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

GangReason ReasonOf(EndCause cause) {
  switch (cause) {
    case EndCause::kFailed:
      return GangReason::kUndone;
    case EndCause::kReclaimed:
      return GangReason::kReclaimed;
    case EndCause::kPreempted:
      return GangReason::kPreempted;
    case EndCause::kRuntimeOver:
      return GangReason::kMaxRuntimeOver;
  }
  TAHOMA_CHECK(false);
  return GangReason::kNone;
}

EventReason EventOf(EndCause cause) {
  switch (cause) {
    case EndCause::kFailed:
      return EventReason::kGangUndone;
    case EndCause::kReclaimed:
      return EventReason::kGangReclaimed;
    case EndCause::kPreempted:
      return EventReason::kGangPreempted;
    case EndCause::kRuntimeOver:
      return EventReason::kGangMaxRuntimeOver;
  }
  TAHOMA_CHECK(false);
  return EventReason::kGangUndone;
}

// Makes an event that lacks only its object.
EventNote Note(EventReason reason, std::string message, WallTime when) {
  EventNote note;
  note.warning = reason != EventReason::kScheduled && reason != EventReason::kGangPlaced;
  note.reason = ToString(reason);
  note.message = std::move(message);
  note.when = when;
  return note;
}

}  // namespace

// The state of a gang, which has a run or waits.
struct StatusReporter::Standing {
  GangPhase phase = GangPhase::kPending;
  GangReason reason = GangReason::kNone;
  std::string message;
  const GangRun* run = nullptr;
  const WaitingGang* waiting = nullptr;

  static Standing Of(const WaitingGang& waiting);
};

StatusReporter::Standing StatusReporter::Standing::Of(const WaitingGang& waiting) {
  if (!waiting.finished) {
    return {GangPhase::kPending, waiting.reason, waiting.message, nullptr, &waiting};
  }
  return {waiting.succeeded ? GangPhase::kFinished : GangPhase::kFailed, GangReason::kPodsEnded,
          "all pods have ended", nullptr, &waiting};
}

StatusReporter::Standing StatusReporter::StandingOf(const GangRun& run) const {
  const GangDecision& decision = run.decision();
  if (run.phase() == RunPhase::kUndoing) {
    return {GangPhase::kPending, ReasonOf(run.end_cause()), run.undo_reason(), &run, nullptr};
  }
  Standing standing{GangPhase::kPlaced, GangReason::kCommitting, PlacementOf(decision), &run,
                    nullptr};
  if (run.phase() != RunPhase::kBound) return standing;
  standing.phase = GangPhase::kRunning;
  standing.reason = GangReason::kBound;
  std::size_t finished = 0;
  std::size_t succeeded = 0;
  for (const DecidedPod& pod : decision.pods) {
    const auto fact = from_.facts.pods.Find(PodKey{decision.key.ns, pod.name});
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

void StatusReporter::Show(const GangRef& ref, const Now& now) {
  const GangRun* run = from_.runs.Find(ref);
  const WaitingGang* waiting = from_.queue.Find(ref);
  TAHOMA_CHECK(run != nullptr || waiting != nullptr);
  const Standing standing = run != nullptr ? StandingOf(*run) : Standing::Of(*waiting);
  auto view = std::make_shared<GangView>();
  view->ref = ref;
  view->phase = standing.phase;
  view->reason = standing.reason;
  view->message = standing.message;
  if (run != nullptr) {
    view->decision = run->shared_decision();
    view->bound_pods = run->bound_pods();
    if (run->phase() != RunPhase::kUndoing) {
      view->predicted_all_reduce = PredictedAllReduce(*view->decision);
    }
  }
  if (const auto gang = ref.single ? nullptr : from_.facts.gangs.Find(ref.key)) {
    GangStatus status = StatusOf(ref, standing);
    status.observed_generation = gang->generation;
    status.predicted_all_reduce = view->predicted_all_reduce;
    outbox_.SetGang(*gang, std::move(status), now);
  }
  const bool waits = run == nullptr && !waiting->finished;
  ShowPods(ref, waits ? standing.message : "", now);
  views_.Put(ref, std::move(view));
}

void StatusReporter::Forget(const GangRef& ref) {
  views_.Erase(ref);
  if (!ref.single) return;
  const PodKey key{ref.key.ns, ref.key.name};
  const auto pod = from_.facts.pods.Find(key);
  if (pod == nullptr || GangOf(*pod) == ref) outbox_.ForgetPod(key);  // else its gang tells it
}

void StatusReporter::ShowPods(const GangRef& ref, const std::string& message, const Now& now) {
  const bool has_run = from_.runs.Find(ref) != nullptr;
  const auto show = [&](const PodKey& key) {
    const auto pod = from_.facts.pods.Find(key);
    if (pod == nullptr) return;
    const bool waits = pod->alive() && pod->node.empty();
    std::string text = waits ? message : "";
    if (waits && has_run && !from_.runs.HasPlace(*pod)) text = BecauseOthersRun(ref);
    outbox_.SetPod(*pod, text, now);
  };
  if (ref.single) {
    show({ref.key.ns, ref.key.name});
    return;
  }
  for (const std::string& name : from_.membership.PodsOf(ref.key)) show({ref.key.ns, name});
}

// Returns whether all pods of a gang that has ended had been bound. Its run is over.
bool StatusReporter::EndedBound(const GangRef& ref) const {
  const auto& names = from_.membership.PodsOf(ref.key);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto pod = from_.facts.pods.Find(PodKey{ref.key.ns, name});
    return pod == nullptr || !pod->finished || !pod->node.empty();
  });
}

std::string StatusReporter::PredictedAllReduce(const GangDecision& decision) const {
  std::vector<const Holding*> holdings;
  for (const DecidedClaim& claim : decision.claims) {
    const Holding* held = from_.cluster.FindHolding(claim.uid);
    if (held == nullptr) return "";
    holdings.push_back(held);
  }
  const auto time = PredictAllReduce(from_.cluster, holdings);
  return time ? TimeText(*time) : "";
}

GangStatus StatusReporter::StatusOf(const GangRef& ref, const Standing& standing) const {
  GangStatus status;
  status.phase = standing.phase;
  status.reason = standing.reason;
  const auto add = [&](ConditionType type, bool holds, GangReason reason, std::string message) {
    status.conditions.push_back(Condition(type, holds, reason, std::move(message)));
  };
  if (standing.run == nullptr && standing.waiting->finished) {
    const bool bound = EndedBound(ref);  // the conditions describe the pods as they were
    add(ConditionType::kPodsReady, true, standing.reason, standing.message);
    add(ConditionType::kPlaced, bound, standing.reason, standing.message);
    add(ConditionType::kBound, bound, standing.reason, standing.message);
    return status;
  }
  if (standing.run == nullptr) {
    if (standing.waiting->spec != nullptr) {
      add(ConditionType::kPodsReady, true, GangReason::kAllPodsExist, "");
      add(ConditionType::kPlaced, false, standing.reason, standing.message);
    } else {
      add(ConditionType::kPodsReady, false, standing.reason, standing.message);
      add(ConditionType::kPlaced, false, GangReason::kPodsNotReady, "");
    }
    add(ConditionType::kBound, false, GangReason::kNotPlaced, "");
    return status;
  }
  const GangRun& run = *standing.run;
  const bool undoing = run.phase() == RunPhase::kUndoing;
  const bool bound = run.phase() == RunPhase::kBound;
  status.placement = undoing ? "" : standing.message;
  status.slices = run.decision().slices;
  status.bound_members = bound ? static_cast<std::int32_t>(run.decision().pods.size()) : 0;
  add(ConditionType::kPodsReady, true, GangReason::kAllPodsExist, "");
  add(ConditionType::kPlaced, !undoing, undoing ? standing.reason : GangReason::kPlaced,
      standing.message);
  add(ConditionType::kBound, bound, bound ? GangReason::kAllPodsBound : standing.reason, "");
  return status;
}

void StatusReporter::TellRun(const RunNews& news, WallTime now) {
  if (news.kind == RunNews::Kind::kUndoing) {
    TellGang(news.gang, Note(EventOf(news.cause), news.reason, now));
  }
  if (news.kind != RunNews::Kind::kBound) return;
  const std::string& ns = news.decision->key.ns;
  for (const DecidedPod& pod : news.decision->pods) {
    TellPod({ns, pod.name},
            Note(EventReason::kScheduled,
                 fmt::format("Successfully assigned {}/{} to {}", ns, pod.name, pod.node), now));
  }
}

void StatusReporter::TellPlaced(const GangDecision& decision, WallTime now) {
  if (decision.single) return;
  TellGang({decision.key, false},
           Note(EventReason::kGangPlaced, "Placed on " + PlacementOf(decision), now));
}

void StatusReporter::TellReclaim(const GangDecision& decision, const std::string& message,
                                 WallTime now) {
  TellGang({decision.key, decision.single}, Note(EventReason::kReclaimIsNear, message, now));
}

void StatusReporter::TellBlocked(const GangRef& ref, const std::string& message, WallTime now) {
  if (ref.single) return;  // its pod's condition comes with an event
  TellGang(ref, Note(EventReason::kGangBlocked, message, now));
}

void StatusReporter::TellPod(const PodKey& key, EventNote note) {
  const auto pod = from_.facts.pods.Find(key);
  if (pod == nullptr) return;
  note.about = EventSubject::kPod;
  note.ns = key.ns;
  note.name = key.name;
  note.uid = pod->uid;
  outbox_.Tell(std::move(note));
}

void StatusReporter::TellGang(const GangRef& ref, EventNote note) {
  if (ref.single) return TellPod({ref.key.ns, ref.key.name}, std::move(note));
  const auto gang = from_.facts.gangs.Find(ref.key);
  if (gang == nullptr) return;
  note.about = EventSubject::kGang;
  note.ns = ref.key.ns;
  note.name = ref.key.name;
  note.uid = gang->uid;
  outbox_.Tell(std::move(note));
}

}  // namespace tahoma::controller
