// Requests, retries and errors of the client, against a scripted server.

#include "lib/kube/client.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/unit/lib/kube/scripted_transport.h"

namespace tahoma::kube {
namespace {

using json = Json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CountingSleeper;
using testing::ScriptedTransport;

std::string StatusBody(int code, const std::string& reason, const json& details = json::object()) {
  return json{{"kind", "Status"}, {"status", "Failure"}, {"message", "it is " + reason},
              {"reason", reason}, {"details", details},  {"code", code}}
      .dump();
}

class ClientTest : public ::testing::Test {
 protected:
  ScriptedTransport transport_;
  CountingSleeper sleeper_;
  Client client_{transport_, sleeper_, Rng(1)};
};

TEST_F(ClientTest, PathsFollowGroupVersionAndNamespace) {
  EXPECT_EQ(kPods.CollectionPath("a b"), "/api/v1/namespaces/a%20b/pods");
  EXPECT_EQ(kPods.CollectionPath(""), "/api/v1/pods");
  EXPECT_EQ(kPods.ObjectPath({"ns", "p"}, "status"), "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(kResourceSlices.ObjectPath({"", "s"}), "/apis/resource.k8s.io/v1/resourceslices/s");
  EXPECT_EQ(kResourceSlices.CollectionPath("ignored"), "/apis/resource.k8s.io/v1/resourceslices");
}

TEST_F(ClientTest, EveryOperationSendsItsRequest) {
  for (int i = 0; i < 8; ++i) transport_.Will(200, R"({"kind":"Pod"})");
  const json pod = ParseJson(R"({"metadata":{"namespace":"ns","name":"p"}})");
  EXPECT_EQ(*client_.Get(kPods, {"ns", "p"}), (json{{"kind", "Pod"}}));
  EXPECT_TRUE(client_.Create(kPods, "ns", pod, {.field_manager = "me", .dry_run = true}).ok());
  EXPECT_TRUE(client_.Update(kPods, pod).ok());
  EXPECT_TRUE(client_.UpdateStatus(kPods, pod).ok());
  EXPECT_TRUE(client_.Patch(kPods, {"ns", "p"}, PatchType::kMerge, {{"a", 1}}).ok());
  EXPECT_TRUE(
      client_
          .Patch(kPods, {"ns", "p"}, PatchType::kApply, pod, {.field_manager = "me", .force = true})
          .ok());
  EXPECT_TRUE(
      client_.Delete(kPods, {"ns", "p"}, {.uid = "u", .propagation_policy = "Background"}).ok());
  EXPECT_TRUE(client_.Bind({"ns", "p"}, "u", "node-1", {{"k", "v"}}).ok());
  std::vector<std::string> seen;
  for (const Request& request : transport_.requests)
    seen.push_back(request.method + " " + request.target);
  EXPECT_EQ(seen, (std::vector<std::string>{
                      "GET /api/v1/namespaces/ns/pods/p",
                      "POST /api/v1/namespaces/ns/pods?fieldManager=me&dryRun=All",
                      "PUT /api/v1/namespaces/ns/pods/p", "PUT /api/v1/namespaces/ns/pods/p/status",
                      "PATCH /api/v1/namespaces/ns/pods/p",
                      "PATCH /api/v1/namespaces/ns/pods/p?fieldManager=me&force=true",
                      "DELETE /api/v1/namespaces/ns/pods/p",
                      "POST /api/v1/namespaces/ns/pods/p/binding"}));
  EXPECT_EQ(transport_.requests[4].headers[1].second, "application/merge-patch+json");
  EXPECT_EQ(ParseJson(transport_.requests[6].Text())["preconditions"]["uid"], "u");
  const json binding = ParseJson(transport_.requests[7].Text());
  EXPECT_EQ(binding["target"]["name"], "node-1");
  EXPECT_EQ(binding["metadata"]["uid"], "u");
  EXPECT_EQ(binding["metadata"]["annotations"]["k"], "v");
}

TEST_F(ClientTest, ErrorsKeepTheirReasonAndCauses) {
  const std::vector<std::tuple<int, std::string, absl::StatusCode>> rows{
      {400, "BadRequest", absl::StatusCode::kInvalidArgument},
      {401, "Unauthorized", absl::StatusCode::kUnauthenticated},
      {403, "Forbidden", absl::StatusCode::kPermissionDenied},
      {404, "NotFound", absl::StatusCode::kNotFound},
      {405, "MethodNotAllowed", absl::StatusCode::kUnimplemented},
      {409, "AlreadyExists", absl::StatusCode::kAlreadyExists},
      {409, "Conflict", absl::StatusCode::kAborted},
      {410, "Expired", absl::StatusCode::kOutOfRange},
      {415, "UnsupportedMediaType", absl::StatusCode::kUnimplemented},
      {422, "Invalid", absl::StatusCode::kInvalidArgument}};
  for (const auto& [code, reason, wanted] : rows) {
    transport_.Will(
        code, StatusBody(code, reason,
                         {{"causes", {{{"reason", "FieldValueRequired"}, {"field", "spec.a"}}}}}));
    const absl::Status status = client_.Get(kPods, {"ns", "p"}).status();
    EXPECT_EQ(status.code(), wanted) << reason;
    EXPECT_EQ(Message(status), "it is " + reason);
    const std::optional<ApiError> error = ApiErrorOf(status);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, code);
    EXPECT_EQ(error->reason, reason);
    ASSERT_EQ(error->causes.size(), 1u);
    EXPECT_EQ(error->causes[0].field, "spec.a");
  }
  EXPECT_TRUE(sleeper_.sleeps.empty());
  EXPECT_EQ(ApiErrorOf(NotFound("elsewhere")), std::nullopt);
}

TEST_F(ClientTest, AnErrorThatIsNotAStatusKeepsItsText) {
  transport_.Will(404, "page not found");
  EXPECT_EQ(Message(client_.Get(kPods, {"ns", "p"}).status()), "HTTP 404 page not found");
}

TEST_F(ClientTest, ReadsAreRepeatedWhileTheServerIsAway) {
  transport_.WillFail(Unavailable("refused"));
  transport_.Will(500, StatusBody(500, "InternalError"));
  transport_.Will(503, "");
  transport_.Will(200, "half a {");
  transport_.Will(200, "{}");
  EXPECT_TRUE(client_.Get(kPods, {"ns", "p"}).ok());
  ASSERT_EQ(sleeper_.sleeps.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto full = milliseconds(100) * (1 << i);
    EXPECT_LE(sleeper_.sleeps[i], full);
    EXPECT_GE(sleeper_.sleeps[i], full / 2);
  }
}

TEST_F(ClientTest, RetryAfterIsHonoured) {
  transport_.Will(429, StatusBody(429, "TooManyRequests"), {{"Retry-After", "7"}});
  transport_.Will(429, StatusBody(429, "TooManyRequests", {{"retryAfterSeconds", 9}}));
  transport_.Will(429, "", {{"retry-after", "999999"}});
  transport_.Will(201, "{}");
  EXPECT_TRUE(client_.Create(kPods, "ns", json::object()).ok());
  EXPECT_EQ(sleeper_.sleeps,
            (std::vector<std::chrono::nanoseconds>{seconds(7), seconds(9), seconds(60)}));
}

TEST_F(ClientTest, ACreateThatMayHaveHappenedIsNotRepeated) {
  transport_.WillFail(Unavailable("reset"));
  EXPECT_TRUE(absl::IsUnavailable(client_.Create(kPods, "ns", json::object()).status()));
  transport_.Will(500, "");
  EXPECT_FALSE(client_.Bind({"ns", "p"}, "", "n", nullptr).ok());
  transport_.Will(504, "");
  EXPECT_FALSE(client_.Patch(kPods, {"ns", "p"}, PatchType::kJson, json::array()).ok());
  EXPECT_TRUE(sleeper_.sleeps.empty());
  EXPECT_EQ(transport_.requests.size(), 3u);
}

TEST_F(ClientTest, RetriesEnd) {
  for (int i = 0; i < 10; ++i) transport_.Will(503, "");
  EXPECT_TRUE(absl::IsUnavailable(client_.Get(kPods, {"ns", "p"}).status()));
  EXPECT_EQ(transport_.requests.size(), 6u);
}

TEST_F(ClientTest, AnInterruptEndsTheRetries) {
  CountingSleeper impatient(1);
  Client client(transport_, impatient, Rng(1));
  for (int i = 0; i < 10; ++i) transport_.Will(503, "");
  EXPECT_FALSE(client.Get(kPods, {"ns", "p"}).ok());
  EXPECT_EQ(transport_.requests.size(), 2u);
}

TEST_F(ClientTest, PagesAreFollowedAndAnExpiredListStartsAnew) {
  transport_.Will(200, R"({"metadata":{"continue":"c 1"},"items":[{"a":1},{"a":2}]})");
  transport_.Will(410, StatusBody(410, "Expired"));
  transport_.Will(200, R"({"metadata":{"continue":"c2"},"items":[{"a":1}]})");
  transport_.Will(200, R"({"metadata":{},"items":[{"a":3}]})");
  std::vector<int> seen;
  EXPECT_EQ(client_.ForEach(kPods, {.ns = "ns", .label_selector = "x in (a,b)", .limit = 2},
                            [&](const json& item) {
                              seen.push_back(item["a"]);
                              return absl::OkStatus();
                            }),
            absl::OkStatus());
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 1, 3}));
  EXPECT_EQ(transport_.requests[1].target,
            "/api/v1/namespaces/ns/pods?labelSelector=x%20in%20%28a%2Cb%29&continue=c%201&limit=2");
  transport_.Will(200, R"({"kind":"Pod"})");
  EXPECT_FALSE(client_.ForEach(kPods, {}, [](const json&) { return absl::OkStatus(); }).ok());
}

