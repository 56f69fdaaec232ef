// Expressions over named values without a schema, as match conditions of webhooks are.

#include "lib/kube/cel/named_expression.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

// "true", "false", or the error.
std::string ResultOf(std::string_view source) {
  const Json object = {{"metadata", {{"name", "a"}, {"labels", {{"tier", "web"}}}}},
                       {"spec", {{"replicas", 3}, {"ports", {80, 443}}, {"weight", 0.5}}}};
  const Json none;
  const Json request = {{"operation", "CREATE"}, {"userInfo", {{"groups", {"dev", "ops"}}}}};
  const auto expression = NamedExpression::Compile(source, {"object", "oldObject", "request"});
  if (!expression.ok()) return std::string(Message(expression.status()));
  const auto result = expression->Evaluate({&object, &none, &request});
  if (!result.ok()) return std::string(Message(result.status()));
  return *result ? "true" : "false";
}

TEST(NamedExpressionTest, ReadsFieldsOfAllNames) {
  for (const char* holds :
       {"object.metadata.name == 'a'", "object.spec.replicas > 2", "object.spec.weight < 1.0",
        "443 in object.spec.ports", "oldObject == null", "request.operation in ['CREATE']",
        "'ops' in request.userInfo.groups", "has(object.metadata.labels.tier)",
        "!has(object.metadata.annotations)", "object.metadata.labels['tier'].startsWith('w')",
        "object.spec.ports.all(p, p > 0)", "object.spec.?none.orValue(7) == 7"}) {
    EXPECT_EQ(ResultOf(holds), "true") << holds;
  }
  EXPECT_EQ(ResultOf("object.metadata.name == 'b'"), "false");
}

TEST(NamedExpressionTest, AFieldThatIsNotThereIsAnError) {
  EXPECT_EQ(ResultOf("object.none == 1"), "no such key: none");
}

TEST(NamedExpressionTest, AResultOfAnotherTypeIsAnError) {
  EXPECT_EQ(ResultOf("'text'"), "must evaluate to a bool");
  EXPECT_NE(ResultOf("object.metadata.name").find("string"), std::string::npos);
}

TEST(NamedExpressionTest, AnUnknownNameIsRefusedByItsName) {
  EXPECT_NE(ResultOf("authorizer.group('').check('get').allowed()").find("authorizer"),
            std::string::npos);
}

}  // namespace
}  // namespace tahoma::kube
