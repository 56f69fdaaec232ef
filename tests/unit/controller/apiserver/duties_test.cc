// The duties against the real API server in one process: single steps under a clock that the test
// moves.

#include "controller/apiserver/duties/duties.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "controller/apiserver/api_server.h"
#include "controller/apiserver/duties/duty_threads.h"
#include "controller/apiserver/duties/fields.h"
#include "controller/apiserver/in_process_transport.h"
#include "lib/base/check.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

class DutiesTest : public ::testing::Test {
 protected:
  explicit DutiesTest(ObjectStore::Options objects = {})
      : clock_(*ParseTime("2026-01-01T00:00:00Z")) {
    auto store = Store::Open({.dir = dir_.path(), .single_threaded = true});
    TAHOMA_CHECK_OK(store.status());
    store_ = *std::move(store);
    auto server = ApiServer::Open(*store_, clock_, {.seed = 7, .objects = objects});
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
    api_ = std::make_unique<InProcessTransport>(*server_, clock_, "test");
    duties_ =
        std::make_unique<Duties>([this] { return server_->Kinds(); }, server_->objects(), *api_);
  }

  Json Call(const char* method, const std::string& target, const Json& body = nullptr,
            const char* type = "application/json") {
    const auto answer = api_->Send({.method = method,
                                    .target = target,
                                    .headers = {{"Content-Type", type}},
                                    .body = body.is_null() ? "" : body.dump()});
    TAHOMA_CHECK_OK(answer.status());
    status_ = answer->status;
    return Json::parse(answer->body, nullptr, false);
  }
  Json Get(const std::string& target) { return Call("GET", target); }
  bool Exists(const std::string& target) {
    Get(target);
    return status_ == 200;
  }
  int Step() { return duties_->Step(clock_.WallNow()); }

  Json MakePod(const std::string& name, const char* claims = "[]") {
    Json pod = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", name}}},
                {"spec",
                 {{"containers", Json::array({{{"name", "c"}, {"image", "i"}}})},
                  {"resourceClaims", Json::parse(claims)}}}};
    Json made = Call("POST", kPods, pod);
    EXPECT_EQ(status_, 201) << made;
    return made;
  }
  void MakeTemplate(const std::string& name) {
    const Json made =
        Call("POST", kResource + "resourceclaimtemplates",
             {{"metadata", {{"name", name}}},
              {"spec",
               {{"metadata", {{"labels", {{"from", "template"}}}}},
                {"spec",
                 {{"devices",
                   {{"requests",
                     Json::array({{{"name", "r"},
                                   {"exactly", {{"deviceClassName", "neuron.aws.com"}}}}})}}}}}}}});
    EXPECT_EQ(status_, 201) << made;
  }
  // Allocates the claim and reserves it for the pod, as our scheduler does.
  void Allocate(const std::string& claim, const Json& pod, const Json& tolerations = nullptr) {
    Json object = Get(kResource + "resourceclaims/" + claim);
    object["metadata"]["finalizers"] = {"resource.kubernetes.io/delete-protection"};
    object = Call("PUT", kResource + "resourceclaims/" + claim, object);
    object["status"] = {{"allocation",
                         {{"devices",
                           {{"results", Json::array({{{"request", "r"},
                                                      {"driver", "neuron.aws.com"},
                                                      {"pool", "n"},
                                                      {"device", "neuron-device-0"}}})}}}}},
                        {"reservedFor", Json::array({{{"resource", "pods"},
                                                      {"name", pod["metadata"]["name"]},
                                                      {"uid", pod["metadata"]["uid"]}}})}};
    if (!tolerations.is_null()) {
      object["status"]["allocation"]["devices"]["results"][0]["tolerations"] = tolerations;
    }
    const Json made = Call("PUT", kResource + "resourceclaims/" + claim + "/status", object);
    EXPECT_EQ(status_, 200) << made;
  }
  std::string ClaimOf(const std::string& pod) {
    return Text(Get(kPods + "/" + pod)["status"]["resourceClaimStatuses"][0],
                {"resourceClaimName"});
  }
  void SetPhase(const std::string& pod, const char* phase) {
    Call("PATCH", kPods + "/" + pod + "/status", {{"status", {{"phase", phase}}}},
         "application/merge-patch+json");
    EXPECT_EQ(status_, 200);
  }
  static Json Reference(const Json& owner) {
    return {{"apiVersion", "v1"},
            {"kind", owner["kind"]},
            {"name", owner["metadata"]["name"]},
            {"uid", owner["metadata"]["uid"]}};
  }
  Json Owned(const std::string& name, const Json& owner, const Json& more = Json::object()) {
    Json metadata = {{"name", name}, {"ownerReferences", Json::array({Reference(owner)})}};
    metadata.update(more);
    return Call("POST", kConfigMaps, {{"metadata", metadata}});
  }
  // A reference whose owner must not go before, if it is deleted in the foreground.
  static Json Blocking(const Json& owner) {
    Json reference = Reference(owner);
    reference["blockOwnerDeletion"] = true;
    return {{"ownerReferences", Json::array({reference})}};
  }
  static Json Held(Json metadata = Json::object()) {
    metadata["finalizers"] = Json::array({"example.com/hold"});
    return metadata;
  }
  void LetGo(const std::string& name) {
    Call("PATCH", kConfigMaps + "/" + name, {{"metadata", {{"finalizers", nullptr}}}},
         "application/merge-patch+json");
    EXPECT_EQ(status_, 200);
  }
  bool IsMarked(const std::string& name) {
    return Get(kConfigMaps + "/" + name)["metadata"].contains("deletionTimestamp");
  }

  static inline const std::string kPods = "/api/v1/namespaces/default/pods";
  static inline const std::string kConfigMaps = "/api/v1/namespaces/default/configmaps";
  static inline const std::string kResource = "/apis/resource.k8s.io/v1/namespaces/default/";
  static constexpr char kOneClaim[] = R"([{"name": "d", "resourceClaimTemplateName": "t"}])";

  testing::TempDir dir_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<InProcessTransport> api_;
  std::unique_ptr<Duties> duties_;
  int status_ = 0;
};

