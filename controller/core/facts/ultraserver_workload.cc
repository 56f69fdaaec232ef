#include "controller/core/facts/ultraserver_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/read_facts.h"
#include "controller/model/workload_rules.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/field.h"
#include "lib/kube/name.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {
namespace {

using kube::Field;

constexpr std::string_view kKind = "NeuronUltraServerWorkload";
constexpr std::size_t kNameMost = 253;
// Reads what the spec asks for into the workload and the wish. Returns why the spec cannot be used.
std::string ReadSpec(Field spec, WorkloadFact& workload, GangWish& wish) {
  WorkloadRequest request{
      .instance_type = std::string(spec.At("instanceType").Text()),
      .topology_size = spec.At("topologySize").Int(),
      .server_count = spec.At("serverCount").Int(),
      .failure_strategy = std::string(spec.At("allocationPolicy").At("failureStrategy").Text())};
  const Field lnc = spec.At("config").At("logicalNeuronCore");
  if (lnc.has_value()) request.logical_neuron_core = lnc.Int();
  if (const auto wrong = kube::WrongDns1123Subdomain(workload.claim_template)) {
    return fmt::format("resourceClaimTemplate.name {}: {}",
                       CutUtf8(workload.claim_template, kNameMost), *wrong);
  }
  absl::StatusOr<WorkloadNeeds> needs = NeedsOf(request);
  if (!needs.ok()) return std::string(Message(needs.status()));
  workload.instance_type = std::move(request.instance_type);
  workload.topology_size = request.topology_size;
  workload.lnc = needs->lnc;
  wish.request = std::move(needs->gang);
  return "";
}

// Returns what the object shows of conditions; a time that cannot be read is left out.
std::vector<ShownCondition> ReadConditions(const Json& object) {
  kube::Reading reading(object);
  std::vector<ShownCondition> shown;
  for (const Field condition : reading.root().At("status").At("conditions").Items(16)) {
    const auto since = ParseTime(condition.At("lastTransitionTime").Text());
    if (!since.ok()) continue;
    shown.push_back({.type = std::string(condition.At("type").Text()),
                     .holds = condition.At("status").Text() == "True",
                     .since = *since});
  }
  return shown;
}

bool IsWorkload(const kube::OwnerReference& owner) {
  return owner.kind == kKind && owner.api_version.starts_with(kUltraServerWorkloads.group + "/");
}

bool IsOf(const ClaimTemplateFact& claim_template, const WorkloadFact& workload) {
  return claim_template.workload_uid == workload.uid;
}

WorkloadState StateOf(const WorkloadFact& workload, const WorkloadGang& gang) {
  if (workload.deleting) return WorkloadState::kDeallocating;
  const bool has_place = gang.decision != nullptr;
  switch (gang.phase) {
    case GangPhase::kPending:
      if (has_place) return WorkloadState::kDeallocating;  // its run is being undone
      return gang.reason == GangReason::kInvalid ? WorkloadState::kFailed : WorkloadState::kPending;
    case GangPhase::kPlaced:
      return gang.reason == GangReason::kCommitting ? WorkloadState::kAllocating
                                                    : WorkloadState::kAllocated;
    case GangPhase::kRunning:
    case GangPhase::kDegraded:
      return WorkloadState::kAllocated;
    case GangPhase::kFinished:
      return has_place ? WorkloadState::kDeallocating : WorkloadState::kPending;
    case GangPhase::kFailed:
      return WorkloadState::kFailed;
  }
  TAHOMA_CHECK(false);
  return WorkloadState::kPending;
}

void AddCondition(const WorkloadFact& workload, std::string_view type, bool holds,
                  const std::string& reason, const std::string& message, WallTime now,
                  WorkloadStatus& status) {
  WorkloadCondition condition{
      .type = type, .holds = holds, .reason = reason, .message = message, .since = now};
  for (const ShownCondition& shown : workload.conditions) {
    if (shown.type == type && shown.holds == holds) condition.since = shown.since;
  }
  status.conditions.push_back(std::move(condition));
}

}  // namespace

std::string_view ToString(WorkloadState state) {
  switch (state) {
    case WorkloadState::kPending:
      return "Pending";
    case WorkloadState::kAllocating:
      return "Allocating";
    case WorkloadState::kAllocated:
      return "Allocated";
    case WorkloadState::kFailed:
      return "Failed";
    case WorkloadState::kDeallocating:
      return "Deallocating";
  }
  TAHOMA_CHECK(false);
  return "";
}

kube::OwnerReference WorkloadFact::AsOwner() const {
  return {.api_version =
              fmt::format("{}/{}", kUltraServerWorkloads.group, kUltraServerWorkloads.version),
          .kind = std::string(kKind),
          .name = key.name,
          .uid = uid,
          .controller = true};
}

