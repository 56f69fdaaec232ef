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
            "request \"r\": \"gpu-0\" is no device of this driver; expected neuron-device-N, "
            "neuron-node or "
            "neuron-core-N-lncL-K");
  object = ClaimObject("a", "uid-1", {"neuron-device-0"});
  object["status"]["allocation"]["devices"]["results"][0]["pool"] = "node-b";
  EXPECT_EQ(WhyNot(object),
            "request \"r\": neuron-device-0 is in pool \"node-b\"; this node's pool is \"node-a\"");
  object = ClaimObject("a", "uid-1", {"neuron-device-0"});
  object["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = true;
  EXPECT_EQ(WhyNot(object), "request \"r\" has admin access, which this driver does not offer");
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-device-0", "neuron-core-0-lnc2-1"})),
            "request \"r\": the allocation names cores of neuron-core-0-lnc2-1 twice");
}

TEST(AllocationTest, MixedLncsAreRefused) {
  EXPECT_EQ(
      WhyNot(ClaimObject("a", "uid-1", {"neuron-core-0-lnc1-0", "neuron-core-1-lnc2-0"})),
      "request \"r\": logicalNeuronCore is 2 here and 1 for request \"r\"; a claim has one: use "
      "a claim for each");
  EXPECT_EQ(
      WhyNot(WithConfig({"neuron-core-0-lnc1-0"}, {NeuronConfigEntry(2)})),
      "request \"r\": neuron-core-0-lnc1-0 is a partition for LNC 1, but its NeuronConfig says "
      "logicalNeuronCore 2; it must be 1, or left out");
}

json Entry(const json& parameters, std::vector<std::string> requests = {},
           const std::string& source = "FromClaim") {
  json entry = NeuronConfigEntry(2, source);
  entry["opaque"]["parameters"] = parameters;
  if (!requests.empty()) entry["requests"] = requests;
  return entry;
}

json Neuron(const json& lnc) {
  return {
      {"apiVersion", "neuron.aws.com/v1"}, {"kind", "NeuronConfig"}, {"logicalNeuronCore", lnc}};
}

// A claim of two chips, each for a request of its own.
json TwoRequests(std::vector<json> entries) {
  json object = WithConfig({"neuron-device-0", "neuron-device-1"}, std::move(entries));
  object["spec"]["devices"]["requests"] = {{{"name", "a"}}, {{"name", "b"}}};
  object["status"]["allocation"]["devices"]["results"][0]["request"] = "a";
  object["status"]["allocation"]["devices"]["results"][1]["request"] = "b";
  return object;
}

TEST(AllocationTest, ABadConfigurationIsNamedWithItsFieldAndTheRightValues) {
  const auto refusal = [](const json& entry) {
    return WhyNot(WithConfig({"neuron-device-0"}, {entry}));
  };
  json unknown = Neuron(1);
  unknown["logicalNeuronCoreCount"] = 1;
  EXPECT_EQ(
      refusal(Entry(unknown)),
      "the claim's configuration for all requests: unknown field \"logicalNeuronCoreCount\" in "
      "NeuronConfig; its only field is \"logicalNeuronCore\"");
  EXPECT_EQ(refusal(Entry(Neuron(3), {"r"})),
            "the claim's configuration for request \"r\": NeuronConfig.logicalNeuronCore is 3; it "
            "must be 1 or 2");
  EXPECT_EQ(
      refusal(Entry(Neuron("1"), {"r", "s"}, "FromClass")),
      "the class's configuration for requests \"r\", \"s\": NeuronConfig.logicalNeuronCore is "
      "\"1\"; it must be 1 or 2");
  EXPECT_EQ(refusal(Entry({{"apiVersion", "neuron.aws.com/v1"}, {"kind", "GpuConfig"}})),
            "the claim's configuration for all requests: kind is \"GpuConfig\"; it must be "
            "NeuronConfig or UltraServerConfig");
  EXPECT_EQ(
      refusal(Entry({{"apiVersion", "neuron.aws.com/v2"}, {"kind", "NeuronConfig"}})),
      "the claim's configuration for all requests: apiVersion is \"neuron.aws.com/v2\"; it must "
      "be \"neuron.aws.com/v1\"");
  EXPECT_EQ(refusal(Entry({{"apiVersion", "neuron.aws.com/v1"}, {"kind", "UltraServerConfig"}})),
            "the claim's configuration for all requests: UltraServerConfig.ultraserverMode is "
            "missing; it must be 1, 2 or 4");
  EXPECT_EQ(refusal(Entry(json::array({1}))),
            "the claim's configuration for all requests: its parameters are [1]; they must be an "
            "object");
  json none = Entry({});
  none["opaque"].erase("parameters");
  EXPECT_EQ(refusal(none),
            "the claim's configuration for all requests: apiVersion is \"\"; it must be "
            "\"neuron.aws.com/v1\"");
}

