// The fleet's state when nodes, ResourceSlices and allocations appear and vanish out of order: they
// publish less than before, repeat names, take one another's place.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "controller/model/cluster.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

std::shared_ptr<const Holding> Held(const std::string& uid, const std::string& node,
                                    const std::vector<std::string>& devices) {
  Holding holding;
  holding.claim = {"default", uid};
  holding.claim_uid = uid;
  holding.holder = "pod default/" + uid;
  for (const std::string& device : devices) {
    holding.devices.push_back({.node = node, .device = device});
  }
  return std::make_shared<const Holding>(std::move(holding));
}

FleetNode MemberOf(const std::string& name, const std::string& ultra_server, int z) {
  return {
      .name = name, .type = "trn2u.48xlarge", .ultra_server = ultra_server, .z = z, .cores = false};
}

// Keeps only devices whose names begin with `prefix`.
NodeFacts Only(NodeFacts facts, const std::string& prefix) {
  std::erase_if(facts.devices, [&](const Device& d) { return !d.name.starts_with(prefix); });
  return facts;
}

const NodeState& NodeNamed(const ClusterState& state, const std::string& name) {
  return state.node(*state.FindNode(name));
}

torus::ChipMask FreeOn(const ClusterState& state, const std::string& name) {
  const NodeState& node = NodeNamed(state, name);
  if (!node.domain.valid()) return 0;
  return state.domain(node.domain).free >> (16 * node.z) & 0xffffU;
}

// ---- Nodes that publish only a part -------------------------------------------------------------

TEST(PartialPoolTest, ANodeThatPublishesOnlyCoresHasChipsThatItsCoresKeepBusy) {
  ClusterState state;
  state.PutNode(Only(NodeFactsOf({.name = "n"}), "neuron-core-"));
  EXPECT_EQ(FreeOn(state, "n"), 0xffffU);
  state.Hold(Held("c", "n", {"neuron-core-3-lnc2-1"}));
  EXPECT_EQ(NodeNamed(state, "n").busy_cores[3], 0x0c);
  EXPECT_EQ(FreeOn(state, "n"), 0xfff7U);
  state.Release("c");
  EXPECT_EQ(FreeOn(state, "n"), 0xffffU);
}

TEST(PartialPoolTest, ANodeThatPublishesOnlyItselfIsBusyOnceItIsHeld) {
  ClusterState state;
  state.PutNode(Only(NodeFactsOf(MemberOf("n", "us", 2)), "neuron-node"));
  EXPECT_EQ(FreeOn(state, "n"), 0xffffU);
  state.Hold(Held("c", "n", {"neuron-node"}));
  EXPECT_EQ(FreeOn(state, "n"), 0U);
  EXPECT_EQ(NodeNamed(state, "n").BusyChips(), 0xffffU);
}

TEST(PartialPoolTest, ABrokenWholeNodeWithoutChipsIsBroken) {
  ClusterState state;
  NodeFacts facts = Only(NodeFactsOf(MemberOf("n", "us", 0)), "neuron-node");
  facts.devices[0].taints.push_back(
      {.key = "tahoma.dev/unhealthy", .value = "hbm", .effect = TaintEffect::kNoExecute});
  state.PutNode(facts);
  EXPECT_EQ(FreeOn(state, "n"), 0U);
  EXPECT_EQ(state.Count().broken, 16U);
}

TEST(PartialPoolTest, ChipsWhoseCoresAreAllBrokenAreBroken) {
  ClusterState state;
  NodeFacts facts = Only(NodeFactsOf({.name = "n"}), "neuron-core-");
  for (Device& device : facts.devices) {
    if (device.name.starts_with("neuron-core-5-")) {
      device.taints.push_back(
          {.key = "tahoma.dev/unhealthy", .value = "hbm", .effect = TaintEffect::kNoExecute});
    }
  }
  state.PutNode(facts);
  EXPECT_EQ(FreeOn(state, "n"), 0xffdfU);
}

