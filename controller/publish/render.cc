#include "controller/publish/render.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller {
namespace {

using json = Json;

constexpr std::string_view kFinalizer = "resource.kubernetes.io/delete-protection";
constexpr std::string_view kComponent = "tahoma";
// A message of the server is cut to what a condition can show.
constexpr std::size_t kMessageBytesMost = 1024;

std::string ClaimPath(const std::string& ns, const std::string& name) {
  return fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}", ns, name);
}
std::string PodPath(const std::string& ns, const std::string& name) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", ns, name);
}

kube::Request JsonRequest(std::string method, std::string target, json body,
                          std::string_view type) {
  ShareJson(body);
  return {.method = std::move(method),
          .target = std::move(target),
          .headers = {{"Content-Type", std::string(type)}, {"Accept", "application/json"}},
          .parsed = std::make_shared<const json>(std::move(body))};
}
kube::Request MergePatch(std::string target, json body) {
  return JsonRequest("PATCH", std::move(target), std::move(body), "application/merge-patch+json");
}
kube::Request Get(std::string target) {
  return {
      .method = "GET", .target = std::move(target), .headers = {{"Accept", "application/json"}}};
}

std::string_view EffectText(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNone:
      return "None";
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "";
}

json TolerationJson(const Toleration& toleration) {
  json out = {{"operator", toleration.op == TolerationOperator::kExists ? "Exists" : "Equal"}};
  if (!toleration.key.empty()) out["key"] = toleration.key;
  if (!toleration.value.empty()) out["value"] = toleration.value;
  if (toleration.effect) out["effect"] = EffectText(*toleration.effect);
  if (toleration.seconds) out["tolerationSeconds"] = *toleration.seconds;
  return out;
}

json ConfigJson(const DeviceConfig& config) {
  json out = {{"source", config.source == ConfigSource::kClass ? "FromClass" : "FromClaim"},
              {"opaque",
               {{"driver", config.driver},
                {"parameters", json::parse(config.parameters, nullptr, false)}}}};
  if (!config.requests.empty()) out["requests"] = config.requests;
  return out;
}

json AllocationJson(const Allocation& allocation) {
  json results = json::array();
  for (const DeviceResult& result : allocation.results) {
    json one = {{"request", result.request},
                {"driver", result.driver},
                {"pool", result.pool},
                {"device", result.device}};
    if (result.admin_access) one["adminAccess"] = true;
    for (const Toleration& toleration : result.tolerations) {
      one["tolerations"].push_back(TolerationJson(toleration));
    }
    results.push_back(std::move(one));
  }
  json out = {{"devices", {{"results", std::move(results)}}}};
  for (const DeviceConfig& config : allocation.configs) {
    out["devices"]["config"].push_back(ConfigJson(config));
  }
  if (!allocation.node.empty()) {
    const json field = {
        {"key", "metadata.name"}, {"operator", "In"}, {"values", {allocation.node}}};
    out["nodeSelector"]["nodeSelectorTerms"] =
        json::array({json{{"matchFields", json::array({field})}}});
  }
  return out;
}

json ReservationJson(const Reservation& held) {
  json out = {{"resource", held.resource}, {"name", held.name}, {"uid", held.uid}};
  if (!held.api_group.empty()) out["apiGroup"] = held.api_group;
  return out;
}

json Precondition(const ClaimFact& base) {
  return {{"uid", base.uid}, {"resourceVersion", base.resource_version}};
}

kube::Request RenderFinalizers(const ApiWrite& write, const std::string& path) {
  json finalizers = json::array();
  for (const std::string& other : write.base->other_finalizers) finalizers.push_back(other);
  if (write.kind == WriteKind::kAddFinalizer) finalizers.push_back(kFinalizer);
  json metadata = Precondition(*write.base);
  metadata["finalizers"] = finalizers.empty() ? json() : std::move(finalizers);
  return MergePatch(path, {{"metadata", std::move(metadata)}});
}

