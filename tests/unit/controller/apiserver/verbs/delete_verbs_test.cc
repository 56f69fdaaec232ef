// Deletion: preconditions, finalizers, the grace of pods, whole collections. And bindings.

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "tests/support/api_fixture.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;
using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DeleteVerbsTest : public testing::ApiFixture {
 protected:
  Answer Bind(const std::string& pod, json extra = json::object()) {
    json binding = {{"apiVersion", "v1"},
                    {"kind", "Binding"},
                    {"metadata", {{"name", pod}}},
                    {"target", {{"kind", "Node"}, {"name", "n1"}}}};
    binding.merge_patch(extra);
    return Call("POST", kPods + "/" + pod + "/binding", binding);
  }
};

TEST_F(DeleteVerbsTest, ADeletedObjectIsGoneAndTheAnswerShowsIt) {
  const Answer made = Call("POST", kGangs, GangOf("g"));
  const Answer deleted = Call("DELETE", kGangs + "/g");
  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(deleted.body.at("status"), "Success");
  EXPECT_EQ(deleted.body.at("details").at("uid"), made.body.at("metadata").at("uid"));
  EXPECT_EQ(deleted.body.at("details").at("kind"), "gangs");
  EXPECT_EQ(Call("GET", kGangs + "/g").status, 404);
  const Answer again = Call("DELETE", kGangs + "/g");
  EXPECT_EQ(again.reason(), "NotFound");
  EXPECT_EQ(again.body.at("details"),
            (json{{"name", "g"}, {"group", "tahoma.dev"}, {"kind", "gangs"}}));
}

TEST_F(DeleteVerbsTest, PreconditionsProtectAnotherObjectOfTheSameName) {
  const Answer made = Call("POST", kMaps, ConfigMapOf("c", "1"));
  const Answer another = Call("DELETE", kMaps + "/c", {{"preconditions", {{"uid", "x"}}}});
  EXPECT_EQ(another.reason(), "Conflict");
  EXPECT_THAT(another.message(), HasSubstr("ConfigMap \"c\": the UID in the precondition (x) does "
                                           "not match the UID in record ("));
  EXPECT_EQ(Call("DELETE", kMaps + "/c", {{"preconditions", {{"resourceVersion", "1"}}}}).reason(),
            "Conflict");
  EXPECT_EQ(Call("DELETE", kMaps + "/c", {{"propagationPolicy", "Sideways"}}).status, 422);
  EXPECT_EQ(Call("DELETE", kMaps + "/c", "not json").status, 400);
  EXPECT_EQ(
      Call("DELETE", kMaps + "/c",
           {{"preconditions",
             {{"uid", made.body.at("metadata").at("uid")}, {"resourceVersion", made.version()}}}})
          .status,
      200);
}

TEST_F(DeleteVerbsTest, FinalizersKeepTheObjectUntilTheLastIsRemoved) {
  json map = ConfigMapOf("c", "1");
  map["metadata"]["finalizers"] = {"tahoma.dev/a", "tahoma.dev/b"};
  ASSERT_EQ(Call("POST", kMaps, map).status, 201);
  const Answer deleted = Call("DELETE", kMaps + "/c");
  EXPECT_EQ(deleted.body.at("metadata").at("deletionTimestamp"), "2027-01-15T08:00:00Z");
  clock_.Advance(std::chrono::seconds(9));
  EXPECT_EQ(Call("DELETE", kMaps + "/c").version(), deleted.version()) << "marked once only";
  const Answer added = Patch(kMaps + "/c", "merge-patch+json",
                             {{"metadata", {{"finalizers", {"tahoma.dev/a", "tahoma.dev/new"}}}}});
  EXPECT_EQ(added.status, 422);
  EXPECT_THAT(added.message(), HasSubstr("no new finalizers can be added"));
  EXPECT_EQ(
      Patch(kMaps + "/c", "merge-patch+json", {{"metadata", {{"finalizers", {"tahoma.dev/a"}}}}})
          .status,
      200);
  EXPECT_EQ(Call("GET", kMaps + "/c").status, 200);
  EXPECT_EQ(
      Patch(kMaps + "/c", "merge-patch+json", {{"metadata", {{"finalizers", nullptr}}}}).status,
      200);
  EXPECT_EQ(Call("GET", kMaps + "/c").status, 404);
}

