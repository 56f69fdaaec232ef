// The groups of pods that other schedulers know and Tahoma follows: PodGroups of Kubernetes, of
// coscheduling and of Volcano.
//
//   if (const auto mark = ReadGroupMark(pod)) …        // the pod joins {kVolcano, "train"}
//   TAHOMA_ASSIGN_OR_RETURN(auto group, ParsePodGroup(GroupApi::kVolcano, object));
//   wish.request.members = group->members;             // the Gang that is made for the group
//
// The pods of a followed group are one gang of as many pods as the PodGroup asks for at least.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/model/ids.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

enum class GroupApi : std::uint8_t { kNone, kKubernetes, kCoscheduling, kVolcano };

// Returns the PodGroups of that API, one for each version that a server may serve.
std::vector<kube::Resource> PodGroupsOf(GroupApi api);
// Returns the API group: "scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.volcano.sh".
std::string_view NameOf(GroupApi api);

struct GroupMark {
  GroupApi api = GroupApi::kNone;
  std::string group;
};

// Returns the followed group that the pod joins; nullopt when there is none.
std::optional<GroupMark> ReadGroupMark(const Json& pod);

// The API and the key of a PodGroup.
using PodGroupKey = std::pair<GroupApi, GangKey>;

struct PodGroupFact {
  PodGroupKey key;
  std::string uid;
  std::int64_t members = 0;       // the least number of pods; 0: the group is no gang
  kube::OwnerReference as_owner;  // of the Gang that is made for the group
};

// Fails with kInvalidArgument when the object has no name or a field has another type.
absl::StatusOr<std::shared_ptr<const PodGroupFact>> ParsePodGroup(GroupApi api, const Json& object);

}  // namespace tahoma::controller
