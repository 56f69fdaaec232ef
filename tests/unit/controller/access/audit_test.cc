// The audit line: Kubernetes' fields, and nothing that a client sends can break out of them.

#include "controller/access/audit.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

AuditEvent EventOf(const rest::Request& request, const Attributes& attributes) {
  return {.id = "id-1",
          .request = &request,
          .attributes = &attributes,
          .code = 201,
          .object_name = "made-x2x4",
          .decision = "allow",
          .reason = "edit",
          .received = WallTime{},
          .answered = WallTime{} + std::chrono::milliseconds(3)};
}

TEST(AuditTest, ALineSaysWhoDidWhatFromWhereAndHowItEnded) {
  rest::Request request;
  request.target = "/api/v1/namespaces/a/pods?dryRun=All";
  request.peer = "[::1]:4711";
  request.headers = {{"User-Agent", "kubectl/v1.36"}};
  request.identity = std::make_shared<const rest::Identity>(
      rest::Identity{.name = "alice", .groups = {"research", "system:authenticated"}});
  const Attributes create{.verb = "create", .version = "v1", .resource = "pods", .name_space = "a"};
  const Json line = ParseJson(AuditLine(EventOf(request, create)));
  EXPECT_EQ(line, ParseJson(R"({
    "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "id-1",
    "stage": "ResponseComplete", "requestURI": "/api/v1/namespaces/a/pods?dryRun=All",
    "verb": "create",
    "user": {"username": "alice", "groups": ["research", "system:authenticated"]},
    "sourceIPs": ["::1"], "userAgent": "kubectl/v1.36",
    "objectRef": {"resource": "pods", "namespace": "a", "name": "made-x2x4", "apiVersion": "v1"},
    "responseStatus": {"metadata": {}, "code": 201},
    "requestReceivedTimestamp": "1970-01-01T00:00:00.000000Z",
    "stageTimestamp": "1970-01-01T00:00:00.003000Z",
    "annotations": {"authorization.k8s.io/decision": "allow",
                    "authorization.k8s.io/reason": "edit"}})"));
}

TEST(AuditTest, ReadsAndQuestionsHaveNoLine) {
  for (const char* verb : {"get", "list", "watch"}) {
    EXPECT_FALSE(IsAudited({.verb = verb, .resource = "pods"})) << verb;
  }
  for (const char* verb : {"create", "update", "patch", "delete", "deletecollection"}) {
    EXPECT_TRUE(IsAudited({.verb = verb, .resource = "pods"})) << verb;
  }
  EXPECT_FALSE(IsAudited(
      {.verb = "create", .group = "authorization.k8s.io", .resource = "selfsubjectaccessreviews"}));
  EXPECT_TRUE(IsAudited({.verb = "post", .path = "/v1/backup"}));
}

RC_GTEST_PROP(AuditProperty, WhateverBytesAClientSendsTheLineIsOneBoundedJsonObject, ()) {
  rest::Request request;
  request.target = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  request.peer = "127.0.0.1:1";
  request.headers = {{"User-Agent", *rc::gen::container<std::string>(rc::gen::arbitrary<char>())}};
  Attributes wanted{.verb = "create", .resource = "pods"};
  wanted.name = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  const std::string line = AuditLine(EventOf(request, wanted));
  RC_ASSERT(Json::accept(line));
  RC_ASSERT(line.find('\n') == std::string::npos);
  RC_ASSERT(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c < '\x7f'; }));
}

TEST(AuditTest, LongTextsAreCut) {
  rest::Request request;
  request.target = std::string(60'000, '\x01');
  request.headers = {{"User-Agent", std::string(60'000, '"')}};
  request.peer = "127.0.0.1:1";
  const Attributes wanted{.verb = "create", .resource = "pods"};
  const std::string line = AuditLine(EventOf(request, wanted));
  EXPECT_LE(line.size(), 8192U);
  EXPECT_TRUE(Json::accept(line));
}

}  // namespace
}  // namespace tahoma::controller
