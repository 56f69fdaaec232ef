#include "tests/support/fake_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/core/journal/block_record.h"
#include "controller/plan/decision.h"
#include "lib/base/hex.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {

namespace {

std::shared_ptr<const ClassFact> ChipClass() {
  auto made = std::make_shared<ClassFact>();
  made->name = std::string(kNeuronDriver);
  made->selectors.push_back(kNeuronClassSelector);
  return made;
}

std::shared_ptr<const StorageClassFact> SsdClass() {
  return std::make_shared<const StorageClassFact>(
      StorageClassFact{.name = "ssd", .waits = true, .provisions = true, .nodes = {}});
}

}  // namespace

void FakeApi::AddClass() {
  has_class_ = true;
  events_.push_back(ClassSeen{ChipClass()});
}

void FakeApi::AddVolumeClaim(const std::string& name) {
  events_.push_back(StorageClassSeen{SsdClass()});
  VolumeClaimFact claim;
  claim.key = {"default", name};
  claim.uid = fmt::format("volume-claim-{}", ++uids_);
  claim.storage_class = "ssd";
  Touch(volume_claims_[name] = claim);
}

void FakeApi::AddVolume(const VolumeFact& volume) {
  volumes_[volume.name] = volume;
  events_.push_back(VolumeSeen{std::make_shared<const VolumeFact>(volume)});
}

void FakeApi::ChangeVolumeClaim(const std::string& name,
                                const std::function<void(VolumeClaimFact&)>& change) {
  change(volume_claims_.at(name));
  Touch(volume_claims_.at(name));
}

void FakeApi::Touch(VolumeClaimFact& claim) {
  claim.resource_version = std::to_string(++version_);
  events_.push_back(VolumeClaimSeen{std::make_shared<const VolumeClaimFact>(claim)});
}

void FakeApi::CarryOut(const VolumeNodeWrite& write, ApiResult& result) {
  const auto found = volume_claims_.find(write.base->key.name);
  if (found == volume_claims_.end()) {
    result.outcome = WriteOutcome::kGone;
  } else if (found->second.resource_version != write.base->resource_version) {
    result.outcome = WriteOutcome::kConflict;
  } else {
    found->second.selected_node = write.node;
    Touch(found->second);
  }
}

void FakeApi::AddNode(NodeFacts node) {
  nodes_[node.name] = node;
  events_.push_back(NodeSeen{InternAlone(std::move(node))});
}

void FakeApi::ChangeGang(const std::string& name, const std::function<void(GangFact&)>& change) {
  GangFact& gang = gangs_.at(name);
  change(gang);
  ++gang.generation;
  events_.push_back(GangSeen{std::make_shared<const GangFact>(gang)});
}

void FakeApi::RemoveGang(const std::string& name) {
  const GangFact gang = gangs_.at(name);
  gangs_.erase(name);
  events_.push_back(GangGone{gang.key, gang.uid});
}

void FakeApi::ChangeNode(const std::string& name, const std::function<void(NodeFacts&)>& change) {
  NodeFacts& node = nodes_.at(name);
  change(node);
  events_.push_back(NodeSeen{InternAlone(node)});
}

void FakeApi::ChangePod(const std::string& name, const std::function<void(PodFact&)>& change) {
  change(pods_.at(name));
  Touch(pods_.at(name));
}

void FakeApi::AddBlock(const std::string& name, const std::string& offering,
                       const BlockTerms& terms, const std::string& owner) {
  BlockFact block{.key = {owner, name}, .uid = fmt::format("block-{}", ++uids_)};
  block.order = {.offering_id = offering,
                 .key = block.key,
                 .uid = block.uid,
                 .token = block.uid,
                 .terms = terms};
  Touch(blocks_[name] = block);
}

void FakeApi::ChangeBlock(const std::string& name, const std::function<void(BlockFact&)>& change) {
  change(blocks_.at(name));
  Touch(blocks_.at(name));
}

std::shared_ptr<const BlockView> FakeApi::BlockStatus(const std::string& name) const {
  const auto found = block_status_.find(name);
  return found == block_status_.end() ? nullptr : found->second;
}

void FakeApi::Touch(BlockFact& block) {
  block.resource_version = std::to_string(++version_);
  events_.push_back(BlockSeen{std::make_shared<const BlockFact>(block)});
}

