#include "dra-plugin/claims/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/rng.h"
#include "tests/unit/dra-plugin/claims/fakes.h"

namespace tahoma::dra {
namespace {

using json = Json;
using ::testing::HasSubstr;

const ClaimRef kClaim = {.name_space = "default", .name = "a", .uid = "uid-1"};

absl::StatusOr<wire::ClaimGrant> Grant(const json& object,
                                       const wire::Inventory& inventory = TestInventory()) {
  TAHOMA_ASSIGN_OR_RETURN(const DriverAllocation allocation, ReadAllocation(object.dump(), kClaim));
  return BuildGrant(kClaim, allocation, inventory);
}

std::string WhyNot(const json& object, const wire::Inventory& inventory = TestInventory()) {
  return std::string(Message(Grant(object, inventory).status()));
}

json WithConfig(std::vector<std::string> devices, std::vector<json> entries) {
  json object = ClaimObject("a", "uid-1", devices);
  object["status"]["allocation"]["devices"]["config"] = entries;
  return object;
}

json UltraServerEntry(int mode) {
  json entry = NeuronConfigEntry(2);
  entry["opaque"]["parameters"] = {{"apiVersion", "neuron.aws.com/v1"},
                                   {"kind", "UltraServerConfig"},
                                   {"ultraserverMode", mode}};
  return entry;
}

TEST(AllocationTest, ChipsAreHeldWholeWithTheDefaultLnc) {
  const auto grant = Grant(ClaimObject("a", "uid-1", {"neuron-device-3", "neuron-device-0"}));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(
      *grant,
      (wire::ClaimGrant{
          .claim_uid = "uid-1", .name_space = "default", .name = "a", .lnc = 2, .chips = {0, 3}}));
}

TEST(AllocationTest, PartitionsSayTheirLnc) {
  const auto grant =
      Grant(ClaimObject("a", "uid-1", {"neuron-core-2-lnc1-7", "neuron-core-2-lnc1-0"}));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->lnc, 1);
  EXPECT_EQ(grant->cores, (std::vector<wire::ChipCores>{{.chip = 2, .cores = {0, 7}}}));
}

TEST(AllocationTest, AllPartitionsOfAChipAreTheChip) {
  const auto grant = Grant(ClaimObject("a", "uid-1",
                                       {"neuron-core-2-lnc2-0", "neuron-core-2-lnc2-1",
                                        "neuron-core-2-lnc2-2", "neuron-core-2-lnc2-3"}));
  EXPECT_EQ(grant->chips, std::vector<int>{2});
}

TEST(AllocationTest, AWholeNodeHoldsEverythingInTheModeOfItsUltraServer) {
  const auto grant = Grant(ClaimObject("a", "uid-1", {"neuron-node"}));
  EXPECT_EQ(grant->chips.size(), 16u);
  EXPECT_EQ(grant->ultra_server_mode, 4);
}

TEST(AllocationTest, ConfigurationsOfAwsAreTaken) {
  const auto grant =
      Grant(WithConfig({"neuron-node"}, {UltraServerEntry(2), NeuronConfigEntry(1)}));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->lnc, 1);
  EXPECT_EQ(grant->ultra_server_mode, 2);
}

TEST(AllocationTest, TheClaimsConfigurationWinsOverTheClasss) {
  const json object = WithConfig(
      {"neuron-device-0"}, {NeuronConfigEntry(1, "FromClaim"), NeuronConfigEntry(2, "FromClass")});
  EXPECT_EQ(Grant(object)->lnc, 1);
}

TEST(AllocationTest, AConfigurationForAnotherRequestDoesNotApply) {
  json entry = NeuronConfigEntry(1);
  entry["requests"] = {"other"};
  EXPECT_EQ(Grant(WithConfig({"neuron-device-0"}, {entry}))->lnc, 2);
  json object = WithConfig({"neuron-device-0"}, {entry});
  object["status"]["allocation"]["devices"]["results"][0]["request"] = "other/sub";
  EXPECT_EQ(Grant(object)->lnc, 1) << "a request's configuration is its subrequests'";
}

