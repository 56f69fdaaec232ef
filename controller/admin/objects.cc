#include "controller/admin/objects.h"

#include <algorithm>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

// Requests that are under way together, where the server is in this process.
constexpr std::size_t kTogether = 64;
constexpr std::size_t kRefusedMost = 100;

absl::Status AsCallersError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
      return status;
    default:
      return Unavailable("the Kubernetes API does not do it: {}", Message(status));
  }
}

kube::Request EvictionOf(const KnownPod& pod) {
  Json eviction = {{"apiVersion", "policy/v1"},
                   {"kind", "Eviction"},
                   {"metadata", {{"name", pod.key.name}, {"namespace", pod.key.ns}}}};
  if (!pod.uid.empty()) eviction["deleteOptions"]["preconditions"]["uid"] = pod.uid;
  kube::Request request{.method = "POST",
                        .target = kube::kPods.ObjectPath({pod.key.ns, pod.key.name}, "eviction")};
  request.headers = {{"Content-Type", "application/json"}};
  request.parsed = std::make_shared<const Json>(std::move(eviction));
  return request;
}

template <typename RequestOf>
EndedPods SendFor(kube::Transport& api, const std::vector<KnownPod>& pods,
                  const RequestOf& request_of) {
  EndedPods ended;
  for (std::size_t first = 0; first < pods.size(); first += kTogether) {
    const std::size_t last = std::min(pods.size(), first + kTogether);
    std::vector<kube::Request> requests;
    for (std::size_t i = first; i < last; ++i) requests.push_back(request_of(pods[i]));
    const auto answers = api.SendAll(requests);
    for (std::size_t i = first; i < last; ++i) {
      const absl::Status status = kube::StatusOf(answers[i - first]);
      if (status.ok()) {
        ++ended.ended;
      } else if (absl::IsNotFound(status) || absl::IsAborted(status)) {
        ++ended.gone;  // or another pod has its name
      } else if (ended.refused.size() < kRefusedMost) {
        ended.refused.push_back(fmt::format("{}: {}", ToString(pods[i].key), Message(status)));
      }
    }
  }
  return ended;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Json>> Send(kube::Transport& api,
                                                 const kube::Request& request) {
  auto object = kube::ObjectOf(api.Send(request));
  if (!object.ok()) return AsCallersError(object.status());
  return object;
}

EndedPods Evict(kube::Transport& api, const std::vector<KnownPod>& pods) {
  return SendFor(api, pods, EvictionOf);
}

EndedPods Delete(kube::Transport& api, const std::vector<KnownPod>& pods) {
  return SendFor(api, pods, [](const KnownPod& pod) {
    return kube::DeleteRequest(kube::kPods, {pod.key.ns, pod.key.name}, {.uid = pod.uid});
  });
}

}  // namespace tahoma::controller
