// Events of pods that wait in vain: for a scheduler that does not run here, or for a claim template
// that does not exist.

#include <algorithm>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/digest.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {

bool Controllers::IsOfOtherScheduler(const Json& pod) const {
  const std::vector<std::string>& ours = options_.scheduler_names;
  return !ours.empty() && TextAt(pod, {"spec", "nodeName"}).empty() &&
         std::ranges::find(ours, TextAt(pod, {"spec", "schedulerName"})) == ours.end();
}

Outcome Controllers::TellOtherPod(const std::string& pod_key, WallTime now) {
  const ObjectPtr pod = objects_.Get(kPodResource, pod_key);
  if (pod == nullptr || IsBeingDeleted(*pod->body) || !IsOfOtherScheduler(*pod->body)) {
    return Outcome::kDone;
  }
  const std::string text = fmt::format(
      "Tahoma does not place this pod: spec.schedulerName is \"{}\", and Tahoma's are {} "
      "(schedulerNames of the controller)",
      TextAt(*pod->body, {"spec", "schedulerName"}), fmt::join(options_.scheduler_names, ", "));
  Warn(*pod->body, "FailedScheduling", text, now);
  return Outcome::kDone;
}

void Controllers::WarnOfTemplate(const Json& pod, const Json& entry, WallTime now) {
  const std::string name = TextAt(entry, {"resourceClaimTemplateName"});
  const std::string text = fmt::format(
      "PodResourceClaim {}: resource claim template \"{}\": resourceclaimtemplate.resource.k8s.io "
      "\"{}\" not found",
      TextAt(entry, {"name"}), name, name);
  Warn(pod, "FailedResourceClaimCreation", text, now);
}

void Controllers::Warn(const Json& pod, const char* reason, const std::string& message,
                       WallTime now) {
  const std::string space = TextAt(pod, {"metadata", "namespace"});
  const std::string uid(kube::UidOf(pod));
  // A pod is told by the same Event again, not by one more.
  const std::string name = fmt::format("waits-{}", Sha256Hex(uid + message).substr(0, 16));
  const Json event = {{"metadata", {{"name", name}, {"namespace", space}}},
                      {"involvedObject",
                       {{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"namespace", space},
                        {"name", TextAt(pod, {"metadata", "name"})},
                        {"uid", uid}}},
                      {"type", "Warning"},
                      {"reason", reason},
                      {"message", message},
                      {"source", {{"component", "tahoma"}}},
                      {"firstTimestamp", FormatTime(now)},
                      {"lastTimestamp", FormatTime(now)},
                      {"count", 1}};
  // The pod waits all the same when the Event is lost.
  (void)Send(kube::CreateRequest(kube::kEvents, space, event));
}

}  // namespace tahoma::controller::apiserver
