#include "controller/model/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

std::shared_ptr<const Holding> Held(const std::string& uid, const std::string& node,
                                    std::vector<std::string> devices) {
  Holding holding;
  holding.claim_uid = uid;
  holding.holder = "pod default/" + uid;
  for (std::string& device : devices) {
    Holding::HeldDevice held;
    held.node = node;
    held.device = std::move(device);
    holding.devices.push_back(std::move(held));
  }
  return std::make_shared<const Holding>(std::move(holding));
}

TEST(ClusterStateTest, FourNodesFormAnUltraServerWhateverTheirOrder) {
  ClusterState state;
  for (const int z : {2, 0, 3, 1}) {
    state.PutNode(NodeFactsOf({.name = "n" + std::to_string(z),
                               .type = "trn2u.48xlarge",
                               .ultra_server = "us-0",
                               .z = z}));
  }
  ASSERT_EQ(state.domain_count(), 1U);
  const DomainState& domain = state.domain(*state.FindDomain("us-0"));
  EXPECT_EQ(domain.free, ~std::uint64_t{0});
  EXPECT_EQ(state.node(domain.nodes[2]).node->name, "n2");
  EXPECT_EQ(state.Count().chips, 64U);
}

TEST(ClusterStateTest, HoldingsCountFromBeforeTheirNodeIsKnownUntilReleased) {
  ClusterState state;
  state.Hold(Held("c", "n", {"neuron-device-3", "neuron-core-5-lnc2-1"}));
  state.PutNode(NodeFactsOf({.name = "n"}));
  const NodeState& node = state.node(*state.FindNode("n"));
  EXPECT_EQ(state.domain(node.domain).free, 0xffffU & ~0x28U);
  EXPECT_EQ(node.busy_cores[5], 0x0c);
  EXPECT_EQ(node.lnc[5], 2);
  state.RemoveNode("n");
  EXPECT_TRUE(state.FindNode("n").has_value());
  state.PutNode(NodeFactsOf({.name = "n"}));
  EXPECT_EQ(state.domain(state.node(*state.FindNode("n")).domain).free, 0xffffU & ~0x28U);
  state.Release("c");
  EXPECT_EQ(state.domain(state.node(*state.FindNode("n")).domain).free, 0xffffU);
  state.RemoveNode("n");
  EXPECT_FALSE(state.FindNode("n").has_value());
  EXPECT_EQ(state.holding_count(), 0U);
}

TEST(ClusterStateTest, ACoreIsItsPartOfAChip) {
  ClusterState state;
  state.PutNode(NodeFactsOf({.name = "n"}));
  const Node& node = *state.node(*state.FindNode("n")).node;
  EXPECT_EQ(EighthsOf(*Held("c", "n", {"neuron-device-3", "neuron-core-5-lnc2-1"}), node), 8 + 2);
  EXPECT_EQ(EighthsOf(*Held("c", "n", {"neuron-node"}), node), 16 * 8);
  EXPECT_EQ(EighthsOf(*Held("c", "other", {"neuron-node"}), node), 0);
  Holding admin = *Held("c", "n", {"neuron-device-3"});
  admin.devices[0].admin_access = true;
  EXPECT_EQ(EighthsOf(admin, node), 0);
}

TEST(ClusterStateTest, ASnapshotDoesNotChange) {
  ClusterState state;
  AddUltraServer(state, "us-0");
  const auto view = std::make_shared<const ClusterState>(state);
  state.Hold(Held("c", "us-0-n1", {"neuron-node"}));
  EXPECT_EQ(view->domain(DomainId(0)).free, ~std::uint64_t{0});
  EXPECT_EQ(state.domain(DomainId(0)).free, ~(std::uint64_t{0xffff} << 16));
  EXPECT_EQ(view->FindHolding("c"), nullptr);
  int changed = 0;
  ClusterState::ForEachChangedDomain(*view, state, [&](DomainId) { ++changed; });
  EXPECT_EQ(changed, 1);
  ClusterState::ForEachChangedDomain(*view, *view, [&](DomainId) { FAIL(); });
}