absl::StatusOr<std::shared_ptr<const WorkloadFact>> ParseWorkload(const Json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  auto workload = std::make_shared<WorkloadFact>();
  workload->key = {std::move(metadata.ns), std::move(metadata.name)};
  workload->uid = std::move(metadata.uid);
  workload->resource_version = std::move(metadata.resource_version);
  workload->generation = metadata.generation;
  workload->deleting = metadata.deleting;
  workload->shown = StatusDigest(object);
  workload->conditions = ReadConditions(object);
  const Field spec = reading.root().At("spec");
  workload->claim_template = spec.At("resourceClaimTemplate").At("name").Text();
  if (workload->claim_template.empty()) workload->claim_template = workload->key.name;
  auto wish = std::make_shared<GangWish>();
  wish->gang = workload->key.name;
  wish->group = {.api = GroupApi::kNeuron, .group = workload->key.name};
  wish->owner = workload->AsOwner();
  wish->terms = ReadGangTerms(object, workload->fault);
  const std::string fault = ReadSpec(spec, *workload, *wish);
  if (!fault.empty()) workload->fault = fault;
  workload->wish = std::move(wish);
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("neuronultraserverworkload"));
  return workload;
}

absl::StatusOr<std::shared_ptr<const ClaimTemplateFact>> ParseClaimTemplate(const Json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  auto fact = std::make_shared<ClaimTemplateFact>();
  fact->key = {std::move(metadata.ns), std::move(metadata.name)};
  fact->uid = std::move(metadata.uid);
  if (auto owner = kube::ControllerOf(object); owner && IsWorkload(*owner)) {
    auto wish = std::make_shared<GangWish>();
    wish->gang = owner->name;
    wish->group = {.api = GroupApi::kNeuron, .group = owner->name};
    fact->workload = std::move(owner->name);
    fact->workload_uid = std::move(owner->uid);
    fact->wish = std::move(wish);
  }
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("resourceclaimtemplate"));
  return fact;
}

std::vector<std::string> ReadTemplates(const Json& pod) {
  std::vector<std::string> names;
  for (const Json& entry : kube::ListAt(pod, {"spec", "resourceClaims"})) {
    const std::string_view name = kube::StringAt(entry, {"resourceClaimTemplateName"});
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

std::shared_ptr<const PodFact> JoinWorkload(std::shared_ptr<const PodFact> pod,
                                            const Facts& facts) {
  if (pod->templates.empty() || pod->tells_gang) return pod;
  std::shared_ptr<const GangWish> wish;
  for (const std::string& name : pod->templates) {
    const auto found = facts.claim_templates.Find(ClaimTemplateKey{pod->key.ns, name});
    if (found != nullptr && found->wish != nullptr && wish == nullptr) wish = found->wish;
  }
  const std::string gang = wish == nullptr ? "" : wish->gang;
  if (pod->gang == gang) return pod;
  auto joined = std::make_shared<PodFact>(*pod);
  joined->gang = gang;
  joined->wish = std::move(wish);
  return joined;
}

std::string TroubleOf(const WorkloadFact& workload, const Facts& facts) {
  if (!workload.fault.empty()) return workload.fault;
  const auto claim_template = facts.claim_templates.Find(workload.TemplateKey());
  if (claim_template != nullptr && !IsOf(*claim_template, workload)) {
    return fmt::format(
        "ResourceClaimTemplate {} was made {}: set spec.resourceClaimTemplate.name of a new "
        "workload to another name",
        workload.claim_template,
        claim_template->workload.empty()
            ? "by somebody else"
            : fmt::format("for NeuronUltraServerWorkload {}", claim_template->workload));
  }
  const auto gang = facts.gangs.Find(workload.key);
  if (gang != nullptr && !gang->made) {
    return fmt::format("Gang {} was made by somebody else: give the workload another name",
                       workload.key.name);
  }
  return "";
}

WorkloadStatus StatusOf(const WorkloadFact& workload, const Facts& facts, const WorkloadGang& gang,
                        WallTime now) {
  WorkloadStatus status;
  status.observed_generation = workload.generation;
  std::string trouble = TroubleOf(workload, facts);
  if (trouble.empty()) trouble = gang.refusal;
  status.state = StateOf(workload, gang);
  if (!trouble.empty() && !workload.deleting) status.state = WorkloadState::kFailed;
  const bool allocated = status.state == WorkloadState::kAllocated;
  if (allocated && gang.decision != nullptr) {
    for (const DecidedSlice& slice : gang.decision->slices) {
      const bool known =
          std::ranges::find(status.ultraservers, slice.domain) != status.ultraservers.end();
      if (!slice.domain.empty() && !known) status.ultraservers.push_back(slice.domain);
    }
    status.allocated_at = gang.decision->placed;
  }
  const bool failed = status.state == WorkloadState::kFailed;
  const bool ready = trouble.empty() && gang.phase == GangPhase::kRunning;
  const bool progressing = status.state == WorkloadState::kAllocating ||
                           status.state == WorkloadState::kDeallocating ||
                           (allocated && gang.phase == GangPhase::kPlaced);
  const bool degraded = failed || (allocated && gang.phase == GangPhase::kDegraded);
  std::string reason(trouble.empty() ? ToString(gang.reason) : ToString(GangReason::kInvalid));
  if (reason.empty()) reason = ToString(GangPhase::kPending);
  const std::string& message = trouble.empty() ? gang.message : trouble;
  AddCondition(workload, "Ready", ready, reason, message, now, status);
  AddCondition(workload, "Progressing", progressing, reason, message, now, status);
  AddCondition(workload, "Degraded", degraded, reason, message, now, status);
  return status;
}

}  // namespace tahoma::controller
