#include "controller/ledger/core.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

std::vector<Holding::HeldDevice> HeldDevices(const Allocation& allocation) {
  std::vector<Holding::HeldDevice> held;
  for (const DeviceResult& result : allocation.results) {
    if (result.driver != kNeuronDriver) continue;
    // A pool of ours is a node's; its name is the node's unless someone chose otherwise.
    held.push_back({.node = allocation.node.empty() ? result.pool : allocation.node,
                    .device = result.device,
                    .admin_access = result.admin_access});
  }
  return held;
}

// 0 for the record that begins a run.
RunId RunOf(const Record& record) {
  struct Visitor {
    RunId operator()(const GangPrepared&) const { return 0; }
    RunId operator()(const GangAllocated& r) const { return r.run; }
    RunId operator()(const GangBound& r) const { return r.run; }
    RunId operator()(const ClaimReleased& r) const { return r.run; }
    RunId operator()(const GangUndoing& r) const { return r.run; }
    RunId operator()(const GangReleased& r) const { return r.run; }
  };
  return std::visit(Visitor{}, record);
}

}  // namespace

std::shared_ptr<const Holding> HoldingOf(const GangDecision& decision, const DecidedClaim& claim) {
  auto holding = std::make_shared<Holding>();
  holding->claim = {decision.key.ns, claim.name};
  holding->claim_uid = claim.uid;
  holding->holder = Describe({decision.key, decision.single});
  holding->devices = HeldDevices(claim.allocation);
  holding->end = decision.end;
  return holding;
}

Core::Core(PlanFunction plan, CoreOptions options)
    : plan_(std::move(plan)), options_(options), snapshot_(std::make_shared<const Snapshot>()) {}

absl::Status Core::Restore(Sequence sequence, std::string_view bytes) {
  if (sequence <= last_sequence_) {
    return DataLoss("journal entry {} after entry {}", sequence, last_sequence_);
  }
  auto record = DecodeRecord(bytes);
  if (!record.ok()) {
    return Annotate(record.status(), fmt::format("journal entry {}", sequence));
  }
  if (const RunId run = RunOf(*record); run != 0) {
    const RunEntry* entry = FindRun(run);
    if (entry == nullptr) {
      return DataLoss("journal entry {} speaks of gang run {}, which is not in the journal",
                      sequence, run);
    }
    const auto* released = std::get_if<ClaimReleased>(&*record);
    if (released != nullptr && released->claim >= entry->run.decision().claims.size()) {
      return DataLoss("journal entry {} releases claim {} of {}", sequence, released->claim,
                      entry->run.decision().claims.size());
    }
  }
  last_sequence_ = sequence;
  Apply(sequence, *record);
  if (std::holds_alternative<GangPrepared>(*record)) {
    FindRun(sequence)->run.MarkRestored();
    FindRun(sequence)->restored = true;
  }
  return absl::OkStatus();
}

StepOutput Core::Step(const std::vector<Command>& commands, const Now& now) {
  now_ = now;
  out_ = StepOutput{};
  for (const Command& command : commands) {
    std::visit([this](const auto& taken) { Take(taken); }, command);
  }
  if (!synced_) return std::move(out_);
  if (just_synced_) {
    just_synced_ = false;
    Adopt();
  }
  AdvanceRuns();
  AdoptSuccessors();
  AssessTouched();
  PlanSome();
  AdvanceRuns();
  notices_.Flush(now_, attempts_, out_.writes);
  counters_.api_writes += out_.writes.size();

  // A record that is already obsolete is not written at all.
  std::erase_if(out_.journal.put, [&](const JournalEntry& entry) {
    return std::find(out_.journal.drop.begin(), out_.journal.drop.end(), entry.sequence) !=
           out_.journal.drop.end();
  });
  const auto consider = [&](std::optional<MonotonicTime> when) {
    if (when && (!out_.wake || *when < *out_.wake)) out_.wake = when;
  };
  if (!wakes_.empty()) consider(wakes_.begin()->first);
  if (!undone_wakes_.empty()) consider(undone_wakes_.begin()->first);
  consider(notices_.wake());
  if (!to_plan_.empty() && runs_in_flight_ < kRunsInFlightMost) consider(now_.monotonic);

  auto snapshot = std::make_shared<Snapshot>();
  snapshot->synced = true;
  snapshot->cluster = std::make_shared<const ClusterState>(cluster_);
  snapshot->gangs = views_;
  snapshot->runs_in_flight = runs_in_flight_;
  snapshot->gangs_waiting = waiting_.size();
  snapshot->counters = counters_;
  snapshot_ = std::move(snapshot);
  return std::move(out_);
}

