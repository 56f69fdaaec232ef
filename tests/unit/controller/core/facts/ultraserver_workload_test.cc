// AWS's NeuronUltraServerWorkload: the Gang that it asks for, its pods, its status.

#include "controller/core/facts/ultraserver_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/read_facts.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Object(const Json& changes = Json::object()) {
  Json object = ParseJson(R"({"apiVersion": "neuron.aws.com/v1beta1",
      "kind": "NeuronUltraServerWorkload",
      "metadata": {"name": "train", "namespace": "ml", "uid": "u-workload", "generation": 3},
      "spec": {"instanceType": "trn2u.48xlarge", "topologySize": 4, "serverCount": 2}})");
  for (const auto& [name, value] : changes.items()) object["spec"][name] = value;
  return object;
}

std::shared_ptr<const WorkloadFact> ParsedWorkload(const Json& changes = Json::object()) {
  const auto workload = ParseWorkload(Object(changes));
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

TEST(UltraServerWorkloadTest, AWorkloadAsksForAGangWithASliceForEachUltraServer) {
  const auto workload = ParsedWorkload();
  EXPECT_EQ(workload->fault, "");
  EXPECT_EQ(workload->claim_template, "train");
  EXPECT_EQ(workload->lnc, 2);
  const GangWish& wish = *workload->wish;
  EXPECT_EQ(wish.gang, "train");
  EXPECT_EQ(wish.request.members, 8);
  EXPECT_EQ(wish.request.shape, "4x4x4");
  EXPECT_EQ(wish.request.slices, 2);
  EXPECT_THAT(FaultsOf(wish.request), IsEmpty());
  EXPECT_EQ(wish.owner->kind, "NeuronUltraServerWorkload");
  EXPECT_EQ(wish.owner->uid, "u-workload");
  const auto pairs = ParsedWorkload({{"topologySize", 2},
                                     {"serverCount", 1},
                                     {"config", {{"logicalNeuronCore", 1}}},
                                     {"resourceClaimTemplate", {{"name", "pairs"}}}});
  EXPECT_EQ(pairs->wish->request.shape, "4x4x2");
  EXPECT_EQ(pairs->wish->request.members, 2);
  EXPECT_EQ(pairs->lnc, 1);
  EXPECT_EQ(pairs->claim_template, "pairs");
}

TEST(UltraServerWorkloadTest, AFailureStrategyIsAFailurePolicy) {
  const auto request = [](const char* strategy) {
    const Json policy = {{"failureStrategy", strategy}};
    return ParsedWorkload({{"allocationPolicy", policy}})->wish->request;
  };
  EXPECT_EQ(request("RestartAll").failure_policy, "RestartAll");
  EXPECT_EQ(request("MigrateAffected").failure_policy, "Replace");
  EXPECT_EQ(request("ReplaceAffected").failure_policy, "Replace");
  EXPECT_EQ(request("MigrateAffected").start_within, "10m");
  // Nothing is ended because a pod is lost, and the lost pod's place is kept.
  EXPECT_EQ(request("NoOp").failure_policy, "Replace");
  EXPECT_EQ(request("NoOp").start_within, "8760h");
  EXPECT_EQ(ParsedWorkload()->wish->request.start_within, "8760h");
}

TEST(UltraServerWorkloadTest, AnnotationsOfTheWorkloadAreTheGangsTerms) {
  Json object = Object();
  object["metadata"]["annotations"] = {{"tahoma.dev/max-runtime", "2h"},
                                       {"tahoma.dev/capacity-block", "june"}};
  EXPECT_EQ((*ParseWorkload(object))->wish->terms.max_runtime, "2h");
  EXPECT_EQ((*ParseWorkload(object))->wish->terms.block, "june");
  object["metadata"]["annotations"]["tahoma.dev/max-runtime"] = "soon";
  EXPECT_THAT((*ParseWorkload(object))->fault, HasSubstr("max-runtime soon"));
}

TEST(UltraServerWorkloadTest, ASpecThatCannotBeUsedSaysWhy) {
  const auto fault = [](const Json& changes) { return ParsedWorkload(changes)->fault; };
  EXPECT_EQ(
      fault({{"instanceType", "trn2.48xlarge"}}),
      "instanceType trn2.48xlarge: it has no UltraServer that is a torus; trn2u.48xlarge has");
  EXPECT_THAT(fault({{"instanceType", "trn3-gen2"}}), HasSubstr("no UltraServer that is a torus"));
  EXPECT_EQ(fault({{"topologySize", 3}}), "topologySize 3: must be 1, 2 or 4");
  EXPECT_EQ(fault({{"serverCount", 0}}), "serverCount 0: must be 1 to 1024");
  EXPECT_THAT(fault({{"serverCount", std::int64_t{1} << 62}}), HasSubstr("must be 1 to 1024"));
  EXPECT_EQ(fault({{"config", {{"logicalNeuronCore", 4}}}}), "logicalNeuronCore 4: must be 1 or 2");
  EXPECT_THAT(fault({{"allocationPolicy", {{"failureStrategy", "Pray"}}}}),
              HasSubstr("failureStrategy Pray: must be NoOp"));
  EXPECT_THAT(fault({{"resourceClaimTemplate", {{"name", "No_Name"}}}}),
              HasSubstr("resourceClaimTemplate.name No_Name: "));
  EXPECT_FALSE(ParseWorkload(Object({{"topologySize", "four"}})).ok());
}

Json Template(const std::string& owner_version, const std::string& owner_kind) {
  return {{"metadata",
           {{"name", "train"},
            {"namespace", "ml"},
            {"uid", "t"},
            {"ownerReferences", Json::array({{{"apiVersion", owner_version},
                                              {"kind", owner_kind},
                                              {"name", "train"},
                                              {"uid", "u-workload"},
                                              {"controller", true}}})}}}};
}

const Json kTemplate = Template("neuron.aws.com/v1beta1", "NeuronUltraServerWorkload");

TEST(UltraServerWorkloadTest, ATemplateIsOfTheWorkloadThatControlsIt) {
  EXPECT_EQ((*ParseClaimTemplate(kTemplate))->workload, "train");
  EXPECT_EQ((*ParseClaimTemplate(Template("batch/v1", "Job")))->workload, "");
  EXPECT_EQ((*ParseClaimTemplate(Template("other.com/v1", "NeuronUltraServerWorkload")))->workload,
            "");
}

std::shared_ptr<const PodFact> ParsedPod(const Json& metadata = Json::object()) {
  Json pod = ParseJson(R"({"spec": {"resourceClaims": [
      {"name": "a", "resourceClaimName": "mine"},
      {"name": "b", "resourceClaimTemplateName": "train"}]}})");
  pod["metadata"] = metadata;
  pod["metadata"]["name"] = "p";
  pod["metadata"]["namespace"] = "ml";
  return *ParsePod(pod);
}

