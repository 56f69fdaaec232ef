// Tokens of service accounts from their request to their end, over real sockets.

#include <gmock/gmock.h>
#include <httplib.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "controller/apiserver/http/http_front.h"
#include "lib/base/status.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kBuilder = "/api/v1/namespaces/default/serviceaccounts/builder";
constexpr const char* kBuilderToken = "/api/v1/namespaces/default/serviceaccounts/builder/token";
constexpr const char* kTokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr const char* kWhoAmI = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
constexpr const char* kDefaultPods = "/api/v1/namespaces/default/pods";

class ServiceAccountTokensTest : public testing::ApiFixture {
 protected:
  ServiceAccountTokensTest() {
    for (const char* space : {"default", "other"}) {
      if (space != std::string("default")) Make("/api/v1/namespaces", Named(space));
      for (const char* name : {"builder", "default"}) {
        Make(std::string("/api/v1/namespaces/") + space + "/serviceaccounts", Named(name));
      }
    }
    Make("/api/v1/nodes", Named("n1"));
    Make("/api/v1/nodes", Named("n2"));
    HttpFrontOptions options;
    options.access = std::make_shared<AccessControl>(Table());
    front_ = std::make_unique<HttpFront>(*server_, std::move(options), metrics_);
    TAHOMA_CHECK_OK(front_->Start());
  }
  ~ServiceAccountTokensTest() override { front_->Stop(); }

  static std::string KnownToken(const std::string& name) { return "the-token-of-" + name; }
  static AccessTable Table() {
    const auto entry = [](const std::string& name, Role role,
                          std::vector<std::string> namespaces = {}) {
      return IdentityEntry{.name = name,
                           .token = Sha256(KnownToken(name)),
                           .role = role,
                           .groups = {},
                           .namespaces = std::move(namespaces)};
    };
    IdentityEntry account =
        entry("system:serviceaccount:default:builder", Role::kView, {"default"});
    account.token = std::nullopt;
    auto table = AccessTable::Make(
        {entry("ops", Role::kAdmin), entry("team", Role::kEdit, {"default"}),
         entry("vera", Role::kView), entry("system:node:n1", Role::kNode), account},
        false);
    TAHOMA_CHECK_OK(table.status());
    return *std::move(table);
  }
  static Json Named(const std::string& name) { return {{"metadata", {{"name", name}}}}; }
  void Make(const std::string& target, const Json& body) {
    const auto made = Call("POST", target, body);
    TAHOMA_CHECK(made.status == 201);
  }
  // Makes a pod of an account on a node and returns its uid.
  std::string MakePod(const std::string& name, const std::string& node,
                      const std::string& account = "builder", const Json& volumes = nullptr) {
    Json pod = PodOf(name);
    pod["spec"]["nodeName"] = node;
    pod["spec"]["serviceAccountName"] = account;
    if (!volumes.is_null()) pod["spec"]["volumes"] = volumes;
    const auto made = Call("POST", kDefaultPods, pod);
    EXPECT_EQ(made.status, 201) << made.text;
    return made.body.at("metadata").at("uid");
  }

