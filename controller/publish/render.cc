#include "controller/publish/render.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "controller/core/facts/read_facts.h"
#include "controller/model/gang.h"
#include "controller/publish/render_block.h"
#include "controller/publish/render_defragmentation.h"
#include "controller/publish/render_queue.h"
#include "controller/publish/render_request.h"
#include "controller/publish/render_window.h"
#include "controller/publish/render_workload.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/answer.h"
#include "lib/kube/objects/claim.h"
#include "lib/kube/requests.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {
namespace {

using json = Json;

constexpr std::string_view kComponent = "tahoma";
// A message of the server is cut to what a condition can show.
constexpr std::size_t kMessageBytesMost = 1024;

kube::Request MergePatch(const kube::Resource& resource, const kube::ObjectKey& key, json body,
                         const char* subresource = "") {
  return kube::PatchRequest(resource, key, kube::PatchType::kMerge, std::move(body),
                            {.subresource = subresource});
}

json Precondition(const ClaimFact& base) {
  return {{"uid", base.uid}, {"resourceVersion", base.resource_version}};
}

kube::ObjectKey ClaimKeyOf(const ClaimWrite& write) {
  return {write.decision->key.ns, write.claim().name};
}

kube::Request RenderFinalizers(const ClaimWrite& write) {
  json finalizers = json::array();
  for (const std::string& other : write.base->other_finalizers) finalizers.push_back(other);
  if (write.kind == WriteKind::kAddFinalizer) finalizers.push_back(kube::kClaimFinalizer);
  json metadata = Precondition(*write.base);
  metadata["finalizers"] = finalizers.empty() ? json() : std::move(finalizers);
  return MergePatch(kube::kResourceClaims, ClaimKeyOf(write), {{"metadata", std::move(metadata)}});
}

kube::Request RenderAllocate(const ClaimWrite& write, AllocateBy by) {
  const DecidedClaim& claim = write.claim();
  const kube::ObjectKey claim_key = ClaimKeyOf(write);
  json reserved = json::array();
  for (const Reservation& held : write.base->reserved_for) {
    reserved.push_back(kube::RenderReservation(held));
  }
  for (const std::uint32_t index : claim.consumers) {
    const DecidedPod& pod = write.decision->pods[index];
    if (write.base->ReservedFor(pod.uid)) continue;
    reserved.push_back({{"resource", "pods"}, {"name", pod.name}, {"uid", pod.uid}});
  }
  json status = {{"reservedFor", std::move(reserved)}};
  const bool is_new = !claim.allocated_before && write.base->allocation == nullptr;
  if (is_new) status["allocation"] = kube::RenderAllocation(claim.allocation);
  if (!is_new || by == AllocateBy::kPatch) {
    return MergePatch(kube::kResourceClaims, claim_key,
                      {{"metadata", Precondition(*write.base)}, {"status", std::move(status)}},
                      "status");
  }
  // Such a claim has no status that must stay, so it is replaced: for that the server need not read
  // and write the claim once more, as for a patch. It takes metadata and spec from the old claim.
  json metadata = Precondition(*write.base);
  metadata["namespace"] = claim_key.ns;
  metadata["name"] = claim_key.name;
  return kube::UpdateRequest(kube::kResourceClaims, claim_key,
                             {{"apiVersion", "resource.k8s.io/v1"},
                              {"kind", "ResourceClaim"},
                              {"metadata", std::move(metadata)},
                              {"status", std::move(status)}},
                             {.subresource = "status"});
}

kube::Request RenderDeallocate(const ClaimWrite& write) {
  const DecidedClaim& claim = write.claim();
  json reserved = json::array();
  for (const Reservation& held : write.base->reserved_for) {
    bool ours = false;
    for (const std::uint32_t index : claim.consumers) {
      ours = ours || write.decision->pods[index].uid == held.uid;
    }
    if (!ours) reserved.push_back(kube::RenderReservation(held));
  }
  json status;
  if (reserved.empty()) {
    // Nobody else uses it: the devices' own status entries may stay only with the allocation.
    status = {{"reservedFor", nullptr}, {"allocation", nullptr}, {"devices", nullptr}};
  } else {
    status = {{"reservedFor", std::move(reserved)}};
  }
  return MergePatch(kube::kResourceClaims, ClaimKeyOf(write),
                    {{"metadata", Precondition(*write.base)}, {"status", std::move(status)}},
                    "status");
}

kube::Request RenderBind(const PodWrite& write) {
  const GangDecision& decision = *write.decision;
  const DecidedPod& pod = write.pod();
  json annotations = {{"tahoma.dev/gang-uid", decision.uid},
                      {"tahoma.dev/rank", std::to_string(pod.rank)},
                      {"tahoma.dev/world-size", std::to_string(decision.pods.size())},
                      {"tahoma.dev/slice", std::to_string(pod.slice)}};
  if (!decision.reservation.empty()) {
    annotations["tahoma.dev/capacity-reservation"] = decision.reservation;
  }
  if (decision.reclaim) {
    annotations[kReclaimAnnotation] = std::to_string(ReclaimTimestamp(*decision.reclaim));
  }
  if (pod.slice < decision.slices.size()) {
    annotations["tahoma.dev/placement"] = PlacementText(decision.slices[pod.slice]);
  }
  return kube::BindRequest({decision.key.ns, pod.name}, pod.uid, pod.node, std::move(annotations));
}

// Null removes what an earlier write has set.
json TimeOrNull(std::optional<WallTime> time) { return time ? json(FormatTime(*time)) : json(); }

// Renders a write of each kind but an event.
struct Renderer {
  AllocateBy by;