TEST_F(DeleteVerbsTest, APolicyThatIsAskedForReplacesTheObjectsOwn) {
  const auto make = [&](const char* finalizer) {
    json map = ConfigMapOf("c", "1");
    map["metadata"]["finalizers"] = {finalizer};
    ASSERT_EQ(Call("POST", kMaps, map).status, 201);
  };
  make("orphan");
  EXPECT_EQ(Call("DELETE", kMaps + "/c", {{"propagationPolicy", "Background"}}).body.at("status"),
            "Success");
  make("orphan");
  const Answer waits = Call("DELETE", kMaps + "/c", {{"propagationPolicy", "Foreground"}});
  EXPECT_EQ(waits.body.at("metadata").at("finalizers"), json({"foregroundDeletion"}));
  EXPECT_EQ(Call("DELETE", kMaps + "/c", {{"orphanDependents", false}}).status, 200);
  make("foregroundDeletion");
  const Answer own = Call("DELETE", kMaps + "/c");
  EXPECT_EQ(own.body.at("metadata").at("finalizers"), json({"foregroundDeletion"}));
}

TEST_F(DeleteVerbsTest, TheOldAndTheNewWordForOrphansExcludeEachOther) {
  ASSERT_EQ(Call("POST", kMaps, ConfigMapOf("c", "1")).status, 201);
  const Answer both = Call("DELETE", kMaps + "/c",
                           {{"orphanDependents", true}, {"propagationPolicy", "Foreground"}});
  EXPECT_EQ(both.status, 422);
  EXPECT_THAT(both.message(), HasSubstr("orphanDependents and deletionPropagation cannot be both"));
  const Answer old = Call("DELETE", kMaps + "/c", {{"orphanDependents", true}});
  EXPECT_EQ(old.body.at("metadata").at("finalizers"), json({"orphan"}));
}

TEST_F(DeleteVerbsTest, AnUnboundPodGoesAtOnce) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  EXPECT_EQ(Call("DELETE", kPods + "/p").body.at("kind"), "Pod");
  EXPECT_EQ(Call("GET", kPods + "/p").status, 404);
}

TEST_F(DeleteVerbsTest, ABoundPodStaysForItsGraceUntilItsNodeConfirms) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  ASSERT_EQ(Bind("p").status, 201);
  const Answer marked = Call("DELETE", kPods + "/p");
  EXPECT_EQ(marked.body.at("metadata").at("deletionGracePeriodSeconds"), 30);
  EXPECT_EQ(marked.body.at("metadata").at("deletionTimestamp"), "2027-01-15T08:00:30Z");
  EXPECT_EQ(Call("DELETE", kPods + "/p", {{"gracePeriodSeconds", 60}}).version(), marked.version())
      << "grace never grows";
  const Answer shorter = Call("DELETE", kPods + "/p", {{"gracePeriodSeconds", 5}});
  EXPECT_EQ(shorter.body.at("metadata").at("deletionGracePeriodSeconds"), 5);
  EXPECT_EQ(shorter.body.at("metadata").at("deletionTimestamp"), "2027-01-15T08:00:05Z");
  EXPECT_EQ(Call("DELETE", kPods + "/p", {{"gracePeriodSeconds", 0}}).status, 200);
  EXPECT_EQ(Call("GET", kPods + "/p").status, 404);
}

TEST_F(DeleteVerbsTest, AFinishedPodGoesAtOnceAndAnEvictionIsADeletion) {
  for (const char* name : {"done", "evicted"}) {
    ASSERT_EQ(Call("POST", kPods, PodOf(name)).status, 201);
    ASSERT_EQ(Bind(name).status, 201);
  }
  ASSERT_EQ(
      Patch(kPods + "/done/status", "merge-patch+json", {{"status", {{"phase", "Succeeded"}}}})
          .status,
      200);
  Call("DELETE", kPods + "/done");
  EXPECT_EQ(Call("GET", kPods + "/done").status, 404);
  EXPECT_EQ(Call("POST", kPods + "/evicted/eviction", {{"metadata", {{"name", "evicted"}}}}).status,
            201);
  EXPECT_TRUE(Call("GET", kPods + "/evicted").body.at("metadata").contains("deletionTimestamp"));
}

