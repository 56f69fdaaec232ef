// Expressions over objects: types by a schema, fields that are absent, values of before. Sources:
// k8s.io/apiserver pkg/cel, and the answers of kube-apiserver 1.36.3.

#include "lib/kube/cel/object_expression.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using ListType = CelShape::ListType;

CelShapePtr Make(CelShape shape) { return std::make_shared<const CelShape>(std::move(shape)); }

CelShapePtr ListOf(CelShapePtr element, ListType type = ListType::kAtomic) {
  return Make({.type = CelType::kList,
               .element = std::move(element),
               .list_type = type,
               .keys = {type == ListType::kMap ? "k" : ""}});
}

// The shape of: a, b, n, r, flag, any, at, kebab-case, namespace, m, list, set, keyed, o.
CelShapePtr Shape() {
  const CelShapePtr text = Make({.type = CelType::kString});
  const CelShapePtr number = Make({.type = CelType::kInt});
  const CelShapePtr item =
      Make({.type = CelType::kObject, .fields = {{"k", {"k", text}}, {"v", {"v", number}}}});
  CelShape shape{.type = CelType::kObject};
  for (const auto& [name, field] : std::vector<std::pair<std::string, CelShapePtr>>{
           {"a", text},
           {"b", text},
           {"n", number},
           {"r", Make({.type = CelType::kDouble})},
           {"flag", Make({.type = CelType::kBool})},
           {"any", Make({.type = CelType::kDyn})},
           {"at", Make({.type = CelType::kString, .unsupported = "date-time"})},
           {"kebab-case", number},
           {"namespace", text},
           {"m", Make({.type = CelType::kMap, .element = number})},
           {"list", ListOf(number)},
           {"set", ListOf(text, ListType::kSet)},
           {"keyed", ListOf(item, ListType::kMap)},
           {"o", item}}) {
    shape.fields[CelFieldName(name)] = {name, field};
  }
  return Make(std::move(shape));
}

// Returns "true", "false", "compile: message" or "error: message".
std::string Answer(const std::string& expression, const Json& self, const Json* old = nullptr,
                   bool optional = false) {
  const auto compiled = ObjectExpression::Compile(
      expression, Shape(), {.result = CelType::kBool, .optional_old_self = optional});
  if (!compiled.ok()) return "compile: " + std::string(Message(compiled.status()));
  const auto [value, cost] = compiled->Evaluate(self, old);
  EXPECT_GT(cost, 0U);
  if (!value.ok()) return "error: " + std::string(Message(value.status()));
  return *value->As<bool>() ? "true" : "false";
}

const Json& Self() {
  static const auto* const self = new Json(ParseJson(R"({
    "a": "x", "n": 4, "r": 5, "flag": true, "any": "10%", "kebab-case": 7, "namespace": "s",
    "m": {"one": 1, "two": 2}, "list": [3, 1, 2], "set": ["p", "q"],
    "keyed": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "o": {"k": "z"}, "unknown": 1})"));
  return *self;
}

TEST(ObjectExpressionTest, FieldsHaveTheTypesOfTheSchema) {
  for (const char* holds :
       {"self.a == 'x' && self.n == 4 && self.flag",
        "self.r == 5.0 && self.r / 2.0 == 2.5",
        "self.any == '10%' && self.any != 10",
        "has(self.a) && !has(self.b) && has(self.o.k)",
        "!has(self.o.v)",
        "self.kebab__dash__case == 7",
        "self.namespace == 's' && self.__namespace__ == 's' && has(self.namespace)",
        "self.m.one + self.m['two'] == 3",
        "'one' in self.m && !('three' in self.m)",
        "self.m.all(k, self.m[k] > 0)",
        "self.list[0] == 3 && size(self.list) == 3 && self.list.exists_one(x, x == 1)",
        "self.list == [3, 1, 2] && self.list != [1, 2, 3]",
        "self.list.map(x, x * 2) == [6, 2, 4]",
        "self.list.filter(x, x > 1)[1] == 2 && self.list + [4] == [3, 1, 2, 4]",
        "self.keyed.filter(e, e.v > 1)[0].k == 'b'",
        "self.keyed[1].v in self.list",
        "self.?b.orValue('none') == 'none' && self.?a.orValue('none') == 'x'",
        "self.o in [self.o]",
        "self.list.sum() == 6 && self.list.max() == 3",
        "cel.bind(o, self.o, o.k) == 'z'",
        "(self.flag ? self.list : self.list)[2] == 2",
        "self.m == {'two': 2, 'one': 1}",
        "sets.contains(self.list, [1, 2])"}) {
    EXPECT_EQ(Answer(holds, Self()), "true") << holds;
  }
}

TEST(ObjectExpressionTest, WhatTheSchemaDoesNotDeclareIsACompileError) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"self.unknown == 1", "compile: 1:6: undefined field 'unknown'"},
      {"has(self.unknown)", "compile: 1:10: undefined field 'unknown'"},
      {"self.keyed.all(e, e.x == 1)", "compile: 1:21: undefined field 'x'"},
      {"self.keyed[0].x == 1", "compile: 1:15: undefined field 'x'"},
      {"self.keyed.filter(e, true)[0].x == 1", "compile: 1:31: undefined field 'x'"},
      {"self.?unknown.hasValue()", "compile: 1:7: undefined field 'unknown'"},
      {"self['a'] == 'x'", "compile: 1:5: type 'object' has no index"},
      {"self.n == 'x'",
       "compile: 1:8: found no matching overload for '==' applied to '(int, string)'"},
      {"self.n + 1.0 == 5.0",
       "compile: 1:8: found no matching overload for '+' applied to '(int, double)'"},
      {"self.n", "compile: must evaluate to a bool"},
      {"self.all(x, true)",
       "compile: 1:6: type 'object' cannot be the range of a comprehension (must be list, map, or "
       "dynamic)"},
      {"'a' in self",
       "compile: 1:5: found no matching overload for 'in' applied to '(string, object)'"},
      {"device.driver == ''", "compile: 1:1: undeclared reference to 'device'"},
      {"self.at == ''", "compile: 1:6: values of the format 'date-time' are not supported"},
      {"self.set + self.set == self.set",
       "compile: 1:10: '+' of lists of the type set or map is not supported"},
      {"self.a.format([]) == ''", "compile: 1:8: undeclared reference to 'format'"}};
  for (const auto& [expression, answer] : cases) {
    EXPECT_EQ(Answer(expression, Self()), answer) << expression;
  }
}

