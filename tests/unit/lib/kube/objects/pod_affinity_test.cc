#include "lib/kube/objects/pod_affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using json = Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A pod's spec that must be apart from what this term selects.
json Apart(const std::string& term) {
  return {{"affinity",
           {{"podAntiAffinity",
             {{"requiredDuringSchedulingIgnoredDuringExecution", {ParseJson(term)}}}}}}};
}

PodAffinityTerm TermOf(const std::string& term) {
  const json spec = Apart(term);
  Reading reading(spec);
  const PodAffinity affinity = ParsePodAffinity(reading.root());
  EXPECT_TRUE(reading.status().ok()) << reading.status();
  return affinity.apart.at(0);
}

std::string WhyNot(const std::string& term) {
  const json spec = Apart(term);
  Reading reading(spec);
  ParsePodAffinity(reading.root());
  return std::string(Message(reading.status()));
}

TEST(PodAffinityTest, APodWithoutTermsHasNone) {
  const json spec = ParseJson(R"({"affinity": {"podAffinity": {
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}})");
  Reading reading(spec);
  EXPECT_TRUE(ParsePodAffinity(reading.root()).empty());
}

TEST(PodAffinityTest, BothKindsOfTermsAreRead) {
  const json spec = ParseJson(R"({"affinity": {
    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
      {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "a"}}}]},
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
      {"topologyKey": "host", "labelSelector": {"matchExpressions": [
        {"key": "group", "operator": "Exists"},
        {"key": "group", "operator": "NotIn", "values": ["a"]}]}}]}}})");
  Reading reading(spec);
  const PodAffinity affinity = ParsePodAffinity(reading.root());
  ASSERT_EQ(affinity.beside.size(), 1U);
  EXPECT_EQ(affinity.beside[0].topology_key, "rack");
  EXPECT_EQ(affinity.beside[0].label, "app");
  ASSERT_EQ(affinity.apart.size(), 1U);
  const PodAffinityTerm& apart = affinity.apart[0];
  EXPECT_EQ(apart.label, "group");
  EXPECT_TRUE(apart.Selects("ns", "ns", {{"group", "b"}}));
  EXPECT_FALSE(apart.Selects("ns", "ns", {{"group", "a"}}));
  EXPECT_FALSE(apart.Selects("ns", "ns", {{"grou", "b"}, {"groups", "b"}}));
}

TEST(PodAffinityTest, EveryOperatorSelectsAsKubernetesDoes) {
  const std::string all = R"({"topologyKey": "k", "labelSelector": {"matchLabels": {"a": "1"},
    "matchExpressions": [{"key": "b", "operator": "In", "values": ["1", "2"]},
                         {"key": "c", "operator": "DoesNotExist"}]}})";
  const PodAffinityTerm term = TermOf(all);
  EXPECT_TRUE(term.Selects("ns", "ns", {{"a", "1"}, {"b", "2"}}));
  EXPECT_FALSE(term.Selects("ns", "ns", {{"a", "1"}, {"b", "3"}}));
  EXPECT_FALSE(term.Selects("ns", "ns", {{"a", "1"}}));
  EXPECT_FALSE(term.Selects("ns", "ns", {{"a", "1"}, {"b", "2"}, {"c", ""}}));
}

TEST(PodAffinityTest, NoSelectorSelectsNothingAndAnEmptyOneEverything) {
  EXPECT_FALSE(TermOf(R"({"topologyKey": "k"})").Selects("ns", "ns", {{"a", "1"}}));
  const PodAffinityTerm empty = TermOf(R"({"topologyKey": "k", "labelSelector": {}})");
  EXPECT_TRUE(empty.Selects("ns", "ns", {}));
  EXPECT_EQ(empty.label, "");
}

TEST(PodAffinityTest, OtherNamespacesCountOnlyWhenNamed) {
  const PodAffinityTerm own = TermOf(R"({"topologyKey": "k", "labelSelector": {}})");
  EXPECT_FALSE(own.Selects("ns", "other", {}));
  const PodAffinityTerm named =
      TermOf(R"({"topologyKey": "k", "labelSelector": {}, "namespaces": ["other"]})");
  EXPECT_TRUE(named.Selects("ns", "other", {}));
  EXPECT_FALSE(named.Selects("ns", "ns", {}));
  const PodAffinityTerm any =
      TermOf(R"({"topologyKey": "k", "labelSelector": {}, "namespaceSelector": {}})");
  EXPECT_TRUE(any.Selects("ns", "third", {}));
}