  kube::Request operator()(const ClaimWrite& write) const;
  kube::Request operator()(const PodWrite& write) const;
  kube::Request operator()(const PodDeletion& write) const;
  kube::Request operator()(const GangCreation& write) const;
  kube::Request operator()(const VolumeNodeWrite& write) const;
  kube::Request operator()(const PodClaimStatusWrite& write) const;
  kube::Request operator()(const ExtendedClaimCreation& write) const;
  kube::Request operator()(const GangStatusWrite& write) const;
  kube::Request operator()(const PodConditionWrite& write) const;
  kube::Request operator()(const PodReclaimWrite& write) const;
  kube::Request operator()(const BlockCreation& write) const { return RenderBlockCreation(write); }
  kube::Request operator()(const BlockFinalizerWrite& write) const {
    return RenderBlockFinalizer(write);
  }
  kube::Request operator()(const BlockStatusWrite& write) const { return RenderBlockStatus(write); }
  kube::Request operator()(const RequestStatusWrite& write) const {
    return RenderRequestStatus(write);
  }
  kube::Request operator()(const QueueCalendarStatusWrite& write) const {
    return RenderQueueCalendarStatus(write);
  }
  kube::Request operator()(const QueueStatusWrite& write) const { return RenderQueueStatus(write); }
  kube::Request operator()(const WindowStatusWrite& write) const {
    return RenderWindowStatus(write);
  }
  kube::Request operator()(const DefragmentationStatusWrite& write) const {
    return RenderDefragmentationStatus(write);
  }
  kube::Request operator()(const ClaimTemplateCreation& write) const {
    return RenderClaimTemplate(write);
  }
  kube::Request operator()(const WorkloadStatusWrite& write) const {
    return RenderWorkloadStatus(write);
  }
  kube::Request operator()(const EventNote&) const {
    TAHOMA_CHECK(false);
    return {};
  }
};

kube::Request Renderer::operator()(const ClaimWrite& write) const {
  switch (write.kind) {
    case WriteKind::kReadClaim:
      return kube::GetRequest(kube::kResourceClaims, ClaimKeyOf(write));
    case WriteKind::kAddFinalizer:
    case WriteKind::kRemoveFinalizer:
      return RenderFinalizers(write);
    case WriteKind::kAllocate:
      return RenderAllocate(write, by);
    case WriteKind::kDeallocate:
      return RenderDeallocate(write);
    default:
      break;
  }
  TAHOMA_CHECK(false);
  return {};
}

kube::Request Renderer::operator()(const PodWrite& write) const {
  if (write.kind == WriteKind::kBind) return RenderBind(write);
  return kube::GetRequest(kube::kPods, {write.decision->key.ns, write.pod().name});
}

kube::Request Renderer::operator()(const PodDeletion& write) const {
  return kube::DeleteRequest(kube::kPods, {write.decision->key.ns, write.pod().name},
                             {.uid = write.pod().uid, .grace_period_seconds = write.grace_seconds});
}

// The Gang goes with the controller of its pods, or their JobSet.
kube::Request Renderer::operator()(const GangCreation& write) const {
  const GangWish& wish = *write.wish;
  json metadata = {{"name", write.key.name},
                   {"namespace", write.key.ns},
                   {"labels", {{kMadeGangLabel, "true"}}}};
  if (wish.owner) {
    metadata["ownerReferences"] = json::array({{{"apiVersion", wish.owner->api_version},
                                                {"kind", wish.owner->kind},
                                                {"name", wish.owner->name},
                                                {"uid", wish.owner->uid}}});
  }
  json spec = {{"members", wish.request.members},
               {"slices", wish.request.slices},
               {"failurePolicy", wish.request.failure_policy},
               {"startWithin", wish.request.start_within},
               {"preemptible", wish.terms.preemptible},
               {"checkpointable", wish.terms.checkpointable}};
  if (wish.request.min_members) spec["minMembers"] = *wish.request.min_members;
  if (!wish.request.shape.empty()) spec["shape"] = wish.request.shape;
  if (wish.request.chips) spec["chips"] = *wish.request.chips;
  if (wish.priority) spec["priority"] = *wish.priority;
  if (!wish.terms.max_runtime.empty()) spec["maxRuntime"] = wish.terms.max_runtime;
  if (!wish.terms.min_runtime.empty()) spec["minRuntime"] = wish.terms.min_runtime;
  if (!wish.terms.block.empty()) spec["capacityBlock"] = wish.terms.block;
  return kube::CreateRequest(kGangs, write.key.ns,
                             {{"apiVersion", "tahoma.dev/v1alpha1"},
                              {"kind", "Gang"},
                              {"metadata", std::move(metadata)},
                              {"spec", std::move(spec)}});
}

kube::Request Renderer::operator()(const VolumeNodeWrite& write) const {
  const VolumeClaimFact& claim = *write.base;
  const json annotations = {{std::string(kube::kSelectedNode), write.node}};
  return MergePatch(kube::kVolumeClaims, {claim.key.ns, claim.key.name},
                    {{"metadata",
                      {{"uid", claim.uid},
                       {"resourceVersion", claim.resource_version},
                       {"annotations", annotations}}}});
}

kube::Request Renderer::operator()(const PodClaimStatusWrite& write) const {
  json mappings = json::array();
  for (const kube::ExtendedMapping& mapping : write.status.mappings) {
    mappings.push_back({{"containerName", mapping.container},
                        {"resourceName", mapping.resource},
                        {"requestName", mapping.request}});
  }
  json status = {{"resourceClaimName", write.status.claim},
                 {"requestMappings", std::move(mappings)}};
  return MergePatch(kube::kPods, {write.key.ns, write.key.name},
                    {{"metadata", {{"uid", write.uid}}},
                     {"status", {{"extendedResourceClaimStatus", std::move(status)}}}},
                    "status");
}

// The claim goes with its pod. As kube-scheduler's, the reference does not block the deletion of
// the pod: for that the controller would need the right to change finalizers of pods.
kube::Request Renderer::operator()(const ExtendedClaimCreation& write) const {
  json requests = json::array();
  for (const ExtendedRequest& request : write.claim->requests) {
    requests.push_back({{"name", request.name},
                        {"exactly",
                         {{"deviceClassName", request.device_class},
                          {"allocationMode", "ExactCount"},
                          {"count", request.count}}}});
  }
  json owner = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"name", write.pod.name},
                {"uid", write.uid},
                {"controller", true}};
  json metadata = {{"name", write.claim->status.claim},
                   {"namespace", write.pod.ns},
                   {"annotations", {{kube::kExtendedClaimAnnotation, "true"}}},
                   {"ownerReferences", json::array({std::move(owner)})}};
  return kube::CreateRequest(kube::kResourceClaims, write.pod.ns,
                             {{"apiVersion", "resource.k8s.io/v1"},
                              {"kind", "ResourceClaim"},
                              {"metadata", std::move(metadata)},
                              {"spec", {{"devices", {{"requests", std::move(requests)}}}}}});
}

