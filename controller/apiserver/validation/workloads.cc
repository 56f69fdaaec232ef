// Deployments, ReplicaSets, StatefulSets, DaemonSets, their revisions and budgets, and Endpoints,
// with the texts of Kubernetes' validation in pkg/apis/apps, pkg/apis/policy and pkg/apis/core.

#include "controller/apiserver/validation/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/selector.h"

namespace tahoma::controller::apiserver {
namespace {

// The number before the percent sign; nullopt when the value is no percentage.
std::optional<std::int64_t> Percent(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() < 2 || text.back() != '%') return std::nullopt;
  std::int64_t number = 0;
  const char* end = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data(), end, number);
  if (text.front() == '-' || parsed.ptr != end) return std::nullopt;
  return number;
}

std::int64_t IntOrPercent(const Json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return Percent(value).value_or(0);
}

void CheckIntOrPercent(const Json& value, const std::string& path, Causes& causes) {
  if (value.is_number_integer()) return CheckNotNegative(value, path, causes);
  if (!value.is_string() || Percent(value)) return;
  causes.push_back(Invalid(path, value,
                           "a valid percent string must be a numeric string followed by an ending "
                           "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"));
}

void CheckNotOver100Percent(const Json& value, const std::string& path, Causes& causes) {
  const auto percent = Percent(value);
  if (percent && *percent > 100) {
    causes.push_back(Invalid(path, value, "must not be greater than 100%"));
  }
}

void CheckDeploymentStrategy(const Json& strategy, Causes& causes) {
  const std::string type = TextAt(strategy, {"type"});
  const Json& rolling = ValueAt(strategy, {"rollingUpdate"});
  const std::string path = "spec.strategy.rollingUpdate";
  if (type == "Recreate") {
    if (rolling.is_null()) return;
    causes.push_back(Forbidden(path, "may not be specified when strategy `type` is 'Recreate'"));
    return;
  }
  if (type != "RollingUpdate") {
    causes.push_back(NotSupported("spec.strategy", strategy, {"Recreate", "RollingUpdate"}));
    return;
  }
  const Json& missing = ValueAt(rolling, {"maxUnavailable"});
  const Json& surge = ValueAt(rolling, {"maxSurge"});
  CheckIntOrPercent(missing, path + ".maxUnavailable", causes);
  CheckIntOrPercent(surge, path + ".maxSurge", causes);
  if (IntOrPercent(missing) == 0 && IntOrPercent(surge) == 0) {
    causes.push_back(
        Invalid(path + ".maxUnavailable", missing, "may not be 0 when `maxSurge` is 0"));
  }
  CheckNotOver100Percent(missing, path + ".maxUnavailable", causes);
}

void CheckDaemonSetStrategy(const Json& strategy, Causes& causes) {
  const std::string type = TextAt(strategy, {"type"});
  if (type == "OnDelete") return;
  if (type != "RollingUpdate") {
    causes.push_back(NotSupported("spec.updateStrategy", strategy, {"RollingUpdate", "OnDelete"}));
    return;
  }
  const std::string path = "spec.updateStrategy.rollingUpdate";
  const Json& missing = ValueAt(strategy, {"rollingUpdate", "maxUnavailable"});
  const Json& surge = ValueAt(strategy, {"rollingUpdate", "maxSurge"});
  CheckIntOrPercent(missing, path + ".maxUnavailable", causes);
  CheckIntOrPercent(surge, path + ".maxSurge", causes);
  CheckNotOver100Percent(missing, path + ".maxUnavailable", causes);
  CheckNotOver100Percent(surge, path + ".maxSurge", causes);
  const bool has_surge = IntOrPercent(surge) != 0;
  if (IntOrPercent(missing) != 0 && has_surge) {
    causes.push_back(
        Invalid(path + ".maxSurge", surge, "may not be set when maxUnavailable is non-zero"));
  } else if (IntOrPercent(missing) == 0 && !has_surge) {
    causes.push_back(Required(path + ".maxUnavailable", "cannot be 0 when maxSurge is 0"));
  }
}

