// Several callers on one API, over real sockets: what each may do, what each is told about that,
// what the audit says, and what happens to open watches when the identities change.

#include <gmock/gmock.h>
#include <httplib.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "controller/apiserver/http/http_front.h"
#include "controller/apiserver/http/in_process_transport.h"
#include "controller/apiserver/protobuf/protobuf.h"
#include "lib/base/status.h"
#include "tests/support/api_fixture.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kReview = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

std::string TokenOf(const std::string& name) { return "the-token-of-" + name; }

IdentityEntry Entry(const std::string& name, Role role, std::vector<std::string> namespaces = {}) {
  return {.name = name,
          .token = Sha256(TokenOf(name)),
          .role = role,
          .groups = {},
          .namespaces = std::move(namespaces)};
}

class AccessOverHttpTest : public testing::ApiFixture {
 protected:
  AccessOverHttpTest() {
    access_ = std::make_shared<AccessControl>(
        Table({Entry("ops", Role::kAdmin), Entry("ed", Role::kEdit), Entry("vera", Role::kView),
               Entry("team", Role::kEdit, {"default"}), Entry("system:node:n1", Role::kNode),
               Entry("system:node:n2", Role::kNode)}));
    HttpFrontOptions options;
    options.access = access_;
    options.audit.append = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      audit_.push_back(ParseJson(line));
    };
    options.audit.writable = [this] { return audit_writable_.load(); };
    front_ = std::make_unique<HttpFront>(*server_, std::move(options), metrics_);
    TAHOMA_CHECK_OK(front_->Start());
  }
  ~AccessOverHttpTest() override { front_->Stop(); }

  static AccessTable Table(const std::vector<IdentityEntry>& entries) {
    auto table = AccessTable::Make(entries, false);
    TAHOMA_CHECK_OK(table.status());
    return *std::move(table);
  }
  testing::Answer As(const std::string& who, const std::string& method, const std::string& target,
                     const json& body = nullptr, const rest::Headers& headers = {}) {
    httplib::Client client(front_->url());
    client.set_bearer_token_auth(TokenOf(who));
    client.set_read_timeout(10);
    httplib::Request request;
    request.method = method;
    request.path = target;
    for (const auto& [name, value] : headers) request.set_header(name, value);
    if (!body.is_null()) {
      request.body = body.dump();
      request.set_header("Content-Type",
                         method == "PATCH" ? "application/merge-patch+json" : "application/json");
    }
    const auto result = client.send(request);
    testing::Answer answer;
    if (!result) return answer;
    answer.status = result->status;
    answer.text = result->body;
    answer.body = TryParseJson(result->body);
    for (const auto& [name, value] : result->headers) answer.headers.emplace_back(name, value);
    return answer;
  }
  bool CanI(const std::string& who, const json& attributes) {
    const auto answer = As(who, "POST", kReview, {{"spec", {{"resourceAttributes", attributes}}}});
    EXPECT_EQ(answer.status, 201) << answer.text;
    return answer.body.at("status").at("allowed");
  }
  std::vector<json> audit() {
    const std::lock_guard lock(mutex_);
    return audit_;
  }
  // Stored without asking anybody.
  void Make(const std::string& target, const json& body) {
    const auto made = Call("POST", target, body);
    ASSERT_EQ(made.status, 201) << made.text;
  }

  std::shared_ptr<AccessControl> access_;
  rest::Metrics metrics_;
  std::mutex mutex_;
  std::vector<json> audit_;
  std::atomic<bool> audit_writable_ = true;
  std::unique_ptr<HttpFront> front_;
};