kube::Request Renderer::operator()(const GangStatusWrite& write) const {
  const GangStatus& status = *write.status;
  json conditions = json::array();
  for (const GangCondition& condition : status.conditions) {
    conditions.push_back({{"type", ToString(condition.type)},
                          {"status", ToString(condition.status)},
                          {"reason", ToString(condition.reason)},
                          {"message", condition.message},
                          {"observedGeneration", status.observed_generation},
                          {"lastTransitionTime", FormatTime(condition.since)}});
  }
  json slices = json::array();
  for (const DecidedSlice& slice : status.slices) {
    slices.push_back({{"domain", slice.domain},
                      {"shape", slice.shape},
                      {"origin", slice.origin},
                      {"nodes", slice.nodes}});
  }
  json troubled = json::array();
  for (const MemberTrouble& member : status.troubled_members) {
    troubled.push_back({{"pod", member.pod},
                        {"rank", member.rank},
                        {"node", member.node},
                        {"message", member.message}});
  }
  json body = {{"metadata", {{"uid", write.uid}}},
               {"status",
                {{"phase", ToString(status.phase)},
                 {"reason", ToString(status.reason)},
                 {"queue", status.queue},
                 {"placement", status.placement},
                 {"predictedAllReduce", status.predicted_all_reduce},
                 {"boundMembers", status.bound_members},
                 {"readyMembers", status.ready_members},
                 {"troubledMembers", std::move(troubled)},
                 {"observedGeneration", status.observed_generation},
                 {"slices", std::move(slices)},
                 {"startTime", TimeOrNull(status.start_time)},
                 {"completionTime", TimeOrNull(status.completion_time)},
                 {"conditions", std::move(conditions)}}}};
  return MergePatch(kGangs, {write.key.ns, write.key.name}, std::move(body), "status");
}