TEST_F(DeleteVerbsTest, ACollectionIsDeletedBySelector) {
  for (const char* name : {"a", "b", "c"}) {
    json map = ConfigMapOf(name, "1");
    map["metadata"]["labels"] = {{"keep", name == std::string("b") ? "yes" : "no"}};
    ASSERT_EQ(Call("POST", kMaps, map).status, 201);
  }
  EXPECT_THAT(Call("DELETE", kMaps + "?labelSelector=keep%3Dno").names(), ElementsAre("a", "c"));
  EXPECT_THAT(Call("GET", kMaps).names(), ElementsAre("b"));
  EXPECT_EQ(Call("DELETE", "/api/v1/configmaps").status, 405) << "never over all namespaces";
}

TEST_F(DeleteVerbsTest, ABindingSetsNodeConditionAndAnnotationsOnce) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  ASSERT_EQ(Bind("p", {{"metadata", {{"annotations", {{"tahoma.dev/rank", "3"}}}}}}).status, 201);
  const json pod = Call("GET", kPods + "/p").body;
  EXPECT_EQ(pod.at("spec").at("nodeName"), "n1");
  EXPECT_EQ(pod.at("metadata").at("annotations").at("tahoma.dev/rank"), "3");
  bool scheduled = false;
  for (const json& condition : pod.at("status").at("conditions")) {
    scheduled |= condition.at("type") == "PodScheduled" && condition.at("status") == "True";
  }
  EXPECT_TRUE(scheduled);
  const Answer again = Bind("p");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(
      again.message(),
      "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node "
      "\"n1\"");
}

TEST_F(DeleteVerbsTest, BindingsThatCannotBeAreRefused) {
  EXPECT_EQ(Bind("missing").status, 404);
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  EXPECT_EQ(Bind("p", {{"metadata", {{"uid", "x"}}}}).reason(), "Conflict");
  EXPECT_EQ(Bind("p", {{"target", {{"kind", "Minion"}}}}).status, 422);
  EXPECT_EQ(Bind("p", {{"target", {{"name", ""}}}}).status, 422);
  EXPECT_EQ(Bind("p", {{"metadata", {{"annotations", {{"bad key", "x"}}}}}}).status, 422);
  EXPECT_EQ(Bind("p", {{"metadata", {{"name", "other"}}}}).status, 400);
  json gated = PodOf("gated");
  gated["spec"]["schedulingGates"] = {{{"name", "tahoma.dev/wait"}}};
  const Answer made = Call("POST", kPods, gated);
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_THAT(Bind("gated").message(), HasSubstr("non-empty .spec.schedulingGates"));
  json leaving = PodOf("leaving");
  leaving["metadata"]["finalizers"] = {"tahoma.dev/a"};
  ASSERT_EQ(Call("POST", kPods, leaving).status, 201);
  Call("DELETE", kPods + "/leaving");
  EXPECT_THAT(Bind("leaving").message(), HasSubstr("is being deleted"));
}

// A node names its address itself.
TEST_F(DeleteVerbsTest, NoLogIsAskedForWhereNoNodeCanBe) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  ASSERT_EQ(Bind("p").status, 201);
  ASSERT_EQ(Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n1"}}}}).status, 201);
  const auto log_from = [&](const std::string& address, int port) {
    const auto named = Patch("/api/v1/nodes/n1/status", "merge-patch+json",
                             {{"status",
                               {{"addresses", {{{"type", "InternalIP"}, {"address", address}}}},
                                {"daemonEndpoints", {{"kubeletEndpoint", {{"Port", port}}}}}}}});
    EXPECT_EQ(named.status, 200) << address;
    return Call("GET", kPods + "/p/log").status;
  };
  for (const char* good : {"10.0.0.7", "127.0.0.1", "192.168.1.1", "::1", "fd00::7"}) {
    EXPECT_EQ(log_from(good, 10250), 200) << good;
  }
  for (const char* bad :
       {"169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255", "fe80::1", "ff02::1",
        "::", "::ffff:169.254.169.254", "metadata.internal", "10.0.0.7/x", "10.0.0.7:1"}) {
    EXPECT_EQ(log_from(bad, 10250), 500) << bad;
  }
}

