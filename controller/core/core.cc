#include "controller/core/core.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "controller/core/facts/pod_grace.h"
#include "controller/core/journal/block_record.h"
#include "controller/core/journal/record.h"
#include "controller/core/journal/usage_record.h"
#include "controller/core/queue/growth.h"
#include "controller/core/queue/replacement.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// A later time of a wall clock is looked at again then: the clock may be set.
constexpr std::chrono::hours kWakeMost{24};

// A gang that others have ended for has only its first pods for so long.
constexpr std::chrono::seconds kGrowsAfter{60};

// Returns the nodes of a host of Capacity Blocks; none when it has left the fleet.
std::vector<NodeId> NodesOf(const std::string& host, const ClusterState& cluster) {
  std::vector<NodeId> nodes;
  const std::optional<DomainId> domain = cluster.FindDomain(host);
  if (!domain) return nodes;
  for (const NodeId node : cluster.domain(*domain).nodes) {
    if (node.valid()) nodes.push_back(node);
  }
  return nodes;
}

// Returns the amounts of the node; nullptr for none.
const kube::Amounts* AllocatableOf(const std::string& node, const ClusterState& cluster) {
  const std::optional<NodeId> id = cluster.FindNode(node);
  if (!id || cluster.node(*id).node == nullptr) return nullptr;
  return cluster.node(*id).node->allocatable.get();
}

// Returns whether the pod is of another gang or PodGroup, or uses other claims or templates, than
// before.
bool HasMoved(const PodFact& before, const PodFact& pod) {
  const auto group_of = [](const PodFact& one) {
    return one.wish == nullptr ? GroupMark() : one.wish->group;
  };
  return before.gang != pod.gang || group_of(before) != group_of(pod) ||
         before.templates != pod.templates ||
         !std::ranges::equal(before.claims, pod.claims, {}, &PodClaim::claim, &PodClaim::claim);
}

}  // namespace

Core::Core(PlanFunction plan, CoreOptions options)
    : runs_(facts_, cluster_, journal_, writes_,
            {.journal_beside_api = options.journal_beside_api}),
      blocks_(std::move(options.blocks), journal_, writes_, options.block_time, options.term),
      notices_(writes_),
      from_facts_{.maker = GangMaker(writes_),
                  .claims = ClaimMaker(facts_, writes_),
                  .volume_nodes = VolumeNodes(facts_, membership_, writes_),
                  .workloads = WorkloadKeeper(facts_, writes_),
                  .queues = QueueStatuses(writes_),
                  .calendars = QueueCalendarStatuses(writes_),
                  .windows = WindowStatuses(writes_),
                  .queue_views = {},
                  .defragmentations = DefragmentationStatuses(writes_)},
      requests_(blocks_, writes_),
      lending_(runs_, plan, &kept_.promises),
      neighbours_(facts_, runs_, cluster_),
      kept_{.promises = Promises(runs_, plan),
            .preemption = Preemption(runs_, kept_.promises, plan, &past_.queues.shares()),
            .windows = Windows(runs_, kept_.promises),
            .moves = Moves(runs_, kept_.promises, plan)},
      successors_(options.keep_for_successor),
      past_{.decisions = {},
            .usage = GangUsage(options.term),
            .queues = QueueKeeper(facts_, runs_, cluster_)},
      queue_(std::move(plan), &neighbours_, &kept_.promises, &successors_, &past_.queues.shares()),
      status_({.facts = facts_,
               .membership = membership_,
               .cluster = cluster_,
               .runs = runs_,
               .queue = queue_},
              writes_),
      snapshot_(std::make_shared<const Snapshot>()) {}

absl::Status Core::Restore(Sequence sequence, std::string_view bytes) {
  TAHOMA_RETURN_IF_ERROR(journal_.Restore(sequence));
  const auto at_entry = [&](const absl::Status& status) {
    return status.ok() ? status : Annotate(status, fmt::format("journal entry {}", sequence));
  };
  if (IsBlockEntry(bytes)) {
    auto block = DecodeBlock(bytes);
    if (!block.ok()) return at_entry(block.status());
    return at_entry(blocks_.Restore(sequence, *std::move(block)));
  }
  if (IsQueueUseEntry(bytes)) {
    auto use = DecodeQueueUse(bytes);
    if (use.ok()) past_.queues.Restore(sequence, *std::move(use));
    return at_entry(use.status());
  }
  if (IsUsageEntry(bytes)) {
    auto usage = DecodeUsage(bytes);
    if (usage.ok()) past_.usage.Restore(sequence, *std::move(usage));
    return at_entry(usage.status());
  }
  const auto record = DecodeRecord(bytes);
  if (!record.ok()) return at_entry(record.status());
  return runs_.Restore(sequence, *record);
}

StepOutput Core::Step(const std::vector<Command>& commands, const Now& now) {
  now_ = now;
  // 1. Learn: what watches saw, what became of writes, what is ordered.
  for (const Command& command : commands) {
    std::visit([this](const auto& learned) { On(learned); }, command);
  }
  if (watches_ == Watches::kListing) return {};
  // 2. Finish what was decided before: each gang that has news goes on with its commit.
  FinishDecided();
  // 3. Let time pass for Capacity Blocks: orders are answered, blocks begin and end.
  PassBlockTime();
  // 4. Plan the gangs at the head of the queue, and begin the commit of those that get a place.
  PlanHeads();
  // 5. Show changes: usage of blocks, notices to pods, statuses, conditions and events.
  ShowChanges();
  // 6. Hand over: the journal first, then the writes that it allows.
  return HandOver();
}

void Core::FinishDecided() {
  runs_.MoveTo(now_.wall);
  if (std::exchange(watches_, Watches::kSynced) == Watches::kJustSynced) {
    DrainRunNews();
    past_.usage.Begin(runs_, cluster_, now_.wall);
    past_.queues.Follow(now_.wall);  // before any run goes on: each has held its chips until now
    runs_.AdoptPublished(now_.monotonic);
  }
  runs_.Advance(now_.monotonic);
  runs_.AdoptSuccessors(membership_);
  DrainRunNews();
}

void Core::PassBlockTime() {
  blocks_.Step(cluster_, now_);
  if (requests_.Step(now_)) blocks_.Step(cluster_, now_);
  DrainBlockNews();
  lending_.EndDue(cluster_, now_.wall);
  for (const GangRef& ref : kept_.preemption.DrainDue(now_.wall)) queue_.Touch(ref);
}

