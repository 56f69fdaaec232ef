// An API server is restored from a backup: a node writes statuses again, and treats pods that come
// back, that are bound elsewhere, or whose deletion was lost.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/podrunner/node_story.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;

class RestoredApiTest : public NodePodsTest {
 protected:
  // A complete list of the node's pods.
  NodeActions List(const std::vector<json>& objects) {
    NodeActions all;
    for (const json& object : objects) Append(pods_.OnPod(object, now_), all);
    Append(pods_.OnPodsSynced(now_), all);
    return all;
  }
  static void Append(NodeActions from, NodeActions& to) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
  }
  json StatusOf(const std::string& pod) const { return pods_.Find("uid-" + pod)->Status(); }
  static json WithStatus(json pod, json status) {
    pod["status"] = std::move(status);
    return pod;
  }
  static json InPhase(json pod, const std::string& phase) {
    return WithStatus(std::move(pod), {{"phase", phase}});
  }
  void EndPod(const std::string& name, const std::vector<std::string>& claims, int code = 0) {
    Exit(pods_, name, code);
    for (const std::string& claim : claims) {
      pods_.OnClaimUnprepared("uid-" + claim, absl::OkStatus(), now_);
    }
  }
};

// ---- Statuses ----------------------------------------------------------------------------------

// The defect: a status was written only when it changed, so after a restore the pod stayed Pending.
TEST_F(RestoredApiTest, AStatusThatTheServerLostIsWrittenAgain) {
  RunPod(pods_, "a", {});
  EXPECT_EQ(Describe(List({PodJson("a", {})})), Story{"a is Running"});
  EXPECT_EQ(Describe(List({InPhase(PodJson("a", {}), "Pending")})), Story{"a is Running"})
      << "as often as a list shows another one";
}

TEST_F(RestoredApiTest, AListWithTheWrittenStatusCausesNoWrite) {
  RunPod(pods_, "a", {});
  EXPECT_EQ(Describe(List({WithStatus(PodJson("a", {}), StatusOf("a"))})), Story{});
  // A server leaves out empty members, and other writers add members and conditions of their own.
  json shown = StatusOf("a");
  shown["qosClass"] = "BestEffort";
  shown["containerStatuses"][0].erase("lastState");
  for (json& condition : shown["conditions"]) condition.erase("lastProbeTime");
  shown["conditions"].insert(shown["conditions"].begin(), {{"type", "Other"}, {"status", "True"}});
  EXPECT_EQ(Describe(List({WithStatus(PodJson("a", {}), shown)})), Story{});
  shown["containerStatuses"][0]["restartCount"] = 7;
  EXPECT_EQ(Describe(List({WithStatus(PodJson("a", {}), shown)})), Story{"a is Running"});
}

// An event may be older than the last write; only a list is the truth.
TEST_F(RestoredApiTest, AnEventThatShowsAnOlderStatusAsksForNothing) {
  RunPod(pods_, "a", {});
  EXPECT_EQ(Describe(pods_.OnPod(InPhase(PodJson("a", {}), "Pending"), now_)), Story{});
}

TEST_F(RestoredApiTest, APodThatHasSucceededIsNotRunASecondTime) {
  RunPod(pods_, "a", {"chips"});
  EndPod("a", {"chips"});
  for (const char* phase : {"Pending", "Running"}) {
    EXPECT_EQ(Describe(List({InPhase(PodJson("a", {"chips"}), phase)})), Story{"a is Succeeded"});
  }
}

TEST_F(RestoredApiTest, ARefusalThatWasLostIsWrittenAgain) {
  json bad = PodJson("a", {});
  bad["spec"]["containers"][0]["name"] = "../etc";
  EXPECT_EQ(Describe(List({bad})).at(0), "a is Failed");
  EXPECT_EQ(Describe(List({InPhase(bad, "Failed")})), Story{});
  EXPECT_EQ(Describe(List({bad})), Story{"a is Failed"});
  EXPECT_EQ(Describe(pods_.OnPod(bad, now_)), Story{});
}

// ---- Claims ------------------------------------------------------------------------------------