kube::Request RenderAllocate(const ApiWrite& write, const std::string& path) {
  const DecidedClaim& claim = write.decision->claims[write.index];
  json reserved = json::array();
  for (const Reservation& held : write.base->reserved_for) {
    reserved.push_back(ReservationJson(held));
  }
  for (const std::uint32_t index : claim.consumers) {
    const DecidedPod& pod = write.decision->pods[index];
    if (write.base->ReservedFor(pod.uid)) continue;
    reserved.push_back({{"resource", "pods"}, {"name", pod.name}, {"uid", pod.uid}});
  }
  json status = {{"reservedFor", std::move(reserved)}};
  if (!claim.allocated_before && write.base->allocation == nullptr) {
    status["allocation"] = AllocationJson(claim.allocation);
  }
  return MergePatch(path + "/status",
                    {{"metadata", Precondition(*write.base)}, {"status", std::move(status)}});
}

kube::Request RenderDeallocate(const ApiWrite& write, const std::string& path) {
  const DecidedClaim& claim = write.decision->claims[write.index];
  json reserved = json::array();
  for (const Reservation& held : write.base->reserved_for) {
    bool ours = false;
    for (const std::uint32_t index : claim.consumers) {
      ours = ours || write.decision->pods[index].uid == held.uid;
    }
    if (!ours) reserved.push_back(ReservationJson(held));
  }
  json status;
  if (reserved.empty()) {
    // Nobody else uses it: the devices' own status entries may stay only with the allocation.
    status = {{"reservedFor", nullptr}, {"allocation", nullptr}, {"devices", nullptr}};
  } else {
    status = {{"reservedFor", std::move(reserved)}};
  }
  return MergePatch(path + "/status",
                    {{"metadata", Precondition(*write.base)}, {"status", std::move(status)}});
}

kube::Request RenderBind(const ApiWrite& write) {
  const GangDecision& decision = *write.decision;
  const DecidedPod& pod = decision.pods[write.index];
  json annotations = {{"tahoma.dev/gang-uid", decision.uid},
                      {"tahoma.dev/rank", std::to_string(pod.rank)},
                      {"tahoma.dev/world-size", std::to_string(decision.pods.size())},
                      {"tahoma.dev/slice", std::to_string(pod.slice)}};
  if (pod.slice < decision.slices.size()) {
    annotations["tahoma.dev/placement"] = PlacementText(decision.slices[pod.slice]);
  }
  json body = {{"apiVersion", "v1"},
               {"kind", "Binding"},
               {"metadata",
                {{"name", pod.name},
                 {"namespace", decision.key.ns},
                 {"uid", pod.uid},
                 {"annotations", std::move(annotations)}}},
               {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", pod.node}}}};
  return JsonRequest("POST", PodPath(decision.key.ns, pod.name) + "/binding", std::move(body),
                     "application/json");
}

kube::Request RenderDeletePod(const ApiWrite& write) {
  const DecidedPod& pod = write.decision->pods[write.index];
  json body = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", pod.uid}}}};
  return JsonRequest("DELETE", PodPath(write.decision->key.ns, pod.name), std::move(body),
                     "application/json");
}

std::string_view StatusText(ConditionStatus status) {
  return status == ConditionStatus::kTrue    ? "True"
         : status == ConditionStatus::kFalse ? "False"
                                             : "Unknown";
}

kube::Request RenderGangStatus(const ApiWrite& write) {
  const GangStatus& status = *write.status;
  json conditions = json::array();
  for (const GangCondition& condition : status.conditions) {
    conditions.push_back({{"type", condition.type},
                          {"status", StatusText(condition.status)},
                          {"reason", condition.reason},
                          {"message", condition.message},
                          {"observedGeneration", status.observed_generation},
                          {"lastTransitionTime", FormatTime(condition.since)}});
  }
  json slices = json::array();
  for (const DecidedSlice& slice : status.slices) {
    slices.push_back({{"unit", slice.unit},
                      {"shape", slice.shape},
                      {"origin", slice.origin},
                      {"nodes", slice.nodes}});
  }
  json body = {{"metadata", {{"uid", write.uid}}},
               {"status",
                {{"phase", status.phase},
                 {"reason", status.reason},
                 {"placement", status.placement},
                 {"predictedAllReduce", status.predicted_all_reduce},
                 {"boundMembers", status.bound_members},
                 {"observedGeneration", status.observed_generation},
                 {"slices", std::move(slices)},
                 {"conditions", std::move(conditions)}}}};
  return MergePatch(
      fmt::format("/apis/tahoma.dev/v1alpha1/namespaces/{}/gangs/{}/status", write.ns, write.name),
      std::move(body));
}

// Strategic merge: conditions are merged by type (core/v1 PodCondition).
kube::Request RenderPodCondition(const ApiWrite& write) {
  const json condition = {{"type", "PodScheduled"},
                          {"status", "False"},
                          {"reason", "Unschedulable"},
                          {"message", write.message},
                          {"lastTransitionTime", FormatTime(write.when)}};
  json body = {{"metadata", {{"uid", write.uid}}},
               {"status", {{"conditions", json::array({condition})}}}};
  return JsonRequest("PATCH", PodPath(write.ns, write.name) + "/status", std::move(body),
                     "application/strategic-merge-patch+json");
}

std::string MessageOf(const kube::Response& response) {
  const json status = json::parse(response.body, nullptr, false);
  if (status.is_object() && status.contains("message") && status["message"].is_string()) {
    return status["message"].get<std::string>().substr(0, kMessageBytesMost);
  }
  return fmt::format("HTTP status {}", response.status);
}

}  // namespace

kube::Request Render(const ApiWrite& write) {
  const auto claim_path = [&] {
    return ClaimPath(write.decision->key.ns, write.decision->claims[write.index].name);
  };
  switch (write.kind) {
    case WriteKind::kReadClaim:
      return Get(claim_path());
    case WriteKind::kAddFinalizer:
    case WriteKind::kRemoveFinalizer:
      return RenderFinalizers(write, claim_path());
    case WriteKind::kAllocate:
      return RenderAllocate(write, claim_path());
    case WriteKind::kDeallocate:
      return RenderDeallocate(write, claim_path());
    case WriteKind::kReadPod:
      return Get(PodPath(write.decision->key.ns, write.decision->pods[write.index].name));
    case WriteKind::kBind:
      return RenderBind(write);
    case WriteKind::kDeletePod:
      return RenderDeletePod(write);
    case WriteKind::kGangStatus:
      return RenderGangStatus(write);
    case WriteKind::kPodCondition:
      return RenderPodCondition(write);
    case WriteKind::kEvent:
      break;
  }
  TAHOMA_CHECK(false);
  return {};
}

std::string EventName(const EventNote& event) {
  // FNV-1a: the name only has to differ between texts.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::string* text : {&event.uid, &event.reason, &event.message}) {
    for (const char c : *text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ 0x1fU) * 1099511628211ULL;
  }
  return fmt::format("{}.{:016x}", event.name, hash);
}

