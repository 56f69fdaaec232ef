#include "tests/support/gang_oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using Mask = std::uint16_t;

// ---- Random cases ------------------------------------------------------------------------------

void AddNode(GangCase& one, std::size_t domain, int z, Rng& rng) {
  OracleNode node{.name = fmt::format("n{}", one.nodes.size()), .domain = domain, .z = z};
  switch (rng.Below(5)) {
    case 0:
      node.busy = 0xffff;
      break;
    case 1:
      node.busy = static_cast<Mask>(rng.Below(65536) & rng.Below(65536));
      break;
    case 2:
      node.busy = static_cast<Mask>(0xffffU << rng.Below(16));
      break;
    default:
      break;
  }
  if (rng.Chance(3, 4)) node.rack = fmt::format("r{}", rng.Below(3));
  if (rng.Chance(1, 12)) node.broken = static_cast<Mask>(1U << rng.Below(16));
  one.domains[domain].nodes[static_cast<std::size_t>(z)] = static_cast<int>(one.nodes.size());
  one.nodes.push_back(node);
}

void AddFleet(GangCase& one, Rng& rng) {
  const std::size_t most = 1 + rng.Below(6);
  while (one.nodes.size() < most) {
    const bool ultra = rng.Chance(1, 2);
    one.domains.push_back({.ultra = ultra, .nodes = {-1, -1, -1, -1}});
    const std::size_t domain = one.domains.size() - 1;
    const bool whole = rng.Chance(2, 3);
    for (int z = 0; z < (ultra ? 4 : 1) && one.nodes.size() < 6; ++z) {
      if (!ultra || whole || rng.Chance(2, 3)) AddNode(one, domain, z, rng);
    }
    if (std::all_of(one.domains.back().nodes.begin(), one.domains.back().nodes.end(),
                    [](int node) { return node < 0; })) {
      one.domains.pop_back();
    }
  }
}

OracleAlternative RandomAlternative(Rng& rng, int count) {
  OracleAlternative made{.count = count};
  if (rng.Chance(1, 4)) {
    made.first = static_cast<int>(rng.Below(4)) * 4;
    made.last = std::min(15, made.first + 3 + static_cast<int>(rng.Below(3)) * 4);
  }
  return made;
}

int RandomCount(Rng& rng) {
  return rng.Chance(3, 4) ? 1 << rng.Below(5) : 1 + static_cast<int>(rng.Below(16));
}

unsigned RandomNodes(const GangCase& one, Rng& rng) {
  unsigned nodes = 0;
  for (std::uint64_t i = 1 + rng.Below(3); i > 0; --i) nodes |= 1U << rng.Below(one.nodes.size());
  if (rng.Chance(1, 4)) {  // those of one domain
    for (const int node : one.domains[rng.Below(one.domains.size())].nodes) {
      if (node >= 0) nodes |= 1U << node;
    }
  }
  return nodes;
}

void AddMembers(GangCase& one, Rng& rng) {
  const std::size_t count = 1 + rng.Below(5);
  const bool alike = rng.Chance(1, 4);
  const int common = RandomCount(rng);
  for (std::size_t i = 0; i < count; ++i) {
    OracleMember member;
    if (rng.Chance(1, 2)) member.nodes = RandomNodes(one, rng);
    if (i > 0 && !alike && rng.Chance(1, 12)) {
      const int owner = static_cast<int>(rng.Below(i));
      if (!one.members[static_cast<std::size_t>(owner)].requests.empty()) member.shares = owner;
    }
    const std::size_t requests = rng.Chance(1, 8) ? 0 : rng.Chance(1, 5) ? 2 : 1;
    for (std::size_t r = 0; r < (alike ? 1 : requests); ++r) {
      OracleRequest request;
      if (alike) {
        request.alternatives.push_back({.count = common});
      } else {
        request.alternatives.push_back(RandomAlternative(rng, RandomCount(rng)));
        if (rng.Chance(1, 4)) {
          request.alternatives.push_back(RandomAlternative(rng, RandomCount(rng)));
        }
      }
      member.requests.push_back(request);
    }
    if (!alike && rng.Chance(1, 8)) member.match = rng.Chance(1, 2) ? 'x' : 'y';
    one.members.push_back(std::move(member));
  }
}