TEST_F(DutiesTest, APodGetsItsClaimsFromTheTemplate) {
  MakeTemplate("t");
  const Json pod = MakePod("web", kOneClaim);
  Step();
  const std::string name = ClaimOf("web");
  EXPECT_TRUE(name.starts_with("web-d-")) << name;
  const Json claim = Get(kResource + "resourceclaims/" + name);
  EXPECT_EQ(claim["metadata"]["labels"]["from"], "template");
  EXPECT_EQ(claim["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"], "d");
  EXPECT_EQ(claim["metadata"]["ownerReferences"][0]["uid"], pod["metadata"]["uid"]);
  EXPECT_EQ(claim["metadata"]["ownerReferences"][0]["controller"], true);
  EXPECT_EQ(claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"],
            "neuron.aws.com");
}

TEST_F(DutiesTest, LookingAgainMakesNoSecondClaim) {
  MakeTemplate("t");
  MakePod("web", kOneClaim);
  Step();
  Call("PATCH", kPods + "/web", {{"metadata", {{"labels", {{"a", "b"}}}}}},
       "application/merge-patch+json");
  Step();
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 1U);
  EXPECT_EQ(Step(), 0) << "nothing is left to do";
}

TEST_F(DutiesTest, AfterARestartNoSecondClaimIsMade) {
  MakeTemplate("t");
  MakePod("web", kOneClaim);
  Step();
  Call("PATCH", kPods + "/web/status", {{"status", {{"resourceClaimStatuses", nullptr}}}},
       "application/merge-patch+json");
  duties_ =
      std::make_unique<Duties>([this] { return server_->Kinds(); }, server_->objects(), *api_);
  Step();
  Step();
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 1U);
}

TEST_F(DutiesTest, APodWaitsForATemplateThatComesLater) {
  MakePod("web", kOneClaim);
  Step();
  EXPECT_FALSE(Get(kPods + "/web")["status"].contains("resourceClaimStatuses"));
  MakeTemplate("t");
  Step();
  EXPECT_TRUE(ClaimOf("web").starts_with("web-d-"));
}

