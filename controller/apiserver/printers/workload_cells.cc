// The cells of whatever makes pods from a template, and of what goes with it. Source: Kubernetes'
// pkg/printers/internalversion/printers.go.

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "controller/apiserver/printers/table.h"
#include "controller/apiserver/printers/table_cells.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/selector_text.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

using WorkloadCells = std::vector<Json>;

std::string NameOf(const Json& object) { return TextAt(object, {"metadata", "name"}); }
std::string AgeCell(const Json& object, WallTime now) {
  return AgeOf(ValueAt(object, {"metadata", "creationTimestamp"}), now);
}

std::string OfContainers(const Json& workload, const char* field) {
  const Json& containers = ValueAt(workload, {"spec", "template", "spec", "containers"});
  return absl::StrJoin(containers, ",", [&](std::string* out, const Json& container) {
    *out += TextAt(container, {field});
  });
}

// The selector as most kinds show it.
std::string SelectorCell(const Json& workload) {
  const auto text = SelectorText(ValueAt(workload, {"spec", "selector"}));
  if (!text) return "<error>";
  return text->empty() ? "<none>" : *text;
}

std::string LabelsText(const Json& labels) {
  std::vector<std::string> pairs;
  if (!labels.is_object()) return "<none>";
  for (const auto& [key, value] : MembersOf(labels)) {
    if (value.is_string()) pairs.push_back(key + "=" + value.get<std::string>());
  }
  return pairs.empty() ? "<none>" : absl::StrJoin(pairs, ",");
}

std::int64_t StatusCount(const Json& object, const char* field) {
  return kube::IntAt(object, {"status", field});
}

bool HasCondition(const Json& object, std::string_view type) {
  const Json& conditions = ValueAt(object, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [&](const Json& one) {
    return TextAt(one, {"type"}) == type && TextAt(one, {"status"}) == "True";
  });
}

std::string JobState(const Json& job) {
  for (const char* end : {"Complete", "Failed"}) {
    if (HasCondition(job, end)) return end;
  }
  if (!ValueAt(job, {"metadata", "deletionTimestamp"}).is_null()) return "Terminating";
  for (const char* state : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (HasCondition(job, state)) return state;
  }
  return "Running";
}

std::string JobCompletions(const Json& job) {
  const std::int64_t succeeded = StatusCount(job, "succeeded");
  if (const Json& wanted = ValueAt(job, {"spec", "completions"}); wanted.is_number_integer()) {
    return fmt::format("{}/{}", succeeded, wanted.get<std::int64_t>());
  }
  const std::int64_t parallelism = kube::IntAt(job, {"spec", "parallelism"});
  if (parallelism > 1) return fmt::format("{}/1 of {}", succeeded, parallelism);
  return fmt::format("{}/1", succeeded);
}

std::string JobDuration(const Json& job, WallTime now) {
  const Json& start = ValueAt(job, {"status", "startTime"});
  if (!start.is_string()) return "";
  const auto end = ParseTime(TextAt(job, {"status", "completionTime"}));
  return AgeOf(start, end.value_or(now));
}

// "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more...".
std::string EndpointList(const Json& endpoints) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> shown;
  std::size_t count = 0;
  for (const Json& subset : ValueAt(endpoints, {"subsets"})) {
    std::vector<std::string> suffixes;
    for (const Json& port : ValueAt(subset, {"ports"})) {
      suffixes.push_back(fmt::format(":{}", kube::IntAt(port, {"port"})));
    }
    if (suffixes.empty()) suffixes.emplace_back();
    for (const std::string& suffix : suffixes) {
      for (const Json& address : ValueAt(subset, {"addresses"})) {
        const std::string ip = TextAt(address, {"ip"});
        const bool bracketed = !suffix.empty() && ip.find(':') != std::string::npos;
        ++count;
        if (shown.size() < kShown) shown.push_back((bracketed ? "[" + ip + "]" : ip) + suffix);
      }
    }
  }
  if (ValueAt(endpoints, {"subsets"}).empty()) return "<none>";
  const std::string text = absl::StrJoin(shown, ",");
  return count > kShown ? fmt::format("{} + {} more...", text, count - kShown) : text;
}

