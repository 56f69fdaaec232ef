// Tests the objects of a virtual node, and the repair of existing objects.

#include "sim-node/fleet/virtual_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/fleet/fleet_fixture.h"

namespace tahoma::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Known = VirtualNodes::Known;
using Look = VirtualNodes::Look;

class VirtualNodesTest : public FleetFixture {
 protected:
  VirtualNodes New(FleetPlan plan) { return VirtualNodes(std::move(plan), api_, clock_); }
  Json Node(const std::string& name) {
    return Call("GET", std::string(kNodesPath) + "/" + name).body;
  }
  // Returns the writing requests of the call.
  std::vector<std::string> Writes(const std::function<void()>& call) {
    api_.TakeLog();
    call();
    std::vector<std::string> writes;
    for (std::string& line : api_.TakeLog()) {
      if (!line.starts_with("GET") && !line.starts_with("DRY")) writes.push_back(std::move(line));
    }
    return writes;
  }
};

TEST_F(VirtualNodesTest, ANewNodeIsReadyTaintedAndOfAnUltraServerAfterThreeRequests) {
  VirtualNodes nodes(SmallPlan(8), api_, clock_);
  // The first node of a fleet finds out how the server keeps counters, too.
  ASSERT_TRUE(nodes.Ensure(4, Known::kNothing).ok());
  EXPECT_THAT(api_.TakeLog(), Contains(StartsWith("DRY RUN ")));
  const auto slices = nodes.Ensure(5, Known::kNothing);
  ASSERT_TRUE(slices.ok()) << slices.status();
  EXPECT_EQ(*slices, 1U);
  EXPECT_THAT(api_.TakeLog(),
              ::testing::ElementsAre("POST /api/v1/nodes", std::string("POST ") + kLeasesPath,
                                     std::string("POST ") + kSlicesPath));
  const Json node = Node("fleet-00005");
  EXPECT_EQ(ReadyOf(node), "True");
  const Json& labels = node.at("metadata").at("labels");
  EXPECT_EQ(labels.at("tahoma.dev/fleet"), "fleet");
  EXPECT_EQ(labels.at("tahoma.dev/virtual-node"), "true");
  EXPECT_EQ(labels.at("node.kubernetes.io/instance-type"), "trn2u.48xlarge");
  EXPECT_EQ(labels.at("topology.k8s.aws/ultraserver-id"), "us-fleet-00001");
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-node-id-4"), "1");
  EXPECT_EQ(labels.at("topology.k8s.aws/network-node-layer-3"), "nn-fleet-3-0");
  EXPECT_EQ(node.at("spec").at("taints").at(0).at("key"), "tahoma.dev/virtual-node");
  EXPECT_EQ(node.at("spec").at("taints").at(0).at("effect"), "NoSchedule");
  EXPECT_EQ(node.at("status").at("capacity").at("cpu"), "192");
  EXPECT_EQ(node.at("status").at("allocatable").at("pods"), "110");
  EXPECT_EQ(node.at("status").at("daemonEndpoints").at("kubeletEndpoint").at("Port"), 0)
      << "nobody has logs";
}

TEST_F(VirtualNodesTest, LeaseAndSlicesBelongToTheNode) {
  VirtualNodes nodes(SmallPlan(1), api_, clock_);
  ASSERT_TRUE(nodes.Ensure(0, Known::kNothing).ok());
  const Json uid = Node("fleet-00000").at("metadata").at("uid");
  for (const char* path : {kLeasesPath, kSlicesPath}) {
    const auto items = Items(path);
    ASSERT_EQ(items.size(), 1U);
    EXPECT_EQ(items[0].at("metadata").at("ownerReferences").at(0).at("uid"), uid) << path;
  }
  const Json lease = Items(kLeasesPath)[0];
  EXPECT_EQ(lease.at("metadata").at("name"), "fleet-00000");
  EXPECT_EQ(lease.at("spec").at("leaseDurationSeconds"), 40);
  EXPECT_EQ(lease.at("spec").at("renewTime"), FormatMicroTime(clock_.WallNow()));
  EXPECT_EQ(Items(kSlicesPath)[0].at("metadata").at("name"), "00-neuron.aws.com-fleet-00000-0");
}

