// All pods of a node and their shared claims, told as events and the node's actions.

#include "sim-node/podrunner/node_pods.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/podrunner/node_story.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;

// ---- One pod -----------------------------------------------------------------------------------

TEST_F(NodePodsTest, AClaimIsReadThenSavedThenPreparedThenUsed) {
  EXPECT_EQ(Deeds(pods_.OnPod(PodJson("a", {"chips"}), now_)), (Story{"read chips for a"}));
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_)),
            (Story{"save", "prepare chips"}));
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-chips", DevicesOf("chips"), now_)),
            (Story{"run a chips"}));
  pods_.OnStarted("uid-a", "main", 0, "tahoma://1", now_);
  EXPECT_EQ(Deeds(Exit(pods_, "a")), (Story{"unprepare chips", "save"}));
  EXPECT_EQ(Describe(pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_)),
            (Story{"save", "a is Succeeded"}));
  EXPECT_EQ(ParseJson(pods_.Checkpoint())["claims"], json::array());
}

TEST_F(NodePodsTest, APodWithoutClaimsRunsAtOnce) {
  EXPECT_EQ(Deeds(pods_.OnPod(PodJson("a", {}), now_)), (Story{"run a"}));
}

TEST_F(NodePodsTest, AnActiveDeadlineMayBeSetOrShortenedWhileThePodRuns) {
  RunPod(pods_, "a", {});
  json object = PodJson("a", {});
  object["spec"]["activeDeadlineSeconds"] = 600;
  EXPECT_EQ(Describe(pods_.OnPod(object, now_)), Story{});
  EXPECT_EQ(pods_.NextDeadline(), now_ + seconds(600));
  now_ += seconds(60);
  object["spec"]["activeDeadlineSeconds"] = 30;
  EXPECT_EQ(Deeds(pods_.OnPod(object, now_)), Story{"term a"});
  Exit(pods_, "a", 143);
  EXPECT_EQ(pods_.Find("uid-a")->Status()["reason"], "DeadlineExceeded");
}

TEST_F(NodePodsTest, AClaimThatIsNotThisPodsIsRefusedAndAskedForAgain) {
  struct Case {
    absl::StatusOr<std::vector<ClaimFacts>> read;
    std::string says;
  };
  ClaimFacts unallocated = Facts("chips", {"a"});
  unallocated.allocated = false;
  for (const Case& c :
       std::vector<Case>{{{{unallocated}}, "resourceclaim default/chips is not allocated"},
                         {{{Facts("chips", {"b"})}},
                          "resourceclaim default/chips is not reserved for pod a (uid-a)"},
                         {NotFound("resourceclaim default/chips: not found"),
                          "resourceclaim default/chips: not found"}}) {
    SCOPED_TRACE(c.says);
    NodePods pods = Make();
    pods.OnPod(PodJson("a", {"chips"}), now_);
    EXPECT_EQ(Describe(pods.OnClaimsRead("uid-a", c.read, now_))[0],
              "event FailedPrepareDynamicResources: " + c.says);
    ASSERT_EQ(pods.NextDeadline(), now_ + kFirstPrepareRetry);
    EXPECT_EQ(Deeds(pods.OnTick(now_ + kFirstPrepareRetry)), (Story{"read chips for a"}));
  }
}

TEST_F(NodePodsTest, AClaimOfATemplateThatIsNotMadeYetIsWaitedFor) {
  json pod = PodJson("a", {"chips"});
  pod["spec"]["resourceClaims"] = {{{"name", "of-chips"}, {"resourceClaimTemplateName", "t"}}};
  EXPECT_EQ(Deeds(pods_.OnPod(pod, now_)), Story{});
  pod["status"]["resourceClaimStatuses"] = {{{"name", "of-chips"}, {"resourceClaimName", "made"}}};
  EXPECT_EQ(Deeds(pods_.OnPod(pod, now_)), Story{});
  EXPECT_EQ(Deeds(pods_.OnTick(now_ + kFirstPrepareRetry)), (Story{"read made for a"}));
}

TEST_F(NodePodsTest, APreparationThatFailedIsTriedAgainAndItsMessageIsAnEvent) {
  pods_.OnPod(PodJson("a", {"chips"}), now_);
  pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_);
  EXPECT_EQ(
      Describe(pods_.OnClaimPrepared("uid-chips", Unavailable("the plugin is away"), now_))[0],
      "event FailedPrepareDynamicResources: the plugin is away");
  now_ += kFirstPrepareRetry;
  EXPECT_EQ(Deeds(pods_.OnTick(now_)), (Story{"read chips for a"}));
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_)),
            (Story{"save", "prepare chips"}));
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-chips", DevicesOf("chips"), now_)),
            (Story{"run a chips"}));
}