// "statefulset.apps/web".
std::string ControllerOf(const Json& object) {
  for (const Json& owner : ValueAt(object, {"metadata", "ownerReferences"})) {
    if (ValueAt(owner, {"controller"}) != true) continue;
    std::string kind = TextAt(owner, {"kind"});
    for (char& c : kind) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const std::string version = TextAt(owner, {"apiVersion"});
    const auto slash = version.find('/');
    if (slash != std::string::npos) kind += "." + version.substr(0, slash);
    return kind + "/" + TextAt(owner, {"name"});
  }
  return "<none>";
}

std::string LimitText(const Json& limit) {
  if (limit.is_number_integer()) return std::to_string(limit.get<std::int64_t>());
  return limit.is_string() ? limit.get<std::string>() : "N/A";
}

}  // namespace

WorkloadCells DeploymentCells(const Json& object, WallTime now) {
  return {NameOf(object),
          fmt::format("{}/{}", StatusCount(object, "readyReplicas"),
                      kube::IntAt(object, {"spec", "replicas"})),
          StatusCount(object, "updatedReplicas"),
          StatusCount(object, "availableReplicas"),
          AgeCell(object, now),
          OfContainers(object, "name"),
          OfContainers(object, "image"),
          SelectorText(ValueAt(object, {"spec", "selector"})).value_or("<invalid>")};
}

WorkloadCells ReplicaSetCells(const Json& object, WallTime now) {
  return {NameOf(object),
          kube::IntAt(object, {"spec", "replicas"}),
          StatusCount(object, "replicas"),
          StatusCount(object, "readyReplicas"),
          AgeCell(object, now),
          OfContainers(object, "name"),
          OfContainers(object, "image"),
          SelectorCell(object)};
}

WorkloadCells StatefulSetCells(const Json& object, WallTime now) {
  return {NameOf(object),
          fmt::format("{}/{}", StatusCount(object, "readyReplicas"),
                      kube::IntAt(object, {"spec", "replicas"})),
          AgeCell(object, now), OfContainers(object, "name"), OfContainers(object, "image")};
}

WorkloadCells DaemonSetCells(const Json& object, WallTime now) {
  return {NameOf(object),
          StatusCount(object, "desiredNumberScheduled"),
          StatusCount(object, "currentNumberScheduled"),
          StatusCount(object, "numberReady"),
          StatusCount(object, "updatedNumberScheduled"),
          StatusCount(object, "numberAvailable"),
          LabelsText(ValueAt(object, {"spec", "template", "spec", "nodeSelector"})),
          AgeCell(object, now),
          OfContainers(object, "name"),
          OfContainers(object, "image"),
          SelectorCell(object)};
}

WorkloadCells ControllerRevisionCells(const Json& object, WallTime now) {
  return {NameOf(object), ControllerOf(object), kube::IntAt(object, {"revision"}),
          AgeCell(object, now)};
}

WorkloadCells JobCells(const Json& object, WallTime now) {
  return {NameOf(object),
          JobState(object),
          JobCompletions(object),
          JobDuration(object, now),
          AgeCell(object, now),
          OfContainers(object, "name"),
          OfContainers(object, "image"),
          SelectorCell(object)};
}

WorkloadCells PodDisruptionBudgetCells(const Json& object, WallTime now) {
  return {NameOf(object), LimitText(ValueAt(object, {"spec", "minAvailable"})),
          LimitText(ValueAt(object, {"spec", "maxUnavailable"})),
          StatusCount(object, "disruptionsAllowed"), AgeCell(object, now)};
}

WorkloadCells EndpointsCells(const Json& object, WallTime now) {
  return {NameOf(object), EndpointList(object), AgeCell(object, now)};
}

}  // namespace tahoma::controller::apiserver