TEST_F(VirtualNodesTest, ObjectsWithoutDifferencesAreNotWritten) {
  FleetPlan plan = SmallPlan(1);
  plan.publish = {};
  VirtualNodes nodes(plan, api_, clock_);
  ASSERT_EQ(*nodes.Ensure(0, Known::kNothing), 5U);
  EXPECT_THAT(Writes([&] { ASSERT_TRUE(nodes.Ensure(0, Known::kMade).ok()); }), IsEmpty());
  // A new process tries to make the node, and renews the lease.
  VirtualNodes again(plan, api_, clock_);
  const auto slices = Versions(kSlicesPath);
  const auto made = Versions(kNodesPath);
  ASSERT_EQ(*again.Ensure(0, Known::kNothing), 5U);
  EXPECT_EQ(Versions(kSlicesPath), slices);
  EXPECT_EQ(Versions(kNodesPath), made);
}

TEST_F(VirtualNodesTest, LabelsTaintAndReadinessAreRepairedAndForeignLabelsAndTaintsStay) {
  VirtualNodes nodes(SmallPlan(8), api_, clock_);
  ASSERT_TRUE(nodes.Ensure(4, Known::kNothing).ok());
  const std::string path = std::string(kNodesPath) + "/fleet-00004";
  const Json mine = {{"key", "mine"}, {"effect", "NoExecute"}};
  const Json labels = {{"mine", "yes"},
                       {"tahoma.dev/fleet", "another"},
                       {"topology.k8s.aws/ultraserver-id", nullptr}};
  ASSERT_EQ(Patch(path, "merge-patch+json",
                  {{"metadata", {{"labels", labels}}}, {"spec", {{"taints", {mine}}}}})
                .status,
            200);
  const Json unknown = {{"type", "Ready"}, {"status", "Unknown"}};
  ASSERT_EQ(Patch(path + "/status", "strategic-merge-patch+json",
                  {{"status", {{"conditions", {unknown}}}}})
                .status,
            200);
  ASSERT_TRUE(nodes.Ensure(4, Known::kMade).ok());
  const Json node = Node("fleet-00004");
  EXPECT_EQ(ReadyOf(node), "True");
  EXPECT_EQ(node.at("metadata").at("labels").at("mine"), "yes");
  EXPECT_EQ(node.at("metadata").at("labels").at("tahoma.dev/fleet"), "fleet");
  EXPECT_EQ(node.at("metadata").at("labels").at("topology.k8s.aws/ultraserver-id"),
            "us-fleet-00001");
  ASSERT_EQ(node.at("spec").at("taints").size(), 2U);
  EXPECT_EQ(node.at("spec").at("taints").at(0).at("key"), "mine");
  EXPECT_THAT(Writes([&] { ASSERT_TRUE(nodes.Ensure(4, Known::kMade).ok()); }), IsEmpty());
}

TEST_F(VirtualNodesTest, AServersOwnFormOfAQuantityIsNoDifference) {
  VirtualNodes nodes(SmallPlan(1), api_, clock_);
  ASSERT_TRUE(nodes.Ensure(0, Known::kNothing).ok());
  const std::string path = std::string(kNodesPath) + "/fleet-00000/status";
  const Json canonical = {{"memory", "2Ti"}, {"cpu", "192000m"}};
  ASSERT_EQ(Patch(path, "merge-patch+json",
                  {{"status", {{"capacity", canonical}, {"allocatable", canonical}}}})
                .status,
            200);
  EXPECT_THAT(Writes([&] { ASSERT_TRUE(nodes.Ensure(0, Known::kMade).ok()); }), IsEmpty());
  const Json less = {{"memory", "1Ti"}};
  ASSERT_EQ(Patch(path, "merge-patch+json", {{"status", {{"capacity", less}}}}).status, 200);
  ASSERT_TRUE(nodes.Ensure(0, Known::kMade).ok());
  EXPECT_NE(Node("fleet-00000").at("status").at("capacity").at("memory"), "1Ti");
}