void FakeApi::CarryOut(const GangCreation& write, ApiResult& result) {
  if (gangs_.contains(write.key.name)) {
    result.outcome = WriteOutcome::kConflict;
    return;
  }
  AddGang(write.key.name, static_cast<int>(write.wish->request.members));
  GangFact& gang = gangs_.at(write.key.name);
  gang.made = true;
  gang.shape = write.wish->request.shape;
  gang.slices = static_cast<int>(write.wish->request.slices);
  events_.push_back(GangSeen{std::make_shared<const GangFact>(gang)});
}

void FakeApi::AddWorkload(const WorkloadFact& workload) {
  workloads_[workload.key.name] = workload;
  events_.push_back(WorkloadSeen{std::make_shared<const WorkloadFact>(workload)});
}

void FakeApi::RemoveWorkload(const std::string& name) {
  const WorkloadFact workload = workloads_.at(name);
  workloads_.erase(name);
  events_.push_back(WorkloadGone{workload.key, workload.uid});
}

void FakeApi::AddClaimTemplate(const std::string& name) {
  PutTemplate({.key = {"default", name}, .uid = fmt::format("template-{}", ++uids_)});
}

void FakeApi::PutTemplate(const ClaimTemplateFact& made) {
  templates_[made.key.name] = made;
  events_.push_back(ClaimTemplateSeen{std::make_shared<const ClaimTemplateFact>(made)});
  MakeClaimsOfTemplates();
}

void FakeApi::RemoveClaimTemplate(const std::string& name) {
  const ClaimTemplateFact gone = templates_.at(name);
  templates_.erase(name);
  events_.push_back(ClaimTemplateGone{gone.key, gone.uid});
}

void FakeApi::AddPodOfTemplate(const std::string& name, const std::string& claim_template) {
  AddPod(name, "", {""});
  ChangePod(name, [&](PodFact& pod) { pod.templates = {claim_template}; });
  MakeClaimsOfTemplates();
}

void FakeApi::MakeClaimsOfTemplates() {
  for (auto& [name, pod] : pods_) {
    if (pod.templates.empty() || !pod.claims[0].claim.empty()) continue;
    if (!templates_.contains(pod.templates[0])) continue;
    AddClaim(name + "-chips", 10);
    pod.claims[0].claim = name + "-chips";
    Touch(pod);
  }
}

void FakeApi::CarryOut(const ClaimTemplateCreation& write, ApiResult& result) {
  const WorkloadFact& workload = *write.workload;
  if (templates_.contains(workload.claim_template)) {
    result.outcome = WriteOutcome::kConflict;
    return;
  }
  const auto owner = workloads_.find(workload.key.name);
  if (owner == workloads_.end() || owner->second.uid != workload.uid) {
    return;  // made, and collected at once: the owner is gone
  }
  auto wish = std::make_shared<GangWish>();
  wish->gang = workload.key.name;
  wish->group = {.api = GroupApi::kNeuron, .group = workload.key.name};
  PutTemplate({.key = workload.TemplateKey(),
               .uid = fmt::format("template-{}", ++uids_),
               .workload = workload.key.name,
               .workload_uid = workload.uid,
               .wish = std::move(wish)});
}

void FakeApi::CarryOut(const WorkloadStatusWrite& write, ApiResult& result) {
  const auto found = workloads_.find(write.key.name);
  if (found == workloads_.end()) {
    result.outcome = WriteOutcome::kGone;
    return;
  }
  WorkloadFact& workload = found->second;
  workload_statuses_[write.key.name] = *write.status;
  workload.resource_version = std::to_string(++version_);
  workload.shown = version_;
  workload.conditions.clear();
  for (const WorkloadCondition& condition : write.status->conditions) {
    workload.conditions.push_back({std::string(condition.type), condition.holds, condition.since});
  }
  result.resource_version = workload.resource_version;
  result.shown = workload.shown;
  events_.push_back(WorkloadSeen{std::make_shared<const WorkloadFact>(workload)});
}

void FakeApi::AddExtendedClass(const std::string& name, const std::string& resource) {
  ClassFact made = *ChipClass();
  made.name = name;
  made.extended_resource = resource;
  made.created = WallTime(std::chrono::seconds(++uids_));
  extended_classes_[name] = made;
  events_.push_back(ClassSeen{std::make_shared<const ClassFact>(made)});
}

void FakeApi::RemoveClass(const std::string& name) {
  extended_classes_.erase(name);
  events_.push_back(ClassGone{name});
}