// A plugin with a new configuration, or a missing slice, does not free hardware in use.
TEST(PartialPoolTest, HeldChipsStayBusyWhenTheirDeviceIsNoLongerPublished) {
  ClusterState state;
  state.PutNode(NodeFactsOf(MemberOf("n", "us", 0)));
  FleetNode with_cores = MemberOf("m", "us", 1);
  with_cores.cores = true;
  state.PutNode(NodeFactsOf(with_cores));
  state.Hold(Held("whole", "n", {"neuron-node"}));
  state.Hold(Held("core", "m", {"neuron-core-3-lnc2-1"}));
  state.PutNode(Only(NodeFactsOf(MemberOf("n", "us", 0)), "neuron-device-"));
  state.PutNode(Only(NodeFactsOf(MemberOf("m", "us", 1)), "neuron-device-"));
  EXPECT_EQ(FreeOn(state, "n"), 0U);
  EXPECT_EQ(FreeOn(state, "m"), 0xfff7U);
  EXPECT_EQ(NodeNamed(state, "m").lnc[3], 2);
}

TEST(PartialPoolTest, AChipThatVanishesWhileItIsHeldIsStillHeldWhenItReturns) {
  ClusterState state;
  state.PutNode(NodeFactsOf({.name = "n", .cores = false}));
  state.Hold(Held("c", "n", {"neuron-device-7"}));
  NodeFacts without = NodeFactsOf({.name = "n", .cores = false});
  std::erase_if(without.devices, [](const Device& d) { return d.name == "neuron-device-7"; });
  state.PutNode(without);
  EXPECT_EQ(FreeOn(state, "n"), 0xff7fU);
  EXPECT_EQ(state.Count().chips, 15U);
  state.PutNode(NodeFactsOf({.name = "n", .cores = false}));
  EXPECT_EQ(FreeOn(state, "n"), 0xff7fU);
  state.Release("c");
  EXPECT_EQ(FreeOn(state, "n"), 0xffffU);
}

TEST(PartialPoolTest, AllDevicesMayGoAndComeBackWhileSomeAreHeld) {
  ClusterState state;
  AddUltraServer(state, "us", false);
  state.Hold(Held("c", "us-n2", {"neuron-device-0"}));
  NodeFacts nothing = NodeFactsOf(MemberOf("us-n2", "us", 2));
  const NodeFacts everything = nothing;
  nothing.devices.clear();
  state.PutNode(nothing);
  EXPECT_FALSE(NodeNamed(state, "us-n2").domain.valid());
  EXPECT_EQ(state.Count().chips, 48U);
  state.PutNode(everything);
  EXPECT_EQ(FreeOn(state, "us-n2"), 0xfffeU);
  EXPECT_EQ(state.Count().free, 63U);
}

// ---- Pools that contradict themselves ----------------------------------------------------------

// resource.k8s.io: a pool with two devices of one name is invalid as a whole, because an allocation
// could not say which device it means.
TEST(InvalidPoolTest, TwoDevicesOfOneNameMakeThePoolUseless) {
  ClusterState state;
  NodeFacts facts = NodeFactsOf({.name = "n", .cores = false});
  facts.devices[4].name = "neuron-device-3";
  state.PutNode(facts);
  EXPECT_EQ(state.Count().chips, 0U);
  state.PutNode(NodeFactsOf({.name = "n", .cores = false}));
  EXPECT_EQ(state.Count().free, 16U);
}