TEST_F(VirtualNodesTest, ARealNodeOfThatNameIsLeftAlone) {
  const Json real = {{"metadata", {{"name", "fleet-00000"}}}};
  ASSERT_EQ(Call("POST", kNodesPath, real).status, 201);
  const auto before = Versions(kNodesPath);
  VirtualNodes nodes(SmallPlan(1), api_, clock_);
  const absl::Status ensured = nodes.Ensure(0, Known::kNothing).status();
  EXPECT_THAT(Message(ensured), StartsWith("fleet-00000: there is a node of that name without the "
                                           "label tahoma.dev/virtual-node=true"));
  EXPECT_EQ(kube::OutcomeOf(ensured), kube::Outcome::kRefused);
  EXPECT_EQ(Versions(kNodesPath), before);
  EXPECT_THAT(Items(kSlicesPath), IsEmpty());
}

TEST_F(VirtualNodesTest, ATaintThatIsNoLongerWantedGoes) {
  FleetPlan plan = SmallPlan(1);
  ASSERT_TRUE(New(plan).Ensure(0, Known::kNothing).ok());
  plan.taint = kube::TaintEffect::kNoExecute;
  ASSERT_TRUE(New(plan).Ensure(0, Known::kNothing).ok());
  EXPECT_EQ(Node("fleet-00000").at("spec").at("taints").size(), 1U);
  EXPECT_EQ(Node("fleet-00000").at("spec").at("taints").at(0).at("effect"), "NoExecute");
  plan.taint = std::nullopt;
  VirtualNodes nodes(plan, api_, clock_);
  ASSERT_TRUE(nodes.Ensure(0, Known::kNothing).ok());
  const Json node = Node("fleet-00000");
  EXPECT_TRUE(node.at("spec").value("taints", Json::array()).empty());
  EXPECT_THAT(Writes([&] { ASSERT_TRUE(nodes.Ensure(0, Known::kMade).ok()); }), IsEmpty());
}

TEST_F(VirtualNodesTest, AnotherChoiceOfDevicesReplacesThePool) {
  FleetPlan plan = SmallPlan(1);
  plan.publish = {};
  ASSERT_EQ(*New(plan).Ensure(0, Known::kNothing), 5U);
  plan.publish = SmallPlan(1).publish;
  ASSERT_EQ(*New(plan).Ensure(0, Known::kNothing), 1U);
  const auto slices = Items(kSlicesPath);
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].at("spec").at("pool").at("generation"), 2);
  EXPECT_EQ(slices[0].at("spec").at("devices").size(), 16U);
}

TEST_F(VirtualNodesTest, ANodeThatIsDeletedComesBackWithItsLeaseAndSlices) {
  VirtualNodes nodes(SmallPlan(1), api_, clock_);
  ASSERT_TRUE(nodes.Ensure(0, Known::kNothing).ok());
  RunControllers();
  const Json uid = Node("fleet-00000").at("metadata").at("uid");
  ASSERT_EQ(Call("DELETE", std::string(kNodesPath) + "/fleet-00000").status, 200);
  RunControllers();
  EXPECT_THAT(Items(kLeasesPath), IsEmpty()) << "garbage collection";
  EXPECT_THAT(Items(kSlicesPath), IsEmpty());
  ASSERT_TRUE(nodes.RenewLease(0, Look::kLeaseOnly).ok()) << "which is not there";
  EXPECT_NE(Node("fleet-00000").at("metadata").at("uid"), uid);
  EXPECT_EQ(Items(kLeasesPath).size(), 1U);
  EXPECT_EQ(Items(kSlicesPath).size(), 1U);
}

