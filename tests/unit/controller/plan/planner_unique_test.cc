// Fleets whose devices differ on every node: decisions against an oracle that looks at each device
// of each node, and the counted cost of a decision.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/fleet_index.h"
#include "controller/plan/planner.h"
#include "controller/plan/search.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

constexpr int kChips = 16;

// A chip in the oracle's view.
struct SlowChip {
  std::string serial;  // of this chip alone
  std::string group;   // shared by four chips of a node
  std::string color;   // one of three
  bool busy = false;
};

using SlowNode = std::array<SlowChip, kChips>;
using Selects = std::function<bool(const SlowChip&)>;

enum class FleetRule : std::uint8_t { kNone, kSameGroup, kColorsDiffer };

struct UniqueWish {
  std::string selector;  // CEL; empty: none
  Selects selects;
  FleetRule rule = FleetRule::kNone;
  int count = 1;
};

// Lone instances, once for the planner and once for the oracle.
class UniqueFleet {
 public:
  UniqueFleet(Rng& rng, int nodes) : rng_(rng) {
    for (int i = 0; i < nodes; ++i) Put(i);
  }

  // Puts new chips on a node; claims keep their chips by name.
  void Put(int number) {
    static const std::array<std::string, 3> kColors = {"red", "green", "blue"};
    SlowNode& node = nodes_[number];
    for (int chip = 0; chip < kChips; ++chip) {
      SlowChip& one = node[static_cast<std::size_t>(chip)];
      one.serial = fmt::format("s{}", ++serials_);
      one.group = fmt::format("g{}-{}", (serials_ - 1) / kChips, chip / 4);
      one.color = kColors[rng_.Below(kColors.size())];
    }
    state_.PutNode(Facts(number, true));
    plain_.PutNode(Facts(number, false));
  }

  void Hold(const std::string& uid, int number, const std::set<int>& chips) {
    Holding holding;
    holding.claim_uid = uid;
    for (const int chip : chips) {
      nodes_[number][static_cast<std::size_t>(chip)].busy = true;
      holding.devices.push_back(
          {.node = NameOf(number), .device = fmt::format("neuron-device-{}", chip)});
    }
    state_.Hold(std::make_shared<const Holding>(holding));
    plain_.Hold(std::make_shared<const Holding>(holding));
  }

  static std::string NameOf(int number) { return fmt::format("n{:03}", number); }
  const std::map<int, SlowNode>& nodes() const { return nodes_; }
  const ClusterState& state() const { return state_; }
  const ClusterState& plain() const { return plain_; }  // the same without serials and groups

  SlowChip RandomChip() {
    const SlowNode& node = nodes_.at(static_cast<int>(rng_.Below(nodes_.size())));
    return node[rng_.Below(kChips)];
  }

 private:
  NodeFacts Facts(int number, bool unique) {
    NodeFacts facts = NodeFactsOf({.name = NameOf(number), .cores = false});
    for (int chip = 0; chip < kChips; ++chip) {
      const SlowChip& one = nodes_[number][static_cast<std::size_t>(chip)];
      auto& attributes = facts.devices[static_cast<std::size_t>(chip)].attributes;
      attributes.push_back({{"example.com", "color"}, one.color});
      if (unique) attributes.push_back({{"example.com", "serial"}, one.serial});
      if (unique) attributes.push_back({{"example.com", "group"}, one.group});
    }
    return facts;
  }

  Rng& rng_;
  std::map<int, SlowNode> nodes_;
  ClusterState state_;
  ClusterState plain_;
  int serials_ = 0;
};

std::string AttributeNamed(const std::string& id) {
  return fmt::format("device.attributes['example.com'].{}", id);
}

