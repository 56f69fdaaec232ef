#include "sim-node/podrunner/node_pods.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/claim.h"

namespace tahoma::sim {
namespace {

using json = Json;

constexpr int kCheckpointVersion = 1;

PodRef RefOf(const json& pod) {
  return {.name_space = std::string(kube::NamespaceOf(pod)),
          .name = std::string(kube::NameOf(pod)),
          .uid = std::string(kube::UidOf(pod))};
}

// Messages may quote bytes from users (a command from a Secret) or names of files, but JSON is
// text.
std::string TextOf(const json& status) {
  return status.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool HasEnded(const json& pod) {
  const std::string_view phase = kube::StringAt(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

absl::StatusOr<ClaimFacts> ParseClaimFacts(const json& object) {
  TAHOMA_ASSIGN_OR_RETURN(kube::ResourceClaim claim, kube::ParseResourceClaim(object));
  if (claim.metadata.uid.empty()) {
    return InvalidArgument("claim {} has no metadata.uid", claim.metadata.name);
  }
  ClaimFacts facts{.uid = std::move(claim.metadata.uid),
                   .name_space = std::move(claim.metadata.ns),
                   .name = std::move(claim.metadata.name),
                   .allocated = claim.allocation.has_value()};
  for (kube::Reservation& held : claim.reserved_for) {
    facts.reserved_for.push_back(std::move(held.uid));
  }
  if (!claim.allocation) return facts;
  for (kube::DeviceResult& result : claim.allocation->results) {
    facts.devices.insert(
        fmt::format("{}/{}/{}/{}", result.driver, result.pool, result.device, result.request));
    if (!Contains(facts.drivers, result.driver)) facts.drivers.push_back(std::move(result.driver));
  }
  return facts;
}

absl::Status CheckWrite(const json& shown, const PodRef& pod, std::string_view node,
                        PodWrite write) {
  if (const std::string uid = RefOf(shown).uid; uid != pod.uid) {
    return Aborted("another pod ({}) has its name", uid);
  }
  if (const std::string_view at = kube::StringAt(shown, {"spec", "nodeName"}); at != node) {
    return Aborted("it is bound to \"{}\"", at);
  }
  if (write == PodWrite::kRemoval && !kube::IsBeingDeleted(shown)) {
    return FailedPrecondition("nobody asks for its deletion any more");
  }
  return absl::OkStatus();
}

NodePods::NodePods(PodMachine::Addresses addresses) : addresses_(std::move(addresses)) {}

std::string NodePods::Checkpoint() const {
  json claims = json::array();
  for (const auto& [uid, claim] : claims_) {
    claims.push_back({{"uid", uid},
                      {"namespace", claim.facts.name_space},
                      {"name", claim.facts.name},
                      {"drivers", claim.facts.drivers},
                      {"pods", claim.users}});
  }
  return json{{"version", kCheckpointVersion}, {"claims", std::move(claims)}}.dump(2) + "\n";
}

absl::Status NodePods::Restore(std::string_view checkpoint) {
  const json read = TryParseJson(checkpoint);
  const json* claims = kube::ValueAt(read, {"claims"});
  if (claims == nullptr || !claims->is_array()) {
    return DataLoss("the checkpoint of prepared claims is not readable JSON");
  }
  if (const json* version = kube::ValueAt(read, {"version"});
      version == nullptr || *version != kCheckpointVersion) {
    return DataLoss("the checkpoint of prepared claims has version {}; expected {}",
                    version == nullptr ? "null" : version->dump(), kCheckpointVersion);
  }
  for (const json& entry : *claims) {
    Claim claim{.stage = ClaimStage::kPrepared};
    claim.facts = {.uid = std::string(kube::StringAt(entry, {"uid"})),
                   .name_space = std::string(kube::StringAt(entry, {"namespace"})),
                   .name = std::string(kube::StringAt(entry, {"name"}))};
    if (claim.facts.uid.empty()) return DataLoss("the checkpoint holds a claim without uid");
    claim.facts.drivers = kube::StringsAt(entry, {"drivers"});
    for (std::string& pod : kube::StringsAt(entry, {"pods"})) claim.users.insert(std::move(pod));
    claims_[claim.facts.uid] = std::move(claim);
  }
  return absl::OkStatus();
}

NodeActions NodePods::DrainActions(WallTime now) {
  for (const std::string& uid : std::exchange(over_, {})) {
    const auto ended = pods_.extract(uid);
    if (!ended.empty() && ended.mapped().back) Add(*ended.mapped().back, now);
  }
  return std::exchange(actions_, {});
}

void NodePods::MarkDirty() { actions_.push_back(SaveCheckpoint{}); }

const PodMachine* NodePods::Find(const std::string& pod_uid) const {
  const auto found = pods_.find(pod_uid);
  return found == pods_.end() ? nullptr : found->second.machine.get();
}

std::string NodePods::UidOf(std::string_view name_space, std::string_view name) const {
  for (const auto& [uid, pod] : pods_) {
    if (pod.ref.name_space == name_space && pod.ref.name == name) return uid;
  }
  return {};
}

NodeActions NodePods::OnPod(const json& object, WallTime now) {
  const auto known = pods_.find(RefOf(object).uid);
  if (known == pods_.end()) {
    Add(object, now);
  } else if (known->second.machine->gone()) {
    known->second.back = std::make_shared<const json>(object);
  } else {
    Update(known->second, object, now);
  }
  return DrainActions(now);
}

void NodePods::Add(const json& object, WallTime now) {
  const PodRef ref = RefOf(object);
  absl::StatusOr<PodSpec> spec = ParsePod(object);
  if (!spec.ok()) return Refuse(object, "UnsupportedPod", Message(spec.status()));
  if (shutting_down_) {
    // A pod with claims is left to the next runner: its phase may be final only once they are free.
    if (HoldsClaims(ref.uid)) return;
    return Refuse(object, "NodeShutdown", "Pod was rejected as the node is shutting down.");
  }
  Pod& pod = pods_[ref.uid];
  pod.ref = ref;
  pod.shown = std::make_shared<const json>(object);
  Admit(pod, *std::move(spec), object, now);
  AfterStep(ref.uid);
}

void NodePods::Update(Pod& pod, const json& object, WallTime now) {
  pod.status_lost = !ShowsStatus(object, ParseJson(pod.written));
  pod.removal_lost = pod.machine->finished();
  pod.shown = std::make_shared<const json>(object);
  absl::StatusOr<PodSpec> spec = ParsePod(object);
  if (!spec.ok()) return;  // a good spec cannot turn bad, so there is nothing to do
  pod.machine->SetClaims(std::move(spec->claims));
  Carry(pod, pod.machine->OnEphemeralContainers(*spec, now), now);
  if (spec->active_deadline != pod.machine->spec().active_deadline) {
    Carry(pod, pod.machine->OnActiveDeadline(spec->active_deadline, now), now);
  }
  if (spec->deletion_grace) {
    Carry(pod, pod.machine->OnDeletion(*spec->deletion_grace, now), now);
  }
  AfterStep(pod.ref.uid);
}

void NodePods::Admit(Pod& pod, PodSpec spec, const json& object, WallTime now) {
  PodHistory history = ParseHistory(object);
  for (auto& [uid, claim] : claims_) {
    if (!claim.users.contains(pod.ref.uid)) continue;
    pod.claims.insert(uid);
    history.holds_claims = true;
  }
  pod.machine = std::make_unique<PodMachine>(std::move(spec), history, addresses_);
  const std::vector<std::string>& ignored = pod.machine->spec().ignored;
  if (!ignored.empty() && !history.start_time) {
    actions_.push_back(WriteEvent{
        .pod = pod.ref,
        .event = {.warning = true,
                  .reason = "FieldsIgnored",
                  .message = fmt::format("containers run as local processes here, without {}",
                                         fmt::join(ignored, ", "))}});
  }
  Carry(pod, pod.machine->Start(now), now);
}

bool NodePods::HoldsClaims(const std::string& pod_uid) const {
  return std::any_of(claims_.begin(), claims_.end(),
                     [&](const auto& entry) { return entry.second.users.contains(pod_uid); });
}

// Fails a pod that admission refuses, as the kubelet does: once, and then lets users delete the
// pod.
void NodePods::Refuse(const json& object, std::string_view reason, std::string_view message) {
  const PodRef ref = RefOf(object);
  if (ref.uid.empty()) return;
  if (kube::IsBeingDeleted(object)) {
    refused_.erase(ref.uid);
    actions_.push_back(DeletePod{.pod = ref});
    return;
  }
  const auto known = refused_.find(ref.uid);
  if (known != refused_.end()) known->second.lost = !HasEnded(object);
  if (known != refused_.end() || HasEnded(object)) return;
  const std::string status =
      TextOf({{"phase", "Failed"}, {"reason", reason}, {"message", message}});
  refused_[ref.uid] = {.pod = ref, .status = status};
  actions_.push_back(WriteStatus{.pod = ref, .status = status});
  actions_.push_back(WriteEvent{
      .pod = ref,
      .event = {.warning = true, .reason = std::string(reason), .message = std::string(message)}});
}

NodeActions NodePods::OnPodGone(const std::string& uid, WallTime now) {
  refused_.erase(uid);
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return {};
  found->second.back.reset();
  Carry(found->second, found->second.machine->OnGone(now), now);
  AfterStep(uid);
  return DrainActions(now);
}

void NodePods::WriteLost(WallTime now) {
  for (auto& [uid, pod] : pods_) {
    if (pod.machine->gone()) continue;
    if (std::exchange(pod.status_lost, false)) {
      const bool holds = !pod.claims.empty() && !pod.machine->ended();
      holds && !pod.claims_reading ? CheckClaimsOf(pod) : pod.written.clear();
    }
    const bool deleting = kube::IsBeingDeleted(*pod.shown);
    if (std::exchange(pod.removal_lost, false) || !deleting) {
      Carry(pod, pod.machine->OnListed(deleting, now), now);
    }
    AfterStep(uid);
  }
  for (auto& [uid, refusal] : refused_) {
    if (!std::exchange(refusal.lost, false)) continue;
    actions_.push_back(WriteStatus{.pod = refusal.pod, .status = refusal.status});
  }
}

void NodePods::CheckClaimsOf(Pod& pod) {
  pod.check_at.reset();
  if (std::exchange(pod.checking, true)) return;
  ReadClaims read{.pod = pod.ref};
  for (const PodClaim& claim : pod.machine->spec().claims) {
    if (!claim.claim.empty()) read.names.push_back(claim.claim);
  }
  actions_.push_back(std::move(read));
}

// Whether the devices given to the pod are still the devices of its claims.
bool NodePods::HasDevices(const Pod& pod, const std::vector<ClaimFacts>& claims) const {
  return claims.size() == pod.claims.size() &&
         std::all_of(claims.begin(), claims.end(), [&](const ClaimFacts& facts) {
           const auto held = claims_.find(facts.uid);
           return pod.claims.contains(facts.uid) && held != claims_.end() &&
                  held->second.facts.devices == facts.devices;
         });
}

void NodePods::OnClaimsChecked(Pod& pod, const absl::StatusOr<std::vector<ClaimFacts>>& claims,
                               WallTime now) {
  pod.checking = false;
  if (pod.machine->ended() || pod.machine->gone()) return;
  if (!claims.ok() && !absl::IsNotFound(claims.status())) {
    pod.check_at = now + kFirstPrepareRetry;
  } else if (claims.ok() && HasDevices(pod, *claims)) {
    pod.written.clear();
  } else {
    // The claims were decided anew: the pod ends here, and a pod with the new devices begins.
    pod.back = pod.shown;
    Carry(pod, pod.machine->OnGone(now), now);
  }
  AfterStep(pod.ref.uid);
}

NodeActions NodePods::OnPodsSynced(WallTime now) {
  WriteLost(now);
  for (auto& [uid, claim] : claims_) {
    std::erase_if(claim.users, [&](const std::string& pod) { return !pods_.contains(pod); });
    if (claim.users.empty()) claim.retry_at = now;
  }
  UnprepareUnused(now);
  return DrainActions(now);
}

void NodePods::UnprepareUnused(WallTime now) {
  for (auto& [uid, claim] : claims_) {
    if (!claim.retry_at || now < *claim.retry_at) continue;
    claim.retry_at.reset();
    if (claim.users.empty() && claim.stage == ClaimStage::kPrepared) AskUnprepare(claim);
  }
}

// Turns the actions of a pod into actions of the node.
void NodePods::Carry(Pod& pod, const PodActions& actions, WallTime now) {
  for (const PodAction& action : actions) {
    if (std::holds_alternative<PrepareClaims>(action)) {
      StartReading(pod, now);
    } else if (std::holds_alternative<UnprepareClaims>(action)) {
      StartUnpreparing(pod, now);
    } else if (std::holds_alternative<RemovePod>(action)) {
      // The last status first: a user who waits for the pod wants to know how the pod ended.
      AfterStep(pod.ref.uid);
      actions_.push_back(DeletePod{.pod = pod.ref});
    } else if (const auto* start = std::get_if<StartContainer>(&action)) {
      actions_.push_back(RunContainer{.pod = pod.ref,
                                      .container = start->container,
                                      .attempt = start->attempt,
                                      .cdi_ids = DevicesFor(pod, start->container)});
    } else if (const auto* signal = std::get_if<SignalContainer>(&action)) {
      actions_.push_back(StopContainer{.pod = pod.ref,
                                       .container = signal->container,
                                       .attempt = signal->attempt,
                                       .kill = signal->kill});
    } else if (const auto* event = std::get_if<RecordEvent>(&action)) {
      actions_.push_back(WriteEvent{.pod = pod.ref, .event = *event});
    }
  }
}

void NodePods::StartReading(Pod& pod, WallTime now) {
  ReadClaims read{.pod = pod.ref};
  for (const PodClaim& claim : pod.machine->spec().claims) {
    if (claim.none) continue;
    if (claim.claim.empty()) {
      Carry(pod,
            pod.machine->OnPrepareFailed(
                fmt::format("the claim of template entry {} is not made yet", claim.entry), now),
            now);
      return;
    }
    read.names.push_back(claim.claim);
  }
  pod.claims_reading = true;
  actions_.push_back(std::move(read));
}

absl::Status NodePods::CheckClaims(const Pod& pod, const std::vector<ClaimFacts>& claims) const {
  for (const ClaimFacts& claim : claims) {
    if (!claim.allocated) {
      return FailedPrecondition("resourceclaim {}/{} is not allocated", claim.name_space,
                                claim.name);
    }
    if (!Contains(claim.reserved_for, pod.ref.uid)) {
      return FailedPrecondition("resourceclaim {}/{} is not reserved for pod {} ({})",
                                claim.name_space, claim.name, pod.ref.name, pod.ref.uid);
    }
    const auto known = claims_.find(claim.uid);
    if (known != claims_.end() &&
        (known->second.stage == ClaimStage::kUnpreparing || known->second.unprepare_next)) {
      return Unavailable("resourceclaim {}/{} is just being unprepared", claim.name_space,
                         claim.name);
    }
  }
  return absl::OkStatus();
}

NodeActions NodePods::OnClaimsRead(const std::string& pod_uid,
                                   const absl::StatusOr<std::vector<ClaimFacts>>& claims,
                                   WallTime now) {
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return {};
  Pod& pod = found->second;
  if (!pod.claims_reading) {
    if (pod.checking) OnClaimsChecked(pod, claims, now);
    return DrainActions(now);
  }
  pod.claims_reading = false;
  absl::Status usable = claims.status();
  if (usable.ok()) usable = CheckClaims(pod, *claims);
  if (!usable.ok()) {
    Carry(pod, pod.machine->OnPrepareFailed(Message(usable), now), now);
    AfterStep(pod_uid);
    return DrainActions(now);
  }
  DropFormerClaims(pod, *claims);
  for (const ClaimFacts& facts : *claims) {
    for (const PodClaim& entry : pod.machine->spec().claims) {
      if (entry.claim == facts.name) pod.claim_uids[entry.entry] = facts.uid;
    }
    const auto [at, added] = claims_.try_emplace(facts.uid);
    Claim& claim = at->second;
    const bool prepared = claim.stage == ClaimStage::kPrepared && claim.known_devices;
    claim.users.insert(pod_uid);
    pod.claims.insert(facts.uid);
    if (prepared) continue;
    claim.waiting.insert(pod_uid);
    if (!added && claim.stage == ClaimStage::kPreparing) continue;
    // CheckClaims has refused the pod otherwise
    TAHOMA_CHECK(claim.stage != ClaimStage::kUnpreparing);
    claim.facts = facts;
    claim.stage = ClaimStage::kPreparing;
    MarkDirty();
    actions_.push_back(PrepareClaim{.claim = facts});
  }
  FinishPreparing(pod, now);
  AfterStep(pod_uid);
  return DrainActions(now);
}

// A claim deleted and made anew under the same name has another uid. A call for the former claim
// may have been carried out, so the former claim is unprepared.
void NodePods::DropFormerClaims(Pod& pod, const std::vector<ClaimFacts>& claims) {
  std::set<std::string> former = pod.claims;
  for (const ClaimFacts& facts : claims) former.erase(facts.uid);
  for (const std::string& uid : former) {
    pod.claims.erase(uid);
    const auto found = claims_.find(uid);
    if (found == claims_.end()) continue;
    found->second.users.erase(pod.ref.uid);
    found->second.waiting.erase(pod.ref.uid);
    MarkDirty();
    if (found->second.users.empty()) AskUnprepare(found->second);
  }
}

void NodePods::FinishPreparing(Pod& pod, WallTime now) {
  for (const std::string& uid : pod.claims) {
    const auto claim = claims_.find(uid);
    if (claim == claims_.end()) continue;
    // Waits for the plugin's answer, or for the next try after a failure.
    if (claim->second.waiting.contains(pod.ref.uid) || !claim->second.known_devices) return;
  }
  Carry(pod, pod.machine->OnPrepared(now), now);
}

NodeActions NodePods::OnClaimPrepared(const std::string& claim_uid,
                                      absl::StatusOr<std::vector<PreparedDevice>> devices,
                                      WallTime now) {
  const auto found = claims_.find(claim_uid);
  if (found == claims_.end() || found->second.stage != ClaimStage::kPreparing) return {};
  Claim& claim = found->second;
  // A failed call may have prepared the claim all the same, so the claim will be unprepared.
  claim.stage = ClaimStage::kPrepared;
  claim.known_devices = devices.ok();
  if (devices.ok()) claim.devices = *devices;
  const std::set<std::string> waiting = std::exchange(claim.waiting, {});
  if (std::exchange(claim.unprepare_next, false) && claim.users.empty()) {
    claim.waiting = waiting;  // pods that end now wait for the unprepare
    AskUnprepare(claim);
    return DrainActions(now);
  }
  for (const std::string& uid : waiting) {
    const auto at = pods_.find(uid);
    if (at == pods_.end()) continue;
    Pod& pod = at->second;
    if (devices.ok()) {
      FinishPreparing(pod, now);
    } else {
      Carry(pod, pod.machine->OnPrepareFailed(Message(devices.status()), now), now);
    }
    AfterStep(uid);
  }
  return DrainActions(now);
}

void NodePods::AskUnprepare(Claim& claim) {
  if (claim.stage == ClaimStage::kUnpreparing) return;
  if (claim.stage == ClaimStage::kPreparing) {
    claim.unprepare_next = true;
    return;
  }
  TAHOMA_CHECK(claim.users.empty());  // else a pod would lose devices in use
  claim.stage = ClaimStage::kUnpreparing;
  claim.known_devices = false;
  actions_.push_back(UnprepareClaim{.claim = claim.facts});
}

void NodePods::StartUnpreparing(Pod& pod, WallTime now) {
  pod.claims_reading = false;
  bool wait = false;
  const std::set<std::string> held = pod.claims;
  for (const std::string& uid : held) {
    const auto found = claims_.find(uid);
    if (found == claims_.end()) continue;
    Claim& claim = found->second;
    claim.users.erase(pod.ref.uid);
    claim.waiting.erase(pod.ref.uid);
    if (!claim.users.empty()) {
      pod.claims.erase(uid);
      continue;
    }
    wait = true;
    claim.waiting.insert(pod.ref.uid);
    AskUnprepare(claim);
  }
  if (!held.empty()) MarkDirty();
  if (!wait) Carry(pod, pod.machine->OnUnprepared(now), now);
}

NodeActions NodePods::OnClaimUnprepared(const std::string& claim_uid, const absl::Status& status,
                                        WallTime now) {
  const auto found = claims_.find(claim_uid);
  if (found == claims_.end() || found->second.stage != ClaimStage::kUnpreparing) return {};
  const std::set<std::string> waiting = std::exchange(found->second.waiting, {});
  if (status.ok()) {
    claims_.erase(found);
    MarkDirty();
  } else {
    found->second.stage = ClaimStage::kPrepared;
    if (waiting.empty()) found->second.retry_at = now + kMaxPrepareRetry;
  }
  for (const std::string& uid : waiting) {
    const auto at = pods_.find(uid);
    if (at == pods_.end()) continue;
    Pod& pod = at->second;
    if (!status.ok()) {
      pod.left_to_next = shutting_down_;
      Carry(pod, pod.machine->OnUnprepareFailed(Message(status), now), now);
    } else {
      pod.claims.erase(claim_uid);
      const bool more = std::any_of(pod.claims.begin(), pod.claims.end(),
                                    [&](const auto& claim) { return claims_.contains(claim); });
      if (!more) Carry(pod, pod.machine->OnUnprepared(now), now);
    }
    AfterStep(uid);
  }
  return DrainActions(now);
}

std::vector<std::string> NodePods::DevicesFor(const Pod& pod, const std::string& container) const {
  std::vector<std::string> ids;
  const ContainerSpec* spec = pod.machine->spec().FindContainer(container);
  if (spec == nullptr) return ids;
  for (const ClaimUse& use : spec->claims) {
    const auto uid = pod.claim_uids.find(use.claim);
    if (uid == pod.claim_uids.end()) continue;
    const auto claim = claims_.find(uid->second);
    if (claim == claims_.end()) continue;
    TAHOMA_CHECK(claim->second.known_devices);  // else the container would start without devices
    for (const PreparedDevice& device : claim->second.devices) {
      const bool asked =
          use.request.empty() || device.requests.empty() || Contains(device.requests, use.request);
      if (!asked) continue;
      for (const std::string& id : device.cdi_ids) {
        if (!Contains(ids, id)) ids.push_back(id);
      }
    }
  }
  return ids;
}

// Writes a changed status. A finished pod is forgotten at the end of the step.
void NodePods::AfterStep(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Pod& pod = found->second;
  if (pod.machine->finished() && pod.machine->gone()) over_.insert(uid);
  std::string status = TextOf(pod.machine->Status());
  if (status != pod.written) {
    pod.written = status;
    pod.status_lost = false;
    // A pod that vanished has no object to write to.
    if (!pod.machine->gone()) {
      actions_.push_back(WriteStatus{.pod = pod.ref, .status = std::move(status)});
    }
  }
}

NodeActions NodePods::OnStarted(const std::string& pod_uid, const std::string& container,
                                int attempt, const std::string& container_id, WallTime now) {
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return {};
  Carry(found->second, found->second.machine->OnStarted(container, attempt, container_id, now),
        now);
  AfterStep(pod_uid);
  return DrainActions(now);
}

NodeActions NodePods::OnStartFailed(const std::string& pod_uid, const std::string& container,
                                    int attempt, StartFailure failure, WallTime now) {
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return {};
  Carry(found->second,
        found->second.machine->OnStartFailed(container, attempt, std::move(failure), now), now);
  AfterStep(pod_uid);
  return DrainActions(now);
}

NodeActions NodePods::OnExited(const std::string& pod_uid, const std::string& container,
                               int attempt, Exit exit, WallTime now) {
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return {};
  Carry(found->second, found->second.machine->OnExited(container, attempt, exit, now), now);
  AfterStep(pod_uid);
  return DrainActions(now);
}

NodeActions NodePods::OnShutdown(std::chrono::seconds grace, WallTime now) {
  shutting_down_ = true;
  for (auto& [uid, pod] : pods_) {
    Carry(pod, pod.machine->OnNodeShutdown(std::min(grace, pod.machine->spec().grace), now), now);
    AfterStep(uid);
  }
  return DrainActions(now);
}

NodeActions NodePods::OnTick(WallTime now) {
  UnprepareUnused(now);
  for (auto& [uid, pod] : pods_) {
    if (pod.check_at && *pod.check_at <= now) CheckClaimsOf(pod);
    const std::optional<WallTime> due = pod.machine->NextDeadline();
    if (!due || *due > now) continue;
    Carry(pod, pod.machine->OnTick(now), now);
    AfterStep(uid);
  }
  return DrainActions(now);
}

std::optional<WallTime> NodePods::NextDeadline() const {
  std::optional<WallTime> next;
  for (const auto& [uid, pod] : pods_) {
    for (const std::optional<WallTime>& due : {pod.machine->NextDeadline(), pod.check_at}) {
      if (due && (!next || *due < *next)) next = due;
    }
  }
  for (const auto& [uid, claim] : claims_) {
    if (claim.retry_at && (!next || *claim.retry_at < *next)) next = claim.retry_at;
  }
  return next;
}

bool NodePods::shut_down() const {
  return shutting_down_ && std::all_of(pods_.begin(), pods_.end(), [](const auto& entry) {
           return entry.second.machine->ended() || entry.second.left_to_next;
         });
}

}  // namespace tahoma::sim