kube::Request RenderEvent(const EventNote& event, const std::string& name, int count) {
  json object = {{"kind", event.about_gang ? "Gang" : "Pod"},
                 {"apiVersion", event.about_gang ? "tahoma.dev/v1alpha1" : "v1"},
                 {"namespace", event.ns},
                 {"name", event.name},
                 {"uid", event.uid}};
  const std::string when = FormatTime(event.when);
  json body = {{"apiVersion", "v1"},
               {"kind", "Event"},
               {"metadata", {{"name", name}, {"namespace", event.ns}}},
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
  return JsonRequest("POST", fmt::format("/api/v1/namespaces/{}/events", event.ns), std::move(body),
                     "application/json");
}

kube::Request RenderEventRepeat(const EventNote& event, const std::string& name, int count) {
  return MergePatch(fmt::format("/api/v1/namespaces/{}/events/{}", event.ns, name),
                    {{"count", count}, {"lastTimestamp", FormatTime(event.when)}});
}

ApiResult ReadAnswer(const ApiWrite& write, const absl::StatusOr<kube::Response>& answer,
                     const AnswerParsers& parsers) {
  ApiResult result = ResultOf(write);
  if (!answer.ok()) {
    result.outcome = WriteOutcome::kUnavailable;
    result.message = std::string(Message(answer.status()));
    return result;
  }
  const int code = answer->status;
  if (code < 200 || code >= 300) {
    result.outcome = code == 404                  ? WriteOutcome::kGone
                     : code == 409                ? WriteOutcome::kConflict
                     : code == 429 || code >= 500 ? WriteOutcome::kUnavailable
                                                  : WriteOutcome::kRefused;
    result.message = MessageOf(*answer);
    return result;
  }
  const bool claim = write.kind <= WriteKind::kRemoveFinalizer;
  if (!claim && write.kind != WriteKind::kReadPod) return result;
  const auto body = answer->Json();
  absl::Status status;
  if (claim) {
    auto parsed = parsers.claim(*body);
    status = parsed.status();
    if (parsed.ok()) result.claim = *std::move(parsed);
  } else {
    auto parsed = parsers.pod(*body);
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