// Takes what queues may hold by now. Gangs of drained queues end, and wait again.
void Core::FollowQueues() {
  if (past_.queues.Follow(now_.wall)) queue_.TouchAllWaiting();
  kept_.promises.SetByQueue(!facts_.queues.empty());
  for (const auto& [run, why] : past_.queues.DrainToEnd()) {
    const GangRun* known = runs_.FindRun(run);
    if (known != nullptr && !known->ending()) runs_.End(run, EndCause::kPreempted, why);
  }
  for (const GangRef& ref : past_.queues.DrainLetIn()) queue_.Touch(ref);
}

// Takes what maintenance windows keep by now, and what gangs must know of the windows.
void Core::FollowWindows() {
  kept_.windows.Step(cluster_, now_.wall);
  for (const WindowNotice& notice : kept_.windows.DrainNotices()) OnNotice(notice);
}

void Core::PlanHeads() {
  FollowQueues();
  FollowWindows();
  successors_.EndDue(now_.monotonic, cluster_);
  for (const GangRef& ref : queue_.DrainTouched(now_.monotonic)) Assess(ref);
  queue_.RefreshOne(now_.monotonic);
  for (const Heir& heir : blocks_.DrainHeirs()) MakeWayFor(heir);
  MoveGangs();
  PlanSome();
  runs_.Advance(now_.monotonic);
  DrainRunNews();
}

void Core::ShowChanges() {
  blocks_.Meter(cluster_, now_.wall);
  past_.usage.Update(runs_, cluster_, now_.wall, journal_);
  past_.queues.Update(now_.wall, journal_);
  ShowQueues(past_.queues.views());
  TellReclaims();
  notices_.Flush(facts_, now_);
  from_facts_.maker.Flush(now_);
  from_facts_.claims.Flush(now_);
  from_facts_.volume_nodes.Flush(now_);
  from_facts_.workloads.Flush([this](const WorkloadKey& key) { return GangForWorkload(key); },
                              now_);
  from_facts_.queues.Flush(now_);
  from_facts_.calendars.Flush(now_);
  for (const auto& spec : kept_.windows.DrainChanged(now_.monotonic)) {
    from_facts_.windows.Show(*spec, kept_.windows.StatusOf(*spec, blocks_), now_);
  }
  from_facts_.windows.Flush(now_);
  from_facts_.defragmentations.Flush(now_);
  status_.Flush(now_);
}

StepOutput Core::HandOver() {
  StepOutput out;
  out.journal = journal_.DrainBatch();
  out.writes = writes_.DrainWrites();
  for (ApiWrite& write : out.writes) {
    if (auto* deletion = std::get_if<PodDeletion>(&write.what)) LimitGrace(*deletion);
  }
  counters_.api_writes += out.writes.size();
  out.answers = blocks_.DrainAnswers();
  out.wake = NextWake();
  PublishSnapshot();
  return out;
}

void Core::On(const PodSeen& command) {
  const std::shared_ptr<const PodFact> seen = JoinWorkload(command.pod, facts_);
  const PodFact& pod = *seen;
  auto before = facts_.pods.Find(pod.key);
  if (before != nullptr && before->uid != pod.uid) {
    On(PodGone{pod.key, before->uid});  // it was deleted and made again between two looks
    before = nullptr;
  }
  facts_.pods.Put(seen);
  if (before != nullptr && HasMoved(*before, pod)) {
    membership_.OnPodGone(*before);
    queue_.Touch(GangOf(*before));
  }
  membership_.OnPod(pod);
  from_facts_.volume_nodes.OnPod(pod);
  from_facts_.claims.OnPod(pod);
  if (neighbours_.OnPod(before.get(), pod)) queue_.OnCapacityFreed();
  runs_.OnPod(pod.key);
  queue_.Touch(GangOf(pod));
}

void Core::On(const PodGone& command) {
  const auto pod = facts_.pods.Find(command.key);
  if (pod == nullptr || !facts_.pods.Remove(command.key, command.uid)) return;
  membership_.OnPodGone(*pod);
  if (neighbours_.OnPodGone(*pod)) queue_.OnCapacityFreed();
  status_.ForgetPod(command.key);
  from_facts_.claims.OnPodGone(command.key);
  runs_.OnPod(command.key);
  queue_.Touch(GangOf(*pod));
}

void Core::On(const ClaimSeen& command) {
  const ClaimKey& key = command.claim->key;
  if (const auto before = facts_.claims.Find(key);
      before != nullptr && before->uid != command.claim->uid) {
    On(ClaimGone{key, before->uid});
  }
  facts_.claims.Put(command.claim);
  runs_.OnClaim(key);
  TouchConsumers(key);
}

void Core::On(const ClaimGone& command) {
  const auto claim = facts_.claims.Find(command.key);
  if (claim == nullptr || !facts_.claims.Remove(command.key, command.uid)) return;
  runs_.OnClaimGone(*claim);
  for (const PodKey& pod : membership_.PodsUsing(command.key)) from_facts_.claims.OnClaimGone(pod);
  TouchConsumers(command.key);
}

void Core::On(const GangSeen& command) {
  facts_.gangs.Put(command.gang);
  from_facts_.maker.Forget(command.gang->key);
  status_.SeeGang(*command.gang, now_);
  runs_.OnGang(command.gang->key);
  if (command.gang->deleting) successors_.Forget({command.gang->key, false}, cluster_);
  queue_.Touch({command.gang->key, false});
}

void Core::On(const GangGone& command) {
  if (!facts_.gangs.Remove(command.key, command.uid)) return;
  status_.ForgetGang(command.key);
  runs_.OnGang(command.key);
  successors_.Forget({command.key, false}, cluster_);
  queue_.Touch({command.key, false});
}

void Core::On(const NodeSeen& command) {
  const auto is_ready = [&] {
    const std::optional<NodeId> id = cluster_.FindNode(command.node->name);
    return id && cluster_.node(*id).node != nullptr && cluster_.node(*id).node->ready;
  };
  const bool was_ready = is_ready();
  NoteOffered(AllocatableOf(command.node->name, cluster_), command.node->allocatable.get());
  cluster_.PutNode(command.node);
  if (was_ready != is_ready()) TouchRunsOn(command.node->name);
  queue_.OnRoomFreed();
}

