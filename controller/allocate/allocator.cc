#include "controller/allocate/allocator.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "controller/allocate/search.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/kube/objects/device_details.h"

namespace tahoma::controller::allocate {
namespace {

// The id of a share is made of the claim and the device: so it is unique, and the same on every
// run. The form is a UUID of version 8.
std::string ShareId(const UnallocatedClaim& claim, const kube::DeviceResult& result,
                    std::size_t place) {
  std::string hex = Sha256Hex(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", claim.uid, result.request,
                                          place, result.driver, result.pool, result.device));
  hex[12] = '8';
  hex[16] = 'a';
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20, 12));
}

const Alternative& AlternativeOf(const WantedClaim& claim, const Choice& choice) {
  return claim.requests[choice.request].alternatives[choice.alternative];
}

void AddResult(const WantedClaim& claim, const Choice& choice, const Candidate& device,
               kube::Allocation& allocation) {
  const Alternative& alternative = AlternativeOf(claim, choice);
  kube::DeviceResult& result = allocation.results.emplace_back();
  result.request = alternative.name;
  result.driver = device.slice->driver;
  result.pool = device.slice->pool;
  result.device = device.device().name;
  result.admin_access = alternative.spec->admin_access;
  result.tolerations = alternative.spec->tolerations;
  kube::ResultDetails details;
  details.result = allocation.results.size() - 1;
  details.binding_conditions = device.details().binding_conditions;
  details.binding_failure_conditions = device.details().binding_failure_conditions;
  if (device.shared) details.share_id = ShareId(claim.claim, result, details.result);
  for (std::size_t i = 0; i < choice.consumed.size(); ++i) {
    details.consumed.push_back(
        {.name = kube::RenderName(device.device().capacities[i].name, result.driver),
         .quantity = choice.consumed[i].ToString()});
  }
  if (device.shared || !details.binding_conditions.empty() ||
      !details.binding_failure_conditions.empty()) {
    allocation.details.push_back(std::move(details));
  }
}

// The configurations of each class once, for all requests of the class; then those of the claim
// that name a request which has devices, or none.
std::vector<kube::DeviceConfig> ConfigsOf(const WantedClaim& claim,
                                          const std::vector<const Alternative*>& chosen) {
  std::vector<kube::DeviceConfig> configs;
  absl::flat_hash_map<std::string_view, std::size_t> first_of_class;
  for (const Alternative* alternative : chosen) {
    const auto [at, added] = first_of_class.try_emplace(alternative->class_name, configs.size());
    for (std::size_t i = 0; i < alternative->class_configs.size(); ++i) {
      if (added) configs.push_back(alternative->class_configs[i]);
      configs[at->second + i].requests.push_back(alternative->name);
    }
  }
  for (const kube::DeviceConfig& config : claim.claim.spec.configs) {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (!Names(config.requests, claim.requests[i], *chosen[i])) continue;
      configs.push_back(config);
      break;
    }
  }
  return configs;
}

// Narrows the nodes of an allocation to those that can use the device.
void AddNodes(const Candidate& device, NodeView node, kube::Allocation& allocation) {
  const bool own = device.slice->per_device_nodes;
  const std::string& name = own ? device.details().node : device.slice->node;
  if (!name.empty() || device.details().binds_to_node) allocation.node = node.name;
  const kube::NodeTerms& terms = own ? device.details().node_terms : device.slice->node_terms;
  if (terms.empty()) return;
  if (allocation.node_terms.empty()) allocation.node_terms.emplace_back();
  std::vector<kube::NodeRequirement>& all = allocation.node_terms.front();
  for (const kube::NodeRequirement& one : terms.front()) {  // the API admits one term
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
}

kube::Allocation AllocationOf(const WantedClaim& claim, const std::vector<Choice>& choices,
                              const std::vector<Candidate>& devices, NodeView node) {
  kube::Allocation allocation;
  std::vector<const Alternative*> chosen;  // by request
  for (const Choice& choice : choices) {
    AddResult(claim, choice, devices[choice.candidate], allocation);
    AddNodes(devices[choice.candidate], node, allocation);
    if (chosen.size() == choice.request) chosen.push_back(&AlternativeOf(claim, choice));
  }
  if (!allocation.node.empty()) allocation.node_terms.clear();
  allocation.configs = ConfigsOf(claim, chosen);
  return allocation;
}

}  // namespace

absl::StatusOr<Allocator> Allocator::Make(std::vector<UnallocatedClaim> claims, ClassLookup classes,
                                          const Features& features) {
  std::vector<WantedPtr> wanted;
  for (UnallocatedClaim& claim : claims) {
    TAHOMA_ASSIGN_OR_RETURN(WantedClaim compiled, Compile(std::move(claim), classes, features));
    wanted.push_back(std::make_shared<const WantedClaim>(std::move(compiled)));
  }
  return Allocator(std::move(wanted), features);
}

absl::StatusOr<std::optional<std::vector<kube::Allocation>>> Allocator::AllocateOn(
    NodeView node, Slices slices, const InUse& in_use, std::size_t steps_most) const {
  return AllocateBeside({}, node, slices, in_use, steps_most);
}

absl::StatusOr<std::optional<std::vector<kube::Allocation>>> Allocator::AllocateBeside(
    std::span<const Given> given, NodeView node, Slices slices, const InUse& in_use,
    std::size_t steps_most) const {
  const std::vector<Pool> pools = GatherPools(slices, node, features_);
  Search search(claims_, given, pools, node, in_use, features_, steps_most);
  TAHOMA_ASSIGN_OR_RETURN(const bool found, search.Run());
  if (!found) return std::nullopt;
  std::vector<kube::Allocation> allocations;
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    allocations.push_back(
        AllocationOf(*claims_[i], search.choices()[i], search.candidates(), node));
  }
  return allocations;
}

}  // namespace tahoma::controller::allocate
