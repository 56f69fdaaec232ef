// Claims, namespaces, nodes and the threads of the controllers.

#include "controller/apiserver/controllers/controllers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "controller/apiserver/controllers/controller_threads.h"
#include "lib/base/json.h"
#include "tests/unit/controller/apiserver/controllers/controllers_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using std::chrono::seconds;

TEST_F(ControllersTest, APodGetsItsClaimsFromTheTemplate) {
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

TEST_F(ControllersTest, AClaimFromATemplateIsProtectedFromTheStartAndGoesWithAPodThatNeverRan) {
  MakeTemplate("t");
  MakePod("web", kOneClaim);
  Step();
  const std::string claim = kResource + "resourceclaims/" + ClaimOf("web");
  EXPECT_EQ(Get(claim)["metadata"]["finalizers"],
            Json::array({"resource.kubernetes.io/delete-protection"}));
  Call("DELETE", kPods + "/web", {{"gracePeriodSeconds", 0}});
  Step();
  EXPECT_FALSE(Exists(claim));
}

TEST_F(ControllersTest, AClaimCanBeMadeAsKubeControllerManagerMakesItForWhoeverAllocatesToProtect) {
  Restart({.protect_claims = false});
  MakeTemplate("t");
  MakePod("web", kOneClaim);
  Step();
  const Json claim = Get(kResource + "resourceclaims/" + ClaimOf("web"));
  EXPECT_FALSE(claim["metadata"].contains("finalizers"));
}

TEST_F(ControllersTest, LookingAgainMakesNoSecondClaim) {
  MakeTemplate("t");
  MakePod("web", kOneClaim);
  Step();
  Call("PATCH", kPods + "/web", {{"metadata", {{"labels", {{"a", "b"}}}}}},
       "application/merge-patch+json");
  Step();
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 1U);
  EXPECT_EQ(Step(), 0) << "nothing is left to do";
}

TEST_F(ControllersTest, AfterARestartNoSecondClaimIsMade) {
  MakeTemplate("t");
  MakePod("web", kOneClaim);
  Step();
  Call("PATCH", kPods + "/web/status", {{"status", {{"resourceClaimStatuses", nullptr}}}},
       "application/merge-patch+json");
  controllers_ =
      std::make_unique<Controllers>([this] { return server_->Kinds(); }, server_->objects(), *api_);
  Step();
  Step();
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 1U);
}

TEST_F(ControllersTest, APodWaitsForATemplateThatComesLater) {
  MakePod("web", kOneClaim);
  Step();
  EXPECT_FALSE(Get(kPods + "/web")["status"].contains("resourceClaimStatuses"));
  MakeTemplate("t");
  Step();
  EXPECT_TRUE(ClaimOf("web").starts_with("web-d-"));
}