TEST(UltraServerWorkloadTest, APodIsOfTheGangOfItsTemplatesWorkloadWhileTheTemplateIsThere) {
  Facts facts;
  const auto pod = ParsedPod();
  EXPECT_THAT(pod->templates, ElementsAre("train"));
  EXPECT_EQ(JoinWorkload(pod, facts), pod);
  facts.claim_templates.Put(*ParseClaimTemplate(kTemplate));
  const auto joined = JoinWorkload(pod, facts);
  EXPECT_EQ(joined->gang, "train");
  EXPECT_EQ(joined->wish->group.api, GroupApi::kNeuron);
  EXPECT_EQ(JoinWorkload(joined, facts), joined);
  facts.claim_templates.Remove({"ml", "train"}, "");
  EXPECT_EQ(JoinWorkload(joined, facts)->gang, "");
  EXPECT_EQ(JoinWorkload(joined, facts)->wish, nullptr);
  facts.claim_templates.Put(*ParseClaimTemplate(Template("batch/v1", "Job")));
  EXPECT_EQ(JoinWorkload(pod, facts)->gang, "");
}

TEST(UltraServerWorkloadTest, OtherMarksOfAPodCountBeforeItsTemplate) {
  Facts facts;
  facts.claim_templates.Put(*ParseClaimTemplate(kTemplate));
  const auto labelled = ParsedPod({{"labels", {{"tahoma.dev/gang", "mine"}}}});
  EXPECT_EQ(JoinWorkload(labelled, facts)->gang, "mine");
  const auto grouped = ParsedPod({{"labels", {{"scheduling.x-k8s.io/pod-group", "other"}}}});
  EXPECT_EQ(JoinWorkload(grouped, facts)->gang, "other");
}