UniqueWish RandomWish(Rng& rng, UniqueFleet& fleet) {
  const SlowChip chip = fleet.RandomChip();
  const SlowChip other = fleet.RandomChip();
  const auto is = [](const std::string& id, const std::string& value) {
    return fmt::format("{} == '{}'", AttributeNamed(id), value);
  };
  std::vector<UniqueWish> wishes = {
      {.selector = "", .selects = [](const SlowChip&) { return true; }},
      {.selector = is("color", "red"),
       .selects = [](const SlowChip& c) { return c.color == "red"; }},
      {.selector = is("serial", chip.serial),
       .selects = [chip](const SlowChip& c) { return c.serial == chip.serial; }},
      {.selector = fmt::format("'{}' == {} && {}", chip.serial, AttributeNamed("serial"),
                               is("color", "blue")),
       .selects =
           [chip](const SlowChip& c) { return c.serial == chip.serial && c.color == "blue"; }},
      {.selector = fmt::format("{} in ['{}', '{}', 'nowhere']", AttributeNamed("serial"),
                               chip.serial, other.serial),
       .selects =
           [chip, other](const SlowChip& c) {
             return c.serial == chip.serial || c.serial == other.serial;
           }},
      {.selector = is("group", chip.group),
       .selects = [chip](const SlowChip& c) { return c.group == chip.group; }},
      {.selector = is("serial", chip.serial) + " || " + is("color", "green"),
       .selects =
           [chip](const SlowChip& c) { return c.serial == chip.serial || c.color == "green"; }},
      {.selector = "!(" + is("serial", chip.serial) + ")",
       .selects = [chip](const SlowChip& c) { return c.serial != chip.serial; }},
      {.selector = AttributeNamed("serial") + ".endsWith('7')",
       .selects = [](const SlowChip& c) { return c.serial.ends_with('7'); }},
      {.selector = is("serial", "nowhere"), .selects = [](const SlowChip&) { return false; }},
  };
  UniqueWish wish = wishes[rng.Below(wishes.size())];
  wish.count = rng.Chance(1, 3) ? static_cast<int>(1 + rng.Below(6)) : 1;
  wish.rule = static_cast<FleetRule>(rng.Below(3));
  return wish;
}

// Returns the most chips of a node that a claim of this kind may have now.
int Most(const SlowNode& node, const UniqueWish& wish) {
  std::map<std::string, int> by_value;
  int all = 0;
  for (const SlowChip& chip : node) {
    if (chip.busy || !wish.selects(chip)) continue;
    ++all;
    ++by_value[wish.rule == FleetRule::kSameGroup ? chip.group : chip.color];
  }
  if (wish.rule == FleetRule::kNone) return all;
  if (wish.rule == FleetRule::kColorsDiffer) return static_cast<int>(by_value.size());
  int most = 0;
  for (const auto& [group, chips] : by_value) most = std::max(most, chips);
  return most;
}

GangSpec PodWishing(const std::string& name, const UniqueWish& wish) {
  GangSpec pod = GangOf(name, 1, [&](const std::string& p) { return ChipClaim(p, wish.count); });
  ClaimSpec& claim = pod.members[0].claims[0];
  if (!wish.selector.empty()) claim.requests[0].alternatives[0].selectors = {wish.selector};
  if (wish.rule == FleetRule::kSameGroup) {
    claim.constraints = {{.requests = {}, .attribute = "example.com/group", .distinct = false}};
  } else if (wish.rule == FleetRule::kColorsDiffer) {
    claim.constraints = {{.requests = {}, .attribute = "example.com/color", .distinct = true}};
  }
  return pod;
}

Decision PlanNext(Planner& planner, const ClusterState& state, const GangSpec& gang) {
  return planner.Plan(state, {std::make_shared<const GangSpec>(gang)}, WallTime{})[0];
}

struct Given {
  int node = -1;
  std::set<int> chips;

  friend bool operator==(const Given&, const Given&) = default;
};

Given GivenBy(const Decision& decision) {
  Given given;
  const Allocation& allocation = decision.placement->members[0].claims[0].allocation;
  given.node = std::stoi(allocation.node.substr(1));
  for (const DeviceResult& result : allocation.results) {
    given.chips.insert(std::stoi(result.device.substr(std::string("neuron-device-").size())));
  }
  return given;
}