TEST_F(DutiesTest, AFinishedPodGivesItsDevicesBackAndItsClaimGoes) {
  MakeTemplate("t");
  const Json pod = MakePod("web", kOneClaim);
  Step();
  const std::string claim = ClaimOf("web");
  Allocate(claim, pod);
  Step();
  EXPECT_TRUE(Get(kResource + "resourceclaims/" + claim)["status"].contains("allocation"));
  SetPhase("web", "Succeeded");
  Step();
  EXPECT_FALSE(Exists(kResource + "resourceclaims/" + claim));
}

// A pod that runs on neuron-device-0 of node n, which the test may taint.
class TaintTest : public DutiesTest {
 protected:
  void Run(const Json& tolerations = nullptr) {
    Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
    ASSERT_EQ(status_, 201);
    Publish(1, nullptr);
    MakeTemplate("t");
    const Json pod = MakePod("web", kOneClaim);
    Step();
    claim_ = ClaimOf("web");
    Allocate(claim_, pod, tolerations);
    Bind("web");
    Step();
    ASSERT_TRUE(Exists(kPods + "/web"));
  }
  void Bind(const std::string& pod) {
    Call("POST", kPods + "/" + pod + "/binding",
         {{"metadata", {{"name", pod}}}, {"target", {{"kind", "Node"}, {"name", "n"}}}});
    EXPECT_EQ(status_, 201);
  }
  // The slice of node n in a new generation, its first device with the taint.
  void Publish(int generation, const Json& taint) {
    Json device = {{"name", "neuron-device-0"}};
    if (!taint.is_null()) device["taints"] = Json::array({taint});
    const std::string name = fmt::format("n-{}", generation);
    const Json made =
        Call("POST", kSlices,
             {{"metadata", {{"name", name}}},
              {"spec",
               {{"driver", "neuron.aws.com"},
                {"nodeName", "n"},
                {"pool", {{"name", "n"}, {"generation", generation}, {"resourceSliceCount", 1}}},
                {"devices", Json::array({device})}}}});
    ASSERT_EQ(status_, 201) << made;
  }
  bool Evicted(const std::string& pod = "web") {
    Step();
    const Json object = Get(kPods + "/" + pod);
    if (status_ == 404) return true;
    return Field(object, {"metadata", "deletionTimestamp"}).is_string();
  }

  static Json Broken(const char* effect = "NoExecute") {
    return {{"key", "tahoma.dev/unhealthy"}, {"value", "dma-error"}, {"effect", effect}};
  }
  static inline const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";
  std::string claim_;
};

TEST_F(TaintTest, APodOnADeviceThatBreaksIsDeletedAndSaysWhy) {
  Run();
  Publish(2, Broken());
  EXPECT_TRUE(Evicted());
  const Json pod = Get(kPods + "/web");
  ASSERT_EQ(status_, 200) << "it has its grace period";
  Json told;
  for (const Json& condition : pod["status"]["conditions"]) {
    if (condition["type"] == "DisruptionTarget") told = condition;
  }
  ASSERT_TRUE(told.is_object()) << pod;
  EXPECT_EQ(told["status"], "True");
  EXPECT_EQ(told["reason"], "DeletionByDeviceTaintManager");
  const Json events = Get("/api/v1/namespaces/default/events")["items"];
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["reason"], "DeviceTaintManagerEviction");
  EXPECT_EQ(events[0]["involvedObject"]["uid"], pod["metadata"]["uid"]);
  EXPECT_EQ(Step(), 0) << "nothing is left to do";
}