void CheckStatefulSetStrategy(const Json& strategy, Causes& causes) {
  const std::string type = TextAt(strategy, {"type"});
  const Json& rolling = ValueAt(strategy, {"rollingUpdate"});
  if (type == "OnDelete") {
    if (rolling.is_null()) return;
    causes.push_back(Invalid("spec.updateStrategy.rollingUpdate", rolling,
                             "only allowed for updateStrategy 'RollingUpdate'"));
  } else if (type == "RollingUpdate") {
    CheckNotNegative(ValueAt(rolling, {"partition"}), "spec.updateStrategy.rollingUpdate.partition",
                     causes);
  } else {
    causes.push_back(
        Invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'"));
  }
}

void CheckRetention(const Json& policy, Causes& causes) {
  for (const char* when : {"whenDeleted", "whenScaled"}) {
    const std::string word = TextAt(policy, {when});
    if (word == "Retain" || word == "Delete") continue;
    causes.push_back(NotSupported(fmt::format("spec.persistentVolumeClaimRetentionPolicy.{}", when),
                                  word, {"Retain", "Delete"}));
  }
}

void CheckNotNegativeAt(const Json& object, std::initializer_list<std::string_view> fields,
                        const std::string& path, Causes& causes) {
  for (const std::string_view field : fields) {
    CheckNotNegative(ValueAt(object, {field}), fmt::format("{}.{}", path, field), causes);
  }
}

// Controllers of these kinds start their pods again without end.
void CheckRunsForEver(const Json& spec, std::string_view kind, Causes& causes) {
  const Json& policy = ValueAt(spec, {"template", "spec", "restartPolicy"});
  if (policy != "Always") {
    causes.push_back(NotSupported("spec.template.spec.restartPolicy", policy, {"Always"}));
  }
  if (!ValueAt(spec, {"template", "spec", "activeDeadlineSeconds"}).is_null()) {
    causes.push_back(Forbidden("spec.template.spec.activeDeadlineSeconds",
                               fmt::format("activeDeadlineSeconds in {} is not Supported", kind)));
  }
}

void CheckTemplateLabels(const Json& pod_template, const std::string& path, Causes& causes) {
  for (const auto& [name, value] : ValueAt(pod_template, {"metadata", "labels"}).items()) {
    AddInvalid(path, name, CheckQualifiedName(name), causes);
    if (!value.is_string()) continue;
    const auto& text = value.get_ref<const std::string&>();
    AddInvalid(path, text, CheckLabelValue(text), causes);
  }
}

// Whether the selector can be used at all.
bool CheckOwnSelector(const Json& spec, std::string_view kind, Causes& causes) {
  const Json& selector = ValueAt(spec, {"selector"});
  if (selector.is_null()) {
    if (kind != "daemonset") causes.push_back(Required("spec.selector"));
    return true;
  }
  CheckLabelSelector(selector, "spec.selector", causes);
  if (SizeAt(selector, {"matchLabels"}) + SizeAt(selector, {"matchExpressions"}) == 0) {
    causes.push_back(
        Invalid("spec.selector", selector, fmt::format("empty selector is invalid for {}", kind)));
  }
  return ReadSelector(selector).ok();
}

bool IsEmptySelector(const Json& selector) {
  return selector.is_object() &&
         SizeAt(selector, {"matchLabels"}) + SizeAt(selector, {"matchExpressions"}) == 0;
}

void CheckReplicaTemplate(const Json& spec, Causes& causes) {
  if (!CheckOwnSelector(spec, "deployment", causes)) {
    causes.push_back(
        Invalid("spec.selector", ValueAt(spec, {"selector"}), "invalid label selector"));
    return;
  }
  if (!IsEmptySelector(ValueAt(spec, {"selector"}))) CheckSelectsTemplate(spec, causes);
  CheckPodTemplate(ValueAt(spec, {"template"}), causes);
  CheckRunsForEver(spec, "ReplicaSet", causes);
}

// Compares the counts of a status with one another.
void CheckStatusCounts(const Json& after, std::initializer_list<std::string_view> counts,
                       std::initializer_list<std::string_view> parts,
                       std::string_view not_available, Causes& causes) {
  const Json& status = ValueAt(after, {"status"});
  CheckNotNegativeAt(status, counts, "status", causes);
  const std::int64_t total = kube::IntAt(status, {"replicas"});
  for (const std::string_view part : parts) {
    const std::int64_t count = kube::IntAt(status, {part});
    if (count > total) {
      causes.push_back(
          Invalid(fmt::format("status.{}", part), count, "cannot be greater than status.replicas"));
    }
  }
  const std::int64_t available = kube::IntAt(status, {"availableReplicas"});
  if (!not_available.empty() && available > kube::IntAt(status, {"readyReplicas"})) {
    causes.push_back(Invalid("status.availableReplicas", available, not_available));
  }
}

void CheckCollisions(const Json& before, const Json& after, Causes& causes) {
  const Json& old_count = ValueAt(before, {"status", "collisionCount"});
  const std::int64_t count = kube::IntAt(after, {"status", "collisionCount"});
  if (!old_count.is_number_integer() || count >= old_count.get<std::int64_t>()) return;
  causes.push_back(Invalid("status.collisionCount", count, "cannot be decremented"));
}

}  // namespace

