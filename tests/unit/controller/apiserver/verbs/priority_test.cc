// Priority classes, and what they do to pods, as a real API server's admission does it.

#include <gmock/gmock.h>

#include <string>

#include "tests/support/api_fixture.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPriorityClasses = "/apis/scheduling.k8s.io/v1/priorityclasses";

class PriorityTest : public testing::ApiFixture {
 protected:
  static Json ClassOf(const std::string& name, int value, const Json& more = Json::object()) {
    Json made = {{"metadata", {{"name", name}}}, {"value", value}};
    made.update(more);
    return made;
  }
  Answer MakePod(const std::string& name, const Json& more) {
    Json pod = PodOf(name);
    pod["spec"].update(more);
    return Call("POST", kPods, pod);
  }
};

TEST_F(PriorityTest, TheSystemsClassesAreThereFromTheStartAndStay) {
  const Answer list = Call("GET", kPriorityClasses);
  ASSERT_EQ(list.status, 200);
  EXPECT_THAT(list.names(), ElementsAre("system-cluster-critical", "system-node-critical"));
  EXPECT_EQ(list.body["items"][0]["value"], 2'000'000'000);
  EXPECT_EQ(list.body["items"][1]["value"], 2'000'001'000);
  const Answer kept = Call("DELETE", kPriorityClasses + "/system-node-critical");
  EXPECT_EQ(kept.status, 403);
  EXPECT_EQ(kept.message(),
            "priorityclasses.scheduling.k8s.io \"system-node-critical\" is forbidden: this is a "
            "system priority class and cannot be deleted");
  Restart();
  EXPECT_EQ(Call("GET", kPriorityClasses).names().size(), 2U);
}

TEST_F(PriorityTest, AClassIsMadeShownAndChangedInWhatMayChange) {
  const Answer made = Call("POST", kPriorityClasses, ClassOf("high", 1000));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["preemptionPolicy"], "PreemptLowerPriority");
  const Answer table =
      Call("GET", kPriorityClasses + "/high", "",
           {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}});
  ASSERT_EQ(table.status, 200);
  EXPECT_EQ(table.body["columnDefinitions"][1]["name"], "Value");
  EXPECT_EQ(table.body["rows"][0]["cells"],
            (Json{"high", 1000, false, "0s", "PreemptLowerPriority"}));
  const Answer described =
      Patch(kPriorityClasses + "/high", "merge-patch+json", {{"description", "d"}});
  EXPECT_EQ(described.status, 200);
  EXPECT_EQ(described.body["metadata"]["generation"], 1);
  const Answer moved = Patch(kPriorityClasses + "/high", "merge-patch+json", {{"value", 5}});
  EXPECT_EQ(moved.status, 422);
  EXPECT_THAT(moved.message(), HasSubstr("value: Forbidden: may not be changed in an update."));
  EXPECT_THAT(Patch(kPriorityClasses + "/high", "merge-patch+json", {{"preemptionPolicy", "Never"}})
                  .message(),
              HasSubstr("preemptionPolicy: Invalid value: \"Never\": field is immutable"));
  EXPECT_EQ(Call("DELETE", kPriorityClasses + "/high").status, 200);
}