TEST_F(TaintTest, APodThatIsBoundToADeviceThatBrokeBeforeIsDeleted) {
  Publish(1, Broken());
  MakeTemplate("t");
  const Json pod = MakePod("web", kOneClaim);
  Step();
  Allocate(ClaimOf("web"), pod);
  EXPECT_FALSE(Evicted()) << "it is not bound";
  Bind("web");
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, OtherEffectsOtherDevicesAndOlderGenerationsEvictNobody) {
  Run();
  Publish(2, Broken("NoSchedule"));
  EXPECT_FALSE(Evicted());
  Publish(4, nullptr);
  Publish(3, Broken());
  EXPECT_FALSE(Evicted()) << "generation 4 says that it is repaired";
}

TEST_F(TaintTest, ATolerationKeepsThePod) {
  Run(Json::array(
      {{{"key", "tahoma.dev/unhealthy"}, {"operator", "Exists"}, {"effect", "NoExecute"}},
       {{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 1}}}));
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(100000));
  EXPECT_FALSE(Evicted());
}

TEST_F(TaintTest, ATolerationOfAnotherTaintDoesNot) {
  Run(Json::array(
      {{{"key", "tahoma.dev/managed"}, {"operator", "Exists"}, {"effect", "NoSchedule"}},
       {{"key", "tahoma.dev/unhealthy"},
        {"operator", "Equal"},
        {"value", "other"},
        {"effect", "NoExecute"}}}));
  Publish(2, Broken());
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, ATolerationThatDoesNotNameTheEffectDoesNot) {
  Run(Json::array({{{"key", "tahoma.dev/unhealthy"}, {"operator", "Exists"}}}));
  Publish(2, Broken());
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, ATolerationOfSomeSecondsIsGrantedOnce) {
  Run(Json::array({{{"key", "tahoma.dev/unhealthy"},
                    {"operator", "Exists"},
                    {"effect", "NoExecute"},
                    {"tolerationSeconds", 60}}}));
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(59));
  Publish(3, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Evicted()) << "a new generation does not begin the time again";
}

TEST_F(TaintTest, ARepairWithinTheTimeKeepsThePodAndTheNextBreakBeginsAnew) {
  Run(Json::array({{{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 60}}}));
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(30));
  Publish(3, nullptr);
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(60));
  EXPECT_FALSE(Evicted());
  Publish(4, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(60));
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, FinishedPodsAreLeftAlone) {
  Run();
  SetPhase("web", "Succeeded");
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
}

TEST_F(DutiesTest, AUsersOwnClaimIsReleasedButStays) {
  Call("POST", kResource + "resourceclaims",
       {{"metadata", {{"name", "mine"}}},
        {"spec",
         {{"devices",
           {{"requests",
             Json::array({{{"name", "r"}, {"exactly", {{"deviceClassName", "c"}}}}})}}}}}});
  const Json pod = MakePod("web", R"([{"name": "d", "resourceClaimName": "mine"}])");
  Allocate("mine", pod);
  Step();
  Call("DELETE", kPods + "/web", {{"gracePeriodSeconds", 0}});
  Step();
  const Json claim = Get(kResource + "resourceclaims/mine");
  EXPECT_EQ(status_, 200);
  EXPECT_FALSE(claim.value("status", Json::object()).contains("allocation")) << claim;
  EXPECT_FALSE(claim.value("status", Json::object()).contains("reservedFor"));
  EXPECT_FALSE(claim["metadata"].contains("finalizers"));
}

TEST_F(DutiesTest, AClaimDeletedBetweenItsFinalizerAndItsAllocationGoes) {
  Call("POST", kResource + "resourceclaims",
       {{"metadata",
         {{"name", "begun"}, {"finalizers", {"resource.kubernetes.io/delete-protection"}}}},
        {"spec",
         {{"devices",
           {{"requests",
             Json::array(
                 {{{"name", "r"}, {"exactly", {{"deviceClassName", "neuron.aws.com"}}}}})}}}}}});
  ASSERT_EQ(status_, 201);
  Call("DELETE", kResource + "resourceclaims/begun");
  ASSERT_TRUE(Exists(kResource + "resourceclaims/begun"));
  Step();
  EXPECT_FALSE(Exists(kResource + "resourceclaims/begun"));
}

