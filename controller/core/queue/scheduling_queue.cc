#include "controller/core/queue/scheduling_queue.h"

#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>
#include <fmt/format.h>

#include <algorithm>

#include "controller/core/queue/neighbours.h"
#include "controller/core/queue/successors.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

GangReason ReasonOf(BlockedReason reason) {
  switch (reason) {
    case BlockedReason::kWaitsForCapacity:
      return GangReason::kWaitsForCapacity;
    case BlockedReason::kWaitsForRepair:
      return GangReason::kWaitsForRepair;
    case BlockedReason::kNeverFits:
      return GangReason::kNeverFits;
    case BlockedReason::kNotFound:
      return GangReason::kNotFound;
    case BlockedReason::kInvalid:
      return GangReason::kInvalid;
  }
  TAHOMA_CHECK(false);
  return GangReason::kNone;
}

GangReason ReasonOf(const QueueDenial& why) {
  switch (why.kind) {
    case QueueDenial::Kind::kStopped:
      return GangReason::kQueueStopped;
    case QueueDenial::Kind::kLimit:
    case QueueDenial::Kind::kLent:
      return GangReason::kQueueLimit;
    case QueueDenial::Kind::kComing:
      return GangReason::kQueueCalendar;
  }
  TAHOMA_CHECK(false);
  return GangReason::kNone;
}

bool AnyClaimOf(const GangSpec& gang, const absl::flat_hash_set<std::string>& taken) {
  return std::any_of(gang.members.begin(), gang.members.end(), [&](const MemberSpec& member) {
    return std::any_of(member.claims.begin(), member.claims.end(),
                       [&](const ClaimSpec& claim) { return taken.contains(claim.uid); });
  });
}

// Returns whether the nodes of the domain, or their published facts, differ.
bool NodesDiffer(const ClusterState& before, const ClusterState& now, DomainId id) {
  const DomainState& a = before.domain(id);
  const DomainState& b = now.domain(id);
  if (a.name != b.name || a.nodes != b.nodes || a.present != b.present) return true;
  return std::any_of(b.nodes.begin(), b.nodes.end(), [&](NodeId node) {
    return node.valid() && before.node(node).node != now.node(node).node;
  });
}

// Returns whether the same nodes have a free core, or a permitted use, more than before.
bool HasMoreRoom(const ClusterState& before, const ClusterState& now, DomainId id) {
  const DomainState& a = before.domain(id);
  const DomainState& b = now.domain(id);
  if ((b.free & ~a.free) != 0 || a.modes != b.modes || !(a.block == b.block)) return true;
  return std::any_of(b.nodes.begin(), b.nodes.end(), [&](NodeId id_of_node) {
    if (!id_of_node.valid()) return false;
    const NodeState& was = before.node(id_of_node);
    const NodeState& is = now.node(id_of_node);
    for (std::size_t chip = 0; chip < is.busy_cores.size(); ++chip) {
      if ((was.busy_cores[chip] & ~is.busy_cores[chip]) != 0) return true;
    }
    return false;
  });
}

// Says how many pods of the gang find no place.
void SayFewer(const GangSpec& gang, Blocked& blocked) {
  blocked.message = fmt::format("minMembers, {} of {} pods: {}", gang.min_members,
                                gang.members.size(), blocked.message);
}

// Hardware that other pods keep from the gang comes back when the pods end.
void SayNarrowed(const std::string& why, Blocked& blocked) {
  blocked.message += "; " + why;
  if (blocked.reason == BlockedReason::kNeverFits) {
    blocked.reason = BlockedReason::kWaitsForCapacity;
  }
}

// Equal for gangs whose pods have equal demands on nodes, in any order and number.
std::size_t NodesKeyOf(const GangSpec& gang) {
  std::set<std::string> demands;
  for (const MemberSpec& member : gang.members) demands.insert(TextOf(member.node));
  return absl::HashOf(demands);
}

}  // namespace

void SchedulingQueue::TouchAllWaiting() {
  for (const auto& [ref, gang] : waiting_) touched_.insert(ref);
}