// Strategic merge: conditions are merged by type (core/v1 PodCondition).
kube::Request Renderer::operator()(const PodConditionWrite& write) const {
  const json condition = {{"type", "PodScheduled"},
                          {"status", "False"},
                          {"reason", "Unschedulable"},
                          {"message", write.message},
                          {"lastTransitionTime", FormatTime(write.since)}};
  json body = {{"metadata", {{"uid", write.uid}}},
               {"status", {{"conditions", json::array({condition})}}}};
  return kube::PatchRequest(kube::kPods, {write.key.ns, write.key.name},
                            kube::PatchType::kStrategicMerge, std::move(body),
                            {.subresource = "status"});
}

kube::Request Renderer::operator()(const PodReclaimWrite& write) const {
  json annotations = {{kReclaimAnnotation, nullptr}};
  if (write.reclaim) {
    annotations[kReclaimAnnotation] = std::to_string(ReclaimTimestamp(*write.reclaim));
  }
  // Through the status, as annotations of pods may be written: nothing else of a pod is changed, so
  // the controller needs no right to patch pods.
  return MergePatch(kube::kPods, {write.key.ns, write.key.name},
                    {{"metadata", {{"uid", write.uid}, {"annotations", annotations}}}}, "status");
}

std::pair<std::string_view, std::string_view> KindOf(EventSubject subject) {
  switch (subject) {
    case EventSubject::kPod:
      return {"Pod", "v1"};
    case EventSubject::kGang:
      return {"Gang", "tahoma.dev/v1alpha1"};
    case EventSubject::kCapacityBlock:
      return {"CapacityBlock", "tahoma.dev/v1alpha1"};
    case EventSubject::kCapacityBlockExtension:
      return {KindName(RequestKind::kExtension), "tahoma.dev/v1alpha1"};
    case EventSubject::kCapacityBlockSeries:
      return {KindName(RequestKind::kSeries), "tahoma.dev/v1alpha1"};
    case EventSubject::kCapacityBlockWaitlistEntry:
      return {KindName(RequestKind::kWaitlistEntry), "tahoma.dev/v1alpha1"};
    case EventSubject::kCapacityBlockQuota:
      return {KindName(RequestKind::kQuota), "tahoma.dev/v1alpha1"};
  }
  TAHOMA_CHECK(false);
  return {};
}

// Events about objects of the cluster are in the namespace default.
std::string NamespaceOf(const EventNote& event) { return event.ns.empty() ? "default" : event.ns; }

WriteOutcome OutcomeOf(const absl::Status& status) {
  switch (kube::OutcomeOf(status)) {
    case kube::Outcome::kDone:
      return WriteOutcome::kDone;
    case kube::Outcome::kNotFound:
      return WriteOutcome::kGone;
    case kube::Outcome::kConflict:
      return WriteOutcome::kConflict;
    case kube::Outcome::kRetryLater:
      return WriteOutcome::kUnavailable;
    case kube::Outcome::kExpired:
    case kube::Outcome::kRefused:
      return WriteOutcome::kRefused;
  }
  return WriteOutcome::kUnavailable;
}

}  // namespace

kube::Request Render(const ApiWrite& write, AllocateBy by) {
  return std::visit(Renderer{by}, write.what);
}

std::string EventName(const EventNote& event) {
  // FNV-1a: the name only has to differ between texts.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::string_view text :
       {std::string_view(event.uid), event.reason, std::string_view(event.message)}) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ 0x1fU) * 1099511628211ULL;
  }
  return fmt::format("{}.{:016x}", event.name, hash);
}