std::vector<std::size_t> SomeMembers(const GangCase& one, Rng& rng) {
  const bool all = rng.Chance(1, 2);
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < one.members.size(); ++i) {
    if (all || rng.Chance(1, 2)) some.push_back(i);
  }
  return some;
}

const std::string& PlaceOf(const OracleNode& node, const PlaceRule& rule) {
  return rule.key == "rack" ? node.rack : node.name;
}

void AddRule(GangCase& one, Rng& rng) {
  PlaceRule rule{.kind = static_cast<PlaceRule::Kind>(rng.Below(3))};
  rule.key = rng.Chance(1, 2) ? "rack" : "kubernetes.io/hostname";
  rule.askers = SomeMembers(one, rng);
  rule.selected = SomeMembers(one, rng);
  if (rule.askers.empty()) return;
  std::set<std::string> places;
  for (const OracleNode& node : one.nodes) {
    if (!PlaceOf(node, rule).empty()) places.insert(PlaceOf(node, rule));
  }
  if (rule.kind == PlaceRule::Kind::kBeside) {
    rule.one_place = rng.Chance(1, 2);
    std::erase_if(rule.selected, [&](std::size_t member) {
      return std::find(rule.askers.begin(), rule.askers.end(), member) != rule.askers.end();
    });
    for (const std::string& place : places) {
      if (!rule.one_place && rng.Chance(1, 3)) rule.places.push_back(place);
    }
  }
  if (rule.kind == PlaceRule::Kind::kSpread) {
    rule.max_skew = 1 + static_cast<std::int64_t>(rng.Below(2));
    rule.min_places = 1 + static_cast<std::int64_t>(rng.Below(4));
    rule.place_count = static_cast<std::int64_t>(places.size());
    for (const std::string& place : places) {
      if (rng.Chance(1, 4)) rule.counts[place] = 1 + static_cast<std::int64_t>(rng.Below(2));
    }
  }
  one.rules.push_back(std::move(rule));
}

// Divides the chips of a box among pods, none with more than an instance has.
std::vector<int> Shares(int chips, int pods, Rng& rng) {
  std::vector<int> shares(static_cast<std::size_t>(pods), 0);
  if (chips % pods == 0 && rng.Chance(1, 2)) {
    std::fill(shares.begin(), shares.end(), chips / pods);
    return shares;
  }
  const int unit = std::max(1, chips / 8);
  for (int left = chips; left > 0;) {
    const int some = std::min(left, unit);
    int& share = shares[rng.Below(shares.size())];
    if (share + some > 16 && *std::min_element(shares.begin(), shares.end()) + some <= 16) continue;
    share += some;
    left -= some;
  }
  return shares;
}

void AddBoxes(GangCase& one, Rng& rng) {
  for (int& side : one.shape) side = 1 << rng.Below(3);
  const int chips = one.shape[0] * one.shape[1] * one.shape[2];
  const int least = (chips + 15) / 16;
  const int pods = least + static_cast<int>(rng.Below(static_cast<std::uint64_t>(6 - least)));
  one.slices = 1 + static_cast<int>(rng.Below(static_cast<std::uint64_t>(5 / pods)));
  const bool unlike = rng.Chance(1, 3);
  std::vector<int> shares = Shares(chips, pods, rng);
  for (int slice = 0; slice < one.slices; ++slice) {
    if (unlike) shares = Shares(chips, pods, rng);
    const bool tied = rng.Chance(1, 3);
    const unsigned nodes = RandomNodes(one, rng);
    for (const int share : shares) {
      OracleMember member;
      if (tied) member.nodes = nodes;
      if (rng.Chance(1, 5)) member.nodes = RandomNodes(one, rng);
      if (share > 0) {
        OracleRequest request;
        request.alternatives.push_back({.count = share});
        if (rng.Chance(1, 8)) request.alternatives[0] = RandomAlternative(rng, share);
        if (rng.Chance(1, 8)) {
          request.alternatives.insert(request.alternatives.begin(),
                                      RandomAlternative(rng, RandomCount(rng)));
        }
        member.requests.push_back(request);
      }
      one.members.push_back(std::move(member));
    }
  }
}