  testing::Answer With(const std::string& token, const std::string& method,
                       const std::string& target, const std::string& body = "") {
    httplib::Client client(front_->url());
    client.set_bearer_token_auth(token);
    client.set_read_timeout(10);
    httplib::Request request;
    request.method = method;
    request.path = target;
    request.body = body;
    if (!body.empty()) request.set_header("Content-Type", "application/json");
    const auto result = client.send(request);
    testing::Answer answer;
    if (!result) return answer;
    answer.status = result->status;
    answer.text = result->body;
    answer.body = TryParseJson(result->body);
    return answer;
  }
  testing::Answer As(const std::string& who, const std::string& method, const std::string& target,
                     const Json& body) {
    return With(KnownToken(who), method, target, body.dump());
  }
  std::string TokenOf(const Json& spec = Json::object()) {
    const auto made = As("ops", "POST", kBuilderToken, {{"spec", spec}});
    EXPECT_EQ(made.status, 201) << made.text;
    return made.body.at("status").at("token");
  }
  static Json BoundTo(const std::string& kind, const std::string& name,
                      const std::string& uid = "") {
    Json ref = {{"apiVersion", "v1"}, {"kind", kind}, {"name", name}};
    if (!uid.empty()) ref["uid"] = uid;
    return {{"boundObjectRef", ref}};
  }
  bool IsGood(const std::string& token) {
    const int status = With(token, "GET", kDefaultPods).status;
    EXPECT_TRUE(status == 200 || status == 401) << status;
    return status == 200;
  }
  // The status of a TokenReview.
  Json Reviewed(const std::string& token, const Json& audiences = nullptr) {
    Json spec = {{"token", token}};
    if (!audiences.is_null()) spec["audiences"] = audiences;
    const auto answer = As("ops", "POST", kTokenReviews, {{"spec", spec}});
    EXPECT_EQ(answer.status, 201) << answer.text;
    return answer.body.at("status");
  }
  std::string WhyNot(const std::string& token, const Json& audiences = nullptr) {
    const Json status = Reviewed(token, audiences);
    EXPECT_FALSE(status.contains("authenticated"));
    return status.value("error", "");
  }

  rest::Metrics metrics_;
  std::unique_ptr<HttpFront> front_;
};

TEST_F(ServiceAccountTokensTest, ATokenRequestIsAnsweredInFull) {
  const auto made = As("ops", "POST", kBuilderToken, Json::object());
  ASSERT_EQ(made.status, 201) << made.text;
  Json shown = made.body;
  shown["status"].erase("token");
  EXPECT_EQ(shown, ParseJson(R"({
    "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
    "metadata": {"name": "builder", "namespace": "default",
                 "creationTimestamp": "2027-01-15T08:00:00Z"},
    "spec": {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600,
             "boundObjectRef": null},
    "status": {"expirationTimestamp": "2027-01-15T09:00:00Z"}})"));
}

TEST_F(ServiceAccountTokensTest, WrongRequestsAreRefusedInKubernetesWords) {
  const std::string uid = MakePod("p", "n1");
  struct Wrong {
    Json body;
    int status;
    std::string message;
  };
  const auto spec = [](Json value) { return Json{{"spec", std::move(value)}}; };
  const std::vector<Wrong> cases = {
      {spec({{"expirationSeconds", 599}}), 422,
       R"(TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid )"
       "value: 599: may not specify a duration less than 10 minutes"},
      {spec({{"expirationSeconds", 4294967297}}), 422,
       R"(TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid )"
       "value: 4294967297: may not specify a duration larger than 2^32 seconds"},
      {Named("other"), 422,
       R"(TokenRequest.authentication.k8s.io "builder" is invalid: metadata.name: Invalid value: )"
       R"("other": must match the service account name if specified)"},
      {spec(BoundTo("Pod", "missing")), 404, R"(pods "missing" not found)"},
      {spec(BoundTo("ConfigMap", "c")), 400,
       "cannot bind token to object of type /v1, Kind=ConfigMap"},
      {spec(BoundTo("Pod", "p", "u")), 409,
       R"(Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (u) )"
       "does not match the UID in record. The object might have been deleted and then recreated"}};
  for (const Wrong& wrong : cases) {
    const auto refused = As("ops", "POST", kBuilderToken, wrong.body);
    EXPECT_EQ(refused.status, wrong.status) << refused.text;
    EXPECT_EQ(refused.message(), wrong.message);
  }
  const std::string accounts = "/api/v1/namespaces/default/serviceaccounts/";
  EXPECT_EQ(As("ops", "POST", accounts + "default/token", spec(BoundTo("Pod", "p", uid))).message(),
            R"(cannot bind token for serviceaccount "default" to pod running with different )"
            "serviceaccount name.");
  EXPECT_EQ(As("ops", "POST", accounts + "nobody/token", Json::object()).message(),
            R"(serviceaccounts "nobody" not found)");
  EXPECT_EQ(With(KnownToken("ops"), "GET", kBuilderToken).status, 405);
  const auto large =
      As("ops", "POST", kBuilderToken, spec({{"audiences", {std::string(20 << 10, 'a')}}}));
  EXPECT_EQ(large.status, 422) << large.text;
  EXPECT_THAT(large.message(), HasSubstr("spec.audiences: Too long"));
}

