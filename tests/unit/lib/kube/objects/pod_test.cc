#include "lib/kube/objects/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::kube {
namespace {

using json = Json;
using ::testing::ElementsAre;

json PodObject() {
  return ParseJson(R"({"metadata": {"name": "p", "namespace": "ns", "uid": "u"},
    "spec": {"nodeName": "n", "priority": -7, "schedulingGates": [{"name": "g"}],
      "nodeSelector": {"zone": "a"},
      "tolerations": [{"key": "k", "operator": "Exists", "effect": "PreferNoSchedule"}],
      "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [
          {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["6"]},
                                {"key": "rack", "operator": "DoesNotExist"}],
           "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["m"]}]},
          {}]}}},
      "resourceClaims": [{"name": "own", "resourceClaimName": "c1"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "none", "resourceClaimTemplateName": "t"},
        {"name": "later", "resourceClaimTemplateName": "t"}],
      "volumes": [{"name": "scratch", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
    "status": {"phase": "Pending",
      "conditions": [{"type": "Ready", "status": "False", "message": "other"},
                     {"type": "PodScheduled", "status": "False", "message": "no room"}],
      "resourceClaimStatuses": [{"name": "own", "resourceClaimName": "another"},
                                {"name": "made", "resourceClaimName": "p-made-x"},
                                {"name": "none"}]}})");
}

std::string WhyNot(const json& object) {
  Reading reading(object);
  ParsePod(reading.root());
  return std::string(Message(reading.StatusOf("pod")));
}

TEST(PodTest, AnUnknownOperatorIsAnErrorAndNotIn) {
  json object = PodObject();
  json& term = object["spec"]["affinity"]["nodeAffinity"]
                     ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0];
  term["matchExpressions"][1]["operator"] = "Near";
  EXPECT_EQ(WhyNot(object).substr(WhyNot(object).find("nodeSelectorTerms")),
            "nodeSelectorTerms[0].matchExpressions[1].operator: must be In, NotIn, Exists, "
            "DoesNotExist, Gt or Lt");
  term["matchExpressions"][1].erase("operator");
  EXPECT_NE(WhyNot(object).find("matchExpressions[1].operator"), std::string::npos);
}

TEST(PodTest, ReadsWhereItMayRun) {
  const json object = PodObject();
  Reading reading(object);
  const Pod pod = ParsePod(reading.root());
  ASSERT_TRUE(reading.status().ok()) << reading.status();
  EXPECT_EQ(pod.metadata.name, "p");
  EXPECT_EQ(pod.node, "n");
  EXPECT_EQ(pod.phase, "Pending");
  EXPECT_EQ(pod.priority, -7);
  EXPECT_TRUE(pod.gated);
  EXPECT_EQ(pod.unschedulable_message, "no room");
  const NodeSelection& selection = pod.selection;
  ASSERT_EQ(selection.all.size(), 1U);
  EXPECT_EQ(selection.all[0].key, "zone");
  EXPECT_EQ(selection.all[0].op, NodeOperator::kIn);
  EXPECT_THAT(selection.all[0].values, ElementsAre("a"));
  ASSERT_EQ(selection.any_term.size(), 2U);
  ASSERT_EQ(selection.any_term[0].size(), 3U);
  EXPECT_EQ(selection.any_term[0][0].op, NodeOperator::kGt);
  EXPECT_EQ(selection.any_term[0][1].op, NodeOperator::kDoesNotExist);
  EXPECT_FALSE(selection.any_term[0][1].field);
  EXPECT_EQ(selection.any_term[0][2].op, NodeOperator::kNotIn);
  EXPECT_TRUE(selection.any_term[0][2].field);
  EXPECT_TRUE(selection.any_term[1].empty());
  EXPECT_EQ(selection.tolerations.at(0).effect, TaintEffect::kNone);
}

