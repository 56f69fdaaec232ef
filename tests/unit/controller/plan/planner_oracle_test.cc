// Placement against slow oracles that share no code with it: every box by its coordinates, and
// every assignment of devices to the requests of a pod.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

Decision PlanOne(const ClusterState& state, const GangSpec& gang) {
  return Planner().Plan(state, {std::make_shared<const GangSpec>(gang)}, WallTime{})[0];
}

// ---- Boxes -------------------------------------------------------------------------------------

// A domain as chips at coordinates, and links as pairs (chip, axis) towards plus.
struct SlowDomain {
  int height = 1;  // nodes
  std::set<std::array<int, 3>> free;
  std::set<std::array<int, 4>> down;
};

using Sides = std::array<int, 3>;

// Whether members, each with that many chips, fill the box's layers in order, none in two.
bool FillLayers(const Sides& sides, const std::vector<int>& members) {
  const int per_layer = sides[0] * sides[1];
  int used = 0;
  for (const int chips : members) {
    if (used / per_layer != (used + chips - 1) / per_layer) return false;
    used += chips;
  }
  return used == per_layer * sides[2];
}

using ChipSet = std::set<std::array<int, 3>>;

// The chips of the box, when they are free and joined.
std::optional<ChipSet> FreeBox(const SlowDomain& domain, const std::array<int, 3>& at,
                               const Sides& sides) {
  ChipSet chips;
  const std::array<int, 3> extent = {4, 4, domain.height};
  for (int x = 0; x < sides[0]; ++x) {
    for (int y = 0; y < sides[1]; ++y) {
      for (int z = 0; z < sides[2]; ++z) {
        chips.insert({(at[0] + x) % 4, (at[1] + y) % 4, (at[2] + z) % domain.height});
      }
    }
  }
  const bool whole = std::all_of(chips.begin(), chips.end(), [&](const std::array<int, 3>& chip) {
    if (!domain.free.contains(chip)) return false;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (extent[axis] == 1) continue;
      auto next = chip;
      next[axis] = (next[axis] + 1) % extent[axis];
      const bool inside = chips.contains(next);
      if (inside && domain.down.contains({chip[0], chip[1], chip[2], static_cast<int>(axis)})) {
        return false;
      }
    }
    return true;
  });
  return whole ? std::optional(chips) : std::nullopt;
}

// Every box of the shape that is free and may be filled by the members.
std::vector<ChipSet> FreeBoxes(const SlowDomain& domain, Sides shape,
                               const std::vector<int>& members) {
  std::vector<ChipSet> boxes;
  std::sort(shape.begin(), shape.end());
  do {
    if (!FillLayers(shape, members) || shape[2] > domain.height) continue;
    for (int at = 0; at < 16 * domain.height; ++at) {
      if (auto box = FreeBox(domain, {at % 4, at / 4 % 4, at / 16}, shape)) {
        boxes.push_back(*std::move(box));
      }
    }
  } while (std::next_permutation(shape.begin(), shape.end()));
  return boxes;
}

// The most of them, from number `from` on, that are disjoint from each other and from `taken`.
std::size_t MostDisjoint(const std::vector<ChipSet>& boxes, std::size_t from,
                         const ChipSet& taken) {
  std::size_t most = 0;
  for (std::size_t i = from; i < boxes.size(); ++i) {
    ChipSet both = taken;
    both.insert(boxes[i].begin(), boxes[i].end());
    if (both.size() != taken.size() + boxes[i].size()) continue;
    most = std::max(most, 1 + MostDisjoint(boxes, i + 1, both));
  }
  return most;
}

std::size_t BoxesThatFit(const std::vector<SlowDomain>& domains, const Sides& shape,
                         const std::vector<int>& members) {
  std::size_t fit = 0;
  for (const SlowDomain& domain : domains)
    fit += MostDisjoint(FreeBoxes(domain, shape, members), 0, {});
  return fit;
}

bool SomeBoxIsFree(const std::vector<SlowDomain>& domains, const Sides& shape,
                   const std::vector<int>& members) {
  return std::any_of(domains.begin(), domains.end(), [&](const SlowDomain& domain) {
    return !FreeBoxes(domain, shape, members).empty();
  });
}