TEST(ClusterStateTest, BrokenChipsAndCordonedNodesAreNotPresent) {
  ClusterState state;
  state.PutNode(NodeFactsOf({.name = "n", .broken = 0x0011}));
  EXPECT_EQ(state.domain(DomainId(0)).present, 0xffeeU);
  EXPECT_EQ(state.domain(DomainId(0)).broken, 0x0011U);
  NodeFacts cordoned = NodeFactsOf({.name = "n"});
  cordoned.schedulable = false;
  state.PutNode(cordoned);
  EXPECT_EQ(state.domain(DomainId(0)).present, 0U);
}

TEST(ClusterStateTest, ALinkIsTheSameFromBothEnds) {
  const auto down = [](int z, int chip, const std::string& link) {
    ClusterState state;
    FleetNode node{.name = "n", .type = "trn2u.48xlarge", .ultra_server = "us", .z = z};
    node.links_down.resize(16);
    node.links_down[static_cast<std::size_t>(chip)] = link;
    state.PutNode(NodeFactsOf(node));
    return state.domain(DomainId(0)).down;
  };
  EXPECT_EQ(down(0, 0, "z-"), down(3, 0, "z+"));
  EXPECT_EQ(down(1, 0, "x-"), down(1, 3, "x+"));
  EXPECT_EQ(down(2, 1, "y-"), down(2, 13, "y+"));
  EXPECT_EQ(down(2, 1, "x+,y-").count(), 2);
}

TEST(ClusterStateTest, AReplacementWaitsForThePlaceOfTheOldNode) {
  ClusterState state;
  AddUltraServer(state, "us-0");
  state.PutNode(
      NodeFactsOf({.name = "new", .type = "trn2u.48xlarge", .ultra_server = "us-0", .z = 1}));
  EXPECT_TRUE(state.FindDomain("new").has_value());
  state.RemoveNode("us-0-n1");
  EXPECT_FALSE(state.FindDomain("new").has_value());
  EXPECT_EQ(state.domain(*state.FindDomain("us-0")).free, ~std::uint64_t{0});
  EXPECT_EQ(state.node(state.domain(*state.FindDomain("us-0")).nodes[1]).node->name, "new");
}

TEST(InventoryTest, NodesOfAKindShareTheirDevicesAndKeepTheirOwnAttributes) {
  Inventory inventory;
  std::vector<std::shared_ptr<const Node>> nodes;
  for (int i = 0; i < 100; ++i) {
    nodes.push_back(inventory.Intern(NodeFactsOf({.name = "n" + std::to_string(i)})));
  }
  EXPECT_EQ(inventory.node_templates(), 1U);
  EXPECT_EQ(inventory.families(), 1U);
  EXPECT_EQ(inventory.device_templates(), 16U + 16U * 12U);
  const std::uint16_t chip = nodes[7]->family->devices->chips[3];
  EXPECT_EQ(std::get<std::string>(*nodes[7]->Lookup(chip, "neuron.aws.com", "networkNodeLayer1")),
            "nn-networkNodeLayer1-n7");
  EXPECT_EQ(std::get<std::int64_t>(*nodes[7]->Lookup(chip, "neuron.aws.com", "deviceId")), 3);
  EXPECT_EQ(nodes[7]->Lookup(chip, "neuron.aws.com", "nothing"), nullptr);
  EXPECT_EQ(nodes[7]->Attributes(chip).size(),
            NodeFactsOf({.name = "n7"}).devices[3].attributes.size());
  nodes.clear();
  EXPECT_EQ(inventory.families(), 0U);
}