TEST(AllocationTest, ABlockSaysWhenTheHardwareIsTakenBack) {
  const auto entry = [](const json& timestamp) {
    json config = NeuronConfigEntry(1);
    config["opaque"] = {{"driver", "tahoma.dev"},
                        {"parameters",
                         {{"apiVersion", "tahoma.dev/v1alpha1"},
                          {"kind", "CapacityBlockConfig"},
                          {"reclaimTimestamp", timestamp}}}};
    return config;
  };
  const auto read = [](const json& object) { return ReadAllocation(object.dump(), kClaim); };
  EXPECT_EQ(read(WithConfig({"neuron-device-0"}, {}))->reclaim_timestamp, std::nullopt);
  const json object = WithConfig({"neuron-device-0"}, {NeuronConfigEntry(1), entry(1764095485000)});
  EXPECT_EQ(read(object)->reclaim_timestamp, 1764095485000);
  EXPECT_EQ(Grant(object)->lnc, 1) << "what is the driver's own stays so";
  EXPECT_EQ(read(WithConfig({"neuron-device-0"}, {entry(1), entry(2)}))->reclaim_timestamp, 2);
  EXPECT_THAT(WhyNot(WithConfig({"neuron-device-0"}, {entry("soon")})),
              HasSubstr("reclaimTimestamp is \"soon\"; it must be milliseconds since 1970"));
}

TEST(AllocationTest, OtherDriversResultsAndConfigurationsAreNotOurs) {
  json object = WithConfig({"neuron-device-0"}, {});
  object["status"]["allocation"]["devices"]["results"].push_back(
      {{"request", "efa"}, {"driver", "dra.net"}, {"pool", "x"}, {"device", "pci-0"}});
  object["status"]["allocation"]["devices"]["config"] = {
      {{"source", "FromClaim"}, {"opaque", {{"driver", "dra.net"}, {"parameters", {{"a", 1}}}}}}};
  EXPECT_EQ(Grant(object)->chips, std::vector<int>{0});
}

TEST(AllocationTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-2", {"neuron-device-0"})),
            "the claim of that name has uid uid-2; expected uid-1, which was deleted");
  json object = ClaimObject("a", "uid-1", {});
  EXPECT_EQ(WhyNot(object), "the allocation has no device of driver neuron.aws.com");
  object.erase("status");
  EXPECT_EQ(WhyNot(object), "the claim is not allocated");
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"gpu-0"})),
            "\"gpu-0\" is no device of this driver; expected neuron-device-N, neuron-node or "
            "neuron-core-N-lncL-K");
  object = ClaimObject("a", "uid-1", {"neuron-device-0"});
  object["status"]["allocation"]["devices"]["results"][0]["pool"] = "node-b";
  EXPECT_EQ(WhyNot(object),
            "neuron-device-0 is in pool \"node-b\"; this node's pool is \"node-a\"");
  object = ClaimObject("a", "uid-1", {"neuron-device-0"});
  object["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = true;
  EXPECT_EQ(WhyNot(object), "request \"r\" has admin access, which this driver does not offer");
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-device-0", "neuron-core-0-lnc2-1"})),
            "the allocation names cores of neuron-core-0-lnc2-1 twice");
}

TEST(AllocationTest, MixedLncsAreRefused) {
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-core-0-lnc1-0", "neuron-core-1-lnc2-0"})),
            "the claim mixes LNC 1 and 2; use one claim for each");
  EXPECT_EQ(WhyNot(WithConfig({"neuron-core-0-lnc1-0"}, {NeuronConfigEntry(2)})),
            "neuron-core-0-lnc1-0 is a partition for LNC 1, but its NeuronConfig says 2");
}

TEST(AllocationTest, BadOpaqueConfigurationsAreRefused) {
  json entry = NeuronConfigEntry(2);
  entry["opaque"]["parameters"]["logicalNeuronCoreCount"] = 1;
  EXPECT_NE(WhyNot(WithConfig({"neuron-device-0"}, {entry})).find("logicalNeuronCoreCount"),
            std::string::npos);
  EXPECT_FALSE(Grant(WithConfig({"neuron-device-0"}, {NeuronConfigEntry(3)})).ok());
  entry["opaque"]["parameters"] = {{"apiVersion", "neuron.aws.com/v1"}, {"kind", "Nonsense"}};
  EXPECT_FALSE(Grant(WithConfig({"neuron-device-0"}, {entry})).ok());
  entry["opaque"].erase("parameters");
  EXPECT_FALSE(Grant(WithConfig({"neuron-device-0"}, {entry})).ok());
}

