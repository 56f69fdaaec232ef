#include "controller/model/cluster.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

constexpr std::uint8_t kAllCores = 0xff;

void Occupy(const Node& node, const Holding& holding, NodeState& state) {
  for (const Holding::HeldDevice& held : holding.devices) {
    if (held.admin_access || held.node != node.name) continue;
    const DeviceRole role = node.RoleNamed(held.device);
    switch (role.kind) {
      case DeviceKind::kChip:
        state.busy_cores[role.chip] = kAllCores;
        break;
      case DeviceKind::kNode:
        state.busy_cores.fill(kAllCores);
        break;
      case DeviceKind::kCore:
        state.busy_cores[role.chip] |= role.cores;
        state.lnc[role.chip] = role.lnc;
        break;
      case DeviceKind::kOther:
        break;
    }
  }
}

// Returns the devices of other drivers that the holdings have on the node.
std::shared_ptr<const std::vector<HeldOther>> OthersOf(
    const std::string& node, const std::vector<std::shared_ptr<const Holding>>& holdings) {
  std::vector<HeldOther> others;
  for (const auto& holding : holdings) {
    if (holding->others_node != node) continue;
    others.insert(others.end(), holding->others.begin(), holding->others.end());
  }
  return others.empty() ? nullptr
                        : std::make_shared<const std::vector<HeldOther>>(std::move(others));
}

// The nodes of the holding's devices, each once.
std::vector<std::string_view> NodesOf(const Holding& holding) {
  std::vector<std::string_view> nodes;
  const auto add = [&](std::string_view node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  };
  for (const Holding::HeldDevice& held : holding.devices) add(held.node);
  if (!holding.others.empty()) add(holding.others_node);
  return nodes;
}

// Returns whether both hold a core of the node, or a device of another driver. Without the node
// only the devices' names are compared.
bool Overlap(const NodeState& state, const Holding& a, const Holding& b) {
  for (const HeldOther& one : a.others) {
    if (std::ranges::any_of(b.others, [&](const auto& its) { return IsSameDevice(one, its); })) {
      return true;
    }
  }
  if (state.node == nullptr) {
    return std::any_of(a.devices.begin(), a.devices.end(), [&](const Holding::HeldDevice& held) {
      return !held.admin_access &&
             std::any_of(b.devices.begin(), b.devices.end(), [&](const auto& other) {
               return !other.admin_access && other.node == held.node && other.device == held.device;
             });
    });
  }
  NodeState of_a;
  NodeState of_b;
  Occupy(*state.node, a, of_a);
  Occupy(*state.node, b, of_b);
  for (std::size_t chip = 0; chip < of_a.busy_cores.size(); ++chip) {
    if ((of_a.busy_cores[chip] & of_b.busy_cores[chip]) != 0) return true;
  }
  return false;
}

bool BelongsToUltraServer(const Node& node) {
  return !node.ultraserver_id.empty() && node.family->type != nullptr &&
         node.family->type->ultra_server;
}

// Returns whether the node keeps its place when `next` replaces its inventory: a node that left
// first would lose the place to a waiting node.
bool KeepsPlace(const NodeState& state, const Node& next) {
  return state.domain.valid() && BelongsToUltraServer(*state.node) && BelongsToUltraServer(next) &&
         next.family->devices->chip_mask != 0 &&
         next.ultraserver_id == state.node->ultraserver_id && next.z == state.node->z;
}

std::string DomainKey(const std::string& name, bool ultra) { return (ultra ? "u/" : "n/") + name; }

// Adds a node's chips and links to its domain's masks.
void AddNode(const NodeState& state, DomainState& domain) {
  const NodeTemplate& devices = *state.node->family->devices;
  const int shift = 16 * state.z;
  const auto place = [shift](std::uint64_t mask) { return mask << shift; };
  domain.broken |= place(devices.chip_mask & ~devices.healthy_mask);
  if (state.node->schedulable()) {
    domain.present |= place(devices.healthy_mask);
    domain.free |= place(devices.healthy_mask & static_cast<std::uint16_t>(~state.BusyChips()));
  }
  for (const torus::Axis axis : torus::kAxes) {
    domain.down.along(axis) |= place(devices.down.along(axis));
  }
  // A link that is down towards the previous node is a plus link of the previous node's chip.
  const int previous = (state.z + hw::kUltraServerNodes - 1) % hw::kUltraServerNodes;
  domain.down.along(torus::Axis::kZ) |= std::uint64_t{devices.down_z_minus} << (16 * previous);
}