// ---- One node ----------------------------------------------------------------------------------

struct Want {
  int count;
  Mask chips;
};

Mask Range(int first, int last) {
  Mask mask = 0;
  for (int chip = first; chip <= last; ++chip) mask |= static_cast<Mask>(1U << chip);
  return mask;
}

Mask WithValue(char attribute, int value) {
  Mask mask = 0;
  for (int chip = 0; chip < 16; ++chip) {
    if ((attribute == 'x' ? chip % 4 : chip / 4) == value) mask |= static_cast<Mask>(1U << chip);
  }
  return mask;
}

bool Hall(const std::vector<Want>& wants, Mask free) {
  for (unsigned some = 1; some < 1U << wants.size(); ++some) {
    int sum = 0;
    Mask chips = 0;
    for (std::size_t i = 0; i < wants.size(); ++i) {
      if ((some >> i & 1U) == 0) continue;
      sum += wants[i].count;
      chips |= wants[i].chips;
    }
    if (sum > std::popcount(static_cast<Mask>(chips & free))) return false;
  }
  return true;
}

// Tries every choice of alternatives and values from the request on.
bool Choose(const std::vector<const OracleMember*>& members, std::size_t member,
            std::size_t request, Mask among, std::vector<Want>& wants, Mask free, bool fill) {
  if (member == members.size()) {
    int sum = 0;
    for (const Want& want : wants) sum += want.count;
    return (!fill || sum == std::popcount(free)) && Hall(wants, free);
  }
  const OracleMember& one = *members[member];
  if (request == 0 && one.match != 0 && among == 0xffff && !one.requests.empty()) {
    for (int value = 0; value < 4; ++value) {
      const Mask row = WithValue(one.match, value);
      if (Choose(members, member, 0, row, wants, free, fill)) return true;
    }
    return false;
  }
  if (request == one.requests.size()) {
    return Choose(members, member + 1, 0, 0xffff, wants, free, fill);
  }
  for (const OracleAlternative& alternative : one.requests[request].alternatives) {
    wants.push_back(
        {alternative.count, static_cast<Mask>(Range(alternative.first, alternative.last) & among)});
    const bool fits = Choose(members, member, request + 1, among, wants, free, fill);
    wants.pop_back();
    if (fits) return true;
  }
  return false;
}

Mask FreeOn(const OracleNode& node, OracleFleet fleet) {
  const Mask busy = fleet == OracleFleet::kNow ? node.busy : Mask{0};
  const Mask broken = fleet == OracleFleet::kRepaired ? Mask{0} : node.broken;
  return static_cast<Mask>(~(busy | broken));
}

// ---- Pods on nodes -----------------------------------------------------------------------------

bool Together(const GangCase& one, unsigned members, std::size_t node, OracleFleet fleet) {
  std::vector<const OracleMember*> chosen;
  for (std::size_t i = 0; i < one.members.size(); ++i) {
    const OracleMember& member = one.members[i];
    const unsigned pair = 1U << i | (member.shares < 0 ? 0U : 1U << member.shares);
    const unsigned both = members & pair;
    if (both != 0 && both != pair) return false;
    if ((members & 1U << i) == 0) continue;
    if ((member.nodes >> node & 1U) == 0) return false;
    chosen.push_back(&member);
  }
  std::vector<Want> wants;
  return Choose(chosen, 0, 0, 0xffff, wants, FreeOn(one.nodes[node], fleet), false);
}

using Nodes = std::vector<std::size_t>;  // by member

bool IsSpread(const GangCase& one, const PlaceRule& rule, const Nodes& nodes, std::size_t asker) {
  std::map<std::string, std::int64_t> counts;
  for (const OracleNode& node : one.nodes) {
    if (!PlaceOf(node, rule).empty()) counts[PlaceOf(node, rule)] = 0;
  }
  const bool few = static_cast<std::int64_t>(counts.size()) < rule.min_places;
  for (const auto& [place, count] : rule.counts) counts[place] += count;
  for (const std::size_t member : rule.selected) {
    const std::string& place = PlaceOf(one.nodes[nodes[member]], rule);
    if (!place.empty()) ++counts[place];
  }
  const std::int64_t its = counts[PlaceOf(one.nodes[nodes[asker]], rule)];
  return few ? its <= rule.max_skew
             : std::all_of(counts.begin(), counts.end(),
                           [&](const auto& other) { return its - other.second <= rule.max_skew; });
}

