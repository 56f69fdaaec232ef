// Tests claims that mix chips with devices of another driver: EFA interfaces of dra.net, a chip and
// an interface of one number in one group of four, as on a node of AWS.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/model/node_offers.h"
#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGroupOfFour = "resource.aws.com/devicegroup4_id";
constexpr const char* kNicSelector =
    "device.driver == \"dra.net\" && "
    "device.attributes[\"dra.net\"].pciDevice == \"Elastic Fabric Adapter (EFA)\"";

// The interfaces of the node, each in the group of the chip of its number.
std::shared_ptr<const NodeOffers> Nics(const NodeFacts& node, int count = 16) {
  kube::ResourceSlice slice{.name = node.name + "-dra.net",
                            .driver = "dra.net",
                            .pool = node.name,
                            .node = node.name,
                            .devices = {}};
  for (int i = 0; i < count; ++i) {
    Device& nic = slice.devices.emplace_back();
    nic.name = fmt::format("pci-{:02d}", i);
    nic.attributes.push_back(
        {{"dra.net", "pciDevice"}, std::string("Elastic Fabric Adapter (EFA)")});
    for (const Device& chip : node.devices) {
      const auto* group = chip.Find("resource.aws.com", "devicegroup4_id");
      if (chip.name == fmt::format("neuron-device-{}", i) && group != nullptr) {
        nic.attributes.push_back({{"resource.aws.com", "devicegroup4_id"}, *group});
      }
    }
  }
  slice.details.resize(slice.devices.size());
  return std::make_shared<const NodeOffers>(
      std::vector<OfferedSlicePtr>{SlicePacker().Pack(std::move(slice))});
}

void AddNode(ClusterState& state, const std::string& name, int nics = 16) {
  NodeFacts facts = NodeFactsOf({.name = name});
  if (nics > 0) facts.others = Nics(facts, nics);
  state.PutNode(std::move(facts));
}

ClaimRequest NicRequest(std::int64_t count) {
  return {.name = "nics",
          .alternatives = {{.name = {},
                            .device_class = "efa.networking.k8s.aws",
                            .class_selectors = {kNicSelector},
                            .selectors = {},
                            .count = count,
                            .tolerations = {}}}};
}

// Chips and interfaces; with `aligned` in one group of four.
ClaimSpec Mixed(const std::string& pod, std::int64_t chips, std::int64_t nics, bool aligned) {
  ClaimSpec claim = ChipClaim(pod + "-claim", chips);
  claim.requests.push_back(NicRequest(nics));
  if (aligned) {
    claim.constraints.push_back({.requests = {"neurons", "nics"}, .attribute = kGroupOfFour});
  }
  return claim;
}

ClaimSpec NicsOnly(const std::string& pod, std::int64_t nics) {
  ClaimSpec claim = Mixed(pod, 1, nics, false);
  claim.requests.erase(claim.requests.begin());
  return claim;
}

class PlannerOthersTest : public ::testing::Test {
 protected:
  Decision Run(GangSpec gang) {
    auto decisions =
        planner_.Plan(state_, {std::make_shared<const GangSpec>(std::move(gang))}, now_);
    EXPECT_EQ(decisions.size(), 1U);
    if (decisions[0].placement) {
      for (auto& h : decisions[0].placement->Holdings(*decisions[0].gang, now_)) state_.Hold(h);
    }
    return decisions[0];
  }
  Decision RunPod(const std::string& name, ClaimSpec claim) {
    return Run(GangOf(name, 1, [&](const std::string&) { return std::move(claim); }));
  }
  // Somebody has these interfaces of the node.
  void OccupyNics(const std::string& node, const std::vector<int>& nics) {
    Holding holding;
    holding.claim_uid = fmt::format("held-{}-{}", node, ++held_);
    holding.claim = {"default", holding.claim_uid};
    holding.holder = "claim default/other";
    holding.others_node = node;
    for (const int nic : nics) {
      holding.others.push_back(
          {.driver = "dra.net", .pool = node, .device = fmt::format("pci-{:02d}", nic)});
    }
    state_.Hold(std::make_shared<const Holding>(std::move(holding)));
  }
  // The results of the only claim of the only pod, "request=device".
  static std::vector<std::string> ResultsOf(const Decision& decision) {
    std::vector<std::string> texts;
    if (!decision.placement) return texts;
    for (const auto& result : decision.placement->members[0].claims[0].allocation.results) {
      texts.push_back(result.request + "=" + result.device);
    }
    return texts;
  }