TEST_F(ServiceAccountTokensTest, NoFieldOfAnotherTypeIsAMistakeOfTheServer) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    1.5,
                                    "x",
                                    "",
                                    1e300,
                                    Json::array(),
                                    Json::object(),
                                    Json::array({1}),
                                    Json::array({nullptr}),
                                    1ULL << 63U};
  Json whole = {{"apiVersion", "authentication.k8s.io/v1"},
                {"kind", "TokenRequest"},
                {"metadata", {{"name", "builder"}}},
                {"spec", BoundTo("Pod", "p", "u")},
                {"status", {{"token", "t"}}}};
  whole["spec"]["audiences"] = {"a"};
  whole["spec"]["expirationSeconds"] = 600;
  const Json review = {{"metadata", Json::object()},
                       {"spec", {{"token", "t"}, {"audiences", {"a"}}}}};
  for (const auto& [target, body] :
       {std::pair(kBuilderToken, whole), std::pair(kTokenReviews, review)}) {
    const Json flat = body.flatten();
    for (const Json& value : values) {
      EXPECT_NE(As("ops", "POST", target, value).status / 100, 5) << value.dump();
      for (const auto& [pointer, leaf] : MembersOf(flat)) {
        for (std::string at = pointer; !at.empty(); at.resize(at.rfind('/'))) {
          Json swapped = body;
          swapped[Json::json_pointer(at)] = value;
          const auto answer = As("ops", "POST", target, swapped);
          ASSERT_NE(answer.status, 0);
          EXPECT_NE(answer.status / 100, 5) << at << " " << value.dump() << ": " << answer.text;
        }
      }
    }
  }
}

TEST_F(ServiceAccountTokensTest, WhoShowsTheTokenIsTheAccount) {
  const std::string uid = MakePod("p", "n1");
  const auto who = With(TokenOf(BoundTo("Pod", "p", uid)), "POST", kWhoAmI, "{}");
  ASSERT_EQ(who.status, 201) << who.text;
  Json user = who.body.at("status").at("userInfo");
  EXPECT_EQ(user.at("username"), "system:serviceaccount:default:builder");
  EXPECT_THAT(user.at("groups"),
              ElementsAre("system:serviceaccounts", "system:serviceaccounts:default",
                          "system:authenticated"));
  EXPECT_EQ(user.at("uid"), Call("GET", kBuilder).body.at("metadata").at("uid"));
  const Json& extra = user.at("extra");
  EXPECT_THAT(extra.at("authentication.kubernetes.io/pod-name"), ElementsAre("p"));
  EXPECT_THAT(extra.at("authentication.kubernetes.io/pod-uid"), ElementsAre(uid));
  EXPECT_THAT(extra.at("authentication.kubernetes.io/node-name"), ElementsAre("n1"));
  EXPECT_EQ(extra.at("authentication.kubernetes.io/node-uid").at(0),
            Call("GET", "/api/v1/nodes/n1").body.at("metadata").at("uid"));
  EXPECT_THAT(extra.at("authentication.kubernetes.io/credential-id").at(0).get<std::string>(),
              HasSubstr("JTI="));
}

TEST_F(ServiceAccountTokensTest, AnAccountMayDoWhatTheIdentityFileGivesItsName) {
  const std::string token = TokenOf();
  EXPECT_EQ(With(token, "GET", kDefaultPods).status, 200);
  EXPECT_EQ(With(token, "GET", "/api/v1/namespaces/other/pods").status, 403);
  EXPECT_EQ(With(token, "POST", kDefaultPods, PodOf("q").dump()).status, 403);
  EXPECT_EQ(With(token, "GET", "/openid/v1/jwks").body, tokens_->PublicKeys());
  const auto other =
      As("ops", "POST", "/api/v1/namespaces/other/serviceaccounts/builder/token", Json::object());
  EXPECT_EQ(With(other.body.at("status").at("token"), "GET", kDefaultPods).message(),
            "pods is forbidden: User \"system:serviceaccount:other:builder\" cannot list resource "
            "\"pods\" in API group \"\" in the namespace \"default\"");
}

