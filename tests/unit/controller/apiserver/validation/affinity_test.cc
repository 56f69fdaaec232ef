// Tests what a pod's affinity and spread must be, by the texts of Kubernetes, and what its
// matchLabelKeys become. tests/cluster/conformance_affinity.py asks a real server the same and
// more.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

using ::testing::ElementsAre;

const Kind& Pods() {
  for (const auto& kind : BuiltInKinds()) {
    if (kind->plural == "pods") return *kind;
  }
  ADD_FAILURE();
  return *BuiltInKinds().front();
}

Json PodWith(std::string_view affinity) {
  Json pod = {{"metadata",
               {{"name", "p"}, {"namespace", "default"}, {"labels", {{"app", "a"}, {"tier", ""}}}}},
              {"spec", {{"containers", {{{"name", "a"}, {"image", "i:v1"}}}}}}};
  pod["spec"]["affinity"] = ParseJson(affinity);
  ApplyDefaults(*Pods().schema, pod);
  ApplyKindDefaults(Pods(), "2026-11-21T10:00:00Z", pod);
  PrepareCreate(Pods(), "2026-11-21T10:00:00Z", pod);
  return pod;
}

// Each "field: message", the field from the affinity on.
std::vector<std::string> Refusals(std::string_view affinity) {
  std::vector<std::string> texts;
  for (const Cause& cause : ValidateCreate(Pods(), PodWith(affinity))) {
    std::string field = cause.field;
    EXPECT_TRUE(field.starts_with("spec.affinity.")) << field;
    texts.push_back(field.substr(14) + ": " + cause.message);
  }
  return texts;
}

// The same for one term of a podAntiAffinity.
std::vector<std::string> TermRefusals(std::string_view term) {
  std::vector<std::string> texts;
  const std::string prefix = "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
  for (const std::string& text : Refusals(fmt::format(
           R"({{"podAntiAffinity": {{"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}})",
           term))) {
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    texts.push_back(text.substr(prefix.size()));
  }
  return texts;
}

std::string Selecting(std::string_view requirement) {
  return fmt::format(R"({{"topologyKey": "k", "labelSelector": {{"matchExpressions": [{}]}}}})",
                     requirement);
}

TEST(AffinityTest, ATermThatKubernetesTakesIsTaken) {
  EXPECT_THAT(TermRefusals(R"({"topologyKey": "k"})"), ElementsAre());
  EXPECT_THAT(TermRefusals(Selecting(R"({"key": "a", "operator": "In", "values": ["1", ""]},
                                        {"key": "a", "operator": "DoesNotExist"})")),
              ElementsAre());
}

TEST(AffinityTest, ASelectorOfPodsIsCheckedInKubernetesWords) {
  EXPECT_THAT(TermRefusals(Selecting(R"({"key": "a", "operator": "Gt", "values": ["1"]})")),
              ElementsAre(".labelSelector.matchExpressions[0].operator: Invalid value: \"Gt\": "
                          "not a valid selector operator"));
  EXPECT_THAT(TermRefusals(Selecting(R"({"key": "a", "operator": "NotIn"})")),
              ElementsAre(".labelSelector.matchExpressions[0].values: Required value: must be "
                          "specified when `operator` is 'In' or 'NotIn'"));
  EXPECT_THAT(TermRefusals(Selecting(R"({"key": "a", "operator": "Exists", "values": ["1"]})")),
              ElementsAre(".labelSelector.matchExpressions[0].values: Forbidden: may not be "
                          "specified when `operator` is 'Exists' or 'DoesNotExist'"));
  EXPECT_EQ(TermRefusals(R"({"topologyKey": "k", "labelSelector": {"matchLabels": {"a b": "-"}}})")
                .size(),
            2U);
}

TEST(AffinityTest, ATermNeedsATopologyKey) {
  EXPECT_THAT(TermRefusals(R"({"topologyKey": ""})").front(),
              ".topologyKey: Required value: can not be empty");
}

TEST(AffinityTest, NullsInListsAndMapsAreEmptyTexts) {
  EXPECT_THAT(TermRefusals(R"({"topologyKey": "k", "namespaces": [null], "matchLabelKeys": [null],
                               "labelSelector": {"matchLabels": {"a": null}, "matchExpressions":
                                 [{"key": "a", "operator": "In", "values": [null]}]}})")
                  .size(),
              ::testing::Ge(1U));
}

TEST(AffinityTest, MatchLabelKeysBecomeRequirementsOfTheSelector) {
  const Json pod = PodWith(R"({"podAntiAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": [
      {"topologyKey": "k", "labelSelector": {}, "matchLabelKeys": ["app", "none"],
       "mismatchLabelKeys": ["tier"]},
      {"topologyKey": "k", "matchLabelKeys": ["app"]}]}})");
  const Json& terms =
      pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  EXPECT_EQ(terms[0]["labelSelector"], ParseJson(R"({"matchExpressions": [
    {"key": "app", "operator": "In", "values": ["a"]},
    {"key": "tier", "operator": "NotIn", "values": [""]}]})"));
  EXPECT_FALSE(terms[1].contains("labelSelector"));
}

