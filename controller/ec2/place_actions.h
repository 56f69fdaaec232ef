// The actions that list places and types: DescribeRegions, DescribeAvailabilityZones,
// DescribeInstanceTypes and DescribeInstanceTypeOfferings.
//
// All answers follow from the catalogue and the instance types in the fleet's zones.
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