TEST_F(DutiesTest, AnAllocationWithoutTheFinalizerIsLeftAlone) {
  Call("POST", kResource + "resourceclaims",
       {{"metadata", {{"name", "mine"}}},
        {"spec",
         {{"devices",
           {{"requests",
             Json::array({{{"name", "r"}, {"exactly", {{"deviceClassName", "c"}}}}})}}}}}});
  const Json pod = MakePod("web", R"([{"name": "d", "resourceClaimName": "mine"}])");
  Allocate("mine", pod);
  Json claim = Get(kResource + "resourceclaims/mine");
  claim["metadata"].erase("finalizers");
  Call("PUT", kResource + "resourceclaims/mine", claim);
  Call("DELETE", kPods + "/web", {{"gracePeriodSeconds", 0}});
  Step();
  claim = Get(kResource + "resourceclaims/mine");
  EXPECT_TRUE(claim["status"].contains("allocation"));
  EXPECT_FALSE(claim["status"].contains("reservedFor"));
}

TEST_F(DutiesTest, DependentsGoWithTheirOwnerAndTheirs) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  const Json child = Owned("child", root);
  ASSERT_EQ(status_, 201) << child;
  Owned("grandchild", child);
  Step();
  EXPECT_TRUE(Exists(kConfigMaps + "/grandchild"));
  Call("DELETE", kConfigMaps + "/root");
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
  EXPECT_FALSE(Exists(kConfigMaps + "/grandchild"));
}

TEST_F(DutiesTest, AnOwnerThatNeverWasCounts) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Json ghost = root;
  ghost["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000";
  Owned("child", ghost);
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
  EXPECT_TRUE(Exists(kConfigMaps + "/root"));
}

TEST_F(DutiesTest, OneLivingOwnerKeepsTheObjectAndDeadOnesAreForgotten) {
  const Json one = Call("POST", kConfigMaps, {{"metadata", {{"name", "one"}}}});
  const Json two = Call("POST", kConfigMaps, {{"metadata", {{"name", "two"}}}});
  Json child = Owned("child", one);
  child["metadata"]["ownerReferences"].push_back({{"apiVersion", "v1"},
                                                  {"kind", "ConfigMap"},
                                                  {"name", "two"},
                                                  {"uid", two["metadata"]["uid"]}});
  Call("PUT", kConfigMaps + "/child", child);
  Step();
  Call("DELETE", kConfigMaps + "/one");
  Step();
  const Json left = Get(kConfigMaps + "/child");
  ASSERT_EQ(status_, 200);
  EXPECT_EQ(left["metadata"]["ownerReferences"].size(), 1U);
}

class ForgetfulDutiesTest : public DutiesTest {
 protected:
  ForgetfulDutiesTest() : DutiesTest({.log_count_max = 4}) {}
};

TEST_F(ForgetfulDutiesTest, DeletionsWhoseEventsAreForgottenAreNoticed) {
  const std::string secrets = "/api/v1/namespaces/default/secrets";
  const Json root = Call("POST", secrets, {{"metadata", {{"name", "root"}}}});
  Owned("child", root);
  Step();
  Call("DELETE", secrets + "/root");
  for (int i = 0; i < 10; ++i) {
    Call("POST", secrets, {{"metadata", {{"name", fmt::format("more-{}", i)}}}});
  }
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
}

TEST_F(DutiesTest, OrphansLoseTheReferenceAndStay) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root);
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Orphan"}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  const Json child = Get(kConfigMaps + "/child");
  ASSERT_EQ(status_, 200);
  EXPECT_FALSE(child["metadata"].contains("ownerReferences"));
}

TEST_F(DutiesTest, ForegroundDeletionEndsWithBothGone) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root);
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
}

TEST_F(DutiesTest, InTheForegroundAnOwnerWaitsForThoseThatBlockIt) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root, Held(Blocking(root)));
  Owned("other", root, Held());  // does not block
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_TRUE(IsMarked("root"));
  EXPECT_TRUE(IsMarked("child"));
  EXPECT_TRUE(IsMarked("other"));
  LetGo("child");
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
  EXPECT_TRUE(Exists(kConfigMaps + "/other"));
}

