// Claims of pods that ask for devices by the names of extended resources.

#include "controller/core/facts/extended_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/read_facts.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kNeuronResource[] = "aws.amazon.com/neuron";

class ExtendedClaimTest : public ::testing::Test {
 protected:
  ExtendedClaimTest() { AddClass("chips", kNeuronResource, 1); }
  void AddClass(const std::string& name, const std::string& resource, int created) {
    ClassFact added;
    added.name = name;
    added.extended_resource = resource;
    added.created = WallTime(std::chrono::seconds(created));
    facts_.classes[name] = std::make_shared<const ClassFact>(added);
  }
  static PodFact Pod(const std::string& spec) {
    Json object = {{"metadata", {{"name", "p"}, {"namespace", "ml"}, {"uid", "uid-p"}}}};
    object["spec"] = ParseJson(spec);
    auto pod = ParsePod(object);
    EXPECT_TRUE(pod.ok()) << pod.status();
    return **pod;
  }
  std::vector<std::pair<std::string, std::int64_t>> Requests(const std::string& spec) {
    const auto claim = ExtendedClaimOf(Pod(spec), facts_);
    std::vector<std::pair<std::string, std::int64_t>> requests;
    if (!claim) return requests;
    for (const ExtendedRequest& one : claim->requests) requests.emplace_back(one.name, one.count);
    return requests;
  }
  std::vector<std::string> Mappings(const std::string& spec) {
    const auto claim = ExtendedClaimOf(Pod(spec), facts_);
    std::vector<std::string> mappings;
    if (!claim) return mappings;
    for (const kube::ExtendedMapping& one : claim->status.mappings) {
      mappings.push_back(one.container + " " + one.request);
    }
    return mappings;
  }

  Facts facts_;
};

TEST_F(ExtendedClaimTest, EachResourceOfAContainerIsARequestNumberedAsKubeSchedulerDoes) {
  AddClass("cores", "aws.amazon.com/neuroncore", 1);
  const std::string spec = R"({"containers": [
      {"name": "a", "resources": {"limits": {"cpu": "1", "aws.amazon.com/neuron": "4"}}},
      {"name": "b"},
      {"name": "c", "resources": {"limits": {"aws.amazon.com/neuroncore": "2",
                                             "aws.amazon.com/neuron": "1"},
                                  "requests": {"memory": "1Gi"}}}]})";
  EXPECT_THAT(Requests(spec),
              ElementsAre(Pair("container-0-request-0", 4), Pair("container-2-request-0", 1),
                          Pair("container-2-request-1", 2)));
  EXPECT_THAT(Mappings(spec), ElementsAre("a container-0-request-0", "c container-2-request-0",
                                          "c container-2-request-1"));
}

TEST_F(ExtendedClaimTest, InitContainersUseTheDevicesOfLaterContainersFirst) {
  const auto init = [](const char* name, int count, bool sidecar) {
    return fmt::format(
        R"({{"name": "{}", {} "resources": {{"limits": {{"aws.amazon.com/neuron": "{}"}}}}}})",
        name, sidecar ? R"("restartPolicy": "Always",)" : "", count);
  };
  const std::string main = init("main", 2, false);
  const auto spec = [&](const std::string& inits) {
    return fmt::format(R"({{"initContainers": [{}], "containers": [{}]}})", inits, main);
  };
  EXPECT_THAT(Requests(spec(init("i", 1, false))), ElementsAre(Pair("container-1-request-0", 2)));
  EXPECT_THAT(Mappings(spec(init("i", 1, false))),
              ElementsAre("main container-1-request-0", "i container-1-request-0"));
  // Three beyond the two of main, shared by both init containers.
  const std::string two = spec(init("i", 3, false) + "," + init("j", 5, false));
  EXPECT_THAT(Requests(two),
              ElementsAre(Pair("container-1-request-0", 3), Pair("container-2-request-0", 2)));
  EXPECT_THAT(Mappings(two), ElementsAre("main container-2-request-0", "i container-2-request-0",
                                         "i container-1-request-0", "j container-2-request-0",
                                         "j container-1-request-0"));
  // A sidecar runs on: its devices are for init containers before, and not for those after it.
  const std::string beside = spec(init("side", 4, true) + "," + init("i", 5, false));
  EXPECT_THAT(Requests(beside),
              ElementsAre(Pair("container-0-request-0", 4), Pair("container-1-request-0", 3),
                          Pair("container-2-request-0", 2)));
}