TEST(AllocationTest, AConfigurationForARequestThatIsNotThereIsRefused) {
  EXPECT_EQ(WhyNot(TwoRequests({Entry(Neuron(1), {"c"})})),
            "the claim's configuration for request \"c\": the claim has no request \"c\"; its "
            "requests are \"a\", \"b\"");
  json object = TwoRequests({Entry(Neuron(1), {"b/second"})});
  object["spec"]["devices"]["requests"][1]["firstAvailable"] = {{{"name", "first"}},
                                                                {{"name", "second"}}};
  object["status"]["allocation"]["devices"]["results"][1]["request"] = "b/first";
  EXPECT_EQ(Grant(object)->lnc, 2) << "it is for the alternative that was not taken";
}

TEST(AllocationTest, RequestsOfOneClaimMustAgree) {
  EXPECT_EQ(
      WhyNot(TwoRequests({Entry(Neuron(1), {"a"}), Entry(Neuron(2), {"b"})})),
      "request \"b\": logicalNeuronCore is 2 here and 1 for request \"a\"; a claim has one: use "
      "a claim for each");
  const auto mode = [](int nodes, const char* request) {
    return Entry({{"apiVersion", "neuron.aws.com/v1"},
                  {"kind", "UltraServerConfig"},
                  {"ultraserverMode", nodes}},
                 {request});
  };
  EXPECT_EQ(
      WhyNot(TwoRequests({mode(4, "a"), mode(2, "b")})),
      "request \"b\": ultraserverMode is 2 here and 4 for request \"a\"; a claim has one: use a "
      "claim for each");
  EXPECT_TRUE(Grant(TwoRequests({mode(4, "a")})).ok());
}

TEST(AllocationTest, ContradictingConfigurationsAreRefused) {
  EXPECT_EQ(
      WhyNot(TwoRequests({Entry(Neuron(1), {"a", "b"}), Entry(Neuron(2), {"b"})})),
      "request \"b\": the claim's configuration for request \"b\" says logicalNeuronCore 2, and "
      "another one for the same says 1; keep one of them");
  EXPECT_EQ(
      WhyNot(TwoRequests({Entry(Neuron(2)), Entry(Neuron(1))})),
      "request \"a\": the claim's configuration for all requests says logicalNeuronCore 1, and "
      "another one for the same says 2; keep one of them");
  EXPECT_EQ(Grant(TwoRequests({Entry(Neuron(1)), Entry(Neuron(1))}))->lnc, 1) << "they agree";
  EXPECT_EQ(Grant(TwoRequests({Entry(Neuron(2)), Entry(Neuron(1), {"a", "b"})}))->lnc, 1)
      << "one for some requests says more than one for all";
  EXPECT_EQ(Grant(TwoRequests({Entry(Neuron(2), {"a"}, "FromClass"), Entry(Neuron(1))}))->lnc, 1)
      << "the claim's wins over the class's";
}

TEST(AllocationTest, UltraServerModesNeedAnUltraServer) {
  wire::Inventory single = TestInventory();
  single.ultra_server.reset();
  EXPECT_EQ(WhyNot(WithConfig({"neuron-device-0"}, {UltraServerEntry(2)}), single),
            "request \"r\": UltraServerConfig: node node-a (trn2u.48xlarge) is no member of an "
            "UltraServer");
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-node"}), single),
            "request \"r\": node node-a is no member of an UltraServer and has no neuron-node");
  wire::Inventory pair = TestInventory();
  pair.ultra_server->mode = 2;
  EXPECT_EQ(
      WhyNot(WithConfig({"neuron-device-0"}, {UltraServerEntry(4)}), pair),
      "request \"r\": UltraServerConfig: ultraserverMode is 4, but node-a of UltraServer us-1 "
      "works with at most 2 nodes; it must be 1 or 2");
}

TEST(AllocationTest, AModeWaitsForTheElection) {
  wire::Inventory electing = TestInventory();
  electing.ultra_server->mode = 1;
  electing.ultra_server->election = wire::UltraServerElection{.running = true};
  EXPECT_EQ(
      WhyNot(WithConfig({"neuron-device-0"}, {UltraServerEntry(2)}), electing),
      "request \"r\": UltraServerConfig: ultraserverMode is 2, but node node-a has not elected "
      "its UltraServer us-1 yet");
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
  EXPECT_EQ(
      WhyNot(WithConfig({"neuron-device-0"}, {NeuronConfigEntry(1)}), trn1),
      "request \"r\": NeuronConfig: dynamic LNC not supported on trn1.32xlarge; leave it out");
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
            "request \"r\": chip 3 of node node-a is unhealthy: dma-error");
  inventory.chips.resize(1);
  EXPECT_EQ(WhyNot(ClaimObject("a", "uid-1", {"neuron-device-9"}), inventory),
            "request \"r\": node node-a (trn2u.48xlarge) has no chip 9");
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
