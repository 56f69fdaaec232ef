#include "controller/apiserver/verbs/pod_log.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/verbs/admission.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

// The container to read: the one asked for, or the only one.
absl::StatusOr<std::string> Container(const ApiRequest& request, const json& pod) {
  std::vector<std::string> names;
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    const json containers = PartOf(pod, "spec").value(list, json::array());
    for (const json& container : containers) names.push_back(TextAt(container, "name"));
    if (list == std::string_view("containers") && request.parameter("container").empty()) break;
  }
  const std::string wanted(request.parameter("container"));
  if (wanted.empty() && names.size() == 1) return names[0];
  if (wanted.empty()) {
    const std::string chosen = TextAt(MetadataOf(pod).value("annotations", json::object()),
                                      "kubectl.kubernetes.io/default-container");
    if (!chosen.empty()) return chosen;
    return BadRequestError(
        fmt::format("a container name must be specified for pod {}, choose one of: [{}]",
                    request.name, fmt::join(names, " ")));
  }
  for (const std::string& name : names) {
    if (name == wanted) return name;
  }
  return BadRequestError(fmt::format("container {} is not valid for pod {}", wanted, request.name));
}

// Whether a program can listen at the IP address. A node says itself where it is, and at link-local
// addresses are what clouds tell their machines. (kube-apiserver proxies to none of these, nor to
// loopback, where our nodes may be: k8s.io/apimachinery pkg/util/proxy, IsProxyableIP.)
bool IsNodeAddress(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    const std::uint32_t bits = ntohl(v4.s_addr);
    const bool link_local = bits >> 16U == 0xa9feU;  // 169.254.0.0/16
    return !link_local && bits != 0 && bits < 0xe0000000U;
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&v6) && !IN6_IS_ADDR_MULTICAST(&v6) &&
         !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_V4MAPPED(&v6);
}

std::optional<NodeEndpoint> EndpointOf(const std::string& name, const json& node) {
  NodeEndpoint endpoint{.node = name, .host = {}};
  for (const json& one : kube::ListAt(node, {"status", "addresses"})) {
    if (TextAt(one, "type") == "InternalIP" && endpoint.host.empty()) {
      endpoint.host = TextAt(one, "address");
    }
  }
  const std::int64_t port =
      kube::IntAt(node, {"status", "daemonEndpoints", "kubeletEndpoint", "Port"});
  if (!IsNodeAddress(endpoint.host) || port <= 0 || port > 65535) return std::nullopt;
  endpoint.port = static_cast<int>(port);
  return endpoint;
}

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
  TAHOMA_ASSIGN_OR_RETURN(const std::string container, Container(request, *pod->body));
  TAHOMA_ASSIGN_OR_RETURN(const std::string query, LogQuery(request));
  const std::string node_name = TextAt(PartOf(*pod->body, "spec"), "nodeName");
  // A pod without a node has written nothing.
  if (node_name.empty()) {
    rest::Response nothing = rest::Response::Text(204, "");
    nothing.content_type.clear();
    return nothing;
  }
  const ObjectPtr node = context.objects.Get({"", "nodes"}, ObjectKey("", node_name));
  const std::optional<NodeEndpoint> endpoint =
      node == nullptr ? std::nullopt : EndpointOf(node_name, *node->body);
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
