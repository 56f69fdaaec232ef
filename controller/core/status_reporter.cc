#include "controller/core/status_reporter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "controller/core/facts/ultraserver_workload.h"
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

// Explains why a replacement pod waits: the gang is running with the pods of the decision.
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

// Returns "3 of 4 members are ready: pod train-2 is not ready: …".
std::string Describe(const StatusReporter::Members& members, std::size_t all) {
  constexpr std::size_t kNamed = 4;
  std::string text = fmt::format("{} of {} members are ready", members.ready, all);
  if (members.succeeded > 0) text += fmt::format(", {} have succeeded", members.succeeded);
  for (std::size_t i = 0; i < std::min(kNamed, members.troubled.size()); ++i) {
    text += (i == 0 ? ": " : "; ") + members.troubled[i].message;
  }
  return text;
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
    case EndCause::kMemberLost:
      return EventReason::kGangMemberLost;
    case EndCause::kGangFailed:
      return EventReason::kGangFailed;
    case EndCause::kNotStarted:
      return EventReason::kGangNotStarted;
    case EndCause::kMoved:
      return EventReason::kGangMoved;
  }
  TAHOMA_CHECK(false);
  return EventReason::kGangUndone;
}

// Makes an event that lacks only the object.
EventNote Note(EventReason reason, std::string message, WallTime when) {
  EventNote note;
  note.warning = reason != EventReason::kScheduled && reason != EventReason::kGangPlaced &&
                 reason != EventReason::kMemberReplaced && reason != EventReason::kMemberAdded;
  note.reason = ToString(reason);
  note.message = std::move(message);
  note.when = when;
  return note;
}

}  // namespace

// The state of a gang that has a run or waits.
struct StatusReporter::Standing {
  GangPhase phase = GangPhase::kPending;
  GangReason reason = GangReason::kNone;
  std::string message;
  const GangRun* run = nullptr;
  const WaitingGang* waiting = nullptr;
  bool failed = false;  // for good
  Members members = {};
  std::string size = {};  // "6 of 8 members are ready": of a gang with minMembers that runs

  static Standing Of(const WaitingGang& waiting);
};

StatusReporter::Standing StatusReporter::Standing::Of(const WaitingGang& waiting) {
  Standing standing{GangPhase::kPending, waiting.reason, waiting.message, nullptr, &waiting};
  if (!waiting.finished) return standing;
  standing.phase = waiting.succeeded ? GangPhase::kFinished : GangPhase::kFailed;
  standing.failed = waiting.reason == GangReason::kMemberLost;
  if (!standing.failed) {
    standing.reason = GangReason::kPodsEnded;
    standing.message = "all pods have ended";
  }
  return standing;
}

// Counts the pods of a bound run, and names pods in trouble.
StatusReporter::Members StatusReporter::MembersOf(const GangRun& run) const {
  const GangDecision& decision = run.decision();
  Members members;
  const auto trouble = [&](const DecidedPod& pod, GangReason reason, std::string message) {
    // The worst is said: a lost member, then a node that is not ready, then a pod.
    if (members.reason == GangReason::kNone || reason == GangReason::kMemberLost ||
        (reason == GangReason::kNodeNotReady && members.reason != GangReason::kMemberLost)) {
      members.reason = reason;
    }
    if (members.troubled.size() >= GangStatus::kTroubledMost) return;
    members.troubled.push_back({pod.name, pod.rank, pod.node, std::move(message)});
  };
  for (std::size_t i = 0; i < decision.pods.size(); ++i) {
    const DecidedPod& pod = decision.pods[i];
    const auto fact = from_.facts.pods.Find(PodKey{decision.key.ns, pod.name});
    const bool there = fact != nullptr && fact->uid == pod.uid;
    const std::string name = "pod " + pod.name;
    if (there) {
      members.finished += fact->finished ? 1 : 0;
      members.succeeded += fact->succeeded ? 1 : 0;
    }
    if (run.member_lost(i)) {
      trouble(pod, GangReason::kMemberLost, DescribeLost(pod.name, there ? &*fact : nullptr));
      continue;
    }
    members.present += there && !fact->finished ? 1 : 0;
    if (!there || fact->finished) continue;  // has succeeded
    const std::optional<NodeId> node = from_.cluster.FindNode(pod.node);
    const bool known = node && from_.cluster.node(*node).node != nullptr;
    if (!known || !from_.cluster.node(*node).node->ready) {
      trouble(pod, GangReason::kNodeNotReady,
              fmt::format("node {} of {} {}", pod.node, name, known ? "is not ready" : "is gone"));
    } else if (!fact->ready) {
      trouble(pod, GangReason::kMembersNotReady, name + " is not ready" + fact->Trouble());
    } else {
      ++members.ready;
    }
  }
  std::ranges::sort(members.troubled, {}, &MemberTrouble::rank);
  return members;
}

