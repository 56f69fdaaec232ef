#include "controller/core/commit/gang_runs.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "controller/plan/decision.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// Returns the record's run; 0 for the record that begins a run.
RunId RunOf(const Record& record) {
  struct Visitor {
    RunId operator()(const GangPrepared&) const { return 0; }
    RunId operator()(const GangAllocated& r) const { return r.run; }
    RunId operator()(const GangBound& r) const { return r.run; }
    RunId operator()(const ClaimReleased& r) const { return r.run; }
    RunId operator()(const MemberReplaced& r) const { return r.run; }
    RunId operator()(const MemberAdded& r) const { return r.run; }
    RunId operator()(const GangUndoing& r) const { return r.run; }
    RunId operator()(const GangReleased& r) const { return r.run; }
  };
  return std::visit(Visitor{}, record);
}

bool IsPreemptible(const GangDecision& decision) {
  return decision.preemptible && decision.reservation.empty();
}

// Returns the holding of a decision's claim.
std::shared_ptr<const Holding> HoldingOf(const GangDecision& decision, const DecidedClaim& claim) {
  auto holding = std::make_shared<Holding>();
  holding->claim = {decision.key.ns, claim.name};
  holding->claim_uid = claim.uid;
  holding->holder = Describe({decision.key, decision.single});
  HoldDevicesOf(claim.allocation, *holding);
  holding->end = decision.end;
  holding->since = decision.placed;
  holding->preemptible = decision.preemptible;
  holding->grace = decision.grace;
  holding->reservation = decision.reservation;
  return holding;
}

// Returns the gang for which a pod was bound, which its label may say no more; of any other pod the
// gang that its label says.
GangRef BoundFor(const PodFact& pod, const absl::flat_hash_map<std::string, GangRef>& gang_of_uid) {
  if (pod.node.empty()) return GangOf(pod);
  if (pod.bound_gang_uid == pod.uid) return {{pod.key.ns, pod.key.name}, true};
  const auto gang = gang_of_uid.find(pod.bound_gang_uid);
  return gang == gang_of_uid.end() || gang->second.key.ns != pod.key.ns ? GangOf(pod)
                                                                        : gang->second;
}

bool IsSame(const Holding::HeldDevice& a, const Holding::HeldDevice& b) {
  return a.node == b.node && a.device == b.device && a.admin_access == b.admin_access;
}

bool HaveSame(const Holding& a, const Holding& b) {
  return std::ranges::equal(a.devices, b.devices, IsSame) && a.others_node == b.others_node &&
         a.others == b.others;
}

// Adds the devices of an allocation that the holding does not have.
void AddShown(const Allocation& allocation, Holding& holding) {
  Holding shown;
  HoldDevicesOf(allocation, shown);
  for (Holding::HeldDevice& device : shown.devices) {
    const bool known = std::ranges::any_of(
        holding.devices, [&](const auto& other) { return IsSame(device, other); });
    if (!known) holding.devices.push_back(std::move(device));
  }
  // A claim has the other drivers' devices of one node.
  if (holding.others.empty()) holding.others_node = shown.others_node;
  if (holding.others_node != shown.others_node) return;
  for (HeldOther& device : shown.others) {
    if (std::ranges::find(holding.others, device) == holding.others.end()) {
      holding.others.push_back(std::move(device));
    }
  }
}

// A driver, a pool and a name are one device, and in at most one claim, whatever slices say of the
// device and however a place was found.
void CheckNobodyHolds(const ClusterState& cluster, const GangDecision& decision) {
  std::vector<HeldOther> others;
  for (const DecidedClaim& claim : decision.claims) {
    if (claim.allocated_before) continue;
    const std::optional<NodeId> node = cluster.FindNode(claim.allocation.node);
    for (HeldOther& one : HeldOthers(claim.allocation)) {
      const auto same = [&](const HeldOther& other) { return IsSameDevice(one, other); };
      TAHOMA_CHECK(std::ranges::none_of(others, same));
      for (std::size_t i = 0; node && i < cluster.node(*node).holdings.size(); ++i) {
        const Holding& holding = *cluster.node(*node).holdings[i];
        TAHOMA_CHECK(holding.claim_uid == claim.uid || std::ranges::none_of(holding.others, same));
      }
      others.push_back(std::move(one));
    }
  }
  absl::flat_hash_set<std::pair<std::string_view, std::string_view>> given;
  for (const DecidedClaim& claim : decision.claims) {
    if (claim.allocated_before) continue;
    for (const DeviceResult& result : claim.allocation.results) {
      if (result.driver != kNeuronDriver || result.admin_access) continue;
      TAHOMA_CHECK(given.emplace(result.pool, result.device).second);
      const std::optional<NodeId> node = cluster.FindNode(result.pool);
      if (!node) continue;
      for (const auto& holding : cluster.node(*node).holdings) {
        if (holding->claim_uid == claim.uid) continue;
        for (const Holding::HeldDevice& held : holding->devices) {
          TAHOMA_CHECK(held.admin_access || held.node != result.pool ||
                       held.device != result.device);
        }
      }
    }
  }
}

}  // namespace

bool GoesOnWithoutLost(const GangRun& run, const GangFact& gang) {
  return run.phase() == RunPhase::kBound && !run.ending() && gang.changes_size() &&
         run.members_left() >= gang.least_members();
}

