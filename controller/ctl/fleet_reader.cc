#include "controller/ctl/fleet_reader.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "controller/model/gang.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"

namespace tahoma::controller {
namespace {

using json = Json;

// Returns an object; null when there is no such object.
absl::StatusOr<std::shared_ptr<const json>> ReadOne(kube::Transport& transport,
                                                    const kube::Resource& resource,
                                                    const kube::ObjectKey& key) {
  kube::InterruptibleSleeper sleeper;
  absl::StatusOr<json> object =
      kube::Client(transport, sleeper, Rng(0), {.attempts = 1}).Get(resource, key);
  if (absl::IsNotFound(object.status())) return nullptr;
  if (!object.ok()) return Annotate(object.status(), resource.ObjectPath(key));
  if (!object->is_object()) {
    return Unavailable("{}: the answer is no object", resource.ObjectPath(key));
  }
  return std::make_shared<const json>(*std::move(object));
}

// Returns a line for each condition, or for the conditions of one type.
std::string Conditions(const json& object, std::string_view only = "") {
  std::string text;
  for (const json& condition : kube::ListAt(object, {"status", "conditions"})) {
    const std::string_view type = kube::StringAt(condition, {"type"});
    if (!only.empty() && type != only) continue;
    text += fmt::format("  {} {}", type, kube::StringAt(condition, {"status"}));
    const std::string_view reason = kube::StringAt(condition, {"reason"});
    if (!reason.empty()) text += fmt::format(" ({})", reason);
    const std::string_view message = kube::StringAt(condition, {"message"});
    if (!message.empty()) text += fmt::format(": {}", message);
    text += '\n';
  }
  return text;
}

std::string WhyGang(const json& gang) {
  const std::string_view reason = kube::StringAt(gang, {"status", "reason"});
  const std::string_view predicted = kube::StringAt(gang, {"status", "predictedAllReduce"});
  const std::string_view queue = kube::StringAt(gang, {"status", "queue"});
  return fmt::format(
      "Gang {}: {}{}{}\n{}{}{}", kube::StringAt(gang, {"metadata", "name"}),
      kube::StringAt(gang, {"status", "phase"}), reason.empty() ? "" : ", ", reason,
      queue.empty() ? "" : fmt::format("  Queue {}\n", queue),
      predicted.empty()
          ? ""
          : fmt::format("  An all-reduce of 256 MiB in each chip is predicted to take {}\n",
                        predicted),
      Conditions(gang));
}

// Returns why a pod without a node and without a condition may wait for ever.
std::string WhoPlaces(const json& pod) {
  const std::string_view scheduler = kube::StringAt(pod, {"spec", "schedulerName"});
  if (scheduler.empty() || scheduler == "tahoma" || scheduler == "default-scheduler" ||
      !Conditions(pod, "PodScheduled").empty()) {
    return "";
  }
  return fmt::format(
      "  spec.schedulerName is \"{}\": Tahoma places the pod only if schedulerNames of its "
      "controller has that name; usual are tahoma and default-scheduler\n",
      scheduler);
}

std::string WhyPod(const json& pod) {
  const std::string_view node = kube::StringAt(pod, {"spec", "nodeName"});
  return fmt::format("Pod {}: {}{}{}\n{}{}", kube::StringAt(pod, {"metadata", "name"}),
                     kube::StringAt(pod, {"status", "phase"}), node.empty() ? "" : " on node ",
                     node, Conditions(pod, "PodScheduled"), node.empty() ? WhoPlaces(pod) : "");
}

}  // namespace

absl::Status ReadAll(kube::Transport& transport, const kube::Resource& resource,
                     const std::function<void(const json& object)>& each,
                     kube::ListOptions options) {
  kube::InterruptibleSleeper sleeper;
  absl::flat_hash_set<std::string> given;  // uids: a list that expired begins anew
  const absl::Status read = kube::Client(transport, sleeper, Rng(0), {.attempts = 1})
                                .ForEach(resource, std::move(options), [&](const json& object) {
                                  const std::string_view uid = kube::UidOf(object);
                                  if (uid.empty() || given.emplace(uid).second) each(object);
                                  return absl::OkStatus();
                                });
  return Annotate(read, resource.CollectionPath(""));
}

absl::StatusOr<Fleet> ReadFleet(kube::Transport& transport) {
  FleetBuilder fleet;
  TAHOMA_RETURN_IF_ERROR(
      ReadAll(transport, kube::kNodes, [&](const json& object) { fleet.AddNode(object); }));
  TAHOMA_RETURN_IF_ERROR(ReadAll(transport, kube::kResourceSlices,
                                 [&](const json& object) { fleet.AddSlice(object); }));
  TAHOMA_RETURN_IF_ERROR(
      ReadAll(transport, kube::kPods, [&](const json& object) { fleet.AddPod(object); }));
  TAHOMA_RETURN_IF_ERROR(ReadAll(transport, kube::kResourceClaims,
                                 [&](const json& object) { fleet.AddClaim(object); }));
  return std::move(fleet).Finish();
}

absl::StatusOr<Why> ReadWhy(kube::Transport& transport, const std::string& ns,
                            const std::string& name) {
  TAHOMA_ASSIGN_OR_RETURN(auto gang, ReadOne(transport, kGangs, {ns, name}));
  if (gang) return Why{.gang = std::move(gang)};
  TAHOMA_ASSIGN_OR_RETURN(auto pod, ReadOne(transport, kube::kPods, {ns, name}));
  if (!pod) return NotFound("no gang and no pod {} in namespace {}", name, ns);
  Why why{.pod = std::move(pod)};
  if (const auto label = kube::LabelOf(*why.pod, "tahoma.dev/gang")) {
    TAHOMA_ASSIGN_OR_RETURN(why.gang, ReadOne(transport, kGangs, {ns, std::string(*label)}));
  }
  return why;
}

std::string WhyText(const Why& why) {
  return (why.pod ? WhyPod(*why.pod) : "") + (why.gang ? WhyGang(*why.gang) : "");
}

Json WhyJson(const Why& why) {
  const auto part = [](const json& object, const std::vector<const char*>& status) {
    json shown = {{"namespace", kube::StringAt(object, {"metadata", "namespace"})},
                  {"name", kube::StringAt(object, {"metadata", "name"})},
                  {"conditions", kube::ListAt(object, {"status", "conditions"})}};
    for (const char* field : status) shown[field] = kube::StringAt(object, {"status", field});
    return shown;
  };
  json shown = json::object();
  if (why.pod) {
    shown["pod"] = part(*why.pod, {"phase"});
    shown["pod"]["node"] = kube::StringAt(*why.pod, {"spec", "nodeName"});
  }
  if (why.gang) {
    shown["gang"] =
        part(*why.gang, {"phase", "reason", "queue", "placement", "predictedAllReduce"});
  }
  return shown;
}

}  // namespace tahoma::controller