// Returns the node that a pod of one chip must get: nodes in use before whole nodes, then the
// first.
std::optional<int> NodeForOne(const UniqueFleet& fleet, const UniqueWish& wish) {
  std::optional<std::pair<bool, int>> best;
  for (const auto& [number, node] : fleet.nodes()) {
    if (Most(node, wish) < 1) continue;
    const bool whole = std::none_of(node.begin(), node.end(), [](const auto& c) { return c.busy; });
    const std::pair<bool, int> rank(whole, number);
    if (!best || rank < *best) best = rank;
  }
  return best ? std::optional(best->second) : std::nullopt;
}

void ExpectUnique(const UniqueFleet& fleet, const UniqueWish& wish, const Given& given) {
  EXPECT_EQ(given.chips.size(), static_cast<std::size_t>(wish.count));
  const SlowNode& node = fleet.nodes().at(given.node);
  std::set<std::string> groups;
  std::set<std::string> colors;
  for (const int number : given.chips) {
    const SlowChip& chip = node[static_cast<std::size_t>(number)];
    EXPECT_FALSE(chip.busy);
    EXPECT_TRUE(wish.selects(chip));
    groups.insert(chip.group);
    colors.insert(chip.color);
  }
  EXPECT_TRUE(wish.rule != FleetRule::kSameGroup || groups.size() == 1);
  EXPECT_TRUE(wish.rule != FleetRule::kColorsDiffer || colors.size() == given.chips.size());
}

TEST(UniqueDevicesTest, DecisionsAreThoseOfAnOracleThatLooksAtEachDeviceOfEachNode) {
  int placed = 0;
  int refused = 0;
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const int nodes = static_cast<int>(1 + rng.Below(60));
    UniqueFleet fleet(rng, nodes);
    Planner planner;
    Planner planner_without;
    for (int step = 0; step < 25; ++step) {
      const UniqueWish wish = RandomWish(rng, fleet);
      SCOPED_TRACE(fmt::format("seed {} step {}: {} of {} rule {}", seed, step, wish.count,
                               wish.selector, static_cast<int>(wish.rule)));
      const GangSpec pod = PodWishing(fmt::format("p{}", step), wish);
      const Decision decision = PlanNext(planner, fleet.state(), pod);
      const bool exists =
          std::any_of(fleet.nodes().begin(), fleet.nodes().end(),
                      [&](const auto& n) { return Most(n.second, wish) >= wish.count; });
      ASSERT_EQ(decision.placement.has_value(), exists)
          << (decision.blocked ? decision.blocked->message : decision.placement->ToString());
      ++(exists ? placed : refused);
      const bool reads_unique = wish.selector.find(".color") == std::string::npos
                                    ? !wish.selector.empty()
                                    : wish.selector.find(".serial") != std::string::npos;
      if (!reads_unique && wish.rule != FleetRule::kSameGroup) {
        const Decision without = PlanNext(planner_without, fleet.plain(), pod);
        ASSERT_EQ(without.placement.has_value(), exists);
        EXPECT_TRUE(!exists || GivenBy(decision) == GivenBy(without));
        ++compared;
      }
      if (exists) {
        const Given given = GivenBy(decision);
        ExpectUnique(fleet, wish, given);
        EXPECT_TRUE(wish.count != 1 || given.node == NodeForOne(fleet, wish));
        fleet.Hold(fmt::format("held-{}", step), given.node, given.chips);
      }
      if (rng.Chance(1, 4)) fleet.Put(static_cast<int>(rng.Below(fleet.nodes().size())));
    }
  }
  EXPECT_GT(placed, 400);
  EXPECT_GT(refused, 200);
  EXPECT_GT(compared, 150);
}

// ---- The cost of a decision ---------------------------------------------------------------------

