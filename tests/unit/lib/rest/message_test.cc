// Requests, answers, percent-encoding and the mapping of errors.

#include "lib/rest/message.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::rest {
namespace {

TEST(MessageTest, HeadersAreFoundWithoutCase) {
  Request request;
  request.headers = {{"Content-Type", "a"}, {"content-type", "b"}};
  EXPECT_EQ(request.header("CONTENT-TYPE"), "a");
  EXPECT_EQ(request.header("Accept"), "");
}

TEST(MessageTest, QueriesAreDecoded) {
  Request request;
  request.query = "a=1&label=x%3Dy+z&flag&a=2&bad=%zz";
  EXPECT_EQ(request.query_value("a"), "1");
  EXPECT_EQ(request.query_value("label"), "x=y z");
  EXPECT_EQ(request.query_value("flag"), "");
  EXPECT_EQ(request.query_value("none"), std::nullopt);
  EXPECT_EQ(request.query_value("bad"), std::nullopt);
}

TEST(MessageTest, PercentDecodingRefusesWhatIsNotHex) {
  EXPECT_EQ(PercentDecode("a%2Fb%20c"), "a/b c");
  EXPECT_EQ(PercentDecode("+"), "+");
  EXPECT_EQ(PercentDecode("+", true), " ");
  for (const char* bad : {"%", "%1", "%g0", "a%0", "%00"}) EXPECT_FALSE(PercentDecode(bad)) << bad;
}

TEST(MessageTest, ErrorsBecomeProblems) {
  const Response response = Response::FromStatus(NotFound("no gang \"a\nb\""));
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.content_type, "application/problem+json");
  const auto problem = ParseJson(response.body);
  EXPECT_EQ(problem["title"], "Not Found");
  EXPECT_EQ(problem["status"], 404);
  EXPECT_EQ(problem["detail"], "no gang \"a\nb\"");
}

TEST(MessageTest, EveryErrorHasItsStatus) {
  EXPECT_EQ(Response::FromStatus(InvalidArgument("x")).status, 400);
  EXPECT_EQ(Response::FromStatus(Unauthenticated("x")).status, 401);
  EXPECT_EQ(Response::FromStatus(PermissionDenied("x")).status, 403);
  EXPECT_EQ(Response::FromStatus(Aborted("x")).status, 409);
  EXPECT_EQ(Response::FromStatus(ResourceExhausted("x")).status, 429);
  EXPECT_EQ(Response::FromStatus(ResourceExhausted("x")).headers.at(0).first, "Retry-After");
  EXPECT_EQ(Response::FromStatus(Internal("x")).status, 500);
  EXPECT_EQ(Response::FromStatus(Unimplemented("x")).status, 501);
  EXPECT_EQ(Response::FromStatus(Unavailable("x")).status, 503);
  EXPECT_EQ(Response::FromStatus(DeadlineExceeded("x")).status, 504);
}

TEST(MessageTest, AMessageThatIsNotUtf8StillBecomesAProblem) {
  EXPECT_TRUE(Json::accept(Response::Problem(400, "\xff\xfe").body));
}

}  // namespace
}  // namespace tahoma::rest
