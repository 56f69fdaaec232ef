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

Json Pod(Json metadata, Json spec = Json::object()) {
  metadata["name"] = "p";
  metadata["namespace"] = "default";
  metadata["uid"] = "u";
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

TEST(PodGroupTest, EachSchedulersMarkIsRead) {
  const auto native = ReadGroupMark(Pod({}, {{"schedulingGroup", {{"podGroupName", "a"}}}}));
  ASSERT_TRUE(native.has_value());
  EXPECT_EQ(native->api, GroupApi::kKubernetes);
  EXPECT_EQ(native->group, "a");
  const auto coscheduling =
      ReadGroupMark(Pod({{"labels", {{"scheduling.x-k8s.io/pod-group", "b"}}}}));
  ASSERT_TRUE(coscheduling.has_value());
  EXPECT_EQ(coscheduling->api, GroupApi::kCoscheduling);
  const auto volcano =
      ReadGroupMark(Pod({{"annotations", {{"scheduling.k8s.io/group-name", "c"}}}}));
  ASSERT_TRUE(volcano.has_value());
  EXPECT_EQ(volcano->api, GroupApi::kVolcano);
  EXPECT_FALSE(ReadGroupMark(Pod({})).has_value());
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
  const auto pod = ParsePod(Pod({{"labels", {{"scheduling.x-k8s.io/pod-group", "train"}}},
                                 {"annotations", {{"tahoma.dev/max-runtime", "2h"}}}}));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ((*pod)->gang, "train");
  ASSERT_NE((*pod)->wish, nullptr);
  EXPECT_EQ((*pod)->wish->terms.max_runtime, "2h");
  EXPECT_EQ((*pod)->spec_error, "");
}

TEST(PodGroupTest, OurLabelCountsBeforeAGroup) {
  const auto pod = ParsePod(
      Pod({{"labels", {{"scheduling.x-k8s.io/pod-group", "train"}, {"tahoma.dev/gang", "mine"}}}}));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ((*pod)->gang, "mine");
  EXPECT_EQ((*pod)->wish, nullptr);
}

TEST(PodGroupTest, ANameThatNoObjectCanHaveIsSaid) {
  const auto pod = ParsePod(Pod({{"annotations", {{"scheduling.k8s.io/group-name", "A b"}}}}));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_THAT((*pod)->spec_error, HasSubstr("no PodGroup has the name A b"));
}

}  // namespace
}  // namespace tahoma::controller