void ReleaseDecided(const GangDecision& decision, ClusterState& fleet) {
  for (const DecidedClaim& claim : decision.claims) {
    if (!claim.allocated_before) fleet.Release(claim.uid);
  }
  for (const DecidedPod& pod : decision.pods) fleet.RemovePod({decision.key.ns, pod.name});
}

absl::Status GangRuns::Restore(Sequence sequence, const Record& record) {
  if (const RunId run = RunOf(record); run != 0) {
    const auto found = runs_.find(run);
    if (found == runs_.end()) {
      return DataLoss("journal entry {} speaks of gang run {}, which is not in the journal",
                      sequence, run);
    }
    const GangRun& known = found->second.run;
    const auto* released = std::get_if<ClaimReleased>(&record);
    if (released != nullptr && released->claim >= known.decision().claims.size()) {
      return DataLoss("journal entry {} releases claim {} of {}", sequence, released->claim,
                      known.decision().claims.size());
    }
    if (!known.MayApply(record)) {
      return DataLoss("journal entry {} cannot follow the entries before it of gang run {}",
                      sequence, run);
    }
  }
  Apply(sequence, record);
  if (std::holds_alternative<GangPrepared>(record)) {
    At(sequence).run.MarkRestored();
    At(sequence).restored = true;
  }
  return absl::OkStatus();
}

// ---- News --------------------------------------------------------------------------------------

// Counts the pod's needs on the bound or decided node of the pod until the pod has ended.
void GangRuns::CountPod(const PodKey& key) {
  const auto fact = facts_.pods.Find(key);
  std::string node = fact == nullptr || fact->finished ? "" : fact->node;
  const auto found = run_of_pod_.find(key);
  if (node.empty() && found != run_of_pod_.end() && fact != nullptr && !fact->finished) {
    const DecidedPod& decided = At(found->second.first).run.decision().pods[found->second.second];
    if (decided.uid == fact->uid) node = decided.node;
  }
  if (!node.empty() && fact->needs != nullptr) return cluster_.PutPod(key, node, fact->needs);
  room_freed_ = cluster_.RemovePod(key) || room_freed_;
}

// Devices of other drivers are room that no kind of free chips tells.
void GangRuns::Free(const std::string& claim_uid) {
  const Holding* held = cluster_.FindHolding(claim_uid);
  room_freed_ = room_freed_ || (held != nullptr && !held->others.empty());
  cluster_.Release(claim_uid);
}

void GangRuns::OnPod(const PodKey& key) {
  CountPod(key);
  const auto found = run_of_pod_.find(key);
  if (found == run_of_pod_.end()) return;
  const auto [id, index] = found->second;
  Entry& entry = At(id);
  const auto fact = facts_.pods.Find(key);
  const bool same = fact != nullptr && fact->uid == entry.run.decision().pods[index].uid;
  entry.run.OnPod(index, same ? fact.get() : nullptr);
  touched_.insert(id);
}

void GangRuns::OnClaim(const ClaimKey& key) {
  TellClaim(key);
  HoldAsPublished(key);
}

void GangRuns::TellClaim(const ClaimKey& key) {
  const auto found = runs_of_claim_.find(key);
  if (found == runs_of_claim_.end()) return;
  const auto fact = facts_.claims.Find(key);
  for (const auto& [id, index] : found->second) {
    Entry& entry = At(id);
    const bool same = fact != nullptr && fact->uid == entry.run.decision().claims[index].uid;
    entry.run.OnClaim(index, same ? fact : nullptr);
    touched_.insert(id);
  }
}

void GangRuns::OnClaimGone(const ClaimFact& claim) {
  TellClaim(claim.key);
  Hold(claim.key, claim.uid, nullptr);
}

void GangRuns::OnNodeGone(const std::string& node) {
  for (auto& [id, entry] : runs_) {
    if (entry.run.phase() == RunPhase::kBound) continue;
    entry.run.OnNodeGone(node);
    touched_.insert(id);
  }
}

void GangRuns::EndOn(NodeId node, EndCause cause, const std::string& reason,
                     std::optional<WallTime> by, const std::string& spared) {
  ForEachOn(node, [&](const GangRun& run) {
    if (run.decision().key.ns != spared) End(run.id(), cause, reason, by);
  });
}

void GangRuns::ForEachOn(NodeId node, absl::FunctionRef<void(const GangRun&)> visit) const {
  for (const auto& holding : cluster_.node(node).holdings) {
    const auto runs = runs_of_claim_.find(holding->claim);
    if (runs == runs_of_claim_.end()) continue;
    for (const auto& [run, claim] : runs->second) visit(runs_.at(run).run);
  }
}

void GangRuns::EndHolder(const ClaimKey& claim, EndCause cause, const std::string& reason) {
  const auto runs = runs_of_claim_.find(claim);
  if (runs == runs_of_claim_.end()) return;
  for (const auto& [run, index] : runs->second) End(run, cause, reason);
}

void GangRuns::End(RunId run, EndCause cause, const std::string& reason,
                   std::optional<WallTime> by) {
  At(run).run.End(cause, reason, by);
  touched_.insert(run);
}