TEST_F(DutiesTest, InTheForegroundTheWholeFamilyGoesFromItsLeavesUp) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  const Json child = Owned("child", root, Blocking(root));
  Owned("grandchild", child, Held(Blocking(child)));
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_TRUE(IsMarked("root"));
  EXPECT_TRUE(IsMarked("child"));
  LetGo("grandchild");
  Step();
  for (const char* name : {"root", "child", "grandchild"}) {
    EXPECT_FALSE(Exists(kConfigMaps + "/" + name)) << name;
  }
}

TEST_F(DutiesTest, ADependentWithAnotherOwnerOnlyForgetsTheOneThatGoes) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  const Json other = Call("POST", kConfigMaps, {{"metadata", {{"name", "other"}}}});
  Json owners = Blocking(root);
  owners["ownerReferences"].push_back(Reference(other));
  Owned("child", root, owners);
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  const Json child = Get(kConfigMaps + "/child");
  ASSERT_EQ(status_, 200);
  EXPECT_EQ(child["metadata"]["ownerReferences"], Json::array({Reference(other)}));
}

TEST_F(DutiesTest, OwnersInACircleDoNotWaitForEver) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  const Json child = Owned("child", root, Blocking(root));
  Call("PATCH", kConfigMaps + "/root", {{"metadata", Blocking(child)}},
       "application/merge-patch+json");
  ASSERT_EQ(status_, 200);
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
}

TEST_F(DutiesTest, ALostWaitGoesOnAfterARestart) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root, Held(Blocking(root)));
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  LetGo("child");
  Duties restarted([this] { return server_->Kinds(); }, server_->objects(), *api_);
  restarted.Step(clock_.WallNow());
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
}

TEST_F(DutiesTest, ADeletedNamespaceIsEmptiedAndGoes) {
  Call("POST", "/api/v1/namespaces", {{"metadata", {{"name", "team"}}}});
  for (const char* name : {"a", "b", "c"}) {
    Call("POST", "/api/v1/namespaces/team/configmaps", {{"metadata", {{"name", name}}}});
    ASSERT_EQ(status_, 201);
  }
  Step();
  Call("DELETE", "/api/v1/namespaces/team");
  Step();
  clock_.Advance(seconds(1));
  Step();
  EXPECT_FALSE(Exists("/api/v1/namespaces/team"));
  EXPECT_TRUE(Exists("/api/v1/namespaces/default"));
}

class NodeDutiesTest : public DutiesTest {
 protected:
  NodeDutiesTest() {
    Call("POST", "/api/v1/namespaces", {{"metadata", {{"name", "kube-node-lease"}}}});
    Call("POST", "/api/v1/nodes",
         {{"metadata", {{"name", "n"}}},
          {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}});
    EXPECT_EQ(status_, 201);
    Call("POST", kLeases, {{"metadata", {{"name", "n"}}}, {"spec", {{"holderIdentity", "n"}}}});
    EXPECT_EQ(status_, 201);
    Step();
  }
  void Renew() {
    ++renewals_;
    Call("PATCH", kLeases + "/n", {{"spec", {{"leaseTransitions", renewals_}}}},
         "application/merge-patch+json");
    EXPECT_EQ(status_, 200);
  }
  std::string Ready() {
    return Text(Get("/api/v1/nodes/n")["status"]["conditions"][0], {"status"});
  }
  static inline const std::string kLeases =
      "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  int renewals_ = 0;
};

TEST_F(NodeDutiesTest, ANodeWhoseLeaseIsRenewedStaysReady) {
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(seconds(10));
    Renew();
    EXPECT_LE(Step(), 2) << "one look at the node, and it waits again";
    EXPECT_EQ(Ready(), "True");
  }
}

TEST_F(NodeDutiesTest, ASilentNodeIsUnknownAfterFortySeconds) {
  clock_.Advance(seconds(39));
  Step();
  EXPECT_EQ(Ready(), "True");
  clock_.Advance(seconds(2));
  Step();
  EXPECT_EQ(Ready(), "Unknown");
  const Json condition = Get("/api/v1/nodes/n")["status"]["conditions"][0];
  EXPECT_EQ(condition["reason"], "NodeStatusUnknown");
}