// The use by pods of other schedulers keeps the node known, whether there is a Node or not.
NodeId Core::NodeWithOthers(const std::string& name) const {
  const std::optional<NodeId> id = cluster_.FindNode(name);
  TAHOMA_CHECK(id.has_value());
  return *id;
}

void Core::On(const OtherPodMoved& command) {
  bool concerns = false;
  if (command.added != nullptr) {
    cluster_.AddUse(command.node, command.added->needs);
    concerns = neighbours_.OnOtherPod(command.added, NodeWithOthers(command.node));
  }
  if (command.removed != nullptr) {
    concerns =
        neighbours_.OnOtherPodGone(command.removed, NodeWithOthers(command.left)) || concerns;
    cluster_.SubtractUse(command.left, command.removed->needs);
    queue_.OnRoomFreed();
  }
  if (concerns) queue_.OnNeighboursMoved();
}

// A resource that a device plugin begins to offer lets pods be placed that no class helps.
void Core::NoteOffered(const kube::Amounts* before, const kube::Amounts* after) {
  if (!facts_.offered.OnNode(before, after)) return;
  from_facts_.claims.OnClasses();
  queue_.TouchAllWaiting();
}

void Core::On(const NodeGone& command) {
  NoteOffered(AllocatableOf(command.name, cluster_), nullptr);
  cluster_.RemoveNode(command.name);
  runs_.OnNodeGone(command.name);
  TouchRunsOn(command.name);
}

// Lets the gangs that hold devices of the node be shown anew.
void Core::TouchRunsOn(const std::string& node) {
  const std::optional<NodeId> id = cluster_.FindNode(node);
  if (!id) return;
  runs_.ForEachOn(*id, [&](const GangRun& run) {
    queue_.Touch({run.decision().key, run.decision().single});
  });
}

void Core::On(const ClassSeen& command) {
  facts_.classes[command.device_class->name] = command.device_class;
  from_facts_.claims.OnClasses();
  queue_.TouchAllWaiting();
}

void Core::On(const ClassGone& command) {
  facts_.classes.erase(command.name);
  from_facts_.claims.OnClasses();
  queue_.TouchAllWaiting();
}

void Core::On(const PodGroupSeen& command) {
  const auto before = facts_.pod_groups.Find(command.group->key);
  if (before != nullptr && *before == *command.group) return;
  facts_.pod_groups.Put(command.group);
  TouchUsers(membership_.PodsJoining(command.group->key));
}

void Core::On(const PodGroupGone& command) {
  if (!facts_.pod_groups.Remove(command.key, command.uid)) return;
  TouchUsers(membership_.PodsJoining(command.key));
}

// The PodGroups that name the class are not looked up: classes change rarely.
void Core::On(const PriorityClassSeen& command) {
  const auto [known, added] = facts_.priorities.try_emplace(command.name, command.value);
  if (!added && std::exchange(known->second, command.value) == command.value) return;
  queue_.TouchAllWaiting();
}

void Core::On(const PriorityClassGone& command) {
  if (facts_.priorities.erase(command.name) > 0) queue_.TouchAllWaiting();
}

void Core::On(const WorkloadSeen& command) {
  const WorkloadKey& key = command.workload->key;
  facts_.workloads.Put(command.workload);
  from_facts_.workloads.OnWorkload(*command.workload, now_);
  queue_.Touch({key, false});
}

void Core::On(const WorkloadGone& command) {
  if (!facts_.workloads.Remove(command.key, command.uid)) return;
  from_facts_.workloads.OnWorkloadGone(command.key);
  queue_.Touch({command.key, false});
}

void Core::On(const ClaimTemplateSeen& command) {
  const ClaimTemplateKey& key = command.claim_template->key;
  const auto before = facts_.claim_templates.Find(key);
  facts_.claim_templates.Put(command.claim_template);
  const std::string& workload = command.claim_template->workload;
  OnTemplate(key, before == nullptr ? !workload.empty() : before->workload != workload);
}

void Core::On(const ClaimTemplateGone& command) {
  const auto before = facts_.claim_templates.Find(command.key);
  if (!facts_.claim_templates.Remove(command.key, command.uid)) return;
  OnTemplate(command.key, !before->workload.empty());
}

// Moves the template's pods to the gang of the template's workload.
void Core::OnTemplate(const ClaimTemplateKey& key, bool of_other_workload) {
  from_facts_.workloads.OnTemplate(key);
  for (const WorkloadKey& workload : from_facts_.workloads.NamersOf(key)) {
    queue_.Touch({workload, false});
  }
  if (!of_other_workload) return;
  const std::set<PodKey> pods = membership_.PodsOfTemplate(key);  // a copy: the set changes
  for (const PodKey& pod : pods) On(PodSeen{facts_.pods.Find(pod)});
}

void Core::On(const VolumeClaimSeen& command) {
  const VolumeClaimKey& key = command.claim->key;
  const auto before = facts_.volume_claims.Find(key);
  facts_.volume_claims.Put(command.claim);
  from_facts_.volume_nodes.OnClaim(before.get(), *command.claim, now_);
  TouchUsers(membership_.PodsMounting(key));
}

void Core::On(const VolumeClaimGone& command) {
  if (!facts_.volume_claims.Remove(command.key, command.uid)) return;
  from_facts_.volume_nodes.OnClaimGone(command.key);
  TouchUsers(membership_.PodsMounting(command.key));
}

void Core::On(const VolumeSeen& command) {
  auto& known = facts_.volumes[command.volume->name];
  if (known != nullptr && *known == *command.volume) return;
  known = command.volume;
  TouchUsersOfVolume(command.volume->name);
}

void Core::On(const VolumeGone& command) {
  if (facts_.volumes.erase(command.name) > 0) TouchUsersOfVolume(command.name);
}

void Core::On(const StorageClassSeen& command) {
  auto& known = facts_.storage_classes[command.storage_class->name];
  if (known != nullptr && *known == *command.storage_class) return;
  known = command.storage_class;
  TouchUsersOfClass(command.storage_class->name);
}

void Core::On(const StorageClassGone& command) {
  if (facts_.storage_classes.erase(command.name) > 0) TouchUsersOfClass(command.name);
}

void Core::On(const BlockSeen& command) { blocks_.OnBlock(command.block); }

void Core::On(const BlockGone& command) { blocks_.OnBlockGone(command.key, command.uid); }

void Core::On(const RequestSeen& command) { requests_.OnRequest(command.request); }

void Core::On(const RequestGone& command) { requests_.OnRequestGone(command.key, command.uid); }

