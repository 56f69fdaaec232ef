// When a gang is complete and may be planned, and what is said while it is not.

#include "controller/core/facts/gang_membership.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GangMembershipTest : public ::testing::Test {
 protected:
  GangMembershipTest() {
    ClassFact neuron;
    neuron.name = "neuron.aws.com";
    neuron.selectors = {"true"};
    facts_.classes[neuron.name] = std::make_shared<const ClassFact>(neuron);
  }
  void AddGang(int members, const std::string& error = "") {
    GangFact gang;
    gang.key = {"default", "train"};
    gang.uid = "uid-train";
    gang.members = members;
    gang.shape = "4x4";
    gang.priority = 7;
    gang.spec_error = error;
    facts_.gangs.Put(std::make_shared<const GangFact>(gang));
  }
  PodFact Pod(const std::string& name, const std::string& gang = "train") const {
    PodFact pod;
    pod.key = {"default", name};
    pod.uid = "uid-" + name;
    pod.gang = gang;
    return pod;
  }
  void Add(const PodFact& pod) {
    membership_.OnPod(pod);
    facts_.pods.Put(std::make_shared<const PodFact>(pod));
  }
  ClaimFact Claim(const std::string& name, const std::string& device_class = "neuron.aws.com") {
    ClaimSpec spec;
    DeviceRequest request;
    request.device_class = device_class;
    spec.requests = {{.name = "r", .alternatives = {request}}};
    ClaimFact claim;
    claim.key = {"default", name};
    claim.uid = "uid-" + name;
    claim.spec = std::make_shared<const ClaimSpec>(spec);
    return claim;
  }
  void Add(const ClaimFact& claim) { facts_.claims.Put(std::make_shared<const ClaimFact>(claim)); }

  Readiness Assess() { return membership_.Assess({{"default", "train"}, false}, facts_, busy_); }
  Readiness AssessPod(const std::string& name) {
    return membership_.Assess({{"default", name}, true}, facts_, busy_);
  }
  PodFact PodOfGroup(const std::string& name, const GroupMark& mark) const {
    PodFact pod = Pod(name);
    pod.wish = std::make_shared<const GangWish>(
        GangWish{.gang = "train", .group = mark, .request = {}, .fault = "", .owner = {}});
    return pod;
  }
  void PutGroup(const PodGroupFact& group) {
    facts_.pod_groups.Put(std::make_shared<const PodGroupFact>(group));
  }
  static std::string Why(const Readiness& readiness) {
    if (readiness.spec != nullptr) return "ready";
    return fmt::format("{}: {}", ToString(readiness.reason), readiness.message);
  }

  Facts facts_;
  GangMembership membership_;
  GangMembership::ClaimBusy busy_ = [](const ClaimKey&) { return std::string(); };
};

TEST_F(GangMembershipTest, AGangWithoutAPriorityHasTheHighestOfItsPods) {
  AddGang(2);
  PodFact first = Pod("train-0");
  first.priority = -5;
  Add(first);
  PodFact second = Pod("train-1");
  second.priority = 5000;
  Add(second);
  EXPECT_EQ(Assess().spec->priority, 7);
  GangFact gang = *facts_.gangs.Find(GangKey{"default", "train"});
  gang.priority.reset();
  facts_.gangs.Put(std::make_shared<const GangFact>(gang));
  EXPECT_EQ(Assess().spec->priority, 5000);
}

