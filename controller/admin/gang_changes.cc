#include "controller/admin/gang_changes.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/admin/answer.h"
#include "controller/admin/objects.h"
#include "controller/model/gang.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/name.h"
#include "lib/kube/object.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

// The controller writes the status of the same object: after a conflict a change is tried again.
constexpr int kTriesMost = 4;
// A gang has at most 4096 pods, and some that have ended.
constexpr int kPagesMost = 32;

kube::ObjectKey KeyOf(const rest::Request& request) {
  return {std::string(request.param("namespace")), std::string(request.param("name"))};
}

// A gang's pods carry its name as a label: no gang has a longer name.
bool MayBeGang(const kube::ObjectKey& key) { return !kube::WrongLabelValue(key.name); }

// The version of the spec: unlike the object's resourceVersion, a change of the status keeps it.
std::string TagOf(const Json& gang) {
  const Json* generation = kube::ValueAt(gang, {"metadata", "generation"});
  return fmt::format("\"{}-{}\"", kube::StringAt(gang, {"metadata", "uid"}),
                     generation == nullptr ? "0" : generation->dump());
}

Schema SpecSchema() {
  return ObjectOf({{"namespace", Text("Its namespace.")},
                   {"name", Text("Its name.")},
                   {"members", Integer(1, 4096, "Its pods.")},
                   {"shape?", Text("The box of a slice.")},
                   {"chips?", Integer(1, 65536, "Or the chips of a slice.")},
                   {"slices", Integer(1, 1024, "Equal pieces.")},
                   {"priority?", Integer(INT32_MIN, INT32_MAX,
                                         "A higher one is placed first. Absent: the highest "
                                         "priority of its pods counts.")},
                   {"queue?", Text("Where it waits.")},
                   {"maxRuntime?", Text("How long it may run.")},
                   {"capacityBlock?", Text("In which it runs.")}},
                  "What is wanted of a gang.");
}

rest::Response SpecAnswer(const Json& gang, const kube::ObjectKey& key) {
  ordered_json body = {{"namespace", key.ns}, {"name", key.name}};
  const Json* spec = kube::ValueAt(gang, {"spec"});
  for (const auto& [name, otherwise] :
       std::vector<std::pair<const char*, int>>{{"members", 1},
                                                {"shape", -1},
                                                {"chips", -1},
                                                {"slices", 1},
                                                {"priority", -1},
                                                {"queue", -1},
                                                {"maxRuntime", -1},
                                                {"capacityBlock", -1}}) {
    const Json* value = spec == nullptr ? nullptr : FindMember(*spec, name);
    if (value != nullptr) {
      body[name] = ordered_json::parse(value->dump());
    } else if (otherwise >= 0) {
      body[name] = otherwise;
    }
  }
  rest::Response answer = Answer(200, body);
  answer.headers.emplace_back("ETag", TagOf(gang));
  return answer;
}

absl::Status NoGang(const kube::ObjectKey& key) {
  return NotFound("there is no Gang {}/{}", key.ns, key.name);
}

// Returns the pods that carry the gang's label.
absl::StatusOr<std::vector<KnownPod>> PodsOf(kube::Transport& api, const kube::ObjectKey& gang) {
  std::vector<KnownPod> pods;
  kube::ListOptions options{.ns = gang.ns, .label_selector = "tahoma.dev/gang=" + gang.name};
  for (int page = 0; page < kPagesMost; ++page) {
    TAHOMA_ASSIGN_OR_RETURN(const auto list, Send(api, kube::ListRequest(kube::kPods, options)));
    const Json* items = FindMember(*list, "items");
    for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
      const Json& pod = items->at(i);
      if (kube::ValueAt(pod, {"metadata", "deletionTimestamp"}) != nullptr) continue;
      pods.push_back({.key = {gang.ns, std::string(kube::StringAt(pod, {"metadata", "name"}))},
                      .uid = std::string(kube::StringAt(pod, {"metadata", "uid"}))});
    }
    options.continue_token = kube::StringAt(*list, {"metadata", "continue"});
    if (options.continue_token.empty()) break;
  }
  return pods;
}

}  // namespace

