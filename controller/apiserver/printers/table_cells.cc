#include "controller/apiserver/printers/table_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "controller/apiserver/printers/table.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

using Cells = std::vector<Json>;

std::string Name(const Json& object) { return TextAt(object, {"metadata", "name"}); }
std::string Age(const Json& object, WallTime now) {
  return AgeOf(ValueAt(object, {"metadata", "creationTimestamp"}), now);
}

// "Init:1/2", "Init:Error", or empty when all init containers are through.
std::string InitStatus(const Json& pod) {
  const std::size_t total = SizeAt(pod, {"spec", "initContainers"});
  std::size_t index = 0;
  for (const Json& status : ValueAt(pod, {"status", "initContainerStatuses"})) {
    const Json& ended = ValueAt(status, {"state", "terminated"});
    const bool is_sidecar = ValueAt(status, {"started"}) == true && ended.is_null();
    if (is_sidecar || (ended.is_object() && kube::IntAt(ended, {"exitCode"}) == 0)) {
      ++index;
      continue;
    }
    if (ended.is_object()) {
      return "Init:" + TextOr(ended, {"reason"},
                              fmt::format("ExitCode:{}", kube::IntAt(ended, {"exitCode"})));
    }
    const std::string waiting = TextAt(status, {"state", "waiting", "reason"});
    if (!waiting.empty() && waiting != "PodInitializing") return "Init:" + waiting;
    return fmt::format("Init:{}/{}", index, total);
  }
  return "";
}

// Returns the reason of the containers' states; `fallback` when they have none.
std::string ContainerReason(const Json& pod, std::string fallback) {
  bool running = false;
  const Json& statuses = ValueAt(pod, {"status", "containerStatuses"});
  for (auto it = statuses.rbegin(); statuses.is_array() && it != statuses.rend(); ++it) {
    const Json& ended = ValueAt(*it, {"state", "terminated"});
    if (const std::string waiting = TextAt(*it, {"state", "waiting", "reason"}); !waiting.empty()) {
      fallback = waiting;
    } else if (ended.is_object()) {
      const std::int64_t signal = kube::IntAt(ended, {"signal"});
      fallback = TextOr(ended, {"reason"},
                        signal != 0 ? fmt::format("Signal:{}", signal)
                                    : fmt::format("ExitCode:{}", kube::IntAt(ended, {"exitCode"})));
    } else if (ValueAt(*it, {"ready"}) == true && ValueAt(*it, {"state", "running"}).is_object()) {
      running = true;
    }
  }
  if (fallback != "Completed" || !running) return fallback;
  for (const Json& condition : ValueAt(pod, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) == "Ready" && TextAt(condition, {"status"}) == "True") {
      return "Running";
    }
  }
  return "NotReady";
}

std::string PodStatus(const Json& pod) {
  std::string reason = TextOr(pod, {"status", "reason"}, TextAt(pod, {"status", "phase"}));
  for (const Json& condition : ValueAt(pod, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) == "PodScheduled" &&
        TextAt(condition, {"reason"}) == "SchedulingGated") {
      reason = "SchedulingGated";
    }
  }
  const std::string init = InitStatus(pod);
  reason = init.empty() ? ContainerReason(pod, reason) : init;
  const std::string phase = TextAt(pod, {"status", "phase"});
  if (ValueAt(pod, {"metadata", "deletionTimestamp"}).is_string()) {
    if (TextAt(pod, {"status", "reason"}) == "NodeLost") return "Unknown";
    if (phase != "Succeeded" && phase != "Failed") return "Terminating";
  }
  return reason;
}

// "3 (5m ago)" when the last restart's time is known.
std::string Restarts(const Json& pod, WallTime now) {
  std::int64_t total = 0;
  std::string last;  // RFC 3339 in UTC compares as text
  for (const Json& status : ValueAt(pod, {"status", "containerStatuses"})) {
    total += kube::IntAt(status, {"restartCount"});
    last = std::max(last, TextAt(status, {"lastState", "terminated", "finishedAt"}));
  }
  if (total == 0 || last.empty()) return std::to_string(total);
  return fmt::format("{} ({} ago)", total, AgeOf(last, now));
}

std::string ReadinessGates(const Json& pod) {
  const std::size_t total = SizeAt(pod, {"spec", "readinessGates"});
  if (total == 0) return "<none>";
  std::size_t passed = 0;
  for (const Json& gate : ValueAt(pod, {"spec", "readinessGates"})) {
    for (const Json& condition : ValueAt(pod, {"status", "conditions"})) {
      if (ValueAt(condition, {"type"}) != ValueAt(gate, {"conditionType"})) continue;
      if (TextAt(condition, {"status"}) == "True") ++passed;
    }
  }
  return fmt::format("{}/{}", passed, total);
}