void FakeApi::AddAskingPod(const std::string& name, const std::string& gang,
                           const std::string& resource, int chips) {
  AddPod(name, gang, {});
  PodFact& pod = pods_.at(name);
  pod.extended_asks = std::make_shared<const std::vector<kube::ExtendedAsk>>(
      1, kube::ExtendedAsk{.container = "main",
                           .container_index = 0,
                           .ends_first = false,
                           .resource = resource,
                           .resource_index = 0,
                           .count = chips});
  kube::PodNeeds needs;
  needs.amounts = {{resource, chips}, {"pods", 1}};
  pod.needs = std::make_shared<const kube::PodNeeds>(std::move(needs));
  Touch(pod);
}

void FakeApi::CarryOut(const PodClaimStatusWrite& write, ApiResult& result) {
  const auto found = pods_.find(write.key.name);
  if (found == pods_.end()) {
    result.outcome = WriteOutcome::kGone;
    return;
  }
  PodFact& pod = found->second;
  if (pod.uid != write.uid) {
    result.outcome = WriteOutcome::kConflict;
    return;
  }
  if (keeps_extended && pod.extended_claim != write.status) {
    if (!pod.node.empty()) faults.push_back("a bound pod got another claim");
    pod.extended_claim = write.status;
    pod.claims = {{.entry = "", .claim = write.status.claim, .none = false}};
    Touch(pod);
  }
  result.pod = std::make_shared<const PodFact>(pod);
}

void FakeApi::CarryOut(const ExtendedClaimCreation& write, ApiResult& result) {
  const std::string& name = write.claim->status.claim;
  const auto pod = pods_.find(write.pod.name);
  if (pod == pods_.end() || pod->second.uid != write.uid) {
    return;  // made, and collected at once: the owner is gone
  }
  if (claims_.contains(name)) {
    result.outcome = WriteOutcome::kConflict;
    return;
  }
  AddClaim(name, static_cast<int>(write.claim->requests.front().count));
  ClaimFact& claim = claims_.at(name);
  claim.protected_by_finalizer = false;
  ClaimSpec spec;
  for (const ExtendedRequest& wished : write.claim->requests) {
    ClaimRequest& request = spec.requests.emplace_back();
    request.name = wished.name;
    request.alternatives.resize(1);
    request.alternatives[0].device_class = wished.device_class;
    request.alternatives[0].count = wished.count;
  }
  claim.spec = std::make_shared<const ClaimSpec>(std::move(spec));
  Touch(claim);
}

void FakeApi::CarryOut(const BlockCreation&, ApiResult& result) {
  result.outcome = WriteOutcome::kRefused;
}

void FakeApi::CarryOut(const BlockFinalizerWrite& write, ApiResult& result) {
  const auto found = blocks_.find(write.base->key.name);
  if (found == blocks_.end()) {
    result.outcome = WriteOutcome::kRefused;
    return;
  }
  found->second.protected_by_finalizer = write.add;
  Touch(found->second);
}

void FakeApi::CarryOut(const BlockStatusWrite& write, ApiResult& result) {
  const auto found = blocks_.find(write.key.name);
  if (found == blocks_.end()) {
    result.outcome = WriteOutcome::kRefused;
    return;
  }
  const Block* shown = write.view->block.get();
  found->second.record = shown == nullptr ? "" : Hex(EncodeBlock(*shown));
  block_status_[write.key.name] = write.view;
  Touch(found->second);
}

void FakeApi::AddNode(const std::string& name, int chips) {
  NodeFacts node;
  node.name = name;
  for (int i = 0; i < chips; ++i) {
    Device device;
    device.name = fmt::format("neuron-device-{}", i);
    device.attributes = {
        {{std::string(kNeuronDriver), "resourceType"}, std::string("neuron_device")},
        {{std::string(kNeuronDriver), "deviceId"}, std::int64_t{i}},
        {{std::string(kNeuronDriver), "instanceType"}, std::string("trn2.48xlarge")}};
    node.devices.push_back(std::move(device));
  }
  nodes_[name] = node;
  events_.push_back(NodeSeen{InternAlone(node)});
}

void FakeApi::RemoveNode(const std::string& name) {
  nodes_.erase(name);
  events_.push_back(NodeGone{name});
}

