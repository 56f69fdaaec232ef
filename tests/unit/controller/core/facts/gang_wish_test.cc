#include "controller/core/facts/gang_wish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "controller/core/core.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/read_facts.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

Json Pod(const std::string& name, Json labels, Json annotations) {
  return {{"metadata",
           {{"name", name},
            {"namespace", "ml"},
            {"uid", "uid-" + name},
            {"resourceVersion", "1"},
            {"creationTimestamp", "2026-11-28T10:00:00Z"},
            {"labels", std::move(labels)},
            {"annotations", std::move(annotations)},
            {"ownerReferences",
             {{{"apiVersion", "batch/v1"},
               {"kind", "Job"},
               {"name", "train"},
               {"uid", "uid-train"},
               {"controller", true}}}}}},
          {"spec", {{"schedulerName", "tahoma"}}}};
}

const Json kOfJob = {{"batch.kubernetes.io/job-name", "train"}};
const Json kFour = {{"tahoma.dev/gang-members", "4"}, {"tahoma.dev/gang-shape", "4x4x4"}};

TEST(GangWishTest, PodsOfAJobWishTheGangOfTheirTemplate) {
  const auto wish = ReadGangWish(Pod("train-0", kOfJob, kFour));
  ASSERT_TRUE(wish.has_value());
  EXPECT_EQ(wish->fault, "");
  EXPECT_EQ(wish->gang, "train");
  EXPECT_EQ(wish->ToString(), "4 members, shape 4x4x4");
  ASSERT_TRUE(wish->owner.has_value());
  EXPECT_EQ(wish->owner->uid, "uid-train");
}

TEST(GangWishTest, WhatAnnotationsSayOfAPodAloneCountsForTheGangThatIsMade) {
  Json annotations = kFour;
  annotations["tahoma.dev/gang-failure-policy"] = "Replace";
  annotations["tahoma.dev/gang-start-within"] = "5m";
  annotations["tahoma.dev/max-runtime"] = "36h";
  annotations["tahoma.dev/capacity-block"] = "week";
  annotations["tahoma.dev/preemptible"] = "true";
  annotations["tahoma.dev/checkpointable"] = "false";
  const auto wish = ReadGangWish(Pod("train-0", kOfJob, annotations));
  EXPECT_EQ(wish->fault, "");
  EXPECT_EQ(wish->ToString(),
            "4 members, shape 4x4x4, failurePolicy Replace, startWithin 5m, maxRuntime 36h, "
            "capacityBlock week, preemptible, not checkpointable");
  for (const auto& [annotation, fault] : std::vector<std::pair<std::string, std::string>>{
           {"tahoma.dev/gang-failure-policy", "failurePolicy soon: must be RestartAll, Replace"},
           {"tahoma.dev/gang-start-within", "startWithin soon: must be numbers"},
           {"tahoma.dev/max-runtime", "annotation tahoma.dev/max-runtime soon: must be numbers"},
           {"tahoma.dev/preemptible", "annotation tahoma.dev/preemptible is soon, must be true or"},
       }) {
    Json wrong = kFour;
    wrong[annotation] = "soon";
    EXPECT_THAT(ReadGangWish(Pod("train-0", kOfJob, wrong))->fault, HasSubstr(fault));
  }
}

TEST(GangWishTest, AGangThatMayHaveFewerPodsSaysSo) {
  Json annotations = {{"tahoma.dev/gang-members", "4"}, {"tahoma.dev/gang-min-members", "2"}};
  EXPECT_EQ(ReadGangWish(Pod("train-0", kOfJob, annotations))->ToString(),
            "4 members, minMembers 2");
  annotations["tahoma.dev/gang-min-members"] = "5";
  EXPECT_THAT(ReadGangWish(Pod("train-0", kOfJob, annotations))->fault,
              HasSubstr("minMembers 5: must be 1 to spec.members (4)"));
}

TEST(GangWishTest, APodWithoutAnnotationsWishesNothing) {
  EXPECT_FALSE(ReadGangWish(Pod("train-0", kOfJob, Json::object())).has_value());
}

TEST(GangWishTest, AGroupOfALeaderWorkerSetHasAGangOfItsOwnWithTheSizeOfTheGroup) {
  const Json labels = {{"leaderworkerset.sigs.k8s.io/name", "serve"},
                       {"leaderworkerset.sigs.k8s.io/group-index", "3"}};
  const auto wish = ReadGangWish(
      Pod("serve-3-1", labels,
          {{"leaderworkerset.sigs.k8s.io/size", "2"}, {"tahoma.dev/gang-shape", "4x4x2"}}));
  ASSERT_TRUE(wish.has_value());
  EXPECT_EQ(wish->fault, "");
  EXPECT_EQ(wish->gang, "serve-3");
  EXPECT_EQ(wish->request.members, 2);
}

