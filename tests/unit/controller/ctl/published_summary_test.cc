// Tests what `kubectl tahoma topology` says from the summary that a controller has published, and
// when it says that it cannot.

#include "controller/ctl/published_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/ctl/summary.h"
#include "controller/model/fleet_summary_object.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const WallTime kMade{seconds(1'800'000'000)};  // 2027-01-15T08:00:00Z

// An API with one object.
class OneObject final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    asked = request.target;
    ++requests;
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unimplemented("nothing is watched");
  }

  kube::Response answer{.status = 200, .headers = {}, .body = {}};
  std::string asked;
  int requests = 0;
};

ClusterState TwoDomains() {
  ClusterState cluster;
  AddUltraServer(cluster, "us-0", false);
  cluster.PutNode(NodeFactsOf({.name = "lone", .cores = false, .broken = 1}));
  return cluster;
}

TEST(PublishedSummaryTest, OneRequestSaysWhatReadingTheFleetWouldSay) {
  OneObject api;
  const ClusterState cluster = TwoDomains();
  api.answer.body = FleetSummaryObject({.summary = SummarizeFleet(cluster), .made = kMade}).dump();
  const auto read = ReadPublishedSummary(api);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PublishedSummaryText(*read, kMade + kSummaryFresh), SummarizeTopology(cluster));
  EXPECT_EQ(SummaryJson(read->summary)["all"]["chips"], 80);
  EXPECT_EQ(api.requests, 1);
  EXPECT_EQ(api.asked, "/api/v1/namespaces/kube-system/configmaps/tahoma-topology");
}

TEST(PublishedSummaryTest, AnOldOneSaysItsAge) {
  const auto text = [](std::chrono::seconds age) {
    return PublishedSummaryText({.summary = {}, .made = kMade}, kMade + age);
  };
  EXPECT_THAT(text(seconds(31)),
              HasSubstr("\nThis was so 31 s ago, at 2027-01-15T08:00:00Z; no controller has"));
  EXPECT_THAT(text(seconds(3'599)), HasSubstr(" 59 min ago"));
  EXPECT_THAT(text(seconds(86'400)), HasSubstr(" 24 h ago"));
}

TEST(PublishedSummaryTest, ItsAbsenceARefusalAndDamageAreToldApart) {
  OneObject api;
  const auto why = [&] { return std::string(Message(ReadPublishedSummary(api).status())); };
  api.answer = {.status = 404, .headers = {}, .body = R"({"message":"not found"})"};
  EXPECT_EQ(why(), "/api/v1/namespaces/kube-system/configmaps/tahoma-topology: not found");
  api.answer = {.status = 403, .headers = {}, .body = R"({"message":"eve cannot get"})"};
  EXPECT_THAT(why(), HasSubstr("eve cannot get"));
  Json object = FleetSummaryObject({.summary = SummarizeFleet(TwoDomains()), .made = kMade});
  object["data"]["summary"] = "{";
  api.answer = {.status = 200, .headers = {}, .body = object.dump()};
  EXPECT_THAT(why(), HasSubstr("data.summary: expected a JSON object"));
}

}  // namespace
}  // namespace tahoma::controller
