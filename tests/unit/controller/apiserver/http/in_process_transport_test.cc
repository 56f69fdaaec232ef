// Many requests with one wait for the disk, and bodies that are handed over as values.

#include "controller/apiserver/http/in_process_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;
using ::testing::ElementsAre;
using testing::FaultFileSystem;
using ::testing::HasSubstr;

constexpr char kJson[] = "application/json";
constexpr char kMergePatch[] = "application/merge-patch+json";

class InProcessTransportTest : public ::testing::Test {
 protected:
  InProcessTransportTest() {
    auto store = Store::Open({.dir = dir_.path(), .file_system = disk_});
    TAHOMA_CHECK_OK(store.status());
    store_ = *std::move(store);
    auto server = ApiServer::Open(*store_, clock_, {});
    TAHOMA_CHECK_OK(server.status());
    server_ = *std::move(server);
    transport_ = std::make_unique<InProcessTransport>(*server_, clock_, "test");
  }

  static kube::Request RequestOf(const char* method, const std::string& target, const char* type,
                                 json body) {
    return {.method = method,
            .target = target,
            .headers = {{"Content-Type", type}},
            .parsed = std::make_shared<const json>(std::move(body))};
  }
  static kube::Request Make(const std::string& name) {
    return RequestOf("POST", kMaps, kJson, {{"metadata", {{"name", name}}}});
  }
  static kube::Request SetData(const std::string& name, json data) {
    return RequestOf("PATCH", kMaps + "/" + name, kMergePatch, {{"data", std::move(data)}});
  }
  static std::vector<int> StatusesOf(const std::vector<absl::StatusOr<kube::Response>>& answers) {
    std::vector<int> statuses;
    for (const auto& answer : answers) statuses.push_back(answer.ok() ? answer->status : 0);
    return statuses;
  }
  json Read(const std::string& name) {
    const auto answer = transport_->Send({.target = kMaps + "/" + name});
    return answer->status == 200 ? ParseJson(answer->body) : json();
  }

  testing::TempDir dir_;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
  SystemClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<InProcessTransport> transport_;
};

TEST_F(InProcessTransportTest, RequestsTogetherAreAnsweredInTheirOrder) {
  const auto answers = transport_->SendAll(
      {Make("a"), Make("b"), Make("a"), {.target = kMaps + "/none"}, SetData("b", {{"k", "v"}})});
  EXPECT_THAT(StatusesOf(answers), ElementsAre(201, 201, 409, 404, 200));
  EXPECT_EQ(answers[4]->Json()->at("data"), json({{"k", "v"}}));
  EXPECT_EQ(Read("b").at("data"), json({{"k", "v"}}));
  EXPECT_TRUE(transport_->SendAll({}).empty());
}

TEST_F(InProcessTransportTest, AWriteThatTheDiskRefusedIsNotAnsweredAsDone) {
  ASSERT_THAT(StatusesOf(transport_->SendAll({Make("a")})), ElementsAre(201));
  disk_->FailAfter(0, FaultFileSystem::Failure::kCrash);
  const auto answers = transport_->SendAll({SetData("a", {{"k", "v"}}), Make("b"), Make("a")});
  EXPECT_THAT(StatusesOf(answers), ElementsAre(503, 503, 409));
  EXPECT_EQ(answers[0]->Json()->at("kind"), "Status");
  EXPECT_FALSE(Read("a").contains("data"));
  EXPECT_TRUE(Read("b").is_null());
}

// Objects that were given out hold each fieldsV1 as a text; sent back, they are objects like any
// other.
TEST_F(InProcessTransportTest, AnObjectCanBeSentBackAsItCame) {
  const auto made = transport_->Send(
      RequestOf("POST", kMaps, kJson, {{"metadata", {{"name", "a"}}}, {"data", {{"old", "v"}}}}));
  ASSERT_NE(made->parsed, nullptr);
  json object = *made->parsed;
  ASSERT_TRUE(object.at("/metadata/managedFields/0/fieldsV1"_json_pointer).is_binary());
  object["data"] = {{"k", "v"}};
  const auto put = transport_->Send(RequestOf("PUT", kMaps + "/a", kJson, object));
  ASSERT_EQ(put->status, 200) << put->body;
  const json stored = Read("a");
  EXPECT_EQ(stored.at("data"), json({{"k", "v"}}));
  EXPECT_EQ(stored.at("/metadata/managedFields/0/fieldsV1/f:data"_json_pointer),
            ParseJson(R"({".": {}, "f:k": {}})"));
}

TEST_F(InProcessTransportTest, AValueMeansTheSameAsItsText) {
  for (const json& patch : {json{{"data", {{"k", 1}}}}, json{{"datum", 1}}, json(3),
                            json{{"metadata", {{"managedFields", {json::object()}}}}},
                            json{{"metadata", {{"labels", {{"a", "b"}}}}}}}) {
    ASSERT_EQ(transport_->Send(Make("a"))->status, 201);
    ASSERT_EQ(transport_->Send(Make("b"))->status, 201);
    const std::string query = "?fieldValidation=Strict";
    const auto by_value =
        transport_->Send(RequestOf("PATCH", kMaps + "/a" + query, kMergePatch, patch));
    const auto by_text = transport_->Send({.method = "PATCH",
                                           .target = kMaps + "/b" + query,
                                           .headers = {{"Content-Type", kMergePatch}},
                                           .body = patch.dump()});
    EXPECT_EQ(by_value->status, by_text->status) << patch;
    if (by_text->status / 100 == 2) {
      EXPECT_EQ(Read("a").value("data", json()), Read("b").value("data", json()));
      EXPECT_EQ(Read("a")["metadata"].value("managedFields", json()).size(),
                Read("b")["metadata"].value("managedFields", json()).size());
    } else {
      EXPECT_EQ(by_value->Json()->at("reason"), by_text->Json()->at("reason"));
      if (patch.contains("datum")) {
        EXPECT_THAT(by_value->body, HasSubstr(R"(\"datum\")"));
      }
    }
    for (const char* name : {"/a", "/b"}) {
      ASSERT_EQ(transport_->Send({.method = "DELETE", .target = kMaps + name})->status, 200);
    }
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