// Garbage collection may come late: a node made anew meets the slices of the former node.
TEST_F(VirtualNodesTest, SlicesOfTheNodeBeforeAreTakenOverByTheNewOne) {
  VirtualNodes nodes(SmallPlan(1), api_, clock_);
  ASSERT_TRUE(nodes.Ensure(0, Known::kNothing).ok());
  ASSERT_EQ(Call("DELETE", std::string(kNodesPath) + "/fleet-00000").status, 200);
  ASSERT_TRUE(nodes.Ensure(0, Known::kMade).ok());
  const Json uid = Node("fleet-00000").at("metadata").at("uid");
  ASSERT_EQ(Items(kSlicesPath).size(), 1U);
  EXPECT_EQ(Items(kSlicesPath)[0].at("metadata").at("ownerReferences").at(0).at("uid"), uid);
  RunControllers();
  EXPECT_EQ(Items(kSlicesPath).size(), 1U);
}

TEST_F(VirtualNodesTest, AfterALongSilenceTheNodeIsSaidToBeReadyAgain) {
  VirtualNodes nodes(SmallPlan(1), api_, clock_);
  ASSERT_TRUE(nodes.Ensure(0, Known::kNothing).ok());
  RunControllers();
  clock_.Advance(std::chrono::seconds(41));
  RunControllers();
  ASSERT_EQ(ReadyOf(Node("fleet-00000")), "Unknown") << "the lease was not renewed";
  ASSERT_TRUE(nodes.RenewLease(0, Look::kLeaseOnly).ok());
  EXPECT_EQ(ReadyOf(Node("fleet-00000")), "Unknown") << "a lease alone does not take that back";
  ASSERT_TRUE(nodes.RenewLease(0, Look::kNodeToo).ok());
  EXPECT_EQ(ReadyOf(Node("fleet-00000")), "True");
}

TEST_F(VirtualNodesTest, AnAnnotationBreaksAChipAndItsRemovalRepairsIt) {
  VirtualNodes nodes(SmallPlan(1), api_, clock_);
  ASSERT_TRUE(nodes.Ensure(0, Known::kNothing).ok());
  const std::string path = std::string(kNodesPath) + "/fleet-00000";
  const auto annotate = [&](const Json& value) {
    const Json annotations = {{"tahoma.dev/broken-chips", value}};
    const Json patch = {{"metadata", {{"annotations", annotations}}}};
    ASSERT_EQ(Patch(path, "merge-patch+json", patch).status, 200);
  };
  const auto taints = [&](std::size_t chip) {
    return Items(kSlicesPath).at(0).at("spec").at("devices").at(chip).at("taints");
  };
  annotate("3=hbm-uncorrectable");
  ASSERT_TRUE(nodes.Ensure(0, Known::kMade).ok());
  ASSERT_EQ(taints(3).size(), 2U);
  EXPECT_EQ(taints(3).at(1).at("key"), "tahoma.dev/unhealthy");
  EXPECT_EQ(taints(3).at(1).at("value"), "hbm-uncorrectable");
  EXPECT_EQ(taints(4).size(), 1U);
  // As for a new process; a mistake in the annotation changes nothing.
  VirtualNodes again(SmallPlan(1), api_, clock_);
  EXPECT_THAT(Writes([&] { ASSERT_TRUE(again.Ensure(0, Known::kNothing).ok()); }),
              ::testing::Not(Contains(HasSubstr("resourceslices"))));
  annotate("16=dead");
  EXPECT_THAT(
      Message(nodes.Ensure(0, Known::kMade).status()),
      StartsWith("fleet-00000: annotation tahoma.dev/broken-chips: \"16=dead\" is no chip"));
  EXPECT_EQ(taints(3).size(), 2U);
  annotate(nullptr);
  ASSERT_TRUE(nodes.Ensure(0, Known::kMade).ok());
  EXPECT_EQ(taints(3).size(), 1U);
}

