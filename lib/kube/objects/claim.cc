#include "lib/kube/objects/claim.h"

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {

ResourceClaim ParseResourceClaim(Field object) {
  ResourceClaim claim;
  claim.metadata = ParseMetadata(object);
  for (const Field finalizer : object.At("metadata").At("finalizers").Items()) {
    const std::string_view text = finalizer.Text();
    if (text == kClaimFinalizer) {
      claim.protected_by_finalizer = true;
    } else {
      claim.other_finalizers.emplace_back(text);
    }
  }
  const Field status = object.At("status");
  for (const Field held : status.At("reservedFor").Items()) {
    claim.reserved_for.push_back({.api_group = std::string(held.At("apiGroup").Text()),
                                  .resource = std::string(held.At("resource").Text()),
                                  .name = std::string(held.At("name").Text()),
                                  .uid = std::string(held.At("uid").Text())});
  }
  const Field allocation = status.At("allocation");
  if (allocation.has_value()) claim.allocation = ParseAllocation(allocation);
  return claim;
}

absl::StatusOr<ResourceClaim> ParseResourceClaim(const Json& object) {
  Reading reading(object);
  ResourceClaim claim = ParseResourceClaim(reading.root());
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("claim"));
  return claim;
}

Json RenderReservation(const Reservation& held) {
  Json out = {{"resource", held.resource}, {"name", held.name}, {"uid", held.uid}};
  if (!held.api_group.empty()) out["apiGroup"] = held.api_group;
  return out;
}

}  // namespace tahoma::kube
