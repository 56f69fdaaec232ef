#include "controller/plan/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "controller/plan/causes.h"
#include "controller/plan/fleet_view.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// How many domains have their boxes compared to find the nearest miss.
constexpr std::size_t kDomainsCompared = 512;
constexpr std::size_t kBlockersMax = 5;

std::string Plural(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// Lists the holders of chips of `mask` with their numbers of chips, most chips first.
std::vector<std::string> Blockers(const ClusterState& state, const DomainState& domain,
                                  torus::ChipMask mask) {
  std::map<std::string, torus::ChipMask> chips;
  for (int z = 0; z < hw::kUltraServerNodes; ++z) {
    const NodeId id = domain.nodes[static_cast<std::size_t>(z)];
    if (!id.valid()) continue;
    const NodeState& node = state.node(id);
    for (const auto& holding : node.holdings) {
      for (const Holding::HeldDevice& held : holding->devices) {
        if (held.admin_access || held.node != node.node->name) continue;
        const torus::ChipMask its = torus::ChipMask{node.node->ChipsNamed(held.device)} << (16 * z);
        if ((its & mask) != 0) chips[holding->holder] |= its & mask;
      }
    }
  }
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (const auto& [holder, held] : chips) sorted.emplace_back(torus::ChipCount(held), holder);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  for (const auto& [count, holder] : sorted) {
    if (texts.size() == kBlockersMax) break;
    texts.push_back(fmt::format("{} ({})", holder, Plural(count, "chip")));
  }
  return texts;
}

// Returns the free box with the most chips.
const torus::Box* LargestFree(const DomainState& domain) {
  const torus::Box* largest = nullptr;
  for (const torus::Box& box : torus::BoxTable::Of(domain.shape()).all()) {
    if ((box.mask & ~domain.free) != 0 || domain.down.Intersects(box.links)) continue;
    if (!domain.modes.Serve(box)) continue;
    if (largest == nullptr || torus::ChipCount(box.mask) > torus::ChipCount(largest->mask)) {
      largest = &box;
    }
  }
  return largest;
}

// Names the pod by its rank, not by its name: gangs with equal requests share the text.
std::string PodText(const CompiledGang& gang, std::size_t member) {
  if (gang.members.size() == 1) return "the pod";
  return fmt::format("the pod of rank {}", member);
}

struct Miss {
  DomainId domain;
  torus::ChipMask mask = 0;  // the chips that the gang would take there
  int busy = 65;             // chips of `mask` that are not free
};

void Finish(const ClusterState& state, const std::optional<Miss>& miss, Blocked& why) {
  if (!miss) return;
  const DomainState& domain = state.domain(miss->domain);
  why.blockers = Blockers(state, domain, miss->mask & ~domain.free);
  if (!why.blockers.empty()) {
    why.message += fmt::format("; in the way: {}", fmt::join(why.blockers, ", "));
  }
}

Blocked Refused(BlockedReason reason, std::string message) {
  Blocked why;
  why.reason = reason;
  why.message = std::move(message);
  return why;
}

// Returns the error of a selector on the first node that has one.
absl::Status SelectorError(const CompiledMember& member, MemberFitter& fitter,
                           const ClusterState& state) {
  absl::Status error;
  for (std::size_t i = 0; i < state.node_count() && error.ok(); ++i) {
    const NodeState& node = state.node(NodeId(i));
    if (node.node != nullptr) fitter.DemandOn(member, *node.node, error);
  }
  return error;
}

// Explains a gang whose claims select nothing on any node, however free.
Blocked ExplainNoHardware(const CompiledGang& gang, std::size_t member, const Obstacle& obstacle,
                          MemberFitter& fitter, const ClusterState& state) {
  if (!obstacle.selector_error.ok()) {
    const absl::Status error = SelectorError(gang.members[member], fitter, state);
    if (!error.ok()) {
      return Refused(BlockedReason::kNeverFits,
                     fmt::format("no node has the devices that {} asks for: {}",
                                 PodText(gang, member), Message(error)));
    }
  }
  std::string asked;
  for (const CompiledClaim& claim : gang.members[member].claims) {
    for (const CompiledRequest& request : claim.requests) {
      const DeviceRequest& first = *request.alternatives.front().spec;
      asked += fmt::format("{}{} of class {}", asked.empty() ? "" : " and ",
                           first.mode == AllocationMode::kAll
                               ? "all devices"
                               : Plural(static_cast<std::size_t>(first.count), "device"),
                           first.device_class);
      if (!first.selectors.empty()) {
        asked += fmt::format(" with {}", fmt::join(first.selectors, " and "));
      }
    }
  }
  return Refused(BlockedReason::kNeverFits,
                 fmt::format("{} asks for {}; none of {} has that many that match",
                             PodText(gang, member), asked, Plural(state.Count().nodes, "node")));
}

// Explains a gang whose members fill no box on the nodes of any domain, however free.
Blocked ExplainNoDomain(const CompiledGang& gang, const Obstacle& obstacle, MemberFitter& fitter,
                        const ClusterState& state) {
  if (obstacle.chips_mismatch) {
    return Refused(BlockedReason::kInvalid,
                   fmt::format("the claims of the pods of one box ask for {} chips, but {} has {}",
                               obstacle.chips_mismatch->first, gang.shapes.front().ToString(),
                               obstacle.chips_mismatch->second));
  }
  if (obstacle.spans_nodes) {
    return Refused(
        BlockedReason::kInvalid,
        fmt::format("no rotation of {} leaves each of {} within one node",
                    gang.shapes.front().ToString(), Plural(gang.members_per_box(), "pod")));
  }
  return ExplainNoHardware(gang, obstacle.member, obstacle, fitter, state);
}

// Counts how many domains could take the box, by rising demands.
struct BoxSurvey {
  std::size_t domains = 0;  // domains that have the devices
  std::size_t known = 0;    // domains with known links, among `domains`
  std::size_t large = 0;    // domains in which the shape fits, among `known`
  std::size_t working = 0;  // domains with such a box that works, among `large`
  std::size_t able = 0;     // domains whose nodes admit the pods when all is free, among `working`
  // Large domains that only the UltraServer's mode excludes, and the part of these domains that
  // another mode could serve once the election is over or cores are released.
  std::size_t other_mode = 0;
  std::size_t mode_may_change = 0;
  DomainId mode_domain;   // a domain of other_mode
  std::size_t boxes = 0;  // the most that the large domains hold when all is free
  // Large domains with such a box for the pods if everything is repaired, and the most boxes that
  // these domains hold.
  std::size_t repairable = 0;
  std::size_t boxes_repaired = 0;
  std::optional<Miss> miss;  // the nearest
  const torus::Box* largest = nullptr;
  DomainId largest_domain;
};

// Returns the box's pods. Pods with equal requests are listed once.
std::vector<const CompiledMember*> PodsOf(const CompiledGang& gang, int box) {
  std::vector<const CompiledMember*> pods;
  std::set<std::size_t> seen;
  const std::size_t first = static_cast<std::size_t>(box) * gang.members_per_box();
  for (std::size_t i = first; i < first + gang.members_per_box(); ++i) {
    if (seen.insert(gang.members[i].alike).second) pods.push_back(&gang.members[i]);
  }
  return pods;
}

// Returns why the node lacks what the pod needs beside chips, with what is in use on the node or,
// without `state`, with nothing in use; "" when nothing of that is lacking.
std::string LacksBesideChips(const CompiledMember& member, const Node& node,
                             const NodeState* state) {
  std::string lacks = LacksFor(*member.spec, node, state == nullptr ? nullptr : state->use.get());
  if (!lacks.empty() || !member.wants_others()) return lacks;
  std::vector<allocate::WantedPtr> others;
  for (const CompiledClaim& claim : member.claims) {
    if (claim.others != nullptr) others.push_back(claim.others);
  }
  return LacksOthersFor(others, node, state == nullptr ? nullptr : state->others.get());
}

// Returns whether the pod takes nothing of the chips.
bool TakesNoChips(const CompiledMember& member) {
  return std::ranges::all_of(member.claims,
                             [](const CompiledClaim& claim) { return claim.requests.empty(); });
}

// Returns the domain's working chips, and the part of them on nodes that admit some pod of the box.
std::pair<torus::ChipMask, torus::ChipMask> Usable(const std::vector<const CompiledMember*>& pods,
                                                   const DomainState& domain,
                                                   const ClusterState& state) {
  torus::ChipMask working = 0;
  torus::ChipMask open = 0;
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid()) continue;
    const Node& node = *state.node(domain.nodes[z]).node;
    const torus::ChipMask chips = torus::ChipMask{node.family->devices->healthy_mask} << (16 * z);
    working |= chips;
    const bool admits =
        node.schedulable() && std::any_of(pods.begin(), pods.end(), [&](const CompiledMember* pod) {
          return pod->spec->node.Admits(node) && LacksBesideChips(*pod, node, nullptr).empty();
        });
    if (admits) open |= chips;
  }
  return {working, open};
}