void GangRuns::MoveTo(WallTime now) {
  now_ = std::max(now_, now);
  while (!limits_.empty() && std::get<WallTime>(*limits_.begin()) <= now_) {
    const auto [end, id, limit] = *limits_.begin();
    limits_.erase(limits_.begin());
    if (limit == Limit::kStart) {
      At(id).start_end.reset();
      touched_.insert(id);
      continue;
    }
    const GangRun& run = At(id).run;
    End(id, EndCause::kRuntimeOver,
        fmt::format("its maxRuntime of {} s, counted from {}, is over",
                    run.decision().max_runtime->count(), FormatTime(*run.bound_at())));
  }
}

void GangRuns::OnGang(const GangKey& key) {
  const auto run = run_of_gang_.find(GangRef{key, false});
  if (run != run_of_gang_.end()) touched_.insert(run->second);
}

std::optional<WallTime> GangRuns::wake_wall() const {
  if (limits_.empty()) return std::nullopt;
  return std::get<WallTime>(*limits_.begin());
}

// Lets the run's maxRuntime count while it is bound, or not any more.
void GangRuns::CountRuntime(const GangRun& run, bool counts) {
  const auto& runtime = run.decision().max_runtime;
  if (!runtime || !run.bound_at()) return;
  const std::tuple end(EndOf(*run.bound_at(), *runtime), run.id(), Limit::kRuntime);
  if (counts) limits_.insert(end);
  if (!counts) limits_.erase(end);
}

void GangRuns::OnResult(const ApiResult& result, MonotonicTime now) {
  if (result.kind == WriteKind::kDeletePod && deletions_left_ < kDeletionsMost) ++deletions_left_;
  const auto found = runs_.find(result.run);
  if (found == runs_.end()) return;
  found->second.run.OnResult(result, now);
  touched_.insert(result.run);
}

void GangRuns::OnSynced() {
  for (auto& [id, entry] : runs_) {
    const GangDecision& decision = entry.run.decision();
    for (const DecidedPod& pod : decision.pods) {
      OnPod({decision.key.ns, pod.name});
      // No OnNodeGone was called for a node that went while no controller ran.
      const std::optional<NodeId> node = cluster_.FindNode(pod.node);
      if (!node || cluster_.node(*node).node == nullptr) entry.run.OnNodeGone(pod.node);
    }
    for (const DecidedClaim& claim : decision.claims) TellClaim({decision.key.ns, claim.name});
    touched_.insert(id);
    // No pod or Gang need speak of it: the run is shown all the same.
    news_.push_back(NewsOf(entry));
  }
}

// Tells the run everything that is known of its pods and claims.
void GangRuns::TellAll(RunId id) {
  const auto decision = At(id).run.shared_decision();
  for (const DecidedPod& pod : decision->pods) OnPod({decision->key.ns, pod.name});
  for (const DecidedClaim& claim : decision->claims) TellClaim({decision->key.ns, claim.name});
  touched_.insert(id);
}

// ---- Records -----------------------------------------------------------------------------------

GangRuns::Entry& GangRuns::At(RunId run) {
  const auto found = runs_.find(run);
  TAHOMA_CHECK(found != runs_.end());  // the indexes by pod, claim, gang and time name live runs
  return found->second;
}

void GangRuns::Begin(std::shared_ptr<const GangDecision> decision) {
  const GangRef ref{decision->key, decision->single};
  TAHOMA_CHECK(!run_of_gang_.contains(ref));  // two runs would each bind the gang's pods
  TAHOMA_CHECK(room() > 0);
  CheckNobodyHolds(cluster_, *decision);
  Commit(GangPrepared{std::move(decision)});
  TellAll(run_of_gang_.at(ref));
}

void GangRuns::Commit(const Record& record) {
  const bool stored = !std::holds_alternative<GangReleased>(record);
  Apply(stored ? journal_.Add(EncodeRecord(record)) : journal_.Skip(), record);
}

// Makes a record take effect, whether it was just decided or read at a start. No other place does.
void GangRuns::Apply(Sequence sequence, const Record& record) {
  if (const auto* prepared = std::get_if<GangPrepared>(&record)) {
    ApplyPrepared(sequence, *prepared);
  } else if (const auto* released = std::get_if<GangReleased>(&record)) {
    ApplyReleased(released->run);
  } else if (const auto* replaced = std::get_if<MemberReplaced>(&record)) {
    ApplyReplaced(sequence, *replaced);
  } else if (const auto* added = std::get_if<MemberAdded>(&record)) {
    ApplyAdded(sequence, *added);
  } else {
    ApplyStep(sequence, RunOf(record), record);
  }
}

void GangRuns::ApplyPrepared(Sequence sequence, const GangPrepared& record) {
  const GangDecision& decision = *record.decision;
  const GangRef ref{decision.key, decision.single};
  runs_.emplace(sequence, Entry{.run = GangRun(sequence, record.decision, writes_),
                                .gang = ref,
                                .records = {sequence},
                                .wake = std::nullopt});
  runs_.at(sequence).run.LimitDeletions(&deletions_left_);
  ++in_flight_;
  if (IsPreemptible(decision)) order_.preemptible.insert({decision.priority, sequence});
  order_.by_end.insert({decision.end.value_or(WallTime::max()), sequence});
  run_of_gang_[ref] = sequence;
  for (std::uint32_t i = 0; i < decision.pods.size(); ++i) {
    run_of_pod_[{decision.key.ns, decision.pods[i].name}] = {sequence, i};
  }
  for (std::uint32_t i = 0; i < decision.claims.size(); ++i) {
    const DecidedClaim& claim = decision.claims[i];
    runs_of_claim_[{decision.key.ns, claim.name}].push_back({sequence, i});
    if (!claim.allocated_before) cluster_.Hold(HoldingOf(decision, claim));
  }
}