TEST_F(NodePodsTest, APodWithTwoClaimsRunsOnlyWhenBothArePrepared) {
  const std::vector<ClaimFacts> both = {Facts("one", {"a"}), Facts("two", {"a"})};
  pods_.OnPod(PodJson("a", {"one", "two"}), now_);
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", both, now_)),
            (Story{"save", "prepare one", "save", "prepare two"}));
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-two", DevicesOf("two"), now_)), Story{});
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-one", DevicesOf("one"), now_)),
            (Story{"run a one two"}));
}

TEST_F(NodePodsTest, APodWithAFailedClaimDoesNotRunWithItsOtherClaim) {
  const std::vector<ClaimFacts> both = {Facts("one", {"a"}), Facts("two", {"a"})};
  pods_.OnPod(PodJson("a", {"one", "two"}), now_);
  pods_.OnClaimsRead("uid-a", both, now_);
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-one", Unavailable("overlap"), now_)), Story{});
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-two", DevicesOf("two"), now_)), Story{})
      << "its first claim has no devices";
  now_ += kFirstPrepareRetry;
  EXPECT_EQ(Deeds(pods_.OnTick(now_)), (Story{"read one+two for a"}));
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", both, now_)), (Story{"save", "prepare one"}));
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-one", DevicesOf("one"), now_)),
            (Story{"run a one two"}));
}

TEST_F(NodePodsTest, AContainerGetsTheDevicesOfTheRequestsItNamesAndOfNoOther) {
  json pod = PodJson("a", {"chips"});
  pod["spec"]["containers"] = {
      {{"name", "first"},
       {"image", "i"},
       {"resources", {{"claims", {{{"name", "of-chips"}, {"request", "x"}}}}}}},
      {{"name", "second"}, {"image", "i"}},
      {{"name", "third"}, {"image", "i"}, {"resources", {{"claims", {{{"name", "of-chips"}}}}}}}};
  pods_.OnPod(pod, now_);
  pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_);
  const std::vector<PreparedDevice> devices = {{.requests = {"x"}, .cdi_ids = {"k=1", "k=2"}},
                                               {.requests = {"y"}, .cdi_ids = {"k=2", "k=3"}},
                                               {.requests = {}, .cdi_ids = {"k=4"}}};
  std::map<std::string, std::vector<std::string>> given;
  for (const NodeAction& action : pods_.OnClaimPrepared("uid-chips", devices, now_)) {
    if (const auto* run = std::get_if<RunContainer>(&action)) given[run->container] = run->cdi_ids;
  }
  EXPECT_EQ(given["first"], (std::vector<std::string>{"k=1", "k=2", "k=4"}));
  EXPECT_EQ(given["second"], std::vector<std::string>{});
  EXPECT_EQ(given["third"], (std::vector<std::string>{"k=1", "k=2", "k=3", "k=4"}));
}

TEST_F(NodePodsTest, AContainerGetsTheDevicesThatTheStatusMapsToItsExtendedResources) {
  json pod = PodJson("a", {});
  pod["spec"]["containers"] = {{{"name", "first"}, {"image", "i"}},
                               {{"name", "second"}, {"image", "i"}}};
  pod["status"]["extendedResourceClaimStatus"] = {
      {"resourceClaimName", "made"},
      {"requestMappings",
       {{{"containerName", "first"}, {"resourceName", "x.com/y"}, {"requestName", "x"}}}}};
  EXPECT_EQ(Deeds(pods_.OnPod(pod, now_)), (Story{"read made for a"}));
  pods_.OnClaimsRead("uid-a", {{Facts("made", {"a"})}}, now_);
  const std::vector<PreparedDevice> devices = {{.requests = {"x"}, .cdi_ids = {"k=1"}},
                                               {.requests = {"y"}, .cdi_ids = {"k=2"}}};
  std::map<std::string, std::vector<std::string>> given;
  for (const NodeAction& action : pods_.OnClaimPrepared("uid-made", devices, now_)) {
    if (const auto* run = std::get_if<RunContainer>(&action)) given[run->container] = run->cdi_ids;
  }
  EXPECT_EQ(given["first"], (std::vector<std::string>{"k=1"}));
  EXPECT_EQ(given["second"], std::vector<std::string>{});
}

// The defect: such bytes ended the program, because JSON cannot hold them.
TEST_F(NodePodsTest, BytesThatAreNoTextAreReplacedInAMessage) {
  pods_.OnPod(PodJson("a", {}), now_);
  const NodeActions actions = pods_.OnStartFailed(
      "uid-a", "main", 0, {"CreateContainerError", "no command \"\xff\xfe\""}, now_);
  std::string shown;
  for (const NodeAction& action : actions) {
    const auto* write = std::get_if<WriteStatus>(&action);
    if (write == nullptr) continue;
    const json status = ParseJson(write->status);
    shown = status["containerStatuses"][0]["state"]["waiting"]["message"];
  }
  EXPECT_TRUE(shown.starts_with("no command \"")) << shown;
}

