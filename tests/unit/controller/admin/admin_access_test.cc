// Access to the admin API: reading needs view, in its namespaces; everything else is for admin,
// and has a line in the audit.

#include "controller/admin/admin_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "controller/access/identity_file.h"
#include "controller/admin/admin_api.h"
#include "lib/base/json.h"
#include "tests/unit/lib/kube/scripted_transport.h"

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
                     {.name = "system:node:n1", .token = Sha256("n1"), .role = Role::kNode},
                     {.name = "team",
                      .token = Sha256("team"),
                      .role = Role::kEdit,
                      .groups = {},
                      .namespaces = {"a"}}},
                    false)),
                {.append = [this](const std::string& line) { audit_.push_back(line); }}, clock_, 1,
                admin_.routes()) {}

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
  testing::ScriptedTransport nowhere_;
  AdminApi admin_{{.snapshot = nullptr, .order = nullptr, .objects = nowhere_}, clock_};
  std::vector<std::string> audit_;
  AdminAccess access_;
};

TEST_F(AdminAccessTest, ReadingNeedsViewAndInNamespacesOnlyThere) {
  for (const char* path : {"/v1/topology", "/v1/nodes", "/v1/gangs", "/v1/gangs/b/train",
                           "/v1/clock", "/v1/why/b/train", "/metrics"}) {
    EXPECT_EQ(Ask("ops", "GET", path), 200) << path;
    EXPECT_EQ(Ask("vera", "GET", path), 200) << path;
    EXPECT_EQ(Ask("team", "GET", path), 403) << path;
    EXPECT_EQ(Ask("", "GET", path), 401) << path;
    EXPECT_EQ(Ask("other", "GET", path), 401) << path;
  }
  EXPECT_EQ(Ask("team", "GET", "/v1/why/a/train"), 200);
  EXPECT_EQ(Ask("team", "GET", "/v1/gangs/a/train"), 200);
  EXPECT_EQ(Ask("team", "GET", "/v1/gangs/%62/train"), 403);
  EXPECT_THAT(audit_, IsEmpty());
  EXPECT_EQ(Ask("team", "GET", "/v1/gangs//train"), 403);
}

TEST_F(AdminAccessTest, ANodeCordonsAndDrainsNothingNotEvenItself) {
  for (const char* path : {"/v1/nodes/n1/cordon", "/v1/nodes/n1/uncordon", "/v1/nodes/n1/drain",
                           "/v1/nodes/n1/chips/3/uncordon", "/v1/ultraservers/n1/drain"}) {
    EXPECT_EQ(Ask("ops", "POST", path), 200) << path;
    EXPECT_EQ(Ask("n1", "POST", path), 403) << path;
  }
  EXPECT_EQ(Ask("n1", "GET", "/v1/nodes"), 403);
  EXPECT_EQ(Ask("n1", "GET", "/metrics"), 403);
}

TEST_F(AdminAccessTest, ACallForAdminsOnlyLeavesALineAlsoWhenItIsRefused) {
  for (const char* method : {"GET", "HEAD", "POST"}) {
    for (const char* path : {"/v1/backup", "/v1/%62ackup", "/v1/backup/"}) {
      audit_.clear();
      EXPECT_EQ(Ask("vera", method, path), 403);
      ASSERT_THAT(audit_, SizeIs(1)) << method << " " << path;
      const Json line = ParseJson(audit_[0]);
      EXPECT_EQ(line.at("user").at("username"), "vera");
      EXPECT_EQ(line.at("requestURI"), path);
      EXPECT_EQ(line.at("sourceIPs"), Json({"127.0.0.1"}));
      EXPECT_EQ(line.at("responseStatus").at("code"), 403);
      EXPECT_EQ(line.at("annotations").at("authorization.k8s.io/decision"), "forbid");
    }
  }
  audit_.clear();
  EXPECT_EQ(Ask("", "GET", "/v1/backup"), 401);
  EXPECT_THAT(audit_, IsEmpty()) << "nobody is known";
}

TEST_F(AdminAccessTest, ARightWithdrawnAfterTheGateIsMissedBeforeTheHandler) {
  const auto control =
      std::make_shared<AccessControl>(*AccessTable::Make({AdminOfToken("ops")}, false));
  AdminAccess access(control,
                     {.append = [this](const std::string& line) { audit_.push_back(line); }},
                     clock_, 1, admin_.routes());
  const rest::Handler handler =
      access.Audited([](const rest::Request&) { return rest::Response::Text(200, "everything"); });
  rest::Request request = RequestOf("ops", "GET", "/v1/backup");
  ASSERT_FALSE(access.Admit(request));
  EXPECT_EQ(handler(request).status, 200);
  control->Replace(
      *AccessTable::Make({{.name = "admin", .token = Sha256("ops"), .role = Role::kView}}, false));
  EXPECT_EQ(handler(request).status, 403);
  ASSERT_THAT(audit_, SizeIs(2));
  const Json line = ParseJson(audit_[1]);
  EXPECT_EQ(line.at("responseStatus").at("code"), 403);
  EXPECT_EQ(line.at("annotations").at("authorization.k8s.io/decision"), "forbid");
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