TEST(GangWishTest, AJobSetIsOneGangHoweverManyJobsItHas) {
  const auto wish = ReadGangWish(Pod("set-workers-0-0",
                                     {{"batch.kubernetes.io/job-name", "set-workers-0"},
                                      {"jobset.sigs.k8s.io/jobset-name", "set"}},
                                     kFour));
  EXPECT_EQ(wish->gang, "set");
}

// A JobSet that restarts deletes all of its Jobs; the Gang, and what is kept for it, must stay.
TEST(GangWishTest, TheGangOfAJobSetGoesWithTheJobSetAndNotWithOneOfItsJobs) {
  const auto wish = ReadGangWish(Pod("set-workers-0-0",
                                     {{"batch.kubernetes.io/job-name", "set-workers-0"},
                                      {"jobset.sigs.k8s.io/jobset-name", "set"},
                                      {"jobset.sigs.k8s.io/jobset-uid", "uid-set"}},
                                     kFour));
  ASSERT_TRUE(wish->owner.has_value());
  EXPECT_EQ(*wish->owner, (kube::OwnerReference{.api_version = "jobset.x-k8s.io/v1alpha2",
                                                .kind = "JobSet",
                                                .name = "set",
                                                .uid = "uid-set",
                                                .controller = true}));
}

TEST(GangWishTest, AnAnnotationMayNameTheLabelOfTheGroup) {
  Json annotations = kFour;
  annotations["tahoma.dev/gang-group-label"] = "team/run";
  EXPECT_EQ(ReadGangWish(Pod("p", {{"team/run", "seven"}}, annotations))->gang, "seven");
  EXPECT_THAT(ReadGangWish(Pod("p", kOfJob, annotations))->fault,
              HasSubstr("names label team/run, which the pod does not have"));
}

TEST(GangWishTest, AWishThatCannotBeUsedSaysWhy) {
  const auto fault = [](const Json& labels, const Json& annotations) {
    return ReadGangWish(Pod("p", labels, annotations))->fault;
  };
  EXPECT_THAT(fault(Json::object(), kFour), HasSubstr("no label tells the pod's group"));
  EXPECT_THAT(fault(kOfJob, {{"tahoma.dev/gang-shape", "4x4x4"}}),
              HasSubstr("annotation tahoma.dev/gang-members is missing"));
  EXPECT_THAT(fault(kOfJob, {{"tahoma.dev/gang-members", "many"}}),
              HasSubstr("tahoma.dev/gang-members is many, must be a number"));
  EXPECT_THAT(fault(kOfJob, {{"tahoma.dev/gang-members", "4"}, {"tahoma.dev/gang-shape", "3x4x4"}}),
              HasSubstr("each side must be 1, 2 or 4"));
  EXPECT_THAT(fault({{"batch.kubernetes.io/job-name", "Train_1"}}, kFour),
              HasSubstr("no Gang can be named after its group Train_1: "));
  EXPECT_THAT(
      fault({{"tahoma.dev/gang", "mine"}, {"batch.kubernetes.io/job-name", "train"}}, kFour),
      HasSubstr("give it one of both"));
}

// A pod without a gang may have the name of the Gang that others wish.
TEST(GangWishInCoreTest, AWishedGangIsMadeBesideAPodOfItsName) {
  Core core([](const ClusterState&, const Queue& queue, WallTime, Explaining) {
    return std::vector<Decision>(queue.size());
  });
  Json alone = Pod("train", Json::object(), Json::object());
  alone["spec"]["schedulingGates"] = Json::array({{{"name", "later"}}});
  const StepOutput out =
      core.Step({PodSeen{*ParsePod(Pod("train-0", kOfJob, kFour))}, PodSeen{*ParsePod(alone)},
                 WatchesSynced{}},
                {.wall = WallTime(), .monotonic = MonotonicTime(std::chrono::seconds(1))});
  std::vector<GangKey> made;
  for (const ApiWrite& write : out.writes) {
    if (const auto* creation = std::get_if<GangCreation>(&write.what))
      made.push_back(creation->key);
  }
  EXPECT_THAT(made, ::testing::ElementsAre(GangKey{"ml", "train"}));
}

