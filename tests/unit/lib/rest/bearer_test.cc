// Bearer tokens: how they are found, and which are right.

#include "lib/rest/bearer.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/rest/server.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::rest {
namespace {

using testing::RawClient;

TEST(BearerTest, TheSchemesNameHasNoCase) {
  Metrics metrics;
  Server server({}, metrics);
  server.SetGate(TokenGate("secret"));
  server.Route("GET", "/a", [](const Request&) { return Response::Text(200, "in"); });
  ASSERT_EQ(server.Start(), absl::OkStatus());
  const auto status = [&](const std::string& value) {
    return RawClient(server.port())
        .Ask("GET /a HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + value + "\r\n\r\n")
        .substr(9, 3);
  };
  for (const char* right : {"Bearer secret", "bearer secret", "BEARER secret"}) {
    EXPECT_EQ(status(right), "200") << right;
  }
  for (const char* wrong :
       {"Bearer secre", "Bearer secret2", "Bearer", "Basic secret", "secret", "Bearersecret"}) {
    EXPECT_EQ(status(wrong), "401") << wrong;
  }
}

TEST(BearerTest, WhatFollowsTheSchemeIsTheToken) {
  EXPECT_EQ(BearerToken("Bearer a.b"), "a.b");
  EXPECT_EQ(BearerToken("bEARER  a "), "a");
  EXPECT_EQ(BearerToken("Bearer a b"), "a b");
  EXPECT_EQ(BearerToken("Bearer"), "");
  EXPECT_EQ(BearerToken("Bearer "), "");
  for (const char* other : {"", "Basic a", "Bearera", "Beare", "a Bearer"}) {
    EXPECT_EQ(BearerToken(other), std::nullopt) << other;
  }
}

TEST(BearerTest, NothingEqualsASecretThatWasNotSet) {
  EXPECT_TRUE(EqualSecrets("a", "a"));
  EXPECT_FALSE(EqualSecrets("a", "b"));
  EXPECT_FALSE(EqualSecrets("a", "ab"));
  EXPECT_FALSE(EqualSecrets("ab", "a"));
  EXPECT_FALSE(EqualSecrets("", ""));
  EXPECT_FALSE(EqualSecrets("", "a"));
  EXPECT_FALSE(EqualSecrets("a", ""));
}

}  // namespace
}  // namespace tahoma::rest