TEST_F(ServiceAccountTokensTest, ATokenEndsWithItsTime) {
  const std::string token = TokenOf({{"expirationSeconds", 600}});
  clock_.Advance(seconds(660));
  EXPECT_TRUE(IsGood(token)) << "within the leeway";
  clock_.Advance(seconds(1));
  EXPECT_FALSE(IsGood(token));
  EXPECT_EQ(WhyNot(token), "service account token has expired");
}

TEST_F(ServiceAccountTokensTest, AClockThatIsSetBackEndsTokens) {
  const std::string token = TokenOf();
  clock_.Advance(-seconds(61));
  EXPECT_FALSE(IsGood(token));
  EXPECT_EQ(WhyNot(token), "service account token is not valid yet");
  clock_.Advance(seconds(1));
  EXPECT_TRUE(IsGood(token));
}

TEST_F(ServiceAccountTokensTest, ATokenEndsWithItsAccountAndIsNotTheNextOnes) {
  const std::string token = TokenOf();
  ASSERT_EQ(Call("DELETE", kBuilder).status, 200);
  EXPECT_FALSE(IsGood(token));
  EXPECT_EQ(WhyNot(token), R"(serviceaccounts "builder" not found)");
  Make("/api/v1/namespaces/default/serviceaccounts", Named("builder"));
  EXPECT_FALSE(IsGood(token));
  EXPECT_THAT(WhyNot(token), HasSubstr("service account UID ("));
  EXPECT_TRUE(IsGood(TokenOf()));
}

TEST_F(ServiceAccountTokensTest, ATokenEndsWithThePodSecretOrNodeThatItIsBoundTo) {
  const std::string pod = std::string(kDefaultPods) + "/p";
  MakePod("p", "n1");
  Make("/api/v1/namespaces/default/secrets", Named("s"));
  const std::string of_pod = TokenOf(BoundTo("Pod", "p"));
  const std::string of_secret = TokenOf(BoundTo("Secret", "s"));
  const std::string of_node = TokenOf(BoundTo("Node", "n2"));
  EXPECT_TRUE(IsGood(of_pod) && IsGood(of_secret) && IsGood(of_node));
  // A node that is gone ends no token of a pod: the pod's own end does.
  ASSERT_EQ(Call("DELETE", "/api/v1/nodes/n1").status, 200);
  EXPECT_TRUE(IsGood(of_pod));
  // A pod in deletion may go on until its end, and a minute.
  ASSERT_EQ(Call("DELETE", pod).status, 200);
  clock_.Advance(seconds(89));
  EXPECT_TRUE(IsGood(of_pod));
  clock_.Advance(seconds(2));
  EXPECT_FALSE(IsGood(of_pod));
  EXPECT_EQ(WhyNot(of_pod), "service account token has been invalidated");
  ASSERT_EQ(Call("DELETE", pod + "?gracePeriodSeconds=0").status, 200);
  MakePod("p", "n2");
  EXPECT_THAT(WhyNot(of_pod), HasSubstr("pod UID ("));
  ASSERT_EQ(Call("DELETE", "/api/v1/namespaces/default/secrets/s").status, 200);
  EXPECT_FALSE(IsGood(of_secret));
  ASSERT_EQ(Call("DELETE", "/api/v1/nodes/n2").status, 200);
  EXPECT_FALSE(IsGood(of_node));
}

TEST_F(ServiceAccountTokensTest, ATokenForAnotherAudienceIsNotForThisServer) {
  const std::string token = TokenOf({{"audiences", {"vault", "registry"}}});
  EXPECT_FALSE(IsGood(token));
  EXPECT_EQ(WhyNot(token),
            "token audiences [\"vault\" \"registry\"] is invalid for the target "
            "audiences [\"https://kubernetes.default.svc\"]");
  const Json status = Reviewed(token, {"registry", "x"});
  EXPECT_EQ(status.at("authenticated"), true);
  EXPECT_EQ(status.at("audiences"), Json::array({"registry"}));
  EXPECT_EQ(status.at("user").at("username"), "system:serviceaccount:default:builder");
}