hw::UltraServerMode PairMode(int z) {
  return z % 2 == 0 ? hw::UltraServerMode::kX2V : hw::UltraServerMode::kX2H;
}

}  // namespace

std::uint16_t ChipsOf(const Holding& holding, const Node& node) {
  NodeState state;
  Occupy(node, holding, state);
  return state.BusyChips();
}

int EighthsOf(const Holding& holding, const Node& node) {
  NodeState state;
  Occupy(node, holding, state);
  const hw::InstanceType* type = node.family == nullptr ? nullptr : node.family->type;
  const int cores = type == nullptr ? kCoresPerChip : type->chip->physical_cores;
  int eighths = 0;
  for (std::size_t chip = 0; chip < state.busy_cores.size(); ++chip) {
    if (node.family == nullptr || (node.family->devices->chip_mask >> chip & 1) == 0) continue;
    const int busy = std::popcount(state.busy_cores[chip]);
    eighths += std::min(busy * kCoresPerChip / cores, kCoresPerChip);
  }
  return eighths;
}

std::vector<Holding::HeldDevice> HeldDevices(const Allocation& allocation) {
  std::vector<Holding::HeldDevice> held;
  for (const DeviceResult& result : allocation.results) {
    if (result.driver != kNeuronDriver) continue;
    // A pool of ours has its node's name. Where the claim's pods may run is decided elsewhere.
    held.push_back(
        {.node = result.pool, .device = result.device, .admin_access = result.admin_access});
  }
  return held;
}

void HoldDevicesOf(const Allocation& allocation, Holding& holding) {
  holding.devices = HeldDevices(allocation);
  holding.others_node = allocation.node;
  holding.others = HeldOthers(allocation);
  if (allocation.node.empty()) holding.others.clear();
  if (holding.others.empty()) holding.others_node.clear();
}

void AddModes(int z, const ElectedModes& elected, DomainModes& modes) {
  const bool chosen = elected.chosen != hw::UltraServerMode::kUnset;
  const auto may = [&](hw::UltraServerMode mode) {
    return chosen ? elected.chosen == mode : elected.Offers(mode);
  };
  modes.elected = true;
  modes.four = modes.four && may(hw::UltraServerMode::kX4);
  for (const int pair : {(z + hw::kUltraServerNodes - 1) % hw::kUltraServerNodes, z}) {
    if (!may(PairMode(pair))) modes.pairs &= static_cast<std::uint8_t>(~(1U << pair));
  }
  if (chosen) modes.chosen |= static_cast<std::uint8_t>(1U << z);
}

bool DomainModes::Serve(const torus::Box& box) const {
  const int depth = box.size.extent(torus::Axis::kZ);
  if (depth == 1) return true;
  return depth == hw::kUltraServerNodes ? four : (pairs >> box.origin.z & 1) != 0;
}

int DomainModes::ChangeCost(const torus::Box& box) const {
  const int depth = box.size.extent(torus::Axis::kZ);
  if (!elected || depth == 1) return 0;
  const auto mode =
      depth == hw::kUltraServerNodes ? hw::UltraServerMode::kX4 : PairMode(box.origin.z);
  const unsigned nodes = hw::PartnersOf(mode, box.origin.z);
  return (nodes & ~static_cast<unsigned>(chosen)) == 0 ? 0 : 1;
}

std::uint16_t NodeState::BusyChips() const {
  std::uint16_t busy = 0;
  for (std::size_t chip = 0; chip < busy_cores.size(); ++chip) {
    if (busy_cores[chip] != 0) busy |= static_cast<std::uint16_t>(1U << chip);
  }
  return busy;
}

const torus::Shape& DomainState::shape() const {
  static constexpr torus::Shape kChip;
  if (ultra) return torus::kUltraServerShape;
  return single_chip ? kChip : torus::kInstanceShape;
}

NodeId ClusterState::NodeIdOf(const std::string& name) {
  if (const NodeId* known = node_ids_.Find(name)) return *known;
  NodeId id(nodes_.size());
  if (unused_nodes_.empty()) {
    nodes_.PushBack({});
  } else {
    id = unused_nodes_.back();
    unused_nodes_.pop_back();
  }
  node_ids_.Put(name, id);
  return id;
}

void ClusterState::ForgetIfUnused(NodeId id, const std::string& name) {
  const NodeState& state = nodes_[id.value()];
  if (state.node != nullptr || !state.holdings.empty() || state.use != nullptr) return;
  nodes_.Mutable(id.value()) = {};
  node_ids_.Erase(name);
  unused_nodes_.push_back(id);
}