std::set<GangRef> SchedulingQueue::DrainTouched(MonotonicTime now) {
  while (!backoff_ends_.empty() && backoff_ends_.begin()->first <= now) {
    const GangRef ref = backoff_ends_.begin()->second;
    backoff_ends_.erase(backoff_ends_.begin());
    backing_off_.erase(ref);
    touched_.insert(ref);
  }
  return std::exchange(touched_, {});
}

void SchedulingQueue::Put(const GangRef& ref, const Readiness& ready) {
  Deactivate(ref);
  WaitingGang& gang = waiting_[ref];
  if (gang.spec == nullptr || ready.spec == nullptr) {
    gang.reason = ready.reason;
    gang.message = ready.message;
  }
  gang.spec = ready.spec;
  gang.nodes = gang.spec == nullptr ? 0 : NodesKeyOf(*gang.spec);
  gang.finished = ready.finished;
  gang.succeeded = ready.succeeded;
  gang.need = {};
  if (gang.spec == nullptr) return;
  if (lines_.BoundBy(*gang.spec) != nullptr) {
    gang.need = {.least = LeastEighthsOf(*gang.spec),
                 .exact = {},
                 .grows = ready.grows,
                 .unending = UnendingOf(*gang.spec)};
  }
  if (!backing_off_.contains(ref)) Activate(PlaceOf(ref, *gang.spec));
}

void SchedulingQueue::Activate(const ServicePlace& place) {
  const WaitingGang* gang = Find(place.gang);
  TAHOMA_CHECK(gang != nullptr && gang->spec != nullptr);
  lines_.Put(place, *gang->spec, gang->need);
}

void SchedulingQueue::Remove(const GangRef& ref) {
  Deactivate(ref);
  waiting_.erase(ref);
}

void SchedulingQueue::Deactivate(const GangRef& ref) {
  blocked_.Remove(ref);
  lacking_room_.erase(ref);
  narrowed_.erase(ref);
  woken_.erase(ref);
  const WaitingGang* gang = Find(ref);
  if (gang != nullptr && gang->spec != nullptr) unpromised_.erase(PlaceOf(ref, *gang->spec));
  lines_.Remove(ref);
}

void SchedulingQueue::BackOff(const GangRef& ref, MonotonicTime now, std::chrono::seconds pause) {
  Deactivate(ref);
  const auto [found, added] = backing_off_.try_emplace(ref, now + pause);
  if (!added) {
    backoff_ends_.erase({found->second, ref});
    found->second = now + pause;
  }
  backoff_ends_.insert({found->second, ref});
}

void SchedulingQueue::Unblock(const GangRef& ref) {
  const std::optional<ServicePlace> place = blocked_.Remove(ref);
  TAHOMA_CHECK(place.has_value());  // else the gang would be planned before it is ready
  lacking_room_.erase(ref);
  narrowed_.erase(ref);
  unpromised_.erase(*place);
  Activate(*place);
}

void SchedulingQueue::OnCapacityFreed() {
  for (const ServicePlace& place : blocked_.Drain()) Activate(place);
  lacking_room_.clear();
  narrowed_.clear();
  unpromised_.clear();
  freed_.clear();
}

void SchedulingQueue::OnRoomFreed() {
  for (const GangRef& ref : std::exchange(lacking_room_, {})) Unblock(ref);
}

void SchedulingQueue::OnNeighboursMoved() {
  for (const GangRef& ref : std::exchange(narrowed_, {})) Unblock(ref);
}

// Counts the nodes of the domain in the place of those it had. Returns whether one is of a kind
// that no node was of.
bool SchedulingQueue::CountFamilies(const ClusterState& cluster, DomainId id) {
  bool any = false;
  const auto each = [id](const ClusterState& state, auto&& f) {
    if (id.value() >= state.domain_count()) return;
    for (const NodeId node : state.domain(id).nodes) {
      if (node.valid()) f(state.node(node).node->family);
    }
  };
  each(cluster, [&](const auto& family) { any = families_[family]++ == 0 || any; });
  each(seen_, [&](const auto& family) {
    if (--families_[family] == 0) families_.erase(family);
  });
  return any;
}

