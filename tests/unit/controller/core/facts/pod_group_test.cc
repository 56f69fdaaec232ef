// Pods that join PodGroups of other schedulers.

#include "controller/core/facts/pod_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/core/facts/gang_wish.h"
#include "controller/core/facts/read_facts.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

Json PodWith(Json metadata, Json spec = Json::object()) {
  metadata["name"] = "p";
  metadata["namespace"] = "default";
  metadata["uid"] = "u";
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

TEST(PodGroupTest, EachSchedulersMarkIsRead) {
  const auto native = ReadGroupMark(PodWith({}, {{"schedulingGroup", {{"podGroupName", "a"}}}}));
  ASSERT_TRUE(native.has_value());
  EXPECT_EQ(native->api, GroupApi::kKubernetes);
  EXPECT_EQ(native->group, "a");
  const auto coscheduling =
      ReadGroupMark(PodWith({{"labels", {{"scheduling.x-k8s.io/pod-group", "b"}}}}));
  ASSERT_TRUE(coscheduling.has_value());
  EXPECT_EQ(coscheduling->api, GroupApi::kCoscheduling);
  const auto volcano =
      ReadGroupMark(PodWith({{"annotations", {{"scheduling.k8s.io/group-name", "c"}}}}));
  ASSERT_TRUE(volcano.has_value());
  EXPECT_EQ(volcano->api, GroupApi::kVolcano);
  const auto kai = ReadGroupMark(PodWith({{"annotations", {{"pod-group-name", "d"}}}}));
  ASSERT_TRUE(kai.has_value());
  EXPECT_EQ(kai->api, GroupApi::kKai);
  EXPECT_FALSE(ReadGroupMark(PodWith({})).has_value());
}

TEST(PodGroupTest, EachReplicaOfAWorkloadsGroupIsAGangOfItsOwn) {
  Json reference = {{"name", "train"}, {"podGroup", "workers"}};
  const auto lone = ReadGroupMark(PodWith({}, {{"workloadRef", reference}}));
  ASSERT_TRUE(lone.has_value());
  EXPECT_EQ(lone->api, GroupApi::kWorkload);
  EXPECT_EQ(lone->GangName(), "train-workers");
  EXPECT_EQ(lone->ToString(), "Workload train (scheduling.k8s.io)");
  reference["podGroupReplicaKey"] = "1";
  EXPECT_EQ(ReadGroupMark(PodWith({}, {{"workloadRef", reference}}))->GangName(),
            "train-workers-1");
}

TEST(PodGroupTest, AWorkloadTellsTheLeastNumberOfPodsOfEachGroup) {
  const Json object = {{"apiVersion", "scheduling.k8s.io/v1alpha1"},
                       {"metadata", {{"name", "train"}, {"namespace", "default"}, {"uid", "u"}}},
                       {"spec",
                        {{"podGroups",
                          {{{"name", "workers"}, {"policy", {{"gang", {{"minCount", 4}}}}}},
                           {{"name", "driver"}, {"policy", {{"basic", Json::object()}}}}}}}}};
  const auto workload = ParsePodGroup(GroupApi::kWorkload, object);
  ASSERT_TRUE(workload.ok()) << workload.status();
  GroupMark mark{.api = GroupApi::kWorkload, .group = "train", .part = "workers"};
  EXPECT_EQ((*workload)->MembersOf(mark), 4);
  mark.part = "driver";
  EXPECT_EQ((*workload)->MembersOf(mark), 0);
  mark.part = "others";
  EXPECT_EQ((*workload)->MembersOf(mark), std::nullopt);
  EXPECT_EQ((*workload)->as_owner.kind, "Workload");
  EXPECT_EQ((*workload)->as_owner.api_version, "scheduling.k8s.io/v1alpha1");
}

// The API server gives each native PodGroup a number, 0 where nobody has named a class.
TEST(PodGroupTest, APriorityIsTheNumberOfANativeGroupAndTheClassOfAnother) {
  const auto priority_of = [](GroupApi api, Json spec) {
    const auto group = ParsePodGroup(
        api, {{"metadata", {{"name", "g"}, {"namespace", "default"}}}, {"spec", std::move(spec)}});
    EXPECT_TRUE(group.ok()) << group.status();
    const std::string number = (*group)->priority ? std::to_string(*(*group)->priority) : "none";
    return number + " " + (*group)->priority_class;
  };
  const auto native = GroupApi::kKubernetes;
  EXPECT_EQ(priority_of(native, {{"priority", 0}}), "none ");
  EXPECT_EQ(priority_of(native, {{"priority", 0}, {"priorityClassName", "low"}}), "0 ");
  EXPECT_EQ(priority_of(native, {{"priority", -7}}), "-7 ");
  EXPECT_EQ(priority_of(native, {{"priorityClassName", "high"}}), "none high");
  EXPECT_EQ(priority_of(GroupApi::kVolcano, {{"priorityClassName", "high"}}), "none high");
  EXPECT_EQ(priority_of(GroupApi::kKai, {{"priorityClassName", "high"}}), "none high");
  EXPECT_EQ(priority_of(GroupApi::kCoscheduling, {{"minMember", 2}}), "none ");
}

TEST(PodGroupTest, AFieldThatIsNotFollowedIsNamed) {
  const auto unfollowed = [](GroupApi api, Json spec) {
    return (*ParsePodGroup(api, {{"metadata", {{"name", "g"}, {"namespace", "d"}}},
                                 {"spec", std::move(spec)}}))
        ->unfollowed;
  };
  const Json list = Json::array({{{"name", "x"}}});
  EXPECT_EQ(unfollowed(GroupApi::kKubernetes, {{"resourceClaims", list}}), "spec.resourceClaims");
  EXPECT_EQ(unfollowed(GroupApi::kKubernetes, {{"resourceClaims", Json::array()}}), "");
  EXPECT_EQ(unfollowed(GroupApi::kKubernetes, {{"schedulingConstraints", {{"topology", list}}}}),
            "spec.schedulingConstraints");
  EXPECT_EQ(unfollowed(GroupApi::kKubernetes, {{"disruptionMode", "Pod"}}), "");
  EXPECT_EQ(unfollowed(GroupApi::kKai, {{"subGroups", list}}), "spec.subGroups");
  EXPECT_EQ(unfollowed(GroupApi::kKai, {{"topologyConstraint", Json::object()}}), "");
  EXPECT_EQ(unfollowed(GroupApi::kVolcano, {{"subGroups", list}}), "");
}

TEST(PodGroupTest, APodGroupTellsTheLeastNumberOfPods) {
  Json group = {{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                {"metadata", {{"name", "g"}, {"namespace", "default"}, {"uid", "u"}}},
                {"spec", {{"minMember", 4}}}};
  const auto volcano = ParsePodGroup(GroupApi::kVolcano, group);
  ASSERT_TRUE(volcano.ok()) << volcano.status();
  EXPECT_EQ((*volcano)->members, 4);
  EXPECT_EQ((*volcano)->as_owner.api_version, "scheduling.volcano.sh/v1beta1");
  group["spec"] = {{"schedulingPolicy", {{"gang", {{"minCount", 8}}}}}};
  EXPECT_EQ((*ParsePodGroup(GroupApi::kKubernetes, group))->members, 8);
  group["spec"] = {{"schedulingPolicy", {{"basic", Json::object()}}}};
  EXPECT_EQ((*ParsePodGroup(GroupApi::kKubernetes, group))->members, 0);
  group["spec"] = {{"minMember", "four"}};
  EXPECT_FALSE(ParsePodGroup(GroupApi::kCoscheduling, group).ok());
}

TEST(PodGroupTest, APodThatJoinsAGroupWishesAGangOfThatName) {
  const auto pod = ParsePod(PodWith({{"labels", {{"scheduling.x-k8s.io/pod-group", "train"}}},
                                     {"annotations", {{"tahoma.dev/max-runtime", "2h"}}}}));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ((*pod)->gang, "train");
  ASSERT_NE((*pod)->wish, nullptr);
  EXPECT_EQ((*pod)->wish->terms.max_runtime, "2h");
  EXPECT_EQ((*pod)->spec_error, "");
}

TEST(PodGroupTest, OurLabelCountsBeforeAGroup) {
  const auto pod = ParsePod(PodWith(
      {{"labels", {{"scheduling.x-k8s.io/pod-group", "train"}, {"tahoma.dev/gang", "mine"}}}}));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ((*pod)->gang, "mine");
  EXPECT_EQ((*pod)->wish, nullptr);
}

TEST(PodGroupTest, ANameThatNoObjectCanHaveIsSaid) {
  const auto pod = ParsePod(PodWith({{"annotations", {{"scheduling.k8s.io/group-name", "A b"}}}}));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_THAT((*pod)->spec_error, HasSubstr("no Gang can be named A b, after "
                                            "PodGroup A b (scheduling.volcano.sh)"));
}

}  // namespace
}  // namespace tahoma::controller