TEST_F(ClientTest, AListThatExpiredBetweenItsPagesIsAskedForWhole) {
  transport_.Will(200, R"({"metadata":{"continue":"c"},"items":[{"a":1}]})");
  transport_.Will(410, StatusBody(410, "Expired"));
  transport_.Will(200, R"({"metadata":{},"items":[{"a":1},{"a":2}]})");
  int count = 0;
  const auto each = [&](const json&) {
    ++count;
    return absl::OkStatus();
  };
  EXPECT_EQ(client_.ForEach(kPods, {.ns = "ns", .limit = 1}, each), absl::OkStatus());
  EXPECT_EQ(transport_.requests[2].target, "/api/v1/namespaces/ns/pods");
  EXPECT_EQ(count, 3);
}

TEST_F(ClientTest, GoServersWriteAnEmptyListAsNull) {
  transport_.Will(200, R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":null})");
  EXPECT_EQ(client_.ForEach(kPods, {}, [](const json&) { return absl::OkStatus(); }),
            absl::OkStatus());
}

TEST_F(ClientTest, ARedirectIsAnErrorAndNotAnAnswer) {
  for (const int status : {301, 302, 307, 308}) {
    transport_.Will(status, "", {{"Location", "https://elsewhere/"}});
    const absl::Status error = client_.Get(kPods, {"ns", "p"}).status();
    ASSERT_FALSE(error.ok()) << status;
    EXPECT_EQ(ApiErrorOf(error)->code, status);
  }
  EXPECT_TRUE(sleeper_.sleeps.empty()) << "asking again would not help";
}