  ClusterState state_;
  Planner planner_;
  WallTime now_ = WallTime(std::chrono::hours(24));
  int held_ = 0;
};

TEST_F(PlannerOthersTest, AClaimGetsChipsAndInterfacesOfOneGroup) {
  AddNode(state_, "n0");
  OccupyNics("n0", {0, 1, 2});
  const Decision decision = RunPod("p", Mixed("p", 2, 2, true));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  std::set<std::string> groups;
  const Node& node = *state_.node(*state_.FindNode("n0")).node;
  std::size_t nics = 0;
  for (const DeviceResult& result : decision.placement->members[0].claims[0].allocation.results) {
    EXPECT_EQ(result.pool, "n0");
    const bool nic = result.driver == "dra.net";
    nics += nic ? 1U : 0U;
    const std::string chip =
        nic ? fmt::format("neuron-device-{}", std::stoi(result.device.substr(4))) : result.device;
    for (std::uint16_t i = 0; i < node.family->devices->devices.size(); ++i) {
      if (node.device(i).name != chip) continue;
      groups.insert(kube::ToString(*node.Lookup(i, "resource.aws.com", "devicegroup4_id")));
    }
  }
  EXPECT_EQ(nics, 2U);
  EXPECT_EQ(groups.size(), 1U);
}

TEST_F(PlannerOthersTest, ResultsComeInTheOrderOfTheRequests) {
  AddNode(state_, "n0");
  ClaimSpec claim = Mixed("p", 1, 1, false);
  std::swap(claim.requests[0], claim.requests[1]);
  EXPECT_THAT(ResultsOf(RunPod("p", claim)),
              ElementsAre("nics=pci-00", HasSubstr("neurons=neuron-device-")));
}

TEST_F(PlannerOthersTest, AnInterfaceIsGivenOnceAndIsFreeAgainAfterItsClaim) {
  AddNode(state_, "n0", 2);
  const Decision first = RunPod("a", NicsOnly("a", 2));
  EXPECT_THAT(ResultsOf(first), ElementsAre("nics=pci-00", "nics=pci-01"));
  const Decision waits = RunPod("b", Mixed("b", 1, 1, false));
  ASSERT_TRUE(waits.blocked);
  EXPECT_EQ(waits.blocked->reason, BlockedReason::kWaitsForCapacity);
  EXPECT_THAT(waits.blocked->message, HasSubstr("1 Insufficient devices of dra.net"));
  EXPECT_TRUE(waits.blocked->lacks_room);
  EXPECT_EQ(waits.blocked->rooms, kAnyRoom);
  state_.Release(first.placement->members[0].claims[0].uid);
  EXPECT_TRUE(RunPod("b", Mixed("b", 1, 1, false)).placement);
}

TEST_F(PlannerOthersTest, ANodeWithoutTheDriverIsLeftAlone) {
  AddNode(state_, "bare", 0);
  const Decision never = RunPod("p", Mixed("p", 1, 1, false));
  ASSERT_TRUE(never.blocked);
  EXPECT_EQ(never.blocked->reason, BlockedReason::kNeverFits);
  EXPECT_THAT(never.blocked->message, HasSubstr("without devices of dra.net"));
  const Decision neither = RunPod("q", NicsOnly("q", 1));
  ASSERT_TRUE(neither.blocked);
  EXPECT_EQ(neither.blocked->reason, BlockedReason::kNeverFits);
  EXPECT_THAT(neither.blocked->message, HasSubstr("without devices of dra.net"));
  AddNode(state_, "n1");
  const Decision placed = RunPod("p", Mixed("p", 1, 1, false));
  ASSERT_TRUE(placed.placement);
  EXPECT_EQ(placed.placement->members[0].node, "n1");
}