TEST_F(ControllersTest, AFinishedPodGivesItsDevicesBackAndItsClaimGoes) {
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

TEST_F(ControllersTest, AUsersOwnClaimIsReleasedButStays) {
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

TEST_F(ControllersTest, AClaimDeletedBetweenItsFinalizerAndItsAllocationGoes) {
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

TEST_F(ControllersTest, AnAllocationWithoutTheFinalizerIsLeftAlone) {
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

TEST_F(ControllersTest, ADeletedNamespaceIsEmptiedAndGoes) {
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

class NodeControllersTest : public ControllersTest {
 protected:
  explicit NodeControllersTest(ObjectStore::Options objects = {}) : ControllersTest(objects) {
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
    return TextAt(Get("/api/v1/nodes/n")["status"]["conditions"][0], {"status"});
  }
  static inline const std::string kLeases =
      "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  int renewals_ = 0;
};

TEST_F(NodeControllersTest, ANodeWhoseLeaseIsRenewedStaysReady) {
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(seconds(10));
    Renew();
    EXPECT_LE(Step(), 2) << "one look at the node, and it waits again";
    EXPECT_EQ(Ready(), "True");
  }
}

TEST_F(NodeControllersTest, ASilentNodeIsUnknownAfterFortySeconds) {
  clock_.Advance(seconds(39));
  Step();
  EXPECT_EQ(Ready(), "True");
  clock_.Advance(seconds(2));
  Step();
  EXPECT_EQ(Ready(), "Unknown");
  const Json condition = Get("/api/v1/nodes/n")["status"]["conditions"][0];
  EXPECT_EQ(condition["reason"], "NodeStatusUnknown");
}

TEST_F(NodeControllersTest, PodsOfADeletedNodeGoAfterAWhile) {
  MakePod("web");
  Bind("web");
  Step();
  Call("DELETE", "/api/v1/nodes/n");
  Step();
  EXPECT_TRUE(Exists(kPods + "/web"));
  clock_.Advance(seconds(41));
  Step();
  EXPECT_FALSE(Exists(kPods + "/web"));
}

TEST_F(ControllersTest, APodOfASchedulerThatIsNotOursIsToldOnce) {
  const ControllerOptions options{.scheduler_names = {"tahoma", "others"}};
  MakePod("web");  // of default-scheduler
  for (int start = 0; start < 2; ++start) {
    Restart(options);
    Step();
  }
  const Json events = Get("/api/v1/namespaces/default/events")["items"];
  ASSERT_EQ(events.size(), 1U) << events;
  EXPECT_EQ(events[0]["involvedObject"]["name"], "web");
  EXPECT_EQ(events[0]["reason"], "FailedScheduling");
  EXPECT_EQ(events[0]["message"],
            "Tahoma does not place this pod: spec.schedulerName is \"default-scheduler\", and "
            "Tahoma's are tahoma, others (schedulerNames of the controller)");
}

TEST_F(ControllersTest, APodWhoseTemplateDoesNotExistIsToldOnceInKubernetesWords) {
  MakePod("web", kOneClaim);
  for (int start = 0; start < 2; ++start) {
    Restart();
    Step();
  }
  const Json events = Get("/api/v1/namespaces/default/events")["items"];
  ASSERT_EQ(events.size(), 1U) << events;
  EXPECT_EQ(events[0]["reason"], "FailedResourceClaimCreation");
  EXPECT_EQ(events[0]["message"],
            "PodResourceClaim d: resource claim template \"t\": "
            "resourceclaimtemplate.resource.k8s.io \"t\" not found");
}

TEST_F(ControllersTest, PodsOfOurSchedulersAndBoundPodsAreToldNothing) {
  Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
  MakePod("bound");
  Bind("bound");
  Restart({.scheduler_names = {"tahoma"}});
  Step();
  MakePod("ours");
  Restart({.scheduler_names = {"default-scheduler"}});
  Step();
  EXPECT_TRUE(Get("/api/v1/namespaces/default/events")["items"].empty());
}

// Nothing but the threads makes the claims, and nothing but the pods' own events is waited for:
// a loaded machine only makes it longer, and the runner ends a test that hangs.
// kube-apiserver's --event-ttl.
TEST_F(ControllersTest, AnEventGoesAnHourAfterItWasLastWrittenAndWatchersSeeIt) {
  const std::string events = "/api/v1/namespaces/default/events";
  const auto make = [&](const std::string& name) {
    Call("POST", events,
         {{"metadata", {{"name", name}}},
          {"involvedObject", {{"kind", "Pod"}, {"namespace", "default"}, {"name", "p"}}}});
    ASSERT_EQ(status_, 201);
  };
  make("old");
  make("repeated");
  Step();
  clock_.Advance(std::chrono::minutes(40));
  Call("PATCH", events + "/repeated", {{"count", 2}}, "application/merge-patch+json");
  EXPECT_EQ(status_, 200);
  Step();
  clock_.Advance(std::chrono::minutes(19));
  Step();
  EXPECT_TRUE(Exists(events + "/old"));
  const std::int64_t before = server_->objects().version();
  clock_.Advance(std::chrono::minutes(2));
  Step();
  EXPECT_FALSE(Exists(events + "/old"));
  EXPECT_TRUE(Exists(events + "/repeated"));
  const auto seen = server_->objects().Next({"", "events"}, before, 10, {});
  ASSERT_TRUE(seen.ok());
  ASSERT_EQ(seen->events.size(), 1U);
  EXPECT_EQ(seen->events[0]->type, Event::Type::kDeleted);
  clock_.Advance(std::chrono::minutes(40));
  Step();
  EXPECT_FALSE(Exists(events + "/repeated"));
}

TEST_F(ControllersTest, AfterARestartEventsKeepTheirAgeAndNoClientsTimeKeepsAnEvent) {
  const std::string events = "/apis/events.k8s.io/v1/namespaces/default/events";
  Call("POST", events,
       {{"metadata",
         {{"name", "e"},
          {"managedFields", Json::array({{{"manager", "m"},
                                          {"operation", "Update"},
                                          {"apiVersion", "events.k8s.io/v1"},
                                          {"time", "2099-01-01T00:00:00Z"},
                                          {"fieldsType", "FieldsV1"},
                                          {"fieldsV1", {{"f:note", Json::object()}}}}})}}},
        {"eventTime", "2026-01-01T00:00:00.000000Z"},
        {"reportingController", "c"},
        {"reportingInstance", "i"},
        {"action", "a"},
        {"reason", "r"},
        {"type", "Normal"}});
  ASSERT_EQ(status_, 201);
  clock_.Advance(std::chrono::minutes(50));
  Restart();
  Step();
  EXPECT_TRUE(Exists(events + "/e"));
  clock_.Advance(std::chrono::minutes(11));
  Step();
  EXPECT_FALSE(Exists(events + "/e"));
}

TEST_F(ControllersTest, ThreadsDoTheSameWithoutSteps) {
  MakeTemplate("t");
  const SystemClock clock;
  std::int64_t version = server_->objects().List(kPodResource, "").version;
  {
    const ControllerThreads threads(*controllers_, server_->objects(), clock, 4);
    for (int i = 0; i < 50; ++i) MakePod(fmt::format("p{}", i), kOneClaim);
    std::set<std::string> served;
    while (served.size() < 50) {
      const auto batch = server_->objects().Next(kPodResource, version, 100, seconds(1));
      ASSERT_TRUE(batch.ok()) << batch.status();
      version = batch->version;
      for (const EventPtr& event : batch->events) {
        const Json& pod = *event->object->body;
        if (SizeAt(pod, {"status", "resourceClaimStatuses"}) == 1)
          served.insert(event->object->key);
      }
    }
  }
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 50U) << "one each";
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(Exists(kResource + "resourceclaims/" + ClaimOf(fmt::format("p{}", i))));
  }
}

TEST_F(ControllersTest, ClaimsOfManyPodsAreMadeTogether) {
  Step();  // the accounts of the namespaces are there
  MakeTemplate("t");
  for (int i = 0; i < 5; ++i) MakePod(fmt::format("p{}", i), kOneClaim);
  MakePod("waits", R"([{"name": "c", "resourceClaimTemplateName": "later"}])");
  controllers_->Observe(clock_.WallNow());
  EXPECT_EQ(controllers_->DoSome(clock_.WallNow(), 4), 4);
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 4U) << "no more than asked for";
  EXPECT_EQ(controllers_->DoSome(clock_.WallNow(), 100), 2);
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 5U);
  for (int i = 0; i < 5; ++i) {
    const Json claim = Get(kResource + "resourceclaims/" + ClaimOf(fmt::format("p{}", i)));
    EXPECT_EQ(claim["metadata"]["ownerReferences"][0]["name"], fmt::format("p{}", i));
  }
  MakeTemplate("later");
  Step();
  EXPECT_TRUE(Exists(kResource + "resourceclaims/" + ClaimOf("waits")));
}