// Returns the chips on nodes that would admit some pod of the box if all nodes were repaired.
torus::ChipMask UsableWhenRepaired(const std::vector<const CompiledMember*>& pods,
                                   const DomainState& domain, const ClusterState& state) {
  torus::ChipMask chips = 0;
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid()) continue;
    const Node& node = *state.node(domain.nodes[z]).node;
    const bool admits = std::any_of(pods.begin(), pods.end(), [&](const CompiledMember* pod) {
      return AdmitsWhenReady(pod->spec->node, node) &&
             LacksBesideChips(*pod, node, nullptr).empty();
    });
    if (admits) chips |= torus::ChipMask{node.family->devices->chip_mask} << (16 * z);
  }
  return chips;
}

// Returns "us-0 (z=0,1 elected X2V, X1; z=2,3 electing)".
std::string ModesText(const DomainState& domain, const ClusterState& state) {
  std::map<std::string, std::vector<int>> nodes;
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid() || !state.node(domain.nodes[z]).node->elected) continue;
    const ElectedModes& elected = *state.node(domain.nodes[z]).node->elected;
    std::vector<std::string_view> names;
    for (const hw::UltraServerMode mode : elected.offered) names.push_back(hw::ModeName(mode));
    std::string text = fmt::format("elected {}", fmt::join(names, ", "));
    if (elected.chosen != hw::UltraServerMode::kUnset) {
      text = fmt::format("chosen {}", hw::ModeName(elected.chosen));
    }
    if (elected.running) text = "electing";
    nodes[text].push_back(static_cast<int>(z));
  }
  std::string all;
  for (const auto& [text, places] : nodes) {
    all += fmt::format("{}z={} {}", all.empty() ? "" : "; ", fmt::join(places, ","), text);
  }
  return fmt::format("{} ({})", domain.name, all);
}

