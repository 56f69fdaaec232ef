// A request that takes too much of the processor ends alone: with 413, with nothing changed, and
// with nothing kept that another request needs. The clock of the processor is a fake: it counts how
// often it is looked at, so that a request is ended at every look that it takes.

#include "lib/base/processor_budget.h"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <string>

#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::HasSubstr;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";
const std::string kNode = "/api/v1/nodes/n";
const std::string kCrds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

class RequestBudgetTest : public testing::ApiFixture {
 protected:
  using Request = std::function<Answer()>;

  // Time jumps past the limit at the look of that number; the first one starts the budget.
  static Answer EndedAt(int look, const Request& request) {
    int looks = 0;
    const ProcessorBudget budget(std::chrono::seconds(10), [&] {
      return looks++ < look ? std::chrono::seconds(1) : std::chrono::seconds(12);
    });
    return request();
  }

  std::string All(const std::string& path) { return Call("GET", path).text; }

  // Ends the request at each of its looks; what is at `path` must stay as it is until the request
  // passes. How often it was ended.
  int EndEverywhere(const std::string& path, const Request& request) {
    const std::string before = All(path);
    for (int look = 1; look < 10'000; ++look) {
      const Answer answer = EndedAt(look, request);
      if (answer.status != 413) {
        EXPECT_EQ(answer.status / 100, 2) << answer.text.substr(0, 300);
        return look - 1;
      }
      EXPECT_EQ(answer.reason(), "RequestEntityTooLarge");
      EXPECT_EQ(answer.header("Retry-After"), "") << "clients would send it again";
      EXPECT_EQ(All(path), before) << look;
    }
    ADD_FAILURE() << "it never passes";
    return 0;
  }

  static Json Data(int keys, const std::string& value) {
    Json data = Json::object();
    for (int i = 0; i < keys; ++i) data[fmt::format("key-{}", i)] = value;
    return data;
  }
  static Json Map(const std::string& name, const std::string& value) {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}}},
            {"data", Data(2000, value)}};
  }
};

TEST_F(RequestBudgetTest, ACreateIsWholeOrNotAtAll) {
  EXPECT_GT(EndEverywhere(kMaps, [&] { return Call("POST", kMaps, Map("m", "1")); }), 2);
  EXPECT_EQ(Call("GET", kMaps + "/m").status, 200);
}

TEST_F(RequestBudgetTest, WhateverChangesAnObjectChangesItWhollyOrNotAtAll) {
  ASSERT_EQ(Call("POST", kMaps, Map("m", "1")).status, 201);
  const std::string map = kMaps + "/m";
  EXPECT_GT(EndEverywhere(map, [&] { return Call("PUT", map, Map("m", "2")); }), 2);
  const Json merge = {{"data", Data(2000, "3")}};
  EXPECT_GT(EndEverywhere(map, [&] { return Patch(map, "merge-patch+json", merge); }), 2);
  const Json operations = {{{"op", "replace"}, {"path", "/data"}, {"value", Data(2000, "4")}}};
  EXPECT_GT(EndEverywhere(map, [&] { return Patch(map, "json-patch+json", operations); }), 2);
  EXPECT_GT(EndEverywhere(map,
                          [&] {
                            return Patch(map + "?fieldManager=a&force=true", "apply-patch+yaml",
                                         Map("m", "5"));
                          }),
            4);
  EXPECT_EQ(Call("GET", map).body.at("data").at("key-7"), "5");
}

TEST_F(RequestBudgetTest, AStrategicMergeToo) {
  ASSERT_EQ(Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}}).status, 201);
  Json conditions = Json::array();
  for (int i = 0; i < 1000; ++i) {
    conditions.push_back({{"type", fmt::format("C{}", i)}, {"status", "True"}});
  }
  const Json patch = {{"status", {{"conditions", conditions}}}};
  EXPECT_GT(
      EndEverywhere(kNode,
                    [&] { return Patch(kNode + "/status", "strategic-merge-patch+json", patch); }),
      4);
  EXPECT_EQ(Call("GET", kNode).body.at("status").at("conditions").size(), 1000U);
}

TEST_F(RequestBudgetTest, ADefinitionIsServedWhollyOrNotAtAll) {
  Json properties = Json::object();
  for (int i = 0; i < 1500; ++i) {
    properties[fmt::format("p{}", i)] = {{"type", "string"}, {"pattern", "^[a-z]+$"}};
  }
  const Json crd = {
      {"metadata", {{"name", "things.example.com"}}},
      {"spec",
       {{"group", "example.com"},
        {"scope", "Cluster"},
        {"names", {{"plural", "things"}, {"kind", "Thing"}}},
        {"versions",
         {{{"name", "v1"},
           {"served", true},
           {"storage", true},
           {"schema",
            {{"openAPIV3Schema", {{"type", "object"}, {"properties", properties}}}}}}}}}}};
  const std::string things = "/apis/example.com/v1/things";
  EXPECT_GT(EndEverywhere(kCrds, [&] { return Call("POST", kCrds, crd); }), 2);
  Json thing = {{"apiVersion", "example.com/v1"}, {"kind", "Thing"}, {"metadata", {{"name", "t"}}}};
  for (int i = 0; i < 1500; ++i) thing[fmt::format("p{}", i)] = "abc";
  EXPECT_GT(EndEverywhere(things, [&] { return Call("POST", things, thing); }), 2);
}

TEST_F(RequestBudgetTest, AListIsEndedAndACollectionIsDeletedWhollyOrNotAtAll) {
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(Call("POST", kMaps, ConfigMapOf(fmt::format("m{}", i), "1")).status, 201);
  }
  std::string selector = "?labelSelector=!a";
  for (int i = 0; i < 200; ++i) selector += fmt::format(",!a{}", i);
  EXPECT_GT(EndEverywhere(kMaps, [&] { return Call("GET", kMaps + selector); }), 1);
  EXPECT_GT(EndEverywhere(kMaps, [&] { return Call("DELETE", kMaps + selector); }), 1);
  EXPECT_TRUE(Call("GET", kMaps).body.at("items").empty());
}

TEST_F(RequestBudgetTest, TheStatusSaysWhatToDo) {
  const Answer answer = EndedAt(1, [&] { return Call("POST", kMaps, Map("m", "1")); });
  EXPECT_EQ(answer.status, 413);
  EXPECT_THAT(answer.message(), HasSubstr("takes more than 10 s of the processor"));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