TEST_F(ControllersTest, AGeneratedClaimThatIsDeletedByMistakeIsMadeAgain) {
  MakeTemplate("t");
  MakePod("web", kOneClaim);
  Step();
  const std::string first = ClaimOf("web");
  Call("DELETE", kResource + "resourceclaims/" + first);
  Step();
  const std::string second = ClaimOf("web");
  EXPECT_NE(first, second);
  EXPECT_TRUE(Exists(kResource + "resourceclaims/" + second));
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 1U);
  EXPECT_EQ(Step(), 0) << "nothing is left to do";
}

TEST_F(ControllersTest, EveryTemplateOfAPodGivesAClaimAndNamedClaimsAreNotTouched) {
  MakeTemplate("t");
  MakePod("web", R"([{"name": "a", "resourceClaimTemplateName": "t"},
                     {"name": "mine", "resourceClaimName": "mine"},
                     {"name": "b", "resourceClaimTemplateName": "t"}])");
  Step();
  EXPECT_EQ(Get(kResource + "resourceclaims")["items"].size(), 2U);
  const Json pod = Get(kPods + "/web");
  std::set<std::string> names;
  for (const Json& entry : ValueAt(pod, {"status", "resourceClaimStatuses"})) {
    names.insert(TextAt(entry, {"name"}));
  }
  EXPECT_EQ(names, (std::set<std::string>{"a", "b"}));
}