void SurveyDomain(const CompiledGang& gang, const std::vector<const CompiledMember*>& pods,
                  const std::vector<torus::Shape>& sizes, DomainId id, const ClusterState& state,
                  BoxSurvey& survey) {
  const DomainState& domain = state.domain(id);
  const auto [working, open] = Usable(pods, domain, state);
  survey.boxes +=
      static_cast<std::size_t>(torus::ChipCount(open) / std::max(1, gang.chips_per_box()));
  const torus::ChipMask repaired = UsableWhenRepaired(pods, domain, state);
  survey.boxes_repaired +=
      static_cast<std::size_t>(torus::ChipCount(repaired) / std::max(1, gang.chips_per_box()));
  if (++survey.large > kDomainsCompared && survey.able > 0) return;
  bool repairable = false;
  const torus::Box* free = LargestFree(domain);
  if (free != nullptr && (survey.largest == nullptr ||
                          torus::ChipCount(free->mask) > torus::ChipCount(survey.largest->mask))) {
    survey.largest = free;
    survey.largest_domain = id;
  }
  bool works = false;
  bool fits = false;
  bool other_mode = false;
  bool mode_may_change = false;
  for (const torus::Shape& shape : gang.shapes) {
    for (const torus::Box& place : torus::BoxTable::Of(domain.shape()).Rotations(shape)) {
      if (std::find(sizes.begin(), sizes.end(), place.size) == sizes.end()) continue;
      repairable = repairable || ((place.mask & ~repaired) == 0 && domain.modes.Serve(place));
      if ((place.mask & ~working) != 0) continue;
      if (!domain.modes.Serve(place)) {
        other_mode = true;
        mode_may_change = mode_may_change || MayServe(domain, place, state);
        continue;
      }
      if (domain.down.Intersects(place.links)) continue;
      works = true;
      if ((place.mask & ~open) != 0) continue;
      fits = true;
      const int busy = torus::ChipCount(place.mask & ~domain.free);
      if (!survey.miss || busy < survey.miss->busy) survey.miss = Miss{id, place.mask, busy};
    }
  }
  if (other_mode && !works) {
    if (survey.other_mode == 0 || (mode_may_change && survey.mode_may_change == 0)) {
      survey.mode_domain = id;
    }
    ++survey.other_mode;
    survey.mode_may_change += mode_may_change ? 1U : 0U;
  }
  survey.repairable += repairable ? 1U : 0U;
  survey.working += works ? 1U : 0U;
  survey.able += fits ? 1U : 0U;
}

BoxSurvey Survey(const CompiledGang& gang, int box, Search& search, const ClusterState& state) {
  BoxSurvey survey;
  const std::vector<const CompiledMember*> pods = PodsOf(gang, box);
  for (std::size_t i = 0; i < state.domain_count(); ++i) {
    const DomainState& domain = state.domain(DomainId(i));
    std::vector<torus::Shape> sizes;
    for (const NodeId node : domain.nodes) {
      if (node.valid() && sizes.empty()) sizes = search.SizesOn(gang, box, *state.node(node).node);
    }
    if (sizes.empty()) continue;
    ++survey.domains;
    if (!domain.torus_known) continue;
    ++survey.known;
    const torus::BoxTable& table = torus::BoxTable::Of(domain.shape());
    const bool large = std::any_of(gang.shapes.begin(), gang.shapes.end(),
                                   [&](const torus::Shape& shape) { return table.Fits(shape); });
    if (large) SurveyDomain(gang, pods, sizes, DomainId(i), state, survey);
  }
  return survey;
}

// Counts why each node is in no such box. A node that admits some pod of the box has no cause.
Causes CausesOf(const CompiledGang& gang, int box, const ClusterState& state) {
  const std::vector<const CompiledMember*> pods = PodsOf(gang, box);
  Causes causes;
  for (std::size_t i = 0; i < state.node_count(); ++i) {
    const auto& node = state.node(NodeId(i)).node;
    if (node == nullptr) continue;
    std::string cause;
    bool open = false;
    for (const CompiledMember* pod : pods) {
      const std::string closed = CauseOf(pod->spec->node, *node);
      const std::string why =
          closed.empty() ? LacksBesideChips(*pod, *node, &state.node(NodeId(i))) : closed;
      open = open || why.empty();
      if (cause.empty()) cause = why;
    }
    const NodeTemplate& devices = *node->family->devices;
    if (open) {
      cause = devices.healthy_mask == devices.chip_mask ? "in domains without such a box"
                                                        : "with unhealthy chips";
    }
    causes.Add(cause);
  }
  return causes;
}

