// What there is, and where: DescribeRegions, DescribeAvailabilityZones, DescribeInstanceTypes and
// DescribeInstanceTypeOfferings.
//
// All of it follows from the instance types that the fleet has in its zones, and the catalogue.
//
// Thread safety: as the service's.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/ec2/actions.h"

namespace tahoma::controller::ec2 {

absl::StatusOr<std::string> DescribeRegions(const Call& call);
absl::StatusOr<std::string> DescribeZones(const Call& call);
absl::StatusOr<std::string> DescribeTypes(const Call& call);
absl::StatusOr<std::string> DescribeTypeOfferings(const Call& call);

}  // namespace tahoma::controller::ec2