TEST_F(ClientTest, APageOfAProxyIsNotTakenForAnAnswer) {
  for (int i = 0; i < 6; ++i) transport_.Will(200, "<html>Please log in</html>");
  EXPECT_TRUE(absl::IsUnavailable(client_.Get(kPods, {"ns", "p"}).status()));
  transport_.Will(403, "<html>\xff\xfe</html>");
  EXPECT_TRUE(absl::IsPermissionDenied(client_.Get(kPods, {"ns", "p"}).status()));
}

TEST_F(ClientTest, ErrorsOfAnyShapeAreRead) {
  for (const char* body :
       {"", "null", "[]", "3", "\"x\"", R"({"details":7})", R"({"details":{"causes":{}}})",
        R"({"details":{"causes":[1,null,{"field":4}]}})", R"({"reason":5,"message":[]})",
        R"({"details":{"retryAfterSeconds":-9223372036854775808}})",
        R"({"details":{"retryAfterSeconds":18446744073709551615}})"}) {
    transport_.Will(404, body, {{"Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"}});
    const absl::Status error = client_.Get(kPods, {"ns", "p"}).status();
    EXPECT_TRUE(absl::IsNotFound(error)) << body;
    EXPECT_EQ(ApiErrorOf(error)->code, 404) << body;
    EXPECT_EQ(ApiErrorOf(error)->retry_after.value_or(seconds(0)), seconds(0)) << body;
  }
}

// The defect: the answer of a server in the same process was taken for an empty one.
TEST_F(ClientTest, AnAnswerThatComesAsAValueIsRead) {
  transport_.WillAnswer(
      {.status = 200, .parsed = std::make_shared<const json>(json{{"kind", "Pod"}})});
  EXPECT_EQ(*client_.Get(kPods, {"ns", "p"}), (json{{"kind", "Pod"}}));
}

TEST_F(ClientTest, AnObjectWithoutANameIsNotSent) {
  EXPECT_TRUE(absl::IsInvalidArgument(client_.Update(kPods, json::object()).status()));
  EXPECT_TRUE(transport_.requests.empty());
}

}  // namespace
}  // namespace tahoma::kube