TEST_F(PriorityTest, ValuesAndNamesOfTheSystemAreNotForOthers) {
  EXPECT_THAT(Call("POST", kPriorityClasses, ClassOf("huge", 1'000'000'001)).message(),
              HasSubstr("value: Forbidden: maximum allowed value of a user defined priority is "
                        "1000000000"));
  EXPECT_THAT(Call("POST", kPriorityClasses, ClassOf("system-mine", 1)).message(),
              HasSubstr("metadata.name: Forbidden: priority class names with 'system-' prefix are "
                        "reserved for system use only. error: system-mine is not a known system "
                        "priority class"));
  EXPECT_THAT(Patch(kPriorityClasses + "/system-node-critical", "merge-patch+json",
                    {{"globalDefault", true}})
                  .message(),
              HasSubstr("globalDefault of system-node-critical PriorityClass must be false"));
}

TEST_F(PriorityTest, APodHasThePriorityAndPolicyOfItsClass) {
  ASSERT_EQ(
      Call("POST", kPriorityClasses, ClassOf("high", 1000, {{"preemptionPolicy", "Never"}})).status,
      201);
  const Answer pod = MakePod("a", {{"priorityClassName", "high"}});
  ASSERT_EQ(pod.status, 201) << pod.text;
  EXPECT_EQ(pod.body["spec"]["priority"], 1000);
  EXPECT_EQ(pod.body["spec"]["preemptionPolicy"], "Never");
  const Answer critical = MakePod("b", {{"priorityClassName", "system-node-critical"}});
  EXPECT_EQ(critical.body["spec"]["priority"], 2'000'001'000);
  const Answer none = MakePod("c", Json::object());
  EXPECT_EQ(none.body["spec"]["priority"], 0);
  EXPECT_EQ(none.body["spec"]["preemptionPolicy"], "PreemptLowerPriority");
  EXPECT_FALSE(none.body["spec"].contains("priorityClassName"));
}

TEST_F(PriorityTest, APodOfAClassThatIsNotThereIsForbidden) {
  const Answer refused = MakePod("a", {{"priorityClassName", "nope"}});
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "pods \"a\" is forbidden: no PriorityClass with name nope was found");
}

TEST_F(PriorityTest, APodsPriorityMustBeThatOfItsClass) {
  ASSERT_EQ(Call("POST", kPriorityClasses, ClassOf("high", 1000)).status, 201);
  const Answer refused = MakePod("a", {{"priorityClassName", "high"}, {"priority", 7}});
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(
      refused.message(),
      "pods \"a\" is forbidden: the integer value of priority (7) must not be provided in pod "
      "spec; priority admission controller computed 1000 from the given PriorityClass name");
  EXPECT_EQ(MakePod("a", {{"priorityClassName", "high"}, {"priority", 1000}}).status, 201);
  EXPECT_EQ(MakePod("b", {{"priority", 7}}).status, 403);
  EXPECT_THAT(MakePod("b", {{"preemptionPolicy", "Never"}}).message(),
              HasSubstr("the string value of PreemptionPolicy (Never) must not be provided in pod "
                        "spec; priority admission controller computed PreemptLowerPriority from"));
}

TEST_F(PriorityTest, OneClassAtMostIsTheDefault) {
  ASSERT_EQ(Call("POST", kPriorityClasses, ClassOf("low", -5, {{"globalDefault", true}})).status,
            201);
  const Answer second =
      Call("POST", kPriorityClasses, ClassOf("other", 1, {{"globalDefault", true}}));
  EXPECT_EQ(second.status, 403);
  EXPECT_EQ(
      second.message(),
      "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass low is already "
      "marked as default. Only one default can exist");
  const Answer pod = MakePod("a", Json::object());
  EXPECT_EQ(pod.body["spec"]["priority"], -5);
  EXPECT_EQ(pod.body["spec"]["priorityClassName"], "low");
  EXPECT_EQ(Patch(kPriorityClasses + "/low", "merge-patch+json", {{"description", "d"}}).status,
            200);
}

TEST_F(PriorityTest, AnUpdateThatLeavesThePriorityOutKeepsIt) {
  ASSERT_EQ(Call("POST", kPriorityClasses, ClassOf("high", 1000)).status, 201);
  Json pod = MakePod("a", {{"priorityClassName", "high"}}).body;
  pod["spec"].erase("priority");
  pod["spec"].erase("preemptionPolicy");
  pod["metadata"]["labels"] = {{"x", "y"}};
  const Answer updated = Call("PUT", kPods + "/a", pod);
  EXPECT_EQ(updated.status, 200) << updated.text;
  EXPECT_EQ(updated.body["spec"]["priority"], 1000);
  EXPECT_EQ(Patch(kPods + "/a", "merge-patch+json", {{"spec", {{"priority", 1}}}}).status, 422);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
