// Divides the pods of a gang without a shape among nodes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "controller/plan/exact_search.h"
#include "controller/plan/place_keeper.h"

namespace tahoma::controller {
namespace {

using Kind = ExactAnswer::Kind;

// Pods of one node, because they share a claim. Most items are one pod.
struct Item {
  std::vector<std::size_t> members;
  std::size_t type = 0;
};

// Items with equal requests.
struct ItemType {
  std::vector<std::size_t> items;
  std::vector<NodeId> nodes;  // with room for such an item alone; not all when `easy`
  std::vector<int> least;     // by node: the fewest chips that an item takes
  bool easy = false;          // placed after the others, see exact_search.h
};

// A node with the items on it.
struct Used {
  std::vector<std::size_t> items;
  Room left;
};

class NodeAssignment {
 public:
  NodeAssignment(const CompiledGang& gang, const std::vector<CompiledMember>& members,
                 MemberFitter& fitter, const FleetView& view, WallTime now, bool write)
      : gang_(gang),
        members_(members),
        fitter_(fitter),
        view_(view),
        now_(now),
        write_(write),
        keeper_(gang.spec->rules, members.size()) {}

  ExactAnswer Find();

 private:
  void MakeItems();
  // By family, free and unhealthy chips, sizes of UltraServer, and resources.
  using KnownFits = std::map<std::tuple<const NodeFamily*, std::uint16_t, std::uint16_t,
                                        std::uint8_t, const kube::Amounts*, const kube::NodeUse*>,
                             bool>;
  bool FitsAlone(const std::vector<const CompiledMember*>& members, const Room& room,
                 KnownFits& known);
  void FindNodesOf(ItemType& type, std::size_t enough);
  bool Admits(const Item& item, NodeId node) const;
  std::vector<const CompiledMember*> MembersOf(std::span<const std::size_t> items) const;
  void PutEasyLast();
  void CountPlaces();
  // Orders the nodes of each type: nodes of the fewest types first.
  void OrderNodes();
  // Returns whether the flow of hard items by their least chips exists; else fills `answer_`.
  bool FlowExists();
  bool EnoughChips();
  bool Augment(std::size_t type);
  std::vector<std::size_t> RanksOf(std::span<const std::size_t> items) const;
  bool TryFlow();
  bool Next(std::size_t at, std::size_t from);
  bool Put(std::size_t item, NodeId node);
  bool PutByRules(std::size_t item, const Node& node);
  void Take(std::size_t item, NodeId node, std::optional<Used> before);
  bool PlaceEasy();
  std::size_t CapacityOf(std::size_t node) const;
  bool IsLikeAnUntouched(std::span<const NodeId> tried, NodeId next) const;
  std::string ClassOf(std::size_t node) const;
  ExactAnswer Answer(Kind kind);
  std::optional<Placement> MakePlacement();

