#include "controller/ec2/tag_change.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>

#include "controller/ec2/error.h"
#include "controller/ec2/requests.h"

namespace tahoma::controller::ec2 {
namespace {

bool IsEc2sOwn(std::string_view key) { return key.starts_with("aws:"); }

}  // namespace

absl::StatusOr<std::vector<Tag>> ApplyTagChange(const std::vector<Tag>& tags,
                                                const TagChange& change) {
  std::map<std::string, std::string> after;
  for (const Tag& tag : tags) {
    if (!change.remove_all || IsEc2sOwn(tag.key)) after[tag.key] = tag.value;
  }
  for (const TagRemoval& removal : change.remove) {
    const auto found = after.find(removal.key);
    if (found != after.end() && removal.value.value_or(found->second) == found->second) {
      after.erase(found);
    }
  }
  for (const Tag& tag : change.set) after[tag.key] = tag.value;
  const auto count = static_cast<std::size_t>(
      std::ranges::count_if(after, [](const auto& tag) { return !IsEc2sOwn(tag.first); }));
  if (count > kTagsMost) {
    return Refuse(kTagLimitExceeded, "there would be {} tags; at most {} are legal", count,
                  kTagsMost);
  }
  std::vector<Tag> sorted;
  for (const auto& [key, value] : after) sorted.push_back({.key = key, .value = value});
  return sorted;
}

}  // namespace tahoma::controller::ec2