TEST(PodTest, AnEphemeralVolumesClaimHasTheNamesOfPodAndVolume) {
  const json object = PodObject();
  Reading reading(object);
  const Pod pod = ParsePod(reading.root());
  ASSERT_EQ(pod.volumes.size(), 2U);
  EXPECT_EQ(pod.volumes[0].claim, "shared");
  EXPECT_FALSE(pod.volumes[0].ephemeral);
  EXPECT_EQ(pod.volumes[1].claim, "p-tmp");
  EXPECT_TRUE(pod.volumes[1].ephemeral);
}

TEST(PodTest, ClaimsComeFromTheSpecOrFromTheStatus) {
  const json object = PodObject();
  Reading reading(object);
  const std::vector<PodClaim> claims = ParsePodClaims(reading.root());
  std::vector<std::string> names;
  std::vector<bool> none;
  for (const PodClaim& claim : claims) {
    names.push_back(claim.claim);
    none.push_back(claim.none);
  }
  EXPECT_THAT(names, ElementsAre("c1", "p-made-x", "", ""));
  EXPECT_THAT(none, ElementsAre(false, false, true, false));
}

TEST(PodTest, WhatIsLeftOutIsEmpty) {
  const json object = {{"metadata", {{"name", "p"}}}};
  Reading reading(object);
  const Pod pod = ParsePod(reading.root());
  ASSERT_TRUE(reading.status().ok()) << reading.status();
  EXPECT_EQ(pod.priority, 0);
  EXPECT_FALSE(pod.gated);
  EXPECT_TRUE(pod.claims.empty() && pod.selection.all.empty() && pod.selection.any_term.empty());
}

TEST(PodTest, ResourcesOfADomainOrOfAClassAreAskedForByContainer) {
  json object = {{"metadata", {{"name", "p"}}}};
  object["spec"]["containers"] = ParseJson(R"([
      {"name": "a", "resources": {"limits": {"aws.amazon.com/neuron": "4",
                                             "pod.kubernetes.io/x": "1"},
                                  "requests": {"cpu": "1"}}},
      {"name": "b", "resources": {"limits": {"deviceclass.resource.kubernetes.io/k": "1",
                                             "aws.amazon.com/none": "0"}}}, {"name": "c"}])");
  object["spec"]["initContainers"] = ParseJson(R"([
      {"name": "i", "resources": {"limits": {"vpc.amazonaws.com/efa": "1"}}},
      {"name": "s", "restartPolicy": "Always",
       "resources": {"limits": {"vpc.amazonaws.com/efa": "2"}}}])");
  Reading reading(object);
  const Pod pod = ParsePod(reading.root());
  ASSERT_TRUE(reading.status().ok()) << reading.status();
  const auto ask = [](const char* container, std::uint32_t index, bool ends_first,
                      const char* resource, std::uint32_t resource_index, std::int64_t count) {
    return ExtendedAsk{.container = container,
                       .container_index = index,
                       .ends_first = ends_first,
                       .resource = resource,
                       .resource_index = resource_index,
                       .count = count};
  };
  EXPECT_EQ(
      pod.extended_asks,
      (std::vector<ExtendedAsk>{ask("i", 0, true, "vpc.amazonaws.com/efa", 0, 1),
                                ask("s", 1, false, "vpc.amazonaws.com/efa", 0, 2),
                                ask("a", 2, false, "aws.amazon.com/neuron", 0, 4),
                                ask("b", 3, false, "deviceclass.resource.kubernetes.io/k", 1, 1)}));
}

TEST(PodTest, TheClaimOfExtendedResourcesIsTheLastOfThePodsClaims) {
  const json object = ParseJson(R"({"metadata": {"name": "p"},
      "spec": {"resourceClaims": [{"name": "own", "resourceClaimName": "c"}]},
      "status": {"extendedResourceClaimStatus": {"resourceClaimName": "p-extended",
          "requestMappings": [{"containerName": "a", "resourceName": "x.com/y",
                               "requestName": "container-0-request-0"}]}}})");
  Reading reading(object);
  const Pod pod = ParsePod(reading.root());
  ASSERT_TRUE(reading.status().ok()) << reading.status();
  ASSERT_EQ(pod.claims.size(), 2U);
  EXPECT_EQ(pod.claims[1].entry, "");
  EXPECT_EQ(pod.claims[1].claim, "p-extended");
  EXPECT_EQ(pod.extended_claim,
            (ExtendedClaimStatus{.claim = "p-extended",
                                 .mappings = {{.container = "a",
                                               .resource = "x.com/y",
                                               .request = "container-0-request-0"}}}));
}

