// The admin API of a controller that asks its cluster: what our own API server says of a user's
// rights decides, over real sockets. Whose a token is, which that server is not asked in
// standalone mode, is answered here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/access/identity_file.h"
#include "controller/admin/admin_access.h"
#include "controller/admin/admin_api.h"
#include "controller/apiserver/http/http_front.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/http_transport.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Sends all but TokenReviews on. A token "of-NAME" is NAME's.
class WithTokens final : public kube::Transport {
 public:
  explicit WithTokens(kube::Transport& api) : api_(api) {}
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    if (!request.target.ends_with("/tokenreviews")) return api_.Send(request);
    const std::string token = ParseJson(request.Text()).at("spec").at("token");
    Json status = {{"authenticated", token.starts_with("of-")}};
    if (token.starts_with("of-")) status["user"] = {{"username", token.substr(3)}};
    return kube::Response{.status = 201, .body = Json({{"status", status}}).dump()};
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds idle) override {
    return api_.Stream(request, sink, idle);
  }

 private:
  kube::Transport& api_;
};

class AdminClusterTest : public testing::ApiFixture {
 protected:
  AdminClusterTest() {
    apiserver::HttpFrontOptions options;
    options.access = std::make_shared<AccessControl>(
        *AccessTable::Make({{.name = "controller", .token = Sha256("t"), .role = Role::kAdmin},
                            {.name = "ana", .token = Sha256("a"), .role = Role::kAdmin},
                            {.name = "vera", .token = Sha256("v"), .role = Role::kView}},
                           false));
    front_ = std::make_unique<apiserver::HttpFront>(*server_, std::move(options), metrics_);
    TAHOMA_CHECK_OK(front_->Start());
    transport_ = *kube::HttpTransport::Create({.server = front_->url(), .token = "t"});
    tokens_.emplace(*transport_);
    cluster_.emplace(*tokens_, clock_);
    admin_.emplace(AdminApi::Sources{.snapshot = nullptr, .order = nullptr, .objects = *transport_},
                   clock_);
    Identities({AdminOfToken("file")});
  }
  ~AdminClusterTest() override { front_->Stop(); }

  // Makes the access of a controller in the cluster.
  void Identities(const std::vector<IdentityEntry>& entries) {
    access_.emplace(
        std::make_shared<const AccessControl>(*AccessTable::Make(entries, false)),
        AuditSink{.append = [this](const std::string& line) { audit_.push_back(line); }}, clock_, 1,
        admin_->routes(), &*cluster_);
  }
  struct Outcome {
    int status = 200;  // when the handler would be called
    std::string body = {};
    std::string user = {};
  };
  Outcome Ask(const std::string& token, const std::string& path,
              const std::string& method = "GET") {
    rest::Request request;
    request.method = method;
    request.target = request.path = path;
    if (!token.empty()) request.headers = {{"Authorization", "Bearer " + token}};
    Outcome outcome;
    if (const auto refusal = access_->Admit(request)) {
      outcome = {.status = refusal->status, .body = refusal->body};
    }
    if (request.identity != nullptr) outcome.user = request.identity->name;
    return outcome;
  }

  rest::Metrics metrics_;
  std::unique_ptr<apiserver::HttpFront> front_;
  std::unique_ptr<kube::HttpTransport> transport_;
  std::optional<WithTokens> tokens_;
  std::optional<ClusterAccess> cluster_;
  std::optional<AdminApi> admin_;
  std::optional<AdminAccess> access_;
  std::vector<std::string> audit_;
};

TEST_F(AdminClusterTest, TheClusterDecidesAboutATokenThatTheFilesDoNotKnow) {
  for (const char* path : {"/metrics", "/v1/topology", "/v1/gangs/a/b", "/v1/nothing"}) {
    const Outcome ana = Ask("of-ana", path);
    EXPECT_EQ(ana.status, 200) << path << ": " << ana.body;
    EXPECT_EQ(ana.user, "ana");
    EXPECT_EQ(Ask("of-stranger", path).status, 403) << path;
    EXPECT_EQ(Ask("no-token", path).status, 401) << path;
    EXPECT_EQ(Ask("", path).status, 401) << path;
  }
  EXPECT_THAT(Ask("of-vera", "/v1/topology").body,
              HasSubstr(R"(User \"vera\" cannot get path \"/v1/topology\")"));
  EXPECT_EQ(Ask("of-ana", "/v1/topology", "HEAD").status, 200);
}

TEST_F(AdminClusterTest, TheClusterIsNotAskedAboutACallerInTheFiles) {
  Identities({AdminOfToken("file"),
              {.name = "team",
               .token = Sha256("of-ana"),
               .role = Role::kView,
               .groups = {},
               .namespaces = {"a"}}});
  front_->Stop();
  EXPECT_EQ(Ask("file", "/v1/topology").status, 200);
  EXPECT_EQ(Ask("of-ana", "/v1/gangs/a/b").status, 200);
  EXPECT_EQ(Ask("of-ana", "/v1/topology").status, 403) << "as team, whatever ana may";
}

TEST_F(AdminClusterTest, WithoutFilesNothingIsOpen) {
  Identities({});
  EXPECT_EQ(Ask("", "/metrics").status, 401);
  EXPECT_EQ(Ask("no-token", "/metrics").status, 401);
  EXPECT_EQ(Ask("of-ana", "/metrics").status, 200);
}

TEST_F(AdminClusterTest, AChangeByACallerOfTheClusterHasALineWithHisName) {
  const rest::Handler handler =
      access_->Audited([](const rest::Request&) { return rest::Response::Json(200, "{}"); });
  rest::Request request;
  request.method = "POST";
  request.target = request.path = "/v1/nodes/n/cordon";
  request.headers = {{"Authorization", "Bearer of-ana"}};
  ASSERT_FALSE(access_->Admit(request));
  EXPECT_EQ(handler(request).status, 200);
  EXPECT_EQ(Ask("of-vera", "/v1/nodes/n/cordon", "POST").status, 403);
  ASSERT_THAT(audit_, SizeIs(2));
  const Json done = ParseJson(audit_[0]), refused = ParseJson(audit_[1]);
  EXPECT_EQ(done["user"]["username"], "ana");
  EXPECT_EQ(done["verb"], "patch");
  EXPECT_EQ(done["objectRef"]["name"], "n");
  EXPECT_EQ(done["annotations"]["authorization.k8s.io/decision"], "allow");
  EXPECT_EQ(refused["user"]["username"], "vera");
  EXPECT_EQ(refused["responseStatus"]["code"], 403);
}

TEST_F(AdminClusterTest, ACallerIsToldThatTheClusterDoesNotAnswer) {
  front_->Stop();
  const Outcome outcome = Ask("of-ana", "/metrics");
  EXPECT_EQ(outcome.status, 503);
  EXPECT_THAT(outcome.body, HasSubstr("the cluster cannot be asked who calls and what he may: "
                                      "SubjectAccessReview: "));
  EXPECT_EQ(Ask("", "/metrics").status, 401);
}

TEST_F(AdminClusterTest, ARefusedCallForAdminsOnlyLeavesALine) {
  EXPECT_EQ(Ask("of-stranger", "/v1/nodes").status, 403);
  EXPECT_THAT(audit_, IsEmpty());
  EXPECT_EQ(Ask("of-stranger", "/v1/backup").status, 403);
  ASSERT_THAT(audit_, SizeIs(1));
  EXPECT_EQ(ParseJson(audit_[0]).at("user").at("username"), "stranger");
}

}  // namespace
}  // namespace tahoma::controller