NodeId ClusterState::PutNode(std::shared_ptr<const Node> next) {
  TAHOMA_CHECK(next != nullptr);
  const NodeId id = NodeIdOf(next->name);
  const bool keeps = KeepsPlace(nodes_[id.value()], *next);
  if (!keeps && nodes_[id.value()].domain.valid()) LeaveDomain(id);
  nodes_.Mutable(id.value()).node = std::move(next);
  if (keeps) RecountNode(id);
  if (!keeps) JoinDomain(id);
  return id;
}

void ClusterState::RemoveNode(const std::string& name) {
  const NodeId* known = node_ids_.Find(name);
  if (known == nullptr) return;
  const NodeId id = *known;
  if (nodes_[id.value()].domain.valid()) LeaveDomain(id);
  nodes_.Mutable(id.value()).node = nullptr;
  ForgetIfUnused(id, name);
}

void ClusterState::JoinDomain(NodeId id) {
  const Node& node = *nodes_[id.value()].node;
  if (node.family->devices->chip_mask == 0) return;
  if (BelongsToUltraServer(node)) {
    const DomainId domain_id = DomainIdOf(node.ultraserver_id, true);
    DomainState& domain = domains_.Mutable(domain_id.value());
    domain.torus_known = true;
    if (!domain.nodes[node.z].valid()) {
      domain.nodes[node.z] = id;
      nodes_.Mutable(id.value()).domain = domain_id;
      nodes_.Mutable(id.value()).z = node.z;
      RecountNode(id);
      return;
    }
    // The node's place is taken, for example when a replacement comes before the old node is
    // deleted: until the place is free the node stands alone.
    domain.waiting.push_back(id);
  }
  const DomainId domain_id = DomainIdOf(node.name, false);
  DomainState& domain = domains_.Mutable(domain_id.value());
  domain.torus_known =
      node.family->type != nullptr && !torus::BoxTable::Of(node.family->type->torus).all().empty();
  domain.single_chip = node.family->type != nullptr && node.family->type->chip_count() == 1;
  domain.nodes[0] = id;
  nodes_.Mutable(id.value()).domain = domain_id;
  nodes_.Mutable(id.value()).z = 0;
  RecountNode(id);
}

void ClusterState::LeaveDomain(NodeId id) {
  const DomainId domain_id = nodes_[id.value()].domain;
  const std::uint8_t z = nodes_[id.value()].z;
  nodes_.Mutable(id.value()).domain = DomainId();
  DomainState& domain = domains_.Mutable(domain_id.value());
  TAHOMA_CHECK(domain.nodes[z] == id);  // else the chips of another node would leave with it
  domain.nodes[z] = NodeId();
  const Node& node = *nodes_[id.value()].node;
  if (!domain.ultra && BelongsToUltraServer(node)) {
    if (const DomainId* wanted = domain_ids_.Find(DomainKey(node.ultraserver_id, true))) {
      std::erase(domains_.Mutable(wanted->value()).waiting, id);
    }
  }
  RecountDomain(domain_id);
  std::vector<NodeId> waiting;
  std::swap(waiting, domains_.Mutable(domain_id.value()).waiting);
  for (const NodeId next : waiting) {
    if (!nodes_[next.value()].domain.valid()) continue;
    LeaveDomain(next);
    JoinDomain(next);
  }
  ForgetDomainIfUnused(domain_id);
}

DomainId ClusterState::DomainIdOf(const std::string& name, bool ultra) {
  const std::string key = DomainKey(name, ultra);
  if (const DomainId* known = domain_ids_.Find(key)) return *known;
  DomainId id(domains_.size());
  if (unused_domains_.empty()) {
    domains_.PushBack({});
  } else {
    id = unused_domains_.back();
    unused_domains_.pop_back();
  }
  domains_.Mutable(id.value()).name = name;
  domains_.Mutable(id.value()).ultra = ultra;
  domain_ids_.Put(key, id);
  return id;
}

void ClusterState::ForgetDomainIfUnused(DomainId id) {
  const DomainState& domain = domains_[id.value()];
  if (domain.name.empty() || !domain.waiting.empty()) return;
  for (const NodeId node : domain.nodes) {
    if (node.valid()) return;
  }
  domain_ids_.Erase(DomainKey(domain.name, domain.ultra));
  domains_.Mutable(id.value()) = {};
  unused_domains_.push_back(id);
}