// Returns how many members are ready, of a gang with minMembers of which enough are; else "".
std::string StatusReporter::SizeOf(const GangRun& run, const Members& members) const {
  const auto gang = from_.facts.gangs.Find(run.decision().key);
  if (run.decision().single || gang == nullptr || !gang->changes_size()) return "";
  if (members.ready + members.succeeded < gang->least_members()) return "";
  return Describe(members, static_cast<std::size_t>(gang->members));
}

StatusReporter::Standing StatusReporter::StandingOf(const GangRun& run) const {
  const GangDecision& decision = run.decision();
  if (run.phase() == RunPhase::kUndoing) {
    const bool failed = run.end_cause() == EndCause::kGangFailed;
    return {failed ? GangPhase::kFailed : GangPhase::kPending,
            ReasonOf(run.end_cause()),
            run.undo_reason(),
            &run,
            nullptr,
            failed};
  }
  Standing standing{GangPhase::kPlaced, GangReason::kCommitting, PlacementOf(decision), &run,
                    nullptr};
  if (run.phase() != RunPhase::kBound) return standing;
  standing.members = MembersOf(run);
  const Members& members = standing.members;
  standing.phase = GangPhase::kRunning;
  standing.reason = GangReason::kBound;
  if (members.finished == static_cast<std::int32_t>(decision.pods.size())) {
    const bool well = members.succeeded == members.finished;
    standing.phase = well ? GangPhase::kFinished : GangPhase::kFailed;
    standing.reason = GangReason::kPodsEnded;
  } else if (std::string size = SizeOf(run, members); !size.empty()) {
    standing.size = std::move(size);
    standing.members.reason = GangReason::kNone;
  } else if (members.reason != GangReason::kNone) {
    const bool starting =
        members.reason == GangReason::kMembersNotReady && !from_.runs.HasStarted(run.id());
    standing.phase = starting ? GangPhase::kPlaced : GangPhase::kDegraded;
    standing.reason = starting ? GangReason::kStarting : members.reason;
    standing.message = Describe(members, decision.pods.size());
  }
  return standing;
}

// Returns the queue of the gang's place, or the queue in which the gang waits for a place.
std::string StatusReporter::QueueIn(const GangRef& ref, const GangRun* run,
                                    const WaitingGang* waiting) const {
  if (run != nullptr && !run->decision().queue.empty()) return run->decision().queue;
  if (waiting != nullptr && waiting->spec != nullptr) return waiting->spec->queue;
  const auto gang = ref.single ? nullptr : from_.facts.gangs.Find(ref.key);
  return gang == nullptr ? kDefaultQueue : gang->queue;
}

