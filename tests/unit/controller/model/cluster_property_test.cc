// The fleet's state after any changes, against a count by hand.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/persistent.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

// The nodes of one UltraServer, and two that stand alone.
FleetNode NodeOf(int number) {
  if (number < 4) {
    return {.name = "us-n" + std::to_string(number),
            .type = "trn2u.48xlarge",
            .ultra_server = "us",
            .z = number};
  }
  return number == 4 ? FleetNode{.name = "lone"}
                     : FleetNode{.name = "small", .type = "trn2.3xlarge"};
}
constexpr int kNodes = 6;

int ChipsOf(int number) { return number == 5 ? 1 : 16; }

// The state of the fleet, kept as simply as possible.
struct Oracle {
  std::map<int, std::uint16_t> broken;                        // by node that is present
  std::map<std::string, std::set<std::pair<int, int>>> held;  // chips, by claim

  std::size_t Free() const {
    std::size_t free = 0;
    for (const auto& [node, mask] : broken) {
      for (int chip = 0; chip < ChipsOf(node); ++chip) {
        bool taken = (mask >> chip & 1) != 0;
        for (const auto& [claim, chips] : held) taken = taken || chips.contains({node, chip});
        free += taken ? 0 : 1;
      }
    }
    return free;
  }
};

void Change(ClusterState& state, Oracle& oracle) {
  const int node = *rc::gen::inRange(0, kNodes);
  const std::string claim = "claim-" + std::to_string(*rc::gen::inRange(0, 4));
  switch (*rc::gen::inRange(0, 4)) {
    case 0: {
      FleetNode facts = NodeOf(node);
      facts.broken = static_cast<std::uint16_t>(*rc::gen::inRange(0, 4));
      facts.cores = false;
      state.PutNode(NodeFactsOf(facts));
      oracle.broken[node] = facts.broken;
      break;
    }
    case 1:
      state.RemoveNode(NodeOf(node).name);
      oracle.broken.erase(node);
      break;
    case 2: {
      Holding holding;
      holding.claim = {"default", claim};
      holding.claim_uid = claim;
      std::set<std::pair<int, int>> chips;
      for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
        const int chip = *rc::gen::inRange(0, ChipsOf(node));
        if (!chips.insert({node, chip}).second) continue;
        holding.devices.push_back(
            {.node = NodeOf(node).name, .device = "neuron-device-" + std::to_string(chip)});
      }
      state.Hold(std::make_shared<const Holding>(holding));
      oracle.held[claim] = chips;  // replaces what the claim held before
      break;
    }
    default:
      state.Release(claim);
      oracle.held.erase(claim);
  }
}

RC_GTEST_PROP(ClusterStateProperty, CountsWhatIsFreeAfterAnyChanges, ()) {
  ClusterState state;
  Oracle oracle;
  for (int i = *rc::gen::inRange(1, 40); i > 0; --i) {
    Change(state, oracle);
    RC_ASSERT(state.Count().nodes == oracle.broken.size());
    RC_ASSERT(state.holding_count() == oracle.held.size());
    RC_ASSERT(state.Count().free == oracle.Free());
  }
}

RC_GTEST_PROP(ClusterStateProperty, ACopyKeepsItsMomentAndDifferencesNameEveryChangedDomain, ()) {
  ClusterState state;
  Oracle oracle;
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) Change(state, oracle);
  const ClusterState before = state;
  const std::size_t free = oracle.Free();
  for (int i = *rc::gen::inRange(1, 20); i > 0; --i) Change(state, oracle);
  RC_ASSERT(before.Count().free == free);
  std::set<std::size_t> named;
  ClusterState::ForEachChangedDomain(before, state, [&](DomainId id) { named.insert(id.value()); });
  for (std::size_t id = 0; id < std::min(before.domain_count(), state.domain_count()); ++id) {
    const DomainState& old_domain = before.domain(DomainId(id));
    const DomainState& new_domain = state.domain(DomainId(id));
    const bool same = old_domain.name == new_domain.name && old_domain.free == new_domain.free &&
                      old_domain.broken == new_domain.broken;
    RC_ASSERT(same || named.contains(id));
  }
}

