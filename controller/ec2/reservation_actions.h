// Reads of one side of reservations: GetCapacityReservationUsage and
// DescribeCapacityReservationTopology.
//
// Thread safety: as the service's.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/ec2/actions.h"

namespace tahoma::controller::ec2 {

absl::StatusOr<std::string> GetReservationUsage(const Call& call);
absl::StatusOr<std::string> DescribeReservationTopology(const Call& call);

}  // namespace tahoma::controller::ec2
