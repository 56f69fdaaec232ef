// CancelCapacityReservation and ModifyCapacityReservation, which EC2 has and Capacity Blocks do not
// allow (docs/reference/capacity-blocks.md#limits).
//
// Scope: which refusal. Parameters are read as EC2 has them.
//
// Thread safety: as the service's.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/ec2/actions.h"

namespace tahoma::controller::ec2 {

absl::StatusOr<std::string> CancelReservation(const Call& call);
absl::StatusOr<std::string> ModifyReservation(const Call& call);

}  // namespace tahoma::controller::ec2