// Explains why no domain could hold the box even with nothing running; empty when a domain could.
std::string NeverBecause(const CompiledGang& gang, int box, const BoxSurvey& survey,
                         const ClusterState& state) {
  const std::string have =
      fmt::format("; {} {} its devices, but none is", Plural(survey.domains, "domain"),
                  survey.domains == 1 ? "has" : "have");
  if (survey.known == 0) return have + " of an instance type whose chips form boxes";
  if (survey.large == 0) return have + " that large";
  if (survey.working == 0 && survey.mode_may_change > 0) return "";
  if (survey.working == 0 && survey.other_mode > 0) {
    return fmt::format("; {} of the right kind, but no UltraServer mode allows it there: {}",
                       Plural(survey.large, "domain"),
                       ModesText(state.domain(survey.mode_domain), state));
  }
  if (survey.working == 0) {
    return fmt::format(
        "; {} of the right kind, but none has such a box with all chips and links working",
        Plural(survey.large, "domain"));
  }
  if (survey.able == 0) {
    return fmt::format("; {} could hold it, but none admits it: {}",
                       Plural(survey.working, "domain"), CausesOf(gang, box, state).ToString());
  }
  if (survey.boxes < static_cast<std::size_t>(gang.boxes)) {
    return fmt::format(
        "; the {} of the right kind {} room for {} of them, even with nothing running",
        Plural(survey.large, "domain"), survey.large == 1 ? "has" : "have", survey.boxes);
  }
  return "";
}

// Explains why there is no box around the chips that allocated claims of its pods hold.
Blocked ExplainKept(const CompiledGang& gang, const Obstacle& obstacle, const Kept& kept,
                    Search& search, const ClusterState& state) {
  std::string needs = fmt::format("needs {}", gang.Describe());
  if (gang.boxes > 1) needs += fmt::format(", found {} of {}", obstacle.boxes_found, gang.boxes);
  needs += "; claims of its pods that are allocated already hold ";
  if (!kept.boxable) {
    return Refused(BlockedReason::kNeverFits,
                   needs +
                       "devices of several domains, logical cores or devices of a node that is "
                       "gone, which no box contains");
  }
  const DomainState& domain = state.domain(kept.domain);
  needs += fmt::format("{} of {}",
                       Plural(static_cast<std::size_t>(torus::ChipCount(kept.chips)), "chip"),
                       domain.name);
  const torus::ChipMask open = Usable(PodsOf(gang, obstacle.box), domain, state).second;
  std::optional<Miss> miss;
  for (const torus::Shape& shape : gang.shapes) {
    for (const torus::Box& place : torus::BoxTable::Of(domain.shape()).Rotations(shape)) {
      if ((place.mask & ~open) != 0 || !search.Contains(gang, obstacle.box, domain, place))
        continue;
      if (domain.down.Intersects(place.links) || !domain.modes.Serve(place)) continue;
      const int busy = torus::ChipCount(place.mask & ~(domain.free | kept.chips));
      if (!miss || busy < miss->busy) miss = Miss{kept.domain, place.mask & ~kept.chips, busy};
    }
  }
  if (!miss) {
    return Refused(BlockedReason::kNeverFits,
                   needs +
                       ", and no such box there contains them in the order of its pods and "
                       "works, with nodes that are open to them");
  }
  Blocked why = Refused(BlockedReason::kWaitsForCapacity,
                        needs + ", and no such box there that contains them is free");
  why.domains_tried = static_cast<int>(obstacle.domains_tried);
  why.domains_eligible = 1;
  Finish(state, miss, why);
  return why;
}