// The defect: the time of the retry stayed, lay in the past, and the runner spun.
TEST_F(NodePodsTest, APodWhoseClaimAnotherPodPreparedHasNothingLeftToRetry) {
  pods_.OnPod(PodJson("a", {"own", "shared"}), now_);
  pods_.OnClaimsRead("uid-a", {{Facts("own", {"a"}), Facts("shared", {"a", "b"})}}, now_);
  pods_.OnClaimPrepared("uid-shared", Unavailable("away"), now_);
  EXPECT_EQ(pods_.NextDeadline(), now_ + kFirstPrepareRetry);
  pods_.OnPod(PodJson("b", {"shared"}), now_);
  pods_.OnClaimsRead("uid-b", {{Facts("shared", {"a", "b"})}}, now_);
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-shared", DevicesOf("shared"), now_)),
            (Story{"run b shared"}));
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-own", DevicesOf("own"), now_)),
            (Story{"run a own shared"}));
  EXPECT_EQ(pods_.NextDeadline(), std::nullopt);
}

// The defect: the pod waited for the deleted claim for ever.
TEST_F(NodePodsTest, AClaimMadeAnewUnderTheSameNameReplacesTheFormerClaim) {
  pods_.OnPod(PodJson("a", {"chips"}), now_);
  pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_);
  pods_.OnClaimPrepared("uid-chips", Unavailable("the plugin is away"), now_);
  now_ += kFirstPrepareRetry;
  pods_.OnTick(now_);
  ClaimFacts anew = Facts("chips", {"a"});
  anew.uid = "uid-anew";
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", {{anew}}, now_)),
            (Story{"save", "unprepare chips", "save", "prepare chips"}))
      << "the failed call may have prepared the former one";
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-anew", DevicesOf("chips"), now_)),
            (Story{"run a chips"}));
  pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_);
  const json left = ParseJson(pods_.Checkpoint())["claims"];
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0]["uid"], "uid-anew");
}

// ---- Claims that pods share --------------------------------------------------------------------

TEST_F(NodePodsTest, ASharedClaimIsPreparedOnceAndUnpreparedAfterItsLastPod) {
  pods_.OnPod(PodJson("a", {"chips"}), now_);
  pods_.OnPod(PodJson("b", {"chips"}), now_);
  const std::vector<ClaimFacts> facts = {Facts("chips", {"a", "b"})};
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", facts, now_)), (Story{"save", "prepare chips"}));
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-b", facts, now_)), Story{}) << "it waits with the other";
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-chips", DevicesOf("chips"), now_)),
            (Story{"run a chips", "run b chips"}));
  for (const char* uid : {"uid-a", "uid-b"}) pods_.OnStarted(uid, "main", 0, "tahoma://1", now_);
  EXPECT_EQ(Deeds(Exit(pods_, "a")), (Story{"save"})) << "the other still uses it";
  EXPECT_EQ(pods_.Find("uid-a")->phase(), "Succeeded");
  EXPECT_EQ(Deeds(Exit(pods_, "b")), (Story{"unprepare chips", "save"}));
}

TEST_F(NodePodsTest, APodThatComesLaterUsesWhatIsPrepared) {
  RunPod(pods_, "a", {"chips"});
  pods_.OnPod(PodJson("b", {"chips"}), now_);
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-b", {{Facts("chips", {"a", "b"})}}, now_)),
            (Story{"run b chips"}));
}

TEST_F(NodePodsTest, APodWaitsWhileTheClaimIsJustBeingUnprepared) {
  RunPod(pods_, "a", {"chips"});
  EXPECT_EQ(Deeds(Exit(pods_, "a")), (Story{"unprepare chips", "save"}));
  pods_.OnPod(PodJson("b", {"chips"}), now_);
  EXPECT_EQ(Describe(pods_.OnClaimsRead("uid-b", {{Facts("chips", {"b"})}}, now_))[0],
            "event FailedPrepareDynamicResources: resourceclaim default/chips is just being "
            "unprepared");
  pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_);
  now_ += kFirstPrepareRetry;
  EXPECT_EQ(Deeds(pods_.OnTick(now_)), (Story{"read chips for b"}));
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-b", {{Facts("chips", {"b"})}}, now_)),
            (Story{"save", "prepare chips"}))
      << "anew";
}

// ---- The end of pods ---------------------------------------------------------------------------

TEST_F(NodePodsTest, ADeletedPodIsStoppedUnpreparedAndThenRemoved) {
  RunPod(pods_, "a", {"chips"});
  EXPECT_EQ(Deeds(pods_.OnPod(Deleted(PodJson("a", {"chips"})), now_)), (Story{"term a"}));
  EXPECT_EQ(Deeds(pods_.OnTick(now_ + seconds(30))), (Story{"kill a"}));
  EXPECT_EQ(Deeds(Exit(pods_, "a", 137)), (Story{"unprepare chips", "save"}));
  const Story end = Describe(pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_));
  EXPECT_EQ(end, (Story{"save", "a is Failed", "delete a"})) << "the last status first";
}