void Core::On(const BlockOrder& command) { blocks_.OnOrder(command); }

// A status that was written changes no calendar.
void Core::On(const QueueCalendarSeen& command) {
  from_facts_.calendars.OnCalendar(*command.calendar, command.shown, now_);
  auto& known = facts_.queue_calendars[command.calendar->name];
  if (known != nullptr && *known == *command.calendar) return;
  known = command.calendar;
  past_.queues.OnQueueCalendars();
}

void Core::On(const QueueCalendarGone& command) {
  from_facts_.calendars.OnCalendarGone(command.name, command.uid);
  const auto known = facts_.queue_calendars.find(command.name);
  if (known == facts_.queue_calendars.end() || known->second->uid != command.uid) return;
  facts_.queue_calendars.erase(known);
  past_.queues.OnQueueCalendars();
}

// A status that was written changes no queue.
void Core::On(const BudgetSeen& command) {
  facts_.budgets.Put(command.budget);
  kept_.preemption.OnBudgets(now_.wall);
}

void Core::On(const BudgetGone& command) {
  facts_.budgets.Remove(command.ns, command.name, command.uid);
  kept_.preemption.OnBudgets(now_.wall);
}

void Core::On(const QueueSeen& command) {
  from_facts_.queues.OnQueue(*command.queue, command.shown, now_);
  auto& known = facts_.queues[command.queue->name];
  if (known != nullptr && *known == *command.queue) return;
  known = command.queue;
  past_.queues.OnQueues();
}

void Core::On(const QueueGone& command) {
  from_facts_.queues.OnQueueGone(command.name, command.uid);
  const auto known = facts_.queues.find(command.name);
  if (known == facts_.queues.end() || known->second->uid != command.uid) return;
  facts_.queues.erase(known);
  past_.queues.OnQueues();
}

// A status that was written changes no window.
void Core::On(const WindowSeen& command) {
  from_facts_.windows.OnWindow(*command.window, command.shown, now_);
  auto& known = facts_.windows[command.window->name];
  if (known != nullptr && *known == *command.window) return;
  known = command.window;
  kept_.windows.OnWindow(known);
}

void Core::On(const WindowGone& command) {
  from_facts_.windows.OnWindowGone(command.name, command.uid);
  const auto known = facts_.windows.find(command.name);
  if (known == facts_.windows.end() || known->second->uid != command.uid) return;
  facts_.windows.erase(known);
  kept_.windows.OnWindowGone(command.name);
}

void Core::On(const DefragmentationSeen& command) {
  from_facts_.defragmentations.OnObject(*command.fact, now_);
  kept_.moves.OnObject(command.fact);
}

void Core::On(const DefragmentationGone& command) {
  from_facts_.defragmentations.OnObjectGone(command.name, command.uid);
  kept_.moves.OnObjectGone(command.name, command.uid);
}

void Core::On(const WatchesSynced&) {
  if (watches_ != Watches::kListing) return;
  watches_ = Watches::kJustSynced;
  runs_.OnSynced();
  blocks_.OnSynced();
}

void Core::On(const ApiResult& command) {
  switch (TargetOf(command.kind)) {
    case WriteTarget::kPeople:
      if (command.kind == WriteKind::kPodReclaim) return notices_.OnResult(command, now_);
      return status_.OnResult(command, now_);
    case WriteTarget::kGang:
      if (from_facts_.maker.OnResult(command, now_)) {
        queue_.Touch({{command.ns, command.name}, false});
      }
      return;
    case WriteTarget::kVolumeClaim:
      return from_facts_.volume_nodes.OnResult(command, now_);
    case WriteTarget::kExtendedClaim:
      if (from_facts_.claims.OnResult(command, now_)) TouchGangOf({command.ns, command.name});
      return;
    case WriteTarget::kWorkload:
      return from_facts_.workloads.OnResult(command, now_);
    case WriteTarget::kBlock:
      return blocks_.OnResult(command, now_);
    case WriteTarget::kRequest:
      return requests_.OnResult(command, now_);
    case WriteTarget::kQueue:
      if (command.kind == WriteKind::kQueueCalendarStatus) {
        return from_facts_.calendars.OnResult(command, now_);
      }
      return from_facts_.queues.OnResult(command, now_);
    case WriteTarget::kWindow:
      return from_facts_.windows.OnResult(command, now_);
    case WriteTarget::kDefragmentation:
      if (const auto shown = from_facts_.defragmentations.OnResult(command, now_)) {
        kept_.moves.OnShown(command.name, *shown);
      }
      return;
    case WriteTarget::kClaim:
    case WriteTarget::kPod:
      return runs_.OnResult(command, now_.monotonic);
  }
}

// Lets the gangs that use the claim be assessed: they may have become ready, or unready.
void Core::TouchConsumers(const ClaimKey& key) { TouchUsers(membership_.PodsUsing(key)); }

void Core::TouchUsers(const std::set<PodKey>& pods) {
  for (const PodKey& pod : pods) {
    const auto fact = facts_.pods.Find(pod);
    if (fact != nullptr && !runs_.HasPlace(*fact)) queue_.Touch(GangOf(*fact));
  }
}

// There are many volumes and claims when all are listed, and then every gang is assessed anyway.
void Core::TouchUsersOfVolume(const std::string& volume) {
  if (watches_ == Watches::kListing) return;
  facts_.volume_claims.ForEach([&](const VolumeClaimFact& claim) {
    if (claim.volume == volume) TouchUsers(membership_.PodsMounting(claim.key));
  });
}

void Core::TouchUsersOfClass(const std::string& storage_class) {
  if (watches_ == Watches::kListing) return;
  facts_.volume_claims.ForEach([&](const VolumeClaimFact& claim) {
    if (claim.storage_class != storage_class || claim.bound) return;
    from_facts_.volume_nodes.OnClass(claim);
    TouchUsers(membership_.PodsMounting(claim.key));
  });
}

void Core::TouchGangOf(const PodKey& pod) {
  if (const auto fact = facts_.pods.Find(pod)) queue_.Touch(GangOf(*fact));
}

