#include "lib/kube/objects/pod_needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::int64_t kGi = std::int64_t{1} << 30;

PodNeeds NeedsOf(std::string_view spec) {
  const Json pod = ParseJson(R"({"spec": )" + std::string(spec) + "}");
  Reading reading(pod);
  PodNeeds needs = ParsePodNeeds(reading.root());
  EXPECT_TRUE(reading.status().ok()) << reading.status();
  return needs;
}

Amounts AmountsOf(std::string_view list) {
  const Json json = ParseJson(list);
  Reading reading(json);
  return ParseAmounts(reading.root());
}

TEST(PodNeedsTest, ContainersAreAddedUp) {
  const PodNeeds needs = NeedsOf(R"({"containers": [
      {"resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}},
      {"resources": {"requests": {"cpu": 2, "hugepages-2Mi": "4Mi"}}}]})");
  EXPECT_THAT(needs.amounts, ElementsAre(Pair("cpu", 3500), Pair("hugepages-2Mi", 4 << 20),
                                         Pair("memory", kGi), Pair("pods", 1)));
}

TEST(PodNeedsTest, WhatAClaimGivesIsNotOfTheNodeAndANodeWithADevicePluginIsNotForThePod) {
  PodNeeds needs = NeedsOf(R"({"containers": [{"resources": {"limits": {
      "aws.amazon.com/neuron": "4", "vpc.amazonaws.com/efa": "1"}}}]})");
  TakeByClaim({"aws.amazon.com/neuron"}, needs);
  EXPECT_THAT(needs.amounts, ElementsAre(Pair("pods", 1), Pair("vpc.amazonaws.com/efa", 1)));
  const Amounts node = AmountsOf(R"({"pods": "110", "vpc.amazonaws.com/efa": "8"})");
  EXPECT_TRUE(HasRoomFor(node, {}, needs));
  EXPECT_EQ(WhyNotOn(node, {}, needs), "");
  const Amounts plugin = AmountsOf(R"({"pods": "110", "vpc.amazonaws.com/efa": "8",
                                       "aws.amazon.com/neuron": "16"})");
  EXPECT_FALSE(HasRoomFor(plugin, {}, needs));
  EXPECT_EQ(WhyNotOn(plugin, {}, needs), "has aws.amazon.com/neuron of a device plugin");
}

TEST(PodNeedsTest, APodWithoutRequestsCountsAsAPod) {
  EXPECT_THAT(NeedsOf(R"({"containers": [{}]})").amounts, ElementsAre(Pair("pods", 1)));
}

TEST(PodNeedsTest, ALimitIsTheRequestWhereThereIsNone) {
  const PodNeeds needs = NeedsOf(R"({"containers": [{"resources": {
      "limits": {"cpu": "4", "vpc.amazonaws.com/efa": "2"}, "requests": {"cpu": "1"}}}]})");
  EXPECT_THAT(needs.amounts,
              ElementsAre(Pair("cpu", 1000), Pair("pods", 1), Pair("vpc.amazonaws.com/efa", 2)));
}

TEST(PodNeedsTest, AnInitContainerCountsOnlyWhereItNeedsMore) {
  const PodNeeds needs = NeedsOf(R"({
      "initContainers": [{"resources": {"requests": {"cpu": "5", "memory": "1"}}},
                         {"resources": {"requests": {"cpu": "4", "memory": "9"}}}],
      "containers": [{"resources": {"requests": {"cpu": "2", "memory": "12"}}}]})");
  EXPECT_THAT(needs.amounts, ElementsAre(Pair("cpu", 5000), Pair("memory", 12), Pair("pods", 1)));
}

TEST(PodNeedsTest, ASidecarRunsBesideAllThatStartAfterIt) {
  // The second init container starts beside the sidecar: 2 + 5. The containers run beside: 2 + 3.
  const PodNeeds needs = NeedsOf(R"({
      "initContainers": [{"resources": {"requests": {"cpu": "6"}}},
                         {"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
                         {"resources": {"requests": {"cpu": "5"}}}],
      "containers": [{"resources": {"requests": {"cpu": "3"}}}]})");
  EXPECT_THAT(needs.amounts, ElementsAre(Pair("cpu", 7000), Pair("pods", 1)));
}

TEST(PodNeedsTest, OverheadIsAddedAndResourcesOfThePodReplaceTheSum) {
  const PodNeeds needs = NeedsOf(R"({"overhead": {"cpu": "250m", "memory": "16"},
      "resources": {"requests": {"cpu": "8"}},
      "containers": [{"resources": {"requests": {"cpu": "3", "memory": "100"}}}]})");
  EXPECT_THAT(needs.amounts, ElementsAre(Pair("cpu", 8250), Pair("memory", 116), Pair("pods", 1)));
}