TEST(InventoryTest, NodesShareTheirDevicesWhateverEachOfThemPublishesOfItsOwn) {
  Inventory inventory;
  std::vector<std::shared_ptr<const Node>> nodes;
  std::vector<NodeFacts> published;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "n" + std::to_string(i);
    NodeFacts facts = NodeFactsOf({.name = name});
    for (std::size_t d = 0; d < facts.devices.size(); ++d) {
      std::vector<Attribute>& attributes = facts.devices[d].attributes;
      attributes.push_back({{"example.com", "serial"}, name + "/" + facts.devices[d].name});
      attributes.push_back({{"example.com", "rack"}, std::int64_t{i / 3}});
      // Some devices only, in groups of the node's own.
      if (d % 2 == 0) {
        attributes.push_back({{"example.com", "group"}, name + std::to_string(d % 8)});
      }
    }
    published.push_back(facts);
    nodes.push_back(inventory.Intern(std::move(facts)));
  }
  // Those that came before each attribute had that many values keep a family of their own.
  EXPECT_LE(inventory.families(), 4 * kSharedValuesMax);
  EXPECT_EQ(nodes[100]->family, nodes[299]->family);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t d = 0; d < published[i].devices.size(); ++d) {
      const Device& device = published[i].devices[d];
      const auto index = static_cast<std::uint16_t>(d);
      EXPECT_EQ(nodes[i]->Attributes(index).size(), device.attributes.size());
      for (const Attribute& attribute : device.attributes) {
        const AttributeValue* value =
            nodes[i]->Lookup(index, attribute.name.domain, attribute.name.id);
        ASSERT_NE(value, nullptr) << attribute.name.id;
        EXPECT_EQ(*value, attribute.value) << device.name << " " << attribute.name.id;
      }
    }
  }
}

TEST(InventoryTest, ANodeThatPublishesAnotherValueEachTimeMakesNothingItsOwn) {
  Inventory inventory;
  const auto intern = [&](const std::string& version) {
    return inventory.Intern(NodeFactsOf({.name = "n", .driver_version = version}));
  };
  std::shared_ptr<const Node> node;
  for (int i = 0; i < 100; ++i) node = intern(std::to_string(i));
  EXPECT_EQ(node->family, intern("99")->family);
  EXPECT_NE(node->family, intern("other")->family);
}

// The devices of an UltraServer's node: unhealthy, with a link down, or of another driver.
NodeFacts AnyFacts(std::uint64_t number) {
  const std::string id = "us-" + std::to_string(number / 4);
  FleetNode node{.name = "n" + std::to_string(number),
                 .type = "trn2u.48xlarge",
                 .ultra_server = id,
                 .z = static_cast<int>(number % 4),
                 .cores = number % 5 == 0};
  if (number % 7 == 0) node.broken = 1;
  if (number % 11 == 0) node.links_down = {"x+"};
  if (number % 13 == 0) node.driver_version = "2.27.0.0";
  NodeFacts facts = NodeFactsOf(node);
  if (number % 3 == 0) {
    for (Device& device : facts.devices) {
      device.attributes.push_back({{"example.com", "serial"}, device.name + node.name});
    }
  }
  return facts;
}

using AttributesByDevice = std::map<std::string, std::map<QualifiedName, AttributeValue>>;

AttributesByDevice AttributesOf(const std::vector<Device>& devices) {
  AttributesByDevice all;
  for (const Device& device : devices) {
    for (const Attribute& one : device.attributes) all[device.name][one.name] = one.value;
  }
  return all;
}

TEST(InventoryTest, APackedListGivesItsDevicesBack) {
  Inventory inventory;
  std::vector<PackedDevices> kept;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const NodeFacts facts = AnyFacts(i % 150);  // some come again
    const auto packed = inventory.Pack(facts.devices);
    ASSERT_TRUE(packed);
    kept.push_back(*packed);
  }
  for (std::uint64_t i = 0; i < 200; ++i) {
    const NodeFacts facts = AnyFacts(i % 150);
    std::vector<Device> devices;
    kept[i].AppendTo(devices);
    ASSERT_EQ(devices.size(), facts.devices.size());
    EXPECT_EQ(AttributesOf(devices), AttributesOf(facts.devices));
    for (std::size_t d = 0; d < devices.size(); ++d) {
      EXPECT_EQ(devices[d].name, facts.devices[d].name);
      EXPECT_EQ(devices[d].taints, facts.devices[d].taints);
    }
  }
}