void Core::DrainRunNews() {
  for (const RunNews& news : runs_.DrainNews()) {
    queue_.Touch(news.gang);
    past_.usage.Touch(news.gang);
    kept_.promises.OnRun(news.gang, now_.wall);
    past_.queues.Touch(news.gang);
    status_.TellRun(news, now_.wall);
    switch (news.kind) {
      case RunNews::Kind::kMoved:
      case RunNews::Kind::kShrunk:
        break;
      case RunNews::Kind::kBound:
        ++counters_.gangs_bound;
        successors_.OnBound(news.gang);
        kept_.moves.OnSettled(news.gang);
        counters_.pods_bound += news.decision->pods.size();
        AddDecision(DecisionKind::kBound, *news.decision, "all pods are bound");
        break;
      case RunNews::Kind::kUndoing:
        ++counters_.gangs_undone;
        AddDecision(DecisionKind::kUndone, *news.decision, news.reason, ReasonOf(news.cause));
        Remember(news);
        break;
      case RunNews::Kind::kUndone:
        OnUndone(news);
        for (const DecidedPod& pod : news.decision->pods) TouchGangOf({news.gang.key.ns, pod.name});
        break;
    }
  }
}

void Core::AddDecision(DecisionKind kind, const GangDecision& decision, std::string message,
                       GangReason reason) {
  LoggedDecision logged = LoggedOf(kind, decision, now_.wall);
  logged.message = std::move(message);
  logged.reason = reason;
  if (kind != DecisionKind::kUndone) logged.waited = WaitedOf(decision);
  past_.decisions.Add(std::move(logged));
}

// Returns how long ago the last of the pods was created; nullopt when each has gone since.
std::optional<std::chrono::nanoseconds> Core::WaitedOf(const GangDecision& decision) const {
  std::optional<WallTime> last;
  for (const DecidedPod& pod : decision.pods) {
    const auto fact = facts_.pods.Find(PodKey{decision.key.ns, pod.name});
    if (fact != nullptr && fact->uid == pod.uid) last = std::max(last, {fact->created});
  }
  if (!last) return std::nullopt;
  return std::max<std::chrono::nanoseconds>(now_.wall - *last, std::chrono::nanoseconds(0));
}

// Notes how a run ends. Later the pods are gone, and with them the names of their owners.
void Core::Remember(const RunNews& news) {
  const GangRun* run = runs_.Find(news.gang);
  const auto& pods = news.decision->pods;
  const bool controlled = std::ranges::any_of(pods, [&](const DecidedPod& pod) {
    const auto fact = facts_.pods.Find(PodKey{news.gang.key.ns, pod.name});
    return fact != nullptr && fact->uid == pod.uid && fact->controlled;
  });
  successors_.Remember(news.gang, {.cause = news.cause,
                                   .reason = news.reason,
                                   .started = run != nullptr && runs_.HasStarted(run->id()),
                                   .controlled = controlled});
}

// The gang waits for its next pods, and for a while in any case.
void Core::OnUndone(const RunNews& news) {
  if (news.cause == EndCause::kMemberLost && MayKeep(news)) {
    successors_.Keep(news.gang, news.freed, now_.monotonic, cluster_);
  }
  queue_.BackOff(news.gang, now_.monotonic, successors_.PauseOf(news.gang));
}

// A preemptible gang keeps nothing, and neither does a gang with a new run for pods taken over from
// a backup. Nothing is kept beyond the promised end of the run, when the hardware may have been
// promised to others.
bool Core::MayKeep(const RunNews& news) const {
  const auto gang = facts_.gangs.Find(news.gang.key);
  if (news.gang.single || gang == nullptr || gang->deleting) return false;
  if (news.decision->preemptible || runs_.Find(news.gang) != nullptr) return false;
  const auto end = news.decision->end;
  if (end && *end < now_.wall + successors_.keep()) return false;
  return ExpectsPods(news.gang);
}

// Returns whether somebody makes pods of the gang anew: the owner of a pod of the last run, or a
// person, as long as some pods are there and not all have ended. Nobody is waited for when pods
// without an owner were all deleted.
bool Core::ExpectsPods(const GangRef& ref) const {
  const Successors::LastEnd* last = successors_.FindEnd(ref);
  if (last != nullptr && last->controlled) return true;
  return !membership_.PodsOf(ref.key).empty() && !ReadinessOf(ref).finished;
}

// Tells the gangs of a block that run on its hosts. What was lent to others ends without it.
void Core::OnNotice(const BlockNotice& notice) {
  std::map<RunId, const GangRun*> runs;
  for (const std::string& host : notice.hosts) {
    for (const NodeId node : NodesOf(host, cluster_)) {
      runs_.ForEachOn(node, [&](const GangRun& run) {
        if (run.decision().reclaim) runs[run.id()] = &run;
      });
    }
  }
  for (const auto& [id, run] : runs) {
    TellPods(*run, notice.reclaim);
    if (!notice.warning.empty()) status_.TellReclaim(run->decision(), notice.warning, now_.wall);
  }
}

// Tells gangs that their queue will hold too much when a calendar lowers the queue's guarantee.
void Core::TellReclaims() {
  for (const ReclaimWarning& warning : past_.queues.warnings().Drain()) {
    const GangRun* run = runs_.FindRun(warning.run);
    if (run == nullptr || run->ending()) continue;
    TellPods(*run, BlockEndOf(run->decision()));
    if (!warning.message.empty()) status_.TellReclaim(run->decision(), warning.message, now_.wall);
  }
}

// Tells the pods of the run, and the gang unless the pods know: after a restart all are told anew.
void Core::OnNotice(const WindowNotice& notice) {
  const GangRun* run = runs_.FindRun(notice.run);
  if (run == nullptr) return;
  const bool knew = TellPods(*run, BlockEndOf(run->decision()));
  if (!notice.warning.empty() && !knew) {
    status_.TellMaintenance(run->decision(), notice.warning, now_.wall);
  }
}

// Returns when the gang's Capacity Block takes the hardware back, as the book says or else as was
// known at the decision.
std::optional<WallTime> Core::BlockEndOf(const GangDecision& decision) const {
  const auto* block = blocks_.book().blocks().Find(decision.reservation);
  return block == nullptr ? decision.reclaim : blocks_.time().ToWall((*block)->reclaim());
}

// Tells the pods of the run when a block, a calendar or a window ends the run: the first of them.
// Returns whether all pods knew of an end at that time.
bool Core::TellPods(const GangRun& run, std::optional<WallTime> block_end) {
  const GangDecision& decision = run.decision();
  std::optional<WallTime> end = kept_.windows.EndToldTo(run.id());
  const auto also = [&](std::optional<WallTime> other) {
    if (other) end = std::min(end.value_or(*other), *other);
  };
  also(past_.queues.warnings().EndToldTo(run));
  also(block_end);
  bool knew = end.has_value();
  for (const DecidedPod& pod : decision.pods) {
    const auto fact = facts_.pods.Find(PodKey{decision.key.ns, pod.name});
    knew = knew && fact != nullptr && fact->bound_reclaim == end;
    notices_.Tell({decision.key.ns, pod.name}, pod.uid, end);
  }
  return knew;
}