void StatusReporter::Show(const GangRef& ref, const Now& now) {
  const GangRun* run = from_.runs.Find(ref);
  const WaitingGang* waiting = from_.queue.Find(ref);
  TAHOMA_CHECK(run != nullptr || waiting != nullptr);
  Standing standing = run != nullptr ? StandingOf(*run) : Standing::Of(*waiting);
  if (const auto promise = run != nullptr ? nullptr : from_.queue.PromiseTo(ref)) {
    standing.message += "; " + Describe(*promise);
  }
  auto view = std::make_shared<GangView>();
  view->ref = ref;
  view->phase = standing.phase;
  view->reason = standing.reason;
  view->message = standing.message;
  if (run != nullptr) {
    view->decision = run->shared_decision();
    view->bound_pods = run->bound_pods();
    if (run->decision().reservation.empty()) view->run = RunTermsOf(*run, from_.facts);
    if (run->phase() != RunPhase::kUndoing) {
      view->predicted_all_reduce = PredictedAllReduce(*view->decision);
    }
    if (run->phase() == RunPhase::kBound) {
      const auto* before = views_.Find(ref);
      view->movable = MovableOf(*run, from_.facts, PlacementOf(*view->decision),
                                before == nullptr ? nullptr : (*before)->movable.get());
    }
  }
  view->queue = QueueIn(ref, run, waiting);
  if (run == nullptr && waiting->spec != nullptr) {
    view->waits_since = waiting->spec->created;
    view->service = PlaceOf(ref, *waiting->spec);
    view->spec = waiting->spec;
  }
  if (const auto workload = ref.single ? nullptr : from_.facts.workloads.Find(ref.key)) {
    view->neuron_workload = TroubleOf(*workload, from_.facts).empty();
  }
  if (const auto gang = ref.single ? nullptr : from_.facts.gangs.Find(ref.key)) {
    GangStatus status = StatusOf(ref, standing);
    status.observed_generation = gang->generation;
    status.queue = view->queue;
    status.predicted_all_reduce = view->predicted_all_reduce;
    AddTimes(*gang, standing, now.wall, status);
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
  if (pod == nullptr || GangOf(*pod) == ref) outbox_.ForgetPod(key);  // else the gang tells it
}

void StatusReporter::ShowPods(const GangRef& ref, const std::string& message, const Now& now) {
  const bool has_run = from_.runs.Find(ref) != nullptr;
  // A gang that runs waits for places of more of its pods.
  const WaitingGang* growing = has_run ? from_.queue.Find(ref) : nullptr;
  const auto show = [&](const PodKey& key) {
    const auto pod = from_.facts.pods.Find(key);
    if (pod == nullptr) return;
    const bool waits = pod->alive() && pod->node.empty();
    std::string text = waits ? message : "";
    if (waits && has_run && !from_.runs.HasPlace(*pod)) {
      text = growing == nullptr ? BecauseOthersRun(ref) : growing->message;
    }
    outbox_.SetPod(*pod, text, now);
  };
  if (ref.single) {
    show({ref.key.ns, ref.key.name});
    return;
  }
  for (const std::string& name : from_.membership.PodsOf(ref.key)) show({ref.key.ns, name});
}

// Returns whether all pods of a gang that has ended had been bound. The run is over.
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
    // The conditions describe the pods as long as there were pods.
    const bool bound = !standing.failed && EndedBound(ref);
    add(ConditionType::kPodsReady, !standing.failed, standing.reason, standing.message);
    add(ConditionType::kPlaced, bound, standing.reason, standing.message);
    add(ConditionType::kBound, bound, standing.reason, standing.message);
    add(ConditionType::kReady, false, standing.reason, standing.message);
    if (standing.failed) add(ConditionType::kFailed, true, standing.reason, standing.message);
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
    add(ConditionType::kReady, false, GangReason::kNotPlaced, "");
    return status;
  }
  AddRun(standing, status);
  return status;
}

