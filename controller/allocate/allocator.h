// Allocates the claims of a pod on one node, of the devices of any driver, as Kubernetes'
// structured allocator does (docs/reference/kubernetes-dra.md#allocator).
//
// Which devices: the first that meet everything, in the order of the names of driver, pool and
// slice, and in a slice as published; pools with conditions on binding come last.
//
// Work is bounded: devices that can stand for each other are tried once, and after `steps_most`
// tries the answer is an error. The order of the answers is the same on every run.
//
// Not here: which node is the best, devices that several pods of a gang share on different nodes,
// and resources of a node that devices stand for (KEP-5517).
//
// Thread safety: immutable; AllocateOn may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "controller/allocate/candidate.h"
#include "controller/allocate/features.h"
#include "controller/allocate/pools.h"
#include "controller/allocate/wanted.h"
#include "lib/kube/objects/allocation.h"

namespace tahoma::controller::allocate {

// A try is a look at one device for one place of a request, alone or beside a device that failed.
inline constexpr std::size_t kStepsMost = 1'000'000;

class Allocator {
 public:
  // Errors: a claim that is impossible on every node (kInvalidArgument), a class that does not
  // exist (kNotFound).
  static absl::StatusOr<Allocator> Make(std::vector<UnallocatedClaim> claims, ClassLookup classes,
                                        const Features& features = {});
  // Allocates claims that are compiled already.
  explicit Allocator(std::vector<WantedPtr> claims, const Features& features = {})
      : claims_(std::move(claims)), features_(features) {}

  // `slices` has every slice that may be the node's, and the rest of their pools, read with
  // kube::SliceDetails::kRead. Returns nullopt where the node lacks devices now.
  //
  // Errors: kInvalidArgument for a selector that fails or "all" devices against a constraint, on
  // whatever node; kFailedPrecondition for pools that contradict themselves or are not
  // complete, which concerns this node; kResourceExhausted after `steps_most` tries.
  absl::StatusOr<std::optional<std::vector<kube::Allocation>>> AllocateOn(
      NodeView node, Slices slices, const InUse& in_use, std::size_t steps_most = kStepsMost) const;
  // As above, beside devices that the claims have already, by claim.
  absl::StatusOr<std::optional<std::vector<kube::Allocation>>> AllocateBeside(
      std::span<const Given> given, NodeView node, Slices slices, const InUse& in_use,
      std::size_t steps_most = kStepsMost) const;

 private:
  std::vector<WantedPtr> claims_;
  Features features_;
};

}  // namespace tahoma::controller::allocate