void FakeApi::AddGang(const std::string& name, int members) {
  GangFact gang;
  gang.key = {"default", name};
  gang.uid = fmt::format("gang-{}", ++uids_);
  gang.generation = 1;
  gang.members = members;
  gang.created = WallTime(std::chrono::seconds(uids_));
  gangs_[name] = gang;
  events_.push_back(GangSeen{std::make_shared<const GangFact>(gang)});
}

void FakeApi::AddPod(const std::string& name, const std::string& gang,
                     const std::vector<std::string>& claims) {
  PodFact pod;
  pod.key = {"default", name};
  pod.uid = fmt::format("pod-{}", ++uids_);
  pod.gang = gang;
  pod.created = WallTime(std::chrono::seconds(uids_));
  for (const std::string& claim : claims) pod.claims.push_back({"chips", claim, false});
  Touch(pods_[name] = pod);
}

void FakeApi::AddClaim(const std::string& name, int chips) {
  ClaimFact claim;
  claim.key = {"default", name};
  claim.uid = fmt::format("claim-{}", ++uids_);
  ClaimSpec spec;
  ClaimRequest request;
  request.name = "chips";
  request.alternatives.resize(1);
  request.alternatives[0].device_class = std::string(kNeuronDriver);
  request.alternatives[0].count = chips;
  spec.requests.push_back(std::move(request));
  claim.spec = std::make_shared<const ClaimSpec>(std::move(spec));
  claim.protected_by_finalizer = protects_claims;
  Touch(claims_[name] = claim);
}

void FakeApi::AddPodWithClaim(const std::string& name, const std::string& gang, int chips) {
  AddPod(name, gang, {name + "-chips"});
  AddClaim(name + "-chips", chips);
}

void FakeApi::RemovePod(const std::string& name) {
  const PodFact pod = pods_.at(name);
  pods_.erase(name);
  events_.push_back(PodGone{pod.key, pod.uid});
}

void FakeApi::DeletePod(const std::string& name) {
  PodFact& pod = pods_.at(name);
  if (pod.node.empty() || pod.finished) {
    RemovePod(name);
  } else {
    pod.deleting = true;
    Touch(pod);
  }
}

void FakeApi::RemoveClaim(const std::string& name) {
  const ClaimFact claim = claims_.at(name);
  claims_.erase(name);
  events_.push_back(ClaimGone{claim.key, claim.uid});
}

void FakeApi::BindByOther(const std::string& pod, const std::string& claim,
                          const std::string& node) {
  PodFact& bound = pods_.at(pod);
  ClaimFact& given = claims_.at(claim);
  Allocation allocation;
  allocation.node = node;
  allocation.results.resize(1);
  allocation.results[0].request = "chips";
  allocation.results[0].driver = std::string(kNeuronDriver);
  allocation.results[0].pool = node;
  allocation.results[0].device = "neuron-device-0";
  given.allocation = std::make_shared<const Allocation>(std::move(allocation));
  given.protected_by_finalizer = true;
  given.reserved_for.push_back({"", "pods", pod, bound.uid});
  Touch(given);
  bound.node = node;
  Touch(bound);
}

void FakeApi::FinishPod(const std::string& name, bool succeeded) {
  PodFact& pod = pods_.at(name);
  pod.finished = true;
  pod.succeeded = succeeded;
  Touch(pod);
}

void FakeApi::RunControllers() {
  std::vector<std::string> ended;
  for (const auto& [name, pod] : pods_) {
    if (pod.deleting) ended.push_back(name);
  }
  for (const std::string& name : ended) RemovePod(name);
  for (auto& [name, claim] : claims_) {
    const auto before = claim.reserved_for.size();
    std::erase_if(claim.reserved_for, [&](const Reservation& held) {
      const auto pod = pods_.find(held.name);
      return pod == pods_.end() || pod->second.uid != held.uid || pod->second.finished;
    });
    if (claim.reserved_for.size() == before) continue;
    if (claim.reserved_for.empty() && claim.protected_by_finalizer) {
      claim.allocation = nullptr;
      claim.protected_by_finalizer = false;
    }
    Touch(claim);
  }
}

void FakeApi::Touch(PodFact& pod) {
  pod.resource_version = std::to_string(++version_);
  events_.push_back(PodSeen{std::make_shared<const PodFact>(pod)});
}

void FakeApi::Touch(ClaimFact& claim) {
  claim.resource_version = std::to_string(++version_);
  events_.push_back(ClaimSeen{std::make_shared<const ClaimFact>(claim)});
}