Cells PodCells(const Json& pod, WallTime now) {
  std::size_t ready = 0;
  for (const Json& status : ValueAt(pod, {"status", "containerStatuses"})) {
    if (ValueAt(status, {"ready"}) == true && ValueAt(status, {"state", "running"}).is_object())
      ++ready;
  }
  return {Name(pod),
          fmt::format("{}/{}", ready, SizeAt(pod, {"spec", "containers"})),
          PodStatus(pod),
          Restarts(pod, now),
          Age(pod, now),
          TextOr(pod, {"status", "podIP"}, "<none>"),
          TextOr(pod, {"spec", "nodeName"}, "<none>"),
          TextOr(pod, {"status", "nominatedNodeName"}, "<none>"),
          ReadinessGates(pod)};
}

std::string NodeStatus(const Json& node) {
  std::string status = "Unknown";
  for (const Json& condition : ValueAt(node, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) != "Ready") continue;
    status = TextAt(condition, {"status"}) == "True" ? "Ready" : "NotReady";
  }
  if (ValueAt(node, {"spec", "unschedulable"}) == true) status += ",SchedulingDisabled";
  return status;
}

std::string NodeRoles(const Json& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::string roles;
  const Json& labels = ValueAt(node, {"metadata", "labels"});
  if (!labels.is_object()) return "<none>";
  for (const auto& [name, value] : labels.items()) {
    std::string role;
    if (std::string_view(name).starts_with(kPrefix)) role = name.substr(kPrefix.size());
    if (name == "kubernetes.io/role" && value.is_string()) role = value.get<std::string>();
    if (!role.empty()) roles += (roles.empty() ? "" : ",") + role;
  }
  return roles.empty() ? "<none>" : roles;
}

std::string NodeAddress(const Json& node, std::string_view type) {
  for (const Json& address : ValueAt(node, {"status", "addresses"})) {
    if (TextAt(address, {"type"}) == type) return TextOr(address, {"address"}, "<none>");
  }
  return "<none>";
}

Cells NodeCells(const Json& node, WallTime now) {
  return {Name(node),
          NodeStatus(node),
          NodeRoles(node),
          Age(node, now),
          TextAt(node, {"status", "nodeInfo", "kubeletVersion"}),
          NodeAddress(node, "InternalIP"),
          NodeAddress(node, "ExternalIP"),
          TextOr(node, {"status", "nodeInfo", "osImage"}, "<unknown>"),
          TextOr(node, {"status", "nodeInfo", "kernelVersion"}, "<unknown>"),
          TextOr(node, {"status", "nodeInfo", "containerRuntimeVersion"}, "<unknown>")};
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

// Old events have lastTimestamp and count, new ones eventTime and series.
Cells EventCells(const Json& event, WallTime now, const Json& object, std::string_view component,
                 const char* message) {
  std::string first = TextOr(event, {"firstTimestamp"}, TextAt(event, {"eventTime"}));
  std::string last = TextOr(event, {"lastTimestamp"}, first);
  last = TextOr(event, {"series", "lastObservedTime"}, last);
  std::int64_t count = kube::IntAt(event, {"series", "count"});
  if (count == 0) count = std::max<std::int64_t>(kube::IntAt(event, {"count"}), 1);
  const std::string host = TextAt(event, {"source", "host"});
  return {AgeOf(last, now),
          TextAt(event, {"type"}),
          TextAt(event, {"reason"}),
          fmt::format("{}/{}", Lower(TextAt(object, {"kind"})), TextAt(object, {"name"})),
          TextAt(object, {"fieldPath"}),
          host.empty() ? std::string(component) : fmt::format("{}, {}", component, host),
          TextAt(event, {message}),
          AgeOf(first, now),
          std::to_string(count),
          Name(event)};
}

Cells CoreEventCells(const Json& event, WallTime now) {
  return EventCells(event, now, ValueAt(event, {"involvedObject"}),
                    TextOr(event, {"source", "component"}, TextAt(event, {"reportingComponent"})),
                    "message");
}

Cells EventsEventCells(const Json& event, WallTime now) {
  return EventCells(event, now, ValueAt(event, {"regarding"}),
                    TextAt(event, {"reportingController"}), "note");
}

std::string ClaimState(const Json& claim) {
  std::string state;
  const auto add = [&](const char* word) {
    state += (state.empty() ? "" : ",") + std::string(word);
  };
  if (ValueAt(claim, {"metadata", "deletionTimestamp"}).is_string()) add("deleted");
  const bool allocated = ValueAt(claim, {"status", "allocation"}).is_object();
  if (allocated) add("allocated");
  if (SizeAt(claim, {"status", "reservedFor"}) > 0) add("reserved");
  if (!allocated && state.empty()) add("pending");
  return state;
}

// "80/TCP,443:30443/TCP".
std::string PortsOf(const Json& service) {
  std::string text;
  const Json& ports = ValueAt(service, {"spec", "ports"});
  if (!ports.is_array() || ports.empty()) return "<none>";
  for (const Json& port : ports) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", kube::IntAt(port, {"port"}));
    if (const std::int64_t node = kube::IntAt(port, {"nodePort"}); node > 0) {
      text += fmt::format(":{}", node);
    }
    text += "/" + TextOr(port, {"protocol"}, "TCP");
  }
  return text;
}