TEST_F(NodePodsTest, APodDeletedWhileItsClaimIsBeingPreparedUnpreparesItAfterwards) {
  pods_.OnPod(PodJson("a", {"chips"}), now_);
  pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_);
  EXPECT_EQ(Deeds(pods_.OnPod(Deleted(PodJson("a", {"chips"})), now_)), (Story{"save"}))
      << "the call is under way";
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-chips", DevicesOf("chips"), now_)),
            (Story{"unprepare chips"}));
  EXPECT_EQ(Deeds(pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_)),
            (Story{"save", "delete a"}));
}

TEST_F(NodePodsTest, AClaimWhosePreparationFailedIsUnpreparedAllTheSame) {
  pods_.OnPod(PodJson("a", {"chips"}), now_);
  pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_);
  pods_.OnClaimPrepared("uid-chips", DeadlineExceeded("no answer"), now_);
  EXPECT_EQ(Deeds(pods_.OnPod(Deleted(PodJson("a", {"chips"})), now_)),
            (Story{"unprepare chips", "save"}))
      << "nobody knows whether the call was carried out";
}

TEST_F(NodePodsTest, APodDeletedBeforeItsClaimsAreReadLeavesNothing) {
  pods_.OnPod(PodJson("a", {"chips"}), now_);
  EXPECT_EQ(Deeds(pods_.OnPod(Deleted(PodJson("a", {"chips"})), now_)), (Story{"delete a"}));
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_)), Story{})
      << "the answer comes too late";
}

TEST_F(NodePodsTest, AnUnprepareThatFailedIsTriedAgainBeforeThePodEnds) {
  RunPod(pods_, "a", {"chips"});
  Exit(pods_, "a");
  EXPECT_EQ(Deeds(pods_.OnClaimUnprepared("uid-chips", Unavailable("away"), now_)), Story{});
  EXPECT_EQ(pods_.Find("uid-a")->phase(), "Running") << "its devices are not free";
  now_ += kFirstPrepareRetry;
  EXPECT_EQ(Deeds(pods_.OnTick(now_)), (Story{"unprepare chips", "save"}));
  pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_);
  EXPECT_EQ(pods_.Find("uid-a")->phase(), "Succeeded");
}

TEST_F(NodePodsTest, APodThatVanishedIsKilledAndForgottenWithoutBeingWrittenTo) {
  RunPod(pods_, "a", {"chips"});
  Story all = Describe(pods_.OnPodGone("uid-a", now_));
  EXPECT_EQ(all, (Story{"kill a"}));
  for (const std::string& line : Describe(Exit(pods_, "a", 137))) all.push_back(line);
  for (const std::string& line :
       Describe(pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_))) {
    all.push_back(line);
  }
  EXPECT_EQ(all, (Story{"kill a", "unprepare chips", "save", "save"}));
  EXPECT_EQ(pods_.pod_count(), 0U);
  EXPECT_EQ(Deeds(pods_.OnPodGone("uid-a", now_)), Story{});
}

TEST_F(NodePodsTest, ShuttingDownEndsEveryPodWithinTheGrace) {
  RunPod(pods_, "a", {"chips"});
  RunPod(pods_, "b", {});
  EXPECT_FALSE(pods_.shut_down());
  EXPECT_EQ(Deeds(pods_.OnShutdown(seconds(5), now_)), (Story{"term a", "term b"}));
  EXPECT_EQ(pods_.NextDeadline(), now_ + seconds(5));
  EXPECT_EQ(Deeds(pods_.OnTick(now_ + seconds(5))), (Story{"kill a", "kill b"}));
  Exit(pods_, "a", 137);
  Exit(pods_, "b", 137);
  EXPECT_FALSE(pods_.shut_down()) << "a claim is still held";
  pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_);
  EXPECT_TRUE(pods_.shut_down());
  EXPECT_EQ(pods_.Find("uid-a")->Status()["reason"], "Terminated");
}

// The defect: with a stopped plugin, a node took three times its grace to end.
TEST_F(NodePodsTest, ANodeThatShutsDownDoesNotWaitForAPluginThatIsAway) {
  RunPod(pods_, "a", {"chips"});
  pods_.OnShutdown(seconds(5), now_);
  EXPECT_EQ(Deeds(Exit(pods_, "a", 143)), (Story{"unprepare chips", "save"}));
  EXPECT_FALSE(pods_.shut_down());
  pods_.OnClaimUnprepared("uid-chips", Unavailable("away"), now_);
  EXPECT_TRUE(pods_.shut_down());
  NodePods next = Make();
  ASSERT_EQ(next.Restore(pods_.Checkpoint()), absl::OkStatus());
  EXPECT_EQ(Deeds(next.OnPodsSynced(now_)), (Story{"unprepare chips"})) << "it is not forgotten";
}

// ---- Pods that cannot be run -------------------------------------------------------------------