void GangRuns::ApplyStep(Sequence sequence, RunId id, const Record& record) {
  Entry& entry = At(id);
  const bool was_bound = entry.run.phase() == RunPhase::kBound;
  entry.run.Apply(record);
  entry.records.push_back(sequence);
  const bool is_bound = entry.run.phase() == RunPhase::kBound;
  TAHOMA_CHECK(in_flight_ > 0 || was_bound);  // below 0 it would leave no room for ever
  if (was_bound != is_bound) CountRuntime(entry.run, is_bound);
  if (!was_bound && is_bound) --in_flight_;
  if (was_bound && !is_bound) ++in_flight_;
  if (const auto* released = std::get_if<ClaimReleased>(&record)) {
    const DecidedClaim& claim = entry.run.decision().claims[released->claim];
    if (!claim.allocated_before) {
      Free(claim.uid);
    }
    HoldAsPublished({entry.gang.key.ns, claim.name});
  }
}

void GangRuns::Replace(MemberReplaced record) {
  Entry& entry = At(record.run);
  TAHOMA_CHECK(entry.run.MayApply(record));
  record.at = now_;  // the wall clock may be behind the time that limits are compared with
  BeginMember(entry);
  Commit(record);
  TellAll(record.run);
  news_.push_back(NewsOf(entry));
}

void GangRuns::Add(MemberAdded record) {
  Entry& entry = At(record.run);
  TAHOMA_CHECK(entry.run.MayApply(record));
  GangDecision added;
  for (const MemberReplaced::Claim& claim : record.claims) {
    added.claims.push_back(
        {.name = claim.name, .uid = claim.uid, .consumers = {}, .allocation = claim.allocation});
  }
  CheckNobodyHolds(cluster_, added);
  record.at = now_;
  BeginMember(entry);
  Commit(record);
  TellAll(record.run);
  news_.push_back(NewsOf(entry));
}

// Lets the time count in which a new member must be ready.
void GangRuns::BeginMember(Entry& entry) {
  entry.lost_since.reset();
  entry.started = false;
}

void GangRuns::Retract(const PodKey& key, const Member& member) {
  const auto pod = run_of_pod_.find(key);
  if (pod != run_of_pod_.end() && pod->second == member) run_of_pod_.erase(pod);
}

void GangRuns::Retract(const ClaimKey& key, const Member& member) {
  const auto claim = runs_of_claim_.find(key);
  if (claim == runs_of_claim_.end()) return;
  std::erase(claim->second, member);
  if (claim->second.empty()) runs_of_claim_.erase(claim);
}

// The objects that had the place before are no more the run's: others may have the names by now.
void GangRuns::ApplyAdded(Sequence sequence, const MemberAdded& record) {
  Entry& entry = At(record.run);
  const auto before = entry.run.shared_decision();
  const std::string& ns = before->key.ns;
  if (record.pod < before->pods.size()) {
    Retract(PodKey{ns, before->pods[record.pod].name}, {record.run, record.pod});
  }
  for (std::uint32_t i = 0; i < before->claims.size(); ++i) {
    const DecidedClaim& claim = before->claims[i];
    if (claim.consumers != std::vector{record.pod}) continue;
    Retract(ClaimKey{ns, claim.name}, {record.run, i});
  }
  entry.run.Apply(record);
  entry.records.push_back(sequence);
  run_of_pod_[{ns, record.name}] = {record.run, record.pod};
  const GangDecision& decision = entry.run.decision();
  for (const MemberReplaced::Claim& claim : record.claims) {
    runs_of_claim_[{ns, claim.name}].push_back({record.run, claim.index});
    cluster_.Hold(HoldingOf(decision, decision.claims[claim.index]));
  }
}

void GangRuns::ApplyReplaced(Sequence sequence, const MemberReplaced& record) {
  Entry& entry = At(record.run);
  const auto before = entry.run.shared_decision();
  const std::string& ns = before->key.ns;
  entry.run.Apply(record);
  entry.records.push_back(sequence);
  Retract(PodKey{ns, before->pods[record.pod].name}, {record.run, record.pod});
  run_of_pod_[{ns, record.name}] = {record.run, record.pod};
  for (const MemberReplaced::Claim& claim : record.claims) {
    const DecidedClaim& was = before->claims[claim.index];
    const ClaimKey key{ns, was.name};
    Retract(key, {record.run, claim.index});
    Free(was.uid);
    runs_of_claim_[{ns, claim.name}].push_back({record.run, claim.index});
    const GangDecision& decision = entry.run.decision();
    cluster_.Hold(HoldingOf(decision, decision.claims[claim.index]));
    HoldAsPublished(key);
  }
}