Blocked ExplainBoxes(const CompiledGang& gang, Search& search, MemberFitter& fitter,
                     const ClusterState& state) {
  const Obstacle obstacle = search.obstacle();
  // A reason that no free room would remove comes first, and does not depend on how busy the fleet
  // is.
  for (int box = 0; box < gang.boxes; ++box) {
    if (!search.BoxIsPossible(gang, box)) {
      return ExplainNoDomain(gang, search.obstacle(), fitter, state);
    }
  }
  const Kept& kept = search.KeptOf(obstacle.box);
  if (kept.domain.valid() || !kept.boxable) return ExplainKept(gang, obstacle, kept, search, state);
  const BoxSurvey survey = Survey(gang, obstacle.box, search, state);
  if (survey.domains == 0) return ExplainNoDomain(gang, search.obstacle(), fitter, state);
  Blocked why;
  why.domains_tried = static_cast<int>(obstacle.domains_tried);
  why.domains_eligible = static_cast<int>(survey.large);
  if (survey.largest != nullptr) {
    why.largest_free = survey.largest->size;
    why.largest_free_domain = state.domain(survey.largest_domain).name;
  }
  why.message = fmt::format("needs {}", gang.Describe());
  if (gang.boxes > 1)
    why.message += fmt::format(", found {} of {}", obstacle.boxes_found, gang.boxes);
  if (const std::string never = NeverBecause(gang, obstacle.box, survey, state); !never.empty()) {
    const bool repairable =
        survey.repairable > 0 && survey.boxes_repaired >= static_cast<std::size_t>(gang.boxes);
    why.reason = repairable ? BlockedReason::kWaitsForRepair : BlockedReason::kNeverFits;
    why.message += never;
    return why;
  }
  if (survey.working == 0) {
    why.message += fmt::format("; {} could hold it, but not in the UltraServer mode of now: {}",
                               Plural(survey.mode_may_change, "domain"),
                               ModesText(state.domain(survey.mode_domain), state));
    return why;
  }
  why.message += fmt::format("; {} could hold it; ", Plural(survey.large, "domain"));
  if (survey.other_mode > 0) {
    why.message +=
        fmt::format("{} in another UltraServer mode; ", Plural(survey.other_mode, "more domain"));
  }
  why.message += why.largest_free
                     ? fmt::format("the largest free box is {} on {}", why.largest_free->ToString(),
                                   why.largest_free_domain)
                     : "no chip of them is free";
  // Where a box is free and yet not taken, its nodes lack something else.
  if (survey.miss && survey.miss->busy == 0) {
    why.message += "; " + CausesOf(gang, obstacle.box, state).ToString();
  }
  Finish(state, survey.miss, why);
  return why;
}

// Counts how many nodes could take a member, by rising demands.
struct NodeSurvey {
  std::size_t eligible = 0;       // nodes that have the devices
  std::size_t admitted = 0;       // eligible nodes that admit the pod
  std::size_t able = 0;           // admitted nodes that fit the pod when all is free
  std::size_t other_mode = 0;     // admitted nodes that elected no mode of the wanted size
  std::size_t pods = 0;           // the most such pods on the able nodes when all is free
  std::size_t pods_repaired = 0;  // the same, were everything repaired too
  Causes causes;                  // one per node
  bool closed = false;            // some Node objects keep the pod away
  bool lacking = false;           // some node lacks cpu, memory, ports, …
  int most_free = -1;             // free chips
  std::string most_free_node;     // of the nodes that fit the pod
  int nearest_free = -1;          // free chips of the nearest miss
  std::optional<Miss> miss;
};

// Returns the most such members that `mask`'s chips of the node hold when everything is free.
std::size_t PodsOn(const Node& node, std::uint16_t mask, const MemberFitter::Demand& demand) {
  const int chips = std::popcount(mask);
  const hw::InstanceType* type = node.family->type;
  const int per_chip = type == nullptr ? kCoresPerChip : type->chip->physical_cores;
  if (demand.cores > 0) {
    return static_cast<std::size_t>(chips * per_chip / (demand.lnc1 ? 1 : 2) / demand.cores);
  }
  return static_cast<std::size_t>(chips / std::max(1, demand.chips));
}

// By all that nodes alike have in common.
using FitsByFamily = std::map<std::pair<const NodeFamily*, const kube::Amounts*>, bool>;

