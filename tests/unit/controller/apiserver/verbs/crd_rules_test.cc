// Objects that keep and break rules of a CustomResourceDefinition get the answers that
// kube-apiserver 1.36.3 gave to the same requests.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/files.h"
#include "lib/base/json.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

class CrdRulesTest : public testing::ApiFixture {};

// Causes in an order: a real server has them from a map.
std::vector<std::string> Sorted(const Json& causes) {
  std::vector<std::string> texts;
  for (const Json& cause : causes) {
    texts.push_back(fmt::format("{}: {} ({})", cause.at("field").get<std::string>(),
                                cause.at("message").get<std::string>(),
                                cause.at("reason").get<std::string>()));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

TEST_F(CrdRulesTest, RequestsAreAnsweredAsByARealServer) {
  const auto text = ReadFile("tests/golden/apiserver/crd_rules.json");
  ASSERT_TRUE(text.ok());
  for (const Json& step : ParseJson(*text)) {
    SCOPED_TRACE(step.at("name").get<std::string>());
    const std::string path = step.at("path");
    const testing::Answer answer =
        step.contains("contentType")
            ? Patch(path, "merge-patch+json", step.at("body"))
            : Call(step.at("method").get<std::string>(), path,
                   step.at("body").is_null() ? "" : step.at("body").dump());
    EXPECT_EQ(answer.status, step.at("status")) << answer.text;
    if (!step.contains("causes") || answer.status < 400) continue;
    EXPECT_EQ(Sorted(answer.body.at("details").at("causes")), Sorted(step.at("causes")));
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