void GangRuns::ApplyReleased(RunId id) {
  const Entry& entry = At(id);
  const auto decision = entry.run.shared_decision();
  const GangRef ref = entry.gang;
  if (entry.run.phase() != RunPhase::kBound) {
    TAHOMA_CHECK(in_flight_ > 0);
    --in_flight_;
  }
  for (const Sequence sequence : entry.records) journal_.Drop(sequence);
  if (entry.wake) wakes_.erase({*entry.wake, id});
  if (entry.start_end) limits_.erase({*entry.start_end, id, Limit::kStart});
  CountRuntime(entry.run, false);
  order_.preemptible.erase({decision->priority, id});
  order_.by_end.erase({decision->end.value_or(WallTime::max()), id});
  ForgetMembers(id, *decision);
  for (std::uint32_t i = 0; i < decision->claims.size(); ++i) {
    const DecidedClaim& claim = decision->claims[i];
    if (claim.allocated_before || entry.run.claim_released(i)) continue;
    Free(claim.uid);
  }
  if (std::any_of(decision->pods.begin(), decision->pods.end(), [&](const DecidedPod& pod) {
        const auto fact = facts_.pods.Find(PodKey{decision->key.ns, pod.name});
        return fact != nullptr && fact->uid != pod.uid && !fact->bound_gang_uid.empty();
      })) {
    left_behind_.insert(ref);
  }
  for (const DecidedPod& pod : decision->pods) CountPod({decision->key.ns, pod.name});
  runs_.erase(id);
  touched_.erase(id);
  held_back_.erase(id);
  starved_.erase(id);
  for (const DecidedClaim& claim : decision->claims) {
    HoldAsPublished({decision->key.ns, claim.name});
  }
  news_.push_back({.kind = RunNews::Kind::kMoved, .gang = ref, .decision = decision, .reason = ""});
}

// Takes the run out of the indexes, except where a name belongs to a later run by now.
void GangRuns::ForgetMembers(RunId id, const GangDecision& decision) {
  const auto of_gang = run_of_gang_.find(GangRef{decision.key, decision.single});
  if (of_gang != run_of_gang_.end() && of_gang->second == id) run_of_gang_.erase(of_gang);
  for (const DecidedPod& pod : decision.pods) {
    const auto member = run_of_pod_.find(PodKey{decision.key.ns, pod.name});
    if (member != run_of_pod_.end() && member->second.first == id) run_of_pod_.erase(member);
  }
  for (const DecidedClaim& claim : decision.claims) {
    const auto members = runs_of_claim_.find(ClaimKey{decision.key.ns, claim.name});
    if (members == runs_of_claim_.end()) continue;
    std::erase_if(members->second, [&](const Member& member) { return member.first == id; });
    if (members->second.empty()) runs_of_claim_.erase(members);
  }
}

// ---- Moving ------------------------------------------------------------------------------------

void GangRuns::Advance(MonotonicTime now) {
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    const RunId id = wakes_.begin()->second;
    wakes_.erase(wakes_.begin());
    At(id).wake.reset();
    touched_.insert(id);
  }
  touched_.insert(held_back_.begin(), held_back_.end());
  auto starved = starved_.begin();
  for (std::size_t left = deletions_left_; left > 0 && starved != starved_.end(); --left) {
    touched_.insert(*starved++);
  }
  for (const RunId id : std::exchange(touched_, {})) AdvanceOne(id, now);
}

void GangRuns::AdvanceOne(RunId id, MonotonicTime now) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Entry& entry = found->second;
  if (entry.restored) {
    const bool held_back = IsHeldBack(entry);
    entry.run.HoldBack(held_back);
    if (held_back) held_back_.insert(id);
    if (!held_back) held_back_.erase(id);
  }
  FollowMembers(entry);
  // The Gang remembers for ever what the records of its run say until the run is over. A run that
  // ends now can be over with the next record.
  const auto gang = FactOf(entry);
  entry.run.KeepBack(entry.run.end_cause() == EndCause::kGangFailed && gang != nullptr &&
                     !gang->deleting && gang->failed.empty());
  while (std::optional<Record> record = entry.run.Next(now)) {
    if (auto* bound = std::get_if<GangBound>(&*record)) bound->at = now_;
    AddNews(entry, *record);
    Commit(*record);
    if (std::holds_alternative<GangReleased>(*record)) return;  // the entry is gone
  }
  if (entry.run.starved()) {
    starved_.insert(id);
  } else {
    starved_.erase(id);
  }
  if (entry.wake == entry.run.wake()) return;
  if (entry.wake) wakes_.erase({*entry.wake, id});
  entry.wake = entry.run.wake();
  if (entry.wake) wakes_.insert({*entry.wake, id});
}

// Returns the Gang of the run; nullptr when no Gang of that uid exists.
std::shared_ptr<const GangFact> GangRuns::FactOf(const Entry& entry) const {
  if (entry.gang.single) return nullptr;
  auto gang = facts_.gangs.Find(entry.gang.key);
  return gang != nullptr && gang->uid == entry.run.decision().uid ? gang : nullptr;
}

// Ends a gang that has lost a member, or whose pod does not become ready in time.
void GangRuns::FollowMembers(Entry& entry) {
  if (entry.gang.single) return;
  GangRun& run = entry.run;
  const auto gang = FactOf(entry);
  if (run.phase() != RunPhase::kBound || run.ending()) return LimitStart(entry, std::nullopt);
  const auto within = gang == nullptr ? kStartWithin : gang->start_within;
  const auto policy = gang == nullptr ? FailurePolicy::kRestartAll : gang->failure_policy;
  const bool goes_on = gang != nullptr && GoesOnWithoutLost(run, *gang);
  run.GoOnWithoutLost(goes_on);
  run.KeepLost(policy == FailurePolicy::kReplace && !goes_on);
  for (const std::string& lost : run.DrainLost()) {
    if (goes_on) news_.push_back(Shrunk(entry, lost, gang->members));
  }
  if (goes_on) {
    EndSurplus(run, *gang);
  } else if (const std::optional<LostMember> lost = run.FindLost()) {
    if (policy == FailurePolicy::kReplace) return AwaitNext(entry, *lost, within);
    return run.End(policy == FailurePolicy::kFail ? EndCause::kGangFailed : EndCause::kMemberLost,
                   lost->why);
  }
  entry.lost_since.reset();
  if (!entry.started && run.starts_at()) LimitUnstarted(entry, gang.get());
}