void ClusterState::RecountNode(NodeId id) {
  NodeState& state = nodes_.Mutable(id.value());
  state.busy_cores.fill(0);
  state.lnc.fill(0);
  if (state.node == nullptr || !state.domain.valid()) return;
  for (const auto& holding : state.holdings) Occupy(*state.node, *holding, state);
  RecountDomain(state.domain);
}

void ClusterState::RecountDomain(DomainId id) {
  DomainState& domain = domains_.Mutable(id.value());
  domain.present = domain.free = domain.broken = 0;
  domain.down = {};
  domain.modes = {};
  domain.end.reset();
  domain.end_unknown = false;
  for (const NodeId node : domain.nodes) {
    if (!node.valid()) continue;
    const NodeState& state = nodes_[node.value()];
    AddNode(state, domain);
    if (domain.ultra && state.node->elected) AddModes(state.z, *state.node->elected, domain.modes);
    for (const auto& holding : state.holdings) {
      if (!holding->end.has_value()) domain.end_unknown = true;
      if (holding->end.has_value())
        domain.end = std::max(domain.end.value_or(*holding->end), *holding->end);
    }
  }
}

void ClusterState::SetBlockUse(const std::string& domain, BlockUse use) {
  const std::optional<DomainId> id = FindDomain(domain);
  if (!id) return;
  const BlockUse& before = domains_[id->value()].block;
  use.wanted = before.wanted && before.reservation == use.reservation;
  if (before != use) domains_.Mutable(id->value()).block = std::move(use);
}

void ClusterState::SetWanted(DomainId id, bool wanted) {
  if (domains_[id.value()].block.wanted == wanted) return;
  domains_.Mutable(id.value()).block.wanted = wanted;
}

void ClusterState::Hold(std::shared_ptr<const Holding> holding) {
  TAHOMA_CHECK(holding != nullptr);
  Release(holding->claim_uid);
  for (const std::string_view name : NodesOf(*holding)) {
    const NodeId id = NodeIdOf(std::string(name));
    NodeState& state = nodes_.Mutable(id.value());
    state.holdings.push_back(holding);
    if (name == holding->others_node) state.others = OthersOf(holding->others_node, state.holdings);
    RecountNode(id);
  }
  const std::string claim_uid = holding->claim_uid;
  holdings_.Put(claim_uid, std::move(holding));
}

void ClusterState::Release(const std::string& claim_uid) {
  const auto* found = holdings_.Find(claim_uid);
  if (found == nullptr) return;
  const std::shared_ptr<const Holding> holding = *found;
  holdings_.Erase(claim_uid);
  for (const std::string_view view : NodesOf(*holding)) {
    const std::string name(view);
    const NodeId* id = node_ids_.Find(name);
    TAHOMA_CHECK(id != nullptr);  // the holding has kept the node known
    const NodeId node = *id;
    NodeState& state = nodes_.Mutable(node.value());
    std::erase(state.holdings, holding);
    if (name == holding->others_node) state.others = OthersOf(name, state.holdings);
    RecountNode(node);
    ForgetIfUnused(node, name);
  }
}

// Returns the holdings of this state alone, on nodes that differ between `before` and `after`.
std::vector<ClusterState::More> ClusterState::MoreThan(const ClusterState& before,
                                                       const ClusterState& after) const {
  std::vector<More> all;
  ForEachDifference(before.nodes_, after.nodes_, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < std::min(last, before.nodes_.size()); ++i) {
      const auto& those = before.nodes_[i].holdings;
      More more{.node = NodeId(i), .holdings = {}};
      for (const auto& holding : nodes_[i].holdings) {
        if (std::ranges::find(those, holding) == those.end()) more.holdings.push_back(holding);
      }
      if (!more.holdings.empty()) all.push_back(std::move(more));
    }
  });
  return all;
}

