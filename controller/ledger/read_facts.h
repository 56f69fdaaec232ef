// Parses Kubernetes objects into facts.
//
//   absl::StatusOr<std::shared_ptr<const PodFact>> pod = ParsePod(object);
//   if (!pod.ok()) Log(pod.status());             // and go on: one bad object harms no other
//
// A claim or Gang whose spec cannot be used is still a fact: it says why (spec_error). Unknown
// fields are ignored: newer API servers add some.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "controller/ledger/facts.h"
#include "controller/model/device.h"
#include "controller/model/inventory.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

inline constexpr std::string_view kProtectionFinalizer = "resource.kubernetes.io/delete-protection";

inline const kube::Resource kGangs{.group = "tahoma.dev", .version = "v1alpha1", .plural = "gangs"};

// The content of a Node object.
struct NodeObject {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;
  bool schedulable = true;  // not cordoned: spec.unschedulable is not set
  bool ready = true;        // has no condition Ready that is not True

  friend bool operator==(const NodeObject&, const NodeObject&) = default;
};

// The content of a ResourceSlice.
struct SliceObject {
  std::string name;
  std::string driver;
  std::string pool;
  std::string node;  // spec.nodeName; empty for slices that are not of one node
  std::int64_t generation = 0;
  std::int64_t slices_in_pool = 1;
  std::vector<Device> devices;
};

// Each fails with kInvalidArgument when the object is not of its kind at all (a name is missing, a
// field has another type).
absl::StatusOr<std::shared_ptr<const PodFact>> ParsePod(const Json& object);
absl::StatusOr<std::shared_ptr<const ClaimFact>> ParseClaim(const Json& object);
// The same without the spec, which never changes: for answers to writes.
absl::StatusOr<std::shared_ptr<const ClaimFact>> ParseClaimState(const Json& object);
absl::StatusOr<std::shared_ptr<const GangFact>> ParseGang(const Json& object);
absl::StatusOr<std::shared_ptr<const ClassFact>> ParseDeviceClass(const Json& object);
absl::StatusOr<NodeObject> ParseNode(const Json& object);
absl::StatusOr<SliceObject> ParseSlice(const Json& object);

// Whether the pod is for a scheduler of one of these names (spec.schedulerName) to place.
bool IsFor(const std::vector<std::string>& scheduler_names, const Json& pod);

}  // namespace tahoma::controller