ApiResult FakeApi::Execute(const ApiWrite& write) {
  ApiResult result = ResultOf(write);
  std::visit([&](const auto& what) { CarryOut(what, result); }, write.what);
  return result;
}

void FakeApi::CarryOut(const GangStatusWrite& write, ApiResult&) {
  statuses_[write.key.name] = *write.status;
  const auto gang = gangs_.find(write.key.name);
  if (gang == gangs_.end()) return;
  // As read_facts.h reads the written status.
  const GangStatus& status = *write.status;
  gang->second.past = nullptr;
  if (status.start_time) {
    gang->second.past = std::make_shared<const GangPast>(
        GangPast{status.placement, status.slices, status.start_time, status.completion_time});
  }
  for (const GangCondition& condition : status.conditions) {
    if (condition.type != ConditionType::kFailed || !gang->second.failed.empty()) continue;
    gang->second.failed = condition.message;
    events_.push_back(GangSeen{std::make_shared<const GangFact>(gang->second)});
  }
}

void FakeApi::CarryOut(const PodConditionWrite& write, ApiResult&) {
  conditions_[write.key.name] = write.message;
}

void FakeApi::CarryOut(const PodReclaimWrite& write, ApiResult& result) {
  const auto pod = pods_.find(write.key.name);
  if (pod == pods_.end() || pod->second.uid != write.uid) {
    result.outcome = WriteOutcome::kGone;
    return;
  }
  pod->second.bound_reclaim = write.reclaim;
  Touch(pod->second);
}

void FakeApi::CarryOut(const EventNote& event, ApiResult&) { notes_.push_back(event); }

void FakeApi::CarryOut(const ClaimWrite& write, ApiResult& result) {
  const DecidedClaim& decided = write.claim();
  const auto found = claims_.find(decided.name);
  if (found == claims_.end()) {
    result.outcome = WriteOutcome::kGone;
    return;
  }
  ClaimFact& claim = found->second;
  if (write.kind != WriteKind::kReadClaim) {
    if (write.base->resource_version != claim.resource_version || write.base->uid != claim.uid) {
      result.outcome = WriteOutcome::kConflict;
      return;
    }
    std::set<std::string> consumers;
    for (const std::uint32_t pod : decided.consumers) {
      consumers.insert(write.decision->pods[pod].uid);
    }
    if (write.kind == WriteKind::kAddFinalizer) {
      claim.protected_by_finalizer = true;
    } else if (write.kind == WriteKind::kRemoveFinalizer) {
      if (claim.allocation != nullptr) faults.push_back("finalizer removed under an allocation");
      claim.protected_by_finalizer = false;
    } else if (write.kind == WriteKind::kAllocate) {
      if (!claim.protected_by_finalizer) faults.push_back("allocated without a finalizer");
      if (!decided.allocated_before) {
        claim.allocation = std::make_shared<const Allocation>(decided.allocation);
      }
      for (const std::uint32_t pod : decided.consumers) {
        const DecidedPod& p = write.decision->pods[pod];
        if (!claim.ReservedFor(p.uid)) claim.reserved_for.push_back({"", "pods", p.name, p.uid});
      }
    } else {
      for (const Reservation& held : claim.reserved_for) {
        const auto pod = pods_.find(held.name);
        if (consumers.contains(held.uid) && pod != pods_.end() && pod->second.uid == held.uid &&
            !pod->second.node.empty() && !pod->second.finished) {
          faults.push_back(
              fmt::format("claim {} taken away from running pod {}", decided.name, held.name));
        }
      }
      std::erase_if(claim.reserved_for,
                    [&](const Reservation& held) { return consumers.contains(held.uid); });
      if (claim.reserved_for.empty()) claim.allocation = nullptr;
    }
    Touch(claim);
    CheckDevices();
  }
  auto answer = std::make_shared<ClaimFact>(claim);
  answer->spec = nullptr;
  result.claim = std::move(answer);
}

void FakeApi::CarryOut(const PodDeletion& write, ApiResult& result) {
  const auto found = pods_.find(write.pod().name);
  if (found == pods_.end()) {
    result.outcome = WriteOutcome::kGone;
  } else if (found->second.uid != write.pod().uid) {
    result.outcome = WriteOutcome::kConflict;
  } else {
    DeletePod(write.pod().name);
  }
}

