#include "controller/plan/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr torus::ChipMask kInstance = 0xffff;
// Units whose boxes are compared to find the nearest miss.
constexpr std::size_t kUnitsCompared = 512;
constexpr std::size_t kBlockersMax = 5;

std::string Plural(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// Chips of `mask` by who holds them, most first.
std::vector<std::string> Blockers(const ClusterState& state, const UnitState& unit,
                                  torus::ChipMask mask) {
  std::map<std::string, std::set<int>> chips;
  for (int z = 0; z < hw::kUltraServerNodes; ++z) {
    const NodeId id = unit.nodes[static_cast<std::size_t>(z)];
    if (!id.valid()) continue;
    const NodeState& node = state.node(id);
    for (const auto& holding : node.holdings) {
      for (const Holding::HeldDevice& held : holding->devices) {
        if (held.admin_access || held.node != node.node->name) continue;
        const DeviceRole role = node.node->RoleNamed(held.device);
        if (role.kind == DeviceKind::kOther) continue;
        for (int chip = 0; chip < kChipsPerNode; ++chip) {
          const bool holds = role.kind == DeviceKind::kNode || role.chip == chip;
          const int bit = 16 * z + chip;
          if (holds && (mask >> bit & 1) != 0) chips[holding->holder].insert(bit);
        }
      }
    }
  }
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (const auto& [holder, held] : chips) sorted.emplace_back(held.size(), holder);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  for (const auto& [count, holder] : sorted) {
    if (texts.size() == kBlockersMax) break;
    texts.push_back(fmt::format("{} ({})", holder, Plural(count, "chip")));
  }
  return texts;
}

// The free box with the most chips.
const torus::Box* LargestFree(const UnitState& unit) {
  const torus::Box* largest = nullptr;
  for (const torus::Box& box : torus::BoxTable::Of(unit.shape()).all()) {
    if ((box.mask & ~unit.free) != 0 || unit.down.Intersects(box.links)) continue;
    if (largest == nullptr || torus::ChipCount(box.mask) > torus::ChipCount(largest->mask)) {
      largest = &box;
    }
  }
  return largest;
}

// Without names: gangs that ask for the same share the text.
std::string PodText(const CompiledGang& gang, std::size_t member) {
  if (gang.members.size() == 1) return "the pod";
  return fmt::format("the pod of rank {}", member);
}

struct Miss {
  UnitId unit;
  torus::ChipMask mask = 0;  // what the gang would take there
  int busy = 65;             // of these, chips that are not free
};

void Finish(const ClusterState& state, const std::optional<Miss>& miss, Blocked& why) {
  if (!miss) return;
  const UnitState& unit = state.unit(miss->unit);
  why.blockers = Blockers(state, unit, miss->mask & ~unit.free);
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

// Nothing has what the claims select, however free it is.
Blocked ExplainNoHardware(const CompiledGang& gang, std::size_t member, const Obstacle& obstacle,
                          const ClusterState& state) {
  if (!obstacle.selector_error.ok()) {
    return Refused(BlockedReason::kNeverFits,
                   fmt::format("no node has the devices that {} asks for: {}",
                               PodText(gang, member), Message(obstacle.selector_error)));
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

// No unit has nodes on which the members fill a box, however free they are.
Blocked ExplainNoUnit(const CompiledGang& gang, const Obstacle& obstacle,
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
  return ExplainNoHardware(gang, static_cast<std::size_t>(obstacle.box) * gang.members_per_box(),
                           obstacle, state);
}

Blocked ExplainBoxes(const CompiledGang& gang, Search& search, const ClusterState& state) {
  const Obstacle obstacle = search.obstacle();
  // What no free room would cure is said first, and the same however busy the fleet is.
  for (int box = 0; box < gang.boxes; ++box) {
    if (!search.BoxIsPossible(gang, box)) return ExplainNoUnit(gang, search.obstacle(), state);
  }
  std::size_t eligible = 0;
  std::size_t able = 0;
  std::optional<Miss> miss;
  const torus::Box* largest = nullptr;
  UnitId largest_unit;
  for (std::size_t i = 0; i < state.unit_count(); ++i) {
    const UnitState& unit = state.unit(UnitId(i));
    std::vector<torus::Shape> sizes;
    for (const NodeId node : unit.nodes) {
      if (!node.valid() || !sizes.empty() || !unit.torus_known) continue;
      sizes = search.SizesOn(gang, obstacle.box, *state.node(node).node);
    }
    if (sizes.empty()) continue;
    if (++eligible > kUnitsCompared && able > 0) continue;
    const torus::Box* free = LargestFree(unit);
    if (free != nullptr &&
        (largest == nullptr || torus::ChipCount(free->mask) > torus::ChipCount(largest->mask))) {
      largest = free;
      largest_unit = UnitId(i);
    }
    bool fits = false;
    for (const torus::Shape& shape : gang.shapes) {
      for (const torus::Box& box : torus::BoxTable::Of(unit.shape()).Rotations(shape)) {
        if (std::find(sizes.begin(), sizes.end(), box.size) == sizes.end()) continue;
        if ((box.mask & ~unit.present) != 0 || unit.down.Intersects(box.links)) continue;
        fits = true;
        const int busy = torus::ChipCount(box.mask & ~unit.free);
        if (!miss || busy < miss->busy) miss = Miss{UnitId(i), box.mask, busy};
      }
    }
    able += fits ? 1U : 0U;
  }
  if (eligible == 0) return ExplainNoUnit(gang, obstacle, state);
  Blocked why;
  why.reason = able == 0 ? BlockedReason::kNeverFits : BlockedReason::kWaitsForCapacity;
  why.units_tried = static_cast<int>(obstacle.units_tried);
  why.units_eligible = static_cast<int>(eligible);
  why.message = fmt::format("needs {}", gang.Describe());
  if (gang.boxes > 1) why.message += fmt::format(", found {} of {}", obstacle.box, gang.boxes);
  why.message += able == 0 ? fmt::format(
                                 "; {} of the right kind, but none has such a box with all chips "
                                 "and links working",
                                 Plural(eligible, "unit"))
                           : fmt::format("; {} could hold it", Plural(eligible, "unit"));
  if (largest != nullptr) {
    why.largest_free = largest->size;
    why.largest_free_unit = state.unit(largest_unit).name;
    why.message += fmt::format("; the largest free box is {} on {}", largest->size.ToString(),
                               why.largest_free_unit);
  } else {
    why.message += "; no chip of them is free";
  }
  if (able > 0) Finish(state, miss, why);
  return why;
}

// The same node with nothing held.
Room EmptyRoom(const NodeState& node) {
  NodeState empty;
  empty.node = node.node;
  return RoomOf(empty);
}

Blocked ExplainMember(const CompiledGang& gang, Search& search, MemberFitter& fitter,
                      const ClusterState& state) {
  const Obstacle obstacle = search.obstacle();
  const CompiledMember& member = gang.members[obstacle.member];
  std::size_t eligible = 0;
  std::size_t admitted = 0;
  std::size_t able = 0;
  int most_free = -1;
  std::string most_free_node;
  std::optional<Miss> miss;
  std::map<const NodeFamily*, bool> fits_empty;
  for (std::size_t i = 0; i < state.node_count(); ++i) {
    const NodeState& node = state.node(NodeId(i));
    if (node.node == nullptr || !search.DemandOf(member, *node.node)) continue;
    ++eligible;
    if (!node.node->schedulable || !member.spec->node.Admits(*node.node)) continue;
    ++admitted;
    const auto known = fits_empty.find(node.node->family.get());
    const bool fits = known != fits_empty.end() && !member.reads_place
                          ? known->second
                          : fitter.Fit(member, EmptyRoom(node)).has_value();
    fits_empty[node.node->family.get()] = fits;
    if (!fits || !node.unit.valid()) continue;
    ++able;
    const UnitState& unit = state.unit(node.unit);
    const torus::ChipMask chips = kInstance << (16 * node.z);
    const int free = torus::ChipCount(unit.free & chips);
    if (free <= most_free) continue;
    most_free = free;
    most_free_node = node.node->name;
    miss = Miss{node.unit, unit.present & chips, 0};
  }
  if (eligible == 0) return ExplainNoHardware(gang, obstacle.member, obstacle, state);
  const std::string pod = PodText(gang, obstacle.member);
  if (admitted == 0) {
    return Refused(
        BlockedReason::kNeverFits,
        fmt::format("{} the devices that {} asks for, but its node selector, node "
                    "affinity or tolerations, or cordons, leave none of them",
                    eligible == 1 ? "1 node has" : fmt::format("{} nodes have", eligible), pod));
  }
  if (able == 0) {
    return Refused(BlockedReason::kNeverFits,
                   fmt::format("{}: no node can meet all its requests and constraints at once, "
                               "even with nothing running ({} tried)",
                               pod, Plural(admitted, "node")));
  }
  Blocked why;
  why.units_tried = static_cast<int>(obstacle.units_tried);
  why.units_eligible = static_cast<int>(able);
  const auto demand = search.DemandOf(member, *state.node(*state.FindNode(most_free_node)).node);
  const std::string amount = demand->cores > 0
                                 ? Plural(static_cast<std::size_t>(demand->cores), "logical core")
                                 : Plural(static_cast<std::size_t>(demand->chips), "chip");
  why.message =
      fmt::format("{} needs {} of one node; {} could give them, the most free chips are {} on {}",
                  pod, amount, Plural(able, "node"), most_free, most_free_node);
  Finish(state, miss, why);
  return why;
}

}  // namespace

Blocked ExplainInvalid(const absl::Status& status) {
  return Refused(BlockedReason::kInvalid, std::string(Message(status)));
}

Blocked Explain(const CompiledGang& gang, Search& search, MemberFitter& fitter,
                const ClusterState& state) {
  const Obstacle& obstacle = search.obstacle();
  const std::string& pinned = gang.members[obstacle.member].pinned_node;
  if (!pinned.empty()) {
    return Refused(BlockedReason::kWaitsForCapacity,
                   fmt::format("{} has a claim that is allocated on node {}, which cannot give "
                               "it the rest now",
                               PodText(gang, obstacle.member), pinned));
  }
  if (!gang.shapes.empty()) return ExplainBoxes(gang, search, state);
  return ExplainMember(gang, search, fitter, state);
}

}  // namespace tahoma::controller
