// Rules of a CustomResourceDefinition that cannot be used, and what rules may cost. Objects that
// break rules: verbs/crd_rules_test.cc.

#include "controller/apiserver/schema/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/apiserver/schema/crd.h"
#include "controller/apiserver/validation/validation.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A definition whose spec has that schema.
Json Crd(const std::string& spec) {
  Json crd = ParseJson(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Cluster",
             "names": {"plural": "widgets", "kind": "Widget"},
             "versions": [{"name": "v1", "served": true, "storage": true,
                           "schema": {"openAPIV3Schema": {"type": "object"}}}]}})");
  crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = ParseJson(spec);
  return crd;
}

// A spec with a text `a`, an integer `n` and one rule.
std::string SpecWith(const std::string& rule) {
  return R"({"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
             "x-kubernetes-validations": [)" +
         rule + "]}";
}

std::vector<std::string> Texts(const Causes& causes) {
  constexpr std::string_view kPath = "spec.versions[0].schema.openAPIV3Schema.properties[spec]";
  std::vector<std::string> texts;
  for (const Cause& cause : causes) {
    const bool below = cause.field.starts_with(kPath);
    texts.push_back(cause.field.substr(below ? kPath.size() : 0) + ": " + cause.message);
  }
  return texts;
}

std::vector<std::string> FaultsOf(const std::string& spec) {
  const auto kinds = KindsOfCrd(Crd(spec));
  EXPECT_TRUE(kinds.ok()) << kinds.status();
  return Texts(kinds->front()->rule_faults);
}

// The texts of kube-apiserver 1.36.3, but for those of a compiler, which are ours.
TEST(RulesTest, ARuleThatCannotBeUsedSaysWhy) {
  EXPECT_THAT(FaultsOf(SpecWith(R"({"rule": "self.a == ''"})")), IsEmpty());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"rule": " "})", "[0].rule: Required value: rule is not specified"},
      {R"({"rule": "true", "message": "a\nb"})",
       R"([0].message: Invalid value: "a\nb": must not contain line breaks)"},
      {R"({"rule": "self.a\n== ''"})",
       "[0].message: Required value: message must be specified if rule contains line breaks"},
      {R"({"rule": "true", "message": " "})",
       R"([0].message: Invalid value: " ": must be non-empty if specified)"},
      {R"({"rule": "true", "messageExpression": " "})",
       "[0].messageExpression: Required value: messageExpression must be non-empty if specified"},
      {R"({"rule": "true", "reason": "Nope"})",
       R"([0].reason: Unsupported value: "Nope": supported values: "FieldValueDuplicate", )"
       R"("FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")"},
      {R"({"rule": "true", "fieldPath": ".b"})",
       R"([0].fieldPath: Invalid value: ".b": must be a valid path)"},
      {R"({"rule": "true", "optionalOldSelf": true})",
       "[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"},
      {R"({"rule": "self.n"})",
       R"([0].rule: Invalid value: {"rule":"self.n"}: cel expression must evaluate to a bool)"},
      {R"({"rule": "self.b > 1"})",
       R"([0].rule: Invalid value: {"rule":"self.b > 1"}: compilation failed: ERROR: )"
       "<input>:1:6: undefined field 'b'"},
      {R"({"rule": "self.a.format([1]) == ''"})",
       R"([0].rule: Invalid value: {"rule":"self.a.format([1]) == ''"}: compilation failed: )"
       "ERROR: <input>:1:8: undeclared reference to 'format'"},
      {R"({"rule": "self.a == 1"})",
       R"([0].rule: Invalid value: {"rule":"self.a == 1"}: compilation failed: ERROR: )"
       "<input>:1:8: found no matching overload for '==' applied to '(string, int)'"},
      {R"({"rule": "true", "messageExpression": "1"})",
       R"([0].messageExpression: Invalid value: {"messageExpression":"1","rule":"true"}: )"
       "messageExpression must evaluate to a string"},
  };
  for (const auto& [rule, fault] : cases) {
    EXPECT_THAT(FaultsOf(SpecWith(rule)), ElementsAre(".x-kubernetes-validations" + fault));
  }
}

TEST(RulesTest, OldSelfNeedsAValueThatIsTheSameAfterAChange) {
  const std::string list = R"({"type": "object", "properties": {"l": {"type": "array", %
    "items": {"type": "object", "properties": {"k": {"type": "string"}, "x": {"type": "integer",
      "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}}}}}})";
  std::string atomic = list, keyed = list;
  atomic.replace(atomic.find('%'), 1, "");
  keyed.replace(keyed.find('%'), 1,
                R"("x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],)");
  EXPECT_THAT(FaultsOf(keyed), IsEmpty());
  EXPECT_THAT(
      FaultsOf(atomic),
      ElementsAre(".properties[l].items.properties[x].x-kubernetes-validations[0].rule: Invalid "
                  "value: \"self >= oldSelf\": oldSelf cannot be used on the uncorrelatable "
                  "portion of the schema within "
                  "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[l]"));
}

TEST(RulesTest, RulesOfPartsOfASchemaAreForbidden) {
  EXPECT_THAT(
      FaultsOf(R"({"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{
        "properties": {"a": {"x-kubernetes-validations": [{"rule": "self == 'x'"}]}}}]})"),
      ElementsAre(".allOf[0].properties[a].x-kubernetes-validations: Forbidden: must be empty to "
                  "be structural"));
}