constexpr WallTime kNow{std::chrono::seconds(1'000)};

WorkloadStatus StatusOfGang(GangPhase phase, GangReason reason, bool has_place) {
  WorkloadGang gang{
      .phase = phase, .reason = reason, .message = "because", .decision = nullptr, .refusal = ""};
  if (has_place) {
    auto decision = std::make_shared<GangDecision>();
    decision->placed = WallTime(std::chrono::seconds(7));
    decision->slices = {{.domain = "us-1", .shape = "", .origin = "", .nodes = {}},
                        {.domain = "us-0", .shape = "", .origin = "", .nodes = {}},
                        {.domain = "us-1", .shape = "", .origin = "", .nodes = {}}};
    gang.decision = std::move(decision);
  }
  return StatusOf(*ParsedWorkload(), Facts(), gang, kNow);
}

std::string Conditions(const WorkloadStatus& status) {
  std::string text;
  for (const WorkloadCondition& condition : status.conditions) {
    if (condition.holds) text += std::string(condition.type) + " ";
  }
  return text;
}

TEST(UltraServerWorkloadTest, TheStateFollowsTheGang) {
  const auto expect = [](GangPhase phase, GangReason reason, bool has_place, WorkloadState state,
                         const char* conditions) {
    const WorkloadStatus status = StatusOfGang(phase, reason, has_place);
    EXPECT_EQ(ToString(status.state), ToString(state)) << ToString(phase) << ToString(reason);
    EXPECT_EQ(Conditions(status), conditions) << ToString(phase) << ToString(reason);
    EXPECT_EQ(status.allocated_at.has_value(), state == WorkloadState::kAllocated);
    EXPECT_EQ(status.ultraservers.empty(), state != WorkloadState::kAllocated);
  };
  using enum WorkloadState;
  expect(GangPhase::kPending, GangReason::kNone, false, kPending, "");
  expect(GangPhase::kPending, GangReason::kWaitingForPods, false, kPending, "");
  expect(GangPhase::kPending, GangReason::kNeverFits, false, kPending, "");
  expect(GangPhase::kPending, GangReason::kInvalid, false, kFailed, "Degraded ");
  expect(GangPhase::kPlaced, GangReason::kCommitting, true, kAllocating, "Progressing ");
  expect(GangPhase::kPlaced, GangReason::kStarting, true, kAllocated, "Progressing ");
  expect(GangPhase::kRunning, GangReason::kBound, true, kAllocated, "Ready ");
  expect(GangPhase::kDegraded, GangReason::kMemberLost, true, kAllocated, "Degraded ");
  expect(GangPhase::kPending, GangReason::kMemberLost, true, kDeallocating, "Progressing ");
  expect(GangPhase::kFinished, GangReason::kPodsEnded, true, kDeallocating, "Progressing ");
  expect(GangPhase::kFinished, GangReason::kPodsEnded, false, kPending, "");
  expect(GangPhase::kFailed, GangReason::kMemberLost, false, kFailed, "Degraded ");
}

TEST(UltraServerWorkloadTest, AnUltraServerIsNamedOnceWhateverSlicesItHas) {
  const WorkloadStatus status = StatusOfGang(GangPhase::kRunning, GangReason::kBound, true);
  EXPECT_THAT(status.ultraservers, ElementsAre("us-1", "us-0"));
  EXPECT_EQ(status.allocated_at, WallTime(std::chrono::seconds(7)));
  EXPECT_EQ(status.observed_generation, 3);
}

TEST(UltraServerWorkloadTest, AConditionKeepsTheTimeThatTheObjectShows) {
  Json object = Object();
  object["status"] = ParseJson(R"({"conditions": [
      {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z"},
      {"type": "Degraded", "status": "True", "lastTransitionTime": "1970-01-01T00:02:00Z"},
      {"type": "Progressing", "status": "False", "lastTransitionTime": "yesterday"}]})");
  const WorkloadGang gang{.phase = GangPhase::kRunning,
                          .reason = GangReason::kBound,
                          .message = "",
                          .decision = nullptr,
                          .refusal = ""};
  const WorkloadStatus status = StatusOf(**ParseWorkload(object), Facts(), gang, kNow);
  EXPECT_EQ(status.conditions.at(0).since, WallTime(std::chrono::seconds(60)));
  EXPECT_EQ(status.conditions.at(1).since, kNow);
  EXPECT_EQ(status.conditions.at(2).since, kNow);
}

TEST(UltraServerWorkloadTest, WhatIsSomebodyElsesIsSaid) {
  Facts facts;
  const auto workload = ParsedWorkload();
  EXPECT_EQ(TroubleOf(*workload, facts), "");
  facts.claim_templates.Put(*ParseClaimTemplate(kTemplate));
  EXPECT_EQ(TroubleOf(*workload, facts), "");
  facts.claim_templates.Put(*ParseClaimTemplate(Template("batch/v1", "Job")));
  EXPECT_THAT(TroubleOf(*workload, facts), HasSubstr("ResourceClaimTemplate train was made by "
                                                     "somebody else"));
  facts.claim_templates.Remove({"ml", "train"}, "");
  auto gang = std::make_shared<GangFact>();
  gang->key = {"ml", "train"};
  facts.gangs.Put(gang);
  EXPECT_THAT(TroubleOf(*workload, facts), HasSubstr("Gang train was made by somebody else"));
  const WorkloadStatus status = StatusOf(*workload, facts, {}, kNow);
  EXPECT_EQ(status.state, WorkloadState::kFailed);
  EXPECT_EQ(Conditions(status), "Degraded ");
  EXPECT_EQ(status.conditions.at(0).reason, "Invalid");
}

}  // namespace
}  // namespace tahoma::controller
