// Who may call the admin API: reading needs view, in its namespaces; everything else is for admin,
// and has a line in the audit.

#include "controller/admin/admin_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "controller/access/identity_file.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AdminAccessTest : public ::testing::Test {
 protected:
  AdminAccessTest()
      : access_(std::make_shared<const AccessControl>(*AccessTable::Make(
                    {AdminOfToken("ops"),
                     {.name = "vera", .token = Sha256("vera"), .role = Role::kView},
                     {.name = "team",
                      .token = Sha256("team"),
                      .role = Role::kEdit,
                      .groups = {},
                      .namespaces = {"a"}}},
                    false)),
                {.append = [this](const std::string& line) { audit_.push_back(line); }}, clock_,
                1) {}

  static rest::Request RequestOf(const std::string& token, const std::string& method,
                                 const std::string& path) {
    rest::Request request;
    request.method = method;
    request.target = request.path = path;
    request.peer = "127.0.0.1:1";
    if (!token.empty()) request.headers = {{"Authorization", "Bearer " + token}};
    return request;
  }
  // 200 when the handler would be called.
  int Ask(const std::string& token, const std::string& method, const std::string& path) {
    rest::Request request = RequestOf(token, method, path);
    const auto refusal = access_.Admit(request);
    return refusal ? refusal->status : 200;
  }

  ManualClock clock_;
  std::vector<std::string> audit_;
  AdminAccess access_;
};

TEST_F(AdminAccessTest, ReadingNeedsViewAndInNamespacesOnlyThere) {
  for (const char* path : {"/v1/topology", "/v1/nodes", "/v1/gangs", "/v1/gangs/b/train",
                           "/v1/why/b/train", "/metrics"}) {
    EXPECT_EQ(Ask("ops", "GET", path), 200) << path;
    EXPECT_EQ(Ask("vera", "GET", path), 200) << path;
    EXPECT_EQ(Ask("team", "GET", path), 403) << path;
    EXPECT_EQ(Ask("", "GET", path), 401) << path;
    EXPECT_EQ(Ask("other", "GET", path), 401) << path;
  }
  EXPECT_EQ(Ask("team", "GET", "/v1/why/a/train"), 200);
  EXPECT_EQ(Ask("team", "GET", "/v1/gangs/a/train"), 200);
  EXPECT_EQ(Ask("team", "GET", "/v1/gangs/%62/train"), 403);
  EXPECT_EQ(Ask("team", "GET", "/v1/gangs//train"), 403);
  EXPECT_THAT(audit_, IsEmpty());
}

TEST_F(AdminAccessTest, ChangesAreAdminsAndAudited) {
  EXPECT_EQ(Ask("vera", "POST", "/v1/backup"), 403);
  ASSERT_THAT(audit_, SizeIs(1));
  EXPECT_THAT(audit_[0], HasSubstr(R"("username":"vera")"));
  EXPECT_THAT(audit_[0], HasSubstr(R"("code":403)"));
  rest::Request request = RequestOf("ops", "POST", "/v1/backup");
  ASSERT_FALSE(access_.Admit(request));
  const rest::Handler handler =
      access_.Audited([](const rest::Request&) { return rest::Response::Text(202, "begun"); });
  const rest::Response answer = handler(request);
  EXPECT_EQ(answer.status, 202);
  ASSERT_THAT(audit_, SizeIs(2));
  const Json line = Json::parse(audit_[1]);
  EXPECT_EQ(line.at("user").at("username"), "admin");
  EXPECT_EQ(line.at("requestURI"), "/v1/backup");
  EXPECT_EQ(line.at("responseStatus").at("code"), 202);
}

TEST_F(AdminAccessTest, ARefusalSaysWhatIsMissing) {
  rest::Request request = RequestOf("team", "GET", "/v1/topology");
  const auto refusal = access_.Admit(request);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->content_type, "application/problem+json");
  EXPECT_THAT(refusal->body, HasSubstr("cannot list resource"));
}

}  // namespace
}  // namespace tahoma::controller