bool Keeps(const GangCase& one, const PlaceRule& rule, const Nodes& nodes, std::size_t asker) {
  const auto place = [&](std::size_t member) { return PlaceOf(one.nodes[nodes[member]], rule); };
  const std::string its = place(asker);
  const auto is_here = [&](std::size_t member) { return member != asker && place(member) == its; };
  const auto& selected = rule.selected;
  if (rule.kind == PlaceRule::Kind::kApart) {
    return its.empty() || std::none_of(selected.begin(), selected.end(), is_here);
  }
  if (its.empty()) return false;
  if (rule.kind == PlaceRule::Kind::kSpread) return IsSpread(one, rule, nodes, asker);
  if (rule.one_place) return place(rule.askers.front()) == its;
  return std::any_of(selected.begin(), selected.end(), is_here) ||
         std::find(rule.places.begin(), rule.places.end(), its) != rule.places.end();
}

bool KeepsAll(const GangCase& one, const Nodes& nodes) {
  return std::all_of(one.rules.begin(), one.rules.end(), [&](const PlaceRule& rule) {
    return std::all_of(rule.askers.begin(), rule.askers.end(),
                       [&](std::size_t asker) { return Keeps(one, rule, nodes, asker); });
  });
}

bool Divide(const GangCase& one, unsigned left, std::size_t node, OracleFleet fleet, Nodes& nodes) {
  if (left == 0) return KeepsAll(one, nodes);
  if (node == one.nodes.size()) return false;
  for (unsigned some = left;; some = (some - 1) & left) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if ((some >> i & 1U) != 0) nodes[i] = node;
    }
    if (Together(one, some, node, fleet) && Divide(one, left & ~some, node + 1, fleet, nodes)) {
      return true;
    }
    if (some == 0) return false;
  }
}

// ---- Boxes -------------------------------------------------------------------------------------

using Chips = std::set<std::array<int, 4>>;  // domain, x, y, z

bool FillLayers(const GangCase& one, std::size_t member, std::size_t end,
                const std::vector<std::size_t>& nodes, std::size_t layer, Mask chips) {
  if (layer == nodes.size()) return member == end;
  std::vector<const OracleMember*> here;
  for (std::size_t next = member; next <= end; ++next) {
    std::vector<Want> wants;
    if (Choose(here, 0, 0, 0xffff, wants, chips, true) &&
        FillLayers(one, next, end, nodes, layer + 1, chips)) {
      return true;
    }
    if (next == end || (one.members[next].nodes >> nodes[layer] & 1U) == 0) return false;
    here.push_back(&one.members[next]);
  }
  return false;
}

// Returns the box's chips when they are free and the pods from `first` on fill the box.
std::optional<Chips> TryBox(const GangCase& one, std::size_t domain, const std::array<int, 3>& at,
                            const std::array<int, 3>& sides, std::size_t first, OracleFleet fleet) {
  const int height = one.domains[domain].ultra ? 4 : 1;
  Mask layer = 0;
  for (int x = 0; x < sides[0]; ++x) {
    for (int y = 0; y < sides[1]; ++y) {
      layer |= static_cast<Mask>(1U << ((at[0] + x) % 4 + 4 * ((at[1] + y) % 4)));
    }
  }
  std::vector<std::size_t> nodes;
  Chips chips;
  for (int step = 0; step < sides[2]; ++step) {
    const int z = (at[2] + step) % height;
    const int node = one.domains[domain].nodes[static_cast<std::size_t>(z)];
    if (node < 0) return std::nullopt;
    nodes.push_back(static_cast<std::size_t>(node));
    if ((layer & ~FreeOn(one.nodes[nodes.back()], fleet)) != 0) return std::nullopt;
    for (int chip = 0; chip < 16; ++chip) {
      if ((layer >> chip & 1) != 0) {
        chips.insert({static_cast<int>(domain), chip % 4, chip / 4, z});
      }
    }
  }
  const std::size_t pods = one.members.size() / static_cast<std::size_t>(one.slices);
  if (!FillLayers(one, first, first + pods, nodes, 0, layer)) return std::nullopt;
  return chips;
}