TEST_F(PlannerOthersTest, PodsOfAGangShareANodesInterfaces) {
  AddNode(state_, "n0", 3);
  AddNode(state_, "n1", 2);
  const auto claim = [](const std::string& pod) { return Mixed(pod, 1, 1, false); };
  const Decision placed = Run(GangOf("g", 5, claim));
  ASSERT_TRUE(placed.placement) << placed.blocked->message;
  std::set<std::string> given;
  for (const MemberPlacement& member : placed.placement->members) {
    for (const DeviceResult& result : member.claims[0].allocation.results) {
      EXPECT_TRUE(given.insert(result.pool + "/" + result.device).second);
    }
  }
  EXPECT_EQ(given.size(), 10U);
  EXPECT_TRUE(Run(GangOf("h", 1, claim)).blocked);
}

TEST_F(PlannerOthersTest, AGangWithAShapeGetsInterfacesBesideItsBox) {
  AddNode(state_, "n0", 3);  // too few
  AddNode(state_, "n1");
  GangSpec gang = GangOf("g", 2, [](const std::string& pod) { return Mixed(pod, 2, 2, false); });
  gang.shape_text = "2x2";
  const Decision placed = Run(std::move(gang));
  ASSERT_TRUE(placed.placement) << placed.blocked->message;
  EXPECT_EQ(placed.placement->members[0].node, "n1");
}

// The boxes of a gang are chosen side by side on a node with interfaces for a single box.
TEST_F(PlannerOthersTest, BoxesOfAGangShareANodesInterfaces) {
  AddNode(state_, "n0", 3);
  const auto claim = [](const std::string& pod) { return Mixed(pod, 4, 2, false); };
  GangSpec gang = GangOf("g", 2, claim);
  gang.shape_text = "2x2";
  gang.slices = 2;
  const Decision never = Run(gang);
  ASSERT_TRUE(never.blocked) << never.placement->ToString();
  EXPECT_NE(never.blocked->reason, BlockedReason::kWaitsForCapacity);
  AddNode(state_, "n1", 2);
  const Decision placed = Run(gang);
  ASSERT_TRUE(placed.placement) << placed.blocked->message;
  EXPECT_NE(placed.placement->members[0].node, placed.placement->members[1].node);
}

TEST_F(PlannerOthersTest, ARequestOfTwoKindsIsRefusedByName) {
  AddNode(state_, "n0");
  ClaimSpec claim = ChipClaim("p-claim", 1);
  claim.requests[0].first_available = true;
  claim.requests[0].alternatives[0].name = "chips";
  claim.requests[0].alternatives.push_back(NicRequest(1).alternatives[0]);
  claim.requests[0].alternatives[1].name = "nics";
  const Decision decision = RunPod("p", claim);
  ASSERT_TRUE(decision.blocked);
  EXPECT_EQ(decision.blocked->reason, BlockedReason::kInvalid);
  EXPECT_THAT(
      decision.blocked->message,
      HasSubstr("request \"neurons\": its alternatives are of neuron.aws.com and of other"));
}

TEST_F(PlannerOthersTest, ConfigurationsOfBothDriversAreKept) {
  AddNode(state_, "n0");
  ClaimSpec claim = Mixed("p", 1, 1, false);
  claim.configs = {{.source = kube::ConfigSource::kClass,
                    .requests = {"nics"},
                    .driver = "dra.net",
                    .parameters = R"({"mtu":9001})"},
                   {.requests = {"gone"}, .driver = "dra.net", .parameters = "{}"}};
  const Decision placed = RunPod("p", claim);
  ASSERT_TRUE(placed.placement);
  const auto& configs = placed.placement->members[0].claims[0].allocation.configs;
  ASSERT_EQ(configs.size(), 1U);
  EXPECT_EQ(configs[0].parameters, R"({"mtu":9001})");
}

// ---- Against counting --------------------------------------------------------------------------

struct Wish {
  int chips;
  int nics;
  bool aligned;
};

// The free chips and interfaces of a node, by group of four.
struct FreeOn {
  std::array<int, 4> chips;
  std::array<int, 4> nics;
};