absl::StatusOr<kube::LabelSelector> ReadSelector(const Json& selector) {
  kube::LabelSelector read;
  for (const auto& [key, value] : MembersOf(PartOf(selector, "matchLabels"))) {
    TAHOMA_RETURN_IF_ERROR(
        read.Require(key, "In", {value.is_string() ? value.get<std::string>() : ""}));
  }
  for (const Json& one : ValueAt(selector, {"matchExpressions"})) {
    std::vector<std::string> values;
    for (const Json& value : ValueAt(one, {"values"})) {
      if (value.is_string()) values.push_back(value.get<std::string>());
    }
    TAHOMA_RETURN_IF_ERROR(
        read.Require(TextAt(one, {"key"}), TextAt(one, {"operator"}), std::move(values)));
  }
  return read;
}

bool SelectorMatches(const Json& selector, const Json& labels) {
  if (selector.is_null()) return false;
  const auto read = ReadSelector(selector);
  return read.ok() && read->Matches([&](std::string_view key) -> std::optional<std::string_view> {
    const Json* found = FindMember(labels, key);
    if (found == nullptr || !found->is_string()) return std::nullopt;
    return std::string_view(found->get_ref<const std::string&>());
  });
}

void CheckNotNegative(const Json& value, const std::string& path, Causes& causes) {
  if (!value.is_number_integer() || value.get<std::int64_t>() >= 0) return;
  causes.push_back(Invalid(path, value, "must be greater than or equal to 0"));
}

void CheckSelectsTemplate(const Json& spec, Causes& causes) {
  const Json& labels = ValueAt(spec, {"template", "metadata", "labels"});
  if (SelectorMatches(ValueAt(spec, {"selector"}), labels)) return;
  causes.push_back(Invalid("spec.template.metadata.labels", labels,
                           "`selector` does not match template `labels`"));
}

void CheckPodTemplate(const Json& pod_template, Causes& causes) {
  Causes found;
  CheckTemplateLabels(pod_template, "labels", found);
  Causes structure =
      ValidateSchema(BuiltInType("io.k8s.api.core.v1.PodTemplateSpec"), pod_template);
  // As for a pod: meaning is looked at only where the structure holds.
  const bool is_whole = structure.empty();
  std::ranges::move(structure, std::back_inserter(found));
  if (is_whole) CheckPod(pod_template, found);
  if (SizeAt(pod_template, {"spec", "ephemeralContainers"}) > 0) {
    found.push_back(
        Forbidden("spec.ephemeralContainers", "ephemeral containers not allowed in pod template"));
  }
  for (Cause& cause : found) {
    cause.field = "spec.template." + cause.field;
    causes.push_back(std::move(cause));
  }
}

