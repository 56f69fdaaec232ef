// CreateTags, DeleteTags and DescribeTags.
//
// A reservation and its Capacity Blocks have one set of tags: those of the CapacityBlock, whichever
// id they are asked or changed by.
//
// Thread safety: as the service's.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/ec2/actions.h"

namespace tahoma::controller::ec2 {

absl::StatusOr<std::string> CreateTags(const Call& call);
absl::StatusOr<std::string> DeleteTags(const Call& call);
absl::StatusOr<std::string> DescribeTags(const Call& call);

}  // namespace tahoma::controller::ec2
