#include "controller/apiserver/verbs/pod_log.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/verbs/admission.h"
#include "controller/apiserver/verbs/pod_node.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

// Returns the query with the parameters that a kubelet knows, whose values are numbers, flags or
// times.
absl::StatusOr<std::string> LogQuery(const ApiRequest& request) {
  std::string query;
  const auto add = [&](std::string_view key, std::string_view value) {
    query += fmt::format("{}{}={}", query.empty() ? '?' : '&', key, value);
  };
  for (const char* flag : {"follow", "previous", "timestamps"}) {
    if (request.flag(flag)) add(flag, "true");
  }
  // Rules and texts: kubernetes/kubernetes pkg/apis/core/validation ValidatePodLogOptions.
  std::vector<Cause> causes;
  for (const char* key : {"tailLines", "limitBytes", "sinceSeconds"}) {
    TAHOMA_ASSIGN_OR_RETURN(const auto value, request.number(key));
    if (!value) continue;
    const int least = key == std::string_view("tailLines") ? 0 : 1;
    if (*value < least) {
      causes.push_back(
          Invalid(key, *value,
                  least == 0 ? "must be greater than or equal to 0" : "must be greater than 0"));
    }
    add(key, std::to_string(*value));
  }
  if (const std::string_view since = request.parameter("sinceTime"); !since.empty()) {
    if (!ParseTime(since).ok()) {
      return BadRequestError(fmt::format("invalid sinceTime '{}'", since));
    }
    if (request.query.contains("sinceSeconds")) {
      causes.push_back(
          Forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
    }
    add("sinceTime", since);
  }
  if (!causes.empty()) return InvalidError("", "PodLogOptions", request.name, causes);
  return query;
}

}  // namespace

absl::StatusOr<rest::Response> PodLog(const ApiContext& context, const ApiRequest& request) {
  if (request.http->method != "GET") return MethodNotAllowedError();
  const ObjectPtr pod = context.objects.Get(request.resource(), request.key());
  if (pod == nullptr) return NotFoundError(*request.kind, request.name);
  TAHOMA_ASSIGN_OR_RETURN(const std::string container, ContainerOf(request, *pod->body));
  TAHOMA_ASSIGN_OR_RETURN(const std::string query, LogQuery(request));
  const std::string node_name = TextAt(PartOf(*pod->body, "spec"), "nodeName");
  // A pod without a node has written nothing.
  if (node_name.empty()) {
    rest::Response nothing = rest::Response::Text(204, "");
    nothing.content_type.clear();
    return nothing;
  }
  const std::optional<NodeEndpoint> endpoint = EndpointOf(context, node_name);
  if (!endpoint || !context.node_fetch) {
    return GenericError(500, "InternalError",
                        fmt::format("Internal error occurred: the pod runner of node \"{}\" has no "
                                    "address (an InternalIP that others reach, and a port), so the "
                                    "log of pod {} cannot be read",
                                    node_name, request.name));
  }
  return context.node_fetch(*endpoint, fmt::format("/containerLogs/{}/{}/{}{}", request.name_space,
                                                   request.name, container, query));
}

}  // namespace tahoma::controller::apiserver
