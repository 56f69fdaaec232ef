#include "controller/ingest/other_pods.h"

#include <gtest/gtest.h>

#include <string>

namespace tahoma::controller {
namespace {

OtherPodTraits Cores(std::int64_t cores) {
  return {.needs = {.amounts = {{"cpu", cores * 1000}, {"pods", 1}}, .ports = {}}};
}

const kube::ObjectKey kPod{"default", "web-0"};

TEST(OtherPodsTest, APodIsToldWhenItComesChangesAndLeaves) {
  OtherPods pods;
  const auto came = pods.OnPod(kPod, "a", Cores(1));
  ASSERT_TRUE(came.has_value());
  EXPECT_EQ(came->node, "a");
  EXPECT_EQ(*came->added, Cores(1));
  EXPECT_EQ(came->removed, nullptr);
  EXPECT_FALSE(pods.OnPod(kPod, "a", Cores(1)).has_value());

  const auto grew = pods.OnPod(kPod, "a", Cores(2));
  ASSERT_TRUE(grew.has_value());
  EXPECT_EQ(*grew->removed, Cores(1));
  EXPECT_EQ(*grew->added, Cores(2));

  const auto left = pods.OnPodGone(kPod);
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->left, "a");
  EXPECT_EQ(*left->removed, Cores(2));
  EXPECT_EQ(left->added, nullptr);
  EXPECT_FALSE(pods.OnPodGone(kPod).has_value());
  EXPECT_EQ(pods.size(), 0U);
}

TEST(OtherPodsTest, APodThatWasMadeAgainOnAnotherNodeLeavesTheFirst) {
  OtherPods pods;
  pods.OnPod(kPod, "a", Cores(1));
  const auto moved = pods.OnPod(kPod, "b", Cores(1));
  ASSERT_TRUE(moved.has_value());
  EXPECT_EQ(moved->left, "a");
  EXPECT_EQ(moved->node, "b");
}

// The defect: a server that lists pods without a node ended the controller.
TEST(OtherPodsTest, APodWithoutANodeTakesNothing) {
  OtherPods pods;
  EXPECT_FALSE(pods.OnPod({"ns", "a"}, "", {}));
  EXPECT_EQ(pods.size(), 0U);
  pods.OnPod({"ns", "a"}, "n", {});
  const auto moved = pods.OnPod({"ns", "a"}, "", {});
  EXPECT_EQ(moved->left, "n");
  EXPECT_EQ(moved->added, nullptr);
}

TEST(OtherPodsTest, EqualTraitsAreKeptOnceAndForgottenWithTheirPods) {
  OtherPods pods;
  for (int i = 0; i < 1000; ++i) pods.OnPod({"default", std::to_string(i)}, "a", Cores(i % 3));
  EXPECT_EQ(pods.kinds(), 3U);
  for (int i = 0; i < 10'000; ++i) {
    pods.OnPod(kPod, "a", Cores(100 + i));
  }
  EXPECT_LT(pods.kinds(), 200U);
}

}  // namespace
}  // namespace tahoma::controller
