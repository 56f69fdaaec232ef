// pods/eviction against PodDisruptionBudgets, in kube-apiserver's order and words.

#include <gmock/gmock.h>

#include <string>

#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::HasSubstr;

class EvictionTest : public testing::ApiFixture {
 protected:
  static inline const std::string kPods = "/api/v1/namespaces/default/pods";
  static inline const std::string kBudgets =
      "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

  // A pod with a node.
  void MakePod(const std::string& name, const char* phase, bool ready) {
    const Json pod = {
        {"metadata", {{"name", name}, {"labels", {{"app", "web"}}}}},
        {"spec",
         {{"nodeName", "n"}, {"containers", Json::array({{{"name", "c"}, {"image", "i"}}})}}}};
    ASSERT_EQ(Call("POST", kPods, pod).status, 201);
    const Json status = {
        {"phase", phase},
        {"conditions", Json::array({{{"type", "Ready"}, {"status", ready ? "True" : "False"}}})}};
    ASSERT_EQ(
        Patch(kPods + "/" + name + "/status", "merge-patch+json", {{"status", status}}).status,
        200);
  }
  void MakeBudget(const std::string& name, int allowed, Json spec = Json::object(),
                  int healthy = 1) {
    spec["minAvailable"] = 1;
    spec["selector"] = {{"matchLabels", {{"app", "web"}}}};
    ASSERT_EQ(Call("POST", kBudgets, {{"metadata", {{"name", name}}}, {"spec", spec}}).status, 201);
    const Json status = {{"observedGeneration", 1},
                         {"disruptionsAllowed", allowed},
                         {"currentHealthy", healthy},
                         {"desiredHealthy", 1},
                         {"expectedPods", 1}};
    ASSERT_EQ(
        Patch(kBudgets + "/" + name + "/status", "merge-patch+json", {{"status", status}}).status,
        200);
  }
  Answer Evict(const std::string& name, const Json& options = nullptr,
               const std::string& query = "") {
    Json body = {{"metadata", {{"name", name}}}};
    if (!options.is_null()) body["deleteOptions"] = options;
    return Call("POST", kPods + "/" + name + "/eviction" + query, body);
  }
  bool IsLeaving(const std::string& name) {
    return Call("GET", kPods + "/" + name).body["metadata"].contains("deletionTimestamp");
  }
  Json StatusOf(const std::string& budget) {
    return Call("GET", kBudgets + "/" + budget).body["status"];
  }
};

TEST_F(EvictionTest, ABudgetIsCountedDownAndThenRefuses) {
  MakePod("a", "Running", true);
  MakePod("b", "Running", true);
  MakeBudget("web", 1, Json::object(), 2);
  EXPECT_EQ(Evict("a").status, 201);
  EXPECT_TRUE(IsLeaving("a"));
  EXPECT_EQ(StatusOf("web")["disruptionsAllowed"], 0);
  EXPECT_TRUE(StatusOf("web")["disruptedPods"].contains("a"));
  const Json conditions = Call("GET", kPods + "/a").body["status"]["conditions"];
  EXPECT_EQ(conditions.back()["type"], "DisruptionTarget");
  EXPECT_EQ(conditions.back()["reason"], "EvictionByEvictionAPI");

  Patch(kBudgets + "/web/status", "merge-patch+json", {{"status", {{"currentHealthy", 1}}}});
  const Answer refused = Evict("b");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.reason(), "TooManyRequests");
  EXPECT_EQ(refused.message(), "Cannot evict pod as it would violate the pod's disruption budget.");
  EXPECT_EQ(refused.body["details"]["causes"],
            Json::array({{{"reason", "DisruptionBudget"},
                          {"message",
                           "The disruption budget web needs 1 healthy pods and has 1 "
                           "currently"}}}));
  EXPECT_FALSE(IsLeaving("b"));
}