TEST(InvalidPoolTest, OfTwoDevicesThatAreTheSameChipOnlyTheFirstIsPlaced) {
  Inventory inventory;
  NodeFacts facts = NodeFactsOf({.name = "n"});
  Device twin = facts.devices[3];
  twin.name = "another-device-3";
  facts.devices.push_back(twin);
  for (const Device& device : NodeFactsOf({.name = "n"}).devices) {
    if (device.name != "neuron-core-3-lnc2-1") continue;
    facts.devices.push_back(device);
    facts.devices.back().name = "another-core";
  }
  const auto node = inventory.Intern(facts);
  const NodeTemplate& devices = *node->family->devices;
  EXPECT_EQ(node->device(devices.chips[3]).name, "neuron-device-3");
  EXPECT_EQ(node->device(devices.cores[3][1][1]).name, "neuron-core-3-lnc2-1");
  EXPECT_EQ(node->role(devices.by_name.at("another-device-3")).kind, DeviceKind::kOther);
  EXPECT_EQ(node->role(devices.by_name.at("another-core")).kind, DeviceKind::kOther);
}

TEST(InvalidPoolTest, ADeviceThatIsNotTheHardwareOfItsNameIsNotPlaced) {
  const auto role = [](const std::string& name, std::int64_t id) {
    Device device = NodeFactsOf({.name = "n"}).devices[3];
    device.name = name;
    for (Attribute& a : device.attributes) {
      if (a.name.id == "deviceId") a.value = id;
    }
    return RoleOf(device);
  };
  EXPECT_EQ(role("neuron-device-3", 3), (DeviceRole{.kind = DeviceKind::kChip, .chip = 3}));
  EXPECT_EQ(role("neurondevice3", 3), (DeviceRole{.kind = DeviceKind::kChip, .chip = 3}));
  EXPECT_EQ(role("neuron-device-3", 5).kind, DeviceKind::kOther);
  EXPECT_EQ(role("neuron-node", 3).kind, DeviceKind::kOther);
  EXPECT_EQ(role("neuron-core-3-lnc1-0", 3).kind, DeviceKind::kOther);
}

// A claim knows its devices by name.
TEST(InvalidPoolTest, AHeldChipStaysHeldWhenItsDeviceClaimsToBeAnother) {
  ClusterState state;
  const NodeFacts honest = NodeFactsOf({.name = "n", .cores = false});
  state.PutNode(honest);
  state.Hold(Held("c", "n", {"neuron-device-3"}));
  NodeFacts lie = honest;
  for (const auto& [device, id] : {std::pair{3U, 5}, std::pair{5U, 3}}) {
    for (Attribute& a : lie.devices[device].attributes) {
      if (a.name.id == "deviceId") a.value = std::int64_t{id};
    }
  }
  state.PutNode(lie);
  EXPECT_EQ(FreeOn(state, "n"), 0xffffU & ~(1U << 3) & ~(1U << 5)) << "5 is not believed";
  lie = honest;
  Device twin = lie.devices[3];
  twin.name = "another-device-3";
  lie.devices.insert(lie.devices.begin(), twin);
  state.PutNode(lie);
  EXPECT_EQ(FreeOn(state, "n"), 0xffffU & ~(1U << 3));
  state.PutNode(honest);
  EXPECT_EQ(FreeOn(state, "n"), 0xffffU & ~(1U << 3));
}

TEST(HeldDevicesTest, AreOfTheNodeThatNamesTheirPool) {
  Allocation allocation;
  allocation.node = "liar";
  allocation.results.resize(1);
  allocation.results[0].driver = "neuron.aws.com";
  allocation.results[0].pool = "n";
  allocation.results[0].device = "neuron-device-0";
  const auto held = HeldDevices(allocation);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].node, "n");
}