// "a=1,b=2" of an object of texts.
std::string PairsOf(const Json& pairs) {
  std::string text;
  if (!pairs.is_object() || pairs.empty()) return "<none>";
  for (const auto& [key, value] : MembersOf(pairs)) {
    if (!value.is_string()) continue;
    text +=
        fmt::format("{}{}={}", text.empty() ? "" : ",", key, value.get_ref<const std::string&>());
  }
  return text;
}

Cells ServiceCells(const Json& service, WallTime now) {
  const std::string type = TextOr(service, {"spec", "type"}, "ClusterIP");
  const Json& outside = ValueAt(service, {"spec", "externalIPs"});
  std::string addresses;
  if (outside.is_array()) {
    for (const Json& address : outside) {
      if (address.is_string()) {
        addresses += (addresses.empty() ? "" : ",") + address.get_ref<const std::string&>();
      }
    }
  }
  if (type == "ExternalName") addresses = TextAt(service, {"spec", "externalName"});
  if (addresses.empty()) addresses = type == "LoadBalancer" ? "<pending>" : "<none>";
  return {Name(service),
          type,
          TextOr(service, {"spec", "clusterIP"}, "<none>"),
          addresses,
          PortsOf(service),
          Age(service, now),
          PairsOf(ValueAt(service, {"spec", "selector"}))};
}

// "RWO,RWX".
std::string ModesOf(const Json& modes) {
  static const auto* const kShort =
      new std::map<std::string, std::string, std::less<>>{{"ReadOnlyMany", "ROX"},
                                                          {"ReadWriteMany", "RWX"},
                                                          {"ReadWriteOnce", "RWO"},
                                                          {"ReadWriteOncePod", "RWOP"}};
  std::string text;
  for (const auto& [name, abbreviation] : *kShort) {
    if (std::find(modes.begin(), modes.end(), Json(name)) == modes.end()) continue;
    text += (text.empty() ? "" : ",") + abbreviation;
  }
  return text;
}

std::string VolumePhase(const Json& object) {
  if (!ValueAt(object, {"metadata", "deletionTimestamp"}).is_null()) return "Terminating";
  return TextAt(object, {"status", "phase"});
}

Cells VolumeCells(const Json& volume, WallTime now) {
  std::string claim = TextAt(volume, {"spec", "claimRef", "name"});
  if (!claim.empty()) claim = TextAt(volume, {"spec", "claimRef", "namespace"}) + "/" + claim;
  return {Name(volume),
          TextAt(volume, {"spec", "capacity", "storage"}),
          ModesOf(ValueAt(volume, {"spec", "accessModes"})),
          TextAt(volume, {"spec", "persistentVolumeReclaimPolicy"}),
          VolumePhase(volume),
          claim,
          TextAt(volume, {"spec", "storageClassName"}),
          TextOr(volume, {"spec", "volumeAttributesClassName"}, "<unset>"),
          TextAt(volume, {"status", "reason"}),
          Age(volume, now),
          TextOr(volume, {"spec", "volumeMode"}, "<unset>")};
}

Cells VolumeClaimCells(const Json& claim, WallTime now) {
  const std::string volume = TextAt(claim, {"spec", "volumeName"});
  const bool has = !volume.empty();
  return {Name(claim),
          VolumePhase(claim),
          volume,
          has ? TextOr(claim, {"status", "capacity", "storage"}, "0") : "",
          has ? ModesOf(ValueAt(claim, {"status", "accessModes"})) : "",
          TextAt(claim, {"spec", "storageClassName"}),
          TextOr(claim, {"spec", "volumeAttributesClassName"}, "<unset>"),
          Age(claim, now),
          TextOr(claim, {"spec", "volumeMode"}, "<unset>")};
}

Cells StorageClassCells(const Json& made, WallTime now) {
  constexpr std::string_view kDefault = "storageclass.kubernetes.io/is-default-class";
  const bool is_default = TextAt(made, {"metadata", "annotations", kDefault}) == "true";
  return {Name(made) + (is_default ? " (default)" : ""),
          TextAt(made, {"provisioner"}),
          TextAt(made, {"reclaimPolicy"}),
          TextAt(made, {"volumeBindingMode"}),
          ValueAt(made, {"allowVolumeExpansion"}) == true,
          Age(made, now)};
}