TEST_F(NodePodsTest, APodThatCannotBeReadFailsOnceWithTheReasonAndMayBeDeleted) {
  json bad = PodJson("a", {});
  bad["spec"]["containers"][0]["name"] = "../etc";
  const Story story = Describe(pods_.OnPod(bad, now_));
  ASSERT_EQ(story.size(), 2U);
  EXPECT_EQ(story[0], "a is Failed");
  EXPECT_NE(story[1].find("event UnsupportedPod: "), std::string::npos);
  EXPECT_NE(story[1].find("\"../etc\" is not a DNS label"), std::string::npos) << story[1];
  EXPECT_EQ(Describe(pods_.OnPod(bad, now_)), Story{}) << "once";
  EXPECT_EQ(Describe(pods_.OnPod(Deleted(bad), now_)), (Story{"delete a"}));
}

TEST_F(NodePodsTest, NewsOfUnknownPodsAndClaimsIsLetPass) {
  EXPECT_EQ(Describe(pods_.OnClaimsRead("uid-x", {{Facts("c", {"x"})}}, now_)), Story{});
  EXPECT_EQ(Describe(pods_.OnClaimPrepared("uid-x", DevicesOf("x"), now_)), Story{});
  EXPECT_EQ(Describe(pods_.OnClaimUnprepared("uid-x", absl::OkStatus(), now_)), Story{});
  EXPECT_EQ(Describe(pods_.OnStarted("uid-x", "main", 0, "id", now_)), Story{});
  EXPECT_EQ(Describe(pods_.OnExited("uid-x", "main", 0, {}, now_)), Story{});
  EXPECT_EQ(Describe(pods_.OnStartFailed("uid-x", "main", 0, {}, now_)), Story{});
  EXPECT_EQ(pods_.Find("uid-x"), nullptr);
  EXPECT_EQ(pods_.UidOf("default", "x"), "");
}

// The defect: the pod was started, and killed without a word when the program ended.
TEST_F(NodePodsTest, APodThatComesWhileTheNodeShutsDownIsRefusedAsAKubeletDoes) {
  RunPod(pods_, "a", {"chips"});
  pods_.OnShutdown(seconds(5), now_);
  NodeActions actions = pods_.OnPod(PodJson("b", {}), now_);
  EXPECT_EQ(Deeds(actions), Story{});
  ASSERT_TRUE(std::holds_alternative<WriteStatus>(actions.at(0)));
  const json status = ParseJson(std::get<WriteStatus>(actions.at(0)).status);
  EXPECT_EQ(status["phase"], "Failed");
  EXPECT_EQ(status["reason"], "NodeShutdown");
  EXPECT_EQ(Describe(pods_.OnPod(PodJson("b", {}), now_)), Story{}) << "once";
  EXPECT_EQ(Deeds(pods_.OnPod(Deleted(PodJson("b", {})), now_)), (Story{"delete b"}));
  Exit(pods_, "a", 137);
  pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_);
  EXPECT_TRUE(pods_.shut_down());
}

TEST_F(NodePodsTest, ANodeShutdownLeavesEndedPodsAndPodsWithClaimsUnchanged) {
  RunPod(pods_, "a", {"chips"});
  NodePods next = Make();
  ASSERT_EQ(next.Restore(pods_.Checkpoint()), absl::OkStatus());
  next.OnShutdown(seconds(5), now_);
  EXPECT_EQ(Describe(next.OnPod(PodJson("a", {"chips"}), now_)), Story{})
      << "a final phase would free devices that are still prepared";
  json ended = PodJson("b", {});
  ended["status"] = {{"phase", "Succeeded"}};
  EXPECT_EQ(Describe(next.OnPod(ended, now_)), Story{});
  EXPECT_TRUE(next.shut_down());
}

// The defect: a succeeded pod became a failed pod when the next runner could not read its spec.
TEST_F(NodePodsTest, AnUnreadablePodKeepsItsFinalPhase) {
  json bad = PodJson("a", {});
  bad["spec"]["containers"][0]["name"] = "../etc";
  bad["status"] = {{"phase", "Succeeded"}};
  EXPECT_EQ(Describe(pods_.OnPod(bad, now_)), Story{});
  EXPECT_EQ(Describe(pods_.OnPod(Deleted(bad), now_)), (Story{"delete a"}));
}

// ---- A runner that starts again ----------------------------------------------------------------

TEST_F(NodePodsTest, ARestoredClaimIsPreparedAgainForThePodThatUsesIt) {
  RunPod(pods_, "a", {"chips"});
  NodePods next = Make();
  ASSERT_EQ(next.Restore(pods_.Checkpoint()), absl::OkStatus());
  EXPECT_EQ(next.Checkpoint(), pods_.Checkpoint());
  EXPECT_EQ(Deeds(next.OnPod(PodJson("a", {"chips"}), now_)), (Story{"read chips for a"}));
  EXPECT_EQ(Deeds(next.OnPodsSynced(now_)), Story{});
  EXPECT_EQ(Deeds(next.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_)),
            (Story{"save", "prepare chips"}))
      << "its devices were not kept";
  EXPECT_EQ(Deeds(next.OnClaimPrepared("uid-chips", DevicesOf("chips"), now_)),
            (Story{"run a chips"}));
}

