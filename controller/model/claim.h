// The requests and allocations of pods: resource.k8s.io/v1 without JSON (lib/kube/objects), and the
// claim's owner.
//
//   ClaimSpec claim;
//   claim.key = {"default", "pod0-neurons"};
//   claim.requests.push_back({.name = "neurons",
//                             .alternatives = {{.selectors = {selector}, .count = 4}}});
//
// The planner compiles each distinct selector once. The writer of a ClaimSpec resolves the
// DeviceClass and copies its selectors and configs in, because they apply at the time of allocation
// (docs/reference/kubernetes-dra.md#classes).
//
// Thread safety: values.

#pragma once

#include <optional>
#include <string>

#include "controller/model/device.h"
#include "controller/model/ids.h"
#include "lib/kube/objects/allocation.h"
#include "lib/kube/objects/claim_spec.h"

namespace tahoma::controller {

using kube::Allocation;
using kube::AllocationMode;
using kube::ClaimRequest;
using kube::ConfigSource;
using kube::Constraint;
using kube::DeviceConfig;
using kube::DeviceRequest;
using kube::DeviceResult;

// Class configs come first, as in status.allocation.
struct ClaimSpec : kube::ResourceClaimSpec {
  ClaimKey key;
  std::string uid;
  // Set when the claim is allocated already: the only node for its pods ("": any node).
  std::optional<std::string> allocated_node;
};

}  // namespace tahoma::controller