TEST(AllocationTest, UltraServerModesNeedAnUltraServer) {
  wire::Inventory single = TestInventory();
  single.ultra_server.reset();
  EXPECT_EQ(WhyNot(WithConfig({"neuron-device-0"}, {UltraServerEntry(2)}), single),
            "UltraServerConfig: node node-a (trn2u.48xlarge) is no member of an UltraServer");
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-node"}), single),
            "node node-a is no member of an UltraServer and has no neuron-node");
  wire::Inventory pair = TestInventory();
  pair.ultra_server->mode = 2;
  EXPECT_EQ(WhyNot(WithConfig({"neuron-device-0"}, {UltraServerEntry(4)}), pair),
            "UltraServerConfig: ultraserverMode is 4, but node-a of UltraServer us-1 works with at "
            "most 2 nodes");
}

TEST(AllocationTest, AModeWaitsForTheElection) {
  wire::Inventory electing = TestInventory();
  electing.ultra_server->mode = 1;
  electing.ultra_server->election = wire::UltraServerElection{.running = true};
  EXPECT_EQ(WhyNot(WithConfig({"neuron-device-0"}, {UltraServerEntry(2)}), electing),
            "UltraServerConfig: ultraserverMode is 2, but node node-a has not elected its "
            "UltraServer us-1 yet");
  const auto chips = Grant(WithConfig({"neuron-device-0"}, {}), electing);
  ASSERT_TRUE(chips.ok()) << "who asks for no mode need not wait: " << chips.status();
  const auto node = Grant(ClaimObject("a", "uid-1", {"neuron-node"}), electing);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->ultra_server_mode, 0) << "none is elected";
  electing.ultra_server->election =
      wire::UltraServerElection{.modes = {hw::UltraServerMode::kX2H, hw::UltraServerMode::kX1}};
  electing.ultra_server->mode = 2;
  EXPECT_EQ(Grant(ClaimObject("a", "uid-1", {"neuron-node"}), electing)->ultra_server_mode, 2);
}

TEST(AllocationTest, AChipWithoutLncTakesNoNeuronConfig) {
  wire::Inventory trn1 = TestInventory();
  trn1.instance_type = "trn1.32xlarge";
  trn1.ultra_server.reset();
  EXPECT_EQ(WhyNot(WithConfig({"neuron-device-0"}, {NeuronConfigEntry(1)}), trn1),
            "NeuronConfig: dynamic LNC not supported on trn1.32xlarge");
  const auto grant = Grant(ClaimObject("a", "uid-1", {"neuron-device-0"}), trn1);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->lnc, 1);
  EXPECT_TRUE(Grant(ClaimObject("a", "uid-1", {"neuron-core-0-lnc1-1"}), trn1).ok());
  trn1.instance_type = "trn9.48xlarge";
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-device-0"}), trn1),
            "node node-a: instance type \"trn9.48xlarge\" is unknown");
}

TEST(AllocationTest, ABrokenOrAbsentChipIsRefused) {
  wire::Inventory inventory = TestInventory();
  inventory.chips[3] = {.index = 3, .healthy = false, .reason = "dma-error"};
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-core-3-lnc2-0"}), inventory),
            "chip 3 of node node-a is unhealthy: dma-error");
  inventory.chips.resize(1);
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-device-9"}), inventory),
            "node node-a (trn2u.48xlarge) has no chip 9");
}

TEST(AllocationTest, DamagedObjectsNeverCrash) {
  Rng rng(3);
  const std::string good =
      WithConfig({"neuron-device-0", "neuron-core-1-lnc2-0"}, {NeuronConfigEntry(2)}).dump();
  constexpr std::string_view kBytes = "{}[]\",:0123456789-nulrtes";
  for (int round = 0; round < 5'000; ++round) {
    std::string text = good;
    for (std::uint64_t i = 0; i <= rng.Below(3); ++i) {
      text[rng.Below(text.size())] = kBytes[rng.Below(kBytes.size())];
    }
    const auto allocation = ReadAllocation(text, kClaim);
    if (allocation.ok()) (void)BuildGrant(kClaim, *allocation, TestInventory()).status();
  }
}

}  // namespace
}  // namespace tahoma::dra
