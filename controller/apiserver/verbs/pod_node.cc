#include "controller/apiserver/verbs/pod_node.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <netinet/in.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

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

}  // namespace

absl::StatusOr<std::string> ContainerOf(const ApiRequest& request, const json& pod) {
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

std::optional<NodeEndpoint> EndpointOf(const ApiContext& context, const std::string& name) {
  const ObjectPtr found = context.objects.Get({"", "nodes"}, ObjectKey("", name));
  if (found == nullptr) return std::nullopt;
  const json& node = *found->body;
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

}  // namespace tahoma::controller::apiserver
