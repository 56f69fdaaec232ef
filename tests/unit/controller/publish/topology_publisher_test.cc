// When the fleet's summary is written to the API: on a change, at times, and never by one that may
// not.

#include "controller/publish/topology_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/model/fleet_summary_object.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Keeps one object.
class OneObject final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    asked.push_back(request.method + " " + request.target);
    if (away) return Unavailable("the API server is away");
    if (request.method == "PATCH" && object.is_null()) {
      return kube::Response{.status = 404, .headers = {}, .body = R"({"reason":"NotFound"})"};
    }
    object.merge_patch(ParseJson(request.Text()));
    return kube::Response{.status = 200, .headers = {}, .body = object.dump()};
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unimplemented("nothing is watched");
  }
  std::size_t TakeCount() { return std::exchange(asked, {}).size(); }

  bool away = false;
  Json object;
  std::vector<std::string> asked;
};

class TopologyPublisherTest : public ::testing::Test {
 protected:
  TopologyPublisherTest() { AddUltraServer(cluster_, "us-0", false); }

  void Show(bool synced = true) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->synced = synced;
    snapshot->cluster = std::make_shared<const ClusterState>(cluster_);
    snapshot_ = std::move(snapshot);
  }
  // Looks after the object for that long, as the publisher's thread does. Returns the number of
  // requests.
  std::size_t TendFor(seconds time) {
    for (seconds passed{0}; passed < time; passed += kSummaryPause) {
      clock_.Advance(kSummaryPause);
      publisher_.Tend();
    }
    return api_.TakeCount();
  }

  ManualClock clock_{WallTime(seconds(1'800'000'000))};
  OneObject api_;
  ClusterState cluster_;
  std::shared_ptr<const Snapshot> snapshot_;
  bool may_send_ = true;
  std::vector<std::string> log_;
  TopologyPublisher publisher_{api_,
                               clock_,
                               {.snapshot = [this] { return snapshot_; },
                                .may_send = [this] { return may_send_; },
                                .log = [this](const std::string& line) { log_.push_back(line); }}};
};

TEST_F(TopologyPublisherTest, WhatWasPublishedIsTheSummaryOfTheFleet) {
  Show();
  publisher_.Tend();
  EXPECT_THAT(api_.asked,
              ElementsAre("PATCH /api/v1/namespaces/kube-system/configmaps/tahoma-topology",
                          "POST /api/v1/namespaces/kube-system/configmaps"));
  const auto read = ParseFleetSummaryObject(api_.object);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->summary, SummarizeFleet(cluster_));
  EXPECT_EQ(read->summary.all.free, 64);
  EXPECT_EQ(read->made, clock_.WallNow());
}

TEST_F(TopologyPublisherTest, MetadataOfOtherClientsStays) {
  api_.object = {{"metadata", {{"labels", {{"app.kubernetes.io/managed-by", "Helm"}}}}}};
  Show();
  publisher_.Tend();
  EXPECT_TRUE(ParseFleetSummaryObject(api_.object).ok());
  EXPECT_EQ(api_.object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
}

TEST_F(TopologyPublisherTest, AChangeIsWrittenAndNothingElseButNowAndThen) {
  Show();
  publisher_.Tend();
  api_.TakeCount();
  EXPECT_EQ(TendFor(kSummaryRenewal - kSummaryPause), 0U);
  Show();  // another snapshot of the same
  EXPECT_EQ(TendFor(kSummaryPause), 1U) << "renewed";
  EXPECT_EQ(TendFor(kSummaryRenewal), 1U) << "renewed again";
  cluster_.PutNode(NodeFactsOf({.name = "lone", .cores = false}));
  Show();
  EXPECT_EQ(TendFor(kSummaryPause), 1U) << "changed";
  EXPECT_EQ(ParseFleetSummaryObject(api_.object)->summary.all.nodes, 5);
}

TEST_F(TopologyPublisherTest, NothingIsWrittenBeforeTheFleetIsKnown) {
  Show(false);
  EXPECT_EQ(TendFor(seconds(60)), 0U);
  snapshot_ = std::make_shared<Snapshot>();
  EXPECT_EQ(TendFor(seconds(60)), 0U);
}

TEST_F(TopologyPublisherTest, AStandByWritesNothing) {
  Show();
  may_send_ = false;
  EXPECT_EQ(TendFor(seconds(60)), 0U);
  may_send_ = true;
  EXPECT_EQ(TendFor(kSummaryPause), 2U);
}

TEST_F(TopologyPublisherTest, ATroubleIsLoggedOnceAndTriedAgain) {
  Show();
  api_.away = true;
  EXPECT_GE(TendFor(seconds(30)), 10U);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("the API server is away")));
  api_.away = false;
  TendFor(kSummaryPause);
  EXPECT_TRUE(ParseFleetSummaryObject(api_.object).ok());
  api_.away = true;
  TendFor(kSummaryRenewal);
  EXPECT_EQ(log_.size(), 2U) << "it was well in between";
}

TEST_F(TopologyPublisherTest, ItsThreadWritesByItselfAndEnds) {
  Show();
  {
    TopologyPublisher publisher(api_, clock_, {.snapshot = [this] { return snapshot_; }});
    publisher.Start();
  }
  EXPECT_TRUE(ParseFleetSummaryObject(api_.object).ok());
}

}  // namespace
}  // namespace tahoma::controller
