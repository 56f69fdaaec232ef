// Sources: k8s.io/api scheduling/v1alpha2 and v1beta1; sigs.k8s.io/scheduler-plugins
// apis/scheduling/v1alpha1; volcano.sh/apis pkg/apis/scheduling/v1beta1.

#include "controller/core/facts/pod_group.h"

#include <array>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {
namespace {

struct FollowedMark {
  GroupApi api;
  std::array<std::string_view, 3> path;
};
constexpr std::array<FollowedMark, 4> kMarks = {{
    {GroupApi::kKubernetes, {"spec", "schedulingGroup", "podGroupName"}},
    {GroupApi::kCoscheduling, {"metadata", "labels", "scheduling.x-k8s.io/pod-group"}},
    {GroupApi::kVolcano, {"metadata", "annotations", "scheduling.k8s.io/group-name"}},
    {GroupApi::kVolcano, {"metadata", "annotations", "scheduling.volcano.sh/group-name"}},
}};

kube::Field At(kube::Field object, const std::array<std::string_view, 3>& path) {
  for (const std::string_view name : path) object = object.At(name);
  return object;
}

}  // namespace

std::string_view NameOf(GroupApi api) {
  switch (api) {
    case GroupApi::kKubernetes:
      return "scheduling.k8s.io";
    case GroupApi::kCoscheduling:
      return "scheduling.x-k8s.io";
    case GroupApi::kVolcano:
      return "scheduling.volcano.sh";
    case GroupApi::kNone:
      break;
  }
  TAHOMA_CHECK(false);  // nobody asks for a group that is none
  return "";
}

std::vector<kube::Resource> PodGroupsOf(GroupApi api) {
  const auto of = [&](const char* version) {
    return kube::Resource{
        .group = std::string(NameOf(api)), .version = version, .plural = "podgroups"};
  };
  if (api == GroupApi::kKubernetes) return {of("v1alpha2"), of("v1beta1")};  // 1.36, then 1.37
  return {of(api == GroupApi::kVolcano ? "v1beta1" : "v1alpha1")};
}

std::optional<GroupMark> ReadGroupMark(const Json& pod) {
  kube::Reading reading(pod);
  for (const FollowedMark& mark : kMarks) {
    const std::string_view group = At(reading.root(), mark.path).Text();
    if (!group.empty()) return GroupMark{.api = mark.api, .group = std::string(group)};
  }
  return std::nullopt;
}

absl::StatusOr<std::shared_ptr<const PodGroupFact>> ParsePodGroup(GroupApi api,
                                                                  const Json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  auto fact = std::make_shared<PodGroupFact>();
  const kube::Field least =
      api == GroupApi::kKubernetes
          ? At(reading.root().At("spec"), {"schedulingPolicy", "gang", "minCount"})
          : reading.root().At("spec").At("minMember");
  fact->members = least.Int(0);
  fact->as_owner = {.api_version = std::string(reading.root().At("apiVersion").Text()),
                    .kind = "PodGroup",
                    .name = metadata.name,
                    .uid = metadata.uid,
                    .controller = true};
  fact->uid = std::move(metadata.uid);
  fact->key = {api, {std::move(metadata.ns), std::move(metadata.name)}};
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("PodGroup"));
  return fact;
}

}  // namespace tahoma::controller