void FakeApi::CarryOut(const PodWrite& write, ApiResult& result) {
  const DecidedPod& decided = write.pod();
  const auto found = pods_.find(decided.name);
  if (found == pods_.end()) {
    result.outcome = WriteOutcome::kGone;
    return;
  }
  PodFact& pod = found->second;
  if (write.kind == WriteKind::kReadPod) {
    result.pod = std::make_shared<const PodFact>(pod);
  } else if (pod.uid != decided.uid) {
    result.outcome = WriteOutcome::kConflict;
  } else if (pod.deleting || !pod.node.empty()) {
    result.outcome = WriteOutcome::kConflict;
  } else {
    for (const PodClaim& entry : pod.claims) {
      const auto claim = claims_.find(entry.claim);
      if (claim == claims_.end() || claim->second.allocation == nullptr ||
          !claim->second.ReservedFor(pod.uid)) {
        faults.push_back(fmt::format("pod {} bound without its claim", decided.name));
      }
    }
    pod.node = decided.node;
    pod.bound_gang_uid = write.decision->uid;
    pod.bound_rank = decided.rank;
    pod.bound_slice = decided.slice;
    pod.bound_reservation = write.decision->reservation;
    pod.scheduled_at = now;
    pod.ready = starts_pods;
    if (decided.slice < write.decision->slices.size()) {
      pod.bound_placement = PlacementText(write.decision->slices[decided.slice]);
    }
    Touch(pod);
  }
}

std::vector<Command> FakeApi::TakeEvents() { return std::exchange(events_, {}); }

void FakeApi::PutBudget(const std::string& name, const std::string& app, std::int64_t allowed) {
  auto budget = std::make_shared<BudgetFact>();
  budget->metadata.ns = "default";
  budget->metadata.name = name;
  budget->metadata.uid = "uid-budget-" + name;
  TAHOMA_CHECK_OK(budget->selector.Require("app", "In", {app}));
  budget->allowed = allowed;
  budgets_[name] = budget;
  events_.push_back(BudgetSeen{budget});
}

void FakeApi::PutQueue(const std::string& name, const std::function<void(QueueSpec&)>& change) {
  auto spec = std::make_shared<QueueSpec>();
  spec->name = name;
  spec->uid = "uid-queue-" + name;
  spec->namespaces = {kEveryNamespace};
  change(*spec);
  queues_[name] = spec;
  events_.push_back(QueueSeen{spec});
}

void FakeApi::RemoveQueue(const std::string& name) {
  events_.push_back(QueueGone{name, queues_.at(name)->uid});
  queues_.erase(name);
}

void FakeApi::PutQueueCalendar(const std::string& name,
                               const std::function<void(QueueCalendarSpec&)>& change) {
  auto spec = std::make_shared<QueueCalendarSpec>();
  spec->name = name;
  spec->uid = "uid-calendar-" + name;
  change(*spec);
  queue_calendars_[name] = spec;
  events_.push_back(QueueCalendarSeen{spec});
}

void FakeApi::RemoveQueueCalendar(const std::string& name) {
  events_.push_back(QueueCalendarGone{name, queue_calendars_.at(name)->uid});
  queue_calendars_.erase(name);
}

void FakeApi::PutWindow(const std::string& name, const std::string& node,
                        const std::function<void(WindowSpec&)>& change) {
  auto spec = std::make_shared<WindowSpec>();
  spec->name = name;
  spec->uid = "uid-window-" + name;
  spec->nodes = {node};
  change(*spec);
  windows_[name] = spec;
  events_.push_back(WindowSeen{.window = spec});
}

void FakeApi::RemoveWindow(const std::string& name) {
  events_.push_back(WindowGone{name, windows_.at(name)->uid});
  windows_.erase(name);
  window_status_.erase(name);
}

std::shared_ptr<const WindowStatus> FakeApi::StatusOfWindow(const std::string& name) const {
  const auto found = window_status_.find(name);
  return found == window_status_.end() ? nullptr : found->second;
}

void FakeApi::CarryOut(const WindowStatusWrite& write, ApiResult& result) {
  if (windows_.contains(write.name)) {
    window_status_[write.name] = write.status;
  } else {
    result.outcome = WriteOutcome::kGone;
  }
}

void FakeApi::PutDefragmentation(const std::string& name,
                                 const std::function<void(DefragmentationSpec&)>& change) {
  const auto [found, added] = defragmentations_.try_emplace(name);
  DefragmentationFact& fact = found->second;
  if (added) {
    fact.name = name;
    fact.uid = fmt::format("defragmentation-{}", ++uids_);
    fact.created = now + std::chrono::milliseconds(uids_);
  }
  ++fact.generation;
  change(fact.spec);
  fact.resource_version = std::to_string(++version_);
  events_.push_back(DefragmentationSeen{std::make_shared<const DefragmentationFact>(fact)});
}

