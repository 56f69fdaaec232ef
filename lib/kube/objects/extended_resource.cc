#include "lib/kube/objects/extended_resource.h"

#include <map>

#include "lib/kube/objects/pod_needs.h"

namespace tahoma::kube {
namespace {

void AddAsks(Field container, std::uint32_t index, bool ends_first,
             std::vector<ExtendedAsk>& asks) {
  const Field resources = container.At("resources");
  // An API server gives a limit without a request the same request.
  std::map<std::string, std::int64_t> amounts;
  for (const char* list : {"limits", "requests"}) {
    resources.At(list).Entries([&](const std::string& name, Field) { amounts[name] = 0; });
    for (const auto& [name, amount] : ParseAmounts(resources.At(list))) amounts[name] = amount;
  }
  std::uint32_t at = 0;
  for (const auto& [name, amount] : amounts) {
    const std::uint32_t resource_index = at++;
    if (amount == 0 || !IsExtendedResource(name)) continue;
    asks.push_back({.container = std::string(container.At("name").Text()),
                    .container_index = index,
                    .ends_first = ends_first,
                    .resource = name,
                    .resource_index = resource_index,
                    .count = amount});
  }
}

}  // namespace

bool IsExtendedResource(std::string_view resource) {
  if (resource.starts_with(kImplicitResource)) return true;
  return resource.find('/') != std::string_view::npos &&
         resource.find("kubernetes.io/") == std::string_view::npos;
}

std::vector<ExtendedAsk> ParseExtendedAsks(Field spec) {
  std::vector<ExtendedAsk> asks;
  std::uint32_t index = 0;
  for (const Field container : spec.At("initContainers").Items()) {
    AddAsks(container, index++, container.At("restartPolicy").Text() != "Always", asks);
  }
  for (const Field container : spec.At("containers").Items()) {
    AddAsks(container, index++, false, asks);
  }
  return asks;
}

std::optional<ExtendedClaimStatus> ParseExtendedClaimStatus(Field status) {
  const Field shown = status.At("extendedResourceClaimStatus");
  ExtendedClaimStatus parsed{.claim = std::string(shown.At("resourceClaimName").Text()),
                             .mappings = {}};
  if (parsed.claim.empty()) return std::nullopt;
  for (const Field mapping : shown.At("requestMappings").Items()) {
    parsed.mappings.push_back({.container = std::string(mapping.At("containerName").Text()),
                               .resource = std::string(mapping.At("resourceName").Text()),
                               .request = std::string(mapping.At("requestName").Text())});
  }
  return parsed;
}

}  // namespace tahoma::kube
