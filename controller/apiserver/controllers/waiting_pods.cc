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
  // A pod is told by the same Event again, not by one more.
  const std::string name =
      fmt::format("waits-{}", Sha256Hex(std::string(kube::UidOf(pod)) + message).substr(0, 16));
  const Note note{.type = "Warning", .reason = reason, .message = message};
  // The pod waits all the same when the Event is lost.
  (void)Send(EventRequest(pod, note, name, "tahoma", now));
}

}  // namespace tahoma::controller::apiserver
