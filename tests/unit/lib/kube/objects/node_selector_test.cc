#include "lib/kube/objects/node_selector.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

const Labels kLabels = {{"gen", "12"}, {"zone", "b"}};

Json Term(const std::string& key, const std::string& op, const std::vector<std::string>& values) {
  return {{"key", key}, {"operator", op}, {"values", values}};
}

// Whether node "n" meets a selector of one term with one expression.
bool Meets(const std::string& key, const std::string& op, const std::vector<std::string>& values) {
  const Json selector = {
      {"nodeSelectorTerms",
       Json::array({Json{{"matchExpressions", Json::array({Term(key, op, values)})}}})}};
  Reading reading(selector);
  const NodeTerms terms = ParseNodeTerms(reading.root());
  EXPECT_TRUE(reading.status().ok()) << reading.status();
  return MeetsOne(terms, "n", kLabels);
}

TEST(NodeSelectorTest, OperatorsAreThoseOfKubernetes) {
  EXPECT_TRUE(Meets("zone", "In", {"b", "a"}));
  EXPECT_FALSE(Meets("zone", "In", {"c"}));
  EXPECT_FALSE(Meets("other", "In", {"b"}));
  EXPECT_TRUE(Meets("zone", "NotIn", {"c"}));
  EXPECT_TRUE(Meets("other", "NotIn", {"b"})) << "an absent label is in no list";
  EXPECT_FALSE(Meets("zone", "NotIn", {"b"}));
  EXPECT_TRUE(Meets("zone", "Exists", {}));
  EXPECT_FALSE(Meets("other", "Exists", {}));
  EXPECT_TRUE(Meets("other", "DoesNotExist", {}));
  EXPECT_TRUE(Meets("gen", "Gt", {"9"})) << "numbers are compared as numbers";
  EXPECT_FALSE(Meets("gen", "Lt", {"9"}));
  EXPECT_FALSE(Meets("zone", "Gt", {"9"})) << "b is no number";
  EXPECT_FALSE(Meets("gen", "Gt", {"1", "2"}));
}

TEST(NodeSelectorTest, OneTermIsEnoughAndAnEmptyTermSelectsNothing) {
  const NodeRequirement here{.key = "metadata.name", .values = {"n"}, .field = true};
  const NodeRequirement elsewhere{.key = "zone", .values = {"z"}};
  EXPECT_TRUE(MeetsOne({{elsewhere}, {here}}, "n", kLabels));
  EXPECT_FALSE(MeetsOne({{elsewhere, here}}, "n", kLabels));
  EXPECT_FALSE(MeetsOne({{}}, "n", kLabels));
  EXPECT_FALSE(MeetsOne({}, "n", kLabels));
}

TEST(NodeSelectorTest, AnUnknownOperatorIsAnErrorWithItsPath) {
  const Json selector = ParseJson(R"({"nodeSelectorTerms": [{"matchFields": [
      {"key": "metadata.name", "operator": "Like", "values": ["n"]}]}]})");
  Reading reading(selector);
  EXPECT_FALSE(ParseNodeTerms(reading.root()).empty());
  EXPECT_EQ(Message(reading.status()),
            "nodeSelectorTerms[0].matchFields[0].operator: must be In, NotIn, Exists, "
            "DoesNotExist, Gt or Lt");
}

TEST(NodeSelectorTest, WrittenTermsReadBackEqual) {
  const Json selector = ParseJson(R"({"nodeSelectorTerms": [
      {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]},
                            {"key": "gpu", "operator": "DoesNotExist"}]},
      {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}]})");
  Reading reading(selector);
  EXPECT_EQ(RenderNodeTerms(ParseNodeTerms(reading.root())), selector);
}

}  // namespace
}  // namespace tahoma::kube
