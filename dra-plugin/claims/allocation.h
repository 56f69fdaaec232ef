// Reads the allocation of a ResourceClaim for this node from the API object, and makes the grant
// for sim-node from it.
//
//   absl::StatusOr<DriverAllocation> allocation = ReadAllocation(claim_json, ref);
//   absl::StatusOr<wire::ClaimGrant> grant = BuildGrant(ref, *allocation, inventory);
//
// The kubelet's call names only the claim; the allocation must be read from the API server
// (docs/reference/kubernetes-dra.md#prepare-and-unprepare).
//
// Scope: pure functions over text from outside; every error becomes the claim's error in the
// kubelet's answer and names the object.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/driver/device_name.h"
#include "lib/kube/objects/allocation.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {

inline constexpr std::string_view kDriverName = "neuron.aws.com";

// A claim as the kubelet names it.
struct ClaimRef {
  std::string name_space = {};
  std::string name = {};
  std::string uid = {};

  // "claim default/a (0f8f…)".
  std::string ToString() const;
};

// One result of the allocation that is this driver's.
struct AllocatedDevice {
  std::string request = {};  // "request" or "request/subrequest"
  std::string pool = {};
  hw::DeviceName device = {};
};

// The part of a claim's allocation that is this driver's.
struct DriverAllocation {
  std::vector<AllocatedDevice> devices = {};
  // The class's first, so that the claim's win. Parameters are the text of an object.
  std::vector<kube::DeviceConfig> configs = {};
  // When the Capacity Block that it runs in takes the hardware back, in milliseconds since 1970.
  std::optional<std::int64_t> reclaim_timestamp = {};
};

// "request" of "request/subrequest".
std::string_view BaseRequest(std::string_view request);

// kInvalidArgument when the kubelet's words cannot be a claim's.
absl::Status CheckNames(const ClaimRef& claim);

// Returns the results of the allocation that are the driver's, at least one. Fails as
// ReadAllocation.
absl::StatusOr<std::vector<kube::DeviceResult>> ReadResults(std::string_view claim_json,
                                                            const ClaimRef& claim,
                                                            std::string_view driver);

// kFailedPrecondition when the object has another uid or is not allocated; kInvalidArgument when it
// holds nothing of this driver, or something this driver does not know or offer (admin access).
absl::StatusOr<DriverAllocation> ReadAllocation(std::string_view claim_json, const ClaimRef& claim);

// kInvalidArgument for a bad configuration, two LNCs in one claim, a device twice, or one that the
// node does not have; kFailedPrecondition for a chip that is broken.
absl::StatusOr<wire::ClaimGrant> BuildGrant(const ClaimRef& claim,
                                            const DriverAllocation& allocation,
                                            const wire::Inventory& inventory);

}  // namespace tahoma::dra