// Gives a pod that must have ended by some time no more grace than that allows.
void Core::LimitGrace(PodDeletion& deletion) const {
  if (!deletion.by) return;
  const auto fact = facts_.pods.Find(PodKey{deletion.decision->key.ns, deletion.pod().name});
  if (fact == nullptr) return;
  deletion.grace_seconds = GraceUntil(*deletion.by, now_.wall, fact->grace_seconds);
}

void Core::DrainBlockNews() {
  for (const GangRef& ref : blocks_.DrainTouched()) queue_.Touch(ref);
  const bool by_blocks = blocks_.DrainCapacityFreed();
  const bool by_lending = lending_.DrainCapacityFreed();
  if (by_blocks || by_lending) queue_.OnCapacityFreed();
  for (const BlockNotice& notice : blocks_.DrainNotices()) OnNotice(notice);
  for (const ReclaimedHost& reclaimed : blocks_.DrainReclaimed()) {
    for (const NodeId node : NodesOf(reclaimed.host, cluster_)) {
      runs_.EndOn(node, EndCause::kReclaimed, reclaimed.reason, reclaimed.by, reclaimed.goes_on);
    }
  }
}

// Ends what would go on into a block in the place of gangs that name it.
void Core::MakeWayFor(const Heir& heir) {
  std::map<ServicePlace, std::shared_ptr<const GangSpec>> gangs;
  for (const GangRef& ref : heir.gangs) {
    if (runs_.Find(ref) != nullptr) continue;
    Readiness ready = ReadinessOf(ref);
    if (ready.spec != nullptr) ready = blocks_.AdmitAtStart(*heir.block, ref, std::move(ready));
    if (ready.spec != nullptr) gangs.emplace(PlaceOf(ref, *ready.spec), ready.spec);
  }
  Queue queue;
  for (auto& [place, spec] : gangs) queue.push_back(std::move(spec));
  lending_.MakeWay(heir, std::move(queue), cluster_, now_.wall);
}

Readiness Core::ReadinessOf(const GangRef& ref) const {
  Readiness ready =
      membership_.Assess(ref, facts_, [this](const ClaimKey& key) { return runs_.BusyClaim(key); });
  if (const std::string trouble = from_facts_.claims.TroubleOf(ready.unclaimed); !trouble.empty()) {
    ready.message = fmt::format("pod {}: {}", ready.unclaimed.name, trouble);
  }
  if (ready.spec != nullptr) WaitForOtherRuns(ready);
  if (ready.spec != nullptr && (successors_.Resumes(ref) || kept_.moves.GoesFirst(ref))) {
    auto spec = std::make_shared<GangSpec>(*ready.spec);
    spec->resumes = true;
    ready.spec = std::move(spec);
  }
  return ready;
}

// Says, of a gang that waits, how its last run has ended.
void Core::AddLastEnd(const GangRef& ref, Readiness& ready) const {
  const Successors::LastEnd* last = successors_.FindEnd(ref);
  if (last == nullptr || last->reason.empty() || ready.finished) return;
  const bool backs_off = queue_.IsBackingOff(ref);
  if (ready.spec != nullptr) {
    if (!backs_off || last->cause != EndCause::kNotStarted) return;
    ready.reason = GangReason::kNotStarted;
    ready.message = last->reason + "; it is placed again after a pause";
  } else if (ready.reason == GangReason::kWaitingForPods) {
    ready.message += "; its last run ended: " + last->reason;
  }
}

// Finds again whether the gang has a run, waits, or is gone.
void Core::Assess(const GangRef& ref) {
  if (runs_.Find(ref) != nullptr) {
    lending_.OnSettled(ref, cluster_);
    kept_.preemption.OnSettled(ref);
    kept_.promises.OnSettled(ref);
    blocks_.ForgetGang(ref);
    past_.queues.WaitsNoMore(ref);
    ReplaceLost(ref);
    WaitToGrow(ref);
    Show(ref);
    return;
  }
  if (successors_.Resumes(ref) && !ExpectsPods(ref)) successors_.GiveBack(ref, cluster_);
  const auto pod = ref.single ? facts_.pods.Find(PodKey{ref.key.ns, ref.key.name}) : nullptr;
  const bool exists =
      ref.single ? pod != nullptr && GangOf(*pod) == ref
                 : facts_.gangs.Find(ref.key) != nullptr || !membership_.PodsOf(ref.key).empty();
  Readiness ready;
  if (exists) {
    ready = past_.queues.Admit(ref, ReadinessOf(ref));
    if (ready.spec != nullptr) ready = blocks_.Admit(ref, std::move(ready), now_.wall);
    AddLastEnd(ref, ready);
  }
  MakeGang(ref, ready);
  if (ready.spec == nullptr) {
    lending_.OnSettled(ref, cluster_);
    kept_.preemption.OnSettled(ref);
    kept_.promises.OnSettled(ref);
  }
  if (!exists || (ref.single && ready.reason == GangReason::kFinished)) {
    blocks_.ForgetGang(ref);
    past_.queues.WaitsNoMore(ref);
    queue_.Remove(ref);
    successors_.Forget(ref, cluster_);
    status_.Forget(ref);
    if (!ref.single) from_facts_.workloads.OnGang(ref.key);
    return;
  }
  past_.queues.Waits(ref, ready);
  queue_.Put(ref, ready);
  Show(ref);
}

// Shows the gang as it is to people.
void Core::Show(const GangRef& ref) {
  status_.Show(ref, now_);
  if (!ref.single) from_facts_.workloads.OnGang(ref.key);
}

// Lets each queue show its view where the view has changed.
void Core::ShowQueues(QueueViews views) {
  ForEachDifference(from_facts_.queue_views, views,
                    [this](const std::string&, const auto*, const auto* after) {
                      if (after != nullptr) from_facts_.queues.Show(**after, now_);
                    });
  from_facts_.queue_views = std::move(views);
  for (auto& [name, status] : past_.queues.calendars().DrainStatuses()) {
    from_facts_.calendars.Show(name, std::move(status), now_);
  }
}