// Whoever runs at one time has devices of its own, as many as it asks for, and no fewer would do
// for the containers that run to the end.
TEST_F(ExtendedClaimTest, EveryContainerHasItsDevicesAndNoTwoThatRunTogetherShareSome) {
  Rng rng(7);
  for (int round = 0; round < 500; ++round) {
    PodFact pod;
    pod.key = {"ml", "p"};
    std::vector<kube::ExtendedAsk> asks;
    const auto inits = static_cast<std::uint32_t>(rng.Below(4));
    const auto mains = static_cast<std::uint32_t>(1 + rng.Below(3));
    for (std::uint32_t i = 0; i < inits + mains; ++i) {
      const auto count = static_cast<std::int64_t>(rng.Below(6));
      if (count == 0) continue;
      asks.push_back({.container = fmt::format("c{}", i),
                      .container_index = i,
                      .ends_first = i < inits && rng.Below(3) != 0,
                      .resource = kNeuronResource,
                      .resource_index = 0,
                      .count = count});
    }
    if (asks.empty()) continue;
    pod.extended_asks = std::make_shared<const std::vector<kube::ExtendedAsk>>(asks);
    const auto claim = ExtendedClaimOf(pod, facts_);
    ASSERT_TRUE(claim);
    std::map<std::string, std::int64_t> counts;
    for (const ExtendedRequest& one : claim->requests) {
      ASSERT_TRUE(counts.emplace(one.name, one.count).second) << "two requests of one name";
      EXPECT_GT(one.count, 0);
    }
    std::map<std::string, std::set<std::string>> given;
    for (const kube::ExtendedMapping& one : claim->status.mappings) {
      ASSERT_TRUE(counts.contains(one.request));
      ASSERT_TRUE(given[one.container].insert(one.request).second) << "a mapping twice";
    }
    for (const kube::ExtendedAsk& ask : asks) {
      std::int64_t has = 0;
      for (const std::string& request : given[ask.container]) has += counts[request];
      EXPECT_GE(has, ask.count) << ask.container;
      if (!ask.ends_first) {
        EXPECT_EQ(has, ask.count) << ask.container;
      }
      for (const kube::ExtendedAsk& other : asks) {
        const bool together = &other != &ask && !other.ends_first &&
                              (!ask.ends_first || other.container_index < ask.container_index);
        if (!together) continue;
        for (const std::string& request : given[ask.container]) {
          EXPECT_FALSE(given[other.container].contains(request))
              << ask.container << " and " << other.container;
        }
      }
    }
  }
}

TEST_F(ExtendedClaimTest, TheClassThatWasMadeLastHasTheNameAndOfEqualOnesTheFirstByName) {
  AddClass("newer-b", kNeuronResource, 9);
  AddClass("newer-a", kNeuronResource, 9);
  AddClass("unnamed", "", 10);
  EXPECT_EQ(ClassOf(kNeuronResource, facts_)->name, "newer-a");
  EXPECT_EQ(ClassOf("aws.amazon.com/other", facts_), nullptr);
  EXPECT_EQ(ClassOf("deviceclass.resource.kubernetes.io/unnamed", facts_)->name, "unnamed");
  EXPECT_EQ(ClassOf("deviceclass.resource.kubernetes.io/none", facts_), nullptr);
}

TEST_F(ExtendedClaimTest, TheNameOfAClaimIsOfThePodAndItsUid) {
  PodFact pod = Pod(R"({"containers": [
      {"name": "a", "resources": {"limits": {"aws.amazon.com/neuron": "1"}}}]})");
  const std::string name = ExtendedClaimOf(pod, facts_)->status.claim;
  EXPECT_THAT(name, ::testing::MatchesRegex("p-extended-resources-[0-9a-f]*"));
  pod.uid = "another";
  EXPECT_NE(ExtendedClaimOf(pod, facts_)->status.claim, name);
  pod.key.name = std::string(222, 'a') + "." + std::string(30, 'b');
  const std::string cut = ExtendedClaimOf(pod, facts_)->status.claim;
  EXPECT_THAT(cut, HasSubstr("a-extended-resources-"));
  EXPECT_LE(cut.size(), 253U);
}