void CheckDeployment(const Json& object, Causes& causes) {
  const Json& spec = ValueAt(object, {"spec"});
  CheckNotNegativeAt(spec, {"replicas"}, "spec", causes);
  CheckReplicaTemplate(spec, causes);
  CheckDeploymentStrategy(ValueAt(spec, {"strategy"}), causes);
  CheckNotNegativeAt(spec, {"minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"},
                     "spec", causes);
  const Json& deadline = ValueAt(spec, {"progressDeadlineSeconds"});
  if (deadline.is_number_integer() &&
      deadline.get<std::int64_t>() <= kube::IntAt(spec, {"minReadySeconds"})) {
    causes.push_back(
        Invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
  }
}

void CheckReplicaSet(const Json& object, Causes& causes) {
  const Json& spec = ValueAt(object, {"spec"});
  CheckNotNegativeAt(spec, {"replicas", "minReadySeconds"}, "spec", causes);
  CheckReplicaTemplate(spec, causes);
}

void CheckSameSelector(const Json& before, const Json& after, Causes& causes) {
  CheckImmutable("spec.selector", ValueAt(before, {"spec", "selector"}),
                 ValueAt(after, {"spec", "selector"}), causes);
}

void CheckStatefulSet(const Json& object, Causes& causes) {
  const Json& spec = ValueAt(object, {"spec"});
  const std::string management = TextAt(spec, {"podManagementPolicy"});
  if (management.empty()) {
    causes.push_back(Required("spec.podManagementPolicy"));
  } else if (management != "OrderedReady" && management != "Parallel") {
    causes.push_back(
        Invalid("spec.podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'"));
  }
  CheckStatefulSetStrategy(ValueAt(spec, {"updateStrategy"}), causes);
  CheckRetention(ValueAt(spec, {"persistentVolumeClaimRetentionPolicy"}), causes);
  const Json& claims = ValueAt(spec, {"volumeClaimTemplates"});
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Causes found;
    CheckVolumeClaim(claims[i], found);
    for (Cause& cause : found) {
      cause.field = fmt::format("spec.volumeClaimTemplates[{}].{}", i, cause.field);
      causes.push_back(std::move(cause));
    }
  }
  CheckNotNegativeAt(spec, {"replicas", "minReadySeconds"}, "spec", causes);
  CheckNotNegative(ValueAt(spec, {"ordinals", "start"}), "spec.ordinals.start", causes);
  if (!CheckOwnSelector(spec, "statefulset", causes)) {
    causes.push_back(Invalid("spec.selector", ValueAt(spec, {"selector"}), ""));
  } else {
    if (!IsEmptySelector(ValueAt(spec, {"selector"}))) CheckSelectsTemplate(spec, causes);
    Json pod_template = ValueAt(spec, {"template"});
    // Each claim is a volume of the pods.
    for (const Json& claim : claims) {
      pod_template["spec"]["volumes"].push_back(
          {{"name", TextAt(claim, {"metadata", "name"})}, {"emptyDir", Json::object()}});
    }
    CheckPodTemplate(pod_template, causes);
    CheckTemplateLabels(pod_template, "spec.template.labels", causes);  // told twice
  }
  CheckRunsForEver(spec, "StatefulSet", causes);
}

void CheckNewStatefulSet(const Json& object, Causes& causes) {
  if (const std::string name = TextAt(object, {"spec", "serviceName"}); !name.empty()) {
    AddInvalid("spec.serviceName", name, CheckDnsLabel(name), causes);
  }
}

void CheckStatefulSetUpdate(const Json& before, const Json& after, Causes& causes) {
  const auto fixed = [](const Json& object) {
    Json spec = ValueAt(object, {"spec"});
    for (const char* field :
         {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
          "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy"}) {
      if (spec.is_object()) spec.erase(field);
    }
    return spec;
  };
  if (fixed(before) == fixed(after)) return;
  causes.push_back(Forbidden("spec",
                             "updates to statefulset spec for fields other than 'replicas', "
                             "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                             "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
                             "forbidden"));
}

void CheckDaemonSet(const Json& object, Causes& causes) {
  const Json& spec = ValueAt(object, {"spec"});
  CheckLabelSelector(ValueAt(spec, {"selector"}), "spec.selector", causes);
  const Json& selector = ValueAt(spec, {"selector"});
  if (selector.is_null() || ReadSelector(selector).ok()) CheckSelectsTemplate(spec, causes);
  if (IsEmptySelector(selector)) {
    causes.push_back(Invalid("spec.selector", selector, "empty selector is invalid for daemonset"));
  }
  CheckPodTemplate(ValueAt(spec, {"template"}), causes);
  CheckRunsForEver(spec, "DaemonSet", causes);
  CheckNotNegativeAt(spec, {"minReadySeconds"}, "spec", causes);
  CheckDaemonSetStrategy(ValueAt(spec, {"updateStrategy"}), causes);
  CheckNotNegativeAt(spec, {"revisionHistoryLimit"}, "spec", causes);
}

void CheckControllerRevision(const Json& object, Causes& causes) {
  CheckNotNegative(ValueAt(object, {"revision"}), "revision", causes);
}