std::vector<Chips> Boxes(const GangCase& one, int slice, OracleFleet fleet) {
  std::set<Chips> boxes;
  const std::size_t pods = one.members.size() / static_cast<std::size_t>(one.slices);
  std::array<int, 3> sides = one.shape;
  std::sort(sides.begin(), sides.end());
  do {
    for (std::size_t domain = 0; domain < one.domains.size(); ++domain) {
      const int height = one.domains[domain].ultra ? 4 : 1;
      if (sides[2] > height) continue;
      for (int at = 0; at < 16 * height; ++at) {
        auto box = TryBox(one, domain, {at % 4, at / 4 % 4, at / 16}, sides,
                          static_cast<std::size_t>(slice) * pods, fleet);
        if (box) boxes.insert(*std::move(box));
      }
    }
  } while (std::next_permutation(sides.begin(), sides.end()));
  return {boxes.begin(), boxes.end()};
}

bool Disjoint(const std::vector<std::vector<Chips>>& boxes, std::size_t slice, const Chips& taken) {
  if (slice == boxes.size()) return true;
  return std::any_of(boxes[slice].begin(), boxes[slice].end(), [&](const Chips& box) {
    Chips both = taken;
    both.insert(box.begin(), box.end());
    return both.size() == taken.size() + box.size() && Disjoint(boxes, slice + 1, both);
  });
}

// ---- Placements --------------------------------------------------------------------------------

// Returns a fault of the member's claim, whose chips on the node are returned in `taken`.
std::string ClaimFault(const GangCase& one, std::size_t index, const MemberPlacement& placed,
                       Mask& taken) {
  const OracleMember& member = one.members[index];
  if (member.requests.empty() != placed.claims.empty()) return "claims are missing";
  std::map<std::size_t, std::map<std::string, Mask>> by_request;
  std::set<int> values;
  for (const ClaimPlacement& claim : placed.claims) {
    for (const DeviceResult& result : claim.allocation.results) {
      int chip = -1;
      if (result.pool != placed.node) return "a device of another node";
      if (std::sscanf(result.device.c_str(), "neuron-device-%d", &chip) != 1) return result.device;
      if ((taken >> chip & 1) != 0) return fmt::format("chip {} twice", chip);
      taken |= static_cast<Mask>(1U << chip);
      const auto request = static_cast<std::size_t>(result.request[1] - '0');
      by_request[request][result.request] |= static_cast<Mask>(1U << chip);
      values.insert(member.match == 'x' ? chip % 4 : chip / 4);
    }
  }
  if (member.match != 0 && values.size() > 1) return "matchAttribute is not met";
  for (std::size_t r = 0; r < member.requests.size(); ++r) {
    if (by_request[r].size() != 1) return "a request without an alternative";
    const auto& [name, chips] = *by_request[r].begin();
    const auto& all = member.requests[r].alternatives;
    const std::size_t chosen = name.size() > 2 ? static_cast<std::size_t>(name[4] - '0') : 0;
    const OracleAlternative& wanted = all[chosen];
    if (std::popcount(chips) != wanted.count) return "another number of chips";
    if ((chips & ~Range(wanted.first, wanted.last)) != 0) return "chips that are not selected";
  }
  return "";
}