TEST_F(AccessOverHttpTest, ARoleThatDoesNotSufficeIsToldSoAsByKubernetes) {
  const auto denied = As("vera", "POST", kMaps, ConfigMapOf("c", "1"));
  EXPECT_EQ(denied.status, 403);
  json status = denied.body;
  EXPECT_EQ(denied.message(), R"(configmaps is forbidden: User "vera" cannot create resource )"
                              R"("configmaps" in API group "" in the namespace "default")");
  status.erase("message");
  EXPECT_EQ(status, ParseJson(R"({
    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
    "reason": "Forbidden", "details": {"kind": "configmaps"}})"));
  EXPECT_EQ(As("ed", "DELETE", "/apis/resource.k8s.io/v1/deviceclasses/x").message(),
            R"(deviceclasses.resource.k8s.io "x" is forbidden: User "ed" cannot delete resource )"
            R"("deviceclasses" in API group "resource.k8s.io" at the cluster scope)");
  EXPECT_EQ(As("team", "GET", "/metrics").message(),
            R"(forbidden: User "team" cannot get path "/metrics")");
  EXPECT_EQ(As("nobody", "GET", kMaps).status, 401);
  EXPECT_EQ(Call("GET", std::string(kMaps) + "/c").status, 404) << "nothing was made";
}

TEST_F(AccessOverHttpTest, EachRoleDoesItsOwn) {
  EXPECT_EQ(As("ops", "POST", "/api/v1/namespaces", {{"metadata", {{"name", "a"}}}}).status, 201);
  EXPECT_EQ(As("ed", "POST", "/api/v1/namespaces", {{"metadata", {{"name", "b"}}}}).status, 403);
  EXPECT_EQ(As("ed", "POST", kMaps, ConfigMapOf("c", "1")).status, 201);
  EXPECT_EQ(As("vera", "GET", std::string(kMaps) + "/c").status, 200);
  EXPECT_EQ(As("vera", "GET", "/api/v1/nodes").status, 200);
  EXPECT_EQ(As("team", "GET", "/api/v1/nodes").status, 403);
  EXPECT_EQ(As("team", "GET", "/api/v1/configmaps").status, 403) << "all namespaces";
  EXPECT_EQ(As("team", "GET", "/api/v1/namespaces/default").status, 200);
  EXPECT_EQ(As("team", "GET", "/api/v1/namespaces/a").status, 403);
  EXPECT_EQ(As("team", "GET", "/apis").status, 200);
  EXPECT_EQ(As("vera", "GET", "/api/v1/secrets").status, 403);
}

// Every spelling of a path that reaches an object must be asked about as that object.
TEST_F(AccessOverHttpTest, NoSpellingOfAPathGetsAround) {
  Make("/api/v1/namespaces/kube-system/secrets",
       {{"metadata", {{"name", "s"}}}, {"stringData", {{"key", "secret"}}}});
  for (const char* target : {
           "/api/v1/namespaces/kube-system/secrets/s",
           "/api/v1/namespaces/kube-system/secrets/s/",
           "/api/v1/namespaces/kube-system/%73ecrets/s",
           "/api/v1/%6eamespaces/kube-system/secrets",
           "/api/v1/watch/secrets",
           "/api/v1/watch/namespaces/kube-system/secrets/s",
           "/api/v1/secrets?watch=1",
           "//api/v1/secrets",
           "/api//v1/secrets",
           "/api/v1//secrets",
           "/apis//v1/secrets",
           "/api/v1/namespaces/../secrets",
           "/%61pi/v1/secrets",
           "/api/v1/namespaces/default/../kube-system/secrets/s",
           "/api/v1/namespaces/default%2F..%2Fkube-system/secrets/s",
       }) {
    const auto answer = As("team", "GET", target);
    EXPECT_THAT(answer.status, ::testing::AnyOf(400, 403, 404)) << target << answer.text;
    EXPECT_THAT(answer.text, ::testing::Not(HasSubstr("c2VjcmV0"))) << target;
  }
}

// ---- Acting as another ------------------------------------------------------------------------