TEST_F(VirtualNodesTest, RefusalsAreSaidWithTheNodesName) {
  VirtualNodes nodes(SmallPlan(1), api_, clock_);
  api_.refuse = [](const kube::Request&) { return true; };
  const absl::Status ensured = nodes.Ensure(0, Known::kNothing).status();
  EXPECT_THAT(Message(ensured), StartsWith("fleet-00000: the API server is away"));
  EXPECT_EQ(kube::OutcomeOf(ensured), kube::Outcome::kRetryLater);
  EXPECT_THAT(Message(nodes.RenewLease(0, Look::kLeaseOnly)),
              StartsWith("fleet-00000: its lease: the API server is away"));
}

TEST_F(VirtualNodesTest, TheFirstNodeBeyondASmallerFleetIsFound) {
  ASSERT_TRUE(New(SmallPlan(3)).Ensure(2, Known::kNothing).ok());
  EXPECT_EQ(New(SmallPlan(2)).FirstBeyond(), "fleet-00002");
  EXPECT_EQ(New(SmallPlan(3)).FirstBeyond(), "");
}

// After a kill at any request, the next publisher completes the node and makes nothing twice.
TEST_F(VirtualNodesTest, WhereverAPublisherStopsTheNextCompletesTheNode) {
  Rng rng(3);
  FleetPlan plan = SmallPlan(20);
  for (std::uint32_t i = 0; i < plan.nodes; ++i) {
    plan.publish = {.chips = true, .lnc1 = rng.Chance(1, 2), .lnc2 = rng.Chance(1, 2)};
    if (rng.Chance(1, 2)) {
      ASSERT_TRUE(New(plan).Ensure(i, Known::kNothing).ok());
    }
    plan.publish = {.chips = true, .lnc1 = rng.Chance(1, 2), .lnc2 = rng.Chance(1, 2)};
    int left = static_cast<int>(rng.Below(9));
    api_.refuse = [&](const kube::Request& request) {
      return request.method != "GET" && left-- <= 0;
    };
    (void)New(plan).Ensure(i, Known::kNothing);
    api_.refuse = nullptr;
    VirtualNodes last(plan, api_, clock_);
    const auto slices = last.Ensure(i, Known::kNothing);
    ASSERT_TRUE(slices.ok()) << slices.status();
    std::size_t found = 0;
    std::set<std::int64_t> generations;
    for (const Json& slice : Items(kSlicesPath)) {
      if (slice.at("spec").at("nodeName") != NodeAt(plan, i).name) continue;
      ++found;
      generations.insert(slice.at("spec").at("pool").at("generation").get<std::int64_t>());
      EXPECT_EQ(slice.at("spec").at("pool").at("resourceSliceCount"), *slices);
    }
    EXPECT_EQ(found, *slices);
    EXPECT_EQ(generations.size(), 1U);
    EXPECT_THAT(Writes([&] { ASSERT_TRUE(last.Ensure(i, Known::kMade).ok()); }), IsEmpty());
  }
  EXPECT_EQ(Items(kNodesPath).size(), 20U);
  EXPECT_EQ(Items(kLeasesPath).size(), 20U);
}

TEST_F(VirtualNodesTest, AServerThatDropsFieldsIsNotWrittenForever) {
  api_.edit = [](Json& object) {
    if (!object["spec"].contains("devices")) return;
    for (Json& device : object["spec"]["devices"]) device.erase("taints");
  };
  VirtualNodes nodes(SmallPlan(2), api_, clock_);
  for (const std::uint32_t i : {0U, 1U}) ASSERT_TRUE(nodes.Ensure(i, Known::kNothing).ok());
  for (const std::uint32_t i : {0U, 1U}) {
    EXPECT_THAT(Writes([&] { ASSERT_TRUE(nodes.Ensure(i, Known::kMade).ok()); }), IsEmpty());
  }
}

}  // namespace
}  // namespace tahoma::sim