TEST(InventoryTest, AListThatCouldNotBeGivenBackIsNotPacked) {
  Inventory inventory;
  std::vector<Device> devices = NodeFactsOf({.name = "n"}).devices;
  EXPECT_TRUE(inventory.Pack(devices));
  devices[3].attributes.push_back(devices[3].attributes[0]);
  EXPECT_FALSE(inventory.Pack(devices));
  devices[3].attributes.pop_back();
  devices.push_back(devices[0]);
  EXPECT_FALSE(inventory.Pack(devices));
  EXPECT_FALSE(inventory.Pack(std::vector<Device>(5000)));
  EXPECT_TRUE(inventory.Pack({}));
}

// Another inventory that never knows a list again is the slow oracle.
TEST(InventoryTest, AListLikeOneBeforeIsInternedAsAnyList) {
  Inventory inventory;
  Inventory oracle;
  std::vector<std::shared_ptr<const Node>> nodes;
  std::vector<std::shared_ptr<const Node>> slow;
  for (std::uint64_t i = 0; i < 150; ++i) {
    nodes.push_back(inventory.Intern(AnyFacts(i)));
    // Attributes in another order make another list of the same devices.
    NodeFacts facts = AnyFacts(i);
    for (Device& device : facts.devices) {
      const std::size_t by = i % device.attributes.size();
      std::rotate(device.attributes.begin(),
                  device.attributes.begin() + static_cast<std::ptrdiff_t>(by),
                  device.attributes.end());
    }
    slow.push_back(oracle.Intern(std::move(facts)));
  }
  EXPECT_EQ(inventory.families(), oracle.families());
  EXPECT_EQ(inventory.node_templates(), oracle.node_templates());
  EXPECT_EQ(inventory.device_templates(), oracle.device_templates());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i]->family->values, slow[i]->family->values);
    EXPECT_EQ(nodes[i]->family->devices->own_slot, slow[i]->family->devices->own_slot);
    EXPECT_EQ(nodes[i]->ultraserver_id, slow[i]->ultraserver_id);
    EXPECT_EQ(nodes[i]->z, slow[i]->z);
    ASSERT_EQ(nodes[i]->own.size(), slow[i]->own.size());
    for (std::size_t slot = 0; slot < nodes[i]->own.size(); ++slot) {
      ASSERT_EQ(nodes[i]->own[slot] == nullptr, slow[i]->own[slot] == nullptr);
      if (nodes[i]->own[slot] != nullptr) {
        EXPECT_EQ(*nodes[i]->own[slot], *slow[i]->own[slot]);
      }
    }
  }
}

// The defect: of a fleet where more links were down than an attribute has shared values, a node had
// the links of the node before.
TEST(InventoryTest, EachNodeHasItsOwnLinksDownAndItsOwnChips) {
  Inventory inventory;
  std::vector<std::shared_ptr<const Node>> nodes;
  constexpr std::array<const char*, 6> kLinks = {"x+", "x-", "y+", "y-", "z+", "z-"};
  for (std::size_t i = 0; i < 300; ++i) {
    FleetNode node{.name = "n" + std::to_string(i), .type = "trn2u.48xlarge", .cores = false};
    node.links_down.resize(kChipsPerNode, "x+,y+");  // the attribute is there on every chip
    node.links_down[i % kChipsPerNode] = kLinks[i % kLinks.size()];
    NodeFacts facts = NodeFactsOf(node);
    // Devices with other names may be any chips.
    const auto number = static_cast<std::int64_t>(i);
    for (Device& device : facts.devices) {
      if (i < 150) continue;
      device.name = "other-" + device.name;
      for (Attribute& one : device.attributes) {
        if (one.name.id != "deviceId") continue;
        auto& chip = std::get<std::int64_t>(one.value);
        chip = (chip * (1 + number % 2 * 2) + number) % kChipsPerNode;
      }
    }
    nodes.push_back(inventory.Intern(facts));
    const NodeTemplate& seen = *nodes.back()->family->devices;
    const auto alone = InternAlone(facts);
    const NodeTemplate& wanted = *alone->family->devices;
    ASSERT_EQ(seen.down, wanted.down) << i;
    ASSERT_EQ(seen.down_z_minus, wanted.down_z_minus) << i;
    ASSERT_EQ(seen.chips, wanted.chips) << i;
  }
}