TEST_F(AccessOverHttpTest, WhoMayActsAsTheOtherUserAndMayDoNoMoreThanThatUser) {
  const rest::Headers jane = {{"Impersonate-User", "jane"}};
  const auto denied = As("ops", "POST", kMaps, ConfigMapOf("c", "1"), jane);
  EXPECT_EQ(denied.status, 403);
  EXPECT_EQ(denied.message(), R"(configmaps is forbidden: User "jane" cannot create resource )"
                              R"("configmaps" in API group "" in the namespace "default")");
  EXPECT_EQ(As("ops", "GET", kMaps, nullptr, jane).status, 403);
  EXPECT_EQ(As("ops", "POST", kMaps, ConfigMapOf("c", "1"), {{"Impersonate-User", "ed"}}).status,
            201);
  EXPECT_EQ(As("ops", "GET", "/api/v1/nodes", nullptr, {{"Impersonate-User", "team"}}).status, 403);
  EXPECT_EQ(As("ops", "GET", "/api/v1/nodes", nullptr,
               {{"Impersonate-User", "jane"}, {"Impersonate-Group", "system:masters"}})
                .status,
            200);
  const auto whoami =
      As("ops", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", json::object(), jane);
  EXPECT_EQ(whoami.body.at("status").at("userInfo"),
            json({{"username", "jane"}, {"groups", {"system:authenticated"}}}));
  const auto can_i =
      As("ops", "POST", kReview,
         {{"spec", {{"resourceAttributes", {{"verb", "delete"}, {"resource", "nodes"}}}}}}, jane);
  EXPECT_EQ(can_i.body.at("status").at("allowed"), false);
}

TEST_F(AccessOverHttpTest, WhoMayNotActAsAnotherIsRefusedWhateverIsAsked) {
  for (const char* who : {"ed", "vera", "team", "system:node:n1"}) {
    const auto denied = As(who, "GET", kPods, nullptr, {{"Impersonate-User", "ops"}});
    EXPECT_EQ(denied.status, 403) << who;
    EXPECT_EQ(denied.message(),
              fmt::format(R"(users "ops" is forbidden: User "{}" cannot impersonate resource )"
                          R"("users" in API group "" at the cluster scope)",
                          who));
    EXPECT_EQ(As(who, "POST", kMaps, ConfigMapOf("c", "1"), {{"Impersonate-User", who}}).status,
              403)
        << "the own name too, as in Kubernetes";
  }
  EXPECT_EQ(As("ops", "GET", kPods, nullptr, {{"Impersonate-Group", "system:masters"}}).status,
            400);
}

TEST_F(AccessOverHttpTest, TheAuditNamesBothWhoActsAndAsWhom) {
  As("ops", "POST", kMaps, ConfigMapOf("c", "1"), {{"Impersonate-User", "ed"}});
  ASSERT_THAT(audit(), SizeIs(1));
  EXPECT_EQ(audit()[0].at("user").at("username"), "ops");
  EXPECT_EQ(audit()[0].at("impersonatedUser"),
            json({{"username", "ed"}, {"groups", {"system:authenticated"}}}));
}

// ---- "May I?" ----------------------------------------------------------------------------------

TEST_F(AccessOverHttpTest, CanIAnswersWhatTheRequestWouldMeet) {
  struct Case {
    const char* verb;
    const char* group;
    const char* resource;
    const char* method;
    std::string target;
  };
  const std::vector<Case> cases = {
      {"list", "", "pods", "GET", kPods},
      {"list", "", "secrets", "GET", "/api/v1/namespaces/default/secrets"},
      {"list", "tahoma.dev", "gangs", "GET", "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs"},
      {"deletecollection", "", "configmaps", "DELETE", kMaps},
      {"delete", "", "pods", "DELETE", "/api/v1/namespaces/default/pods/none"},
  };
  int yes = 0;
  for (const char* who : {"ops", "ed", "vera", "team", "system:node:n1"}) {
    for (const Case& c : cases) {
      const bool may = CanI(who, {{"namespace", "default"},
                                  {"verb", c.verb},
                                  {"group", c.group},
                                  {"resource", c.resource}});
      const int status = As(who, c.method, c.target).status;
      EXPECT_EQ(may, status != 403) << who << " " << c.verb << " " << c.resource << status;
      yes += may ? 1 : 0;
    }
  }
  EXPECT_GT(yes, 10);
}

TEST_F(AccessOverHttpTest, AReviewIsAnsweredInProtobufToWhomPrefersThat) {
  httplib::Client client(front_->url());
  const auto answer = client.Post(
      kReview,
      {{"Authorization", "Bearer " + TokenOf("vera")}, {"Accept", std::string(kProtobufType)}},
      R"({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
          "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})",
      "application/json");
  ASSERT_TRUE(answer);
  const auto review = DecodeProtobuf(answer->body);
  ASSERT_TRUE(review.ok()) << review.status();
  EXPECT_EQ(review->at("status").at("allowed"), true);
}

TEST_F(AccessOverHttpTest, AnAdministratorAsksForOthers) {
  const char* const reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
  const auto ask = [&](const char* who, const json& spec) {
    return As(who, "POST", reviews, {{"spec", spec}});
  };
  const json pods = {{"namespace", "default"}, {"verb", "create"}, {"resource", "pods"}};
  EXPECT_EQ(
      ask("ops", {{"user", "ed"}, {"resourceAttributes", pods}}).body.at("status").at("allowed"),
      true);
  EXPECT_EQ(
      ask("ops", {{"user", "vera"}, {"resourceAttributes", pods}}).body.at("status").at("allowed"),
      false);
  EXPECT_EQ(ask("ops", {{"user", "x"},
                        {"groups", {"system:masters"}},
                        {"nonResourceAttributes", {{"path", "/metrics"}, {"verb", "get"}}}})
                .body.at("status")
                .at("allowed"),
            true);
  EXPECT_EQ(ask("ed", {{"user", "ops"}, {"resourceAttributes", pods}}).status, 403);
  EXPECT_EQ(ask("ops", {{"resourceAttributes", pods}}).status, 422);
  EXPECT_EQ(ask("ops", {{"user", "ed"}}).status, 422);
  EXPECT_EQ(ask("ops", "no object").status, 422);
}

TEST_F(AccessOverHttpTest, WhoAmIAndWhatMayIDo) {
  const auto me = As("vera", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                     {{"kind", "SelfSubjectReview"}});
  EXPECT_EQ(me.body.at("status").at("userInfo"),
            ParseJson(R"({"username": "vera", "groups": ["system:authenticated"]})"));
  const auto rules = As("vera", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                        {{"spec", {{"namespace", "default"}}}});
  const json listed = rules.body.at("status").at("resourceRules");
  EXPECT_THAT(listed, Contains(ParseJson(R"({"verbs": ["get", "list", "watch"],
    "apiGroups": ["tahoma.dev"], "resources": ["gangs", "gangs/status", "capacityblocks",
      "capacityblocks/status", "capacityblockofferings", "capacityblockextensions",
      "capacityblockextensions/status", "capacityblockseries", "capacityblockseries/status",
      "capacityblockwaitlistentries", "capacityblockwaitlistentries/status",
      "capacityreservations"]})")));
  EXPECT_EQ(As("vera", "GET", kReview).status, 403) << "there is nothing to list";
}

// ---- The audit ---------------------------------------------------------------------------------

TEST_F(AccessOverHttpTest, EveryChangeHasALineAndNoReadHas) {
  As("ed", "GET", kMaps);
  CanI("ed", {{"verb", "list"}, {"resource", "pods"}});
  As("nobody", "POST", kMaps, ConfigMapOf("x", "1"));
  EXPECT_THAT(audit(), IsEmpty());
  const auto made = As("ed", "POST", std::string(kMaps) + "?dryRun=All", ConfigMapOf("c", "1"));
  As("vera", "DELETE", std::string(kMaps) + "/c");
  ASSERT_THAT(audit(), SizeIs(2));
  const json create = audit()[0];
  EXPECT_EQ(create.at("user").at("username"), "ed");
  EXPECT_EQ(create.at("verb"), "create");
  EXPECT_EQ(create.at("objectRef").at("name"), "c");
  EXPECT_EQ(create.at("requestURI"), std::string(kMaps) + "?dryRun=All");
  EXPECT_EQ(create.at("responseStatus").at("code"), 201);
  EXPECT_EQ(create.at("sourceIPs"), json::array({"127.0.0.1"}));
  EXPECT_EQ(create.at("auditID"), made.header("Audit-Id"));
  const json refused = audit()[1];
  EXPECT_EQ(refused.at("responseStatus").at("code"), 403);
  EXPECT_EQ(refused.at("annotations").at("authorization.k8s.io/decision"), "forbid");
}

TEST_F(AccessOverHttpTest, WhereTheAuditIsRequiredNothingChangesWithoutIt) {
  audit_writable_ = false;
  EXPECT_EQ(As("ed", "POST", kMaps, ConfigMapOf("c", "1")).status, 503);
  EXPECT_EQ(As("ed", "GET", kMaps).status, 200) << "reading goes on";
  EXPECT_EQ(Call("GET", std::string(kMaps) + "/c").status, 404);
  audit_writable_ = true;
  EXPECT_EQ(As("ed", "POST", kMaps, ConfigMapOf("c", "1")).status, 201);
}

TEST_F(AccessOverHttpTest, TheControllersOwnWritesAreNotInTheAudit) {
  InProcessTransport transport(*server_, clock_, "ours");
  const auto made = transport.Send(
      {.method = "POST", .target = kMaps, .headers = {}, .body = ConfigMapOf("c", "1").dump()});
  EXPECT_EQ(made->status, 201);
  EXPECT_THAT(audit(), IsEmpty());
}

// ---- Nodes -------------------------------------------------------------------------------------

TEST_F(AccessOverHttpTest, ANodesTokenIsNoUseAgainstItsNeighbours) {
  const char* const n1 = "system:node:n1";
  EXPECT_EQ(As(n1, "POST", "/api/v1/nodes", {{"metadata", {{"name", "n1"}}}}).status, 201);
  const auto other = As(n1, "POST", "/api/v1/nodes", {{"metadata", {{"name", "n2"}}}});
  EXPECT_EQ(other.status, 403);
  EXPECT_THAT(other.message(), HasSubstr("a node makes only objects of its own name"));
  EXPECT_THAT(other.message(), HasSubstr(R"(nodes "n2" is forbidden: node "n1")"));
  Make("/api/v1/nodes", {{"metadata", {{"name", "n2"}}}});
  for (const char* node : {"n1", "n2"}) {
    json pod = PodOf(std::string("on-") + node);
    pod["spec"]["nodeName"] = node;
    pod["spec"]["containers"][0]["envFrom"] = {
        {{"secretRef", {{"name", std::string("key-of-the-pod-on-") + node}}}}};
    Make(kPods, pod);
    Make("/api/v1/namespaces/default/secrets",
         {{"metadata", {{"name", std::string("key-of-the-pod-on-") + node}}}});
  }
  const auto status = [&](const std::string& method, const std::string& target) {
    const json body = method == "PATCH" ? json{{"status", json::object()}} : json();
    return As(n1, method, target, body).status;
  };
  const std::string secrets = "/api/v1/namespaces/default/secrets";
  EXPECT_EQ(status("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"), 200);
  EXPECT_EQ(status("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2"), 403);
  EXPECT_EQ(status("GET", "/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1"), 403);
  EXPECT_EQ(status("GET", "/api/v1/pods"), 403);
  EXPECT_EQ(status("PATCH", std::string(kPods) + "/on-n1/status"), 200);
  EXPECT_EQ(status("PATCH", std::string(kPods) + "/on-n2/status"), 403);
  EXPECT_EQ(status("DELETE", std::string(kPods) + "/on-n2"), 403);
  EXPECT_EQ(status("GET", secrets + "/key-of-the-pod-on-n1"), 200);
  EXPECT_EQ(status("GET", secrets + "/key-of-the-pod-on-n2"), 403);
  EXPECT_EQ(status("PATCH", "/api/v1/nodes/n2/status"), 403);
}

TEST_F(AccessOverHttpTest, ANodeAppliesItsDevicesStatusToAClaimAndNothingElse) {
  const std::string claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
  const json request = {{"name", "r"}, {"exactly", {{"deviceClassName", "neuron.aws.com"}}}};
  Make(claims, {{"metadata", {{"name", "train"}}},
                {"spec", {{"devices", {{"requests", json::array({request})}}}}}});
  const json result = {{"request", "r"}, {"driver", "d.io"}, {"pool", "n1"}, {"device", "a"}};
  const json allocated = {
      {"status", {{"allocation", {{"devices", {{"results", json::array({result})}}}}}}}};
  const std::string target = claims + "/train/status";
  const auto send = [&](const std::string& who, const std::string& type, const std::string& body) {
    httplib::Client client(front_->url());
    client.set_bearer_token_auth(TokenOf(who));
    const std::string force = type == "apply-patch+yaml" ? "&force=true" : "";
    const auto answer =
        client.Patch(target + "?fieldManager=d.io" + force, body, "application/" + type);
    return answer ? answer->status : 0;
  };
  const auto apply = [&](const json& status) {
    return send("system:node:n1", "apply-patch+yaml",
                json{{"apiVersion", "resource.k8s.io/v1"},
                     {"kind", "ResourceClaim"},
                     {"metadata", {{"name", "train"}}},
                     {"status", status}}
                    .dump());
  };
  const auto device = [](const char* pool) {
    return json{{"driver", "d.io"}, {"pool", pool}, {"device", "a"}};
  };
  const json own = {{"devices", json::array({device("n1")})}};
  ASSERT_EQ(send("ops", "merge-patch+json", allocated.dump()), 200);
  EXPECT_EQ(apply(own), 200);
  EXPECT_EQ(apply({{"devices", json::array({device("n2")})}}), 403);
  const json pod = {{"resource", "pods"}, {"name", "p"}, {"uid", "1-2-3"}};
  EXPECT_EQ(apply({{"devices", json::array()}, {"reservedFor", json::array({pod})}}), 403);
  // The form of the request does not matter, what it makes of the claim does.
  const std::string both =
      json{{"status", {{"devices", json::array({device("n1"), device("n2")})}}}}.dump();
  const std::string free = R"({"status": {"allocation": null}})";
  EXPECT_EQ(send("system:node:n1", "merge-patch+json", json{{"status", own}}.dump()), 200);
  EXPECT_EQ(send("system:node:n1", "merge-patch+json", both), 403);
  EXPECT_EQ(send("system:node:n1", "merge-patch+json", free), 403);
  EXPECT_EQ(send("system:node:n1", "json-patch+json",
                 R"([{"op": "remove", "path": "/status/allocation"}])"),
            403);
  EXPECT_EQ(send("system:node:n1", "apply-patch+yaml", "{]"), 400);
  EXPECT_EQ(send("system:node:n2", "apply-patch+yaml", json{{"status", own}}.dump()), 403)
      << "not its claim";
}

TEST_F(AccessOverHttpTest, ANodePublishesNoDeviceInAnothersPool) {
  const char* const slices = "/apis/resource.k8s.io/v1/resourceslices";
  const auto slice = [](const char* name, const char* pool) {
    return json{{"metadata", {{"name", name}}},
                {"spec",
                 {{"driver", "neuron.aws.com"},
                  {"nodeName", "n1"},
                  {"pool", {{"name", pool}, {"generation", 1000000000}, {"resourceSliceCount", 1}}},
                  {"devices", json::array({{{"name", "neuron-device-0"}}})}}}};
  };
  const auto refused = As("system:node:n1", "POST", slices, slice("n1-b", "n2"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.message(), HasSubstr("has the node's name"));
  EXPECT_EQ(
      As("system:node:n1", "POST", std::string(slices) + "?dryRun=All", slice("n1-b", "n2")).status,
      403);
  EXPECT_EQ(As("system:node:n1", "POST", slices, slice("n1-b", "n1")).status, 201);
  EXPECT_EQ(As("ops", "POST", slices, slice("n1-c", "n2")).status, 201) << "whoever is no node may";
}

// CVE-2025-5187: garbage collection deletes what has an owner that is not there.
TEST_F(AccessOverHttpTest, ANodeGivesItselfNoOwnerAndNoTaintByAnyRequest) {
  const char* const n1 = "system:node:n1";
  Make("/api/v1/nodes", {{"metadata", {{"name", "n1"}}}});
  const std::string node = "/api/v1/nodes/n1";
  const json owner = {
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"name", "gone"}, {"uid", "1-2-3"}};
  const json owned = {{"metadata", {{"ownerReferences", json::array({owner})}}}};
  json whole = Call("GET", node).body;
  whole["metadata"]["ownerReferences"] = json::array({owner});
  EXPECT_EQ(As(n1, "PATCH", node, owned).status, 403);
  EXPECT_EQ(As(n1, "PATCH", node + "/status", owned).status, 403);
  EXPECT_EQ(As(n1, "PUT", node, whole).status, 403);
  EXPECT_EQ(As(n1, "PUT", node + "/status", whole).status, 403);
  const json taint = {{"key", "k"}, {"effect", "NoSchedule"}};
  EXPECT_EQ(As(n1, "PATCH", node, {{"spec", {{"taints", json::array({taint})}}}}).status, 403);
  EXPECT_EQ(As(n1, "PATCH", node, {{"metadata", {{"labels", {{"a", "b"}}}}}}).status, 200);
  EXPECT_EQ(Call("GET", node).body.at("metadata").contains("ownerReferences"), false);
}

TEST_F(AccessOverHttpTest, APodStaysInItsGangWhateverItsNodeWrites) {
  Make("/api/v1/nodes", {{"metadata", {{"name", "n1"}}}});
  json pod = PodOf("worker");
  pod["spec"]["nodeName"] = "n1";
  pod["metadata"]["labels"] = {{"tahoma.dev/gang", "train"}};
  pod["spec"]["resourceClaims"] =
      json::array({{{"name", "c"}, {"resourceClaimTemplateName", "chips"}}});
  Make(kPods, pod);
  const std::string status = std::string(kPods) + "/worker/status";
  const auto told = [&](const json& body) {
    return As("system:node:n1", "PATCH", status, body).status;
  };
  EXPECT_EQ(told({{"metadata", {{"labels", {{"tahoma.dev/gang", "other"}}}}}}), 403);
  EXPECT_EQ(told({{"metadata", {{"finalizers", json::array({"a.io/b"})}}}}), 403);
  const json other = {{"name", "c"}, {"resourceClaimName", "another-pods"}};
  EXPECT_EQ(told({{"status", {{"resourceClaimStatuses", json::array({other})}}}}), 403);
  EXPECT_EQ(told({{"status", {{"phase", "Running"}}}}), 200);
}

// ---- Identities that change --------------------------------------------------------------------

TEST_F(AccessOverHttpTest, ARemovedTokenStopsAtOnceAndItsWatchEnds) {
  std::atomic<bool> open = false;
  std::atomic<bool> ended = false;
  std::jthread watcher([&] {
    httplib::Client client(front_->url());
    client.set_bearer_token_auth(TokenOf("vera"));
    client.set_read_timeout(30);
    client.Get(std::string(kMaps) + "?watch=true", [&](const char*, std::size_t) {
      open = true;
      open.notify_all();
      return true;
    });
    ended = true;
    ended.notify_all();
  });
  Make(kMaps, ConfigMapOf("c", "1"));
  open.wait(false);
  access_->Replace(Table({Entry("ops", Role::kAdmin)}));
  EXPECT_EQ(As("vera", "GET", kMaps).status, 401);
  EXPECT_EQ(As("ops", "GET", kMaps).status, 200);
  ended.wait(false);
}

TEST_F(AccessOverHttpTest, AWatchOfWhoeverMayStillWatchGoesOn) {
  std::atomic<int> events = 0;
  std::jthread watcher([&] {
    httplib::Client client(front_->url());
    client.set_bearer_token_auth(TokenOf("vera"));
    client.set_read_timeout(30);
    client.Get(std::string(kMaps) + "?watch=true", [&](const char* bytes, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) events += bytes[i] == '\n' ? 1 : 0;
      events.notify_all();
      return events < 2;
    });
    events = 2;
    events.notify_all();
  });
  Make(kMaps, ConfigMapOf("a", "1"));
  events.wait(0);
  access_->Replace(Table({Entry("vera", Role::kView)}));
  Make(kMaps, ConfigMapOf("b", "1"));
  for (int seen = events; seen < 2; seen = events) events.wait(seen);
  EXPECT_EQ(events, 2);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
