#include "controller/apiserver/verbs/pod_connect.h"

#include <optional>
#include <string>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/verbs/pod_node.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {

bool IsPodConnect(std::string_view subresource) {
  return subresource == "exec" || subresource == "attach" || subresource == "portforward";
}

absl::StatusOr<rest::Response> ConnectPod(const ApiContext& context, const ApiRequest& request) {
  if (request.http->method != "GET" && request.http->method != "POST") {
    return MethodNotAllowedError();
  }
  const ObjectPtr pod = context.objects.Get(request.resource(), request.key());
  if (pod == nullptr) return NotFoundError(*request.kind, request.name);
  std::string target = fmt::format("/portForward/{}/{}", request.name_space, request.name);
  if (request.subresource != "portforward") {
    TAHOMA_ASSIGN_OR_RETURN(const std::string container, ContainerOf(request, *pod->body));
    target = fmt::format("/{}/{}/{}/{}", request.subresource, request.name_space, request.name,
                         container);
  }
  const std::string node = TextAt(PartOf(*pod->body, "spec"), "nodeName");
  if (node.empty()) {
    return BadRequestError(fmt::format("pod {} does not have a host assigned", request.name));
  }
  const std::optional<NodeEndpoint> endpoint = EndpointOf(context, node);
  if (!endpoint || !context.node_tunnel) {
    return GenericError(500, "InternalError",
                        fmt::format("Internal error occurred: the pod runner of node \"{}\" has no "
                                    "address (an InternalIP that others reach, and a port), so pod "
                                    "{} cannot be reached",
                                    node, request.name));
  }
  // The server has taken no control character in the query, and a pod runner reads it anew.
  if (!request.http->query.empty()) target += "?" + request.http->query;
  return context.node_tunnel(*endpoint, target, *request.http);
}

}  // namespace tahoma::controller::apiserver