// Ends a gang with a pod that has not been ready in time, or only the pod where the others go on.
void GangRuns::LimitUnstarted(Entry& entry, const GangFact* gang) {
  GangRun& run = entry.run;
  const auto within = gang == nullptr ? kStartWithin : gang->start_within;
  const std::optional<std::size_t> unstarted = run.FindUnstarted();
  entry.started = !unstarted;
  const WallTime end = EndOf(*run.starts_at(), within);
  LimitStart(entry, unstarted && end > now_ ? std::optional(end) : std::nullopt);
  if (!unstarted || end > now_) return;
  const std::size_t pods = run.decision().pods.size();
  std::vector<std::size_t> late;
  for (std::size_t i = 0; i < pods; ++i) {
    if (run.never_ready(i)) late.push_back(i);
  }
  const auto left = run.members_left() - std::ssize(late);
  if (gang != nullptr && gang->changes_size() && left >= gang->least_members()) {
    for (const std::size_t pod : late) run.EndMember(pod);
    return;
  }
  const DecidedPod& pod = run.decision().pods[*unstarted];
  const auto fact = facts_.pods.Find(PodKey{entry.gang.key.ns, pod.name});
  run.End(EndCause::kNotStarted,
          fmt::format("pod {} (rank {} on node {}) was not ready within {} s{}", pod.name, pod.rank,
                      pod.node, within.count(), fact == nullptr ? "" : fact->Trouble()));
}

// Ends the pods of the highest ranks of a gang that has become smaller.
void GangRuns::EndSurplus(GangRun& run, const GangFact& gang) {
  const std::vector<DecidedPod>& pods = run.decision().pods;
  std::vector<std::size_t> on;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (run.goes_on(i)) on.push_back(i);
  }
  const std::ptrdiff_t surplus = std::ssize(on) - gang.members;
  if (surplus <= 0) return;
  std::ranges::sort(on, std::ranges::greater{}, [&](std::size_t pod) { return pods[pod].rank; });
  for (std::ptrdiff_t i = 0; i < surplus; ++i) run.EndMember(on[static_cast<std::size_t>(i)]);
}

// Lets a lost member be replaced for as long as pods may take to start, while others go on.
void GangRuns::AwaitNext(Entry& entry, const LostMember& lost, std::chrono::seconds within) {
  GangRun& run = entry.run;
  const std::size_t pods = run.decision().pods.size();
  bool some_go_on = false;
  for (std::size_t i = 0; i < pods && !some_go_on; ++i) some_go_on = !run.member_lost(i);
  if (!some_go_on) return run.End(EndCause::kMemberLost, lost.why);
  if (!entry.lost_since) entry.lost_since = now_;
  const WallTime end = EndOf(*entry.lost_since, within);
  if (end <= now_) {
    return run.End(EndCause::kMemberLost, fmt::format("{}; no pod has taken its place within {} s",
                                                      lost.why, within.count()));
  }
  LimitStart(entry, end);
  // The search for the next pod hears of everything that happens to the run.
  news_.push_back(NewsOf(entry));
}

void GangRuns::LimitStart(Entry& entry, std::optional<WallTime> end) {
  if (entry.start_end == end) return;
  if (entry.start_end) limits_.erase({*entry.start_end, entry.run.id(), Limit::kStart});
  if (end) limits_.insert({*end, entry.run.id(), Limit::kStart});
  entry.start_end = end;
}

bool GangRuns::HasStarted(RunId run) const {
  const auto found = runs_.find(run);
  return found != runs_.end() && found->second.started;
}

RunNews GangRuns::Shrunk(const Entry& entry, const std::string& lost, int members) {
  RunNews news = NewsOf(entry);
  news.kind = RunNews::Kind::kShrunk;
  news.reason = fmt::format("{}; the gang goes on with {} of {} members", lost,
                            entry.run.members_left(), members);
  return news;
}

RunNews GangRuns::NewsOf(const Entry& entry) {
  return {.kind = RunNews::Kind::kMoved,
          .gang = entry.gang,
          .decision = entry.run.shared_decision(),
          .reason = ""};
}

// Adds the news of a record that is about to be committed: the run is as it was before.
void GangRuns::AddNews(const Entry& entry, const Record& record) {
  RunNews news = NewsOf(entry);
  if (std::holds_alternative<GangBound>(record)) {
    news.kind = RunNews::Kind::kBound;
  } else if (const auto* undoing = std::get_if<GangUndoing>(&record)) {
    news.kind = RunNews::Kind::kUndoing;
    news.reason = undoing->reason;
    news.cause = undoing->cause;
  } else if (std::holds_alternative<GangReleased>(record) &&
             entry.run.phase() == RunPhase::kUndoing) {
    news.kind = RunNews::Kind::kUndone;
    news.cause = entry.run.end_cause();
    news.reason = entry.run.undo_reason();
    const auto& claims = entry.run.decision().claims;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (claims[i].allocated_before || entry.run.claim_released(i)) continue;
      const Holding* held = cluster_.FindHolding(claims[i].uid);
      if (held != nullptr) news.freed.push_back(std::make_shared<const Holding>(*held));
    }
  }
  news_.push_back(std::move(news));
}