// A random fleet, twice.
struct SlowFleet {
  ClusterState state;
  std::vector<SlowDomain> domains;
};

// Domains of four nodes, UltraServers, or one.
SlowFleet RandomFleet(Rng& rng, std::initializer_list<int> heights) {
  SlowFleet fleet;
  const std::uint64_t busy_percent = rng.Below(70);
  int held = 0;
  for (const int height : heights) {
    SlowDomain domain;
    domain.height = height;
    for (int z = 0; z < height; ++z) {
      FleetNode node{.name = fmt::format("h{}-n{}", height, z), .cores = false};
      if (height == 4) {
        node.type = "trn2u.48xlarge";
        node.ultra_server = "us";
        node.z = z;
      }
      node.links_down.resize(16);
      Holding holding;
      for (int chip = 0; chip < 16; ++chip) {
        const int x = chip % 4;
        const int y = chip / 4;
        const bool broken = rng.Chance(1, 40);
        if (broken) node.broken = static_cast<std::uint16_t>(node.broken | 1U << chip);
        const bool busy = rng.Below(100) < busy_percent;
        if (busy) {
          holding.devices.push_back(
              {.node = node.name, .device = fmt::format("neuron-device-{}", chip)});
        }
        if (!busy && !broken) domain.free.insert({x, y, z});
        if (!rng.Chance(1, 30)) continue;
        switch (rng.Below(height == 4 ? 6 : 4)) {
          case 0:
            node.links_down[static_cast<std::size_t>(chip)] = "x+";
            domain.down.insert({x, y, z, 0});
            break;
          case 1:
            node.links_down[static_cast<std::size_t>(chip)] = "x-";
            domain.down.insert({(x + 3) % 4, y, z, 0});
            break;
          case 2:
            node.links_down[static_cast<std::size_t>(chip)] = "y+";
            domain.down.insert({x, y, z, 1});
            break;
          case 3:
            node.links_down[static_cast<std::size_t>(chip)] = "y-";
            domain.down.insert({x, (y + 3) % 4, z, 1});
            break;
          case 4:
            node.links_down[static_cast<std::size_t>(chip)] = "z+";
            domain.down.insert({x, y, z, 2});
            break;
          default:
            node.links_down[static_cast<std::size_t>(chip)] = "z-";
            domain.down.insert({x, y, (z + 3) % 4, 2});
        }
      }
      fleet.state.PutNode(NodeFactsOf(node));
      holding.claim_uid = fmt::format("held-{}", ++held);
      fleet.state.Hold(std::make_shared<const Holding>(std::move(holding)));
    }
    fleet.domains.push_back(std::move(domain));
  }
  return fleet;
}

// Members of 1, 2, 4, 8 or 16 chips, unlike each other, that ask for all of the box.
std::vector<int> RandomMembers(Rng& rng, int chips) {
  std::vector<int> members;
  while (chips > 0) {
    int one = 1 << rng.Below(5);
    while (one > chips) one /= 2;
    members.push_back(one);
    chips -= one;
  }
  return members;
}

TEST(BoxOracleTest, ABoxIsFoundExactlyWhenOneExistsAtSomePlaceInSomeRotation) {
  int placed = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const SlowFleet fleet = RandomFleet(rng, {4, 1});
    const Sides shape = {1 << rng.Below(3), 1 << rng.Below(3), 1 << rng.Below(3)};
    const std::vector<int> members = RandomMembers(rng, shape[0] * shape[1] * shape[2]);
    std::size_t next = 0;
    GangSpec gang = GangOf("g", static_cast<int>(members.size()),
                           [&](const std::string& pod) { return ChipClaim(pod, members[next++]); });
    gang.shape_text = fmt::format("{}x{}x{}", shape[0], shape[1], shape[2]);
    const Decision decision = PlanOne(fleet.state, gang);
    const bool exists = SomeBoxIsFree(fleet.domains, shape, members);
    EXPECT_EQ(decision.placement.has_value(), exists)
        << gang.shape_text << " " << (decision.blocked ? decision.blocked->message : "");
    ++(exists ? placed : refused);
    if (!decision.placement) continue;
    for (std::size_t i = 0; i < members.size(); ++i) {
      EXPECT_EQ(decision.placement->members[i].claims[0].allocation.results.size(),
                static_cast<std::size_t>(members[i]));
    }
  }
  EXPECT_GT(placed, 40);
  EXPECT_GT(refused, 40);
}