void SchedulingQueue::See(const ClusterState& cluster) {
  bool any = false;
  bool new_family = false;
  ClusterState::ForEachChangedDomain(seen_, cluster, [&](DomainId id) {
    any = true;
    lines_.CountFree(seen_, cluster, id);
    const bool in_both = id.value() < std::min(seen_.domain_count(), cluster.domain_count());
    const bool changed = !in_both || NodesDiffer(seen_, cluster, id);
    if (changed) new_family = CountFamilies(cluster, id) || new_family;
    if (id.value() >= cluster.domain_count()) return;
    if (!changed && !HasMoreRoom(seen_, cluster, id)) return;
    freed_[id] = {.changed = changed, .last = {}, .may_use = {}};
  });
  seen_ = cluster;
  if (any) refresh_.left = blocked_.size();
  // The rooms of the blocked gangs were found for the kinds of nodes that existed then.
  if (new_family) OnCapacityFreed();
}

// Returns whether some node of the domain admits some pod of the gang.
bool SchedulingQueue::MayUse(const GangRef& ref, const ClusterState& cluster, DomainId id) const {
  const WaitingGang* gang = Find(ref);
  TAHOMA_CHECK(gang != nullptr && gang->spec != nullptr);
  const auto& nodes = cluster.domain(id).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    if (!node.valid()) return false;
    const auto& members = gang->spec->members;
    return std::any_of(members.begin(), members.end(), [&](const MemberSpec& member) {
      return member.node.Admits(*cluster.node(node).node);
    });
  });
}

// Makes the first blocked gangs active that a freed domain may help. Queues take turns.
void SchedulingQueue::WakeForFreed(const ClusterState& cluster, WallTime now) {
  std::size_t left = kWokenMost;
  while (!freed_.empty()) {
    const DomainId id = freed_.begin()->first;
    Freed& freed = freed_.begin()->second;
    const DomainState& domain = cluster.domain(id);
    // A node that came back full still changes reasons: its capacity exists.
    const RoomKinds rooms = RoomsOf(cluster, id, freed.changed ? domain.present : domain.free);
    const auto kinds = blocked_.KindsFor(rooms, [&](const GangRef& gang, std::size_t nodes) {
      const auto [known, added] = freed.may_use.try_emplace(nodes, false);
      if (added) known->second = MayUse(gang, cluster, id);
      return known->second;
    });
    if (!WakeSome(kinds, freed, left, now)) return;
    freed_.erase(freed_.begin());
  }
}

// Wakes at most `left` gangs of the kinds. Returns whether no other is left.
bool SchedulingQueue::WakeSome(const std::vector<WakeIndex::Kind>& kinds, Freed& freed,
                               std::size_t& left, WallTime now) {
  std::map<std::size_t, std::vector<WakeIndex::Kind>> by_line;
  for (const WakeIndex::Kind& kind : kinds) by_line[kind.line].push_back(kind);
  LineTurns turns = lines_.TurnsAt(now);
  for (const auto& [line, of] : by_line) turns.Add(line);
  while (const std::optional<std::size_t> line = turns.First()) {
    const auto last = freed.last.find(*line);
    const auto next = blocked_.NextAfter(
        last == freed.last.end() ? std::nullopt : std::optional(last->second), by_line[*line]);
    if (!next) {
      turns.Drop(*line);
      continue;
    }
    if (left == 0) return false;
    --left;
    turns.Charge(*line, Find(next->gang)->need);
    freed.last[*line] = *next;
    if (!freed.changed) woken_.insert(next->gang);
    Unblock(next->gang);
  }
  return true;
}

SchedulingQueue::Batch SchedulingQueue::DrainActive(std::size_t most, WallTime now) {
  Batch batch;
  bool alone = false;
  while (batch.queue.size() < most && !alone) {
    const std::optional<ServicePlace> next = lines_.Next();
    if (!next) break;
    const ServicePlace& place = *next;
    const WaitingGang* gang = Find(place.gang);
    TAHOMA_CHECK(gang != nullptr && gang->spec != nullptr);  // the gang waits and is ready
    const bool fewer = gang->spec->may_be_fewer();
    alone = gang->spec->resumes || fewer ||
            (neighbours_ != nullptr && neighbours_->Matters(*gang->spec));
    const auto explaining = woken_.contains(place.gang) ? Explaining::kNone : Explaining::kEach;
    Promises::Bound binding = BindingOn(place, now);
    if (batch.queue.empty()) {
      batch.first = place;
      batch.explaining = explaining;
      batch.binding = binding;
    }
    if (!batch.queue.empty() &&
        (alone || batch.explaining != explaining || batch.first.in_no_block != place.in_no_block ||
         batch.binding != binding)) {
      break;
    }
    if (fewer) batch.fewer = gang->spec;
    Narrowed narrowed = NarrowOne(gang->spec);
    batch.queue.push_back(std::move(narrowed.gang));
    batch.narrowed.push_back(std::move(narrowed.why));
    woken_.erase(place.gang);
    lines_.Take(place);
  }
  return batch;
}