std::string BoxFault(const GangCase& one, const Placement& placement) {
  const std::size_t pods = one.members.size() / static_cast<std::size_t>(one.slices);
  for (std::size_t slice = 0; slice < placement.slices.size(); ++slice) {
    const SlicePlacement& place = placement.slices[slice];
    std::map<std::string, Mask> taken;
    std::size_t layer = 0;
    for (std::size_t i = slice * pods; i < (slice + 1) * pods; ++i) {
      const MemberPlacement& placed = placement.members[i];
      while (layer < place.nodes.size() && place.nodes[layer] != placed.node) ++layer;
      if (layer == place.nodes.size()) return "ranks are not in the order of layers";
      if (auto fault = ClaimFault(one, i, placed, taken[placed.node]); !fault.empty()) return fault;
    }
    for (std::size_t step = 0; step < place.nodes.size(); ++step) {
      const std::size_t z = (static_cast<std::size_t>(place.box.origin.z) + step) % 4;
      const auto chips = static_cast<Mask>(place.box.mask >> (16 * z) & 0xffff);
      if (taken[place.nodes[step]] != chips) return "a layer is not filled";
    }
  }
  return "";
}

ClaimSpec ClaimOf(const OracleMember& member, const std::string& pod) {
  ClaimSpec claim = ChipClaim(pod, 1);
  claim.requests.clear();
  for (std::size_t r = 0; r < member.requests.size(); ++r) {
    ClaimRequest request;
    request.name = fmt::format("r{}", r);
    const auto& alternatives = member.requests[r].alternatives;
    for (std::size_t a = 0; a < alternatives.size(); ++a) {
      DeviceRequest made = ChipClaim(pod, alternatives[a].count).requests[0].alternatives[0];
      if (alternatives.size() > 1) made.name = fmt::format("s{}", a);
      if (alternatives[a].first != 0 || alternatives[a].last != 15) {
        made.selectors = {
            fmt::format("device.attributes['neuron.aws.com'].resourceType == 'neuron_device' && "
                        "device.attributes['neuron.aws.com'].deviceId >= {} && "
                        "device.attributes['neuron.aws.com'].deviceId <= {}",
                        alternatives[a].first, alternatives[a].last)};
      }
      request.alternatives.push_back(std::move(made));
    }
    request.first_available = alternatives.size() > 1;
    claim.requests.push_back(std::move(request));
  }
  if (member.match != 0) {
    claim.constraints.push_back(
        {.requests = {}, .attribute = fmt::format("tahoma.dev/{}", member.match)});
  }
  return claim;
}

}  // namespace

GangCase RandomGangCase(Rng& rng) {
  GangCase one;
  AddFleet(one, rng);
  if (rng.Chance(1, 2)) {
    AddMembers(one, rng);
    for (std::uint64_t i = rng.Below(3); i > 0; --i) AddRule(one, rng);
  } else {
    AddBoxes(one, rng);
  }
  return one;
}

bool HasPlace(const GangCase& one, OracleFleet fleet) {
  Nodes nodes(one.members.size(), 0);
  if (!one.has_shape()) return Divide(one, (1U << one.members.size()) - 1, 0, fleet, nodes);
  std::vector<std::vector<Chips>> boxes;
  for (int slice = 0; slice < one.slices; ++slice) boxes.push_back(Boxes(one, slice, fleet));
  return Disjoint(boxes, 0, {});
}

ClusterState StateOf(const GangCase& one) {
  ClusterState state;
  for (const OracleNode& node : one.nodes) {
    FleetNode made{.name = node.name, .cores = false, .broken = node.broken};
    if (one.domains[node.domain].ultra) {
      made.type = "trn2u.48xlarge";
      made.ultra_server = fmt::format("us-{}", node.domain);
      made.z = node.z;
    }
    NodeFacts facts = NodeFactsOf(made);
    if (!node.rack.empty()) facts.labels.emplace_back("rack", node.rack);
    std::sort(facts.labels.begin(), facts.labels.end());
    state.PutNode(facts);
    Holding holding;
    holding.claim_uid = "held-" + node.name;
    holding.holder = "pod default/other";
    for (int chip = 0; chip < 16; ++chip) {
      if ((node.busy >> chip & 1) == 0) continue;
      holding.devices.push_back(
          {.node = node.name, .device = fmt::format("neuron-device-{}", chip)});
    }
    if (!holding.devices.empty()) state.Hold(std::make_shared<const Holding>(std::move(holding)));
  }
  return state;
}