TEST(RulesTest, ValuesWhoseTypeWeDoNotHaveMayNotBeUsed) {
  const std::string spec = R"({"type": "object", "properties": {
      "at": {"type": "string", "format": "date-time"},
      "all": {"type": "array", "items": {"type": "string", "format": "byte"}}},
      "x-kubernetes-validations": [{"rule": ")";
  EXPECT_THAT(FaultsOf(spec + R"(has(self.at) && size(self.all) > 1"}]})"), IsEmpty());
  EXPECT_THAT(FaultsOf(spec + R"(self.at == self.at"}]})"),
              ElementsAre(HasSubstr("values of the format 'date-time' are not supported")));
  EXPECT_THAT(FaultsOf(spec + R"j(self.all.exists(x, x == b'')"}]})j"),
              ElementsAre(HasSubstr("values of the format 'byte' are not supported")));
}

TEST(RulesTest, ADefinitionWithSuchARuleIsRefusedUnlessItWasThereBefore) {
  const auto crds = [] {
    for (const auto& kind : BuiltInKinds()) {
      if (kind->kind == "CustomResourceDefinition") return kind;
    }
    return std::shared_ptr<const Kind>();
  }();
  const Json bad = Crd(SpecWith(R"({"rule": "self.b > 1"})"));
  EXPECT_THAT(ValidateCreate(*crds, bad), SizeIs(1));
  Json described = bad;
  described["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "x";
  EXPECT_THAT(ValidateUpdate(*crds, bad, described, ""), IsEmpty());
  EXPECT_THAT(ValidateUpdate(*crds, Crd(R"({"type": "object"})"), bad, ""), SizeIs(1));
}

class RulesOfObjectTest : public ::testing::Test {
 protected:
  // The causes for which an object with that spec is refused.
  static std::vector<std::string> Refused(const std::string& schema, const Json& spec) {
    const auto kinds = KindsOfCrd(Crd(schema));
    EXPECT_TRUE(kinds.ok());
    Causes causes;
    CheckRules(*kinds->front()->schema, nullptr, {{"spec", spec}}, causes);
    return Texts(causes);
  }
};

TEST_F(RulesOfObjectTest, AreRefusedForARuleThatCannotBeUsed) {
  EXPECT_THAT(Refused(SpecWith(R"({"rule": "self.b > 1"})"), {{"a", "x"}}),
              ElementsAre("spec: Invalid value: \"object\": rule compile error: compilation "
                          "failed: ERROR: <input>:1:6: undefined field 'b'"));
}

TEST_F(RulesOfObjectTest, OneRuleMayCostSoMuch) {
  const std::string spec = R"j({"type": "object", "properties": {
      "l": {"type": "array", "items": {"type": "integer"}}},
      "x-kubernetes-validations": [
        {"rule": "self.l.all(x, self.l.all(y, x + y >= 0))", "message": "sums"},
        {"rule": "false", "message": "not asked"}]})j";
  EXPECT_THAT(Refused(spec, {{"l", std::vector<int>(10)}}),
              ElementsAre("spec: Invalid value: not asked"));
  EXPECT_THAT(Refused(spec, {{"l", std::vector<int>(2000)}}),
              ElementsAre("spec: Invalid value: \"object\": 'operation cancelled: actual cost "
                          "limit exceeded': no further validation rules will be run due to call "
                          "cost exceeds limit for rule: sums"));
}

TEST_F(RulesOfObjectTest, AllRulesOfAnObjectMayCostSoMuch) {
  const std::string spec = R"j({"type": "object", "properties": {
      "l": {"type": "array", "items": {"type": "array", "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, y >= 0))"}]}}}})j";
  EXPECT_THAT(Refused(spec, {{"l", std::vector(5, std::vector<int>(400))}}), IsEmpty());
  const auto refused = Refused(spec, {{"l", std::vector(50, std::vector<int>(400))}});
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0], HasSubstr(": Invalid value: \"array\": validation failed due to running "
                                    "out of cost budget, no further validation rules will be "
                                    "run"));
}

TEST_F(RulesOfObjectTest, ValuesOfAnotherTypeAreErrorsOfRules) {
  const std::string spec = R"j({"type": "object", "properties": {
      "m": {"type": "object", "additionalProperties": {"type": "integer"}},
      "l": {"type": "array", "items": {"type": "integer"}}},
      "x-kubernetes-validations": [
        {"rule": "self.m.x > 1 && self.l[0] > 1 && self.l.all(x, x > 1)", "message": "r"}]})j";
  for (const char* value :
       {"1", "[]", "{}", "null", "true", "\"x\"", "[[]]", "[{}]", "{\"x\": []}"}) {
    const Json any = ParseJson(value);
    EXPECT_THAT(Refused(spec, {{"m", any}, {"l", any}}), SizeIs(1)) << value;
    EXPECT_THAT(Refused(spec, any).size(), ::testing::Le(1U)) << value;
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