NodeSurvey Survey(const CompiledGang& gang, std::size_t rank, Search& search, MemberFitter& fitter,
                  const ClusterState& state) {
  const CompiledMember& member = search.members()[rank];
  NodeSurvey survey;
  FitsByFamily empty;
  FitsByFamily repaired;
  const auto pinned = search.PinnedDomains(member);
  for (std::size_t i = 0; i < state.node_count(); ++i) {
    const NodeState& node = state.node(NodeId(i));
    if (node.node == nullptr) continue;
    const NodeDemand& wants = gang.members[rank].spec->node;
    const std::string cause = CauseOf(wants, *node.node);
    survey.closed = survey.closed || !cause.empty();
    const bool may = !pinned || std::binary_search(pinned->begin(), pinned->end(), node.domain);
    const auto demand = may ? search.DemandOf(member, *node.node) : std::nullopt;
    if (!demand) {
      survey.causes.Add(cause.empty() ? "without devices that match" : cause);
      continue;
    }
    ++survey.eligible;
    const bool alone = member.nodes != 0 || search.FitReadsOwn(member, *node.node);
    const auto fits = [&](FitsByFamily& known, const Room& room) {
      const std::pair kind(node.node->family.get(), node.node->allocatable.get());
      const auto found = known.find(kind);
      if (found != known.end() && !alone) return found->second;
      return known[kind] = fitter.Fit(member, room).has_value();
    };
    const NodeTemplate& devices = *node.node->family->devices;
    const Room room = EmptyRoom(node);
    const bool able = cause.empty() && fits(empty, room);
    const bool repairs =
        able || (AdmitsWhenReady(wants, *node.node) && fits(repaired, RepairedRoom(node)));
    if (repairs) survey.pods_repaired += PodsOn(*node.node, devices.chip_mask, *demand);
    if (!cause.empty()) {
      survey.causes.Add(cause);
      continue;
    }
    ++survey.admitted;
    const std::string lacks = LacksBesideChips(member, *node.node, &node);
    survey.lacking = survey.lacking || !lacks.empty();
    const bool other_mode = member.nodes != 0 && (room.server_sizes & member.nodes) == 0;
    survey.other_mode += other_mode ? 1U : 0U;
    survey.causes.Add(!lacks.empty() ? lacks
                      : able         ? "with too few free chips"
                      : repairs      ? "with unhealthy chips or links"
                                     : "that cannot meet all requests and constraints");
    if (!able || !node.domain.valid()) continue;
    ++survey.able;
    survey.pods += PodsOn(*node.node, devices.healthy_mask, *demand);
    const DomainState& domain = state.domain(node.domain);
    const torus::ChipMask chips = kInstance << (16 * node.z);
    const int free = torus::ChipCount(domain.free & chips);
    const Miss miss{node.domain, domain.present & chips, 0};
    if (free > survey.most_free) {
      survey.most_free = free;
      survey.most_free_node = node.node->name;
      if (survey.nearest_free < 0) survey.miss = miss;
    }
    // Earlier pods of the gang (only rank 0 has none) may have taken chips that are free here: only
    // where too few chips are free do other gangs hold them.
    const bool too_few = rank > 0 && !member.tolerates && free < demand->chips;
    if (!too_few || free <= survey.nearest_free) continue;
    survey.nearest_free = free;
    survey.miss = miss;
  }
  return survey;
}

std::string AmountOf(const MemberFitter::Demand& demand) {
  return demand.cores > 0 ? Plural(static_cast<std::size_t>(demand.cores), "logical core")
                          : Plural(static_cast<std::size_t>(demand.chips), "chip");
}

// Explains why such members can never all fit; empty when they might.
std::string NeverBecause(const CompiledGang& gang, std::size_t rank, const NodeSurvey& survey) {
  const int nodes = gang.members[rank].nodes;
  const std::string pod = PodText(gang, rank);
  if (survey.admitted == 0) {
    return fmt::format(
        "{} the devices that {} asks for, but none admits it: {}",
        survey.eligible == 1 ? "1 node has" : fmt::format("{} nodes have", survey.eligible), pod,
        survey.causes.ToString());
  }
  if (survey.able == 0 && survey.other_mode == survey.admitted) {
    return fmt::format(
        "{} asks for an UltraServer of {} in its UltraServerConfig; {} the devices, but none has "
        "elected a mode for that",
        pod, Plural(static_cast<std::size_t>(nodes), "node"),
        survey.admitted == 1 ? "1 node has" : fmt::format("{} nodes have", survey.admitted));
  }
  if (survey.able == 0) {
    return fmt::format(
        "{}: no node can meet all its requests and constraints at once, even with nothing running "
        "({} tried); {}",
        pod, Plural(survey.admitted, "node"), survey.causes.ToString());
  }
  return "";
}

// Explains a pod without chips: no node has enough cpu, memory and so on for the pod.
Blocked ExplainWithoutChips(const CompiledGang& gang, std::size_t rank, const ClusterState& state) {
  const CompiledMember& member = gang.members[rank];
  const MemberSpec& pod = *member.spec;
  Causes causes;
  bool enough = false;
  bool when_ready = false;
  for (std::size_t i = 0; i < state.node_count(); ++i) {
    const NodeState& node = state.node(NodeId(i));
    if (node.node == nullptr) continue;
    const bool large = LacksBesideChips(member, *node.node, nullptr).empty();
    const std::string cause = CauseOf(pod.node, *node.node);
    enough = enough || (large && cause.empty());
    when_ready = when_ready || (large && AdmitsWhenReady(pod.node, *node.node));
    const std::string lacks = LacksBesideChips(member, *node.node, &node);
    causes.Add(!cause.empty()   ? cause
               : !lacks.empty() ? lacks
                                : "with room, beside pods before it");
  }
  Blocked why;
  why.reason = enough       ? BlockedReason::kWaitsForCapacity
               : when_ready ? BlockedReason::kWaitsForRepair
                            : BlockedReason::kNeverFits;
  why.message = fmt::format("{} finds no node; {}", PodText(gang, rank), causes.ToString());
  return why;
}