TEST(PodNeedsTest, AnAmountBeyondAnyNodeIsKeptBelowOverflow) {
  const PodNeeds needs = NeedsOf(R"({"containers": [{"resources": {"requests": {
      "memory": "8191Pi"}}}, {"resources": {"requests": {"memory": "9e30"}}}]})");
  EXPECT_EQ(AmountOf(needs.amounts, "memory"), std::int64_t{1} << 56);
}

TEST(PodNeedsTest, AQuantityThatIsNoneFailsWithItsPlace) {
  const Json pod = ParseJson(R"({"metadata": {"name": "p"}, "spec": {"containers": [
      {"resources": {"requests": {"cpu": "many"}}}]}})");
  Reading reading(pod);
  ParsePodNeeds(reading.root());
  EXPECT_EQ(Message(reading.StatusOf("pod")),
            "pod p: spec.containers[0].resources.requests.cpu: must be a quantity, such as 2 or "
            "96Gi");
}

TEST(PodNeedsTest, PortsOfTheNodeAreThoseWithAHostPort) {
  const PodNeeds needs = NeedsOf(R"({"containers": [{"ports": [
      {"containerPort": 80}, {"containerPort": 80, "hostPort": 8080},
      {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
      {"containerPort": 81, "hostPort": 81, "hostIP": "0.0.0.0"}]}]})");
  EXPECT_THAT(needs.ports, ElementsAre(HostPort{"", "TCP", 81}, HostPort{"", "TCP", 8080},
                                       HostPort{"10.0.0.1", "UDP", 53}));
}

TEST(PodNeedsTest, OnTheNodesNetworkEveryPortIsTheNodes) {
  const PodNeeds needs =
      NeedsOf(R"({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]})");
  EXPECT_THAT(needs.ports, ElementsAre(HostPort{"", "TCP", 80}));
}

TEST(PodNeedsTest, PortsConflictOnOneAddressOrOnAllOfThem) {
  const HostPort all{"", "TCP", 80};
  const HostPort one{"10.0.0.1", "TCP", 80};
  EXPECT_TRUE(all.ConflictsWith(one));
  EXPECT_TRUE(one.ConflictsWith(all));
  EXPECT_TRUE(one.ConflictsWith(one));
  EXPECT_FALSE(one.ConflictsWith(HostPort{"10.0.0.2", "TCP", 80}));
  EXPECT_FALSE(one.ConflictsWith(HostPort{"10.0.0.1", "UDP", 80}));
  EXPECT_FALSE(all.ConflictsWith(HostPort{"", "TCP", 81}));
}

TEST(NodeUseTest, ANodeIsFullWhenOneResourceIs) {
  const Amounts node = AmountsOf(R"({"cpu": "4", "memory": "8Gi", "pods": "2"})");
  const PodNeeds pod = NeedsOf(R"({"containers": [{"resources": {"requests": {"cpu": "2"}}}]})");
  NodeUse use;
  EXPECT_EQ(WhyNotOn(node, use, pod), "");
  use.Add(pod);
  EXPECT_EQ(WhyNotOn(node, use, pod), "");
  use.Add(NeedsOf(R"({"containers": [{"resources": {"requests": {"cpu": "1m"}}}]})"));
  EXPECT_EQ(WhyNotOn(node, use, pod), "Insufficient cpu");
  EXPECT_EQ(WhyNotOn(node, use, NeedsOf(R"({"containers": [{}]})")), "Too many pods");
}

TEST(NodeUseTest, AResourceThatTheNodeHasNotIsMissing) {
  const PodNeeds pod = NeedsOf(R"({"containers": [{"resources": {"limits": {
      "nvidia.com/gpu": "1"}}}]})");
  EXPECT_EQ(WhyNotOn(AmountsOf(R"({"cpu": "4", "pods": "10"})"), {}, pod),
            "Insufficient nvidia.com/gpu");
}

TEST(NodeUseTest, APortIsFreeAgainWhenItsPodHasLeft) {
  const Amounts node = AmountsOf(R"({"pods": "10"})");
  const PodNeeds pod = NeedsOf(R"({"containers": [{"ports": [{"containerPort": 80,
      "hostPort": 80}]}]})");
  NodeUse use;
  use.Add(pod);
  EXPECT_EQ(WhyNotOn(node, use, pod), "no free host port 80");
  EXPECT_FALSE(HasRoomFor(node, use, pod));
  use.Subtract(pod);
  EXPECT_TRUE(HasRoomFor(node, use, pod));
  EXPECT_TRUE(use.empty());
}

}  // namespace
}  // namespace tahoma::kube
