// Applies CreateTags and DeleteTags to the tags of an object.
//
// Thread safety: plain values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "controller/ec2/values.h"

namespace tahoma::controller::ec2 {

struct TagRemoval {
  std::string key;
  std::optional<std::string> value = {};  // only a tag with that value; nothing: with any
};

struct TagChange {
  std::vector<Tag> set = {};
  std::vector<TagRemoval> remove = {};
  bool remove_all = false;
};

// Returns the tags after the change, sorted by key. TagLimitExceeded when they are too many. EC2's
// own, whose keys begin with "aws:", stay as they are and are not counted.
absl::StatusOr<std::vector<Tag>> ApplyTagChange(const std::vector<Tag>& tags,
                                                const TagChange& change);

}  // namespace tahoma::controller::ec2