TEST(DeviceRoleTest, NumbersThatAreNoChipOrCoreAreNotOurs) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const auto chip = [](AttributeValue id) {
    Device device = NodeFactsOf({.name = "n"}).devices[0];
    for (Attribute& a : device.attributes) {
      if (a.name.id == "deviceId") a.value = id;
    }
    return RoleOf(device).kind;
  };
  // 65536 + 3 and 2^32 + 3 would be chip 3 in a narrower number.
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{16}, std::int64_t{65539},
                                std::int64_t{4294967299}, kMost, kLeast}) {
    EXPECT_EQ(chip(id), DeviceKind::kOther) << id;
  }
  EXPECT_EQ(chip(std::string("3")), DeviceKind::kOther);
  EXPECT_EQ(chip(true), DeviceKind::kOther);
  const auto core = [](std::int64_t number, std::int64_t lnc, std::int64_t of_chip) {
    Device device;
    device.attributes = {{{"neuron.aws.com", "resourceType"}, std::string("neuron_core")},
                         {{"tahoma.dev", "chip"}, of_chip},
                         {{"tahoma.dev", "lnc"}, lnc},
                         {{"tahoma.dev", "core"}, number}};
    return RoleOf(device);
  };
  EXPECT_EQ(core(3, 2, 15).cores, 0xc0);
  EXPECT_EQ(core(7, 1, 15).cores, 0x80);
  for (const auto& [number, lnc, of_chip] :
       std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{4, 2, 0},
                                                                         {8, 1, 0},
                                                                         {0, 0, 0},
                                                                         {0, 3, 0},
                                                                         {0, 4294967297, 0},
                                                                         {4294967296, 1, 0},
                                                                         {0, 1, 16},
                                                                         {-1, 1, 0},
                                                                         {kMost, 1, 0}}) {
    EXPECT_EQ(core(number, lnc, of_chip).kind, DeviceKind::kOther) << number << " of " << lnc;
  }
}

// ---- Places in an UltraServer ------------------------------------------------------------------

TEST(PlaceTest, AnUltraServerMayHaveTheNameOfANode) {
  for (const bool node_first : {true, false}) {
    ClusterState state;
    if (node_first) state.PutNode(NodeFactsOf({.name = "us-0", .cores = false}));
    AddUltraServer(state, "us-0", false);
    if (!node_first) state.PutNode(NodeFactsOf({.name = "us-0", .cores = false}));
    EXPECT_EQ(state.Count().nodes, 5U);
    EXPECT_EQ(state.Count().free, 80U);
    EXPECT_EQ(state.Count().ultra_servers, 1U);
    state.RemoveNode("us-0");
    EXPECT_EQ(state.Count().free, 64U);
    state.PutNode(NodeFactsOf({.name = "us-0", .cores = false}));
    for (int z = 0; z < 4; ++z) state.RemoveNode("us-0-n" + std::to_string(z));
    EXPECT_EQ(state.Count().free, 16U);
  }
}

TEST(PlaceTest, AMemberMayHaveTheNameOfItsUltraServer) {
  ClusterState state;
  state.PutNode(NodeFactsOf(MemberOf("us", "us", 1)));
  state.PutNode(NodeFactsOf(MemberOf("late", "us", 1)));
  EXPECT_EQ(state.Count().free, 32U);
  state.RemoveNode("us");
  EXPECT_EQ(state.Count().free, 16U);
  EXPECT_EQ(NodeNamed(state, "late").z, 1);
  state.PutNode(NodeFactsOf(MemberOf("us", "us", 1)));
  EXPECT_EQ(state.Count().free, 32U);
  EXPECT_EQ(state.Count().nodes, 2U);
}

TEST(PlaceTest, AMemberThatIsSeenAgainKeepsItsPlaceFromTheOneThatWaits) {
  ClusterState state;
  AddUltraServer(state, "us", false);
  state.PutNode(NodeFactsOf(MemberOf("new", "us", 1)));
  NodeFacts again = NodeFactsOf(MemberOf("us-n1", "us", 1));
  again.labels.emplace_back("seen", "again");
  state.PutNode(again);
  const DomainState& domain = state.domain(*state.FindDomain("us"));
  EXPECT_EQ(state.node(domain.nodes[1]).node->name, "us-n1");
  EXPECT_FALSE(state.domain(NodeNamed(state, "new").domain).ultra);
  EXPECT_EQ(state.Count().free, 80U);
}