TEST_F(ControllersTest, OnePodOfASharedClaimThatEndsKeepsItForTheOther) {
  MakeTemplate("t");
  const Json one = MakePod("one", kOneClaim);
  const Json two = MakePod("two");
  Step();
  const std::string path = kResource + "resourceclaims/" + ClaimOf("one");
  Allocate(ClaimOf("one"), one);
  Json claim = Get(path);
  claim["status"]["reservedFor"].push_back(
      {{"resource", "pods"}, {"name", "two"}, {"uid", two["metadata"]["uid"]}});
  Call("PUT", path + "/status", claim);
  ASSERT_EQ(status_, 200);
  SetPhase("one", "Failed");
  Step();
  claim = Get(path);
  ASSERT_EQ(status_, 200);
  ASSERT_EQ(SizeAt(claim, {"status", "reservedFor"}), 1U) << claim;
  EXPECT_EQ(claim["status"]["reservedFor"][0]["name"], "two");
  EXPECT_TRUE(claim["status"].contains("allocation"));
  SetPhase("two", "Succeeded");
  Step();
  EXPECT_FALSE(Exists(path));
}

TEST_F(ControllersTest, APodOfTheSameNameDoesNotInheritAReservation) {
  MakeTemplate("t");
  const Json pod = MakePod("web", kOneClaim);
  Step();
  const std::string claim = ClaimOf("web");
  Allocate(claim, pod);
  Call("DELETE", kPods + "/web", {{"gracePeriodSeconds", 0}});
  MakePod("web", kOneClaim);
  Step();
  EXPECT_FALSE(Exists(kResource + "resourceclaims/" + claim));
  EXPECT_NE(ClaimOf("web"), claim);
}

TEST_F(ControllersTest, APodThatIsBoundByHandGetsItsAllocatedClaimReserved) {
  Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
  MakeTemplate("t");
  MakePod("web", kOneClaim);
  Step();
  const std::string path = kResource + "resourceclaims/" + ClaimOf("web");
  Allocate(ClaimOf("web"), nullptr);
  Bind("web");
  Step();
  const Json users = ValueAt(Get(path), {"status", "reservedFor"});
  ASSERT_EQ(users.size(), 1U) << users;
  EXPECT_EQ(users[0]["uid"], Get(kPods + "/web")["metadata"]["uid"]);
  EXPECT_EQ(users[0]["resource"], "pods");
  EXPECT_EQ(Step(), 0) << "nothing is left to do";
}