void ClusterState::Follow(const ClusterState& before, const ClusterState& after) {
  const std::vector<More> all = MoreThan(before, after);
  ForEachDifference(before.holdings_, after.holdings_,
                    [&](const std::string& uid, const auto*, const auto* now) {
                      if (now == nullptr) holdings_.Erase(uid);
                      if (now != nullptr) holdings_.Put(uid, *now);
                    });
  const auto copy = [](const auto& from, std::size_t first, std::size_t last, auto& to) {
    for (std::size_t i = first; i < last; ++i) {
      if (i == to.size()) to.PushBack({});
      to.Mutable(i) = from[i];
    }
  };
  ForEachDifference(before.nodes_, after.nodes_, [&](std::size_t first, std::size_t last) {
    copy(after.nodes_, first, last, nodes_);
  });
  ForEachDifference(before.domains_, after.domains_, [&](std::size_t first, std::size_t last) {
    copy(after.domains_, first, last, domains_);
    for (std::size_t i = first; i < last; ++i) RecountDomain(DomainId(i));
  });
  node_ids_ = after.node_ids_;
  domain_ids_ = after.domain_ids_;
  pods_ = after.pods_;
  unused_nodes_ = after.unused_nodes_;
  unused_domains_ = after.unused_domains_;
  inventory_ = after.inventory_;
  for (const More& more : all) {
    NodeState& state = nodes_.Mutable(more.node.value());
    for (const auto& holding : more.holdings) {
      const bool stays = state.node != nullptr && NodesOf(*holding).front() == state.node->name;
      if (stays) state.holdings.push_back(holding);
      if (!stays) holdings_.Erase(holding->claim_uid);
    }
    RecountNode(more.node);
  }
}

void ClusterState::PutPod(const PodKey& pod, const std::string& node,
                          std::shared_ptr<const kube::PodNeeds> needs) {
  const PlacedPod* before = pods_.Find(pod);
  if (before != nullptr && before->node == node && *before->needs == *needs) return;
  RemovePod(pod);
  AddUse(node, *needs);
  pods_.Put(pod, {.node = node, .needs = std::move(needs)});
}

bool ClusterState::RemovePod(const PodKey& pod) {
  const PlacedPod* found = pods_.Find(pod);
  if (found == nullptr) return false;
  const PlacedPod placed = *found;
  pods_.Erase(pod);
  SubtractUse(placed.node, *placed.needs);
  return true;
}

void ClusterState::AddUse(const std::string& node, const kube::PodNeeds& needs) {
  NodeState& state = nodes_.Mutable(NodeIdOf(node).value());
  kube::NodeUse use = state.use == nullptr ? kube::NodeUse() : *state.use;
  use.Add(needs);
  state.use = std::make_shared<const kube::NodeUse>(std::move(use));
}

void ClusterState::SubtractUse(const std::string& node, const kube::PodNeeds& needs) {
  const NodeId* known = node_ids_.Find(node);
  TAHOMA_CHECK(known != nullptr);  // the use that was added keeps the node known
  const NodeId id = *known;
  NodeState& state = nodes_.Mutable(id.value());
  TAHOMA_CHECK(state.use != nullptr);
  kube::NodeUse use = *state.use;
  use.Subtract(needs);
  state.use = use.empty() ? nullptr : std::make_shared<const kube::NodeUse>(std::move(use));
  ForgetIfUnused(id, node);
}

bool ClusterState::IsSharedWithOthers(const Holding& holding,
                                      absl::FunctionRef<bool(const Holding&)> counts) const {
  for (const std::string_view name : NodesOf(holding)) {
    const NodeId* id = node_ids_.Find(std::string(name));
    if (id == nullptr) continue;
    const NodeState& state = nodes_[id->value()];
    for (const auto& other : state.holdings) {
      if (other->claim_uid == holding.claim_uid || !Overlap(state, holding, *other)) continue;
      if (counts(*other)) return true;
    }
  }
  return false;
}

std::optional<NodeId> ClusterState::FindNode(const std::string& name) const {
  const NodeId* id = node_ids_.Find(name);
  return id == nullptr ? std::nullopt : std::optional(*id);
}

std::optional<DomainId> ClusterState::FindDomain(const std::string& name) const {
  const DomainId* id = domain_ids_.Find(DomainKey(name, true));
  if (id == nullptr) id = domain_ids_.Find(DomainKey(name, false));
  return id == nullptr ? std::nullopt : std::optional(*id);
}

const Holding* ClusterState::FindHolding(const std::string& claim_uid) const {
  const auto* found = holdings_.Find(claim_uid);
  return found == nullptr ? nullptr : found->get();
}

ClusterState::Totals ClusterState::Count() const {
  Totals totals;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    const DomainState& domain = domains_[i];
    if (domain.name.empty()) continue;
    if (domain.ultra) ++totals.ultra_servers;
    for (const NodeId node : domain.nodes) {
      if (node.valid()) ++totals.nodes;
    }
    totals.chips += static_cast<std::size_t>(std::popcount(domain.present | domain.broken));
    totals.free += static_cast<std::size_t>(std::popcount(domain.free));
    totals.broken += static_cast<std::size_t>(std::popcount(domain.broken));
  }
  return totals;
}

}  // namespace tahoma::controller
