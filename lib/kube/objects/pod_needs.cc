#include "lib/kube/objects/pod_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/quantity.h"

namespace tahoma::kube {
namespace {

constexpr std::string_view kPods = "pods";
constexpr std::int64_t kAmountMost = std::int64_t{1} << 55;

std::int64_t Capped(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

// Changes the resource's amount to change(amount).
template <typename Change>
void ChangeAmount(Amounts& amounts, std::string_view resource, const Change& change) {
  const auto at = std::ranges::lower_bound(
      amounts, resource, {}, [](const auto& one) { return std::string_view(one.first); });
  if (at != amounts.end() && at->first == resource) {
    at->second = change(at->second);
    if (at->second == 0) amounts.erase(at);
  } else if (const std::int64_t amount = change(0); amount != 0) {
    amounts.insert(at, {std::string(resource), amount});
  }
}

void AddAmounts(Amounts& to, const Amounts& added) {
  for (const auto& [resource, amount] : added) {
    ChangeAmount(to, resource,
                 [&amount = amount](std::int64_t before) { return Capped(before, amount); });
  }
}

void RaiseAmounts(Amounts& to, const Amounts& least) {
  for (const auto& [resource, amount] : least) {
    ChangeAmount(to, resource,
                 [&amount = amount](std::int64_t before) { return std::max(before, amount); });
  }
}

void ReplaceAmounts(Amounts& to, const Amounts& by) {
  for (const auto& [resource, amount] : by) {
    ChangeAmount(to, resource, [&amount = amount](std::int64_t) { return amount; });
  }
}

// Returns the requests, and the limits of the resources without a request.
Amounts RequestsOf(Field resources) {
  Amounts requests = ParseAmounts(resources.At("limits"));
  ReplaceAmounts(requests, ParseAmounts(resources.At("requests")));
  return requests;
}

bool IsSidecar(Field container) { return container.At("restartPolicy").Text() == "Always"; }

// Returns the sum over the containers, or what the start of the pod needs where that is more.
Amounts ContainersNeed(Field spec) {
  Amounts running;
  for (const Field container : spec.At("containers").Items()) {
    AddAmounts(running, RequestsOf(container.At("resources")));
  }
  Amounts sidecars;
  Amounts starting;
  for (const Field container : spec.At("initContainers").Items()) {
    Amounts needs = RequestsOf(container.At("resources"));
    if (IsSidecar(container)) {
      AddAmounts(sidecars, needs);
      needs = sidecars;
    } else {
      AddAmounts(needs, sidecars);
    }
    RaiseAmounts(starting, needs);
  }
  AddAmounts(running, sidecars);
  RaiseAmounts(running, starting);
  return running;
}

// With hostNetwork every port of a container is the node's (core/v1 defaults.go,
// defaultHostNetworkPorts).
void AddPorts(Field container, bool host_network, std::vector<HostPort>& ports) {
  for (const Field one : container.At("ports").Items()) {
    const std::int32_t host = one.At("hostPort").Int32();
    const std::int32_t port = host != 0 || !host_network ? host : one.At("containerPort").Int32();
    if (port == 0) continue;
    std::string ip(one.At("hostIP").Text());
    if (ip == "0.0.0.0") ip.clear();
    const std::string_view protocol = one.At("protocol").Text();
    ports.push_back({.ip = std::move(ip),
                     .protocol = std::string(protocol.empty() ? "TCP" : protocol),
                     .port = port});
  }
}

std::vector<HostPort> PortsOf(Field spec) {
  std::vector<HostPort> ports;
  const bool host_network = spec.At("hostNetwork").Bool();
  for (const Field container : spec.At("containers").Items()) {
    AddPorts(container, host_network, ports);
  }
  for (const Field container : spec.At("initContainers").Items()) {
    if (IsSidecar(container)) AddPorts(container, host_network, ports);
  }
  std::ranges::sort(ports);
  return ports;
}

// Returns the first resource that the node has too little of; nullptr when there is enough.
const std::string* Lacking(const Amounts& allocatable, const NodeUse& use, const PodNeeds& needs) {
  for (const auto& [resource, amount] : needs.amounts) {
    const std::int64_t used = AmountOf(use.amounts, resource);
    if (Capped(used, amount) > AmountOf(allocatable, resource)) return &resource;
  }
  return nullptr;
}

// Returns the first resource of a device plugin of the node that the pod gets by a claim.
const std::string* Offered(const Amounts& allocatable, const PodNeeds& needs) {
  for (const std::string& resource : needs.claimed) {
    if (AmountOf(allocatable, resource) > 0) return &resource;
  }
  return nullptr;
}

const HostPort* Taken(const NodeUse& use, const PodNeeds& needs) {
  for (const HostPort& port : needs.ports) {
    const auto conflicts = [&](const HostPort& other) { return port.ConflictsWith(other); };
    if (std::ranges::any_of(use.ports, conflicts)) return &port;
  }
  return nullptr;
}

}  // namespace

std::int64_t AmountOf(const Amounts& amounts, std::string_view resource) {
  for (const auto& [name, amount] : amounts) {
    if (name == resource) return amount;
  }
  return 0;
}

bool HostPort::ConflictsWith(const HostPort& other) const {
  return port == other.port && protocol == other.protocol &&
         (ip == other.ip || ip.empty() || other.ip.empty());
}

Amounts ParseAmounts(Field list) {
  Amounts amounts;
  list.Entries([&](const std::string& name, Field value) {
    // A quantity is a text or, as people write "cpu: 2", a number.
    const bool number = value.json().is_number();
    const auto quantity = Quantity::Parse(number ? value.json().dump() : value.Text());
    if (!quantity.ok()) return value.Fail("must be a quantity, such as 2 or 96Gi");
    const std::int64_t amount = name == "cpu" ? quantity->MilliValue() : quantity->Value();
    if (amount > 0) amounts.emplace_back(name, std::min(amount, kAmountMost));
  });
  std::ranges::sort(amounts);
  return amounts;
}

PodNeeds ParsePodNeeds(Field pod) {
  const Field spec = pod.At("spec");
  PodNeeds needs;
  needs.amounts = ContainersNeed(spec);
  ReplaceAmounts(needs.amounts, RequestsOf(spec.At("resources")));
  AddAmounts(needs.amounts, ParseAmounts(spec.At("overhead")));
  ReplaceAmounts(needs.amounts, {{std::string(kPods), 1}});
  needs.ports = PortsOf(spec);
  return needs;
}

void TakeByClaim(std::vector<std::string> resources, PodNeeds& needs) {
  std::erase_if(needs.amounts,
                [&](const auto& one) { return std::ranges::binary_search(resources, one.first); });
  needs.claimed = std::move(resources);
}

void NodeUse::Add(const PodNeeds& needs) {
  AddAmounts(amounts, needs.amounts);
  for (const HostPort& port : needs.ports)
    ports.insert(std::ranges::upper_bound(ports, port), port);
}

void NodeUse::Subtract(const PodNeeds& needs) {
  for (const auto& [resource, amount] : needs.amounts) {
    ChangeAmount(amounts, resource,
                 [&amount = amount](std::int64_t before) { return before - amount; });
  }
  for (const HostPort& port : needs.ports) {
    const auto at = std::ranges::lower_bound(ports, port);
    TAHOMA_CHECK(at != ports.end() && *at == port);  // it was added
    ports.erase(at);
  }
}

bool HasRoomFor(const Amounts& allocatable, const NodeUse& use, const PodNeeds& needs) {
  return Lacking(allocatable, use, needs) == nullptr && Taken(use, needs) == nullptr &&
         Offered(allocatable, needs) == nullptr;
}

std::string WhyNotOn(const Amounts& allocatable, const NodeUse& use, const PodNeeds& needs) {
  if (const std::string* resource = Lacking(allocatable, use, needs)) {
    return *resource == kPods ? "Too many pods" : fmt::format("Insufficient {}", *resource);
  }
  if (const HostPort* port = Taken(use, needs)) {
    return fmt::format("no free host port {}", port->port);
  }
  if (const std::string* resource = Offered(allocatable, needs)) {
    return fmt::format("has {} of a device plugin", *resource);
  }
  return "";
}

}  // namespace tahoma::kube