// Slices as well, wherever the first ones look best on their own.
TEST(BoxOracleTest, SlicesArePlacedExactlyWhenTheyFitSideBySide) {
  int refused = 0;
  int last_fits = 0;  // not one gang slice more would
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const SlowFleet fleet = RandomFleet(rng, {1});
    const Sides shape = rng.Chance(1, 2) ? Sides{2, 2, 1} : Sides{2, 1, 1};
    const std::size_t chips = static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
    const std::vector<int> members(1, static_cast<int>(chips));
    const std::size_t fit = BoxesThatFit(fleet.domains, shape, members);
    for (const std::size_t slices : {fit, fit + 1}) {
      if (slices == 0) continue;
      GangSpec gang = GangOf("g", static_cast<int>(slices), [&](const std::string& pod) {
        return ChipClaim(pod, static_cast<int>(chips));
      });
      gang.shape_text = fmt::format("{}x{}x{}", shape[0], shape[1], shape[2]);
      gang.slices = static_cast<int>(slices);
      gang.single_pod = false;
      const Decision decision = PlanOne(fleet.state, gang);
      EXPECT_EQ(decision.placement.has_value(), slices == fit)
          << slices << " of " << fit << " " << gang.shape_text << " "
          << (decision.blocked ? decision.blocked->message : "");
      if (slices > fit) ++refused;
      if (slices == fit && slices > 1) ++last_fits;
    }
  }
  EXPECT_GT(last_fits, 40);
  EXPECT_GT(refused, 40);
}

// ---- Requests ----------------------------------------------------------------------------------

struct SlowRequest {
  std::size_t claim = 0;
  bool core = false;
  int lnc = 1;               // of cores
  int first = 0, last = 15;  // chips
  int count = 1;
};

struct SlowRule {
  std::size_t claim = 0;
  bool distinct = false;
  std::string id;                     // x, y or chip's own number
  std::vector<std::size_t> requests;  // of all; empty: all of the claim
};

struct SlowDevice {
  bool core;
  int chip;
  int lnc;
  int cores;
};

int ValueOf(const std::string& id, int chip) { return id == "x" ? chip % 4 : chip / 4; }

class SlowFit {
 public:
  SlowFit(std::vector<SlowRequest> requests, std::vector<SlowRule> rules, std::uint16_t busy)
      : requests_(std::move(requests)), rules_(std::move(rules)) {
    for (int chip = 0; chip < 16; ++chip) {
      busy_[static_cast<std::size_t>(chip)] = (busy >> chip & 1) != 0 ? 0xff : 0;
      devices_.push_back({false, chip, 0, 0xff});
      for (const int lnc : {1, 2}) {
        for (int core = 0; core < 8 / lnc; ++core) {
          devices_.push_back({true, chip, lnc, ((1 << lnc) - 1) << (core * lnc)});
        }
      }
    }
    taken_.resize(requests_.size());
  }
  bool Fits() { return Next(0, 0); }

