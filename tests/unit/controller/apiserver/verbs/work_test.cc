// Bounds the cost of a request: four times the input takes about four times the processor time,
// whatever the input is. Quadratic work would take sixteen times as much.

#include <gmock/gmock.h>

#include <ctime>
#include <functional>
#include <limits>
#include <string>

#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::HasSubstr;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";
const std::string kNode = "/api/v1/nodes/n";

// Returns the processor time of this thread: other work of the machine is not counted.
double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Names that differ late, the last first: the worst order for a sorted table.
std::string Key(int i) { return fmt::format("a-common-beginning.{:07}", 9'000'000 - i); }

class WorkTest : public testing::ApiFixture {
 protected:
  // `run` is given a size, prepares what it needs and returns what is to be measured.
  using Prepared = std::function<Answer()>;
  static double Least(const std::function<Prepared(int size)>& prepare, int size) {
    double least = std::numeric_limits<double>::max();
    for (int round = 0; round < 2; ++round) {
      const Prepared call = prepare(size);
      const double start = ProcessorSeconds();
      const Answer answer = call();
      least = std::min(least, ProcessorSeconds() - start);
      EXPECT_TRUE(answer.status / 100 == 2 || answer.status / 100 == 4)
          << answer.text.substr(0, 300);
    }
    return least;
  }
  static void ExpectNearLinear(int size, const std::function<Prepared(int size)>& prepare) {
    double ratio = 0;
    for (int attempt = 0; attempt < 3; ++attempt) {
      ratio = Least(prepare, 4 * size) / Least(prepare, size);
      if (ratio <= 8) return;
    }
    ADD_FAILURE() << "four times the input takes " << ratio << " times the processor";
  }
  void MakeMap(const Json& data) {
    Call("DELETE", kMaps + "/m");
    EXPECT_EQ(Call("POST", kMaps, {{"metadata", {{"name", "m"}}}, {"data", data}}).status, 201);
  }
};

// Work with the members of one object grows with the square of their number: it is bounded.
TEST_F(WorkTest, ObjectsThatAreTooWideAreRefused) {
  const auto members = [](int count, const char* format) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format(fmt::runtime(format), Key(i));
    return text;
  };
  const char* json = R"({{"metadata":{{"name":"m"}},"data":{{{}"z":"v"}}}})";
  const auto post_json = [&](int count) {
    return Call("POST", kMaps + "?dryRun=All",
                fmt::format(fmt::runtime(json), members(count, R"("{}":"v",)")));
  };
  EXPECT_EQ(post_json(9999).status, 201);
  const Answer wide = post_json(10'000);
  EXPECT_EQ(wide.status, 400);
  EXPECT_EQ(wide.message(), "the body is wider than 10000 members of one object");
  const auto post_list = [&](int count) {
    std::string items = "1";
    for (int i = 1; i < count; ++i) items += ",1";
    return Call("POST", kMaps, R"({"metadata":{"name":"m"},"list":[)" + items + "]}");
  };
  EXPECT_EQ(post_list(20'000).status, 201);
  EXPECT_EQ(post_list(20'001).message(), "the body is wider than 20000 items of one list");
}

TEST_F(WorkTest, TheWorkOfAMergeOfKeyedListsIsNearLinear) {
  ASSERT_EQ(Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}}).status, 201);
  ExpectNearLinear(500, [&](int size) {
    Json conditions = Json::array();
    for (int i = 0; i < size; ++i) {
      conditions.push_back({{"type", Key(i)}, {"status", "True"}, {"reason", "R"}});
    }
    const Json before = {{"status", {{"conditions", conditions}}}};
    EXPECT_EQ(Patch(kNode + "/status", "merge-patch+json", before).status, 200);
    for (Json& one : conditions) one["status"] = "False";
    std::reverse(conditions.begin(), conditions.end());
    Json order = Json::array();
    for (const Json& one : conditions) order.push_back({{"type", one.at("type")}});
    const Json patch = {
        {"status", {{"conditions", conditions}, {"$setElementOrder/conditions", order}}}};
    return [&, patch] { return Patch(kNode + "/status", "strategic-merge-patch+json", patch); };
  });
}

TEST_F(WorkTest, TheWorkOnFinalizersOfADeletedObjectIsNearLinear) {
  ExpectNearLinear(1000, [&](int size) {
    Json finalizers = Json::array();
    for (int i = 0; i < size; ++i) finalizers.push_back(fmt::format("{}.b/x", i));
    Patch(kMaps + "/f", "merge-patch+json", {{"metadata", {{"finalizers", nullptr}}}});
    Call("DELETE", kMaps + "/f");
    const Json map = {{"metadata", {{"name", "f"}, {"finalizers", finalizers}}}};
    EXPECT_EQ(Call("POST", kMaps, map).status, 201);
    EXPECT_EQ(Call("DELETE", kMaps + "/f").status, 200);
    return [&, map] { return Call("PUT", kMaps + "/f", map); };
  });
}

TEST_F(WorkTest, ManyProblemsAreToldInOneAnswerOfBoundedSize) {
  const std::string long_name(1'000'000, 'x');
  Json map = {{"metadata", {{"name", "m"}}}};
  for (int i = 0; i < 1000; ++i) map[long_name + std::to_string(i % 2)][Key(i)] = 1;
  const Answer answer = Call("POST", kMaps + "?fieldValidation=Strict", map);
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.message(), HasSubstr("unknown field \"xxxx"));
  EXPECT_LT(answer.text.size(), 200'000U);
}

// Each operation is short; together they would nest a value thousands of levels deep.
TEST_F(WorkTest, AJsonPatchNestsNoDeeperThanABody) {
  MakeMap({{"a", "v"}});
  Json patch = Json::array();
  for (int i = 0; i < 200; ++i) {
    patch.push_back({{"op", "add"}, {"path", "/wrap"}, {"value", Json::object()}});
    patch.push_back({{"op", "move"}, {"from", "/data"}, {"path", "/wrap/in"}});
    patch.push_back({{"op", "move"}, {"from", "/wrap"}, {"path", "/data"}});
  }
  EXPECT_EQ(Patch(kMaps + "/m", "json-patch+json", patch).status, 422);
  EXPECT_EQ(Call("GET", kMaps + "/m").body.at("data").at("a"), "v");
  patch.erase(patch.begin() + 30, patch.end());
  EXPECT_EQ(Patch(kMaps + "/m", "json-patch+json", patch).status, 422) << "data has texts only";
}

// Texts that are read as JSON of their own: the edges of sets of fields, and what kubectl applied.
TEST_F(WorkTest, TextsWithinABodyNestNoDeeperThanABody) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  Json map = {{"metadata", {{"name", "d"}}}, {"data", {{"a", "b"}}}};
  map["metadata"]["managedFields"] = {
      {{"manager", "m"},
       {"operation", "Update"},
       {"apiVersion", "v1"},
       {"fieldsType", "FieldsV1"},
       {"fieldsV1", {{"v:" + deep, Json::object()}, {"f:data", {{"f:a", Json::object()}}}}}}};
  EXPECT_EQ(Call("POST", kMaps, map).status, 201);
  map["metadata"].erase("managedFields");
  map["metadata"]["annotations"] = {{"kubectl.kubernetes.io/last-applied-configuration", deep}};
  EXPECT_EQ(Call("PUT", kMaps + "/d", map).status, 200);
  const Json applied = {{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", {{"name", "d"}}},
                        {"data", {{"a", "c"}}}};
  EXPECT_EQ(Patch(kMaps + "/d?fieldManager=kubectl", "apply-patch+yaml", applied).status, 409);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
