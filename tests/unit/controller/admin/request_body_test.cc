#include "controller/admin/request_body.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

std::string Refusal(const std::string& text) {
  const auto read = ReadBody(text);
  return read.ok() ? "" : std::string(Message(read.status()));
}

TEST(RequestBodyTest, IsJsonInWhichNoKeyComesTwice) {
  EXPECT_EQ(*ReadBody(R"({"a":[{"b":1},{"b":2}],"b":null})"),
            ParseJson(R"({"a":[{"b":1},{"b":2}],"b":null})"));
  EXPECT_EQ(Refusal(R"({"a":1,"b":2,"a":1})"), "the body has the key \"a\" twice");
  EXPECT_EQ(Refusal(R"({"a":[{"b":1,"b":2}]})"), "the body has the key \"a[0].b\" twice");
  for (const char* text : {"", "{", "{]", "{} x", "\xff"}) {
    EXPECT_EQ(Refusal(text), "the body is not JSON") << text;
  }
}

TEST(RequestBodyTest, IsBounded) {
  const std::string deep(kAdminBodyDepthMost, '[');
  EXPECT_EQ(Refusal(deep + std::string(kAdminBodyDepthMost, ']')), "");
  EXPECT_EQ(Refusal(deep + "["), "the body is refused: nested deeper than 32 levels");
  std::string wide = "[0";
  for (std::size_t i = 2; i < kAdminBodyValuesMost; ++i) wide += ",0";
  EXPECT_EQ(Refusal(wide + "]"), "");
  EXPECT_EQ(Refusal(wide + ",0]"), "the body is refused: more than 10000 values");
}

}  // namespace
}  // namespace tahoma::controller
