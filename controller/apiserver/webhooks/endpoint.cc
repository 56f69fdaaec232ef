#include "controller/apiserver/webhooks/endpoint.h"

#include <algorithm>

#include "controller/apiserver/schema/fields.h"
#include "lib/base/host_port.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

// The port of that name; a single port may have none. 0: there is none.
int PortNamed(const Json& ports, const std::string& name) {
  for (const Json& port : ports) {
    if (TextAt(port, "name") == name) return static_cast<int>(kube::IntAt(port, {"port"}));
  }
  return 0;
}

// Returns "host:port" of the first address of an Endpoints object; empty without one.
std::string AddressIn(const Json& endpoints, const std::string& port_name) {
  for (const Json& subset : ValueAt(endpoints, {"subsets"})) {
    const int port = PortNamed(ValueAt(subset, {"ports"}), port_name);
    for (const Json& address : ValueAt(subset, {"addresses"})) {
      const std::string ip = TextAt(address, "ip");
      if (port != 0 && !ip.empty()) return JoinHostPort(ip, port);
    }
  }
  return "";
}

// As AddressIn, of an EndpointSlice.
std::string AddressInSlice(const Json& slice, const std::string& port_name) {
  const int port = PortNamed(ValueAt(slice, {"ports"}), port_name);
  for (const Json& endpoint : ValueAt(slice, {"endpoints"})) {
    if (ValueAt(endpoint, {"conditions", "ready"}) == false) continue;
    for (const Json& address : ValueAt(endpoint, {"addresses"})) {
      if (port != 0 && address.is_string()) return JoinHostPort(address.get<std::string>(), port);
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> AddressOf(const ObjectStore& objects, const WebhookTarget& target) {
  const std::string key = ObjectKey(target.service_namespace, target.service);
  const ObjectPtr service = objects.Get({"", "services"}, key);
  if (service == nullptr) return NotFound("service \"{}\" not found", target.service);
  const Json& ports = ValueAt(*service->body, {"spec", "ports"});
  const auto port = std::find_if(ports.begin(), ports.end(), [&](const Json& one) {
    return kube::IntAt(one, {"port"}) == target.service_port;
  });
  if (port == ports.end()) {
    return NotFound("no service port {} found for service \"{}\"", target.service_port,
                    target.service);
  }
  const std::string name = TextAt(*port, "name");
  if (const ObjectPtr endpoints = objects.Get({"", "endpoints"}, key)) {
    if (std::string address = AddressIn(*endpoints->body, name); !address.empty()) return address;
  }
  const ObjectList slices =
      objects.List({"discovery.k8s.io", "endpointslices"}, target.service_namespace + "/");
  for (const ObjectPtr& slice : slices.objects) {
    if (TextAt(*slice->body, {"metadata", "labels", "kubernetes.io/service-name"}) !=
        target.service) {
      continue;
    }
    if (std::string address = AddressInSlice(*slice->body, name); !address.empty()) return address;
  }
  return Unavailable("no endpoints available for service \"{}\"", target.service);
}

}  // namespace tahoma::controller::apiserver