Narrowed SchedulingQueue::NarrowOne(const std::shared_ptr<const GangSpec>& gang) const {
  if (neighbours_ == nullptr) return {.gang = gang, .why = {}};
  return neighbours_->Narrow(gang);
}

Promises::Bound SchedulingQueue::BindingOn(const ServicePlace& place, WallTime now) const {
  if (promises_ == nullptr) return {};
  return promises_->Binding(place, *Find(place.gang)->spec, now);
}

bool SchedulingQueue::MayPromise() const {
  return promises_ != nullptr && !unpromised_.empty() && !promises_->full();
}

// Takes what is promised no more for room that came free.
void SchedulingQueue::TakeFreedPromises(const ClusterState& cluster) {
  if (promises_ == nullptr) return;
  for (const DomainId id : promises_->DrainFreed()) {
    if (id.value() < cluster.domain_count()) freed_.try_emplace(id);
  }
  for (const GangRef& ref : promises_->DrainDue()) {
    if (blocked_.Has(ref)) Unblock(ref);
  }
  if (MayPromise()) Unblock(unpromised_.begin()->gang);
}

std::vector<Decision> SchedulingQueue::Decide(const ClusterState& cluster, const Batch& batch,
                                              WallTime now) const {
  const GangRef& gang = batch.first.gang;
  const bool kept = successors_ != nullptr && successors_->Keeps(gang);
  const bool others = !batch.binding.empty();
  if (!kept && !others) return plan_(cluster, batch.queue, now, batch.explaining);
  ClusterState view = kept ? successors_->ViewOf(cluster, gang) : cluster;
  return plan_(others ? promises_->ViewOf(view, batch.binding) : view, batch.queue, now,
               batch.explaining);
}

// Decides about the first pods of a gang that may have fewer.
Decision SchedulingQueue::DecideFirst(const ClusterState& cluster, Batch& batch, std::size_t count,
                                      WallTime now) const {
  Narrowed narrowed = NarrowOne(FirstOf(*batch.fewer, count));
  Batch first = batch;
  first.queue = {std::move(narrowed.gang)};
  batch.narrowed = {std::move(narrowed.why)};
  std::vector<Decision> decisions = Decide(cluster, first, now);
  TAHOMA_CHECK(decisions.size() == 1);
  if (decisions[0].drawn == nullptr) decisions[0].drawn = decisions[0].gang;
  decisions[0].gang = batch.queue[0];
  return std::move(decisions[0]);
}

// Halves between a number of pods with room and a number without. Pods that must be beside others
// can make a larger number fit than a number without room: the larger is not found then. A gang
// that others end for begins with its least: more would be beyond the reason for their end, and the
// ended gangs could have it ended in turn.
std::vector<Decision> SchedulingQueue::DecideFewer(const ClusterState& cluster, Batch& batch,
                                                   WallTime now) const {
  const Explaining explaining = std::exchange(batch.explaining, Explaining::kNone);
  const bool others_end = OthersEndFor(batch.first.gang);
  std::vector<Decision> decisions(1);
  if (!others_end) decisions = Decide(cluster, batch, now);
  TAHOMA_CHECK(decisions.size() == 1);
  if (decisions[0].placement) return decisions;
  batch.explaining = explaining;
  std::size_t fits = batch.fewer->min_members;
  decisions[0] = DecideFirst(cluster, batch, fits, now);
  if (!decisions[0].placement || others_end) return decisions;
  batch.explaining = Explaining::kNone;
  for (std::size_t most = batch.fewer->members.size(); most - fits > 1;) {
    const std::size_t middle = fits + (most - fits) / 2;
    Decision decision = DecideFirst(cluster, batch, middle, now);
    if (!decision.placement) {
      most = middle;
      continue;
    }
    fits = middle;
    decisions[0] = std::move(decision);
  }
  return decisions;
}