TEST_F(NodeDutiesTest, PodsOfADeletedNodeGoAfterAWhile) {
  MakePod("web");
  Call("POST", kPods + "/web/binding",
       {{"metadata", {{"name", "web"}}}, {"target", {{"kind", "Node"}, {"name", "n"}}}});
  ASSERT_EQ(status_, 201);
  Step();
  Call("DELETE", "/api/v1/nodes/n");
  Step();
  EXPECT_TRUE(Exists(kPods + "/web"));
  clock_.Advance(seconds(41));
  Step();
  EXPECT_FALSE(Exists(kPods + "/web"));
}

TEST_F(DutiesTest, ThreadsDoTheSameWithoutSteps) {
  MakeTemplate("t");
  SystemClock clock;
  {
    const DutyThreads threads(*duties_, server_->objects(), clock, 4);
    for (int i = 0; i < 50; ++i) MakePod(fmt::format("p{}", i), kOneClaim);
    // Waits for what the threads do by following the claims, for ten seconds at most.
    std::int64_t version = 0;
    const MonotonicTime deadline = clock.MonotonicNow() + std::chrono::seconds(10);
    while (clock.MonotonicNow() < deadline &&
           Get(kResource + "resourceclaims")["items"].size() < 50) {
      const auto batch =
          server_->objects().Next(kClaimResource, version, 100, std::chrono::milliseconds(500));
      if (batch.ok()) version = batch->version;
    }
  }
  Step();
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_NE(ClaimOf(fmt::format("p{}", i)), "");
}

TEST(WorkQueueTest, WorkWaitsOnceAndIsNotDoneTwiceAtATime) {
  WorkQueue queue;
  const WallTime now{};
  const Work work{Duty::kClaims, "a"};
  queue.Add(work, now);
  queue.Add(work, now);
  EXPECT_EQ(queue.Take(now), work);
  EXPECT_EQ(queue.Take(now), std::nullopt);
  queue.Add(work, now);
  EXPECT_EQ(queue.Take(now), std::nullopt) << "it is being done";
  queue.Done(work, Outcome::kDone, now);
  EXPECT_EQ(queue.Take(now), work) << "it was asked for again";
}

TEST(WorkQueueTest, WorkAddedForLaterWhileItIsDoneWaitsUntilThen) {
  WorkQueue queue;
  const WallTime now{};
  const Work work{Duty::kNode, "n"};
  queue.Add(work, now);
  queue.Take(now);
  queue.Add(work, now + seconds(40));
  queue.Done(work, Outcome::kDone, now);
  EXPECT_EQ(queue.Take(now), std::nullopt);
  EXPECT_EQ(queue.NextDue(), now + seconds(40));
}

TEST(WorkQueueTest, FailedWorkComesBackLaterAndLater) {
  WorkQueue queue;
  WallTime now{};
  const Work work{Duty::kNode, "n"};
  queue.Add(work, now);
  std::chrono::nanoseconds last{0};
  for (int i = 0; i < 12; ++i) {
    ASSERT_EQ(queue.Take(now), work);
    queue.Done(work, Outcome::kRetry, now);
    const auto delay = *queue.NextDue() - now;
    EXPECT_GE(delay, last);
    EXPECT_LE(delay, seconds(11));
    EXPECT_EQ(queue.Take(now), std::nullopt);
    last = delay;
    now += delay;
  }
}

TEST(WorkQueueTest, AnEarlierTimeWins) {
  WorkQueue queue;
  const WallTime now{};
  queue.Add({Duty::kNode, "n"}, now + seconds(40));
  queue.Add({Duty::kNode, "n"}, now);
  queue.Add({Duty::kNode, "n"}, now + seconds(40));
  EXPECT_TRUE(queue.Take(now).has_value());
  EXPECT_EQ(queue.NextDue(), std::nullopt);
}

}  // namespace
}  // namespace tahoma::controller
