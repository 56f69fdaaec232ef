// Devices that a pod asks for by the names of extended resources, and the ResourceClaim that a
// scheduler makes of such names (KEP 5004).
//
//   for (const ExtendedAsk& ask : ParseExtendedAsks(pod.At("spec"))) …
//   const std::optional<ExtendedClaimStatus> shown = ParseExtendedClaimStatus(pod.At("status"));
//
// A DeviceClass has a name for pods to ask by: spec.extendedResourceName, and always
// kImplicitResource followed by the name of the class.
//
// Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/field.h"

namespace tahoma::kube {

inline constexpr std::string_view kImplicitResource = "deviceclass.resource.kubernetes.io/";

// Marks the claim that was made of a pod's extended resources; the value is "true".
inline constexpr std::string_view kExtendedClaimAnnotation =
    "resource.kubernetes.io/extended-resource-claim";

// Returns whether a DeviceClass may have the resource's name: names with a domain, except the names
// of Kubernetes itself.
bool IsExtendedResource(std::string_view resource);

// An extended resource of one container.
struct ExtendedAsk {
  std::string container;
  std::uint32_t container_index = 0;  // among the init containers and the containers after them
  bool ends_first = false;            // an init container that has ended before the next one starts
  std::string resource;
  std::uint32_t resource_index = 0;  // among all resources of the container, sorted by name
  std::int64_t count = 0;            // at least 1

  friend bool operator==(const ExtendedAsk&, const ExtendedAsk&) = default;
};

// In the order of the containers, then of the names.
std::vector<ExtendedAsk> ParseExtendedAsks(Field spec);

// Says which request of the pod's claim has devices for a resource of a container.
struct ExtendedMapping {
  std::string container;
  std::string resource;
  std::string request;

  friend bool operator==(const ExtendedMapping&, const ExtendedMapping&) = default;
};

// A pod's status.extendedResourceClaimStatus. A kubelet gives the devices by it.
struct ExtendedClaimStatus {
  std::string claim;
  std::vector<ExtendedMapping> mappings;

  friend bool operator==(const ExtendedClaimStatus&, const ExtendedClaimStatus&) = default;
};

// Returns nullopt when the status names no claim.
std::optional<ExtendedClaimStatus> ParseExtendedClaimStatus(Field status);

}  // namespace tahoma::kube