bool SchedulingQueue::OthersEndFor(const GangRef& ref) const {
  const auto promise = PromiseTo(ref);
  return promise != nullptr && promise->kind == PromiseKind::kPreempt;
}

// Says of the gangs that their queues have denied a start in this round.
void SchedulingQueue::TakeDenied(std::vector<Planned>& all) {
  for (const QueueLines::Denied& denied : lines_.DrainDenied()) {
    const bool news = Deny(denied.gang, denied.why);
    woken_.erase(denied.gang);
    all.push_back({.gang = Find(denied.gang)->spec, .placement = std::nullopt, .news = news});
  }
}

// Records why the gang's queue denies a start. Returns whether the reason has changed.
bool SchedulingQueue::Deny(const GangRef& ref, const QueueDenial& why) {
  WaitingGang& gang = waiting_.at(ref);
  const GangReason reason = ReasonOf(why);
  const bool news = gang.reason != reason;
  gang.reason = reason;
  gang.message = why.message;
  const bool stopped = reason == GangReason::kQueueStopped;
  if (stopped && promises_ != nullptr) promises_->OnSettled(ref);
  return news;
}

// Looks whether the gang's queue may hold what the plan gives to the gang. Returns whether not.
bool SchedulingQueue::DenyPlaced(const GangRef& ref, const Decision& decision,
                                 const ClusterState& cluster, WallTime now,
                                 std::vector<Planned>& all) {
  const GangSpec& gang = decision.drawn != nullptr ? *decision.drawn : *decision.gang;
  const std::string* queue = lines_.BoundBy(gang);
  if (queue == nullptr || !lines_.shares()->limits()) return false;
  WaitingGang& waiting = waiting_.at(ref);
  QueueNeed need = waiting.need;
  need.exact = EighthsOf(decision.placement->Holdings(gang, now), cluster);
  const WallTime until = need.UnendingUntil(now);
  const auto why = lines_.shares()->MayStart(*queue, need.exact, need.gangs(), until);
  if (!why) {
    lines_.shares()->Charge(*queue, need.exact, need.gangs(), now, until);
    return false;
  }
  waiting.need = need;
  lines_.Deny(PlaceOf(ref, *waiting.spec), *waiting.spec, need, *why);
  const bool news = Deny(ref, *why);
  all.push_back({.gang = decision.gang, .placement = std::nullopt, .news = news});
  return true;
}

std::vector<Planned> SchedulingQueue::Plan(const ClusterState& cluster, std::size_t most,
                                           WallTime now) {
  See(cluster);
  TakeFreedPromises(cluster);
  WakeForFreed(cluster, now);
  lines_.Begin(now);
  Batch batch = DrainActive(std::min(most, together_), now);
  lines_.End();
  std::vector<Planned> all;
  TakeDenied(all);
  const Queue& queue = batch.queue;
  if (queue.empty()) return all;
  plans_ += queue.size();
  std::vector<Decision> decisions =
      batch.fewer == nullptr ? Decide(cluster, batch, now) : DecideFewer(cluster, batch, now);
  // A gang without a decision would be neither active nor blocked, and never planned again.
  TAHOMA_CHECK(decisions.size() == queue.size());
  absl::flat_hash_set<std::string> taken;  // claims given away by this call
  together_ = std::min(kPlansMost, together_ * 4);
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    Decision& decision = decisions[i];
    TAHOMA_CHECK(decision.gang == queue[i]);  // else a gang could have passed an earlier gang
    TAHOMA_CHECK(decision.placement.has_value() != decision.blocked.has_value());
    if (AnyClaimOf(*decision.gang, taken)) {
      // To be assessed again: the gang waits for the claim now.
      Touch({decision.gang->key, decision.gang->single_pod});
      continue;
    }
    if (decision.placement &&
        DenyPlaced({decision.gang->key, decision.gang->single_pod}, decision, cluster, now, all)) {
      continue;
    }
    Planned& planned = all.emplace_back();
    const bool last = Settle(batch, i, decision, planned);
    if (planned.placement) {
      for (const MemberPlacement& member : planned.placement->members) {
        for (const ClaimPlacement& claim : member.claims) taken.insert(claim.uid);
      }
    }
    if (last && i + 1 < decisions.size()) {
      Reactivate(batch, i + 1);
      together_ = 1;
      break;
    }
  }
  if (lines_.shares() != nullptr) lines_.shares()->RollBack(now);
  return all;
}