TEST(PlaceTest, ANodeThatReturnsElsewhereLeavesItsOldPlaceToAnother) {
  ClusterState state;
  AddUltraServer(state, "a", false);
  AddUltraServer(state, "b", false);
  state.Hold(Held("c", "a-n1", {"neuron-device-2"}));
  state.RemoveNode("b-n3");
  state.RemoveNode("a-n1");
  state.PutNode(NodeFactsOf(MemberOf("a-n1", "b", 3)));
  EXPECT_EQ(state.domain(*state.FindDomain("a")).free, ~(std::uint64_t{0xffff} << 16));
  EXPECT_EQ(state.domain(*state.FindDomain("b")).free, ~(std::uint64_t{1} << 50))
      << "what it holds comes with it";
  state.PutNode(NodeFactsOf(MemberOf("b-n3", "a", 1)));
  EXPECT_EQ(state.domain(*state.FindDomain("a")).free, ~std::uint64_t{0});
  // Moved to a taken place without a removal: the node stands alone.
  state.PutNode(NodeFactsOf(MemberOf("a-n1", "a", 1)));
  EXPECT_EQ(state.domain(*state.FindDomain("b")).free, ~std::uint64_t{0} >> 16);
  EXPECT_EQ(state.domain(*state.FindDomain("a-n1")).free, 0xfffbU);
  // As a lone instance of another type the node is no member, and nothing waits for it.
  state.PutNode(NodeFactsOf({.name = "a-n1", .type = "trn2.3xlarge", .cores = false}));
  state.RemoveNode("b-n3");
  EXPECT_EQ(state.domain(*state.FindDomain("a")).free, ~(std::uint64_t{0xffff} << 16));
  EXPECT_TRUE(state.FindDomain("a-n1").has_value());
}

TEST(PlaceTest, OfThreeNodesForOnePlaceEachGetsItInTurn) {
  ClusterState state;
  for (const char* name : {"a", "b", "c"}) state.PutNode(NodeFactsOf(MemberOf(name, "us", 2)));
  EXPECT_EQ(state.Count().nodes, 3U);
  const auto member = [&] {
    return state.node(state.domain(*state.FindDomain("us")).nodes[2]).node->name;
  };
  EXPECT_EQ(member(), "a");
  state.RemoveNode("a");
  EXPECT_EQ(member(), "b");
  EXPECT_EQ(state.Count().free, 32U);
  state.RemoveNode("c");
  state.RemoveNode("b");
  EXPECT_FALSE(state.FindDomain("us").has_value());
  EXPECT_EQ(state.Count().nodes, 0U);
}

TEST(PlaceTest, IdsOfRemovedNodesAreGivenAgain) {
  ClusterState state;
  for (int round = 0; round < 50; ++round) {
    const std::string id = "us-" + std::to_string(round);
    AddUltraServer(state, id, false);
    for (int z = 0; z < 4; ++z) state.RemoveNode(id + "-n" + std::to_string(z));
  }
  EXPECT_EQ(state.node_count(), 4U);
  EXPECT_EQ(state.domain_count(), 1U);
}

TEST(CordonTest, ACordonedNodeKeepsWhatItHoldsAndOffersNothing) {
  ClusterState state;
  AddUltraServer(state, "us", false);
  state.Hold(Held("c", "us-n1", {"neuron-device-4"}));
  NodeFacts cordoned = NodeFactsOf(MemberOf("us-n1", "us", 1));
  cordoned.schedulable = false;
  state.PutNode(cordoned);
  EXPECT_EQ(FreeOn(state, "us-n1"), 0U);
  EXPECT_EQ(state.Count().nodes, 4U);
  EXPECT_EQ(state.Count().free, 48U);
  state.Release("c");
  cordoned.schedulable = true;
  state.PutNode(cordoned);
  EXPECT_EQ(state.Count().free, 64U);
}

}  // namespace
}  // namespace tahoma::controller
