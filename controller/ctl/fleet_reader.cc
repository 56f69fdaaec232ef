#include "controller/ctl/fleet_reader.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "controller/ctl/table.h"
#include "controller/model/gang.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"

namespace tahoma::controller {
namespace {

using json = Json;

// Returns an object; nullopt when there is no such object.
absl::StatusOr<std::optional<json>> ReadOne(kube::Transport& transport,
                                            const kube::Resource& resource,
                                            const kube::ObjectKey& key) {
  kube::InterruptibleSleeper sleeper;
  absl::StatusOr<json> object =
      kube::Client(transport, sleeper, Rng(0), {.attempts = 1}).Get(resource, key);
  if (absl::IsNotFound(object.status())) return std::optional<json>();
  if (!object.ok()) return Annotate(object.status(), resource.ObjectPath(key));
  if (!object->is_object()) {
    return Unavailable("{}: the answer is no object", resource.ObjectPath(key));
  }
  return std::optional<json>(*std::move(object));
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
  return fmt::format(
      "Gang {}: {}{}{}\n{}{}", kube::StringAt(gang, {"metadata", "name"}),
      kube::StringAt(gang, {"status", "phase"}), reason.empty() ? "" : ", ", reason,
      predicted.empty()
          ? ""
          : fmt::format("  An all-reduce of 256 MiB in each chip is predicted to take {}\n",
                        predicted),
      Conditions(gang));
}

std::string WhyPod(const json& pod) {
  const std::string_view node = kube::StringAt(pod, {"spec", "nodeName"});
  return fmt::format("Pod {}: {}{}{}\n{}", kube::StringAt(pod, {"metadata", "name"}),
                     kube::StringAt(pod, {"status", "phase"}), node.empty() ? "" : " on node ",
                     node, Conditions(pod, "PodScheduled"));
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

absl::StatusOr<std::string> ReadGangs(kube::Transport& transport) {
  std::vector<std::vector<std::string>> rows = {
      {"NAMESPACE", "NAME", "MEMBERS", "SHAPE", "PHASE", "ALLREDUCE", "PLACEMENT"}};
  TAHOMA_RETURN_IF_ERROR(ReadAll(transport, kGangs, [&](const json& gang) {
    const auto text = [&](const char* part, const char* field) {
      return std::string(kube::StringAt(gang, {part, field}));
    };
    rows.push_back({text("metadata", "namespace"), text("metadata", "name"),
                    std::to_string(kube::IntAt(gang, {"spec", "members"})), text("spec", "shape"),
                    text("status", "phase"), text("status", "predictedAllReduce"),
                    text("status", "placement")});
  }));
  return TableText(rows);
}

absl::StatusOr<std::string> ReadWhy(kube::Transport& transport, const std::string& ns,
                                    const std::string& name) {
  TAHOMA_ASSIGN_OR_RETURN(const std::optional<json> gang, ReadOne(transport, kGangs, {ns, name}));
  if (gang) return WhyGang(*gang);
  TAHOMA_ASSIGN_OR_RETURN(const std::optional<json> pod,
                          ReadOne(transport, kube::kPods, {ns, name}));
  if (!pod) return NotFound("no gang and no pod {} in namespace {}", name, ns);
  std::string text = WhyPod(*pod);
  if (const auto label = kube::LabelOf(*pod, "tahoma.dev/gang")) {
    TAHOMA_ASSIGN_OR_RETURN(const std::optional<json> its,
                            ReadOne(transport, kGangs, {ns, std::string(*label)}));
    if (its) text += WhyGang(*its);
  }
  return text;
}

}  // namespace tahoma::controller