// Adds when the gang has run, and of a gang that has ended for good where: the run and its records
// are over, so the status that was shown last says both.
void StatusReporter::AddTimes(const GangFact& gang, const Standing& standing, WallTime now,
                              GangStatus& status) const {
  const bool ended = status.phase == GangPhase::kFinished || status.phase == GangPhase::kFailed;
  const GangRun* run = standing.run;
  if (run != nullptr && (ended || run->phase() == RunPhase::kBound)) {
    status.start_time = run->bound_at();
  }
  if (!ended) return;
  GangPast past;
  if (gang.past != nullptr) past = *gang.past;
  if (const auto shown = outbox_.GangStatusOf(gang)) {
    past = {shown->placement, shown->slices, shown->start_time, shown->completion_time,
            shown->queue};
  }
  if (run != nullptr) {
    status.placement = PlacementOf(run->decision());
  } else {
    status.placement = std::move(past.placement);
    status.slices = std::move(past.slices);
    status.start_time = past.start_time;
    if (!past.queue.empty()) status.queue = std::move(past.queue);
  }
  status.completion_time = past.completion_time.value_or(now);
}

// Adds what a run shows.
void StatusReporter::AddRun(const Standing& standing, GangStatus& status) const {
  const auto add = [&](ConditionType type, bool holds, GangReason reason, std::string message) {
    status.conditions.push_back(Condition(type, holds, reason, std::move(message)));
  };
  const GangRun& run = *standing.run;
  const bool undoing = run.phase() == RunPhase::kUndoing;
  const bool bound = run.phase() == RunPhase::kBound;
  const bool lost = standing.members.reason == GangReason::kMemberLost;
  const std::string placement = undoing ? "" : PlacementOf(run.decision());
  status.placement = placement;
  status.slices = run.decision().slices;
  status.bound_members = standing.members.present;
  status.ready_members = standing.members.ready;
  status.troubled_members = standing.members.troubled;
  add(ConditionType::kPodsReady, !standing.failed && !lost,
      standing.failed || lost ? standing.reason : GangReason::kAllPodsExist, "");
  add(ConditionType::kPlaced, !undoing, undoing ? standing.reason : GangReason::kPlaced,
      undoing ? standing.message : placement);
  const bool whole = bound && !lost;
  add(ConditionType::kBound, whole, whole ? GangReason::kAllPodsBound : standing.reason,
      lost ? standing.message : "");
  const bool ready = standing.phase == GangPhase::kRunning;
  add(ConditionType::kReady, ready, ready ? GangReason::kAllMembersReady : standing.reason,
      ready ? standing.size : standing.message);
  if (standing.failed) add(ConditionType::kFailed, true, standing.reason, standing.message);
}

void StatusReporter::TellRun(const RunNews& news, WallTime now) {
  if (news.kind == RunNews::Kind::kUndoing) {
    TellGang(news.gang, Note(EventOf(news.cause), news.reason, now));
  }
  if (news.kind == RunNews::Kind::kShrunk) {
    TellGang(news.gang, Note(EventReason::kMemberGone, news.reason, now));
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

void StatusReporter::TellReplaced(const GangRun& run, const MemberReplaced& member, WallTime now) {
  const GangDecision& decision = run.decision();
  const DecidedPod& lost = decision.pods[member.pod];
  TellGang({decision.key, decision.single},
           Note(EventReason::kMemberReplaced,
                fmt::format("Pod {} takes the place of pod {}: rank {} on node {}", member.name,
                            lost.name, lost.rank, member.node.empty() ? lost.node : member.node),
                now));
}

void StatusReporter::TellAdded(const GangRef& ref, const MemberAdded& member, WallTime now) {
  TellGang(ref, Note(EventReason::kMemberAdded,
                     fmt::format("Pod {} joins: rank {} on node {}", member.name, member.rank,
                                 member.node),
                     now));
}

void StatusReporter::TellReclaim(const GangDecision& decision, const std::string& message,
                                 WallTime now) {
  TellGang({decision.key, decision.single}, Note(EventReason::kReclaimIsNear, message, now));
}

void StatusReporter::TellMaintenance(const GangDecision& decision, const std::string& message,
                                     WallTime now) {
  TellGang({decision.key, decision.single}, Note(EventReason::kMaintenanceIsNear, message, now));
}

void StatusReporter::TellBlocked(const GangRef& ref, const std::string& message, WallTime now) {
  if (ref.single) return;  // the condition of the pod comes with an event
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