void GangChanges::AddRoutes(RouteTable& routes) {
  routes.Name("GangSpec", SpecSchema());
  const std::string path = "/v1/gangs/{namespace}/{name}";
  routes.Add({.path = path + "/spec",
              .id = "getGangSpec",
              .summary = "What is wanted of a gang, as its Gang says now.",
              .needs = {.verb = "get", .group = "tahoma.dev", .resource = "gangs"},
              .answer = Named("GangSpec"),
              .tagged = true,
              .handler = [this](const auto& r) { return ShowSpec(r); }});
  routes.Add({.method = "PATCH",
              .path = path + "/spec",
              .id = "patchGangSpec",
              .summary = "Changes a gang's priority; If-Match says which version is changed.",
              .needs = {.verb = "patch", .group = "tahoma.dev", .resource = "gangs"},
              .headers = {{"If-Match?", Text("The ETag that was read, or * for any.", 256)}},
              .body = BodyOf(
                  {{"priority", Integer(INT32_MIN, INT32_MAX, "A higher one is placed first.")}}),
              .answer = Named("GangSpec"),
              .tagged = true,
              .handler = [this](const auto& r) { return PatchSpec(r); }});
  routes.Add({.method = "DELETE",
              .path = path,
              .id = "cancelGang",
              .summary = "Cancels a gang: deletes its Gang and its pods, with their grace; for a "
                         "pod without a Gang that pod.",
              .needs = {.verb = "delete", .group = "tahoma.dev", .resource = "gangs"},
              .status = 202,
              .answer = ObjectOf({{"namespace", Text("Its namespace.")},
                                  {"name", Text("Its name.")},
                                  {"kind", Word({"Gang", "Pod"}, "What was deleted.")},
                                  {"podsEnding", Integer(0, 65536, "Pods that were deleted.")},
                                  {"refused", ListOf(Text("A pod and why.", kLongTextMost),
                                                     "Pods that were not; ask again.")}}),
              .handler = [this](const auto& r) { return Cancel(r); }});
}

rest::Response GangChanges::ShowSpec(const rest::Request& request) const {
  const kube::ObjectKey key = KeyOf(request);
  const auto gang = Send(api_, kube::GetRequest(kGangs, key));
  if (absl::IsNotFound(gang.status())) return Refused(NoGang(key));
  if (!gang.ok()) return Refused(gang.status());
  return SpecAnswer(**gang, key);
}

rest::Response GangChanges::PatchSpec(const rest::Request& request) const {
  const kube::ObjectKey key = KeyOf(request);
  const std::string match(request.header("If-Match"));
  if (match.empty()) {
    return rest::Response::Problem(
        428, "If-Match is missing: the ETag of the spec that is to be changed, or * for any");
  }
  const std::int64_t priority = IntegerOf(*request.parsed, "priority").value();
  absl::Status failed;
  for (int i = 0; i < kTriesMost; ++i) {
    const auto gang = Send(api_, kube::GetRequest(kGangs, key));
    if (absl::IsNotFound(gang.status())) return Refused(NoGang(key));
    if (!gang.ok()) return Refused(gang.status());
    if (match != "*" && match != TagOf(**gang)) {
      return rest::Response::Problem(
          412, fmt::format("If-Match {}: the spec was changed meanwhile, it is {} now", match,
                           TagOf(**gang)));
    }
    Json patch = {{"spec", {{"priority", priority}}}};
    patch["metadata"]["resourceVersion"] = kube::StringAt(**gang, {"metadata", "resourceVersion"});
    const auto patched =
        Send(api_, kube::PatchRequest(kGangs, key, kube::PatchType::kMerge, std::move(patch)));
    if (patched.ok()) return SpecAnswer(**patched, key);
    failed = patched.status();
    if (!absl::IsAborted(failed)) break;
  }
  return Refused(failed);
}

rest::Response GangChanges::Cancel(const rest::Request& request) const {
  const kube::ObjectKey key = KeyOf(request);
  const auto deleted = Send(api_, kube::DeleteRequest(kGangs, key));
  if (!deleted.ok() && !absl::IsNotFound(deleted.status())) return Refused(deleted.status());
  std::vector<KnownPod> pods;
  if (MayBeGang(key)) {
    auto labelled = PodsOf(api_, key);
    if (!labelled.ok()) return Refused(labelled.status());
    pods = *std::move(labelled);
  }
  // A pod without a Gang is a gang of one, unless the pod belongs to another gang.
  const bool single = !deleted.ok() && pods.empty();
  if (single) {
    const auto pod = Send(api_, kube::GetRequest(kube::kPods, key));
    if (!pod.ok() && !absl::IsNotFound(pod.status())) return Refused(pod.status());
    if (!pod.ok() || kube::ValueAt(**pod, {"metadata", "labels", "tahoma.dev/gang"}) != nullptr) {
      return Refused(
          NotFound("there is no Gang and no pod without a Gang {}/{}", key.ns, key.name));
    }
    pods.push_back({.key = {key.ns, key.name},
                    .uid = std::string(kube::StringAt(**pod, {"metadata", "uid"}))});
  }
  const EndedPods ended = Delete(api_, pods);
  return Answer(202, {{"namespace", key.ns},
                      {"name", key.name},
                      {"kind", single ? "Pod" : "Gang"},
                      {"podsEnding", ended.ended},
                      {"refused", ended.refused}});
}

}  // namespace tahoma::controller
