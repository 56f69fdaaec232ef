// The controllers and the API server that they work on in one process, under a clock that the test
// moves.
//
//   class MyTest : public ControllersTest { … };
//   MakePod("web"); Step(); EXPECT_TRUE(Exists(kPods + "/web"));
//
// Scope: tests. Thread safety: one test, one thread.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/http/api_server.h"
#include "controller/apiserver/http/in_process_transport.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller::apiserver {

class ControllersTest : public ::testing::Test {
 protected:
  explicit ControllersTest(ObjectStore::Options objects = {})
      : clock_(*ParseTime("2026-01-01T00:00:00Z")) {
    auto store = Store::Open({.dir = dir_.path(), .single_threaded = true});
    TAHOMA_CHECK_OK(store.status());
    store_ = *std::move(store);
    auto server = ApiServer::Open(*store_, clock_, {.seed = 7, .objects = objects});
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
    api_ = std::make_unique<InProcessTransport>(*server_, clock_, "test");
    Restart();
  }

  Json Call(const char* method, const std::string& target, const Json& body = nullptr,
            const char* type = "application/json") {
    const auto answer = api_->Send({.method = method,
                                    .target = target,
                                    .headers = {{"Content-Type", type}},
                                    .body = body.is_null() ? "" : body.dump()});
    TAHOMA_CHECK_OK(answer.status());
    status_ = answer->status;
    return TryParseJson(answer->body);
  }
  Json Get(const std::string& target) { return Call("GET", target); }
  bool Exists(const std::string& target) {
    Get(target);
    return status_ == 200;
  }
  // As after a crash of the program: nothing is remembered but what is stored.
  void Restart(const ControllerOptions& options = {}) {
    controllers_ = std::make_unique<Controllers>([this] { return server_->Kinds(); },
                                                 server_->objects(), *api_, options);
  }
  int Step() { return controllers_->Step(clock_.WallNow()); }

  Json MakePod(const std::string& name, const char* claims = "[]") {
    Json pod = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", name}}},
                {"spec",
                 {{"containers", Json::array({{{"name", "c"}, {"image", "i"}}})},
                  {"resourceClaims", ParseJson(claims)}}}};
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
  // Allocates the claim and reserves it for the pod (if any is given), as our scheduler does.
  void Allocate(const std::string& claim, const Json& pod, const Json& tolerations = nullptr) {
    Json object = Get(kResource + "resourceclaims/" + claim);
    object["metadata"]["finalizers"] = {"resource.kubernetes.io/delete-protection"};
    object = Call("PUT", kResource + "resourceclaims/" + claim, object);
    object["status"] = {
        {"allocation",
         {{"devices",
           {{"results", Json::array({{{"request", "r"},
                                      {"driver", "neuron.aws.com"},
                                      {"pool", "n"},
                                      {"device", "neuron-device-0"}}})}}}}},
    };
    if (!pod.is_null()) {
      object["status"]["reservedFor"] = Json::array({{{"resource", "pods"},
                                                      {"name", pod["metadata"]["name"]},
                                                      {"uid", pod["metadata"]["uid"]}}});
    }
    if (!tolerations.is_null()) {
      object["status"]["allocation"]["devices"]["results"][0]["tolerations"] = tolerations;
    }
    const Json made = Call("PUT", kResource + "resourceclaims/" + claim + "/status", object);
    EXPECT_EQ(status_, 200) << made;
  }
  std::string ClaimOf(const std::string& pod) {
    return TextAt(Get(kPods + "/" + pod)["status"]["resourceClaimStatuses"][0],
                  {"resourceClaimName"});
  }
  // To node n.
  void Bind(const std::string& pod) {
    Call("POST", kPods + "/" + pod + "/binding",
         {{"metadata", {{"name", pod}}}, {"target", {{"kind", "Node"}, {"name", "n"}}}});
    EXPECT_EQ(status_, 201);
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
  std::unique_ptr<Controllers> controllers_;
  int status_ = 0;
};

}  // namespace tahoma::controller::apiserver