void Core::Take(const PodSeen& command) {
  const PodFact& pod = *command.pod;
  if (const auto before = facts_.pods.Find(pod.key); before != nullptr && before->uid != pod.uid) {
    Take(PodGone{pod.key, before->uid});  // deleted and made again between two looks
  }
  facts_.pods.Put(command.pod);
  roster_.OnPod(pod);
  for (const PodClaim& claim : pod.claims) {
    if (!claim.claim.empty()) pods_of_claim_[{pod.key.ns, claim.claim}].insert(pod.key);
  }
  TellRunsOfPod(pod.key);
  touched_gangs_.insert(GangOf(pod));
}

void Core::Take(const PodGone& command) {
  const auto pod = facts_.pods.Find(command.key);
  if (pod == nullptr || !facts_.pods.Remove(command.key, command.uid)) return;
  roster_.OnPodGone(*pod);
  for (const PodClaim& claim : pod->claims) {
    const auto found = pods_of_claim_.find(ClaimKey{pod->key.ns, claim.claim});
    if (found == pods_of_claim_.end()) continue;
    found->second.erase(pod->key);
    if (found->second.empty()) pods_of_claim_.erase(found);
  }
  notices_.ForgetPod(command.key);
  TellRunsOfPod(command.key);
  touched_gangs_.insert(GangOf(*pod));
}

void Core::Take(const ClaimSeen& command) {
  const ClaimKey& key = command.claim->key;
  if (const auto before = facts_.claims.Find(key);
      before != nullptr && before->uid != command.claim->uid) {
    Take(ClaimGone{key, before->uid});
  }
  facts_.claims.Put(command.claim);
  TellRunsOfClaim(key);
  HoldAsPublished(key);
  TouchConsumers(key);
}

void Core::Take(const ClaimGone& command) {
  const auto claim = facts_.claims.Find(command.key);
  if (claim == nullptr || !facts_.claims.Remove(command.key, command.uid)) return;
  TellRunsOfClaim(command.key);
  if (!HeldByRun(command.key) && cluster_.FindHolding(claim->uid) != nullptr) {
    cluster_.Release(claim->uid);
    capacity_freed_ = true;
  }
  TouchConsumers(command.key);
}

void Core::Take(const GangSeen& command) {
  facts_.gangs.Put(command.gang);
  touched_gangs_.insert({command.gang->key, false});
}

void Core::Take(const GangGone& command) {
  if (!facts_.gangs.Remove(command.key, command.uid)) return;
  notices_.ForgetGang(command.key);
  touched_gangs_.insert({command.key, false});
}

void Core::Take(const NodeSeen& command) {
  cluster_.PutNode(*command.node);
  capacity_freed_ = true;
}

void Core::Take(const NodeGone& command) {
  cluster_.RemoveNode(command.name);
  for (auto& [id, entry] : runs_) {
    if (entry.run.phase() == RunPhase::kBound) continue;
    entry.run.OnNodeGone(command.name);
    touched_runs_.insert(id);
  }
}

void Core::Take(const ClassSeen& command) {
  facts_.classes[command.device_class->name] = command.device_class;
  for (const auto& [ref, waiting] : waiting_) touched_gangs_.insert(ref);
}

void Core::Take(const ClassGone& command) {
  facts_.classes.erase(command.name);
  for (const auto& [ref, waiting] : waiting_) touched_gangs_.insert(ref);
}