kube::Request RenderEvent(const EventNote& event, const std::string& name, int count) {
  const auto [kind, version] = KindOf(event.about);
  json object = {{"kind", kind}, {"apiVersion", version}, {"name", event.name}, {"uid", event.uid}};
  if (!event.ns.empty()) object["namespace"] = event.ns;
  const std::string when = FormatTime(event.when);
  json body = {{"apiVersion", "v1"},
               {"kind", "Event"},
               {"metadata", {{"name", name}, {"namespace", NamespaceOf(event)}}},
               {"involvedObject", std::move(object)},
               {"reason", event.reason},
               {"message", event.message},
               {"type", event.warning ? "Warning" : "Normal"},
               {"count", count},
               {"firstTimestamp", when},
               {"lastTimestamp", when},
               {"source", {{"component", kComponent}}},
               {"reportingComponent", kComponent},
               {"reportingInstance", kComponent}};
  return kube::CreateRequest(kube::kEvents, NamespaceOf(event), std::move(body));
}

kube::Request RenderEventRepeat(const EventNote& event, const std::string& name, int count) {
  return MergePatch(kube::kEvents, {NamespaceOf(event), name},
                    {{"count", count}, {"lastTimestamp", FormatTime(event.when)}});
}

std::optional<ApiResult> ResultIfShown(const ApiWrite& write, const kube::Request& request) {
  const auto result_of = [&](const auto* status) -> std::optional<ApiResult> {
    if (status->shown == 0 || request.parsed == nullptr) return std::nullopt;
    if (StatusDigest(*request.parsed) != status->shown) return std::nullopt;
    ApiResult result = ResultOf(write);
    result.resource_version = status->base_version;
    result.shown = status->shown;
    return result;
  };
  if (const auto* block = std::get_if<BlockStatusWrite>(&write.what)) return result_of(block);
  if (const auto* request_status = std::get_if<RequestStatusWrite>(&write.what)) {
    return result_of(request_status);
  }
  if (const auto* workload = std::get_if<WorkloadStatusWrite>(&write.what)) {
    return result_of(workload);
  }
  if (const auto* calendar = std::get_if<QueueCalendarStatusWrite>(&write.what)) {
    return result_of(calendar);
  }
  if (const auto* queue = std::get_if<QueueStatusWrite>(&write.what)) return result_of(queue);
  if (const auto* window = std::get_if<WindowStatusWrite>(&write.what)) return result_of(window);
  if (const auto* moves = std::get_if<DefragmentationStatusWrite>(&write.what)) {
    return result_of(moves);
  }
  return std::nullopt;
}

ApiResult ReadAnswer(const ApiWrite& write, const absl::StatusOr<kube::Response>& answer) {
  ApiResult result = ResultOf(write);
  if (const absl::Status status = kube::StatusOf(answer); !status.ok()) {
    result.outcome = OutcomeOf(status);
    result.message = std::string(CutUtf8(Message(status), kMessageBytesMost));
    return result;
  }
  const bool claim = TargetOf(result.kind) == WriteTarget::kClaim;
  const bool shows =
      TargetOf(result.kind) == WriteTarget::kBlock || result.kind == WriteKind::kRequestStatus ||
      result.kind == WriteKind::kWorkloadStatus || result.kind == WriteKind::kQueueStatus ||
      result.kind == WriteKind::kQueueCalendarStatus || result.kind == WriteKind::kWindowStatus ||
      result.kind == WriteKind::kDefragmentationStatus || result.kind == WriteKind::kGangStatus;
  const bool pod = result.kind == WriteKind::kReadPod || result.kind == WriteKind::kPodClaimStatus;
  if (!claim && !shows && !pod) return result;
  const auto body = answer->Json();
  absl::Status status;
  if (shows) {
    result.resource_version = kube::ResourceVersionOf(*body);
    result.shown = StatusDigest(*body);
  } else if (claim) {
    auto parsed = ParseClaimState(*body);
    status = parsed.status();
    if (parsed.ok()) result.claim = *std::move(parsed);
  } else {
    auto parsed = ParsePod(*body);
    status = parsed.status();
    if (parsed.ok()) result.pod = *std::move(parsed);
  }
  if (!status.ok()) {
    result.outcome = WriteOutcome::kUnavailable;
    result.message = std::string(Message(status));
  }
  return result;
}

}  // namespace tahoma::controller
