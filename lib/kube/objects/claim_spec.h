// The devices that a ResourceClaim asks for: its spec, of resource.k8s.io/v1.
//
//   const ResourceClaimSpec spec = ParseClaimSpec(claim.At("spec"));
//   spec.requests[0].alternatives[0].count;
//
// Selectors are CEL source.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/kube/field.h"
#include "lib/kube/objects/allocation.h"
#include "lib/kube/objects/taint.h"

namespace tahoma::kube {

enum class AllocationMode : std::uint8_t { kExactCount, kAll };

// `exactly`, or one entry of `firstAvailable`. Whoever allocates looks up the class and copies what
// it selects into the request, since that applies at the time of allocation
// (docs/reference/kubernetes-dra.md#classes).
struct DeviceRequest {
  std::string name;  // of the subrequest; empty for `exactly`
  std::string device_class;
  bool class_found = true;                   // whether a DeviceClass of that name exists
  std::vector<std::string> class_selectors;  // CEL
  std::vector<std::string> selectors;        // CEL
  AllocationMode mode = AllocationMode::kExactCount;
  std::int64_t count = 1;
  bool admin_access = false;
  std::vector<Toleration> tolerations;
  bool has_capacity_requests = false;  // consumable capacity
};

struct ClaimRequest {
  std::string name;
  std::vector<DeviceRequest> alternatives;  // one for `exactly`, 1..8 for `firstAvailable`
  bool first_available = false;
};

struct Constraint {
  std::vector<std::string> requests;  // "r" or "r/sub"; empty: all
  std::string attribute;              // fully qualified
  bool distinct = false;              // distinctAttribute instead of matchAttribute
};

struct ResourceClaimSpec {
  std::vector<ClaimRequest> requests;
  std::vector<Constraint> constraints;
  std::vector<DeviceConfig> configs;
};

// A request, mode, selector or constraint of a kind that is not known is an error: what it asks for
// cannot be allocated.
ResourceClaimSpec ParseClaimSpec(Field field);

// The CEL expressions of the `selectors` of a request or a class.
std::vector<std::string> ParseSelectors(Field list);

}  // namespace tahoma::kube
