// Sources: k8s.io/api scheduling/v1alpha1 of 1.35, v1alpha2 and v1beta1, core/v1 of 1.35;
// sigs.k8s.io/scheduler-plugins apis/scheduling/v1alpha1; volcano.sh/apis
// pkg/apis/scheduling/v1beta1; kai-scheduler pkg/apis/scheduling/v2alpha2, pkg/common/constants.

#include "controller/core/facts/pod_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {
namespace {

using Path = std::array<std::string_view, 3>;

struct FollowedMark {
  GroupApi api;
  Path path;
};
constexpr std::array<FollowedMark, 6> kMarks = {{
    {GroupApi::kKubernetes, {"spec", "schedulingGroup", "podGroupName"}},
    {GroupApi::kCoscheduling, {"metadata", "labels", "scheduling.x-k8s.io/pod-group"}},
    {GroupApi::kVolcano, {"metadata", "annotations", "scheduling.k8s.io/group-name"}},
    {GroupApi::kVolcano, {"metadata", "annotations", "scheduling.volcano.sh/group-name"}},
    {GroupApi::kKai, {"metadata", "annotations", "pod-group-name"}},
    {GroupApi::kWorkload, {"spec", "workloadRef", "name"}},
}};

// Fields without which a group would be placed otherwise than its own scheduler places it.
struct UnfollowedField {
  GroupApi api;
  std::string_view name;
};
constexpr std::array<UnfollowedField, 5> kUnfollowed = {{
    {GroupApi::kKubernetes, "parentCompositePodGroupName"},
    {GroupApi::kKubernetes, "resourceClaims"},
    {GroupApi::kKubernetes, "schedulingConstraints"},
    {GroupApi::kKai, "subGroups"},
    {GroupApi::kKai, "topologyConstraint"},
}};

struct ApiName {
  GroupApi api;
  std::string_view group;
  std::string_view kind;
  std::string_view plural;
  std::array<std::string_view, 2> versions;
};
constexpr std::array<ApiName, 6> kApiNames = {{
    // Kubernetes 1.36, then 1.37
    {GroupApi::kKubernetes, "scheduling.k8s.io", "PodGroup", "podgroups", {"v1alpha2", "v1beta1"}},
    {GroupApi::kCoscheduling, "scheduling.x-k8s.io", "PodGroup", "podgroups", {"v1alpha1", ""}},
    {GroupApi::kVolcano, "scheduling.volcano.sh", "PodGroup", "podgroups", {"v1beta1", ""}},
    {GroupApi::kKai, "scheduling.run.ai", "PodGroup", "podgroups", {"v2alpha2", ""}},
    {GroupApi::kNeuron,
     "neuron.aws.com",
     "NeuronUltraServerWorkload",
     "neuronultraserverworkloads",
     {"v1beta1", ""}},
    // Later versions have PodGroups instead.
    {GroupApi::kWorkload, "scheduling.k8s.io", "Workload", "workloads", {"v1alpha1", ""}},
}};

const ApiName& NameOf(GroupApi api) {
  const auto* const found = std::ranges::find(kApiNames, api, &ApiName::api);
  TAHOMA_CHECK(found != kApiNames.end());  // nobody asks for a group that is none
  return *found;
}

kube::Field At(kube::Field object, const Path& path) {
  for (const std::string_view name : path) object = object.At(name);
  return object;
}

bool IsSet(kube::Field field) { return field.has_value() && !field.json().empty(); }

void ReadMembers(kube::Field spec, PodGroupFact& fact) {
  if (fact.key.first == GroupApi::kKubernetes) {
    fact.members = At(spec, {"schedulingPolicy", "gang", "minCount"}).Int(0);
  } else if (fact.key.first != GroupApi::kWorkload) {
    fact.members = spec.At("minMember").Int(0);
  } else {
    for (const kube::Field part : spec.At("podGroups").Items()) {
      fact.parts.emplace(part.At("name").Text(), At(part, {"policy", "gang", "minCount"}).Int(0));
    }
  }
}

// The API server gives each native PodGroup without a class the number 0. Such a PodGroup says
// nothing, so that the PriorityClass of the pods counts.
void ReadPriority(kube::Field spec, PodGroupFact& fact) {
  fact.priority_class = spec.At("priorityClassName").Text();
  if (fact.key.first != GroupApi::kKubernetes) return;
  const kube::Field number = spec.At("priority");
  if (!number.has_value() || (fact.priority_class.empty() && number.Int32() == 0)) return;
  fact.priority = number.Int32();
  fact.priority_class.clear();
}

}  // namespace

std::vector<kube::Resource> PodGroupsOf(GroupApi api) {
  const ApiName& name = NameOf(api);
  std::vector<kube::Resource> kinds;
  for (const std::string_view version : name.versions) {
    if (version.empty()) continue;
    kinds.push_back({.group = std::string(name.group),
                     .version = std::string(version),
                     .plural = std::string(name.plural)});
  }
  return kinds;
}

std::string GroupMark::GangName() const {
  std::string name = group;
  if (!part.empty()) name += "-" + part;
  if (!replica.empty()) name += "-" + replica;
  return name;
}

std::string GroupMark::ToString() const {
  const ApiName& name = NameOf(api);
  return fmt::format("{} {} ({})", name.kind, group, name.group);
}

std::optional<std::int64_t> PodGroupFact::MembersOf(const GroupMark& mark) const {
  if (mark.api != GroupApi::kWorkload) return members;
  const auto found = parts.find(mark.part);
  return found == parts.end() ? std::nullopt : std::optional(found->second);
}

std::optional<GroupMark> ReadGroupMark(const Json& pod) {
  kube::Reading reading(pod);
  for (const FollowedMark& followed : kMarks) {
    const std::string_view group = At(reading.root(), followed.path).Text();
    if (group.empty()) continue;
    GroupMark mark{.api = followed.api, .group = std::string(group)};
    if (followed.api == GroupApi::kWorkload) {
      const kube::Field reference = reading.root().At("spec").At("workloadRef");
      mark.part = reference.At("podGroup").Text();
      mark.replica = reference.At("podGroupReplicaKey").Text();
    }
    return mark;
  }
  return std::nullopt;
}

absl::StatusOr<std::shared_ptr<const PodGroupFact>> ParsePodGroup(GroupApi api,
                                                                  const Json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  const std::string kind(NameOf(api).kind);
  auto fact = std::make_shared<PodGroupFact>();
  fact->as_owner = {.api_version = std::string(reading.root().At("apiVersion").Text()),
                    .kind = kind,
                    .name = metadata.name,
                    .uid = metadata.uid,
                    .controller = true};
  fact->uid = std::move(metadata.uid);
  fact->key = {api, {std::move(metadata.ns), std::move(metadata.name)}};
  const kube::Field spec = reading.root().At("spec");
  ReadMembers(spec, *fact);
  ReadPriority(spec, *fact);
  for (const UnfollowedField& field : kUnfollowed) {
    if (field.api == api && fact->unfollowed.empty() && IsSet(spec.At(field.name))) {
      fact->unfollowed = fmt::format("spec.{}", field.name);
    }
  }
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf(kind));
  return fact;
}

}  // namespace tahoma::controller