TEST_F(ExtendedClaimTest, OnlyAClaimWithTheWishedRequestsIsThePods) {
  const auto wished = ExtendedClaimOf(Pod(R"({"containers": [
      {"name": "a", "resources": {"limits": {"aws.amazon.com/neuron": "2"}}}]})"),
                                      facts_);
  kube::ResourceClaimSpec spec;
  spec.requests.resize(1);
  spec.requests[0].name = "container-0-request-0";
  spec.requests[0].alternatives.resize(1);
  spec.requests[0].alternatives[0].device_class = "chips";
  spec.requests[0].alternatives[0].count = 2;
  EXPECT_TRUE(IsSpecOf(*wished, spec));
  kube::ResourceClaimSpec other = spec;
  other.requests[0].alternatives[0].count = 3;
  EXPECT_FALSE(IsSpecOf(*wished, other));
  other = spec;
  other.requests[0].alternatives[0].device_class = "cores";
  EXPECT_FALSE(IsSpecOf(*wished, other));
  other = spec;
  other.requests.push_back(other.requests[0]);
  EXPECT_FALSE(IsSpecOf(*wished, other));
  other = spec;
  other.requests[0].alternatives[0].selectors = {"true"};
  EXPECT_FALSE(IsSpecOf(*wished, other));
}

TEST_F(ExtendedClaimTest, ANeuronResourceThatNobodyOffersIsNamed) {
  const PodFact pod = Pod(R"({"containers": [{"name": "a", "resources": {"limits": {
      "vpc.amazonaws.com/efa": "1", "aws.amazon.com/neuroncore": "1"}}}]})");
  EXPECT_EQ(UnknownResource(pod, facts_), "aws.amazon.com/neuroncore");
  const kube::Amounts plugin = {{"aws.amazon.com/neuroncore", 32}, {"cpu", 8}};
  EXPECT_TRUE(facts_.offered.OnNode(nullptr, &plugin));
  EXPECT_FALSE(facts_.offered.contains("cpu"));
  EXPECT_EQ(UnknownResource(pod, facts_), "") << "a node has a device plugin";
  EXPECT_FALSE(facts_.offered.OnNode(nullptr, &plugin)) << "so has another node";
  EXPECT_FALSE(facts_.offered.OnNode(&plugin, nullptr));
  EXPECT_TRUE(facts_.offered.OnNode(&plugin, nullptr));
  EXPECT_EQ(UnknownResource(pod, facts_), "aws.amazon.com/neuroncore");
  AddClass("cores", "aws.amazon.com/neuroncore", 1);
  EXPECT_EQ(UnknownResource(pod, facts_), "");
}

TEST_F(ExtendedClaimTest, APodGetsClaimedResourcesByItsClaimAndTheOthersOfItsNode) {
  PodFact pod = Pod(R"({"containers": [{"name": "a", "resources": {"limits": {
      "vpc.amazonaws.com/efa": "1", "aws.amazon.com/neuron": "2"}}}]})");
  const auto wished = ExtendedClaimOf(pod, facts_);
  ClaimFact claim;
  claim.key = {"ml", wished->status.claim};
  kube::ResourceClaimSpec spec;
  spec.requests.resize(1);
  spec.requests[0].name = wished->requests[0].name;
  spec.requests[0].alternatives.resize(1);
  spec.requests[0].alternatives[0].device_class = "chips";
  spec.requests[0].alternatives[0].count = 2;
  claim.spec = std::make_shared<const ClaimSpec>(spec);
  const auto assess = [&] {
    facts_.pods.Put(std::make_shared<const PodFact>(pod));
    return GangMembership().Assess({{"ml", "p"}, true}, facts_, [](const ClaimKey&) { return ""; });
  };
  Readiness waits = assess();
  EXPECT_EQ(waits.reason, GangReason::kWaitingForClaims);
  EXPECT_EQ(waits.unclaimed, (PodKey{"ml", "p"}));
  pod.extended_claim = wished->status;
  pod.claims = {{.entry = "", .claim = wished->status.claim, .none = false}};
  EXPECT_EQ(assess().reason, GangReason::kWaitingForClaims);
  facts_.claims.Put(std::make_shared<const ClaimFact>(claim));
  const Readiness ready = assess();
  ASSERT_NE(ready.spec, nullptr) << ready.message;
  ASSERT_EQ(ready.spec->members.at(0).claims.size(), 1U);
  const kube::PodNeeds& needs = *ready.spec->members[0].needs;
  EXPECT_THAT(needs.amounts, ElementsAre(Pair("pods", 1), Pair("vpc.amazonaws.com/efa", 1)));
  EXPECT_THAT(needs.claimed, ElementsAre(kNeuronResource));
  AddClass("others", kNeuronResource, 9);
  EXPECT_EQ(assess().reason, GangReason::kInvalid);
  EXPECT_THAT(assess().message, HasSubstr("delete the claim to have it made anew"));
}

}  // namespace
}  // namespace tahoma::controller