Blocked ExplainMember(const CompiledGang& gang, Search& search, MemberFitter& fitter,
                      const ClusterState& state) {
  const Obstacle obstacle = search.obstacle();
  const std::size_t rank = obstacle.member;
  const CompiledMember& member = search.members()[rank];
  if (TakesNoChips(gang.members[rank])) return ExplainWithoutChips(gang, rank, state);
  const NodeSurvey survey = Survey(gang, rank, search, fitter, state);
  if (survey.eligible == 0) return ExplainNoHardware(gang, rank, obstacle, fitter, state);
  // Returns the reason why `pods` such pods do not fit even when everything is free.
  const auto reason_without = [&](std::size_t pods) {
    return survey.pods_repaired >= pods ? BlockedReason::kWaitsForRepair
                                        : BlockedReason::kNeverFits;
  };
  if (const std::string never = NeverBecause(gang, rank, survey); !never.empty()) {
    return Refused(reason_without(1), never);
  }
  // A node that fits the pod has devices, and therefore a domain in which its free chips were
  // counted.
  TAHOMA_CHECK(!survey.most_free_node.empty());
  const auto demand =
      search.DemandOf(member, *state.node(*state.FindNode(survey.most_free_node)).node);
  const std::string amount = AmountOf(*demand);
  const auto alike = static_cast<std::size_t>(std::count_if(
      search.members().begin(), search.members().end(),
      [&](const auto& other) { return other.alike == member.alike && other.pinned_node.empty(); }));
  if (alike > survey.pods && !member.chooses && demand->chips + demand->cores > 0) {
    return Refused(reason_without(alike),
                   fmt::format("{} need {} of one node each; the nodes that have them can hold {} "
                               "of these pods, even with nothing running",
                               Plural(alike, "pod"), amount, survey.pods));
  }
  Blocked why;
  why.domains_tried = static_cast<int>(obstacle.domains_tried);
  why.domains_eligible = static_cast<int>(survey.able);
  why.message = fmt::format("{} needs {} of one node", PodText(gang, rank), amount);
  if (rank > 0) why.message += fmt::format(", beside those of {} before it", Plural(rank, "pod"));
  why.message += fmt::format("; {} could give them, the most free chips are {} on {}",
                             Plural(survey.able, "node"), survey.most_free, survey.most_free_node);
  if (rank == 0 && demand->cores == 0 && survey.most_free >= demand->chips && !survey.lacking) {
    const hw::InstanceType* type =
        state.node(*state.FindNode(survey.most_free_node)).node->family->type;
    why.message += type != nullptr && type->fabric == hw::FabricKind::kRing
                       ? ", but not side by side on its ring with all links working"
                       : ", but not such as its selectors and constraints ask for";
  }
  if (survey.closed || survey.lacking) why.message += "; " + survey.causes.ToString();
  Finish(state, survey.miss, why);
  return why;
}

}  // namespace

Blocked ExplainInvalid(const absl::Status& status) {
  return Refused(BlockedReason::kInvalid, std::string(Message(status)));
}

namespace {

// Adds the hardware that Capacity Blocks keep to the reason.
Blocked WithBlocks(const CompiledGang& gang, const ClusterState& state, Blocked blocked) {
  if (blocked.reason == BlockedReason::kInvalid) return blocked;
  if (!gang.spec->reservation.empty()) {
    blocked.message += fmt::format("; only hardware of Capacity Block {} may be used: {}",
                                   gang.spec->block, fmt::join(gang.spec->block_hosts, ", "));
    return blocked;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < state.domain_count(); ++i) {
    const BlockUse& use = state.domain(DomainId(i)).block;
    if (!use.reservation.empty() || use.kept_from || use.spare) ++kept;
  }
  if (kept > 0) {
    blocked.message += fmt::format("; {} topology domain{} {} kept for Capacity Blocks{}", kept,
                                   kept == 1 ? "" : "s", kept == 1 ? "is" : "are",
                                   gang.spec->max_runtime ? "" : ", without a maxRuntime for good");
  }
  return blocked;
}

}  // namespace

