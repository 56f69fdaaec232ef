#include "dra-plugin/claims/efa_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/dra-plugin/claims/fakes.h"

namespace tahoma::dra {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A claim on a chip and these NICs of the node.
std::string ClaimOnNics(const ClaimRef& claim, const std::vector<std::string>& nics,
                        const std::string& pool = "node-a") {
  Json object = ClaimObject(claim.name, claim.uid, {"neuron-device-0"});
  for (const std::string& nic : nics) {
    object["status"]["allocation"]["devices"]["results"].push_back(
        {{"request", "efas"}, {"driver", "dra.net"}, {"pool", pool}, {"device", nic}});
  }
  return object.dump();
}

class EfaClaimsTest : public ::testing::Test {
 protected:
  EfaClaimsTest() { node_.inventory = TestInventory(); }

  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const std::vector<std::string>& nics) {
    source_.objects["default/a"] = ClaimOnNics(claim_, nics);
    return claims_.Prepare(claim_);
  }

  const ClaimRef claim_ = {.name_space = "default", .name = "a", .uid = "uid-a"};
  const std::string file_ = "dra.net-device_uid-a.json";
  CrashPlan plan_;
  MemoryFiles cdi_{plan_};
  FakeNode node_{plan_};
  FakeSource source_;
  EfaClaims claims_{"node-a", cdi_, node_, source_};
};

TEST_F(EfaClaimsTest, APreparedClaimShowsItsNicsToItsContainers) {
  const auto devices = Prepare({"pci-0000-b4-00-0", "pci-0000-c9-00-0"});
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(*devices, (std::vector<PreparedDevice>{
                          {.request = "efas", .pool = "node-a", .device = "pci-0000-b4-00-0"},
                          {.request = "efas", .pool = "node-a", .device = "pci-0000-c9-00-0"}}));
  const Json spec = ParseJson(cdi_.files.at(file_));
  EXPECT_EQ(spec["kind"], "dra.net/device");
  const Json& device = spec["devices"][1];
  EXPECT_EQ(device["name"], "uid-a-pci-0000-c9-00-0");
  EXPECT_EQ(device["containerEdits"]["env"][0], "TAHOMA_EFA_DEVICES=rdmap180s0,rdmap201s0");
  const Json& mount = device["containerEdits"]["mounts"][0];
  EXPECT_EQ(mount["containerPath"], "/dev/infiniband/uverbs0");
  EXPECT_EQ(mount["hostPath"], "/run/tahoma/pods/workload.sock");
}

TEST_F(EfaClaimsTest, PrepareAnswersAgainThoughTheNicHasGoneDown) {
  const auto first = Prepare({"pci-0000-c9-00-0"});
  node_.inventory.chips[0].efa_down = true;
  EXPECT_EQ(*Prepare({"pci-0000-c9-00-0"}), *first);
}

TEST_F(EfaClaimsTest, ANicThatIsDownIsRefused) {
  node_.inventory.chips[0].efa_down = true;
  const auto refused = Prepare({"pci-0000-c9-00-0"});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(Message(refused.status())),
              HasSubstr("NIC pci-0000-c9-00-0 of node node-a is down"));
  EXPECT_THAT(cdi_.files, IsEmpty());
}

TEST_F(EfaClaimsTest, NicsThatAreNotThisNodesAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Prepare({"pci-0000-00-00-0"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Prepare({"pci-0000-c9-00-0", "pci-0000-c9-00-0"}).status()));
  source_.objects["default/a"] = ClaimOnNics(claim_, {"pci-0000-c9-00-0"}, "node-b");
  EXPECT_TRUE(absl::IsInvalidArgument(claims_.Prepare(claim_).status()));
  EXPECT_THAT(cdi_.files, IsEmpty());
}

TEST_F(EfaClaimsTest, AClaimWithoutNicsOrReplacedByAnotherIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Prepare({}).status()));
  source_.objects["default/a"] =
      ClaimOnNics({.name_space = "default", .name = "a", .uid = "other"}, {"pci-0000-c9-00-0"});
  EXPECT_TRUE(absl::IsFailedPrecondition(claims_.Prepare(claim_).status()));
}

TEST_F(EfaClaimsTest, UnprepareRemovesTheFileAndMayBeRepeated) {
  ASSERT_TRUE(Prepare({"pci-0000-c9-00-0"}).ok());
  source_.objects.clear();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(claims_.Unprepare(claim_), absl::OkStatus());
    EXPECT_THAT(cdi_.files, IsEmpty());
  }
}

TEST_F(EfaClaimsTest, AUidThatLeavesTheFolderIsRefused) {
  const ClaimRef evil = {.name_space = "default", .name = "a", .uid = "../a"};
  EXPECT_TRUE(absl::IsInvalidArgument(claims_.Prepare(evil).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(claims_.Unprepare(evil)));
}

}  // namespace
}  // namespace tahoma::dra