WorkloadGang Core::GangForWorkload(const WorkloadKey& key) const {
  WorkloadGang gang;
  const std::string refusal = from_facts_.maker.RefusalOf(key);
  if (!refusal.empty()) gang.refusal = "the API server refuses its Gang: " + refusal;
  const auto* view = status_.views().Find(GangRef{key, false});
  if (view == nullptr) {
    gang.reason = GangReason::kWaitingForGang;
    gang.message = "its Gang is being made";
    return gang;
  }
  gang.phase = (*view)->phase;
  gang.reason = (*view)->reason;
  gang.message = (*view)->message;
  gang.decision = (*view)->decision;
  return gang;
}

// Lets the wished Gang be made, of the pods or of the workload.
void Core::MakeGang(const GangRef& ref, Readiness& ready) {
  if (ref.single) return;  // a Gang may have the pod's name
  if (ready.wish == nullptr) ready.wish = from_facts_.workloads.WishOf(ref.key);
  if (ready.wish == nullptr) return from_facts_.maker.Forget(ref.key);
  from_facts_.maker.Want(ref.key, ready.wish);
  const std::string refusal = from_facts_.maker.RefusalOf(ref.key);
  if (!refusal.empty()) ready.message = "the API server refuses its Gang: " + refusal;
}

// Gives the places of lost members to the gang's next pods, where its Gang wants that.
void Core::ReplaceLost(const GangRef& ref) {
  const GangRun& run = *runs_.Find(ref);
  const auto gang = ref.single ? nullptr : facts_.gangs.Find(ref.key);
  if (gang == nullptr || gang->failure_policy != FailurePolicy::kReplace || run.ending() ||
      GoesOnWithoutLost(run, *gang)) {
    return;
  }
  const std::optional<LostMember> lost = run.FindLost();
  if (!lost) return;
  const auto busy = [this](const ClaimKey& key) { return runs_.BusyClaim(key); };
  // Nothing begins during maintenance.
  const ClusterState fleet = kept_.promises.ViewOf(cluster_, kept_.promises.BegunFixed(now_.wall));
  const Replacement next = FindReplacement(run,
                                           {.facts = facts_,
                                            .membership = membership_,
                                            .cluster = fleet,
                                            .plan = queue_.planner(),
                                            .busy = busy},
                                           now_.wall);
  if (!next.impossible.empty()) {
    return runs_.End(run.id(), EndCause::kMemberLost, lost->why + "; " + next.impossible);
  }
  for (const MemberReplaced& member : next.members) {
    const std::string& node =
        member.node.empty() ? run.decision().pods[member.pod].node : member.node;
    past_.decisions.Add(
        {.when = now_.wall,
         .gang = ref,
         .kind = DecisionKind::kPlaced,
         .message = fmt::format("pod {} takes the place of a lost one", member.name),
         .members = fmt::format("{} on {}", member.name, node)});
    status_.TellReplaced(run, member, now_.wall);
    runs_.Replace(member);
  }
}

// Lets the next pod of a gang with minMembers wait for a place in the gang's run.
void Core::WaitToGrow(const GangRef& ref) {
  const GangRun& run = *runs_.Find(ref);
  const auto gang = ref.single ? nullptr : facts_.gangs.Find(ref.key);
  std::optional<Readiness> next;
  if (gang != nullptr && GoesOnWithoutLost(run, *gang)) {
    next = FindGrowth(run, *gang,
                      {.facts = facts_,
                       .membership = membership_,
                       .cluster = cluster_,
                       .busy = [this](const ClaimKey& key) { return runs_.BusyClaim(key); },
                       .has_place = [this](const PodFact& pod) { return runs_.HasPlace(pod); }},
                      now_.wall);
  }
  if (!next) return queue_.Remove(ref);
  const bool in_block = next->spec != nullptr && !next->spec->block.empty();
  if (in_block) next = blocks_.Admit(ref, *std::move(next), now_.wall);
  if (next->spec != nullptr && next->spec->reservation != run.decision().reservation) {
    return queue_.Remove(ref);  // its block is another by now
  }
  next->grows = true;
  if (next->spec != nullptr && next->spec->queue != run.decision().queue) {
    auto spec = std::make_shared<GangSpec>(*next->spec);
    spec->queue = run.decision().queue;  // the pod's labels may name another
    next->spec = std::move(spec);
  }
  queue_.Put(ref, *next);
}

// Gives the planned pod a place in the gang's run.
void Core::Grow(const GangRef& ref, const Planned& planned) {
  const GangRun& run = *runs_.Find(ref);
  const auto gang = facts_.gangs.Find(ref.key);
  if (gang == nullptr || !GoesOnWithoutLost(run, *gang)) return;
  const std::optional<MemberAdded> added = AddedOf(run, *gang, *planned.placement);
  if (!added) return;
  past_.decisions.Add(
      {.when = now_.wall,
       .gang = ref,
       .kind = DecisionKind::kPlaced,
       .message = fmt::format("pod {} joins with rank {}", added->name, added->rank),
       .members = fmt::format("{} on {}", added->name, added->node)});
  status_.TellAdded(ref, *added, now_.wall);
  runs_.Add(*added);
}

// A pod that is labelled into this gang while it is being bound with another has the place that it
// was given there.
void Core::WaitForOtherRuns(Readiness& ready) const {
  for (const MemberSpec& member : ready.spec->members) {
    const auto pod = facts_.pods.Find(member.pod);
    if (pod == nullptr || !runs_.HasPlace(*pod)) continue;
    ready.spec = nullptr;
    ready.reason = GangReason::kWaitingForPods;
    ready.message = fmt::format("pod {} is being bound with another gang", member.pod.name);
    return;
  }
}

