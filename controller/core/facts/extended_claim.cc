#include "controller/core/facts/extended_claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/base/digest.h"

namespace tahoma::controller {
namespace {

using kube::ExtendedAsk;

// Names that people know from AWS's device plugin.
constexpr std::string_view kNeuronResource = "aws.amazon.com/neuron";

std::string NameFor(const PodFact& pod) {
  constexpr std::size_t kNameMost = 253;
  constexpr std::size_t kDigits = 10;
  const std::string end =
      fmt::format("-extended-resources-{}", Sha256Hex(pod.uid).substr(0, kDigits));
  std::string name = pod.key.name.substr(0, kNameMost - end.size());
  while (name.ends_with('.') || name.ends_with('-')) name.pop_back();
  return name + end;
}

// The requests and mappings of one resource.
class ResourceRequests {
 public:
  explicit ResourceRequests(std::string device_class) : class_(std::move(device_class)) {}

  // The containers that run together come first, in their order.
  void AddRunning(const ExtendedAsk& ask) {
    running_.push_back({ask.container_index, Request(ask, ask.count)});
    mappings_.push_back(Mapping(ask, running_.back().request.name));
  }

  // Maps the container to requests of later containers, until these have enough devices.
  void AddStarting(const ExtendedAsk& ask) {
    std::int64_t lacks = ask.count;
    for (const Running& later : running_) {
      if (lacks <= 0 || later.container < ask.container_index) continue;
      mappings_.push_back(Mapping(ask, later.request.name));
      lacks -= later.request.count;
    }
    if (lacks <= 0) return;
    ExtendedRequest more = Request(ask, lacks);
    starting_.insert(more.name);
    mappings_.push_back(Mapping(ask, more.name));
    if (!most_ || most_->count < more.count) most_ = std::move(more);
  }

  void MoveTo(ExtendedClaim& claim) {
    for (kube::ExtendedMapping& mapping : mappings_) {
      if (most_ && starting_.contains(mapping.request)) mapping.request = most_->name;
      claim.status.mappings.push_back(std::move(mapping));
    }
    if (most_) claim.requests.push_back(*std::move(most_));
    for (Running& one : running_) claim.requests.push_back(std::move(one.request));
  }

 private:
  struct Running {
    std::uint32_t container = 0;
    ExtendedRequest request;
  };

  ExtendedRequest Request(const ExtendedAsk& ask, std::int64_t count) const {
    return {.name = fmt::format("container-{}-request-{}", ask.container_index, ask.resource_index),
            .device_class = class_,
            .count = count};
  }
  static kube::ExtendedMapping Mapping(const ExtendedAsk& ask, const std::string& request) {
    return {.container = ask.container, .resource = ask.resource, .request = request};
  }

  const std::string class_;
  std::vector<Running> running_;
  std::set<std::string> starting_;       // names of requests that become most_
  std::optional<ExtendedRequest> most_;  // of the init containers
  std::vector<kube::ExtendedMapping> mappings_;
};

}  // namespace

const ClassFact* ClassOf(std::string_view resource, const Facts& facts) {
  if (resource.starts_with(kube::kImplicitResource)) {
    const auto found =
        facts.classes.find(std::string(resource.substr(kube::kImplicitResource.size())));
    return found == facts.classes.end() ? nullptr : found->second.get();
  }
  const ClassFact* newest = nullptr;
  for (const auto& [name, one] : facts.classes) {
    if (one->extended_resource != resource) continue;
    if (newest == nullptr || one->created > newest->created) newest = one.get();
  }
  return newest;
}

std::optional<ExtendedClaim> ExtendedClaimOf(const PodFact& pod, const Facts& facts) {
  if (pod.extended_asks == nullptr) return std::nullopt;
  std::set<std::string> resources;
  for (const ExtendedAsk& ask : *pod.extended_asks) resources.insert(ask.resource);
  ExtendedClaim claim{.requests = {}, .status = {.claim = NameFor(pod), .mappings = {}}};
  for (const std::string& resource : resources) {
    const ClassFact* device_class = ClassOf(resource, facts);
    if (device_class == nullptr) continue;
    ResourceRequests requests(device_class->name);
    for (const bool starting : {false, true}) {
      for (const ExtendedAsk& ask : *pod.extended_asks) {
        if (ask.resource != resource || ask.ends_first != starting) continue;
        starting ? requests.AddStarting(ask) : requests.AddRunning(ask);
      }
    }
    requests.MoveTo(claim);
  }
  if (claim.requests.empty()) return std::nullopt;
  std::ranges::sort(claim.requests, {}, &ExtendedRequest::name);
  return claim;
}

bool IsSpecOf(const ExtendedClaim& wished, const kube::ResourceClaimSpec& spec) {
  if (!spec.constraints.empty() || !spec.configs.empty()) return false;
  return std::ranges::equal(
      wished.requests, spec.requests, [](const ExtendedRequest& a, const kube::ClaimRequest& b) {
        if (a.name != b.name || b.first_available || b.alternatives.size() != 1) return false;
        const kube::DeviceRequest& exactly = b.alternatives.front();
        return exactly.device_class == a.device_class && exactly.count == a.count &&
               exactly.mode == kube::AllocationMode::kExactCount && exactly.selectors.empty() &&
               exactly.tolerations.empty() && !exactly.admin_access && exactly.capacities.empty();
      });
}

std::vector<std::string> ResourcesOf(const kube::ExtendedClaimStatus& status) {
  std::set<std::string> resources;
  for (const kube::ExtendedMapping& mapping : status.mappings) resources.insert(mapping.resource);
  return {resources.begin(), resources.end()};
}

std::string UnknownResource(const PodFact& pod, const Facts& facts) {
  if (pod.extended_asks == nullptr) return "";
  for (const ExtendedAsk& ask : *pod.extended_asks) {
    const bool of_class = ask.resource.starts_with(kube::kImplicitResource);
    if (!of_class && !ask.resource.starts_with(kNeuronResource)) continue;
    if (ClassOf(ask.resource, facts) != nullptr || facts.offered.contains(ask.resource)) continue;
    return ask.resource;
  }
  return "";
}

}  // namespace tahoma::controller