 private:
  bool Next(std::size_t request, std::size_t from) {
    if (request == requests_.size()) return true;
    const SlowRequest& wanted = requests_[request];
    if (static_cast<int>(taken_[request].size()) == wanted.count) return Next(request + 1, 0);
    for (std::size_t i = from; i < devices_.size(); ++i) {
      const SlowDevice& device = devices_[i];
      const auto chip = static_cast<std::size_t>(device.chip);
      if (device.core != wanted.core || (device.core && device.lnc != wanted.lnc)) continue;
      if (device.chip < wanted.first || device.chip > wanted.last) continue;
      if ((busy_[chip] & device.cores) != 0) continue;
      if (device.core && lnc_[chip] != 0 && lnc_[chip] != device.lnc) continue;
      if (!Meets(request, device.chip)) continue;
      const int lnc = lnc_[chip];
      busy_[chip] |= device.cores;
      lnc_[chip] = device.lnc;
      taken_[request].push_back(device.chip);
      if (Next(request, i + 1)) return true;
      taken_[request].pop_back();
      lnc_[chip] = lnc;
      busy_[chip] &= ~device.cores;
    }
    return false;
  }
  bool Meets(std::size_t request, int chip) const {
    return std::all_of(rules_.begin(), rules_.end(), [&](const SlowRule& rule) {
      const auto covers = [&](std::size_t r) {
        return requests_[r].claim == rule.claim &&
               (rule.requests.empty() ||
                std::find(rule.requests.begin(), rule.requests.end(), r) != rule.requests.end());
      };
      if (!covers(request)) return true;
      for (std::size_t r = 0; r < requests_.size(); ++r) {
        if (!covers(r)) continue;
        for (const int other : taken_[r]) {
          const bool same = ValueOf(rule.id, other) == ValueOf(rule.id, chip);
          if (same == rule.distinct) return false;
        }
      }
      return true;
    });
  }

  std::vector<SlowRequest> requests_;
  std::vector<SlowRule> rules_;
  std::vector<SlowDevice> devices_;
  std::array<int, 16> busy_{};
  std::array<int, 16> lnc_{};
  std::vector<std::vector<int>> taken_;
};

ClaimRequest RequestOf(const SlowRequest& slow, std::size_t number) {
  ClaimRequest request =
      (slow.core ? CoreClaim("c", slow.lnc, slow.count) : ChipClaim("c", slow.count)).requests[0];
  request.name = fmt::format("r{}", number);
  const char* chip = slow.core ? "device.attributes['tahoma.dev'].chip"
                               : "device.attributes['neuron.aws.com'].deviceId";
  request.alternatives[0].selectors.push_back(
      fmt::format("{0} >= {1} && {0} <= {2}", chip, slow.first, slow.last));
  return request;
}

std::vector<ClaimSpec> ClaimsOf(const std::vector<SlowRequest>& requests,
                                const std::vector<SlowRule>& rules) {
  std::vector<ClaimSpec> claims(requests.back().claim + 1);
  for (std::size_t c = 0; c < claims.size(); ++c) {
    claims[c].key = {"default", fmt::format("claim-{}", c)};
    claims[c].uid = fmt::format("uid-{}", c);
  }
  for (std::size_t r = 0; r < requests.size(); ++r) {
    claims[requests[r].claim].requests.push_back(RequestOf(requests[r], r));
  }
  for (const SlowRule& rule : rules) {
    Constraint constraint{
        .requests = {}, .attribute = "tahoma.dev/" + rule.id, .distinct = rule.distinct};
    for (const std::size_t r : rule.requests) constraint.requests.push_back(fmt::format("r{}", r));
    claims[rule.claim].constraints.push_back(constraint);
  }
  return claims;
}

NodeFacts NodeWithCoordinatesOnCores() {
  NodeFacts facts = NodeFactsOf({.name = "n0"});
  for (Device& device : facts.devices) {
    if (!device.name.starts_with("neuron-core-")) continue;
    const std::int64_t chip = std::get<std::int64_t>(*device.Find("tahoma.dev", "chip"));
    device.attributes.push_back({{"tahoma.dev", "x"}, chip % 4});
    device.attributes.push_back({{"tahoma.dev", "y"}, chip / 4});
  }
  return facts;
}

