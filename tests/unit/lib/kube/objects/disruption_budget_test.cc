#include "lib/kube/objects/disruption_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using ::testing::HasSubstr;

DisruptionBudget Parsed(const char* text) { return *ParseDisruptionBudget(ParseJson(text)); }

TEST(ParseDisruptionBudgetTest, ReadsWhomItGuardsAndHowManyPodsMayEnd) {
  const DisruptionBudget budget = Parsed(R"({"metadata": {"name": "web", "namespace": "ns",
      "uid": "u", "generation": 3},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"},
      "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["batch"]}]}},
    "status": {"observedGeneration": 3, "disruptionsAllowed": 2}})");
  EXPECT_EQ(budget.allowed, 2);
  EXPECT_TRUE(budget.Guards("ns", {{"app", "web"}, {"tier", "front"}}));
  EXPECT_TRUE(budget.Guards("ns", {{"app", "web"}}));
  EXPECT_FALSE(budget.Guards("ns", {{"app", "web"}, {"tier", "batch"}}));
  EXPECT_FALSE(budget.Guards("other", {{"app", "web"}}));
}

TEST(ParseDisruptionBudgetTest, AnEmptySelectorGuardsAllAndNoneGuardsNobody) {
  EXPECT_TRUE(Parsed(R"({"metadata": {"name": "a", "namespace": "ns"},
                         "spec": {"selector": {}}})")
                  .Guards("ns", {}));
  EXPECT_FALSE(Parsed(R"({"metadata": {"name": "a", "namespace": "ns"}, "spec": {}})")
                   .Guards("ns", {{"app", "web"}}));
}

TEST(ParseDisruptionBudgetTest, AStatusOlderThanTheSpecAllowsNothing) {
  EXPECT_EQ(Parsed(R"({"metadata": {"name": "a", "namespace": "ns", "generation": 4},
    "spec": {"selector": {}}, "status": {"observedGeneration": 3, "disruptionsAllowed": 2}})")
                .allowed,
            0);
}

TEST(ParseDisruptionBudgetTest, AnInvalidSelectorIsRefusedWithItsPlace) {
  const auto refused = ParseDisruptionBudget(ParseJson(R"({"metadata": {"name": "a",
    "namespace": "ns"}, "spec": {"selector": {"matchExpressions": [
      {"key": "a", "operator": "Equals", "values": ["b"]}]}}})"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("spec.selector"));
}

}  // namespace
}  // namespace tahoma::kube
