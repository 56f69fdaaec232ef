// The devices that a ResourceClaim requests: the claim's spec, of resource.k8s.io/v1.
//
//   const ResourceClaimSpec spec = ParseClaimSpec(claim.At("spec"));
//   spec.requests[0].alternatives[0].count;
//
// Selectors are CEL source.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/kube/field.h"
#include "lib/kube/objects/allocation.h"
#include "lib/kube/objects/taint.h"
#include "lib/kube/quantity.h"

namespace tahoma::kube {

enum class AllocationMode : std::uint8_t { kExactCount, kAll };

// An amount of a capacity that the device must have, and that a shared device then has less.
struct CapacityRequest {
  std::string name;  // as in the device: "id" for the driver's own, or "domain/id"
  Quantity amount;

  friend bool operator==(const CapacityRequest&, const CapacityRequest&) = default;
};

// `exactly`, or an entry of `firstAvailable`. The allocator looks up the class and copies the
// class's selectors into the request, because the class at the time of allocation applies
// (docs/reference/kubernetes-dra.md#classes).
struct DeviceRequest {
  std::string name;  // of the subrequest; empty for `exactly`
  std::string device_class;
  bool class_found = true;                   // whether a DeviceClass of this name exists
  std::vector<std::string> class_selectors;  // CEL
  std::vector<std::string> selectors;        // CEL
  AllocationMode mode = AllocationMode::kExactCount;
  std::int64_t count = 1;
  bool admin_access = false;
  std::vector<Toleration> tolerations;
  std::vector<CapacityRequest> capacities = {};  // consumable capacity
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

// A request, mode, selector or constraint of an unknown kind is an error: such a claim cannot be
// allocated.
ResourceClaimSpec ParseClaimSpec(Field field);

// The CEL expressions of the `selectors` of a request or a class.
std::vector<std::string> ParseSelectors(Field list);

}  // namespace tahoma::kube
