#include "controller/ec2/tag_change.h"

#include <map>

#include "controller/ec2/error.h"
#include "controller/ec2/requests.h"

namespace tahoma::controller::ec2 {

absl::StatusOr<std::vector<Tag>> ApplyTagChange(const std::vector<Tag>& tags,
                                                const TagChange& change) {
  std::map<std::string, std::string> after;
  if (!change.remove_all) {
    for (const Tag& tag : tags) after[tag.key] = tag.value;
  }
  for (const TagRemoval& removal : change.remove) {
    const auto found = after.find(removal.key);
    if (found != after.end() && removal.value.value_or(found->second) == found->second) {
      after.erase(found);
    }
  }
  for (const Tag& tag : change.set) after[tag.key] = tag.value;
  if (after.size() > kTagsMost) {
    return Refuse(kTagLimitExceeded, "there would be {} tags; at most {} are legal", after.size(),
                  kTagsMost);
  }
  std::vector<Tag> sorted;
  for (const auto& [key, value] : after) sorted.push_back({.key = key, .value = value});
  return sorted;
}

}  // namespace tahoma::controller::ec2