TEST_F(GangMembershipTest, PodsOfAPodGroupAreAGangOfTheSizeThatTheGroupSays) {
  Add(PodOfGroup("train-0", {.api = GroupApi::kCoscheduling, .group = "train"}));
  EXPECT_EQ(Why(Assess()), "WaitingForGang: PodGroup train (scheduling.x-k8s.io) does not exist");
  PodGroupFact group;
  group.key = {GroupApi::kCoscheduling, {"default", "train"}};
  group.uid = "uid-group";
  group.as_owner.kind = "PodGroup";
  facts_.pod_groups.Put(std::make_shared<const PodGroupFact>(group));
  EXPECT_EQ(Why(Assess()),
            "Invalid: PodGroup train (scheduling.x-k8s.io) asks for no least number of pods, and a "
            "pod of a group is not placed alone");
  group.members = 2;
  facts_.pod_groups.Put(std::make_shared<const PodGroupFact>(group));
  const Readiness waits = Assess();
  ASSERT_NE(waits.wish, nullptr);
  EXPECT_EQ(waits.wish->request.members, 2);
  EXPECT_EQ(waits.wish->owner->kind, "PodGroup");
  group.members = 1'000'000'000;
  facts_.pod_groups.Put(std::make_shared<const PodGroupFact>(group));
  EXPECT_EQ(Assess().reason, GangReason::kInvalid);
  EXPECT_EQ(Assess().wish, nullptr);
}

TEST_F(GangMembershipTest, TheMadeGangHasThePriorityOfTheGroupWhenItsClassIsKnown) {
  Add(PodOfGroup("train-0", {.api = GroupApi::kVolcano, .group = "train"}));
  PodGroupFact group;
  group.key = {GroupApi::kVolcano, {"default", "train"}};
  group.members = 1;
  group.priority_class = "high";
  PutGroup(group);
  EXPECT_EQ(Why(Assess()),
            "WaitingForGang: PodGroup train (scheduling.volcano.sh) names PriorityClass high, "
            "which does not exist");
  facts_.priorities["high"] = 900;
  ASSERT_NE(Assess().wish, nullptr);
  EXPECT_EQ(Assess().wish->priority, 900);
  group.priority_class.clear();
  PutGroup(group);
  EXPECT_EQ(Assess().wish->priority, std::nullopt);
  group.priority = 5;
  PutGroup(group);
  EXPECT_EQ(Assess().wish->priority, 5);
}

TEST_F(GangMembershipTest, PodsOfAGroupWithAFieldThatIsNotFollowedWaitAndAreToldTheField) {
  Add(PodOfGroup("train-0", {.api = GroupApi::kKubernetes, .group = "train"}));
  PodGroupFact group;
  group.key = {GroupApi::kKubernetes, {"default", "train"}};
  group.members = 1;
  group.unfollowed = "spec.resourceClaims";
  PutGroup(group);
  EXPECT_EQ(Why(Assess()),
            "Invalid: PodGroup train (scheduling.k8s.io) has spec.resourceClaims, which Tahoma "
            "does not follow: make a Gang for the group and give its pods the label "
            "tahoma.dev/gang");
}

TEST_F(GangMembershipTest, AGroupOfAWorkloadIsAGangOfTheSizeThatTheWorkloadSays) {
  GroupMark mark{.api = GroupApi::kWorkload, .group = "job", .part = "workers"};
  Add(PodOfGroup("train-0", mark));
  EXPECT_EQ(Why(Assess()), "WaitingForGang: Workload job (scheduling.k8s.io) does not exist");
  PodGroupFact workload;
  workload.key = {GroupApi::kWorkload, {"default", "job"}};
  workload.parts = {{"driver", 1}};
  PutGroup(workload);
  EXPECT_EQ(Why(Assess()), "Invalid: Workload job (scheduling.k8s.io) has no pod group workers");
  workload.parts["workers"] = 3;
  PutGroup(workload);
  ASSERT_NE(Assess().wish, nullptr);
  EXPECT_EQ(Assess().wish->request.members, 3);
  EXPECT_EQ(membership_.PodsJoining(workload.key).size(), 1U);
  // Two groups whose names make the same Gang are told apart.
  mark.group = "other";
  Add(PodOfGroup("train-1", mark));
  EXPECT_THAT(Why(Assess()), HasSubstr("of Workload job"));
  EXPECT_THAT(Why(Assess()), HasSubstr("of Workload other"));
  EXPECT_EQ(Assess().reason, GangReason::kInvalid);
}