// Returns all that a planner sees of a state.
std::string Seen(const ClusterState& state) {
  std::string seen;
  for (std::size_t i = 0; i < state.domain_count(); ++i) {
    const DomainState& domain = state.domain(DomainId(i));
    seen +=
        fmt::format("{} {:x} {:x} {:x};", domain.name, domain.present, domain.free, domain.broken);
  }
  for (std::size_t i = 0; i < state.node_count(); ++i) {
    const NodeState& node = state.node(NodeId(i));
    std::vector<std::string> holdings;
    for (const auto& holding : node.holdings) holdings.push_back(holding->claim_uid);
    std::ranges::sort(holdings);
    seen += fmt::format("{};", fmt::join(holdings, ","));
    if (node.node == nullptr) continue;  // nobody reads the rest
    seen += fmt::format("{} {};", node.node->name, fmt::join(node.busy_cores, ","));
  }
  return seen;
}

std::vector<std::shared_ptr<const Holding>> WholeNodes(const std::set<int>& nodes) {
  std::vector<std::shared_ptr<const Holding>> all;
  for (const int node : nodes) {
    Holding holding;
    holding.claim_uid = "kept " + std::to_string(node);
    for (int chip = 0; chip < ChipsOf(node); ++chip) {
      holding.devices.push_back(
          {.node = NodeOf(node).name, .device = "neuron-device-" + std::to_string(chip)});
    }
    all.push_back(std::make_shared<const Holding>(holding));
  }
  return all;
}

RC_GTEST_PROP(ClusterStateProperty, AStateWithMoreHoldingsFollowsAnyChanges, ()) {
  ClusterState state;
  Oracle oracle;
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) Change(state, oracle);
  std::set<int> kept;
  for (const int node : *rc::gen::container<std::set<int>>(rc::gen::inRange(0, kNodes))) {
    if (oracle.broken.contains(node)) kept.insert(node);
  }
  const auto more = WholeNodes(kept);
  ClusterState follower = state;
  for (const auto& holding : more) follower.Hold(holding);
  for (int round = *rc::gen::inRange(1, 6); round > 0; --round) {
    const ClusterState before = state;
    for (int i = *rc::gen::inRange(0, 6); i > 0; --i) Change(state, oracle);
    follower.Follow(before, state);
    ClusterState fresh = state;
    for (const auto& holding : more) {
      if (follower.FindHolding(holding->claim_uid) != nullptr) fresh.Hold(holding);
    }
    for (const int node : kept) {
      const bool stays = follower.FindHolding("kept " + std::to_string(node)) != nullptr;
      RC_ASSERT(!stays || oracle.broken.contains(node));  // holdings go with their node
    }
    RC_ASSERT(Seen(follower) == Seen(fresh));
    RC_ASSERT(follower.holding_count() == fresh.holding_count());
  }
  for (const auto& holding : more) follower.Release(holding->claim_uid);
  RC_ASSERT(Seen(follower) == Seen(state));
}

RC_GTEST_PROP(PersistentMapProperty, AgreesWithAMapAndItsCopiesStay, ()) {
  PersistentMap<std::string, int> map;
  std::map<std::string, int> expected;
  std::vector<std::pair<PersistentMap<std::string, int>, std::map<std::string, int>>> copies;
  const auto agree = [](const auto& left, const auto& right) {
    RC_ASSERT(left.size() == right.size());
    std::map<std::string, int> seen;
    left.ForEach([&](const std::string& key, int value) { seen[key] = value; });
    RC_ASSERT(seen == right);
  };
  for (int i = *rc::gen::inRange(0, 60); i > 0; --i) {
    const std::string key = "k" + std::to_string(*rc::gen::inRange(0, 10));
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        map.Put(key, i);
        expected[key] = i;
        break;
      case 1:
        RC_ASSERT(map.Erase(key) == (expected.erase(key) == 1));
        break;
      default:
        copies.emplace_back(map, expected);
    }
    const int* found = map.Find(key);
    RC_ASSERT((found != nullptr) == expected.contains(key));
  }
  agree(map, expected);
  for (const auto& [copy, content] : copies) {
    agree(copy, content);
    // The differences turn the copy into the map.
    std::map<std::string, int> turned = content;
    ForEachDifference(copy, map, [&](const std::string& key, const int* before, const int* after) {
      RC_ASSERT(before == copy.Find(key));
      RC_ASSERT(after == map.Find(key));
      if (before != nullptr && after != nullptr) RC_ASSERT(*before != *after);
      if (after == nullptr) turned.erase(key);
      if (after != nullptr) turned[key] = *after;
    });
    RC_ASSERT(turned == expected);
  }
}