void Core::Take(const WatchesSynced&) {
  if (synced_) return;
  synced_ = true;
  just_synced_ = true;
  for (auto& [id, entry] : runs_) {
    const GangDecision& decision = entry.run.decision();
    for (const DecidedPod& pod : decision.pods) {
      TellRunsOfPod({decision.key.ns, pod.name});
      // It may have gone while no controller ran, so that no NodeGone tells it.
      const std::optional<NodeId> node = cluster_.FindNode(pod.node);
      if (!node || cluster_.node(*node).node == nullptr) entry.run.OnNodeGone(pod.node);
    }
    for (const DecidedClaim& claim : decision.claims) {
      TellRunsOfClaim({decision.key.ns, claim.name});
    }
    touched_runs_.insert(id);
  }
}

void Core::Take(const ApiResult& command) {
  if (TargetOf(command.kind) == WriteTarget::kPeople) {
    notices_.OnResult(command, now_);
    return;
  }
  RunEntry* entry = FindRun(command.run);
  if (entry == nullptr) return;
  entry->run.OnResult(command, now_.monotonic);
  touched_runs_.insert(command.run);
}

void Core::TellRunsOfPod(const PodKey& key) {
  const auto found = run_of_pod_.find(key);
  if (found == run_of_pod_.end()) return;
  const auto [id, index] = found->second;
  RunEntry& entry = *FindRun(id);
  const auto fact = facts_.pods.Find(key);
  const bool same = fact != nullptr && fact->uid == entry.run.decision().pods[index].uid;
  entry.run.OnPod(index, same ? fact.get() : nullptr);
  touched_runs_.insert(id);
}

void Core::TellRunsOfClaim(const ClaimKey& key) {
  const auto found = runs_of_claim_.find(key);
  if (found == runs_of_claim_.end()) return;
  const auto fact = facts_.claims.Find(key);
  for (const auto& [id, index] : found->second) {
    RunEntry& entry = *FindRun(id);
    const bool same = fact != nullptr && fact->uid == entry.run.decision().claims[index].uid;
    entry.run.OnClaim(index, same ? fact : nullptr);
    touched_runs_.insert(id);
  }
}

void Core::TouchConsumers(const ClaimKey& key) {
  const auto found = pods_of_claim_.find(key);
  if (found == pods_of_claim_.end()) return;
  for (const PodKey& pod : found->second) {
    if (run_of_pod_.contains(pod)) continue;
    if (const auto fact = facts_.pods.Find(pod)) touched_gangs_.insert(GangOf(*fact));
  }
}

// Whether a run has decided the claim's devices and not given them back. Runs that found the claim
// allocated do not: such a claim holds what the API says.
bool Core::HeldByRun(const ClaimKey& key) const {
  const auto found = runs_of_claim_.find(key);
  if (found == runs_of_claim_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [this](const RunMember& member) {
    const GangRun& run = runs_.at(member.first).run;
    return !run.decision().claims[member.second].allocated_before &&
           !run.claim_released(member.second);
  });
}

void Core::HoldAsPublished(const ClaimKey& key) {
  const auto claim = facts_.claims.Find(key);
  if (claim == nullptr || HeldByRun(key)) return;
  if (claim->allocation != nullptr) {
    auto holding = std::make_shared<Holding>();
    holding->claim = key;
    holding->claim_uid = claim->uid;
    holding->holder = "claim " + ToString(key);
    holding->devices = HeldDevices(*claim->allocation);
    if (!holding->devices.empty()) cluster_.Hold(std::move(holding));
  } else if (cluster_.FindHolding(claim->uid) != nullptr) {
    cluster_.Release(claim->uid);
    capacity_freed_ = true;
  }
}

Core::RunEntry* Core::FindRun(RunId run) {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : &found->second;
}

void Core::Commit(const Record& record) {
  const Sequence sequence = ++last_sequence_;
  if (!std::holds_alternative<GangReleased>(record)) {
    out_.journal.put.push_back({sequence, EncodeRecord(record)});
    ++counters_.journal_records;
  }
  Apply(sequence, record);
}

// Of a run that exists: people are told first, of the run as it was.
void Core::CommitAndTell(const Record& record) {
  Tell(*FindRun(RunOf(record)), record);
  Commit(record);
}