namespace {

// Returns what the nearest miss says of a gang, which Judge then holds against a proof.
Blocked NearestMiss(const CompiledGang& gang, Search& search, MemberFitter& fitter,
                    const ClusterState& state) {
  fitter.StartDecision();
  return gang.shapes.empty() ? ExplainMember(gang, search, fitter, state)
                             : ExplainBoxes(gang, search, fitter, state);
}

std::string WantsText(const CompiledGang& gang) {
  if (!gang.shapes.empty()) return fmt::format("needs {}", gang.Describe());
  return gang.members.size() == 1
             ? "the pod needs a node"
             : fmt::format("the {} need nodes at once", Plural(gang.members.size(), "pod"));
}

// Lists who holds what the gang would get if everything were free.
void AddHolders(const Placement& placement, const ClusterState& state, Blocked& why) {
  if (!why.blockers.empty()) return;
  const auto add = [&](DomainId id, torus::ChipMask mask) {
    const DomainState& domain = state.domain(id);
    for (std::string& one : Blockers(state, domain, mask & ~domain.free)) {
      if (why.blockers.size() < kBlockersMax) why.blockers.push_back(std::move(one));
    }
  };
  for (const SlicePlacement& slice : placement.slices) {
    if (const auto id = state.FindDomain(slice.domain)) add(*id, slice.box.mask);
  }
  std::set<NodeId> seen;
  for (const MemberPlacement& member : placement.members) {
    const auto id = state.FindNode(member.node);
    if (!placement.slices.empty() || !id || !seen.insert(*id).second) continue;
    const NodeState& node = state.node(*id);
    if (node.domain.valid()) add(node.domain, kInstance << (16 * node.z));
  }
}

// Returns whether pods of the gang differ in where they may be or in the hardware they take.
bool IsTied(const CompiledGang& gang) {
  return std::any_of(gang.members.begin(), gang.members.end(), [](const CompiledMember& member) {
    return member.chooses || member.spec->node.ties();
  });
}

// Explains a gang that fits once nothing is held. `why` is the nearest miss.
Blocked WaitsFor(const CompiledGang& gang, Search& search, const Obstacle& obstacle,
                 const ClusterState& state, Blocked why) {
  const bool agrees = why.reason == BlockedReason::kWaitsForCapacity;
  if (agrees && (obstacle.proof.empty() || !IsTied(gang))) return why;
  const ExactAnswer idle = search.Prove(gang, FleetKind::kIdle, WallTime{}, true);
  why.reason = BlockedReason::kWaitsForCapacity;
  if (idle.placement) AddHolders(*idle.placement, state, why);
  why.message = WantsText(gang);
  if (!obstacle.proof.empty()) why.message += "; now " + obstacle.proof;
  if (idle.placement) {
    why.message += fmt::format("; with nothing running, {} would do", idle.placement->ToString());
  }
  if (!why.blockers.empty()) {
    why.message += fmt::format("; in the way: {}", fmt::join(why.blockers, ", "));
  }
  return why;
}

Blocked NotFound(const CompiledGang& gang, std::string_view fleet) {
  return Refused(BlockedReason::kNotFound,
                 fmt::format("{}; not found within the bound of {} steps{}", WantsText(gang),
                             ExactSearch::kStepsMax, fleet));
}

// The boxes of a gang are chosen without regard to the rules: only the best place is tried.
Blocked RulesBroken(const CompiledGang& gang) {
  return Refused(BlockedReason::kNotFound,
                 fmt::format("{}; no place was found that has the shape{}", WantsText(gang),
                             RulesText(gang.spec->rules)));
}

// Gives the nearest miss the reason that is proven, and another text where its own says otherwise.
Blocked Judge(const CompiledGang& gang, Search& search, const Obstacle& obstacle,
              const ClusterState& state, Blocked why) {
  using Kind = ExactAnswer::Kind;
  const ExactAnswer idle = search.Prove(gang, FleetKind::kIdle, WallTime{}, false);
  if (idle.kind == Kind::kPlaced) {
    if (obstacle.bound_reached) return NotFound(gang, "");
    return WaitsFor(gang, search, obstacle, state, std::move(why));
  }
  if (idle.kind == Kind::kBoundReached) return NotFound(gang, ", even with nothing running");
  const ExactAnswer repaired = search.Prove(gang, FleetKind::kRepaired, WallTime{}, false);
  if (repaired.kind == Kind::kBoundReached) {
    return NotFound(gang, ", even with nothing running and everything repaired");
  }
  const bool repairs = repaired.kind == Kind::kPlaced;
  const BlockedReason proven = repairs ? BlockedReason::kWaitsForRepair : BlockedReason::kNeverFits;
  const bool invalid = why.reason == BlockedReason::kInvalid && !repairs;
  const bool ruled = !gang.spec->rules.empty() && !idle.cause.empty();
  if ((why.reason == proven && !ruled) || invalid) return why;
  const bool lasting =
      why.reason == BlockedReason::kWaitsForRepair || why.reason == BlockedReason::kNeverFits;
  if (lasting && !ruled) {
    why.reason = proven;
    return why;
  }
  why.reason = proven;
  why.message = WantsText(gang);
  if (!idle.cause.empty()) why.message += "; " + idle.cause + ", even with nothing running";
  const auto place =
      repairs ? search.Prove(gang, FleetKind::kRepaired, WallTime{}, true).placement : std::nullopt;
  if (place) {
    why.message += fmt::format("; {} would do if it were repaired and free", place->ToString());
  }
  return why;
}

}  // namespace

Blocked Explain(const CompiledGang& gang, Search& search, MemberFitter& fitter,
                const ClusterState& state) {
  const Obstacle obstacle = search.obstacle();
  if (!obstacle.contradiction.ok()) return ExplainInvalid(obstacle.contradiction);
  if (obstacle.rules_broken) return WithBlocks(gang, state, RulesBroken(gang));
  const bool holds = search.HoldsSome(gang);
  const std::string& pinned = search.members()[obstacle.member].pinned_node;
  if (gang.shapes.empty() && !pinned.empty()) {
    return Refused(BlockedReason::kWaitsForCapacity,
                   fmt::format("{} has a claim that is allocated on node {}, which cannot give "
                               "it the rest now",
                               PodText(gang, obstacle.member), pinned));
  }
  Blocked why = NearestMiss(gang, search, fitter, state);
  if (!holds) why = Judge(gang, search, obstacle, state, std::move(why));
  return WithBlocks(gang, state, std::move(why));
}

}  // namespace tahoma::controller