// The backup may show the pod unbound, and the pod was bound here again before this list was read.
TEST_F(RestoredApiTest, BeforeTheStatusOfAPodWithClaimsIsWrittenAgainItsDevicesAreCompared) {
  RunPod(pods_, "a", {"chips"});
  EXPECT_EQ(Describe(List({PodJson("a", {"chips"})})), Story{"read chips for a"});
  EXPECT_EQ(Describe(List({PodJson("a", {"chips"})})), Story{}) << "once at a time";
  EXPECT_EQ(Describe(pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_)),
            Story{"a is Running"});
}

TEST_F(RestoredApiTest, APodWithNewlyDecidedDevicesIsEndedAndStartedWithTheNewDevices) {
  const auto other_devices = [](ClaimFacts facts) {
    facts.devices = {"neuron.aws.com/node-0/neuron-device-1/r"};
    return facts;
  };
  const auto other_claim = [](ClaimFacts facts) {
    facts.uid = "uid-anew";
    return facts;
  };
  using Read = absl::StatusOr<std::vector<ClaimFacts>>;
  const std::map<std::string, Read> reads = {{"a", Read{{other_devices(Facts("of-a", {"a"}))}}},
                                             {"b", Read{{other_claim(Facts("of-b", {"b"}))}}},
                                             {"c", NotFound("resourceclaim default/of-c")}};
  for (const auto& [pod, read] : reads) {
    const std::string claim = "of-" + pod;
    RunPod(pods_, pod, {claim});
    List({PodJson(pod, {claim})});
    EXPECT_EQ(Describe(pods_.OnClaimsRead("uid-" + pod, read, now_)), Story{"kill " + pod});
    EXPECT_EQ(Describe(Exit(pods_, pod, 137)), (Story{"unprepare " + claim, "save"}));
    EXPECT_EQ(Deeds(pods_.OnClaimUnprepared("uid-" + claim, absl::OkStatus(), now_)),
              (Story{"save", "read " + claim + " for " + pod}));
  }
}

TEST_F(RestoredApiTest, ClaimsThatCannotBeReadAreReadAgain) {
  RunPod(pods_, "a", {"chips"});
  List({PodJson("a", {"chips"})});
  EXPECT_EQ(Describe(pods_.OnClaimsRead("uid-a", Unavailable("away"), now_)), Story{});
  EXPECT_EQ(pods_.NextDeadline(), now_ + kFirstPrepareRetry);
  now_ += kFirstPrepareRetry;
  EXPECT_EQ(Describe(pods_.OnTick(now_)), Story{"read chips for a"});
  EXPECT_EQ(pods_.NextDeadline(), std::nullopt);
  EXPECT_EQ(Describe(pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_)),
            Story{"a is Running"});
}

// ---- Deletions ---------------------------------------------------------------------------------

TEST_F(RestoredApiTest, ARemovalThatWasLostIsAskedForAgain) {
  RunPod(pods_, "a", {});
  pods_.OnPod(Deleted(PodJson("a", {})), now_);
  EXPECT_EQ(Describe(Exit(pods_, "a", 143)), (Story{"a is Failed", "delete a"}));
  EXPECT_EQ(Describe(pods_.OnPod(Deleted(PodJson("a", {})), now_)), Story{});
  EXPECT_EQ(Describe(List({Deleted(PodJson("a", {}))})), (Story{"a is Failed", "delete a"}));
  pods_.OnPodGone("uid-a", now_);
  EXPECT_EQ(pods_.pod_count(), 0U);
}

// As a kubelet: a node removes only pods with a deletion, and runs no pod a second time.
TEST_F(RestoredApiTest, AFinishedPodWhoseDeletionWasLostStaysUntilDeletedAgain) {
  RunPod(pods_, "a", {});
  pods_.OnPod(Deleted(PodJson("a", {})), now_);
  Exit(pods_, "a", 143);
  EXPECT_EQ(Describe(List({InPhase(PodJson("a", {}), "Running")})), Story{"a is Failed"});
  EXPECT_EQ(Describe(pods_.OnPod(Deleted(PodJson("a", {})), now_)), Story{"delete a"});
}

