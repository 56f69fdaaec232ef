// The published form of a summary is read as it was written, and nothing else is taken for one.

#include "controller/model/fleet_summary_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

PublishedSummary Example() {
  ClusterState cluster;
  AddUltraServer(cluster, "us-0", false);
  cluster.PutNode(NodeFactsOf({.name = "lone", .cores = false, .broken = 3}));
  PublishedSummary published{.summary = SummarizeFleet(cluster),
                             .made = WallTime(std::chrono::seconds(1'800'000'000))};
  published.summary.rows_left_out = 7;
  return published;
}

TEST(FleetSummaryObjectTest, IsReadAsItWasWritten) {
  const PublishedSummary published = Example();
  ASSERT_FALSE(published.summary.rows.empty());
  const Json object = ParseJson(FleetSummaryObject(published).dump());
  EXPECT_EQ(object["kind"], "ConfigMap");
  EXPECT_EQ(object["metadata"]["namespace"], "kube-system");
  EXPECT_EQ(object["metadata"]["name"], "tahoma-topology");
  const auto read = ParseFleetSummaryObject(object);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->summary, published.summary);
  EXPECT_EQ(read->made, published.made);
}

TEST(FleetSummaryObjectTest, AFieldOfAnotherFormIsRefusedByName) {
  const auto why = [](const std::function<void(Json & object, Json & summary)>& change) {
    Json object = FleetSummaryObject(Example());
    Json summary = ParseJson(object["data"]["summary"].get<std::string>());
    change(object, summary);
    if (!summary.is_null()) object["data"]["summary"] = summary.dump();
    return std::string(Message(ParseFleetSummaryObject(object).status()));
  };
  EXPECT_EQ(why([](Json&, Json&) {}), "");
  EXPECT_THAT(why([](Json& object, Json& summary) { object.erase("data"), summary = nullptr; }),
              HasSubstr("data.made: "));
  EXPECT_THAT(why([](Json& object, Json&) { object["data"]["made"] = "yesterday"; }),
              HasSubstr("data.made: "));
  EXPECT_EQ(why([](Json&, Json& summary) { summary["format"] = 2; }),
            "data.summary: format 2: only 1 is known");
  EXPECT_EQ(why([](Json&, Json& summary) { summary["rows"][1]["free"] = -1; }),
            "data.summary: rows[1].free: -1 is out of range");
  EXPECT_EQ(why([](Json&, Json& summary) { summary["rows"][0]["layers"] = "nn-1"; }),
            "data.summary: rows[0].layers: is a string, must be a list");
  EXPECT_THAT(why([](Json&, Json& summary) { summary["rows"] = Json::array_t(61); }),
              HasSubstr("data.summary: rows: "));
  EXPECT_EQ(why([](Json&, Json& summary) { summary.erase("all"); }),
            "data.summary: all: is missing");
}

}  // namespace
}  // namespace tahoma::controller
