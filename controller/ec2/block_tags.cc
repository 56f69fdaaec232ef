#include "controller/ec2/block_tags.h"

#include <string>
#include <utility>
#include <vector>

#include "controller/admin/objects.h"
#include "controller/reserve/refusal.h"
#include "lib/base/json.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

// The controller writes the status of the same object: a change is tried again when it was first.
constexpr int kTriesMost = 4;
// The core hears of a change within some milliseconds.
constexpr std::chrono::milliseconds kLook{2};

std::vector<ec2::Tag> TagsOf(const Json& object) {
  std::vector<ec2::Tag> tags;
  const Json* members = kube::ValueAt(object, {"spec", "tags"});
  if (members == nullptr) return tags;
  for (const auto& [key, value] : members->items()) {
    if (value.is_string()) tags.push_back({.key = key, .value = value.get<std::string>()});
  }
  return tags;
}

// Returns the merge patch that makes one of the other: null removes.
Json PatchOf(const std::vector<ec2::Tag>& before, const std::vector<ec2::Tag>& after) {
  Json tags = Json::object();
  for (const ec2::Tag& tag : before) tags[tag.key] = nullptr;
  for (const ec2::Tag& tag : after) tags[tag.key] = tag.value;
  return tags;
}

}  // namespace

absl::Status BlockTags::Change(const Block& block, const ec2::TagChange& change) {
  TAHOMA_ASSIGN_OR_RETURN(const Tags tags, Store(block, change));
  const auto deadline = CondVar::In(kShownWithin);
  while (!IsShown(block, tags) && CondVar::In({}) < deadline && sleeper_.Sleep(kLook)) {
  }
  return absl::OkStatus();
}

absl::StatusOr<Tags> BlockTags::Store(const Block& block, const ec2::TagChange& change) {
  const kube::ObjectKey key{block.key.ns, block.key.name};
  absl::Status failed;
  for (int i = 0; i < kTriesMost; ++i) {
    const auto object = Send(api_, kube::GetRequest(kCapacityBlocks, key));
    // A block has no uid until its object was seen.
    const bool gone = object.ok() && !block.uid.empty() &&
                      kube::StringAt(**object, {"metadata", "uid"}) != block.uid;
    if (gone || absl::IsNotFound(object.status())) {
      return Refuse(kReservationNotFound, "the CapacityBlock {} of {} is not there any more",
                    ToString(block.key), block.reservation);
    }
    if (!object.ok()) return object.status();
    const std::vector<ec2::Tag> before = TagsOf(**object);
    TAHOMA_ASSIGN_OR_RETURN(const std::vector<ec2::Tag> after, ec2::ApplyTagChange(before, change));
    Tags tags;
    for (const ec2::Tag& tag : after) tags.emplace_back(tag.key, tag.value);
    Json patch = {{"spec", {{"tags", PatchOf(before, after)}}}};
    patch["metadata"]["resourceVersion"] =
        kube::StringAt(**object, {"metadata", "resourceVersion"});
    failed = Send(api_, kube::PatchRequest(kCapacityBlocks, key, kube::PatchType::kMerge,
                                           std::move(patch)))
                 .status();
    if (failed.ok()) return tags;
    if (!absl::IsAborted(failed)) break;
  }
  return failed;
}

bool BlockTags::IsShown(const Block& block, const Tags& tags) const {
  const std::shared_ptr<const Snapshot> now = take_();
  if (now == nullptr) return false;
  const auto* shown = now->block_list.Find(block.reservation);
  return shown == nullptr || (*shown)->tags == tags;
}

}  // namespace tahoma::controller