TEST_F(GangMembershipTest, AGangIsReadyWhenAllItsPodsExistWhicheverCameFirst) {
  Add(Pod("train-1"));
  EXPECT_EQ(Why(Assess()), "WaitingForGang: Gang train does not exist");
  AddGang(2);
  EXPECT_EQ(Why(Assess()), "WaitingForPods: 1 of 2 pods exist");
  Add(Pod("train-0"));
  const Readiness ready = Assess();
  ASSERT_NE(ready.spec, nullptr) << ready.message;
  EXPECT_EQ(ready.reason, GangReason::kNone);
  EXPECT_EQ(ready.spec->uid, "uid-train");
  EXPECT_EQ(ready.spec->shape_text, "4x4");
  EXPECT_EQ(ready.spec->priority, 7);
  EXPECT_FALSE(ready.spec->single_pod);
  Add(Pod("train-2"));
  EXPECT_EQ(Why(Assess()), "TooManyPods: 3 of 2 pods exist");
}

TEST_F(GangMembershipTest, MembersAreInTheOrderOfTheirNumbers) {
  AddGang(3);
  for (const char* name : {"train-10", "train-9", "train-1"}) Add(Pod(name));
  std::vector<std::string> order;
  const Readiness ready = Assess();
  for (const MemberSpec& member : ready.spec->members) order.push_back(member.pod.name);
  EXPECT_THAT(order, ElementsAre("train-1", "train-9", "train-10"));
}

constexpr char kCompletionIndex[] = "batch.kubernetes.io/job-completion-index";

TEST_F(GangMembershipTest, RanksFollowTheIndexesThatAJobGives) {
  AddGang(3);
  for (const auto& [name, index] :
       {std::pair("job-0-zzzzz", "0"), std::pair("job-1-mmmmm", "1"), std::pair("job-x", "10")}) {
    PodFact pod = Pod(name);
    pod.labels = {{kCompletionIndex, index}};
    Add(pod);
  }
  std::vector<std::string> order;
  const Readiness ready = Assess();
  ASSERT_NE(ready.spec, nullptr) << ready.message;
  for (const MemberSpec& member : ready.spec->members) order.push_back(member.pod.name);
  EXPECT_THAT(order, ElementsAre("job-0-zzzzz", "job-1-mmmmm", "job-x"));
  Add(Pod("job-1-mmmmm"));  // without its label: the names count for all
  EXPECT_NE(Assess().spec, nullptr);
}

TEST_F(GangMembershipTest, APodThatReplacesAnEndedOneHasItsRank) {
  AddGang(2);
  for (const auto& [name, index] :
       {std::pair("job-0-a", "0"), std::pair("job-1-a", "1"), std::pair("job-0-b", "0")}) {
    PodFact pod = Pod(name);
    pod.labels = {{kCompletionIndex, index}};
    pod.finished = std::string_view(name) == "job-0-a";
    Add(pod);
  }
  const Readiness ready = Assess();
  ASSERT_NE(ready.spec, nullptr) << ready.message;
  EXPECT_EQ(ready.spec->members.at(0).pod.name, "job-0-b");
}

TEST_F(GangMembershipTest, AnIndexOfTwoLivePodsPlacesNothingAndNamesBoth) {
  AddGang(2);
  for (const char* name : {"job-1-b", "job-1-a"}) {
    PodFact pod = Pod(name);
    pod.labels = {{kCompletionIndex, "1"}};
    Add(pod);
  }
  EXPECT_EQ(Why(Assess()),
            "IndexGivenTwice: pods job-1-a and job-1-b both have index 1 "
            "(batch.kubernetes.io/job-completion-index)");
  PodFact leaving = Pod("job-1-a");
  leaving.labels = {{kCompletionIndex, "1"}};
  leaving.deleting = true;
  Add(leaving);
  EXPECT_EQ(Why(Assess()), "WaitingForPods: 1 of 2 pods exist");
}