std::optional<MonotonicTime> GangRuns::wake() const {
  if (wakes_.empty()) return std::nullopt;
  return wakes_.begin()->first;
}

// Returns whether devices that the journal gave to the run are in claims of others: in an API that
// was restored from a backup, or because another leader gave them away since.
bool GangRuns::IsHeldBack(const Entry& entry) const {
  return entry.run.phase() != RunPhase::kUndoing &&
         HoldsWhatOthersHave(entry.run.decision(), [](const Holding&) { return true; });
}

// Returns whether somebody who may keep them has devices of the decision. A run that has not
// allocated, or is undoing, does not: none of its pods will be bound.
bool GangRuns::MustGiveWay(const GangDecision& decision) const {
  return HoldsWhatOthersHave(decision, [this](const Holding& other) {
    const auto found = runs_of_claim_.find(other.claim);
    if (found == runs_of_claim_.end()) return true;
    return std::any_of(found->second.begin(), found->second.end(), [this](const Member& member) {
      const RunPhase phase = runs_.at(member.first).run.phase();
      return phase == RunPhase::kAllocated || phase == RunPhase::kBound;
    });
  });
}

bool GangRuns::HoldsWhatOthersHave(const GangDecision& decision,
                                   absl::FunctionRef<bool(const Holding&)> counts) const {
  return std::any_of(decision.claims.begin(), decision.claims.end(),
                     [&](const DecidedClaim& claim) {
                       const Holding* holding = cluster_.FindHolding(claim.uid);
                       return holding != nullptr && cluster_.IsSharedWithOthers(*holding, counts);
                     });
}

// ---- What is held ------------------------------------------------------------------------------

// Returns the devices that a run has decided for the claim and not given back; nullptr without any.
// A run that found the claim allocated has not decided them: that claim holds what the API says.
std::shared_ptr<const Holding> GangRuns::DecidedHolding(const ClaimKey& key,
                                                        const std::string& uid) const {
  const auto found = runs_of_claim_.find(key);
  if (found == runs_of_claim_.end()) return nullptr;
  for (const auto& [id, index] : found->second) {
    const GangRun& run = runs_.at(id).run;
    const DecidedClaim& claim = run.decision().claims[index];
    const bool given = !claim.allocated_before && !run.claim_released(index);
    if (given && claim.uid == uid) return HoldingOf(run.decision(), claim);
  }
  return nullptr;
}

void GangRuns::HoldAsPublished(const ClaimKey& key) {
  const auto claim = facts_.claims.Find(key);
  if (claim != nullptr) Hold(key, claim->uid, claim->allocation.get());
}

// Another allocator may write a claim that a run has decided: until the run has given way, devices
// of both are taken.
void GangRuns::Hold(const ClaimKey& key, const std::string& uid, const Allocation* published) {
  auto holding = std::make_shared<Holding>();
  if (const auto decided = DecidedHolding(key, uid)) {
    *holding = *decided;
  } else {
    holding->claim = key;
    holding->claim_uid = uid;
    holding->holder = "claim " + ToString(key);
  }
  if (published != nullptr) AddShown(*published, *holding);
  const Holding* before = cluster_.FindHolding(uid);
  const bool nothing = holding->devices.empty() && holding->others.empty();
  if (before == nullptr && nothing) return;
  if (before != nullptr && before->holder == holding->holder && HaveSame(*before, *holding)) return;
  if (nothing) return Free(uid);
  room_freed_ = room_freed_ || (before != nullptr && !before->others.empty());
  cluster_.Hold(std::move(holding));
}

const GangRun* GangRuns::FindHolder(const ClaimKey& claim) const {
  const auto found = runs_of_claim_.find(claim);
  if (found == runs_of_claim_.end()) return nullptr;
  for (const auto& [id, index] : found->second) {
    const GangRun& run = runs_.at(id).run;
    if (!run.decision().claims[index].allocated_before) return &run;
  }
  return nullptr;
}

const GangRun* GangRuns::Find(const GangRef& ref) const {
  const auto found = run_of_gang_.find(ref);
  return found == run_of_gang_.end() ? nullptr : &runs_.at(found->second).run;
}

const GangRun* GangRuns::FindRun(RunId run) const {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : &found->second.run;
}

bool GangRuns::HasPlace(const PodFact& pod) const {
  const auto found = run_of_pod_.find(pod.key);
  if (found == run_of_pod_.end()) return false;
  const auto [id, index] = found->second;
  return runs_.at(id).run.decision().pods[index].uid == pod.uid;
}

std::string GangRuns::BusyClaim(const ClaimKey& claim) const {
  const auto found = runs_of_claim_.find(claim);
  if (found == runs_of_claim_.end()) return "";
  for (const auto& [id, index] : found->second) {
    const Entry& entry = runs_.at(id);
    if (entry.run.phase() == RunPhase::kBound && !entry.run.claim_released(index)) continue;
    return fmt::format("claim {} is in use by {}", claim.name, Describe(entry.gang));
  }
  return "";
}