// ---- Taints and attributes ---------------------------------------------------------------------

Toleration Tolerating(const std::string& key, TolerationOperator op, const std::string& value = "",
                      std::optional<TaintEffect> effect = std::nullopt) {
  return {.key = key, .op = op, .value = value, .effect = effect, .seconds = std::nullopt};
}

TEST(TolerationTest, FollowsKubernetesRules) {
  const Taint taint{.key = "k", .value = "v", .effect = TaintEffect::kNoExecute};
  struct Case {
    Toleration toleration;
    bool tolerates;
  };
  constexpr auto kEqual = TolerationOperator::kEqual;
  constexpr auto kExists = TolerationOperator::kExists;
  const std::vector<Case> cases = {{Tolerating("k", kEqual, "v"), true},
                                   {Tolerating("k", kEqual, "w"), false},
                                   {Tolerating("k", kEqual), false},
                                   {Tolerating("k", kExists), true},
                                   {Tolerating("k", kExists, "ignored"), true},
                                   {Tolerating("l", kExists), false},
                                   {Tolerating("", kExists), true},
                                   {Tolerating("", kEqual), false},
                                   {Tolerating("k", kEqual, "v", TaintEffect::kNoExecute), true},
                                   {Tolerating("k", kEqual, "v", TaintEffect::kNoSchedule), false},
                                   {Tolerating("", kExists, "", TaintEffect::kNoSchedule), false}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(Tolerates(cases[i].toleration, taint), cases[i].tolerates) << i;
  }
  EXPECT_TRUE(Tolerates(ManagedToleration(), {.key = "tahoma.dev/managed", .value = ""}));
  EXPECT_FALSE(
      Tolerates(ManagedToleration(),
                {.key = "tahoma.dev/managed", .value = "", .effect = TaintEffect::kNoExecute}));
}

TEST(QualifiedNameTest, WithoutADomainTheDriversIsMeant) {
  EXPECT_EQ(ParseQualifiedName("a.com/x", "d.com"), (QualifiedName{"a.com", "x"}));
  EXPECT_EQ(ParseQualifiedName("x", "d.com"), (QualifiedName{"d.com", "x"}));
  EXPECT_EQ(ParseQualifiedName("a/b/c", "d.com"), (QualifiedName{"a", "b/c"}));
}

TEST(AttributeValueTest, IsPrintedAsInAMessageAndHashedWithItsType) {
  EXPECT_EQ(ToString(AttributeValue(true)), "true");
  EXPECT_EQ(ToString(AttributeValue(std::int64_t{-3})), "-3");
  EXPECT_EQ(ToString(AttributeValue(std::string("x"))), "\"x\"");
  EXPECT_EQ(ToString(AttributeValue(Version{"1.2.3"})), "1.2.3");
  EXPECT_NE(AttributeValue(std::string("1")), AttributeValue(Version{"1"}));
  EXPECT_EQ(HashOf(AttributeValue(std::string("1"))), HashOf(AttributeValue(std::string("1"))));
  EXPECT_NE(HashOf(AttributeValue(true)), HashOf(AttributeValue(std::int64_t{1})));
}

TEST(DeviceRoleTest, IsReadFromOurAttributesOrFromAws) {
  const NodeFacts ours = NodeFactsOf({.name = "n"});
  const NodeFacts aws = NodeFactsOf({.name = "n", .aws_only = true});
  EXPECT_EQ(RoleOf(ours.devices[5]), (DeviceRole{.kind = DeviceKind::kChip, .chip = 5}));
  EXPECT_EQ(RoleOf(aws.devices[0]), (DeviceRole{.kind = DeviceKind::kChip, .chip = 15}));
  for (const Device& device : ours.devices) {
    if (device.name == "neuron-core-3-lnc2-1") {
      EXPECT_EQ(
          RoleOf(device),
          (DeviceRole{.kind = DeviceKind::kCore, .chip = 3, .lnc = 2, .core = 1, .cores = 0b1100}));
    }
  }
  EXPECT_EQ(RoleOf(Device{}).kind, DeviceKind::kOther);
  Device outside = ours.devices[0];
  for (Attribute& attribute : outside.attributes) {
    if (attribute.name.id == "deviceId") attribute.value = std::int64_t{16};
  }
  EXPECT_EQ(RoleOf(outside).kind, DeviceKind::kOther) << "there is no chip 16";
}

}  // namespace
}  // namespace tahoma::controller