// Lets Defragmentations be planned and carried out. Each step looks at the gangs as they are shown.
void Core::MoveGangs() {
  const auto& views = status_.views();
  const BudgetRoom budgets = kept_.preemption.RoomOfBudgets();
  const auto guarded = [&](const std::shared_ptr<const MovableRun>& movable) {
    const GangRun* run = movable == nullptr ? nullptr : runs_.FindRun(movable->run);
    if (run == nullptr || !movable->stays.empty() || budgets.MayEnd(*run)) return movable;
    auto stays = std::make_shared<MovableRun>(*movable);
    stays->stays = "has pods that a PodDisruptionBudget keeps";
    return std::shared_ptr<const MovableRun>(std::move(stays));
  };
  const auto run_of = [&](const GangRef& ref) -> std::shared_ptr<const MovableRun> {
    const auto* view = views.Find(ref);
    return view == nullptr ? nullptr : guarded((*view)->movable);
  };
  const auto runs = [&] {
    std::vector<std::shared_ptr<const MovableRun>> all;
    views.ForEach([&](const GangRef&, const std::shared_ptr<const GangView>& view) {
      if (view->movable != nullptr) all.push_back(guarded(view->movable));
    });
    return all;
  };
  const auto waiting = [&](const GangRef& ref) -> std::shared_ptr<const GangSpec> {
    const WaitingGang* gang = runs_.Find(ref) == nullptr ? queue_.Find(ref) : nullptr;
    return gang == nullptr ? nullptr : gang->spec;
  };
  kept_.moves.Step({.cluster = cluster_, .runs = runs, .run_of = run_of, .waiting = waiting},
                   now_.wall);
  for (auto& [name, status] : kept_.moves.DrainShown()) {
    from_facts_.defragmentations.Show(name, std::move(status), now_);
  }
}

void Core::PlanSome() {
  if (successors_.DrainCapacityFreed()) queue_.OnCapacityFreed();
  if (runs_.DrainRoomFreed()) queue_.OnRoomFreed();
  kept_.promises.Step(cluster_, now_.wall);
  const std::vector<Planned> all = queue_.Plan(cluster_, runs_.room(), now_.wall);
  for (const Planned& planned : all) {
    const GangRef ref{planned.gang->key, planned.gang->single_pod};
    const bool grows = runs_.Find(ref) != nullptr;
    if (planned.placement && grows) {
      Grow(ref, planned);
    } else if (planned.placement) {
      const auto decision = std::make_shared<const GangDecision>(
          DecisionOf(*planned.gang, *planned.placement, now_.wall));
      ++counters_.gangs_prepared;
      successors_.GiveBack(ref, cluster_);
      // The ended gangs come back first: they would have the gang's further pods ended in turn.
      if (queue_.OthersEndFor(ref)) queue_.BackOff(ref, now_.monotonic, kGrowsAfter);
      kept_.promises.OnBegun(*planned.gang, *planned.placement, cluster_, now_.wall);
      runs_.Begin(decision);
      past_.queues.WaitsNoMore(ref);
      past_.queues.Touch(ref);
      status_.TellPlaced(*decision, now_.wall);
      AddDecision(DecisionKind::kPlaced, *decision);
    } else if (planned.news) {
      const std::string& why = queue_.Find(ref)->message;
      if (!grows) status_.TellBlocked(ref, why, now_.wall);
      past_.decisions.Add({.when = now_.wall,
                           .gang = ref,
                           .kind = DecisionKind::kBlocked,
                           .message = why,
                           .reason = queue_.Find(ref)->reason});
    }
    if (planned.placement) Show(ref);
  }
  queue_.See(cluster_);
  Queue blocked;
  for (const Planned& planned : all) {
    const GangRef ref{planned.gang->key, planned.gang->single_pod};
    const WaitingGang* waits = queue_.Find(ref);
    if (waits == nullptr || waits->reason != GangReason::kWaitsForCapacity) continue;
    if (runs_.Find(ref) != nullptr) continue;  // nobody ends for a gang that runs already
    if (successors_.Keeps(ref)) continue;  // others end for it when its own hardware is given up
    lending_.OnBlocked(*planned.gang, cluster_, now_.wall);
    blocked.push_back(planned.gang);
  }
  kept_.preemption.OnBlocked(blocked, cluster_, now_.wall);
  for (const auto& gang : blocked) kept_.promises.OnBlocked(gang, cluster_, now_.wall);
  for (const Planned& planned : all) {
    if (!planned.placement) Show({planned.gang->key, planned.gang->single_pod});
  }
}

std::optional<MonotonicTime> Core::NextWake() const {
  std::optional<MonotonicTime> wake;
  const auto consider = [&](std::optional<MonotonicTime> when) {
    if (when && (!wake || *when < *wake)) wake = when;
  };
  consider(runs_.wake());
  consider(queue_.wake());
  consider(successors_.wake());
  consider(status_.wake(now_));
  consider(blocks_.wake(now_));
  consider(notices_.wake(now_));
  consider(from_facts_.maker.wake(now_));
  consider(from_facts_.claims.wake(now_));
  consider(from_facts_.volume_nodes.wake(now_));
  consider(from_facts_.workloads.wake(now_));
  consider(from_facts_.queues.wake(now_));
  consider(from_facts_.calendars.wake(now_));
  consider(from_facts_.windows.wake(now_));
  consider(kept_.windows.wake_status());
  consider(from_facts_.defragmentations.wake(now_));
  consider(requests_.wake(now_));
  for (const auto& wall :
       {runs_.wake_wall(), lending_.wake(), kept_.promises.wake(now_.wall), kept_.preemption.wake(),
        kept_.windows.wake(), kept_.moves.wake(), past_.usage.wake(), past_.queues.wake()}) {
    if (!wall) continue;
    consider(now_.monotonic +
             std::min<std::chrono::nanoseconds>(UntilWall(*wall, now_), kWakeMost));
  }
  if (queue_.has_active() && runs_.room() > 0) consider(now_.monotonic);
  return wake;
}

void Core::PublishSnapshot() {
  counters_.plans = queue_.plans();
  counters_.journal_records = journal_.records();
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->synced = true;
  snapshot->cluster = std::make_shared<const ClusterState>(cluster_);
  snapshot->gangs = status_.views();
  snapshot->runs_in_flight = runs_.in_flight();
  snapshot->gangs_waiting = queue_.size();
  snapshot->counters = counters_;
  snapshot->decisions = past_.decisions;
  snapshot->blocks = blocks_.views();
  snapshot->block_list = blocks_.book().blocks();
  snapshot->usage = blocks_.usage();
  snapshot->gang_usage = past_.usage.sums();
  snapshot->promises = kept_.promises.All();
  snapshot->queues = past_.queues.views();
  snapshot->block_now = blocks_.book().now();
  snapshot->profile = blocks_.book().profile();
  snapshot->prices = blocks_.book().prices();
  snapshot->offering_key = blocks_.book().offering_key();
  snapshot->quotas = blocks_.book().quotas();
  snapshot->block_time = blocks_.time();
  snapshot_ = std::move(snapshot);
}

}  // namespace tahoma::controller