TEST_F(EvictionTest, ABudgetThatIsNotCountedYetAsksToComeAgain) {
  MakePod("a", "Running", true);
  MakeBudget("web", 1);
  Patch(kBudgets + "/web", "merge-patch+json", {{"spec", {{"minAvailable", 2}}}});
  const Answer refused = Evict("a");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("Retry-After"), "10");
  EXPECT_EQ(refused.body["details"]["causes"][0]["message"],
            "The disruption budget web is still being processed by the server.");
}

TEST_F(EvictionTest, TwoBudgetsAreAMistake) {
  MakePod("a", "Running", true);
  MakeBudget("one", 1);
  MakeBudget("two", 1);
  const Answer refused = Evict("a");
  EXPECT_EQ(refused.status, 500);
  EXPECT_THAT(refused.message(), HasSubstr("more than one PodDisruptionBudget"));
}

TEST_F(EvictionTest, PodsThatServeNobodyAreNotCounted) {
  MakeBudget("web", 0);
  for (const char* phase : {"Pending", "Succeeded", "Failed"}) {
    MakePod("p", phase, false);
    EXPECT_EQ(Evict("p").status, 201) << phase;
    Call("DELETE", kPods + "/p", {{"gracePeriodSeconds", 0}});
  }
  EXPECT_FALSE(StatusOf("web").contains("disruptedPods"));
}

TEST_F(EvictionTest, AnUnhealthyPodGoesIfTheOthersSufficeOrThePolicySaysSo) {
  MakePod("sick", "Running", false);
  MakeBudget("web", 0, Json::object(), 0);
  EXPECT_EQ(Evict("sick").status, 429);
  Patch(kBudgets + "/web/status", "merge-patch+json", {{"status", {{"currentHealthy", 1}}}});
  EXPECT_EQ(Evict("sick").status, 201);

  MakePod("worse", "Running", false);
  Call("DELETE", kBudgets + "/web");
  MakeBudget("any", 0, {{"unhealthyPodEvictionPolicy", "AlwaysAllow"}}, 0);
  EXPECT_EQ(Evict("worse").status, 201);
}

TEST_F(EvictionTest, ADryRunChangesNothingAndSaysTheSame) {
  MakePod("a", "Running", true);
  MakeBudget("web", 1);
  EXPECT_EQ(Evict("a", nullptr, "?dryRun=All").status, 201);
  EXPECT_EQ(Evict("a", {{"dryRun", Json::array({"All"})}}).status, 201);
  EXPECT_FALSE(IsLeaving("a"));
  EXPECT_EQ(StatusOf("web")["disruptionsAllowed"], 1);
  Patch(kBudgets + "/web/status", "merge-patch+json", {{"status", {{"disruptionsAllowed", 0}}}});
  EXPECT_EQ(Evict("a", nullptr, "?dryRun=All").status, 429);
}

TEST_F(EvictionTest, APreconditionIsCheckedBeforeTheBudgetIsAsked) {
  MakePod("a", "Running", true);
  MakeBudget("web", 1);
  EXPECT_EQ(Evict("a", {{"preconditions", {{"uid", "another"}}}}).status, 409);
  EXPECT_EQ(Evict("a", {{"preconditions", {{"resourceVersion", "1"}}}}).status, 409);
  EXPECT_EQ(StatusOf("web")["disruptionsAllowed"], 1);
  const std::string version = Call("GET", kPods + "/a").version();
  EXPECT_EQ(Evict("a", {{"preconditions", {{"resourceVersion", version}}}}).status, 201);
}

TEST_F(EvictionTest, AnotherKindIsNoEviction) {
  MakePod("a", "Running", true);
  const Answer refused =
      Call("POST", kPods + "/a/eviction",
           {{"kind", "Pod"}, {"apiVersion", "v1"}, {"metadata", {{"name", "a"}}}});
  EXPECT_EQ(refused.status, 400) << refused.text;
  EXPECT_FALSE(IsLeaving("a"));
}

TEST_F(EvictionTest, TheNameIsThatOfTheUrl) {
  MakePod("a", "Running", true);
  const Answer refused = Call("POST", kPods + "/a/eviction", {{"metadata", {{"name", "b"}}}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.message(), "name in URL does not match name in Eviction object");
  EXPECT_EQ(Evict("none").status, 404);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