TEST_F(GangMembershipTest, AGangThatHasFailedForGoodIsNotReadyWhateverPodsCome) {
  AddGang(1);
  Add(Pod("train-0"));
  auto gang = std::make_shared<GangFact>(*facts_.gangs.Find({"default", "train"}));
  gang->failed = "pod train-0 failed";
  facts_.gangs.Put(gang);
  EXPECT_EQ(Why(Assess()), "MemberLost: pod train-0 failed");
  EXPECT_TRUE(Assess().finished);
  EXPECT_FALSE(Assess().succeeded);
}

TEST_F(GangMembershipTest, PodsOfOtherGangsAndOtherNamespacesDoNotCount) {
  AddGang(1);
  Add(Pod("a", "other"));
  PodFact elsewhere = Pod("b");
  elsewhere.key.ns = "team";
  Add(elsewhere);
  EXPECT_EQ(Why(Assess()), "WaitingForPods: 0 of 1 pods exist");
  EXPECT_THAT(membership_.PodsOf({"default", "other"}), ElementsAre("a"));
}

TEST_F(GangMembershipTest, PodsThatGoOrAreDeletedDoNotCount) {
  AddGang(2);
  Add(Pod("train-0"));
  Add(Pod("train-1"));
  PodFact deleted = Pod("train-1");
  deleted.deleting = true;
  Add(deleted);
  EXPECT_EQ(Why(Assess()), "WaitingForPods: 1 of 2 pods exist");
  membership_.OnPodGone(deleted);
  EXPECT_THAT(membership_.PodsOf({"default", "train"}), ElementsAre("train-0"));
  membership_.OnPodGone(Pod("train-0"));
  membership_.OnPodGone(Pod("train-0"));  // twice is once
  EXPECT_TRUE(membership_.PodsOf({"default", "train"}).empty());
}

TEST_F(GangMembershipTest, AGangThatHasRunIsFinishedAndSaysWhetherAllSucceeded) {
  AddGang(2);
  for (const auto& [name, succeeded] : {std::pair("train-0", true), std::pair("train-1", false)}) {
    PodFact pod = Pod(name);
    pod.finished = true;
    pod.succeeded = succeeded;
    Add(pod);
  }
  EXPECT_TRUE(Assess().finished);
  EXPECT_FALSE(Assess().succeeded);
  PodFact pod = Pod("train-1");
  pod.finished = pod.succeeded = true;
  Add(pod);
  EXPECT_TRUE(Assess().succeeded);
}

TEST_F(GangMembershipTest, APodThatSomebodyElseBoundHoldsItsGangBack) {
  AddGang(1);
  PodFact bound = Pod("train-0");
  bound.node = "n0";
  Add(bound);
  EXPECT_EQ(Why(Assess()), "WaitingForPods: pod train-0 is bound to node n0 without the gang");
}

TEST_F(GangMembershipTest, GatesAndBadSpecsAreSaid) {
  AddGang(1, "spec.shape: no such shape");
  EXPECT_EQ(Why(Assess()), "Invalid: spec.shape: no such shape");
  AddGang(1);
  PodFact gated = Pod("train-0");
  gated.gated = true;
  Add(gated);
  EXPECT_EQ(Why(Assess()), "WaitingForPods: pod train-0 has scheduling gates");
  PodFact bad = Pod("train-0");
  bad.spec_error = "it asks for something by name";
  Add(bad);
  EXPECT_EQ(Why(Assess()), "Invalid: pod train-0: it asks for something by name");
  PodFact alone = Pod("p", "");
  alone.spec_error = bad.spec_error;
  Add(alone);
  EXPECT_EQ(Why(AssessPod("p")), "Invalid: it asks for something by name");
}