  const CompiledGang& gang_;
  const std::vector<CompiledMember>& members_;
  MemberFitter& fitter_;
  const FleetView& view_;
  WallTime now_;
  bool write_;
  std::vector<Item> items_;
  std::vector<ItemType> types_;
  std::vector<std::size_t> easy_;  // types, in the order in which they were put aside
  std::vector<std::size_t> hard_;  // items, the fewest nodes first
  std::map<NodeId, Used> used_;
  int steps_ = ExactSearch::kStepsMax;
  // The flow: nodes of hard types, and how many items of each type are on each.
  struct FlowNode {
    NodeId id;
    std::vector<std::pair<std::size_t, int>> types;  // which may be here, and their least chips
    std::map<std::size_t, std::size_t> flow;         // items by type
    std::size_t sum = 0;
    std::size_t capacity = 0;
    bool reached = false;
  };
  std::vector<FlowNode> flow_;
  std::map<NodeId, std::size_t> flow_of_;
  std::map<NodeId, std::string> classes_;
  PlaceKeeper keeper_;
  std::map<std::pair<std::string_view, std::string_view>, int> in_place_;  // flow nodes
  std::vector<char> type_reached_;
  ExactAnswer answer_;
};

void NodeAssignment::MakeItems() {
  std::vector<std::size_t> root(members_.size());
  std::iota(root.begin(), root.end(), 0U);
  const auto find = [&](std::size_t i) {
    while (root[i] != i) i = root[i];
    return i;
  };
  for (std::size_t i = 0; i < members_.size(); ++i) {
    for (const std::size_t other : members_[i].beside) {
      const std::size_t a = find(i);
      const std::size_t b = find(other);
      root[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<std::size_t, std::size_t> item_of_root;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto [at, added] = item_of_root.emplace(find(i), items_.size());
    if (added) items_.emplace_back();
    items_[at->second].members.push_back(i);
  }
  std::map<std::pair<std::size_t, std::string>, std::size_t> type_of_alike;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const CompiledMember& first = members_[items_[i].members.front()];
    const bool plain = items_[i].members.size() == 1 && first.pinned_node.empty();
    std::size_t type = types_.size();
    if (plain) {
      const std::pair key(first.alike, keeper_.PartOf(items_[i].members.front()));
      type = type_of_alike.emplace(key, type).first->second;
    }
    if (type == types_.size()) types_.emplace_back();
    items_[i].type = type;
    types_[type].items.push_back(i);
  }
}

bool NodeAssignment::Admits(const Item& item, NodeId id) const {
  const Node& node = *view_.state().node(id).node;
  return std::all_of(item.members.begin(), item.members.end(), [&](std::size_t i) {
    const CompiledMember& member = members_[i];
    return (member.pinned_node.empty() || member.pinned_node == node.name) &&
           view_.Admits(member.spec->node, node);
  });
}

std::vector<const CompiledMember*> NodeAssignment::MembersOf(
    std::span<const std::size_t> items) const {
  std::vector<const CompiledMember*> members;
  for (const std::size_t item : items) {
    for (const std::size_t i : items_[item].members) members.push_back(&members_[i]);
  }
  return members;
}

// Returns whether the members fit the room. Rooms of one family with equal whole chips fit or fail
// alike, unless selectors read values that differ in the family.
bool NodeAssignment::FitsAlone(const std::vector<const CompiledMember*>& members, const Room& room,
                               KnownFits& known) {
  const auto whole = [](std::uint8_t busy) { return busy == 0 || busy == 0xff; };
  const bool common =
      std::all_of(room.busy_cores.begin(), room.busy_cores.end(), whole) &&
      std::all_of(room.lnc.begin(), room.lnc.end(), [](std::uint8_t lnc) { return lnc == 0; }) &&
      std::none_of(members.begin(), members.end(), [&](const CompiledMember* member) {
        return fitter_.FitReadsOwn(*member, *room.node);
      });
  const KnownFits::key_type key(room.node->family.get(), room.chips, room.unhealthy,
                                room.server_sizes, room.node->allocatable.get(), room.use.get());
  if (const auto found = known.find(key); common && found != known.end()) return found->second;
  const bool fits = fitter_.FitTogether(members, room, false).has_value();
  if (common) known[key] = fits;
  return fits;
}

// Finds nodes with room for an item alone, up to `enough`.
void NodeAssignment::FindNodesOf(ItemType& type, std::size_t enough) {
  const ClusterState& state = view_.state();
  const Item& item = items_[type.items.front()];
  const auto members = MembersOf({&type.items.front(), 1});
  const bool takes = std::any_of(members.begin(), members.end(),
                                 [](const CompiledMember* one) { return !one->claims.empty(); });
  KnownFits known;
  for (std::size_t i = 0; i < state.node_count() && type.nodes.size() < enough; ++i) {
    const NodeState& node = state.node(NodeId(i));
    if (node.node == nullptr || !Admits(item, NodeId(i))) continue;
    if (takes && node.domain.valid() && members.front()->pinned_node.empty() &&
        !view_.MayUse(state.domain(node.domain), *gang_.spec, now_)) {
      continue;
    }
    if (!FitsAlone(members, view_.RoomOn(NodeId(i)), known)) continue;
    int least = 0;
    for (const CompiledMember* member : members) {
      least += fitter_.ChipsOn(*member, *node.node).value_or(MemberFitter::ChipRange{}).least;
    }
    type.nodes.push_back(NodeId(i));
    type.least.push_back(least);
  }
}

// Under rules about places no type is easy: a node with room may be in a place that is closed.
void NodeAssignment::PutEasyLast() {
  if (!keeper_.empty()) return;
  std::size_t left = items_.size();
  for (bool found = true; found;) {
    found = false;
    for (std::size_t t = 0; t < types_.size(); ++t) {
      if (types_[t].easy || types_[t].nodes.size() < left) continue;
      types_[t].easy = true;
      easy_.push_back(t);
      left -= types_[t].items.size();
      found = true;
    }
  }
}

void NodeAssignment::OrderNodes() {
  for (std::size_t t = 0; t < types_.size(); ++t) {
    if (types_[t].easy) continue;
    for (std::size_t i = 0; i < types_[t].nodes.size(); ++i) {
      const auto [at, added] = flow_of_.emplace(types_[t].nodes[i], flow_.size());
      if (added) {
        flow_.emplace_back();
        flow_.back().id = types_[t].nodes[i];
      }
      flow_[at->second].types.emplace_back(t, types_[t].least[i]);
    }
  }
  for (ItemType& type : types_) {
    if (type.easy) continue;
    std::stable_sort(type.nodes.begin(), type.nodes.end(), [&](NodeId a, NodeId b) {
      return flow_[flow_of_.at(a)].types.size() < flow_[flow_of_.at(b)].types.size();
    });
    hard_.insert(hard_.end(), type.items.begin(), type.items.end());
  }
  std::stable_sort(hard_.begin(), hard_.end(), [&](std::size_t a, std::size_t b) {
    const ItemType& left = types_[items_[a].type];
    const ItemType& right = types_[items_[b].type];
    return std::pair(left.nodes.size(), -left.least.front()) <
           std::pair(right.nodes.size(), -right.least.front());
  });
  CountPlaces();
  for (std::size_t n = 0; n < flow_.size(); ++n) {
    flow_[n].capacity = CapacityOf(n);
    classes_[flow_[n].id] = ClassOf(n);
  }
}

void NodeAssignment::CountPlaces() {
  for (const PlaceRule& rule : gang_.spec->rules) {
    for (const FlowNode& node : flow_) {
      const auto& labels = view_.state().node(node.id).node->labels;
      if (const auto* place = kube::FindLabel(labels, rule.key)) ++in_place_[{rule.key, *place}];
    }
  }
}

// Returns the most hard items for the node, by their least chips.
std::size_t NodeAssignment::CapacityOf(std::size_t node) const {
  int free = std::popcount(view_.RoomOn(flow_[node].id).chips);
  std::vector<std::pair<int, std::size_t>> items;
  for (const auto& [type, least] : flow_[node].types) {
    items.emplace_back(least, types_[type].items.size());
  }
  std::sort(items.begin(), items.end());
  std::size_t sum = 0;
  for (const auto& [least, count] : items) {
    const std::size_t fit =
        least == 0 ? count : std::min(count, static_cast<std::size_t>(free / least));
    sum += fit;
    free -= least * static_cast<int>(fit);
  }
  return sum;
}

// Describes the node as the search sees it: equal nodes need one try.
std::string NodeAssignment::ClassOf(std::size_t n) const {
  const NodeId id = flow_[n].id;
  const Room room = view_.RoomOn(id);
  std::string text = fmt::format("{}/{}/{}/{}/{}/{}/", fmt::ptr(room.node->family.get()),
                                 room.chips, room.unhealthy, room.server_sizes,
                                 fmt::join(room.busy_cores, ","), fmt::join(room.lnc, ","));
  text += fmt::format("{}/{}/{}", fmt::join(room.down.plus, ","),
                      fmt::ptr(room.node->allocatable.get()), fmt::ptr(room.use.get()));
  for (const auto& [type, least] : flow_[n].types) text += fmt::format("/{}", type);
  text += keeper_.ClassOf(*room.node, [&](const std::string& key, const std::string& place) {
    return in_place_.at({key, place}) > 1;
  });
  const bool reads_own = std::any_of(hard_.begin(), hard_.end(), [&](std::size_t item) {
    const auto& its = items_[item].members;
    return std::any_of(its.begin(), its.end(),
                       [&](std::size_t i) { return fitter_.FitReadsOwn(members_[i], *room.node); });
  });
  if (!reads_own) return text;
  const auto wants_others = [](const CompiledMember& member) { return member.wants_others(); };
  if (std::ranges::any_of(members_, wants_others)) return text + "/" + room.node->name;
  for (const auto& own : room.node->own) text += fmt::format("/{}", fmt::ptr(own.get()));
  return text;
}

bool NodeAssignment::Augment(std::size_t start) {
  // Breadth first: types reach their nodes, full nodes the types of their items.
  type_reached_.assign(types_.size(), 0);
  for (FlowNode& node : flow_) node.reached = false;
  std::vector<std::size_t> queue = {start};
  std::vector<std::size_t> node_from(flow_.size());   // the type that reached the node
  std::vector<std::size_t> type_from(types_.size());  // the node that reached the type
  type_reached_[start] = 1;
  for (std::size_t q = 0; q < queue.size(); ++q) {
    const std::size_t type = queue[q];
    for (const NodeId id : types_[type].nodes) {
      const std::size_t n = flow_of_.at(id);
      if (flow_[n].reached) continue;
      flow_[n].reached = true;
      node_from[n] = type;
      if (flow_[n].sum < flow_[n].capacity) {
        ++flow_[n].sum;
        for (std::size_t at = n;;) {
          const std::size_t its = node_from[at];
          ++flow_[at].flow[its];
          if (its == start) return true;
          at = type_from[its];
          --flow_[at].flow[its];
        }
      }
      for (const auto& [other, count] : flow_[n].flow) {
        if (count == 0 || type_reached_[other] != 0) continue;
        type_reached_[other] = 1;
        type_from[other] = n;
        queue.push_back(other);
      }
    }
  }
  return false;
}

std::vector<std::size_t> NodeAssignment::RanksOf(std::span<const std::size_t> items) const {
  std::vector<std::size_t> ranks;
  for (const std::size_t item : items) {
    ranks.insert(ranks.end(), items_[item].members.begin(), items_[item].members.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// Returns whether the nodes have as many chips as the hard items take at least.
bool NodeAssignment::EnoughChips() {
  int needed = 0;
  int free = 0;
  for (const ItemType& type : types_) {
    if (type.easy) continue;
    needed += *std::min_element(type.least.begin(), type.least.end()) *
              static_cast<int>(type.items.size());
  }
  for (const FlowNode& node : flow_) free += std::popcount(view_.RoomOn(node.id).chips);
  if (needed <= free) return true;
  const std::vector<std::size_t> ranks = RanksOf(hard_);
  answer_.cause = fmt::format(
      "the {} pods of {} take at least {} chips, and the nodes that they can be on have {}",
      ranks.size(), RanksText(ranks), needed, free);
  return false;
}

bool NodeAssignment::FlowExists() {
  constexpr std::size_t kEdgesMost = 20'000'000;
  std::size_t edges = 0;
  for (const ItemType& type : types_) edges += type.easy ? 0 : type.nodes.size();
  if (edges * hard_.size() > kEdgesMost) return true;  // left to the steps
  for (const std::size_t item : hard_) {
    if (Augment(items_[item].type)) continue;
    std::vector<std::size_t> reached;
    for (const std::size_t one : hard_) {
      if (type_reached_[items_[one].type] != 0) reached.push_back(one);
    }
    const std::vector<std::size_t> ranks = RanksOf(reached);
    std::vector<std::string> names;
    std::size_t capacity = 0;
    std::size_t nodes = 0;
    for (const FlowNode& node : flow_) {
      if (!node.reached) continue;
      capacity += node.capacity;
      if (++nodes <= 5) names.push_back(view_.state().node(node.id).node->name);
    }
    if (nodes > names.size()) names.push_back(fmt::format("{} more", nodes - names.size()));
    answer_.cause = fmt::format("the {} pods of {} can be on {} only, which can take {} of them",
                                ranks.size(), RanksText(ranks), fmt::join(names, ", "), capacity);
    return false;
  }
  return true;
}

// Puts all members of the item on the node, or none.
bool NodeAssignment::PutByRules(std::size_t item, const Node& node) {
  const std::vector<std::size_t>& its = items_[item].members;
  for (std::size_t i = 0; i < its.size(); ++i) {
    if (keeper_.MayPut(its[i], node)) {
      keeper_.Put(its[i], node);
      continue;
    }
    while (i-- > 0) keeper_.Take(its[i], node);
    return false;
  }
  return true;
}

bool NodeAssignment::Put(std::size_t item, NodeId node) {
  if (--steps_ < 0) return false;
  const Node& at_node = *view_.state().node(node).node;
  if (!PutByRules(item, at_node)) return false;
  const auto at = used_.find(node);
  std::vector<std::size_t> items =
      at == used_.end() ? std::vector<std::size_t>() : at->second.items;
  items.push_back(item);
  // The room beside earlier items is enough in most cases.
  std::optional<MemberFitter::JointFit> joint;
  if (at != used_.end()) {
    joint = fitter_.FitTogether(MembersOf({&item, 1}), at->second.left, false);
  }
  if (!joint) joint = fitter_.FitTogether(MembersOf(items), view_.RoomOn(node), false);
  if (!joint) {
    for (const std::size_t member : items_[item].members) keeper_.Take(member, at_node);
    return false;
  }
  used_[node] = {std::move(items), joint->left};
  return true;
}

void NodeAssignment::Take(std::size_t item, NodeId node, std::optional<Used> before) {
  const Node& at_node = *view_.state().node(node).node;
  for (const std::size_t member : items_[item].members) keeper_.Take(member, at_node);
  if (before) {
    used_[node] = *std::move(before);
  } else {
    used_.erase(node);
  }
}

// Tries the division of the flow.
bool NodeAssignment::TryFlow() {
  std::map<std::size_t, std::size_t> next;  // by type: the first item that is not placed
  for (const FlowNode& node : flow_) {
    for (const auto& [type, count] : node.flow) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t item = types_[type].items[next[type]++];
        if (!Put(item, node.id)) return false;
      }
    }
  }
  std::size_t placed = 0;
  for (const auto& [type, count] : next) placed += count;
  return placed == hard_.size();
}

bool NodeAssignment::IsLikeAnUntouched(std::span<const NodeId> tried, NodeId next) const {
  if (used_.contains(next)) return false;
  const std::string& its = classes_.at(next);
  return std::any_of(tried.begin(), tried.end(),
                     [&](NodeId one) { return !used_.contains(one) && classes_.at(one) == its; });
}

// Places the hard items from number `at` on; the first of them on a node from number `from` on.
bool NodeAssignment::Next(std::size_t at, std::size_t from) {
  if (at == hard_.size()) return keeper_.AllKept() && PlaceEasy();
  const std::size_t item = hard_[at];
  const ItemType& type = types_[items_[item].type];
  const bool same = at + 1 < hard_.size() && items_[hard_[at + 1]].type == items_[item].type;
  const std::span<const NodeId> nodes = type.nodes;
  for (std::size_t n = from; n < nodes.size() && steps_ >= 0; ++n) {
    if (IsLikeAnUntouched(nodes.subspan(from, n - from), nodes[n])) continue;
    const auto before = used_.find(nodes[n]);
    std::optional<Used> was = before == used_.end() ? std::nullopt : std::optional(before->second);
    if (!Put(item, nodes[n])) continue;
    if (Next(at + 1, same ? n : 0)) return true;
    Take(item, nodes[n], std::move(was));
  }
  return false;
}

bool NodeAssignment::PlaceEasy() {
  if (!write_) return true;  // each has a node that the others leave alone
  for (auto type = easy_.rbegin(); type != easy_.rend(); ++type) {
    for (const std::size_t item : types_[*type].items) {
      const auto& nodes = types_[*type].nodes;
      steps_ = std::max(steps_, static_cast<int>(nodes.size()) + 1);
      const bool placed =
          std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return Put(item, node); });
      // Fewer items than nodes are placed, so some node is untouched: only the fitter's steps end.
      if (!placed) {
        steps_ = -1;
        return false;
      }
    }
  }
  return true;
}

// Returns nullopt when the fitter's steps end.
std::optional<Placement> NodeAssignment::MakePlacement() {
  fitter_.StartDecision();
  Placement placement;
  placement.members.resize(members_.size());
  for (const auto& [id, used] : used_) {
    const auto here = MembersOf(used.items);
    auto joint = fitter_.FitTogether(here, view_.RoomOn(id), false);
    if (!joint) return std::nullopt;
    for (std::size_t i = 0; i < here.size(); ++i) {
      const auto rank = static_cast<std::size_t>(here[i] - members_.data());
      MemberPlacement& placed = placement.members[rank];
      placed = PlacementOn(*here[i]->spec, *view_.state().node(id).node);
      placed.rank = static_cast<int>(rank);
      placed.slice =
          static_cast<int>(rank * static_cast<std::size_t>(gang_.spec->slices) / members_.size());
      placed.claims = std::move(joint->claims[i]);
    }
  }
  return placement;
}

ExactAnswer NodeAssignment::Answer(Kind kind) {
  answer_.kind = kind;
  if (kind == Kind::kPlaced && write_) {
    answer_.placement = MakePlacement();
    if (!answer_.placement) answer_.kind = Kind::kBoundReached;
  }
  return answer_;
}

ExactAnswer NodeAssignment::Find() {
  MakeItems();
  for (ItemType& type : types_) {
    FindNodesOf(type, keeper_.empty() ? items_.size() : view_.state().node_count());
    if (!type.nodes.empty()) continue;
    answer_.alone = items_[type.items.front()].members.front();
    return Answer(Kind::kNone);
  }
  PutEasyLast();
  OrderNodes();
  if (!FlowExists() || !EnoughChips()) return Answer(Kind::kNone);
  if (TryFlow() && keeper_.AllKept() && PlaceEasy()) return Answer(Kind::kPlaced);
  used_.clear();
  keeper_ = PlaceKeeper(gang_.spec->rules, members_.size());
  if (Next(0, 0)) return Answer(Kind::kPlaced);
  if (steps_ < 0) return Answer(Kind::kBoundReached);
  answer_.cause = fmt::format(
      "no division of its {} pods among the {} with room for some leaves "
      "room for all{}",
      members_.size(), flow_.size() == 1 ? "node" : fmt::format("{} nodes", flow_.size()),
      RulesText(gang_.spec->rules));
  return Answer(Kind::kNone);
}

}  // namespace

ExactAnswer ExactSearch::FindNodes(const CompiledGang& gang,
                                   const std::vector<CompiledMember>& members, WallTime now,
                                   bool write) {
  return NodeAssignment(gang, members, fitter_, view_, now, write).Find();
}

}  // namespace tahoma::controller