TEST(NodeDemandTest, FollowsKubernetesRules) {
  Inventory inventory;
  NodeFacts facts = NodeFactsOf({.name = "n"});
  facts.labels = {{"zone", "a"}, {"gen", "7"}};
  facts.taints = {{.key = "k", .value = "v"}};
  const auto node = inventory.Intern(facts);
  NodeDemand demand;
  EXPECT_FALSE(demand.Admits(*node));
  Toleration toleration;
  toleration.key = "k";
  toleration.value = "v";
  demand.tolerations = {toleration};
  EXPECT_TRUE(demand.Admits(*node));
  const auto with = [&](NodeRequirement r) {
    NodeDemand one = demand;
    one.all = {std::move(r)};
    return one.Admits(*node);
  };
  EXPECT_TRUE(with({.key = "zone", .op = NodeOperator::kIn, .values = {"a", "b"}}));
  EXPECT_FALSE(with({.key = "zone", .op = NodeOperator::kNotIn, .values = {"a"}}));
  EXPECT_TRUE(with({.key = "rack", .op = NodeOperator::kNotIn, .values = {"a"}}));
  EXPECT_FALSE(with({.key = "rack", .op = NodeOperator::kExists, .values = {}}));
  EXPECT_TRUE(with({.key = "gen", .op = NodeOperator::kGt, .values = {"6"}}));
  EXPECT_FALSE(with({.key = "gen", .op = NodeOperator::kLt, .values = {"x"}}));
  EXPECT_TRUE(
      with({.key = "metadata.name", .op = NodeOperator::kIn, .values = {"n"}, .field = true}));
}

// Each change of a pod's status reads the pod's needs anew.
TEST(ClusterStateTest, APodWithEqualNeedsOnItsNodeChangesNothing) {
  const auto needs = [] {
    return std::make_shared<const kube::PodNeeds>(
        kube::PodNeeds{.amounts = {{"cpu", 1000}, {"pods", 1}}, .ports = {}});
  };
  ClusterState state;
  state.PutPod({"default", "p"}, "n", needs());
  const auto use = state.node(*state.FindNode("n")).use;
  state.PutPod({"default", "p"}, "n", needs());
  EXPECT_EQ(state.node(*state.FindNode("n")).use, use);
  EXPECT_TRUE(state.RemovePod({"default", "p"}));
  EXPECT_FALSE(state.RemovePod({"default", "p"}));
  EXPECT_FALSE(state.FindNode("n").has_value());
}

TEST(PersistentVectorTest, CopiesAreIndependentAndDifferencesAreFound) {
  PersistentVector<int> a;
  for (int i = 0; i < 2000; ++i) a.PushBack(i);
  PersistentVector<int> b = a;
  b.Mutable(1234) = -1;
  a.Mutable(7) = -2;
  b.PushBack(2000);
  EXPECT_EQ(a[1234], 1234);
  EXPECT_EQ(b[1234], -1);
  EXPECT_EQ(b[7], 7);
  std::vector<std::size_t> starts;
  ForEachDifference(a, b, [&](std::size_t first, std::size_t) { starts.push_back(first); });
  EXPECT_EQ(starts, (std::vector<std::size_t>{0, 1232, 2000}));
}

}  // namespace
}  // namespace tahoma::controller