TEST_F(NodePodsTest, AClaimWhosePodWentWhileTheRunnerWasDownIsUnprepared) {
  RunPod(pods_, "a", {"chips"});
  NodePods next = Make();
  ASSERT_EQ(next.Restore(pods_.Checkpoint()), absl::OkStatus());
  EXPECT_EQ(Deeds(next.OnPodsSynced(now_)), (Story{"unprepare chips"}));
  EXPECT_EQ(Deeds(next.OnClaimUnprepared("uid-chips", Unavailable("away"), now_)), Story{});
  ASSERT_EQ(next.NextDeadline(), now_ + kMaxPrepareRetry);
  EXPECT_EQ(Deeds(next.OnTick(now_ + kMaxPrepareRetry)), (Story{"unprepare chips"}));
  EXPECT_EQ(Deeds(next.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_)), (Story{"save"}));
  EXPECT_EQ(next.NextDeadline(), std::nullopt);
}

TEST_F(NodePodsTest, APodThatEndedWithoutARunnerIsUnpreparedAndKeepsItsEnd) {
  RunPod(pods_, "a", {"chips"});
  NodePods next = Make();
  ASSERT_EQ(next.Restore(pods_.Checkpoint()), absl::OkStatus());
  json pod = PodJson("a", {"chips"});
  pod["status"] = {{"phase", "Succeeded"}, {"startTime", "2026-01-01T00:00:00Z"}};
  EXPECT_EQ(Deeds(next.OnPod(pod, now_)), (Story{"unprepare chips", "save"}));
  next.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_);
  EXPECT_EQ(next.Find("uid-a")->phase(), "Succeeded");
}

TEST_F(NodePodsTest, ACheckpointThatCannotBeReadIsNamed) {
  const auto why = [this](const std::string& text) {
    const absl::Status status = Make().Restore(text);
    EXPECT_TRUE(absl::IsDataLoss(status)) << text;
    return std::string(Message(status));
  };
  EXPECT_EQ(why(""), "the checkpoint of prepared claims is not readable JSON");
  EXPECT_EQ(why("[]"), "the checkpoint of prepared claims is not readable JSON");
  EXPECT_EQ(why(R"({"version":1,"claims":{}})"),
            "the checkpoint of prepared claims is not readable JSON");
  EXPECT_EQ(why(R"({"version":2,"claims":[]})"),
            "the checkpoint of prepared claims has version 2; expected 1");
  EXPECT_EQ(why(R"({"version":1,"claims":[{"name":"x"}]})"),
            "the checkpoint holds a claim without uid");
}

TEST(ClaimFactsTest, AreReadFromTheObject) {
  const json claim = {{"metadata", {{"uid", "u"}, {"namespace", "ns"}, {"name", "c"}}},
                      {"status",
                       {{"allocation",
                         {{"devices",
                           {{"results",
                             {{{"driver", "d1"}, {"pool", "p"}, {"device", "x"}, {"request", "r"}},
                              {{"driver", "d2"}},
                              {{"driver", "d1"}}}}}}}},
                        {"reservedFor", {{{"uid", "p"}}}}}}};
  const auto facts = ParseClaimFacts(claim);
  ASSERT_TRUE(facts.ok());
  EXPECT_TRUE(facts->allocated);
  EXPECT_EQ(facts->drivers, (std::vector<std::string>{"d1", "d2"}));
  EXPECT_EQ(facts->devices, (std::set<std::string>{"d1/p/x/r", "d1///", "d2///"}));
  EXPECT_EQ(facts->reserved_for, (std::vector<std::string>{"p"}));
  EXPECT_FALSE(ParseClaimFacts({{"metadata", {{"uid", "u"}, {"name", "c"}}}})->allocated);
  for (const json& bad : {json(), json::array(), json{{"metadata", {{"name", "c"}}}}}) {
    EXPECT_FALSE(ParseClaimFacts(bad).ok()) << bad.dump();
  }
}

// ---- Any order of events -----------------------------------------------------------------------