TEST(PodAffinityTest, AnUnsupportedTermIsAnErrorThatNamesThePlace) {
  EXPECT_THAT(WhyNot(R"({"topologyKey": "k", "labelSelector": {},
                         "namespaceSelector": {"matchLabels": {"team": "a"}}})"),
              HasSubstr("affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
                        "[0].namespaceSelector: selects namespaces by their labels"));
  EXPECT_THAT(WhyNot(R"({"topologyKey": "k", "labelSelector": {"matchLabels": {"a b": "1"}}})"),
              HasSubstr("[0].labelSelector.matchLabels[a b]: key: Invalid value"));
  const auto expression = [](const std::string& one) {
    return WhyNot(R"({"topologyKey": "k", "labelSelector": {"matchExpressions": [)" + one + "]}}");
  };
  EXPECT_THAT(
      expression(R"({"key": "a", "operator": "Near", "values": ["b"]})"),
      HasSubstr("[0].labelSelector.matchExpressions[0]: operator: Invalid value: \"Near\""));
  EXPECT_THAT(expression(R"({"key": "a", "operator": "In"})"), HasSubstr("values: must be given"));
  EXPECT_THAT(expression(R"({"key": "a", "operator": "In", "values": ["x),b in (y"]})"),
              HasSubstr("values: Invalid value"));
  EXPECT_THAT(WhyNot(R"({"topologyKey": 7, "labelSelector": {}})"), HasSubstr("must be a string"));
}

TEST(PodAffinityTest, KeysOfLabelsMustStandInTheSelectorToo) {
  EXPECT_THAT(WhyNot(R"({"topologyKey": "k", "labelSelector": {}, "matchLabelKeys": ["hash"]})"),
              HasSubstr("[0].matchLabelKeys[0]: is not followed here"));
  const PodAffinityTerm term = TermOf(R"({"topologyKey": "k", "mismatchLabelKeys": ["tenant"],
    "labelSelector": {"matchExpressions": [
      {"key": "tenant", "operator": "NotIn", "values": ["a"]}]}})");
  EXPECT_FALSE(term.Selects("ns", "ns", {{"tenant", "a"}}));
}

TEST(PodAffinityTest, ARequiredSpreadIsReadAndAPreferredOneIsNot) {
  const json spec = ParseJson(R"({"topologySpreadConstraints": [
    {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
    {"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3,
     "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["hash"],
     "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
    {"maxSkew": 1, "topologyKey": "zone"}]})");
  Reading reading(spec);
  const PodAffinity affinity = ParsePodAffinity(reading.root());
  ASSERT_TRUE(reading.status().ok()) << reading.status();
  ASSERT_EQ(affinity.spread.size(), 2U);
  const SpreadConstraint& all = affinity.spread[0];
  EXPECT_EQ(all.of.topology_key, "host");
  EXPECT_EQ(all.of.label, "app");
  EXPECT_EQ(all.max_skew, 2);
  EXPECT_EQ(all.min_domains, 3);
  EXPECT_FALSE(all.honors_affinity);
  EXPECT_TRUE(all.honors_taints);
  EXPECT_THAT(all.same_labels, ElementsAre("hash"));
  const SpreadConstraint& usual = affinity.spread[1];
  EXPECT_TRUE(usual.of.selects_none);
  EXPECT_EQ(usual.min_domains, 1);
  EXPECT_TRUE(usual.honors_affinity);
  EXPECT_FALSE(usual.honors_taints);
}

TEST(PodAffinityTest, LabelsAreSorted) {
  const json metadata = ParseJson(R"({"labels": {"b": "2", "a": "1"}})");
  Reading reading(metadata);
  EXPECT_THAT(ParseLabels(reading.root()),
              ElementsAre(std::pair<std::string, std::string>("a", "1"),
                          std::pair<std::string, std::string>("b", "2")));
}

}  // namespace
}  // namespace tahoma::kube