std::shared_ptr<const GangSpec> GangOf(const GangCase& one) {
  GangSpec gang = GangOf("g", static_cast<int>(one.members.size()),
                         [](const std::string& pod) { return ChipClaim(pod, 1); });
  gang.single_pod = false;
  if (one.has_shape()) {
    gang.shape_text = fmt::format("{}x{}x{}", one.shape[0], one.shape[1], one.shape[2]);
  }
  gang.slices = one.slices;
  gang.rules = one.rules;
  for (std::size_t i = 0; i < one.members.size(); ++i) {
    const OracleMember& member = one.members[i];
    MemberSpec& made = gang.members[i];
    made.claims.clear();
    if (!member.requests.empty()) made.claims.push_back(ClaimOf(member, made.pod.name));
    if (member.shares >= 0) {
      made.claims.push_back(gang.members[static_cast<std::size_t>(member.shares)].claims.front());
    }
    if (member.nodes == ~0U) continue;
    std::vector<std::string> names;
    for (std::size_t n = 0; n < one.nodes.size(); ++n) {
      if ((member.nodes >> n & 1U) != 0) names.push_back(one.nodes[n].name);
    }
    kube::NodeTerms terms = {
        {{.key = "kubernetes.io/hostname", .op = NodeOperator::kIn, .values = std::move(names)}}};
    if (i % 2 == 0) {
      made.node.any_term = std::move(terms);
    } else {
      made.node.volumes = {{.claim = "data", .nodes = std::move(terms)}};
    }
  }
  return std::make_shared<const GangSpec>(std::move(gang));
}

std::string FaultOf(const GangCase& one, const Placement& placement) {
  if (placement.members.size() != one.members.size()) return "not every pod is placed";
  std::map<std::string, Mask> taken;
  Nodes nodes;
  for (std::size_t i = 0; i < one.members.size(); ++i) {
    const MemberPlacement& placed = placement.members[i];
    const OracleMember& member = one.members[i];
    if (placed.rank != static_cast<int>(i)) return "ranks are not in order";
    std::size_t node = 0;
    while (node < one.nodes.size() && one.nodes[node].name != placed.node) ++node;
    if (node == one.nodes.size() || (member.nodes >> node & 1U) == 0) {
      return fmt::format("pod {} may not be on \"{}\"", i, placed.node);
    }
    nodes.push_back(node);
    if (member.shares >= 0 &&
        placement.members[static_cast<std::size_t>(member.shares)].node != placed.node) {
      return "pods that share a claim are apart";
    }
    if (auto fault = ClaimFault(one, i, placed, taken[placed.node]); !fault.empty()) return fault;
    if ((taken[placed.node] & ~FreeOn(one.nodes[node], OracleFleet::kNow)) != 0) {
      return "a chip that is not free";
    }
  }
  if (!KeepsAll(one, nodes)) return "a rule about places is broken";
  if (placement.slices.size() != (one.has_shape() ? static_cast<std::size_t>(one.slices) : 0)) {
    return "another number of boxes";
  }
  return BoxFault(one, placement);
}

std::string GangCase::ToString() const {
  std::string text;
  for (const OracleNode& node : nodes) {
    text += fmt::format("  {} {} z={} busy={:#06x} broken={:#06x} rack={}\n", node.name,
                        domains[node.domain].ultra ? fmt::format("us-{}", node.domain) : "lone",
                        node.z, node.busy, node.broken, node.rack);
  }
  if (has_shape()) text += fmt::format("  shape {} slices {}\n", fmt::join(shape, "x"), slices);
  for (const PlaceRule& rule : rules) {
    text += fmt::format("  {} askers={} selected={} places={} one={} skew={} least={} outside={}\n",
                        rule.Describe(), rule.askers, rule.selected, rule.places, rule.one_place,
                        rule.max_skew, rule.min_places, rule.counts);
  }
  for (const OracleMember& member : members) {
    text += fmt::format("  pod on {:#x} match={} shares={}", member.nodes & 0x3fU,
                        member.match == 0 ? '-' : member.match, member.shares);
    for (const OracleRequest& request : member.requests) {
      text += " [";
      for (const OracleAlternative& one : request.alternatives) {
        text += fmt::format(" {} of {}..{}", one.count, one.first, one.last);
      }
      text += " ]";
    }
    text += "\n";
  }
  return text;
}

}  // namespace tahoma::controller