// A node and its world; the world answers in any order and sometimes fails.
class RandomWorld {
 public:
  void Do(NodeActions actions) {
    for (NodeAction& action : actions) {
      if (const auto* run = std::get_if<RunContainer>(&action)) CheckRun(*run);
      if (const auto* prepare = std::get_if<PrepareClaim>(&action)) {
        RC_ASSERT(calls_.insert(prepare->claim.name).second);
      }
      if (const auto* unprepare = std::get_if<UnprepareClaim>(&action)) {
        RC_ASSERT(calls_.insert(unprepare->claim.name).second);
        RC_ASSERT(UsersOf(unprepare->claim.name).empty());
      }
      if (const auto* write = std::get_if<WriteStatus>(&action)) Note(*write);
      if (std::holds_alternative<WriteStatus>(action)) continue;
      if (std::holds_alternative<WriteEvent>(action)) continue;
      if (std::holds_alternative<SaveCheckpoint>(action)) saved_ = pods_->Checkpoint();
      if (std::holds_alternative<SaveCheckpoint>(action)) continue;
      pending_.push_back(std::move(action));
    }
  }

  // Answers a waiting action, or lets time go by.
  void Step() {
    if (pending_.empty()) {
      now_ += seconds(*rc::gen::inRange(1, 40));
      return Do(pods_->OnTick(now_));
    }
    const auto at = *rc::gen::inRange<std::size_t>(0, pending_.size());
    const NodeAction action = pending_[at];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(at));
    Answer(action, *rc::gen::inRange(0, 4) != 0);
  }

  void Answer(const NodeAction& action, bool well) {
    if (const auto* read = std::get_if<ReadClaims>(&action)) {
      std::vector<ClaimFacts> facts;
      for (const std::string& name : read->names) facts.push_back(Facts(name, {"a", "b", "c"}));
      Do(pods_->OnClaimsRead(
          read->pod.uid, well ? absl::StatusOr<std::vector<ClaimFacts>>(facts) : Unavailable("no"),
          now_));
    } else if (const auto* prepare = std::get_if<PrepareClaim>(&action)) {
      calls_.erase(prepare->claim.name);
      if (well) held_.insert(prepare->claim.name);
      Do(pods_->OnClaimPrepared(
          prepare->claim.uid,
          well ? absl::StatusOr<std::vector<PreparedDevice>>(DevicesOf(prepare->claim.name))
               : Unavailable("no"),
          now_));
    } else if (const auto* unprepare = std::get_if<UnprepareClaim>(&action)) {
      calls_.erase(unprepare->claim.name);
      if (well) held_.erase(unprepare->claim.name);
      Do(pods_->OnClaimUnprepared(unprepare->claim.uid, well ? absl::OkStatus() : Unavailable("no"),
                                  now_));
    } else if (const auto* run = std::get_if<RunContainer>(&action)) {
      if (well) running_[run->pod.name] = run->attempt;
      Do(well ? pods_->OnStarted(run->pod.uid, "main", run->attempt, "id", now_)
              : pods_->OnStartFailed(run->pod.uid, "main", run->attempt, {"Bad", "no"}, now_));
    } else if (const auto* stop = std::get_if<StopContainer>(&action)) {
      EndContainer(stop->pod.name, 137);
    } else if (const auto* remove = std::get_if<DeletePod>(&action)) {
      objects_.erase(remove->pod.name);
      Do(pods_->OnPodGone(remove->pod.uid, now_));
    }
  }

  void EndContainer(const std::string& pod, int code) {
    const auto found = running_.find(pod);
    if (found == running_.end()) return;
    const int attempt = found->second;
    running_.erase(found);
    Do(pods_->OnExited("uid-" + pod, "main", attempt, {.code = code}, now_));
  }

  // A container runs only while all its claims are prepared.
  void CheckRun(const RunContainer& run) const {
    RC_ASSERT(run.cdi_ids.size() == claims_.at(run.pod.name).size());
    for (const std::string& claim : claims_.at(run.pod.name)) RC_ASSERT(held_.contains(claim));
  }
  // Returns the pods with a running container that uses the claim.
  std::set<std::string> UsersOf(const std::string& claim) const {
    std::set<std::string> users;
    for (const auto& [pod, attempt] : running_) {
      const auto& names = claims_.at(pod);
      if (std::find(names.begin(), names.end(), claim) != names.end()) users.insert(pod);
    }
    return users;
  }

  // Written statuses: final phases stay, and restarts are never fewer than before.
  void Note(const WriteStatus& write) {
    const json status = ParseJson(write.status);
    json& before = statuses_[write.pod.name];
    if (before.is_null()) before = json::object();
    const std::string phase = before.value("phase", "");
    if (phase == "Succeeded" || phase == "Failed") RC_ASSERT(status["phase"] == phase);
    if (before.contains("containerStatuses")) {
      RC_ASSERT(status["containerStatuses"][0]["restartCount"] >=
                before["containerStatuses"][0]["restartCount"]);
    }
    before = status;
  }

  // The program is killed and starts again. The checkpoint and the written statuses stay; calls in
  // progress may or may not have been carried out; the containers are gone.
  void Restart() {
    for (const NodeAction& action : std::exchange(pending_, {})) {
      const bool done = *rc::gen::arbitrary<bool>();
      if (const auto* prepare = std::get_if<PrepareClaim>(&action); prepare != nullptr && done) {
        held_.insert(prepare->claim.name);
      }
      if (const auto* unprepare = std::get_if<UnprepareClaim>(&action); unprepare && done) {
        held_.erase(unprepare->claim.name);
      }
    }
    calls_.clear();
    running_.clear();
    pods_.emplace(PodMachine::Addresses{.host_ip = "127.0.0.1", .pod_ip = "127.0.0.1"});
    if (!saved_.empty()) RC_ASSERT(pods_->Restore(saved_).ok());
    for (const auto& [name, claims] : claims_) {
      if (!objects_.contains(name)) continue;
      json pod = objects_[name];
      pod["status"] = statuses_[name];
      Do(pods_->OnPod(pod, now_));
    }
    Do(pods_->OnPodsSynced(now_));
  }

  std::optional<NodePods> pods_{
      std::in_place, PodMachine::Addresses{.host_ip = "127.0.0.1", .pod_ip = "127.0.0.1"}};
  std::string saved_;
  std::map<std::string, json> statuses_;  // as written last, by pod
  std::map<std::string, json> objects_;   // pods of the API server
  WallTime now_ = kStart;
  std::map<std::string, std::vector<std::string>> claims_;  // by pod
  std::vector<NodeAction> pending_;
  std::set<std::string> calls_;  // claims with a call to their plugin in progress
  std::set<std::string> held_;
  std::map<std::string, int> running_;  // attempts, by pod
};