TEST_F(ServiceAccountTokensTest, AReviewSaysWhoseATokenOfTheIdentityFileIs) {
  Json status = Reviewed(KnownToken("vera"));
  EXPECT_EQ(status, ParseJson(R"({"authenticated": true,
    "audiences": ["https://kubernetes.default.svc"],
    "user": {"username": "vera", "groups": ["system:authenticated"]}})"));
  EXPECT_FALSE(Reviewed(KnownToken("vera"), {"vault"}).contains("authenticated"));
  EXPECT_EQ(WhyNot("made-up"), "invalid bearer token");
  EXPECT_EQ(As("ops", "POST", kTokenReviews, Json::object()).message(),
            "token is required for TokenReview in authentication");
  EXPECT_EQ(As("team", "POST", kTokenReviews, {{"spec", {{"token", "x"}}}}).status, 403);
  EXPECT_EQ(WhyNot(std::string(200 << 10, 'x')), "invalid bearer token");
  EXPECT_EQ(
      As("ops", "POST", kTokenReviews, {{"spec", {{"token", std::string(1 << 20, 'x')}}}}).status,
      413);
}

TEST_F(ServiceAccountTokensTest, WhoMayEditANamespaceGetsTokensOfNoOther) {
  const std::string elsewhere = "/api/v1/namespaces/other/serviceaccounts/builder/token";
  EXPECT_EQ(As("team", "POST", kBuilderToken, Json::object()).status, 201);
  EXPECT_EQ(As("team", "POST", elsewhere, Json::object()).status, 403);
  EXPECT_EQ(As("team", "POST", elsewhere, {{"metadata", {{"namespace", "default"}}}}).status, 403);
  EXPECT_EQ(As("vera", "POST", kBuilderToken, Json::object()).status, 403);
}

TEST_F(ServiceAccountTokensTest, ANodeGetsTokensOfItsOwnPods) {
  const Json volumes = Json::array(
      {{{"name", "t"},
        {"projected",
         {{"sources",
           Json::array({{{"serviceAccountToken", {{"audience", "vault"}, {"path", "t"}}}}})}}}}});
  const std::string mine = MakePod("p", "n1", "builder", volumes);
  const std::string other = MakePod("q", "n2");
  const auto ask = [&](Json spec, const std::string& account = "builder") {
    return As("system:node:n1", "POST",
              "/api/v1/namespaces/default/serviceaccounts/" + account + "/token",
              {{"spec", std::move(spec)}});
  };
  const auto made = ask(BoundTo("Pod", "p", mine));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_TRUE(IsGood(made.body.at("status").at("token")));
  Json spec = BoundTo("Pod", "p", mine);
  spec["audiences"] = {"vault"};
  EXPECT_EQ(ask(spec).status, 201);
  spec["audiences"] = {"bank"};
  const std::string refused = R"(serviceaccounts "builder" is forbidden: )";
  EXPECT_THAT(ask(spec).message(), HasSubstr("audience \"bank\" not found in pod spec volume"));
  EXPECT_EQ(ask(Json::object()).message(), refused + "node requested token not bound to a pod");
  EXPECT_EQ(ask(BoundTo("Secret", "p", mine)).message(),
            refused + "node requested token not bound to a pod");
  EXPECT_EQ(ask(BoundTo("Pod", "p")).message(),
            refused + "node requested token with a pod binding without a uid");
  EXPECT_THAT(ask(BoundTo("Pod", "p", other)).message(), HasSubstr("does not match the UID"));
  EXPECT_EQ(ask(BoundTo("Pod", "q", other)).message(),
            refused + "node requested token bound to a pod scheduled on a different node");
  EXPECT_EQ(ask(BoundTo("Pod", "p", mine), "default").status, 403) << "no pod there uses it";
}

}  // namespace
}  // namespace tahoma::controller::apiserver