void CheckNewControllerRevision(const Json& object, Causes& causes) {
  const Json& data = ValueAt(object, {"data"});
  if (data.is_object()) return;
  causes.push_back(
      Required("data", data.is_null() ? "data is mandatory" : "data must be a valid JSON object"));
}

void CheckControllerRevisionUpdate(const Json& before, const Json& after, Causes& causes) {
  CheckImmutable("data", ValueAt(before, {"data"}), ValueAt(after, {"data"}), causes);
}

void CheckDeploymentStatus(const Json& before, const Json& after, Causes& causes) {
  CheckStatusCounts(
      after,
      {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
       "unavailableReplicas", "terminatingReplicas", "collisionCount"},
      {"updatedReplicas", "readyReplicas", "availableReplicas"},
      "cannot be greater than readyReplicas", causes);
  CheckCollisions(before, after, causes);
}

void CheckReplicaSetStatus(const Json& /*before*/, const Json& after, Causes& causes) {
  CheckStatusCounts(after,
                    {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                     "observedGeneration", "terminatingReplicas"},
                    {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
                    "cannot be greater than readyReplicas", causes);
}

void CheckStatefulSetStatus(const Json& before, const Json& after, Causes& causes) {
  CheckStatusCounts(after,
                    {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                     "availableReplicas", "observedGeneration", "collisionCount"},
                    {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"},
                    "cannot be greater than status.readyReplicas", causes);
  CheckCollisions(before, after, causes);
}

void CheckDaemonSetStatus(const Json& before, const Json& after, Causes& causes) {
  CheckStatusCounts(after,
                    {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
                     "numberReady", "observedGeneration", "updatedNumberScheduled",
                     "numberAvailable", "numberUnavailable", "collisionCount"},
                    {}, "", causes);
  CheckCollisions(before, after, causes);
}

void CheckBudget(const Json& object, Causes& causes) {
  const Json& spec = ValueAt(object, {"spec"});
  const Json& least = ValueAt(spec, {"minAvailable"});
  const Json& most = ValueAt(spec, {"maxUnavailable"});
  if (!least.is_null() && !most.is_null()) {
    causes.push_back(Invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
  }
  for (const char* field : {"minAvailable", "maxUnavailable"}) {
    const std::string path = fmt::format("spec.{}", field);
    CheckIntOrPercent(ValueAt(spec, {field}), path, causes);
    CheckNotOver100Percent(ValueAt(spec, {field}), path, causes);
  }
  CheckLabelSelector(ValueAt(spec, {"selector"}), "spec.selector", causes);
  const Json& policy = ValueAt(spec, {"unhealthyPodEvictionPolicy"});
  if (!policy.is_null() && policy != "AlwaysAllow" && policy != "IfHealthyBudget") {
    causes.push_back(NotSupported("spec.unhealthyPodEvictionPolicy", policy,
                                  {"AlwaysAllow", "IfHealthyBudget"}));
  }
}

void CheckBudgetStatus(const Json& /*before*/, const Json& after, Causes& causes) {
  CheckNotNegativeAt(ValueAt(after, {"status"}),
                     {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"},
                     "status", causes);
}

void CheckEndpoints(const Json& object, Causes& causes) {
  const Json& subsets = ValueAt(object, {"subsets"});
  for (std::size_t i = 0; i < subsets.size(); ++i) {
    const std::string path = fmt::format("subsets[{}]", i);
    if (SizeAt(subsets[i], {"addresses"}) + SizeAt(subsets[i], {"notReadyAddresses"}) == 0) {
      causes.push_back(Required(path, "must specify `addresses` or `notReadyAddresses`"));
    }
    const Json& ports = ValueAt(subsets[i], {"ports"});
    for (std::size_t j = 0; j < ports.size(); ++j) {
      const std::string at = fmt::format("{}.ports[{}]", path, j);
      const std::string name = TextAt(ports[j], {"name"});
      if (name.empty() && ports.size() > 1) causes.push_back(Required(at + ".name"));
      if (!name.empty()) AddInvalid(at + ".name", name, CheckDnsLabel(name), causes);
      const std::int64_t port = kube::IntAt(ports[j], {"port"});
      if (port < 1 || port > 65535) {
        causes.push_back(Invalid(at + ".port", port, "must be between 1 and 65535, inclusive"));
      }
    }
  }
}

}  // namespace tahoma::controller::apiserver