TEST_F(ControllersTest, EachNamespaceHasTheAccountDefaultAndGetsItAgain) {
  Call("POST", "/api/v1/namespaces", {{"metadata", {{"name", "team"}}}});
  Step();
  const std::string account = "/api/v1/namespaces/team/serviceaccounts/default";
  EXPECT_TRUE(Exists("/api/v1/namespaces/kube-system/serviceaccounts/default"));
  const Json first = Get(account);
  ASSERT_EQ(status_, 200);
  Call("DELETE", account);
  Step();
  const Json second = Get(account);
  ASSERT_EQ(status_, 200);
  EXPECT_NE(first["metadata"]["uid"], second["metadata"]["uid"]);
  EXPECT_EQ(Step(), 0) << "nothing is left to do";
  Call("DELETE", "/api/v1/namespaces/team");
  Step();
  clock_.Advance(seconds(1));
  Step();
  EXPECT_FALSE(Exists(account)) << "a namespace that goes gets none";
  EXPECT_FALSE(Exists("/api/v1/namespaces/team"));
}

TEST_F(ControllersTest, ADeletedNamespaceKeepsTheFinalizersOfOthers) {
  Call("POST", "/api/v1/namespaces", {{"metadata", {{"name", "team"}}}});
  Json space = Get("/api/v1/namespaces/team");
  space["spec"]["finalizers"].push_back("example.com/hold");
  Call("PUT", "/api/v1/namespaces/team/finalize", space);
  ASSERT_EQ(status_, 200);
  Call("DELETE", "/api/v1/namespaces/team");
  Step();
  space = Get("/api/v1/namespaces/team");
  ASSERT_EQ(status_, 200);
  EXPECT_EQ(space["spec"]["finalizers"], Json::array({"example.com/hold"}));
  space["spec"].erase("finalizers");
  Call("PUT", "/api/v1/namespaces/team/finalize", space);
  EXPECT_FALSE(Exists("/api/v1/namespaces/team"));
}

TEST_F(NodeControllersTest, ARestartFindsPodsInDeletionAndFinishedOnesOfANodeThatIsGone) {
  for (const char* name : {"going", "done"}) {
    MakePod(name);
    Bind(name);
  }
  SetPhase("done", "Succeeded");
  Call("DELETE", kPods + "/going");
  ASSERT_TRUE(Exists(kPods + "/going")) << "its node has to end it";
  Call("DELETE", "/api/v1/nodes/n");
  Restart();
  Step();
  clock_.Advance(seconds(41));
  Step();
  EXPECT_FALSE(Exists(kPods + "/going"));
  EXPECT_FALSE(Exists(kPods + "/done"));
}

TEST_F(NodeControllersTest, ANodeThatComesBackInTimeKeepsItsPods) {
  MakePod("web");
  Bind("web");
  Step();
  Call("DELETE", "/api/v1/nodes/n");
  Step();
  clock_.Advance(seconds(30));
  Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
  Step();
  clock_.Advance(seconds(100));
  Step();
  EXPECT_TRUE(Exists(kPods + "/web"));
}

// With a log so short that events are forgotten between two looks.
class ForgetfulNodeControllersTest : public NodeControllersTest {
 protected:
  ForgetfulNodeControllersTest() : NodeControllersTest({.log_count_max = 4}) {}
  void MakeNoise() {
    for (int i = 0; i < 10; ++i) {
      Call("POST", kConfigMaps, {{"metadata", {{"name", fmt::format("noise-{}", ++noises_)}}}});
    }
  }
  int noises_ = 0;
};

TEST_F(ForgetfulNodeControllersTest, EventsThatAreForgottenAreNoHeartbeat) {
  clock_.Advance(seconds(39));
  MakeNoise();
  Step();
  EXPECT_EQ(Ready(), "True");
  clock_.Advance(seconds(2));
  Step();
  EXPECT_EQ(Ready(), "Unknown");
}

TEST_F(ForgetfulNodeControllersTest, AHeartbeatAmongForgottenEventsCounts) {
  clock_.Advance(seconds(39));
  Renew();
  MakeNoise();
  Step();
  clock_.Advance(seconds(38));
  Step();
  EXPECT_EQ(Ready(), "True");
}

}  // namespace
}  // namespace tahoma::controller::apiserver
