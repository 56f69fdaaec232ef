// Nodes whose slices say what is not so, and change under allocations: whatever they publish, a
// device is given once. The oracle knows devices by node and name, as an allocation does.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

constexpr std::uint64_t kNodes = 6;

FleetNode Honest(std::uint64_t node) {
  if (node >= 4) return {.name = fmt::format("lone-{}", node)};
  return {.name = fmt::format("us-0-n{}", node),
          .type = "trn2u.48xlarge",
          .ultra_server = "us-0",
          .z = static_cast<int>(node)};
}

AttributeValue AnyValue(const std::string& id, Rng& rng) {
  const auto one_of = [&](std::vector<std::string> texts) {
    return texts[rng.Below(texts.size())];
  };
  if (id == "resourceType") return one_of({"neuron_device", "neuron_core", "neuron_node", "other"});
  if (id == "instanceType") return one_of({"trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge", "x"});
  if (id == "ultraserverId") return one_of({"us-0", "us-1", ""});
  if (rng.Chance(1, 20)) return std::string("text");
  return static_cast<std::int64_t>(rng.Below(17));
}

// Changes some attributes, names, the number and the order of the node's devices.
NodeFacts Lie(NodeFacts facts, Rng& rng) {
  const auto any = [&]() -> Device& { return facts.devices[rng.Below(facts.devices.size())]; };
  const std::uint64_t from = rng.Below(facts.devices.size() / 2);
  if (rng.Chance(1, 3)) {
    std::erase_if(facts.devices, [&](const Device&) { return rng.Chance(1, 1 + from); });
  }
  if (facts.devices.empty()) return facts;
  const bool all = rng.Chance(1, 4);
  static const std::vector<std::string> kIds = {
      "resourceType", "instanceType", "ultraserverId", "deviceId", "chip", "lnc", "core", "z"};
  for (int changes = 0; changes < 12; ++changes) {
    const std::string& id = kIds[rng.Below(kIds.size())];
    Device& one = any();
    for (Device& device : facts.devices) {
      if (!all && &device != &one) continue;
      for (Attribute& attribute : device.attributes) {
        if (attribute.name.id == id) attribute.value = AnyValue(id, rng);
      }
    }
    if (rng.Chance(1, 4)) std::swap(any(), any());
    if (rng.Chance(1, 4)) std::swap(any().name, any().name);
    if (rng.Chance(1, 8)) any().name = fmt::format("other-{}", rng.Below(4));
  }
  return facts;
}

GangSpec AnyGang(const std::string& name, Rng& rng) {
  const std::uint64_t dice = rng.Below(6);
  const int count = 1 << rng.Below(5);
  if (dice == 0) return GangOf(name, 1, NodeClaim);
  if (dice < 3) {
    const int lnc = 1 + static_cast<int>(rng.Below(2));
    return GangOf(name, 1, [&](const auto& pod) { return CoreClaim(pod, lnc, count); });
  }
  GangSpec gang = GangOf(name, 1 + static_cast<int>(rng.Below(4)),
                         [&](const auto& pod) { return ChipClaim(pod, count); });
  if (dice == 5) gang.chips = count * static_cast<int>(gang.members.size());
  return gang;
}

TEST(PlannerLiesTest, ADeviceIsGivenOnceWhateverNodesPublish) {
  int given = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    ClusterState state;
    Planner planner;
    std::map<std::pair<std::string, std::string>, std::string> claim_of;
    for (std::uint64_t node = 0; node < kNodes; ++node) state.PutNode(NodeFactsOf(Honest(node)));
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t node = rng.Below(kNodes);
      if (rng.Chance(1, 3)) state.PutNode(Lie(NodeFactsOf(Honest(node)), rng));
      if (rng.Chance(1, 6)) state.PutNode(NodeFactsOf(Honest(node)));
      if (rng.Chance(1, 20)) state.RemoveNode(Honest(node).name);
      if (rng.Chance(1, 4) && !claim_of.empty()) {
        const std::string uid = claim_of.begin()->second;
        state.Release(uid);
        std::erase_if(claim_of, [&](const auto& one) { return one.second == uid; });
      }
      const auto gang = std::make_shared<const GangSpec>(AnyGang(fmt::format("g{}", step), rng));
      const Decision decision = planner.Plan(state, {gang}, WallTime())[0];
      if (!decision.placement) continue;
      for (const auto& holding : decision.placement->Holdings(*gang, WallTime())) {
        for (const auto& device : holding->devices) {
          const auto [held, fresh] =
              claim_of.emplace(std::pair(device.node, device.device), holding->claim_uid);
          ASSERT_TRUE(fresh) << "seed " << seed << ", step " << step << ": " << device.node << "/"
                             << device.device << " of " << held->second;
          ++given;
        }
        state.Hold(holding);
      }
    }
  }
  EXPECT_GT(given, 1000) << "else nothing was tested";
}

}  // namespace
}  // namespace tahoma::controller