TEST_F(DeleteVerbsTest, LogsComeFromThePodsNode) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  EXPECT_EQ(Call("GET", kPods + "/p/log").status, 204) << "nothing runs yet";
  ASSERT_EQ(Bind("p").status, 201);
  EXPECT_EQ(Call("GET", kPods + "/p/log").status, 500) << "there is no such node";
  ASSERT_EQ(Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n1"}}}}).status, 201);
  ASSERT_EQ(Patch("/api/v1/nodes/n1/status", "merge-patch+json",
                  {{"status",
                    {{"addresses", {{{"type", "InternalIP"}, {"address", "10.0.0.7"}}}},
                     {"daemonEndpoints", {{"kubeletEndpoint", {{"Port", 10250}}}}}}}})
                .status,
            200);
  EXPECT_EQ(Call("GET", kPods + "/p/log?follow=true&tailLines=3&x=y").text,
            "10.0.0.7:10250/containerLogs/default/p/main?follow=true&tailLines=3");
  EXPECT_EQ(Call("GET", kPods + "/p/log?container=nope").status, 400);
  for (const char* wrong :
       {"tailLines=-1", "limitBytes=0", "sinceSeconds=0",
        "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", "tailLines=-1&limitBytes=0"}) {
    const Answer refused = Call("GET", kPods + "/p/log?" + wrong);
    EXPECT_EQ(refused.status, 422) << wrong;
    EXPECT_THAT(refused.message(), HasSubstr("PodLogOptions \"p\" is invalid"));
  }
  EXPECT_EQ(Call("GET", kPods + "/none/log").status, 404);
}

const std::string kBlocks = "/apis/tahoma.dev/v1alpha1/namespaces/default/capacityblocks";

class DeletionGuardTest : public testing::ApiFixture {
 protected:
  DeletionGuardTest() {
    std::ifstream crd("charts/tahoma/crds/tahoma.dev_capacityblocks.yaml");
    TAHOMA_CHECK_OK(server_->InstallCrd(std::string((std::istreambuf_iterator<char>(crd)), {})));
  }
  void Make(const std::string& name, const std::string& state) {
    const json block = {{"apiVersion", "tahoma.dev/v1alpha1"},
                        {"kind", "CapacityBlock"},
                        {"metadata", {{"name", name}}},
                        {"spec", {{"capacityBlockOfferingId", "cb-01"}}}};
    ASSERT_EQ(Call("POST", kBlocks, block).status, 201);
    ASSERT_EQ(Patch(kBlocks + "/" + name + "/status", "merge-patch+json",
                    {{"status", {{"state", state}, {"endDate", "2030-01-01T11:30:00Z"}}}})
                  .status,
              200);
  }
};

TEST_F(DeletionGuardTest, TheGuardThatKnowsTheBlockIsBelievedAndNotItsStatus) {
  Make("sold", "expired");
  Make("refused", "active");
  server_->deletion_guard().Set([](const std::string& ns, const std::string& name) {
    return std::optional<std::string>(ns == "default" && name == "sold" ? "it is sold" : "");
  });
  const Answer kept = Call("DELETE", kBlocks + "/sold");
  EXPECT_EQ(kept.status, 403);
  EXPECT_THAT(kept.message(), HasSubstr("it is sold"));
  EXPECT_EQ(Call("DELETE", kBlocks).status, 403) << "nor with all others";
  EXPECT_EQ(Call("GET", kBlocks + "/sold").status, 200);
  EXPECT_EQ(Call("GET", kBlocks + "/refused").status, 404);
}

TEST_F(DeletionGuardTest, TheStatusCountsWhileTheGuardDoesNotKnowTheBlock) {
  Make("sold", "active");
  server_->deletion_guard().Set(
      [](const std::string&, const std::string&) { return std::nullopt; });
  EXPECT_EQ(Call("DELETE", kBlocks + "/sold").status, 403);
  server_->deletion_guard().Set(nullptr);
  EXPECT_EQ(Call("DELETE", kBlocks + "/sold").status, 403);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
