// The groups of pods that other schedulers know and Tahoma follows: PodGroups of Kubernetes, of
// coscheduling, of Volcano and of KAI, and the Workloads of Kubernetes 1.35.
//
//   const auto mark = ReadGroupMark(pod);              // the pod joins {kVolcano, "train"}
//   TAHOMA_ASSIGN_OR_RETURN(auto group, ParsePodGroup(mark->api, object));
//   wish.request.members = *group->MembersOf(*mark);   // the Gang that is made for the group
//
// The pods of a followed group are one gang of as many pods as the PodGroup asks for at least. A
// Workload lists several groups, and each replica of a group is a gang.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
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

enum class GroupApi : std::uint8_t {
  kNone,
  kKubernetes,
  kCoscheduling,
  kVolcano,
  kKai,
  kWorkload,
  kNeuron,  // not a PodGroup but a NeuronUltraServerWorkload (ultraserver_workload.h)
};
inline constexpr std::array kGroupApis = {GroupApi::kKubernetes, GroupApi::kCoscheduling,
                                          GroupApi::kVolcano, GroupApi::kKai, GroupApi::kWorkload};

// Returns the PodGroups, or Workloads, of that API, one for each version that a server may serve.
std::vector<kube::Resource> PodGroupsOf(GroupApi api);

struct GroupMark {
  GroupApi api = GroupApi::kNone;
  std::string group;         // the name of the PodGroup or of the Workload
  std::string part = {};     // the name of a group in the Workload
  std::string replica = {};  // a replica of that group; empty when the group has no replicas

  // Returns the name of the Gang: "train", or of a Workload's group "train-workers-0".
  std::string GangName() const;
  // Returns "PodGroup train (scheduling.x-k8s.io)", "Workload train (scheduling.k8s.io)".
  std::string ToString() const;

  friend bool operator==(const GroupMark&, const GroupMark&) = default;
};

// Returns the followed group that the pod joins; nullopt when there is none.
std::optional<GroupMark> ReadGroupMark(const Json& pod);

// The API and the key of a PodGroup.
using PodGroupKey = std::pair<GroupApi, GangKey>;

struct PodGroupFact {
  PodGroupKey key;
  std::string uid;
  std::int64_t members = 0;  // the least number of pods; 0: the group is no gang
  // Instead of `members`, the groups of a Workload by name.
  std::map<std::string, std::int64_t, std::less<>> parts = {};
  std::optional<std::int32_t> priority = {};
  std::string priority_class = {};  // the name of a PriorityClass; empty when `priority` is known
  std::string unfollowed = {};      // a field that Tahoma does not follow: "spec.resourceClaims"
  kube::OwnerReference as_owner;    // of the Gang that is made for the group

  // Returns the least number of pods of the group; nullopt when the Workload has no such group.
  std::optional<std::int64_t> MembersOf(const GroupMark& mark) const;

  friend bool operator==(const PodGroupFact&, const PodGroupFact&) = default;
};

// Fails with kInvalidArgument when the object has no name or a field has another type.
absl::StatusOr<std::shared_ptr<const PodGroupFact>> ParsePodGroup(GroupApi api, const Json& object);

}  // namespace tahoma::controller