// The one place where a record takes effect, whether it was just decided or read at a start.
void Core::Apply(Sequence sequence, const Record& record) {
  if (const auto* prepared = std::get_if<GangPrepared>(&record)) {
    ApplyPrepared(sequence, *prepared);
  } else if (const auto* released = std::get_if<GangReleased>(&record)) {
    ApplyReleased(released->run);
  } else {
    const auto apply = [&](RunId id) {
      RunEntry& entry = *FindRun(id);
      const bool was_bound = entry.run.phase() == RunPhase::kBound;
      entry.run.Apply(record);
      entry.records.push_back(sequence);
      const bool is_bound = entry.run.phase() == RunPhase::kBound;
      if (!was_bound && is_bound) --runs_in_flight_;
      if (was_bound && !is_bound) ++runs_in_flight_;
    };
    if (const auto* allocated = std::get_if<GangAllocated>(&record)) apply(allocated->run);
    if (const auto* bound = std::get_if<GangBound>(&record)) apply(bound->run);
    if (const auto* undoing = std::get_if<GangUndoing>(&record)) apply(undoing->run);
    if (const auto* claim = std::get_if<ClaimReleased>(&record)) {
      apply(claim->run);
      const GangDecision& decision = FindRun(claim->run)->run.decision();
      if (!decision.claims[claim->claim].allocated_before) {
        cluster_.Release(decision.claims[claim->claim].uid);
        capacity_freed_ = true;
      }
      HoldAsPublished({decision.key.ns, decision.claims[claim->claim].name});
    }
  }
}

void Core::ApplyPrepared(Sequence sequence, const GangPrepared& record) {
  const GangDecision& decision = *record.decision;
  const GangRef ref{decision.key, decision.single};
  runs_.emplace(sequence, RunEntry{.run = GangRun(sequence, record.decision),
                                   .ref = ref,
                                   .records = {sequence},
                                   .wake = std::nullopt});
  ++runs_in_flight_;
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

void Core::ApplyReleased(RunId id) {
  const auto found = runs_.find(id);
  TAHOMA_CHECK(found != runs_.end());
  const auto decision = found->second.run.shared_decision();
  const GangRef ref = found->second.ref;
  if (found->second.run.phase() != RunPhase::kBound) --runs_in_flight_;
  out_.journal.drop.insert(out_.journal.drop.end(), found->second.records.begin(),
                           found->second.records.end());
  if (found->second.wake) wakes_.erase({*found->second.wake, id});
  if (run_of_gang_[ref] == id) run_of_gang_.erase(ref);
  for (const DecidedPod& pod : decision->pods) {
    const auto member = run_of_pod_.find(PodKey{decision->key.ns, pod.name});
    if (member != run_of_pod_.end() && member->second.first == id) run_of_pod_.erase(member);
  }
  for (std::uint32_t i = 0; i < decision->claims.size(); ++i) {
    const DecidedClaim& claim = decision->claims[i];
    const ClaimKey key{decision->key.ns, claim.name};
    auto& members = runs_of_claim_[key];
    std::erase_if(members, [&](const RunMember& member) { return member.first == id; });
    if (members.empty()) runs_of_claim_.erase(key);
    if (!claim.allocated_before && !found->second.run.claim_released(i)) {
      cluster_.Release(claim.uid);
      capacity_freed_ = true;
    }
  }
  if (std::any_of(decision->pods.begin(), decision->pods.end(), [&](const DecidedPod& pod) {
        const auto fact = facts_.pods.Find(PodKey{decision->key.ns, pod.name});
        return fact != nullptr && fact->uid != pod.uid && !fact->bound_gang_uid.empty();
      })) {
    left_behind_.insert(ref);
  }
  runs_.erase(found);
  touched_runs_.erase(id);
  held_back_.erase(id);
  for (const DecidedClaim& claim : decision->claims) {
    HoldAsPublished({decision->key.ns, claim.name});
  }
  touched_gangs_.insert(ref);
}

}  // namespace tahoma::controller
