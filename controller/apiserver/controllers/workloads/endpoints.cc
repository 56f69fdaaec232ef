// The Endpoints of a Service: the addresses of the pods that its selector matches.

#include <map>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

// Kubernetes' limit of the addresses of one object.
constexpr std::size_t kAddressesMax = 1000;

// Returns the number of a pod's port; 0 when the pod has no port of that name.
std::int64_t PortOf(const Json& pod, const Json& target) {
  if (target.is_number_integer()) return target.get<std::int64_t>();
  for (const Json& container : kube::ListAt(pod, {"spec", "containers"})) {
    for (const Json& port : kube::ListAt(container, {"ports"})) {
      if (target == ValueAt(port, {"name"})) return kube::IntAt(port, {"containerPort"});
    }
  }
  return 0;
}

Json PortsOf(const Json& service, const Json& pod) {
  Json ports = Json::array();
  for (const Json& given : kube::ListAt(service, {"spec", "ports"})) {
    const Json& target = ValueAt(given, {"targetPort"});
    const std::int64_t number = PortOf(pod, target.is_null() ? ValueAt(given, {"port"}) : target);
    if (number == 0) continue;
    Json port = {{"port", number}, {"protocol", TextOr(given, {"protocol"}, "TCP")}};
    for (const char* field : {"name", "appProtocol"}) {
      if (given.contains(field)) port[field] = ValueAt(given, {field});
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

Json AddressOf(const Json& service, const Json& pod) {
  Json address = {{"ip", TextAt(pod, {"status", "podIP"})},
                  {"nodeName", TextAt(pod, {"spec", "nodeName"})},
                  {"targetRef",
                   {{"kind", "Pod"},
                    {"namespace", kube::NamespaceOf(pod)},
                    {"name", kube::NameOf(pod)},
                    {"uid", kube::UidOf(pod)}}}};
  const std::string hostname = TextAt(pod, {"spec", "hostname"});
  if (!hostname.empty() && TextAt(pod, {"spec", "subdomain"}) == kube::NameOf(service)) {
    address["hostname"] = hostname;
  }
  return address;
}

struct Subset {
  Json ports;
  Json ready = Json::array();
  Json waiting = Json::array();
};

Json SubsetsOf(const Json& service, const Bodies& pods) {
  const bool all = kube::BoolAt(service, {"spec", "publishNotReadyAddresses"});
  std::map<std::string, Subset> by_ports;
  std::size_t count = 0;
  for (const auto& pod : pods) {
    if (!Selects({{"matchLabels", ValueAt(service, {"spec", "selector"})}}, *pod)) continue;
    if (TextAt(*pod, {"status", "podIP"}).empty()) continue;
    if (kube::IsBeingDeleted(*pod) && !all) continue;
    if (HasPhase(*pod, "Succeeded") || HasPhase(*pod, "Failed")) continue;
    if (++count > kAddressesMax) break;
    Json ports = PortsOf(service, *pod);
    // A Service without a cluster IP may have no ports.
    if (ports.empty() && !kube::ListAt(service, {"spec", "ports"}).empty()) continue;
    Subset& subset = by_ports[ports.dump()];
    subset.ports = std::move(ports);
    Json& list = all || IsTrue(*pod, "Ready") ? subset.ready : subset.waiting;
    list.push_back(AddressOf(service, *pod));
  }
  Json subsets = Json::array();
  for (auto& [name, subset] : by_ports) {
    Json one = Json::object();
    if (!subset.ready.empty()) one["addresses"] = std::move(subset.ready);
    if (!subset.waiting.empty()) one["notReadyAddresses"] = std::move(subset.waiting);
    if (!subset.ports.empty()) one["ports"] = std::move(subset.ports);
    subsets.push_back(std::move(one));
  }
  return subsets;
}

}  // namespace

Decision SyncEndpoints(const Json& service, const Json* endpoints, const Bodies& pods) {
  // Whoever makes a Service without a selector keeps its Endpoints.
  if (ValueAt(service, {"spec", "selector"}).empty() || kube::IsBeingDeleted(service)) return {};
  Json wanted = endpoints != nullptr ? *endpoints : Json::object();
  Json labels = ValueAt(service, {"metadata", "labels"});
  labels["endpoints.kubernetes.io/managed-by"] = "endpoint-controller";
  if (TextAt(service, {"spec", "clusterIP"}) == "None") {
    labels["service.kubernetes.io/headless"] = "";
  }
  wanted["apiVersion"] = "v1";
  wanted["kind"] = "Endpoints";
  wanted["metadata"]["name"] = kube::NameOf(service);
  wanted["metadata"]["namespace"] = kube::NamespaceOf(service);
  wanted["metadata"]["labels"] = std::move(labels);
  Json subsets = SubsetsOf(service, pods);
  wanted.erase("subsets");
  if (!subsets.empty()) wanted["subsets"] = std::move(subsets);
  if (endpoints != nullptr && *endpoints == wanted) return {};
  Decision decision;
  decision.writes.push_back(
      {.verb = endpoints != nullptr ? Write::Verb::kUpdate : Write::Verb::kCreate,
       .resource = kEndpoints,
       .object = Shared(std::move(wanted))});
  return decision;
}

}  // namespace tahoma::controller::apiserver