struct Searched {
  bool placed = false;
  std::size_t tried = 0;      // domains that the search looked at
  std::size_t evaluated = 0;  // nodes on which a selector set was evaluated
  std::size_t classes = 0;    // of domains, as the index tells them apart
};

// Counts after a first decision, which has read the fleet.
Searched Look(const ClusterState& view, const GangSpec& first, const GangSpec& gang) {
  ClusterState state = view;
  FleetIndex index;
  index.Sync(state);
  const ChipChoice choice;
  Eligibility eligibility;
  Search search(index, choice, eligibility, state);
  Compiler compiler;
  search.Place(*compiler.Compile(std::make_shared<const GangSpec>(first)), WallTime{});
  const std::size_t before = eligibility.evaluations();
  Searched looked;
  const auto compiled = compiler.Compile(std::make_shared<const GangSpec>(gang));
  looked.placed = search.Place(*compiled, WallTime{}).has_value();
  looked.tried = search.obstacle().domains_tried;
  looked.evaluated = eligibility.evaluations() - before;
  index.ForEachClass([&](const FleetIndex::Class&) { ++looked.classes; });
  return looked;
}

TEST(UniqueDevicesTest, ADecisionLooksAtAsMuchInALargeFleetAsInASmallOne) {
  Rng rng(1);
  UniqueFleet small(rng, 60);
  UniqueFleet large(rng, 600);
  for (const std::string shape : {"", "2x2"}) {
    for (const bool pinned : {false, true}) {
      SCOPED_TRACE(fmt::format("shape \"{}\", pinned {}", shape, pinned));
      const auto look = [&](UniqueFleet& fleet) {
        const int last = static_cast<int>(fleet.nodes().size()) - 1;
        const auto pod = [&](const std::string& name, const std::string& group) {
          UniqueWish wish{.selector = "", .selects = {}, .count = 4};
          if (pinned) wish.selector = fmt::format("{} == '{}'", AttributeNamed("group"), group);
          GangSpec gang = PodWishing(name, wish);
          gang.shape_text = shape;
          return gang;
        };
        const auto& nodes = fleet.nodes();
        return Look(fleet.state(), pod("p", nodes.at(last - 1)[0].group),
                    pod("q", nodes.at(last)[0].group));
      };
      const Searched in_small = look(small);
      const Searched in_large = look(large);
      EXPECT_TRUE(in_large.placed || (pinned && !shape.empty())) << "a group is a row of chips";
      EXPECT_EQ(in_small.placed, in_large.placed);
      EXPECT_LE(in_large.tried, 2U);
      EXPECT_LE(in_large.evaluated, kSharedValuesMax + 2);
      EXPECT_LE(in_large.classes, kSharedValuesMax + 2);
    }
  }
}

TEST(UniqueDevicesTest, ADeviceNoLongerPublishedIsNotFoundByItsValue) {
  Rng rng(1);
  UniqueFleet fleet(rng, 40);
  Planner planner;
  const auto pod = [&](const std::string& name, const std::string& serial) {
    return PodWishing(name,
                      {.selector = fmt::format("{} == '{}'", AttributeNamed("serial"), serial),
                       .selects = {},
                       .count = 1});
  };
  const std::string old = fleet.nodes().at(33)[5].serial;
  EXPECT_EQ(GivenBy(PlanNext(planner, fleet.state(), pod("a", old))), (Given{33, {5}}));
  fleet.Put(33);
  EXPECT_FALSE(PlanNext(planner, fleet.state(), pod("b", old)).placement);
  const std::string now = fleet.nodes().at(33)[5].serial;
  EXPECT_EQ(GivenBy(PlanNext(planner, fleet.state(), pod("c", now))), (Given{33, {5}}));
  // Another fleet altogether, as after a new start.
  EXPECT_FALSE(PlanNext(planner, ClusterState(), pod("d", now)).placement);
  EXPECT_EQ(GivenBy(PlanNext(planner, fleet.state(), pod("e", now))), (Given{33, {5}}));
}

}  // namespace
}  // namespace tahoma::controller