TEST(ObjectExpressionTest, ErrorsOfEvaluation) {
  EXPECT_EQ(Answer("self.b == 'x'", Self()), "error: no such key: b");
  EXPECT_EQ(Answer("self.b == 'x' || true", Self()), "true");
  EXPECT_EQ(Answer("self.list[3] == 1", Self()), "error: index out of bounds: 3");
  EXPECT_EQ(Answer("self.m.three == 1", Self()), "error: no such key: three");
  EXPECT_EQ(Answer("10 / (self.n - 4) > 1", Self()), "error: division by zero");
  EXPECT_TRUE(Answer("self.any > 5", Self()).starts_with("error: no such overload"));
  EXPECT_TRUE(Answer("self.any", Self()).starts_with("error: no such overload"));
}

TEST(ObjectExpressionTest, OldSelfIsTheValueOfBefore) {
  Json old = Self();
  old["n"] = 3;
  EXPECT_EQ(Answer("self.n == oldSelf.n + 1", Self(), &old), "true");
  EXPECT_EQ(Answer("self == oldSelf", Self(), &old), "false");
  const auto uses = [](const char* expression) {
    return ObjectExpression::Compile(expression, Shape(), {})->uses_old_self();
  };
  EXPECT_TRUE(uses("self.list.all(x, x in oldSelf.list)"));
  EXPECT_FALSE(uses("self.list.all(oldSelf, oldSelf > 1)"));
  EXPECT_EQ(Answer("!oldSelf.hasValue() || self.n > oldSelf.value().n", Self(), nullptr, true),
            "true");
  EXPECT_EQ(Answer("!oldSelf.hasValue() || self.n > oldSelf.value().n", Self(), &Self(), true),
            "false");
  EXPECT_EQ(Answer("oldSelf.?n.orValue(9) == 3", Self(), &old, true), "true");
  EXPECT_EQ(Answer("oldSelf.?n.orValue(9) == 9", Self(), nullptr, true), "true");
}

// k8s.io/apiserver pkg/cel/common/values.go.
TEST(ObjectExpressionTest, TheOrderOfSetsAndKeyedListsDoesNotCount) {
  Json old = ParseJson(R"({
    "a": "x", "n": 4.0, "r": 5.0, "flag": true, "any": "10%", "kebab-case": 7, "namespace": "s",
    "m": {"two": 2, "one": 1}, "list": [3, 1, 2], "set": ["q", "p"],
    "keyed": [{"k": "b", "v": 2}, {"k": "a", "v": 1}], "o": {"k": "z"}})");
  EXPECT_EQ(Answer("self == oldSelf && !(self != oldSelf)", Self(), &old), "true");
  for (const char* patch :
       {R"({"set": ["p"]})", R"({"set": ["p", "p"]})", R"({"list": [1, 2, 3]})",
        R"({"keyed": [{"k": "b", "v": 1}, {"k": "a", "v": 2}]})", R"({"m": {"two": 3}})",
        R"({"b": ""})", R"({"a": null})", R"({"r": 5.5})", R"({"o": {"v": 1}})"}) {
    Json changed = old;
    changed.merge_patch(ParseJson(patch));
    EXPECT_EQ(Answer("self == oldSelf", Self(), &changed), "false") << patch;
    EXPECT_EQ(Answer("self == oldSelf", changed, &changed), "true") << patch;
  }
}

TEST(ObjectExpressionTest, NullIsThereAndNothingElse) {
  const Json self = {{"a", nullptr}};
  EXPECT_EQ(Answer("has(self.a) && self.a == null", self), "true");
  EXPECT_EQ(Answer("self.a == 'x'", self), "false");
}

TEST(ObjectExpressionTest, MessagesAreTexts) {
  const auto message =
      ObjectExpression::Compile("'n is ' + string(self.n)", Shape(), {.result = CelType::kString});
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(*message->Evaluate(Self(), nullptr).value->As<std::string>(), "n is 4");
}

// k8s.io/apiserver pkg/cel/escaping_test.go.
TEST(ObjectExpressionTest, NamesOfFieldsInCel) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"a", "a"},
                                                                  {"namespace", "__namespace__"},
                                                                  {"self", "self"},
                                                                  {"a-b", "a__dash__b"},
                                                                  {"a.b/c", "a__dot__b__slash__c"},
                                                                  {"__a", "__underscores__a"},
                                                                  {"a_b", "a_b"},
                                                                  {"1a", ""},
                                                                  {"", ""},
                                                                  {"a b", ""},
                                                                  {"ä", ""}};
  for (const auto& [name, in_cel] : cases) EXPECT_EQ(CelFieldName(name), in_cel) << name;
}

}  // namespace
}  // namespace tahoma::kube