// ---- Adopting ---------------------------------------------------------------------------------

void GangRuns::AdoptPublished(MonotonicTime now) {
  // The records cannot describe what a restored backup brought back: they are dropped, and the gang
  // is taken over as it is published, or decided anew.
  std::vector<RunId> back;
  for (const auto& [id, entry] : runs_) {
    if (CameBack(entry.run, facts_)) back.push_back(id);
  }
  for (const RunId id : back) Commit(GangReleased{id});
  // Gangs that ended while another leader ruled give their devices back before anybody is asked
  // whether he has devices of others.
  Advance(now);

  absl::flat_hash_map<std::string, GangRef> gang_of_uid;
  facts_.gangs.ForEach([&](const GangFact& gang) { gang_of_uid[gang.uid] = {gang.key, false}; });
  std::map<GangRef, std::vector<std::shared_ptr<const PodFact>>> orphans;
  absl::flat_hash_map<GangRef, std::string> failed;
  facts_.pods.ForEach([&](const PodFact& pod) {
    const GangRef ref = BoundFor(pod, gang_of_uid);
    if (pod.finished && !pod.succeeded && !pod.bound_gang_uid.empty()) failed[ref] = pod.key.name;
    if (run_of_gang_.contains(ref) || pod.finished || HasPlace(pod)) return;
    if (!pod.node.empty() && pod.bound_gang_uid.empty()) return;  // somebody else bound it
    orphans[ref].push_back(facts_.pods.Find(pod.key));
  });
  for (auto& [ref, pods] : orphans) {
    LeaveOutWaiting(ref, pods);
    std::sort(pods.begin(), pods.end(),
              [](const auto& a, const auto& b) { return NaturalLess(a->key.name, b->key.name); });
    Adopt(ref, pods);
    const auto gang = ref.single ? nullptr : facts_.gangs.Find(ref.key);
    const auto lost = failed.find(ref);
    if (gang == nullptr || lost == failed.end() || Find(ref) == nullptr) continue;
    // It has its next pods.
    if (std::cmp_greater_equal(pods.size(), gang->least_members())) continue;
    End(run_of_gang_.at(ref), EndCause::kMemberLost,
        fmt::format("{} of {} pods are left, and pod {} failed", pods.size(), gang->members,
                    lost->second));
  }
}

void GangRuns::AdoptSuccessors(const GangMembership& membership) {
  for (const GangRef& ref : std::exchange(left_behind_, {})) {
    if (run_of_gang_.contains(ref)) continue;
    std::vector<std::shared_ptr<const PodFact>> pods;
    const auto add = [&](const std::string& name) {
      auto pod = facts_.pods.Find(PodKey{ref.key.ns, name});
      if (pod != nullptr && !pod->finished && !HasPlace(*pod)) pods.push_back(std::move(pod));
    };
    if (ref.single) add(ref.key.name);
    if (!ref.single) {
      for (const std::string& name : membership.PodsOf(ref.key)) add(name);
    }
    if (!pods.empty()) Adopt(ref, pods);
  }
}

// Leaves out the pods that a published gang with minMembers has not taken yet.
void GangRuns::LeaveOutWaiting(const GangRef& ref,
                               std::vector<std::shared_ptr<const PodFact>>& pods) const {
  const auto gang = ref.single ? nullptr : facts_.gangs.Find(ref.key);
  if (gang == nullptr || !gang->changes_size()) return;
  const auto waits = [&](const std::shared_ptr<const PodFact>& pod) {
    return pod->node.empty() && std::ranges::all_of(pod->claims, [&](const PodClaim& entry) {
             const auto claim = facts_.claims.Find(ClaimKey{pod->key.ns, entry.claim});
             return claim == nullptr || claim->allocation == nullptr;
           });
  };
  if (std::ranges::count_if(pods, waits) + gang->least_members() > std::ssize(pods)) return;
  std::erase_if(pods, waits);
}

// Rolls forward a gang that is wholly or partly bound, and rolls back one that is only partly
// allocated.
void GangRuns::Adopt(const GangRef& ref, const std::vector<std::shared_ptr<const PodFact>>& pods) {
  const std::optional<PublishedGang> gang = ReadPublished(
      ref, pods, facts_, [this](const ClaimKey& key) { return runs_of_claim_.contains(key); },
      options_);
  if (!gang) return;
  Commit(GangPrepared{gang->decision});
  const RunId run = run_of_gang_.at(ref);
  At(run).run.MarkRestored();
  At(run).restored = true;
  TellAll(run);
  // Binds are sent when all claims are held, so one may still arrive.
  if (gang->any_bound || gang->all_held) Commit(GangAllocated{run});
  const auto undo = [&](const char* why) {
    const GangUndoing record{run, why};
    AddNews(At(run), record);
    Commit(record);
  };
  // The journal wins over a gang that had ended and that only a restored backup shows.
  if (MustGiveWay(*gang->decision)) {
    undo(kGivenToOthers);
  } else if (!gang->any_bound || !gang->all_held || !gang->all_placed) {
    undo("the controller's journal was lost before the gang was whole");
  } else if (gang->all_bound) {
    Commit(GangBound{run, gang->bound_at.value_or(now_)});
  }
  news_.push_back(
      {.kind = RunNews::Kind::kMoved, .gang = ref, .decision = gang->decision, .reason = ""});
}

}  // namespace tahoma::controller