RC_GTEST_PROP(NodePodsPropertyTest, ClaimsAreHeldExactlyWhileSomePodNeedsThem, ()) {
  RandomWorld world;
  world.claims_ = {{"a", {"x"}}, {"b", {"x", "y"}}, {"c", {"y", "z"}}};
  for (const auto& [pod, claims] : world.claims_) {
    world.Do(world.pods_->OnPod(PodJson(pod, claims), world.now_));
    for (int i = *rc::gen::inRange(0, 12); i > 0; --i) world.Step();
  }
  for (const auto& [pod, claims] : world.claims_) {
    for (int i = *rc::gen::inRange(0, 12); i > 0; --i) world.Step();
    if (*rc::gen::arbitrary<bool>()) world.EndContainer(pod, 0);
    if (*rc::gen::arbitrary<bool>()) {
      world.Do(world.pods_->OnPod(Deleted(PodJson(pod, claims)), world.now_));
    } else {
      world.Do(world.pods_->OnPodGone("uid-" + pod, world.now_));
    }
  }
  for (int i = 0; i < 2000 && (world.pods_->pod_count() > 0 || !world.held_.empty()); ++i) {
    world.Step();
  }
  RC_ASSERT(world.pods_->pod_count() == 0U);
  RC_ASSERT(world.held_.empty());
  RC_ASSERT(ParseJson(world.pods_->Checkpoint())["claims"].empty());
}
// As above, with a runner that is killed and starts again at any moment.
RC_GTEST_PROP(NodePodsPropertyTest, NoRestartOfTheRunnerLosesAClaimOrLiesAboutAPod, ()) {
  RandomWorld world;
  world.claims_ = {{"a", {"x"}}, {"b", {"x", "y"}}, {"c", {"y", "z"}}};
  const std::string policy = *rc::gen::element("Always", "OnFailure", "Never");
  for (const auto& [name, claims] : world.claims_) {
    json pod = PodJson(name, claims);
    pod["spec"]["restartPolicy"] = policy;
    world.objects_[name] = pod;
    world.Do(world.pods_->OnPod(pod, world.now_));
  }
  for (int i = *rc::gen::inRange(0, 80); i > 0; --i) {
    const int event = *rc::gen::inRange(0, 12);
    if (event == 0) {
      world.Restart();
    } else if (event <= 2) {
      const std::string pod = *rc::gen::element("a", "b", "c");
      world.EndContainer(pod, *rc::gen::inRange(0, 2));
    } else {
      world.Step();
    }
  }
  for (const auto& [name, claims] : world.claims_) {
    if (*rc::gen::arbitrary<bool>()) {
      world.objects_[name] = Deleted(world.objects_[name]);
      world.Do(world.pods_->OnPod(world.objects_[name], world.now_));
    } else {
      world.objects_.erase(name);
      world.Do(world.pods_->OnPodGone("uid-" + name, world.now_));
    }
    if (*rc::gen::inRange(0, 3) == 0) world.Restart();
  }
  for (int i = 0; i < 3000 && (world.pods_->pod_count() > 0 || !world.held_.empty()); ++i) {
    world.Step();
  }
  RC_ASSERT(world.pods_->pod_count() == 0U);
  RC_ASSERT(world.held_.empty());
  for (int i = 0; i < 200 && (world.pods_->NextDeadline() || !world.pending_.empty()); ++i) {
    world.Step();
  }
  RC_ASSERT(ParseJson(world.pods_->Checkpoint())["claims"].empty());
}

}  // namespace
}  // namespace tahoma::sim