// Lets a planned gang wait no more, or be blocked. Returns whether those behind it must be planned
// again, after the gang has been promised something.
bool SchedulingQueue::Settle(const Batch& batch, std::size_t i, Decision& decision,
                             Planned& planned) {
  const GangRef ref{decision.gang->key, decision.gang->single_pod};
  // Others make room for the least of a gang that may have fewer pods.
  planned.gang = decision.drawn != nullptr ? decision.drawn : decision.gang;
  if (decision.placement) {
    Remove(ref);
    planned.placement = std::move(decision.placement);
    return false;
  }
  if (!batch.narrowed[i].empty() && decision.blocked->explained) {
    SayNarrowed(batch.narrowed[i], *decision.blocked);
  }
  if (batch.fewer != nullptr && decision.blocked->explained) {
    SayFewer(*batch.fewer, *decision.blocked);
  }
  planned.news = Block(ref, *decision.blocked);
  if (!batch.narrowed[i].empty()) narrowed_.insert(ref);
  const WaitingGang& gang = waiting_.at(ref);
  if (promises_ == nullptr || gang.reason != GangReason::kWaitsForCapacity) return false;
  const ServicePlace place = PlaceOf(ref, *gang.spec);
  if (promises_->Wants(place)) return true;
  if (!promises_->Has(ref)) unpromised_.insert(place);
  return false;
}

// Lets the gangs of a batch be planned that were drained for it.
void SchedulingQueue::Reactivate(const Batch& batch, std::size_t first) {
  for (std::size_t i = first; i < batch.queue.size(); ++i) {
    const GangRef ref{batch.queue[i]->key, batch.queue[i]->single_pod};
    Activate(PlaceOf(ref, *waiting_.at(ref).spec));
    if (batch.explaining == Explaining::kNone) woken_.insert(ref);
  }
}

// Records why the gang is blocked; without an explanation the reason stays. Returns whether the
// reason has changed.
bool SchedulingQueue::Block(const GangRef& ref, const Blocked& blocked) {
  const auto found = waiting_.find(ref);
  TAHOMA_CHECK(found != waiting_.end() && found->second.spec != nullptr);
  WaitingGang& gang = found->second;
  const bool news = blocked.explained && gang.reason != ReasonOf(blocked.reason);
  if (blocked.explained) {
    gang.reason = ReasonOf(blocked.reason);
    gang.message = blocked.message;
    gang.rooms = blocked.rooms;
  }
  blocked_.Put(PlaceOf(ref, *gang.spec),
               {.rooms = gang.rooms, .nodes = gang.nodes, .line = lines_.LineOf(*gang.spec)});
  if (blocked.lacks_room) lacking_room_.insert(ref);
  return news;
}

const WaitingGang* SchedulingQueue::Find(const GangRef& ref) const {
  const auto found = waiting_.find(ref);
  return found == waiting_.end() ? nullptr : &found->second;
}

std::optional<MonotonicTime> SchedulingQueue::wake() const {
  std::optional<MonotonicTime> wake;
  if (!backoff_ends_.empty()) wake = backoff_ends_.begin()->first;
  if (refresh_.left > 0 && (!wake || refresh_.at < *wake)) wake = refresh_.at;
  return wake;
}

void SchedulingQueue::RefreshOne(MonotonicTime now) {
  if (refresh_.left == 0 || now < refresh_.at) return;
  refresh_.at = now + kRefreshPause;
  --refresh_.left;
  auto next = blocked_.NextAfter(refresh_.last);
  if (!next) next = blocked_.NextAfter(std::nullopt);
  if (!next) return;
  refresh_.last = next;
  Unblock(next->gang);
}

}  // namespace tahoma::controller