Cells WebhookCells(const Json& configuration, WallTime now) {
  return {Name(configuration), SizeAt(configuration, {"webhooks"}), Age(configuration, now)};
}

using Printer = std::function<Cells(const Json&, WallTime)>;

// Every kind that has more than name and age.
const std::map<std::string, Printer, std::less<>>& Printers() {
  static const auto* const printers = new std::map<std::string, Printer, std::less<>>{
      {"pods", PodCells},
      {"nodes", NodeCells},
      {"events", CoreEventCells},
      {"events.events.k8s.io", EventsEventCells},
      {"namespaces",
       [](const Json& o, WallTime now) {
         return Cells{Name(o), TextAt(o, {"status", "phase"}), Age(o, now)};
       }},
      {"configmaps",
       [](const Json& o, WallTime now) {
         return Cells{Name(o), std::to_string(SizeAt(o, {"data"}) + SizeAt(o, {"binaryData"})),
                      Age(o, now)};
       }},
      {"secrets",
       [](const Json& o, WallTime now) {
         return Cells{Name(o), TextAt(o, {"type"}), std::to_string(SizeAt(o, {"data"})),
                      Age(o, now)};
       }},
      {"serviceaccounts",
       [](const Json& o, WallTime now) {
         return Cells{Name(o), std::to_string(SizeAt(o, {"secrets"})), Age(o, now)};
       }},
      {"services", ServiceCells},
      {"componentstatuses",
       [](const Json& o, WallTime) {
         const Json conditions = ValueAt(o, {"conditions"});
         const Json healthy = conditions.empty() ? Json::object() : conditions.at(0);
         const bool is_healthy = healthy.value("status", "") == "True";
         return Cells{Name(o), is_healthy ? "Healthy" : "Unhealthy", TextAt(healthy, {"message"}),
                      TextAt(healthy, {"error"})};
       }},
      {"leases.coordination.k8s.io",
       [](const Json& o, WallTime now) {
         return Cells{Name(o), TextAt(o, {"spec", "holderIdentity"}), Age(o, now)};
       }},
      {"resourceslices.resource.k8s.io",
       [](const Json& o, WallTime now) {
         return Cells{Name(o), TextOr(o, {"spec", "nodeName"}, "<unset>"),
                      TextAt(o, {"spec", "driver"}), TextAt(o, {"spec", "pool", "name"}),
                      Age(o, now)};
       }},
      {"resourceclaims.resource.k8s.io",
       [](const Json& o, WallTime now) {
         return Cells{Name(o), ClaimState(o), Age(o, now)};
       }},
      {"priorityclasses.scheduling.k8s.io",
       [](const Json& o, WallTime now) {
         return Cells{Name(o), kube::IntAt(o, {"value"}), ValueAt(o, {"globalDefault"}) == true,
                      Age(o, now), TextAt(o, {"preemptionPolicy"})};
       }},
      {"deployments.apps", DeploymentCells},
      {"replicasets.apps", ReplicaSetCells},
      {"statefulsets.apps", StatefulSetCells},
      {"daemonsets.apps", DaemonSetCells},
      {"controllerrevisions.apps", ControllerRevisionCells},
      {"jobs.batch", JobCells},
      {"poddisruptionbudgets.policy", PodDisruptionBudgetCells},
      {"endpoints", EndpointsCells},
      {"persistentvolumes", VolumeCells},
      {"persistentvolumeclaims", VolumeClaimCells},
      {"storageclasses.storage.k8s.io", StorageClassCells},
      {"mutatingwebhookconfigurations.admissionregistration.k8s.io", WebhookCells},
      {"validatingwebhookconfigurations.admissionregistration.k8s.io", WebhookCells},
      {"customresourcedefinitions.apiextensions.k8s.io", [](const Json& o, WallTime) {
         return Cells{Name(o), TextOr(o, {"metadata", "creationTimestamp"}, "<unknown>")};
       }}};
  return *printers;
}

}  // namespace

std::string AgeOf(const Json& time, WallTime now) {
  if (!time.is_string()) return "<unknown>";
  const auto parsed = ParseTime(time.get_ref<const std::string&>());
  return parsed.ok() ? HumanAge(now - *parsed) : "<unknown>";
}

Cells BuiltInCells(const Kind& kind, const Json& object, WallTime now) {
  const auto printer = Printers().find(kind.resource());
  if (printer != Printers().end()) return printer->second(object, now);
  return {Name(object), Age(object, now)};
}

}  // namespace tahoma::controller::apiserver
