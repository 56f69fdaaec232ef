// Defaults of whatever makes pods from a template, and the fields that their server writes. Source:
// Kubernetes' pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go and the strategies in
// pkg/registry.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr const char* kControllerUid = "batch.kubernetes.io/controller-uid";
constexpr const char* kTemplateGeneration = "deprecated.daemonset.template.generation";

void SetAbsent(Json& object, const char* field, Json value) {
  if (!object.contains(field)) object[field] = std::move(value);
}

// Fills in the type of an update strategy; the part for rolling updates, null for another type.
Json* RollingPart(Json& strategy) {
  if (!strategy.is_object()) return nullptr;
  if (TextAt(strategy, {"type"}).empty()) strategy["type"] = "RollingUpdate";
  if (TextAt(strategy, {"type"}) != "RollingUpdate") return nullptr;
  Json& rolling = strategy["rollingUpdate"];
  if (rolling.is_null()) rolling = Json::object();
  return rolling.is_object() ? &rolling : nullptr;
}

void DefaultDeployment(Json& spec) {
  if (Json* rolling = RollingPart(spec["strategy"])) {
    SetAbsent(*rolling, "maxUnavailable", "25%");
    SetAbsent(*rolling, "maxSurge", "25%");
  }
}

void DefaultDaemonSet(Json& spec) {
  if (Json* rolling = RollingPart(spec["updateStrategy"])) {
    SetAbsent(*rolling, "maxUnavailable", 1);
    SetAbsent(*rolling, "maxSurge", 0);
  }
}

void DefaultStatefulSet(Json& spec) {
  Json& strategy = spec["updateStrategy"];
  const bool chosen = !TextAt(strategy, {"type"}).empty();
  // Whoever states the type states its part, too, or has none.
  if (!chosen || strategy.contains("rollingUpdate")) {
    if (Json* rolling = RollingPart(strategy)) SetAbsent(*rolling, "partition", 0);
  }
  Json& retention = spec["persistentVolumeClaimRetentionPolicy"];
  for (const char* when : {"whenDeleted", "whenScaled"}) {
    if (retention.is_object() && TextAt(retention, {when}).empty()) retention[when] = "Retain";
  }
  if (!ValueAt(spec, {"volumeClaimTemplates"}).is_array()) return;
  for (Json& claim : spec["volumeClaimTemplates"]) {
    if (!claim.is_object()) continue;
    claim["apiVersion"] = "v1";
    claim["kind"] = "PersistentVolumeClaim";
    if (TextAt(claim, {"status", "phase"}).empty()) claim["status"]["phase"] = "Pending";
  }
}

void DefaultJob(Json& job) {
  Json& spec = job["spec"];
  if (!spec.contains("parallelism")) {
    SetAbsent(spec, "completions", 1);
    spec["parallelism"] = 1;
  }
  const bool by_index = spec.contains("backoffLimitPerIndex");
  SetAbsent(spec, "backoffLimit", by_index ? std::numeric_limits<std::int32_t>::max() : 6);
  SetAbsent(spec, "podReplacementPolicy",
            spec.contains("podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
  SetAbsent(spec, "manualSelector", false);
  // Before the selector is generated its labels are not there yet.
  const Json& labels = ValueAt(spec, {"template", "metadata", "labels"});
  if (spec["manualSelector"] == false && !labels.contains(kControllerUid)) return;
  if (SizeAt(job, {"metadata", "labels"}) == 0 && labels.is_object() && !labels.empty()) {
    job["metadata"]["labels"] = labels;
  }
}

// The labels by which a Job knows its pods.
void GenerateSelector(Json& job) {
  if (ValueAt(job, {"spec", "manualSelector"}) == true) return;
  const std::string name = TextAt(job, {"metadata", "name"});
  const std::string uid = TextAt(job, {"metadata", "uid"});
  Json& labels = job["spec"]["template"]["metadata"]["labels"];
  SetAbsent(labels, "job-name", name);
  SetAbsent(labels, "batch.kubernetes.io/job-name", name);
  SetAbsent(labels, "controller-uid", uid);
  SetAbsent(labels, kControllerUid, uid);
  SetAbsent(job["spec"]["selector"]["matchLabels"], kControllerUid, uid);
}

std::int64_t TemplateGeneration(const Json& daemon_set) {
  const std::string text = TextAt(daemon_set, {"metadata", "annotations", kTemplateGeneration});
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void SetTemplateGeneration(std::int64_t generation, Json& daemon_set) {
  daemon_set["metadata"]["annotations"][kTemplateGeneration] = fmt::format("{}", generation);
}

// The server of 1.36 has this field switched off.
void DropMaxUnavailable(const Json& before, Json& stateful_set) {
  const Json& path = ValueAt(before, {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"});
  if (!path.is_null()) return;
  if (!ValueAt(stateful_set, {"spec", "updateStrategy", "rollingUpdate"}).is_object()) return;
  stateful_set["spec"]["updateStrategy"]["rollingUpdate"].erase("maxUnavailable");
}

}  // namespace

bool IsWorkload(const Kind& kind) {
  return kind.built_in && (kind.group == "apps" || kind.group == "batch") && kind.has_status;
}

void DefaultWorkload(const Kind& kind, Json& object) {
  if (!ValueAt(object, {"spec"}).is_object()) return;
  Json& spec = object["spec"];
  if (ValueAt(spec, {"template"}).is_object()) DefaultPodTemplate(spec["template"]);
  if (kind.plural == "deployments") DefaultDeployment(spec);
  if (kind.plural == "daemonsets") DefaultDaemonSet(spec);
  if (kind.plural == "statefulsets") DefaultStatefulSet(spec);
  if (kind.plural == "jobs") DefaultJob(object);
}

void PrepareNewWorkload(const Kind& kind, Json& object) {
  object["status"] = Json::object();
  if (kind.plural == "replicasets") object["status"] = {{"replicas", 0}};
  if (kind.plural == "statefulsets") {
    object["status"] = {{"availableReplicas", 0}, {"replicas", 0}};
    DropMaxUnavailable(nullptr, object);
  }
  if (kind.plural == "daemonsets") {
    for (const char* count : {"currentNumberScheduled", "desiredNumberScheduled",
                              "numberMisscheduled", "numberReady"}) {
      object["status"][count] = 0;
    }
    SetTemplateGeneration(std::max<std::int64_t>(TemplateGeneration(object), 1), object);
  }
  if (kind.plural != "jobs" || !ValueAt(object, {"spec", "template"}).is_object()) return;
  GenerateSelector(object);
  DefaultJob(object);
}

void PrepareWorkloadUpdate(const Kind& kind, const Json& before, Json& after) {
  if (kind.plural == "statefulsets") DropMaxUnavailable(before, after);
  if (kind.plural != "daemonsets") return;
  const bool changed =
      ValueAt(before, {"spec", "template"}) != ValueAt(after, {"spec", "template"});
  SetTemplateGeneration(TemplateGeneration(before) + (changed ? 1 : 0), after);
}

}  // namespace tahoma::controller::apiserver