// Expects that the decision gives what was asked for, and nothing twice.
void ExpectRight(const Decision& decision, const std::vector<SlowRequest>& requests,
                 const std::vector<SlowRule>& rules, std::uint16_t busy) {
  std::array<int, 16> used{};
  std::vector<std::vector<int>> chips(requests.size());
  for (const ClaimPlacement& claim : decision.placement->members[0].claims) {
    for (const DeviceResult& result : claim.allocation.results) {
      const auto r = static_cast<std::size_t>(std::stoi(result.request.substr(1)));
      const SlowRequest& wanted = requests[r];
      int chip = -1;
      int lnc = 0;
      int core = 0;
      int cores = 0xff;
      if (wanted.core) {
        ASSERT_EQ(std::sscanf(result.device.c_str(), "neuron-core-%d-lnc%d-%d", &chip, &lnc, &core),
                  3);
        EXPECT_EQ(lnc, wanted.lnc);
        cores = ((1 << lnc) - 1) << (core * lnc);
      } else {
        ASSERT_EQ(std::sscanf(result.device.c_str(), "neuron-device-%d", &chip), 1);
      }
      EXPECT_GE(chip, wanted.first);
      EXPECT_LE(chip, wanted.last);
      EXPECT_EQ(busy >> chip & 1, 0);
      EXPECT_EQ(used[static_cast<std::size_t>(chip)] & cores, 0) << result.device;
      used[static_cast<std::size_t>(chip)] |= cores;
      chips[r].push_back(chip);
    }
  }
  for (std::size_t r = 0; r < requests.size(); ++r) {
    EXPECT_EQ(static_cast<int>(chips[r].size()), requests[r].count) << r;
  }
  for (const SlowRule& rule : rules) {
    std::vector<int> values;
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const bool named =
          rule.requests.empty() ||
          std::find(rule.requests.begin(), rule.requests.end(), r) != rule.requests.end();
      if (requests[r].claim != rule.claim || !named) continue;
      for (const int chip : chips[r]) values.push_back(ValueOf(rule.id, chip));
    }
    const std::set<int> different(values.begin(), values.end());
    EXPECT_EQ(different.size(), rule.distinct ? values.size() : 1U);
  }
}

TEST(RequestOracleTest, APodFitsExactlyWhenSomeAssignmentOfItsRequestsExists) {
  ClusterState empty;
  empty.PutNode(NodeWithCoordinatesOnCores());
  int placed = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<SlowRequest> requests;
    std::size_t claim = 0;
    const std::size_t count = 1 + rng.Below(3);
    for (std::size_t r = 0; r < count; ++r) {
      if (r > 0 && rng.Chance(1, 3)) ++claim;
      SlowRequest one{.claim = claim};
      one.core = rng.Chance(1, 4);
      one.lnc = 1 + static_cast<int>(rng.Below(2));
      one.first = static_cast<int>(rng.Below(12));
      one.last = std::min(15, one.first + static_cast<int>(rng.Below(8)));
      one.count = 1 + static_cast<int>(rng.Below(one.core ? 2 : 3));
      requests.push_back(one);
    }
    std::vector<SlowRule> rules;
    for (std::uint64_t i = rng.Below(3); i > 0; --i) {
      SlowRule rule;
      rule.claim = rng.Below(claim + 1);
      rule.distinct = rng.Chance(2, 3);
      rule.id = rng.Chance(1, 2) ? "x" : "y";
      for (std::size_t r = 0; r < count && rng.Chance(1, 2); ++r) {
        if (requests[r].claim == rule.claim) rule.requests.push_back(r);
      }
      rules.push_back(rule);
    }
    auto busy = static_cast<std::uint16_t>(rng.Below(65536) & rng.Below(65536));
    ClusterState state = empty;
    Holding holding;
    holding.claim_uid = "held";
    for (int chip = 0; chip < 16; ++chip) {
      if ((busy >> chip & 1) == 0) continue;
      holding.devices.push_back({.node = "n0", .device = fmt::format("neuron-device-{}", chip)});
    }
    state.Hold(std::make_shared<const Holding>(std::move(holding)));
    GangSpec gang = GangOf("p", 1, [](const std::string& pod) { return ChipClaim(pod, 1); });
    gang.members[0].claims = ClaimsOf(requests, rules);
    const Decision decision = PlanOne(state, gang);
    const bool exists = SlowFit(requests, rules, busy).Fits();
    EXPECT_EQ(decision.placement.has_value(), exists)
        << (decision.blocked ? decision.blocked->message : decision.placement->ToString());
    if (decision.placement) ExpectRight(decision, requests, rules, busy);
    ++(exists ? placed : refused);
  }
  EXPECT_GT(placed, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tahoma::controller