Pod Parsed(const char* text) {
  const json object = ParseJson(text);
  Reading reading(object);
  return ParsePod(reading.root());
}

TEST(PodTest, APodIsReadyAsItsConditionSaysElseWhenItRuns) {
  EXPECT_TRUE(Parsed(R"({"metadata": {"name": "p"}, "status": {"phase": "Running"}})").ready);
  EXPECT_FALSE(Parsed(R"({"metadata": {"name": "p"}, "status": {"phase": "Pending"}})").ready);
  EXPECT_FALSE(Parsed(R"({"metadata": {"name": "p"}, "status": {"phase": "Running",
      "conditions": [{"type": "Ready", "status": "False"}]}})")
                   .ready);
}

TEST(PodTest, AContainerThatWaitsOrHasFailedIsNamed) {
  EXPECT_EQ(Parsed(R"({"metadata": {"name": "p"}, "status": {"phase": "Pending",
      "containerStatuses": [{"name": "a", "state": {"running": {}}},
        {"name": "b", "state": {"waiting": {"reason": "CreateContainerConfigError",
                                            "message": "configmap \"c\" not\nfound"}}}]}})")
                .trouble,
            "container b: CreateContainerConfigError: configmap \"c\" not found");
  EXPECT_EQ(Parsed(R"({"metadata": {"name": "p"}, "status": {"phase": "Failed",
      "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 3}}}]}})")
                .trouble,
            "container a: exit code 3");
  EXPECT_EQ(Parsed(R"({"metadata": {"name": "p"}, "status": {"phase": "Failed",
      "reason": "Evicted", "message": "The node was low on memory"}})")
                .trouble,
            "Evicted: The node was low on memory");
}

TEST(PodTest, ALongMessageIsCutBetweenCharacters) {
  std::string message;
  for (int i = 0; i < 100; ++i) message += "Ω字";  // two bytes, three bytes
  for (const char* name : {"a", "ab", "abc", "abcd"}) {
    const std::string trouble =
        Parsed((R"({"metadata": {"name": "p"}, "status": {"containerStatuses": [{"name": ")" +
                std::string(name) + R"(", "state": {"waiting": {"message": ")" + message +
                R"("}}}]}})")
                   .c_str())
            .trouble;
    EXPECT_TRUE(IsUtf8(trouble)) << trouble;
    EXPECT_THAT(trouble.size(), testing::AllOf(testing::Le(300U), testing::Gt(295U)));
  }
}

TEST(PodTest, APodThatAControllerOwnsIsKnown) {
  EXPECT_TRUE(Parsed(R"({"metadata": {"name": "p", "ownerReferences": [{"kind": "Job",
      "controller": true}]}})")
                  .controlled);
  EXPECT_FALSE(
      Parsed(R"({"metadata": {"name": "p", "ownerReferences": [{"kind": "X"}]}})").controlled);
}

TEST(PodTest, AnUnreadableFieldIsNamedWithItsPath) {
  json object = PodObject();
  object["spec"]["nodeName"] = 7;
  EXPECT_EQ(WhyNot(object), "pod p: spec.nodeName: is a number, must be a string");
  object = PodObject();
  object["spec"]["nodeSelector"]["zone"] = true;
  EXPECT_EQ(WhyNot(object), "pod p: spec.nodeSelector.zone: is a boolean, must be a string");
  object = PodObject();
  object["status"]["resourceClaimStatuses"] = json::object();
  EXPECT_EQ(WhyNot(object), "pod p: status.resourceClaimStatuses: is an object, must be a list");
  object = PodObject();
  object["spec"]["priority"] = std::int64_t{1} << 40;
  EXPECT_EQ(WhyNot(object),
            "pod p: spec.priority: is beyond 32 bits, must be an integer of 32 bits");
}

}  // namespace
}  // namespace tahoma::kube