TEST_F(GangMembershipTest, AGangNamesTheTemplateThatDoesNotExist) {
  AddGang(1);
  PodFact pod = Pod("train-0");
  pod.claims = {{.entry = "chips", .claim = ""}};
  pod.templates = {"nope"};
  pod.tells_gang = true;
  Add(pod);
  EXPECT_EQ(Why(Assess()),
            "WaitingForClaims: pod train-0: the claim for \"chips\" is not made yet: "
            "ResourceClaimTemplate nope does not exist");
}

TEST_F(GangMembershipTest, AClaimIsWaitedForUntilItExistsAndIsFree) {
  PodFact pod = Pod("p", "");
  pod.claims = {{.entry = "chips", .claim = ""}, {.entry = "none", .claim = "", .none = true}};
  Add(pod);
  EXPECT_EQ(Why(AssessPod("p")),
            "WaitingForClaims: pod p: the claim for \"chips\" is not made yet");
  pod.templates = {"nope"};
  Add(pod);
  EXPECT_EQ(Why(AssessPod("p")),
            "WaitingForClaims: pod p: the claim for \"chips\" is not made yet: "
            "ResourceClaimTemplate nope does not exist");
  ClaimTemplateFact made;
  made.key = {"default", "nope"};
  facts_.claim_templates.Put(std::make_shared<const ClaimTemplateFact>(made));
  EXPECT_EQ(Why(AssessPod("p")),
            "WaitingForClaims: pod p: the claim for \"chips\" is not made yet");
  pod.claims[0].claim = "c";
  Add(pod);
  EXPECT_EQ(Why(AssessPod("p")), "WaitingForClaims: pod p: claim c does not exist");
  ClaimFact claim = Claim("c");
  claim.deleting = true;
  Add(claim);
  EXPECT_EQ(Why(AssessPod("p")), "WaitingForClaims: pod p: claim c is being deleted");
  claim.deleting = false;
  claim.spec_error = "request r has neither exactly nor firstAvailable";
  Add(claim);
  EXPECT_EQ(Why(AssessPod("p")),
            "Invalid: claim c: request r has neither exactly nor firstAvailable");
  Add(Claim("c"));
  busy_ = [](const ClaimKey& key) { return "claim " + key.name + " is being given back"; };
  EXPECT_EQ(Why(AssessPod("p")), "WaitingForClaims: claim c is being given back");
  busy_ = [](const ClaimKey&) { return std::string(); };
  EXPECT_EQ(Why(AssessPod("p")), "ready");
}

TEST_F(GangMembershipTest, ThePodsThatUseAClaimAreKnownUntilTheyAreGone) {
  const ClaimKey shared{"default", "shared"};
  PodFact a = Pod("a");
  a.claims = {{"chips", "shared", false}, {"later", "", false}};
  PodFact b = Pod("b");
  b.claims = {{"chips", "shared", false}};
  b.volumes = {{.claim = "data", .ephemeral = false}};
  Add(a);
  Add(a);  // seen twice is once
  Add(b);
  EXPECT_THAT(membership_.PodsUsing(shared), ElementsAre(a.key, b.key));
  EXPECT_TRUE(membership_.PodsUsing({"other", "shared"}).empty());
  membership_.OnPodGone(a);
  EXPECT_THAT(membership_.PodsUsing(shared), ElementsAre(b.key));
  EXPECT_THAT(membership_.PodsMounting({"default", "data"}), ElementsAre(b.key));
  membership_.OnPodGone(b);
  EXPECT_TRUE(membership_.PodsUsing(shared).empty());
  EXPECT_TRUE(membership_.PodsMounting({"default", "data"}).empty());
}

