#include "dra-plugin/slices/completeness.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

#include "dra-plugin/slices/slice_json.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"

namespace tahoma::dra {
namespace {

constexpr char kCountersGate[] = "DRAPartitionableDevices";
constexpr char kTaintsGate[] = "DRADeviceTaints";
constexpr int kMinorWithManyCounters = 35;
constexpr int kMinorWithGatesOn = 36;  // by default

struct Lack {
  std::string reason;
  std::string message;
};

// "NeuronCores (LNC 1 and LNC 2) and the whole node"; empty for nothing.
std::string Words(const Publish& kinds) {
  std::string out;
  if (kinds.lnc1 && kinds.lnc2) {
    out = "NeuronCores (LNC 1 and LNC 2)";
  } else if (kinds.lnc1 || kinds.lnc2) {
    out = kinds.lnc1 ? "NeuronCores (LNC 1)" : "NeuronCores (LNC 2)";
  }
  if (kinds.node) out += out.empty() ? "the whole node" : " and the whole node";
  return out;
}

std::string Cure(int minor) {
  return minor >= kMinorWithGatesOn
             ? "Turn it on"
             : "Turn it on, or upgrade to Kubernetes 1.36, where it is on by default";
}

// Before 1.35 the gate alone brings back less than an upgrade does.
std::string CureOfNoCounters(const DevicePool& pool, int minor) {
  if (minor >= kMinorWithManyCounters) return Cure(minor);
  const std::string still = Words(LeftOut(pool, CounterSupport::kTogether));
  if (still.empty()) return Cure(minor);
  return fmt::format(
      "Upgrade to Kubernetes 1.36, where it is on by default; turned on in 1.{}, it leaves out {}",
      minor, still);
}

void AddLackOfCounters(const DevicePool& pool, const ServerSupport& server,
                       std::vector<Lack>& lacks) {
  const std::string left_out = Words(LeftOut(pool, server.counters));
  if (left_out.empty()) return;
  if (server.counters == CounterSupport::kTogether) {
    lacks.push_back(
        {"FewCounters",
         fmt::format(
             "Not shown: {}, for Kubernetes 1.{} keeps too few counters of devices. Upgrade "
             "to Kubernetes 1.36, or to 1.35 with the feature gate {} on.",
             left_out, server.minor, kCountersGate)});
    return;
  }
  lacks.push_back(
      {"NoCounters",
       fmt::format("Not shown: {}, for Kubernetes 1.{} keeps no counters of devices while its "
                   "feature gate {} is off. {}.",
                   left_out, server.minor, kCountersGate, CureOfNoCounters(pool, server.minor))});
}

bool HasTaint(const DevicePool& pool, std::string_view key) {
  for (const auto& group : pool.groups) {
    for (const Device& device : group) {
      for (const Taint& taint : device.taints) {
        if (taint.key == key) return true;
      }
    }
  }
  return false;
}

void AddLackOfTaints(const DevicePool& pool, const ServerSupport& server,
                     std::vector<Lack>& lacks) {
  if (!server.dropped_fields.contains(kTaintsField)) return;
  const std::string managed =
      HasTaint(pool, kManagedTaint)
          ? fmt::format(", and kube-scheduler does not see the taint {}", kManagedTaint)
          : "";
  lacks.push_back(
      {"NoTaints",
       fmt::format(
           "Not shown: taints of devices. What has a fault is left out instead, pods that "
           "use it stay{}, for Kubernetes 1.{} keeps no taints of devices while its feature "
           "gate {} is off. {}.",
           managed, server.minor, kTaintsGate, Cure(server.minor))});
}

void AddOtherFields(const ServerSupport& server, std::vector<Lack>& lacks) {
  std::set<std::string> others = server.dropped_fields;
  others.erase(kTaintsField);
  if (others.empty()) return;
  lacks.push_back(
      {"FieldsDropped",
       fmt::format(
           "Not shown: {}, for Kubernetes 1.{} does not keep them: its version does not know "
           "them, or a feature gate is off. Upgrade it, or turn the gate on.",
           fmt::join(others, ", "), server.minor)});
}

const Json* ConditionOf(const Json& node) {
  for (const Json& condition : kube::ListAt(node, {"status", "conditions"})) {
    if (kube::StringAt(condition, {"type"}) == kDevicesComplete) return &condition;
  }
  return nullptr;
}

}  // namespace

Completeness CompletenessOf(const DevicePool& pool, const ServerSupport& server) {
  std::vector<Lack> lacks;
  AddLackOfCounters(pool, server, lacks);
  AddLackOfTaints(pool, server, lacks);
  AddOtherFields(server, lacks);
  if (lacks.empty()) {
    return {.complete = true,
            .reason = "AllShown",
            .message = "ResourceSlices show every device that the plugin is to show"};
  }
  Completeness out = {.complete = false, .reason = "", .message = ""};
  for (const Lack& lack : lacks) {
    out.reason += (out.reason.empty() ? "" : "And") + lack.reason;
    out.message += (out.message.empty() ? "" : " ") + lack.message;
  }
  return out;
}

absl::Status CompletenessReporter::Report(const Json& node, const Completeness& found,
                                          WallTime now) {
  const std::string_view status = found.complete ? "True" : "False";
  const Json* shown = ConditionOf(node);
  const auto shows = [&](std::string_view field, std::string_view value) {
    return shown != nullptr && kube::StringAt(*shown, {field}) == value;
  };
  const bool same_status = shows("status", status);
  if (same_status && shows("reason", found.reason) && shows("message", found.message)) {
    return absl::OkStatus();
  }
  const std::string_view since =
      same_status ? kube::StringAt(*shown, {"lastTransitionTime"}) : std::string_view();
  const std::string time = FormatTime(now);
  const Json condition = {{"type", kDevicesComplete},
                          {"status", status},
                          {"reason", found.reason},
                          {"message", found.message},
                          {"lastHeartbeatTime", time},
                          {"lastTransitionTime", since.empty() ? time : std::string(since)}};
  const Json patch = {{"status", {{"conditions", Json::array({condition})}}}};
  const auto written = api_.Patch(kube::kNodes, {"", node_name_}, kube::PatchType::kStrategicMerge,
                                  patch, {.subresource = "status"});
  if (!written.ok()) {
    return Annotate(written.status(),
                    fmt::format("the condition {} of node {}", kDevicesComplete, node_name_));
  }
  spdlog::info("node {}: the condition {} is {} ({}): {}", node_name_, kDevicesComplete, status,
               found.reason, found.message);
  return absl::OkStatus();
}

}  // namespace tahoma::dra
