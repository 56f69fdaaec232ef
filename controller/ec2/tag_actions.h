// CreateTags, DeleteTags and DescribeTags.
//
// A reservation and its Capacity Blocks share the tags of the CapacityBlock, whichever id a request
// names.
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
