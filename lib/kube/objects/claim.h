// A ResourceClaim without its spec (claim_spec.h), which never changes: reservations and
// allocation.
//
//   absl::StatusOr<ResourceClaim> claim = ParseResourceClaim(object);
//   if (claim.ok() && claim->allocation) …
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/allocation.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::kube {

// The finalizer of an allocated claim.
inline constexpr std::string_view kClaimFinalizer = "resource.kubernetes.io/delete-protection";

// An entry of a claim's status.reservedFor.
struct Reservation {
  std::string api_group;
  std::string resource;  // "pods"
  std::string name;
  std::string uid;

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

struct ResourceClaim {
  ObjectMeta metadata;
  bool protected_by_finalizer = false;  // has kClaimFinalizer
  std::vector<std::string> other_finalizers;
  std::vector<Reservation> reserved_for;
  std::optional<Allocation> allocation;
};

ResourceClaim ParseResourceClaim(Field object);
absl::StatusOr<ResourceClaim> ParseResourceClaim(const Json& object);
Json RenderReservation(const Reservation& held);

}  // namespace tahoma::kube
