// Offers to let a block end later.
//
//   TAHOMA_ASSIGN_OR_RETURN(const ExtensionOffering offering,
//                           OfferExtension(profile, prices, block, 24, now));
//
// EC2's rules: docs/reference/capacity-blocks.md#extensions. The book checks more when it sells
// one: the owner's quota, and hosts that were chosen early.
//
// Scope: pure functions of the profile. Nothing is reserved.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>

#include "controller/reserve/block.h"
#include "controller/reserve/offering.h"
#include "controller/reserve/time_profile.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Returns whether a block may end at `end` instead. Refused with InvalidCapacityReservationState,
// InvalidParameterValue or InsufficientInstanceCapacity.
absl::Status CheckExtension(const TimeProfile& profile, const Block& block, WallTime end,
                            WallTime now);

// Returns the offering of so many hours more. `profile` and `block` may be of an earlier moment.
absl::StatusOr<ExtensionOffering> OfferExtension(const TimeProfile& profile,
                                                 const PriceList& prices, const Block& block,
                                                 std::int64_t hours, WallTime now);

}  // namespace tahoma::controller