// Pods of two replicas wait for their Workload, whose news reach both gangs.
TEST(GangWishInCoreTest, AWorkloadThatComesAfterItsPodsMakesAGangOfEachReplica) {
  Core core([](const ClusterState&, const Queue& queue, WallTime, Explaining) {
    return std::vector<Decision>(queue.size());
  });
  int seconds = 0;
  const auto made_by = [&](std::vector<Command> commands) {
    std::vector<GangKey> made;
    const StepOutput out = core.Step(
        std::move(commands),
        {.wall = WallTime(), .monotonic = MonotonicTime(std::chrono::seconds(++seconds))});
    for (const ApiWrite& write : out.writes) {
      const auto* creation = std::get_if<GangCreation>(&write.what);
      if (creation != nullptr) made.push_back(creation->key);
    }
    std::ranges::sort(made);
    return made;
  };
  std::vector<Command> commands;
  for (const char* replica : {"0", "1"}) {
    Json pod = Pod(std::string("p") + replica, Json::object(), Json::object());
    pod["spec"]["workloadRef"] = {
        {"name", "train"}, {"podGroup", "workers"}, {"podGroupReplicaKey", replica}};
    commands.emplace_back(PodSeen{*ParsePod(pod)});
  }
  commands.emplace_back(WatchesSynced{});
  EXPECT_THAT(made_by(std::move(commands)), ::testing::IsEmpty());
  const Json workload = {
      {"apiVersion", "scheduling.k8s.io/v1alpha1"},
      {"metadata", {{"name", "train"}, {"namespace", "ml"}, {"uid", "u"}}},
      {"spec",
       {{"podGroups",
         Json::array({{{"name", "workers"}, {"policy", {{"gang", {{"minCount", 2}}}}}}})}}}};
  EXPECT_THAT(
      made_by({PodGroupSeen{*ParsePodGroup(GroupApi::kWorkload, workload)}}),
      ::testing::ElementsAre(GangKey{"ml", "train-workers-0"}, GangKey{"ml", "train-workers-1"}));
}

// The pods and perhaps a Gang, and what becomes of them.
class WishedGangTest : public ::testing::Test {
 protected:
  void AddPod(const std::string& name, const Json& annotations, const Json& labels = kOfJob) {
    const auto pod = ParsePod(Pod(name, labels, annotations));
    ASSERT_TRUE(pod.ok()) << pod.status();
    facts_.pods.Put(*pod);
    membership_.OnPod(**pod);
  }
  void AddGang(int members, const std::string& shape, bool made) {
    auto gang = std::make_shared<GangFact>();
    gang->key = {"ml", "train"};
    gang->uid = "uid-gang";
    gang->members = members;
    gang->shape = shape;
    gang->made = made;
    facts_.gangs.Put(gang);
  }
  Readiness Assess() {
    return membership_.Assess({{"ml", "train"}, false}, facts_, [](const ClaimKey&) { return ""; });
  }

  Facts facts_;
  GangMembership membership_;
};

TEST_F(WishedGangTest, AGangThatIsMissingIsToBeMade) {
  AddPod("train-0", kFour);
  const Readiness ready = Assess();
  ASSERT_NE(ready.wish, nullptr);
  EXPECT_EQ(ready.wish->request.members, 4);
  EXPECT_EQ(ready.reason, GangReason::kWaitingForGang);
  EXPECT_EQ(ready.message, "its Gang is being made");
}

// The wish of such a pod says nothing: a Gang of one member would be made for the label.
TEST_F(WishedGangTest, APodWithALabelAndAWishMakesNoGangForTheLabel) {
  AddPod("train-0", kFour, {{"tahoma.dev/gang", "train"}});
  const Readiness ready = Assess();
  EXPECT_EQ(ready.wish, nullptr);
  EXPECT_EQ(ready.message, "Gang train does not exist");
}

TEST_F(WishedGangTest, AMadeGangWaitsForItsPodsAsAnyGangDoes) {
  AddPod("train-0", kFour);
  AddGang(4, "4x4x4", true);
  EXPECT_EQ(Assess().wish, nullptr);
  EXPECT_EQ(Assess().message, "1 of 4 pods exist");
}

TEST_F(WishedGangTest, PodsThatWishDifferentGangsGetNone) {
  AddPod("train-0", kFour);
  AddPod("train-1", {{"tahoma.dev/gang-members", "2"}, {"tahoma.dev/gang-shape", "4x4x2"}});
  const Readiness ready = Assess();
  EXPECT_EQ(ready.wish, nullptr);
  EXPECT_EQ(ready.reason, GangReason::kInvalid);
  EXPECT_THAT(ready.message, HasSubstr("4 members, shape 4x4x4, and 2 members, shape 4x4x2"));
}

TEST_F(WishedGangTest, AGangOfThatNameThatSomebodyElseMadeIsNotJoined) {
  AddPod("train-0", kFour);
  AddGang(4, "4x4x4", false);
  EXPECT_EQ(Assess().reason, GangReason::kInvalid);
  EXPECT_THAT(Assess().message, HasSubstr("was made by somebody else"));
}

TEST_F(WishedGangTest, AWishThatContradictsTheMadeGangIsSaid) {
  AddPod("train-0", kFour);
  AddGang(8, "4x4x4", true);
  EXPECT_EQ(Assess().reason, GangReason::kInvalid);
  EXPECT_THAT(Assess().message, HasSubstr("Gang train has 8 members"));
}

}  // namespace
}  // namespace tahoma::controller