void FakeApi::RemoveDefragmentation(const std::string& name) {
  events_.push_back(DefragmentationGone{name, defragmentations_.at(name).uid});
  defragmentations_.erase(name);
}

void FakeApi::CarryOut(const DefragmentationStatusWrite& write, ApiResult& result) {
  const auto found = defragmentations_.find(write.name);
  if (found == defragmentations_.end() || found->second.uid != write.uid) {
    result.outcome = WriteOutcome::kGone;
    return;
  }
  DefragmentationFact& fact = found->second;
  fact.status = *write.status;
  fact.resource_version = std::to_string(++version_);
  fact.shown = version_;
  result.resource_version = fact.resource_version;
  result.shown = fact.shown;
  events_.push_back(DefragmentationSeen{std::make_shared<const DefragmentationFact>(fact)});
}

void FakeApi::Relist() {
  events_.clear();
  for (const auto& [name, node] : nodes_) {
    events_.push_back(NodeSeen{InternAlone(node)});
  }
  for (const auto& [name, gang] : gangs_) {
    events_.push_back(GangSeen{std::make_shared<const GangFact>(gang)});
  }
  for (const auto& [name, budget] : budgets_) events_.push_back(BudgetSeen{budget});
  for (const auto& [name, one] : queue_calendars_) events_.push_back(QueueCalendarSeen{one});
  for (const auto& [name, queue] : queues_) events_.push_back(QueueSeen{queue});
  for (const auto& [name, window] : windows_) events_.push_back(WindowSeen{.window = window});
  for (const auto& [name, fact] : defragmentations_) {
    events_.push_back(DefragmentationSeen{std::make_shared<const DefragmentationFact>(fact)});
  }
  for (const auto& [name, workload] : workloads_) {
    events_.push_back(WorkloadSeen{std::make_shared<const WorkloadFact>(workload)});
  }
  for (const auto& [name, made] : templates_) {
    events_.push_back(ClaimTemplateSeen{std::make_shared<const ClaimTemplateFact>(made)});
  }
  if (has_class_) events_.push_back(ClassSeen{ChipClass()});
  for (const auto& [name, one] : extended_classes_) {
    events_.push_back(ClassSeen{std::make_shared<const ClassFact>(one)});
  }
  for (const auto& [name, block] : blocks_) {
    events_.push_back(BlockSeen{std::make_shared<const BlockFact>(block)});
  }
  for (const auto& [name, claim] : claims_) {
    events_.push_back(ClaimSeen{std::make_shared<const ClaimFact>(claim)});
  }
  for (const auto& [name, volume] : volumes_) {
    events_.push_back(VolumeSeen{std::make_shared<const VolumeFact>(volume)});
  }
  if (!volume_claims_.empty()) events_.push_back(StorageClassSeen{SsdClass()});
  for (const auto& [name, claim] : volume_claims_) {
    events_.push_back(VolumeClaimSeen{std::make_shared<const VolumeClaimFact>(claim)});
  }
  for (const auto& [name, pod] : pods_) {
    events_.push_back(PodSeen{std::make_shared<const PodFact>(pod)});
  }
  events_.push_back(WatchesSynced{});
}

void FakeApi::Restore(const Backup& backup) {
  for (const auto& [name, pod] : pods_) {
    if (!backup.pods.contains(name)) events_.push_back(PodGone{pod.key, pod.uid});
  }
  for (const auto& [name, claim] : claims_) {
    if (!backup.claims.contains(name)) events_.push_back(ClaimGone{claim.key, claim.uid});
  }
  pods_ = backup.pods;
  claims_ = backup.claims;
  for (auto& [name, claim] : claims_) Touch(claim);
  for (auto& [name, pod] : pods_) Touch(pod);
}

void FakeApi::CheckDevices() {
  std::map<std::string, std::string> holder;
  for (const auto& [name, claim] : claims_) {
    if (claim.allocation == nullptr) continue;
    for (const DeviceResult& result : claim.allocation->results) {
      const auto [at, added] = holder.emplace(result.pool + "/" + result.device, name);
      if (!added) {
        faults.push_back(fmt::format("{} is given to {} and {}", at->first, at->second, name));
      }
    }
  }
}

