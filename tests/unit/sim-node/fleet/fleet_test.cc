// Tests a fleet against an API server: that all of it is there and stays there, whatever happens.

#include "sim-node/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "controller/ctl/fleet_builder.h"
#include "controller/model/fleet_summary.h"
#include "tests/support/patience.h"
#include "tests/unit/sim-node/fleet/fleet_fixture.h"

namespace tahoma::sim {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FleetTest : public FleetFixture {
 protected:
  void ExpectWhole(std::size_t nodes) {
    EXPECT_EQ(Items(kNodesPath).size(), nodes);
    EXPECT_EQ(Items(kLeasesPath).size(), nodes);
    EXPECT_EQ(Items(kSlicesPath).size(), nodes);
    for (const Json& node : Items(kNodesPath)) EXPECT_EQ(ReadyOf(node), "True");
  }
  // The age of the oldest lease.
  std::chrono::nanoseconds OldestLease() {
    WallTime oldest = clock_.WallNow();
    for (const Json& lease : Items(kLeasesPath)) {
      oldest = std::min(oldest, *ParseTime(lease.at("spec").at("renewTime").get<std::string>()));
    }
    return clock_.WallNow() - oldest;
  }
};

TEST_F(FleetTest, AllNodesAreThereAndTheControllerCountsTheirChips) {
  const auto fleet = NewFleet(48);
  EXPECT_EQ(fleet->RunDue(), 48U);
  EXPECT_TRUE(fleet->is_complete());
  EXPECT_EQ(fleet->counts().slices, 48U);
  ExpectWhole(48);
  EXPECT_THAT(said_,
              ElementsAre("all 48 nodes are published, with 48 ResourceSlices, after 0.0 s"));

  controller::FleetBuilder builder;
  for (const Json& node : Items(kNodesPath)) builder.AddNode(node);
  for (const Json& slice : Items(kSlicesPath)) builder.AddSlice(slice);
  const controller::FleetSummary summary = controller::SummarizeFleet(builder.cluster());
  EXPECT_EQ(summary.all.nodes, 48);
  EXPECT_EQ(summary.all.not_ready, 0);
  EXPECT_EQ(summary.all.ultra_servers, 9) << "three quarters of 48 nodes, four in each";
  EXPECT_EQ(summary.all.chips, 48 * 16);
  EXPECT_EQ(summary.all.free, 48 * 16);
}

TEST_F(FleetTest, LeasesAreRenewedInTimeAndNothingElseIsWritten) {
  const auto fleet = NewFleet(40);
  fleet->RunDue();
  RunControllers();
  const auto nodes = Versions(kNodesPath);
  const auto slices = Versions(kSlicesPath);
  api_.TakeLog();
  for (int i = 0; i < 120; ++i) {
    Pass(*fleet, seconds(1));
    RunControllers();
    EXPECT_LE(OldestLease(), seconds(11)) << i;
  }
  EXPECT_EQ(Versions(kNodesPath), nodes) << "nobody takes a node for lost";
  EXPECT_EQ(Versions(kSlicesPath), slices);
  EXPECT_NEAR(api_.writes(), 40 * 12, 40);
}

TEST_F(FleetTest, AFleetThatStartsAgainTakesOverWhatIsThere) {
  NewFleet(24)->RunDue();
  const auto nodes = Versions(kNodesPath);
  const auto slices = Versions(kSlicesPath);
  clock_.Advance(seconds(15));
  const auto again = NewFleet(24);
  again->RunDue();
  EXPECT_TRUE(again->is_complete());
  EXPECT_EQ(Versions(kNodesPath), nodes);
  EXPECT_EQ(Versions(kSlicesPath), slices) << "no new pool generation";
  EXPECT_EQ(OldestLease(), seconds(0)) << "leases are renewed at once";
  ExpectWhole(24);
}

TEST_F(FleetTest, ALargerFleetOfTheNameAddsNodesOnly) {
  NewFleet(10)->RunDue();
  const auto before = Versions(kSlicesPath);
  NewFleet(20)->RunDue();
  ExpectWhole(20);
  const auto after = Versions(kSlicesPath);
  for (const auto& [name, version] : before) EXPECT_EQ(after.at(name), version) << name;
}

TEST_F(FleetTest, WhileTheServerIsAwayOneRequestIsTriedAtATime) {
  bool away = false;
  api_.refuse = [&](const kube::Request&) { return away; };
  const auto fleet = NewFleet(30);
  fleet->RunDue();
  RunControllers();
  away = true;
  api_.TakeLog();
  Pass(*fleet, seconds(60));
  EXPECT_LE(api_.TakeLog().size(), 60U) << "one for each time that it was asked to act";
  clock_.Advance(seconds(1));
  RunControllers();
  EXPECT_EQ(ReadyOf(Items(kNodesPath)[0]), "Unknown") << "all are taken for lost";
  away = false;
  Pass(*fleet, seconds(11));
  EXPECT_LE(OldestLease(), seconds(11));
  ExpectWhole(30);
  EXPECT_THAT(said_, Contains(HasSubstr("the API server is away")));
}

TEST_F(FleetTest, AServerThatGoesAwayInTheMiddleOfPublishingLosesNothing) {
  int left = 40;
  api_.refuse = [&](const kube::Request&) { return left-- <= 0; };
  const auto fleet = NewFleet(30);
  fleet->RunDue();
  EXPECT_FALSE(fleet->is_complete());
  Pass(*fleet, seconds(20));
  EXPECT_FALSE(fleet->is_complete());
  api_.refuse = nullptr;
  Pass(*fleet, seconds(11));
  EXPECT_TRUE(fleet->is_complete());
  ExpectWhole(30);
}

TEST_F(FleetTest, ASliceThatSomebodyDeletesComesBackWithinTwoResyncs) {
  const auto fleet = NewFleet(12);
  fleet->RunDue();
  const auto before = ByName(kSlicesPath);
  const std::string victim = before.begin()->first;
  ASSERT_EQ(Call("DELETE", std::string(kSlicesPath) + "/" + victim).status, 200);
  Pass(*fleet, std::chrono::minutes(10));
  const auto after = ByName(kSlicesPath);
  ASSERT_TRUE(after.contains(victim));
  EXPECT_EQ(after.at(victim).at("spec").at("devices").size(), 16U);
  EXPECT_NE(after.at(victim).at("metadata").at("uid"), before.at(victim).at("metadata").at("uid"));
  ExpectWhole(12);
}

TEST_F(FleetTest, ANodeThatSomebodyDeletesIsBackWithTheNextRenewal) {
  const auto fleet = NewFleet(12);
  fleet->RunDue();
  RunControllers();
  ASSERT_EQ(Call("DELETE", std::string(kNodesPath) + "/fleet-00003").status, 200);
  RunControllers();
  EXPECT_EQ(Items(kLeasesPath).size(), 11U);
  Pass(*fleet, seconds(11));
  ExpectWhole(12);
}

TEST_F(FleetTest, DeletingTheNodesByLabelRemovesAFleetAndLeavesAnother) {
  FleetPlan plan = SmallPlan(8);
  NewFleet(plan)->RunDue();
  plan.name = "other";
  NewFleet(plan)->RunDue();
  RunControllers();
  const auto gone =
      Call("DELETE", std::string(kNodesPath) + "?labelSelector=tahoma.dev%2Ffleet%3Dfleet");
  ASSERT_EQ(gone.status, 200) << gone.text;
  RunControllers();
  ExpectWhole(8);
  for (const Json& node : Items(kNodesPath)) {
    EXPECT_THAT(node.at("metadata").at("name").get<std::string>(), HasSubstr("other-"));
  }
}

TEST_F(FleetTest, ANodeThatTheServerRefusesIsLoggedAndTheOtherNodesAreMade) {
  api_.edit = [](Json& object) {
    if (object["metadata"].value("name", "") == "fleet-00002") object["metadata"]["name"] = "Bad_";
  };
  const auto fleet = NewFleet(6);
  fleet->RunDue();
  EXPECT_FALSE(fleet->is_complete());
  EXPECT_EQ(Items(kNodesPath).size(), 5U);
  EXPECT_THAT(said_, Contains(HasSubstr("tried again: 1; the last: fleet-00002")));
  api_.edit = nullptr;
  Pass(*fleet, seconds(31));
  EXPECT_TRUE(fleet->is_complete());
  ExpectWhole(6);
}

// With threads and the machine's clock; InterceptedTransport lets one request in at a time.
TEST_F(FleetTest, ThreadsPublishAFleetAndEndWhenTheyAreTold) {
  const SystemClock clock;
  Fleet fleet({.plan = SmallPlan(64), .workers = 8},
              {.transport = api_, .clock = clock, .seed = 3});
  fleet.Start();
  const auto deadline = CondVar::In(testing::Patience(60));
  while (!fleet.is_complete() && CondVar::In(seconds(0)) < deadline) std::this_thread::yield();
  fleet.Stop();
  EXPECT_TRUE(fleet.is_complete());
  ExpectWhole(64);
}

TEST_F(FleetTest, ThreadsThatWaitForAServerEndOnStop) {
  api_.refuse = [](const kube::Request&) { return true; };
  const SystemClock clock;
  Fleet fleet({.plan = SmallPlan(64), .workers = 4},
              {.transport = api_, .clock = clock, .seed = 3});
  fleet.Start();
  const auto deadline = CondVar::In(testing::Patience(60));
  while (fleet.counts().failures < 8 && CondVar::In(seconds(0)) < deadline) {
    std::this_thread::yield();
  }
  fleet.Stop();
  EXPECT_EQ(fleet.counts().nodes, 0U);
  EXPECT_THAT(Items(kNodesPath), IsEmpty());
}

}  // namespace
}  // namespace tahoma::sim