TEST_F(GangMembershipTest, ClassesAreResolvedWithTheirConfigsFirst) {
  ClassFact neuron = *facts_.classes["neuron.aws.com"];
  neuron.configs = {
      {.source = ConfigSource::kClass, .requests = {}, .driver = "d", .parameters = "1"}};
  facts_.classes["neuron.aws.com"] = std::make_shared<const ClassFact>(neuron);
  ClaimFact claim = Claim("c");
  kube::ResourceClaimSpec spec = *claim.spec;
  DeviceRequest sub = spec.requests[0].alternatives[0];
  sub.name = "sub";
  DeviceRequest unknown = sub;
  unknown.device_class = "no.such.class";
  spec.requests.push_back({.name = "s", .alternatives = {sub, unknown}, .first_available = true});
  spec.configs = {
      {.source = ConfigSource::kClaim, .requests = {}, .driver = "d", .parameters = "2"}};
  claim.spec = std::make_shared<const kube::ResourceClaimSpec>(spec);
  claim.allocation =
      std::make_shared<const Allocation>(Allocation{.results = {}, .configs = {}, .node = "n3"});
  Add(claim);
  PodFact pod = Pod("p", "");
  pod.claims = {{.entry = "chips", .claim = "c"}};
  Add(pod);
  const Readiness ready = AssessPod("p");
  ASSERT_NE(ready.spec, nullptr) << ready.message;
  EXPECT_TRUE(ready.spec->single_pod);
  const ClaimSpec& resolved = ready.spec->members[0].claims[0];
  EXPECT_EQ(resolved.key, (ClaimKey{"default", "c"}));
  EXPECT_EQ(resolved.uid, "uid-c");
  EXPECT_EQ(resolved.allocated_node, "n3");
  EXPECT_THAT(resolved.requests[0].alternatives[0].class_selectors, ElementsAre("true"));
  EXPECT_TRUE(resolved.requests[1].alternatives[0].class_found);
  EXPECT_FALSE(resolved.requests[1].alternatives[1].class_found);
  ASSERT_EQ(resolved.configs.size(), 3U);
  EXPECT_THAT(resolved.configs[0].requests, ElementsAre("r"));
  EXPECT_THAT(resolved.configs[1].requests, ElementsAre("s/sub"));
  EXPECT_EQ(resolved.configs[2].parameters, "2");
}

TEST_F(GangMembershipTest, APodThatIsBoundOrEndedIsFinished) {
  EXPECT_EQ(Why(AssessPod("p")), "WaitingForPods: the pod does not exist");
  PodFact pod = Pod("p", "");
  pod.finished = pod.succeeded = true;
  Add(pod);
  EXPECT_EQ(Why(AssessPod("p")), "Finished: the pod is bound or has ended");
  EXPECT_TRUE(AssessPod("p").finished && AssessPod("p").succeeded);
  pod = Pod("p", "");
  pod.node = "n0";
  Add(pod);
  EXPECT_EQ(AssessPod("p").reason, GangReason::kFinished);
  EXPECT_FALSE(AssessPod("p").finished);
}

TEST(GangRefTest, APodWithoutAGangIsOneOfItsOwn) {
  PodFact pod;
  pod.key = {"ns", "p"};
  EXPECT_EQ(Describe(GangOf(pod)), "pod ns/p");
  pod.gang = "g";
  EXPECT_EQ(Describe(GangOf(pod)), "gang ns/g");
}

TEST(NaturalLessTest, RunsOfDigitsCompareAsNumbers) {
  const std::vector<std::string> order = {"",       "a",   "a-1", "a-2",  "a-10",
                                          "a-10-x", "a-b", "b-1", "b-01b"};
  for (std::size_t i = 0; i + 2 < order.size(); ++i) {
    EXPECT_TRUE(NaturalLess(order[i], order[i + 1])) << order[i] << " " << order[i + 1];
    EXPECT_FALSE(NaturalLess(order[i + 1], order[i]));
    EXPECT_FALSE(NaturalLess(order[i], order[i]));
  }
  EXPECT_NE(NaturalLess("x-1", "x-01"), NaturalLess("x-01", "x-1")) << "equal numbers, other text";
}

}  // namespace
}  // namespace tahoma::controller