void FakeApi::CheckAtRest() {
  CheckDevices();
  std::map<std::string, std::pair<int, int>> gangs;  // bound, not bound, of those alive
  for (const auto& [name, pod] : pods_) {
    if (pod.finished) continue;
    auto& [bound, unbound] = gangs[pod.gang.empty() ? "pod " + name : pod.gang];
    ++(pod.node.empty() ? unbound : bound);
    for (const PodClaim& entry : pod.claims) {
      const auto claim = claims_.find(entry.claim);
      const bool given = claim != claims_.end() && claim->second.ReservedFor(pod.uid);
      if (given != !pod.node.empty()) {
        faults.push_back(fmt::format("pod {} is {} but its claim {}", name,
                                     pod.node.empty() ? "unbound" : "bound",
                                     given ? "is reserved" : "is not"));
      }
    }
  }
  for (const auto& [gang, count] : gangs) {
    const auto fact = gangs_.find(gang);
    const bool enough = fact != gangs_.end() && fact->second.changes_size() &&
                        count.first >= fact->second.least_members();
    if (count.first != 0 && count.second != 0 && !enough) {
      faults.push_back(
          fmt::format("gang {} has {} pods bound and {} not", gang, count.first, count.second));
    }
  }
  for (const auto& [name, claim] : claims_) {
    if ((claim.allocation != nullptr) != !claim.reserved_for.empty()) {
      faults.push_back(fmt::format("claim {} leaks: allocated {}, {} reservations", name,
                                   claim.allocation != nullptr, claim.reserved_for.size()));
    }
    if (claim.protected_by_finalizer && claim.allocation == nullptr && !protects_claims) {
      faults.push_back(fmt::format("claim {} keeps its finalizer", name));
    }
  }
}

std::vector<Decision> FirstFit(const ClusterState& view, const Queue& queue, WallTime, Explaining) {
  std::map<std::string, std::uint16_t> busy;
  std::map<std::string, std::uint16_t> has;
  for (std::size_t i = 0; i < view.node_count(); ++i) {
    const NodeState& node = view.node(NodeId(i));
    if (node.node == nullptr) continue;
    busy[node.node->name] = node.BusyChips();
    has[node.node->name] = node.node->family->devices->chip_mask;
  }
  std::vector<Decision> decisions;
  for (const auto& gang : queue) {
    auto trial = busy;
    Placement placement;
    bool fits = true;
    for (const MemberSpec& member : gang->members) {
      MemberPlacement placed;
      placed.pod = member.pod;
      placed.uid = member.uid;
      placed.rank = static_cast<int>(placement.members.size());
      std::int64_t wanted = 0;
      for (const ClaimSpec& claim : member.claims) {
        if (claim.allocated_node) placed.node = *claim.allocated_node;
        if (!claim.allocated_node) wanted += claim.requests[0].alternatives[0].count;
      }
      for (const auto& [name, mask] : has) {
        const auto free = static_cast<std::uint16_t>(mask & ~trial[name]);
        if (placed.node.empty() && std::popcount(free) >= wanted) placed.node = name;
      }
      fits = fits && !placed.node.empty();
      if (!fits) break;
      for (const ClaimSpec& claim : member.claims) {
        if (claim.allocated_node) continue;
        ClaimPlacement given{.claim = claim.key, .uid = claim.uid, .allocation = {}};
        given.allocation.node = placed.node;
        for (std::int64_t i = 0; i < claim.requests[0].alternatives[0].count; ++i) {
          const int chip =
              std::countr_zero(static_cast<std::uint16_t>(has[placed.node] & ~trial[placed.node]));
          trial[placed.node] = static_cast<std::uint16_t>(trial[placed.node] | (1U << chip));
          DeviceResult result;
          result.request = "chips";
          result.driver = std::string(kNeuronDriver);
          result.pool = placed.node;
          result.device = fmt::format("neuron-device-{}", chip);
          given.allocation.results.push_back(std::move(result));
        }
        placed.claims.push_back(std::move(given));
      }
      placement.members.push_back(std::move(placed));
    }
    Decision& decision = decisions.emplace_back();
    decision.gang = gang;
    if (fits) {
      busy = trial;
      decision.placement = std::move(placement);
    } else {
      decision.blocked.emplace();
      decision.blocked->message = "no node has room";
    }
  }
  return decisions;
}

}  // namespace tahoma::controller