TEST(AffinityTest, MatchLabelKeysMustNotContradictTheSelector) {
  EXPECT_THAT(TermRefusals(R"({"topologyKey": "k", "matchLabelKeys": ["app"]})"),
              ElementsAre(".matchLabelKeys: Forbidden: must not be specified when labelSelector "
                          "is not set"));
  EXPECT_THAT(TermRefusals(R"({"topologyKey": "k", "labelSelector": {"matchLabels": {"app": "b"}},
                               "matchLabelKeys": ["app"]})"),
              ElementsAre("[0]: Invalid value: \"app\": exists in both matchLabelKeys and "
                          "labelSelector"));
}

TEST(AffinityTest, NodesAreComparedByNumbersToo) {
  const auto nodes = [](std::string_view term) {
    return Refusals(fmt::format(
        R"({{"nodeAffinity": {{"requiredDuringSchedulingIgnoredDuringExecution":
             {{"nodeSelectorTerms": [{}]}}}}}})",
        term));
  };
  EXPECT_THAT(nodes(R"({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})"),
              ElementsAre());
  EXPECT_EQ(nodes(R"({"matchExpressions": [{"key": "a", "operator": "Lt"}]})").size(), 1U);
  EXPECT_EQ(nodes(R"({"matchExpressions": [{"key": "a", "operator": "Near"}]})").size(), 1U);
  EXPECT_EQ(nodes(R"({"matchFields": [{"key": "metadata.uid", "operator": "Exists"}]})").size(),
            2U);
  EXPECT_EQ(nodes("").size(), 1U) << "at least one term";
}

TEST(AffinityTest, WeightsAreFrom1To100) {
  for (const int weight : {0, 101}) {
    EXPECT_THAT(
        Refusals(fmt::format(
            R"({{"nodeAffinity": {{"preferredDuringSchedulingIgnoredDuringExecution":
                 [{{"weight": {}, "preference": {{}}}}]}}}})",
            weight)),
        ElementsAre(fmt::format("nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]."
                                "weight: Invalid value: {}: must be in the range 1-100",
                                weight)));
  }
}

// Each "field: message" of a pod with that one constraint, the field from the constraint on.
std::vector<std::string> SpreadRefusals(std::string_view constraint) {
  Json pod = PodWith("{}");
  pod["spec"]["topologySpreadConstraints"] = Json::array({ParseJson(constraint)});
  PrepareCreate(Pods(), "2026-11-21T10:00:00Z", pod);
  std::vector<std::string> texts;
  for (const Cause& cause : ValidateCreate(Pods(), pod)) {
    EXPECT_TRUE(cause.field.starts_with("spec.topologySpreadConstraints[0].")) << cause.field;
    texts.push_back(cause.field.substr(34) + ": " + cause.message);
  }
  return texts;
}

TEST(SpreadTest, AConstraintThatKubernetesTakesIsTaken) {
  EXPECT_THAT(SpreadRefusals(R"({"maxSkew": 1, "topologyKey": "rack", "minDomains": 2,
                                 "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {},
                                 "matchLabelKeys": ["app"], "nodeTaintsPolicy": "Honor"})"),
              ElementsAre());
}

TEST(SpreadTest, ASkewAndDomainsMustBePositive) {
  EXPECT_THAT(SpreadRefusals(R"({"maxSkew": 0, "topologyKey": "rack", "minDomains": -1,
                                 "whenUnsatisfiable": "DoNotSchedule"})"),
              ElementsAre("maxSkew: Invalid value: 0: must be greater than zero",
                          "minDomains: Invalid value: -1: must be greater than zero"));
}

TEST(SpreadTest, AWishHasNoLeastNumberOfDomains) {
  EXPECT_THAT(SpreadRefusals(R"({"maxSkew": 1, "topologyKey": "rack", "minDomains": 2,
                                 "whenUnsatisfiable": "ScheduleAnyway"})"),
              ElementsAre("minDomains: Invalid value: 2: can only use minDomains if "
                          "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"));
}

TEST(SpreadTest, UnknownWordsAreRefusedByName) {
  EXPECT_THAT(SpreadRefusals(R"({"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "Maybe",
                                 "nodeAffinityPolicy": "Never"})"),
              ElementsAre("nodeAffinityPolicy: Unsupported value: \"Never\": supported values: "
                          "\"Honor\", \"Ignore\"",
                          "whenUnsatisfiable: Unsupported value: \"Maybe\": supported values: "
                          "\"DoNotSchedule\", \"ScheduleAnyway\""));
  EXPECT_THAT(SpreadRefusals(R"({"maxSkew": 1, "topologyKey": "",
                                 "whenUnsatisfiable": "DoNotSchedule"})"),
              ElementsAre("topologyKey: Required value: can not be empty"));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
