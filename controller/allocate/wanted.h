// Claims that wait for devices, compiled once for all nodes.
//
// Thread safety: immutable values.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/allocate/features.h"
#include "lib/kube/cel/device_selector.h"
#include "lib/kube/objects/claim_spec.h"
#include "lib/kube/objects/device.h"
#include "lib/kube/objects/device_class.h"

namespace tahoma::controller::allocate {

// The most devices of one claim (resource/v1 AllocationResultsMaxSize).
inline constexpr std::int64_t kResultsMost = 32;
// The most devices of all claims together, which bounds how deep the search nests. Kubernetes has
// no such bound.
inline constexpr std::int64_t kDevicesMost = 512;

// A claim as its owner wrote the claim. `uid` makes the ids of shares; the name is for messages.
struct UnallocatedClaim {
  std::string name;
  std::string uid;
  kube::ResourceClaimSpec spec;
};

// Returns nullptr for a class that does not exist.
using ClassLookup = absl::FunctionRef<const kube::DeviceClass*(std::string_view name)>;

// One expression. An expression that does not compile is an error only when a device is tried.
struct CompiledSelector {
  absl::StatusOr<kube::DeviceSelector> selector;
  std::string where;  // "DeviceClass \"nics\"", for messages
};

struct Alternative {
  const kube::DeviceRequest* spec = nullptr;
  std::string name;  // "r" or "r/sub"
  std::string class_name;
  std::vector<kube::DeviceConfig> class_configs;
  std::vector<CompiledSelector> selectors;  // the class's, then the request's
};

struct WantedRequest {
  std::string name;
  std::vector<Alternative> alternatives;
  std::int64_t least = 0;  // the fewest devices that an alternative needs; 0 while "all" is unknown
};

struct WantedClaim {
  UnallocatedClaim claim;
  std::vector<WantedRequest> requests;
};

using WantedPtr = std::shared_ptr<const WantedClaim>;

// The devices that a claim has already, which the caller has chosen. The claim's constraints begin
// with their values, and the devices count for the most devices of the claim.
struct Given {
  struct Value {
    std::size_t constraint = 0;                   // the place among the claim's constraints
    const kube::AttributeValue* value = nullptr;  // of one device that the constraint applies to
  };

  std::size_t devices = 0;
  std::vector<Value> values;
};

// Compiles a claim. Errors: what makes the claim impossible on every node, kInvalidArgument, or
// kNotFound for a class that does not exist.
absl::StatusOr<WantedClaim> Compile(UnallocatedClaim claim, ClassLookup classes,
                                    const Features& features);

// Returns whether a list of requests, "r" or "r/sub", names the alternative. An empty list names
// all.
bool Names(const std::vector<std::string>& requests, const WantedRequest& request,
           const Alternative& alternative);

}  // namespace tahoma::controller::allocate