TEST_F(RestoredApiTest, APodWhoseDeletionWasLostWhileItStoppedEndsAndIsNotRemoved) {
  RunPod(pods_, "a", {"chips"});
  pods_.OnPod(Deleted(PodJson("a", {"chips"})), now_);
  EXPECT_EQ(Deeds(List({PodJson("a", {"chips"})})), Story{"read chips for a"});
  EXPECT_EQ(Deeds(pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_)), Story{});
  EXPECT_EQ(Deeds(Exit(pods_, "a", 143)), (Story{"unprepare chips", "save"}));
  EXPECT_EQ(Describe(pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_)),
            (Story{"save", "a is Failed"}));
}

// ---- Pods that come back -----------------------------------------------------------------------

TEST_F(RestoredApiTest, ARemovedPodThatComesBackWithDeletionIsRemovedWithoutRunning) {
  RunPod(pods_, "a", {});
  pods_.OnPod(Deleted(PodJson("a", {})), now_);
  Exit(pods_, "a", 143);
  pods_.OnPodGone("uid-a", now_);
  const json back = Deleted(InPhase(PodJson("a", {}), "Running"));
  EXPECT_EQ(Deeds(List({back})), Story{"delete a"});
}

// As a kubelet, which has forgotten the pod too.
TEST_F(RestoredApiTest, ARemovedPodThatComesBackWithoutDeletionRunsAsANewPod) {
  RunPod(pods_, "a", {});
  pods_.OnPod(Deleted(PodJson("a", {})), now_);
  Exit(pods_, "a", 143);
  pods_.OnPodGone("uid-a", now_);
  EXPECT_EQ(Deeds(List({InPhase(PodJson("a", {}), "Pending")})), Story{"run a"});
}

// The backup has the pod unbound; the pod is bound here again while its containers still end.
TEST_F(RestoredApiTest, APodBoundAgainWhileItsContainersEndStartsAfterTheirEnd) {
  RunPod(pods_, "a", {"chips"});
  EXPECT_EQ(Describe(pods_.OnPodGone("uid-a", now_)), Story{"kill a"});
  EXPECT_EQ(Describe(List({PodJson("a", {"chips"})})), Story{});
  EXPECT_EQ(Describe(Exit(pods_, "a", 137)), (Story{"unprepare chips", "save"}));
  EXPECT_EQ(Deeds(pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_)),
            (Story{"save", "read chips for a"}));
}

TEST_F(RestoredApiTest, APodBoundAgainAndRemovedWhileItsContainersEndIsForgotten) {
  RunPod(pods_, "a", {});
  pods_.OnPodGone("uid-a", now_);
  List({PodJson("a", {})});
  EXPECT_EQ(Describe(pods_.OnPodGone("uid-a", now_)), Story{});
  EXPECT_EQ(Describe(Exit(pods_, "a", 137)), Story{});
  EXPECT_EQ(pods_.pod_count(), 0U);
}

// ---- Whether to write --------------------------------------------------------------------------

TEST(MayWriteTest, OnlyToThePodItselfWhileItIsBoundHere) {
  const PodRef pod{.name_space = "default", .name = "a", .uid = "uid-a"};
  const json shown = PodJson("a", {});
  EXPECT_EQ(CheckWrite(shown, pod, "node-0", PodWrite::kStatus), absl::OkStatus());
  EXPECT_EQ(Message(CheckWrite(shown, pod, "node-1", PodWrite::kStatus)),
            "it is bound to \"node-0\"");
  const PodRef former{.name_space = "default", .name = "a", .uid = "uid-former"};
  EXPECT_EQ(Message(CheckWrite(shown, former, "node-0", PodWrite::kStatus)),
            "another pod (uid-a) has its name");
  json unbound = shown;
  unbound["spec"].erase("nodeName");
  EXPECT_EQ(Message(CheckWrite(unbound, pod, "node-0", PodWrite::kStatus)), "it is bound to \"\"");
}

TEST(MayWriteTest, APodIsRemovedOnlyWhileItIsBeingDeleted) {
  const PodRef pod{.name_space = "default", .name = "a", .uid = "uid-a"};
  EXPECT_EQ(CheckWrite(Deleted(PodJson("a", {})), pod, "node-0", PodWrite::kRemoval),
            absl::OkStatus());
  EXPECT_EQ(Message(CheckWrite(PodJson("a", {}), pod, "node-0", PodWrite::kRemoval)),
            "nobody asks for its deletion any more");
}

}  // namespace
}  // namespace tahoma::sim