int Sum(const std::array<int, 4>& counts) { return counts[0] + counts[1] + counts[2] + counts[3]; }

// Returns whether the wishes from number `at` on fit: aligned wishes take of one group; the others,
// which may take anywhere, come last and need only sums.
bool Fit(std::vector<FreeOn> free, const std::vector<Wish>& wishes, std::size_t at) {
  if (at == wishes.size()) return true;
  const Wish& wish = wishes[at];
  for (std::size_t n = 0; n < free.size(); ++n) {
    if (!wish.aligned) {
      std::vector<FreeOn> next = free;
      if (Sum(free[n].chips) < wish.chips || Sum(free[n].nics) < wish.nics) continue;
      next[n].chips[0] -= wish.chips;
      next[n].nics[0] -= wish.nics;
      if (Fit(next, wishes, at + 1)) return true;
      continue;
    }
    for (std::size_t g = 0; g < 4; ++g) {
      std::vector<FreeOn> next = free;
      next[n].chips[g] -= wish.chips;
      next[n].nics[g] -= wish.nics;
      if (next[n].chips[g] >= 0 && next[n].nics[g] >= 0 && Fit(next, wishes, at + 1)) return true;
    }
  }
  return false;
}

class PlannerOthersCountTest : public PlannerOthersTest,
                               public ::testing::WithParamInterface<std::uint64_t> {};

// Two nodes on which some interfaces are taken, and some chips with them.
TEST_P(PlannerOthersCountTest, AGangIsPlacedExactlyWhenCountingSaysSo) {
  Rng rng(GetParam());
  std::vector<FreeOn> free;
  for (const std::string name : {"n0", "n1"}) {
    AddNode(state_, name);
    FreeOn& here = free.emplace_back(FreeOn{{4, 4, 4, 4}, {4, 4, 4, 4}});
    const Node& node = *state_.node(*state_.FindNode(name)).node;
    std::map<std::string, std::size_t> number;  // of a group
    Holding chips;
    chips.claim_uid = "chips-of-" + name;
    std::vector<int> nics;
    for (int i = 0; i < 16; ++i) {
      const auto device = node.family->devices->chips[static_cast<std::size_t>(i)];
      const std::string id =
          kube::ToString(*node.Lookup(device, "resource.aws.com", "devicegroup4_id"));
      const std::size_t group = number.emplace(id, number.size()).first->second;
      if (rng.Below(3) != 0) {
        chips.devices.push_back({.node = name, .device = node.device(device).name});
        --here.chips.at(group);
      }
      if (rng.Below(3) != 0) {
        nics.push_back(i);
        --here.nics.at(group);
      }
    }
    if (!chips.devices.empty()) state_.Hold(std::make_shared<const Holding>(std::move(chips)));
    if (!nics.empty()) OccupyNics(name, nics);
  }
  std::vector<Wish> wishes;
  for (std::uint64_t i = 0, count = 1 + rng.Below(3); i < count; ++i) {
    wishes.push_back({.chips = 1 + static_cast<int>(rng.Below(3)),
                      .nics = 1 + static_cast<int>(rng.Below(3)),
                      .aligned = rng.Below(3) != 0});
  }
  std::size_t next = 0;
  const Decision decision =
      Run(GangOf("g", static_cast<int>(wishes.size()), [&](const std::string& pod) {
        const Wish& wish = wishes[next++];
        return Mixed(pod, wish.chips, wish.nics, wish.aligned);
      }));
  std::ranges::stable_sort(wishes, {}, [](const Wish& wish) { return !wish.aligned; });
  const bool fits = Fit(free, wishes, 0);
  EXPECT_EQ(decision.placement.has_value(), fits)
      << (decision.blocked ? decision.blocked->message : decision.placement->ToString());
  if (!fits && decision.blocked) {
    EXPECT_NE(decision.blocked->reason, BlockedReason::kNotFound) << decision.blocked->message;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, PlannerOthersCountTest, ::testing::Range<std::uint64_t>(0, 300));

}  // namespace
}  // namespace tahoma::controller
