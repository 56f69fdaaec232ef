#include "controller/plan/fleet_index.h"

#include <algorithm>
#include <bit>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

// The cache is emptied when it holds more distinct states than this.
constexpr std::size_t kBoxStatesMax = 1 << 16;

std::size_t SideIndex(int side) {
  TAHOMA_CHECK(side == 1 || side == 2 || side == 4);  // else two sizes would share a key
  return side == 1 ? 0 : side == 2 ? 1 : 2;
}

// Returns whether `part` is wholly free and `taken` takes some of it but not all.
bool Breaks(torus::ChipMask free, torus::ChipMask part, torus::ChipMask taken) {
  return (free & part) == part && (taken & part) != 0 && (taken & part) != part;
}

void Improve(std::uint8_t& cost, int other) {
  TAHOMA_CHECK(other >= 0 && other < FleetIndex::kNoRoom);  // else room would look like none
  cost = std::min(cost, static_cast<std::uint8_t>(other));
}

}  // namespace

int BreakCost(const DomainState& domain, torus::ChipMask taken) {
  if (domain.single_chip) return 0;
  if (!domain.ultra) return Breaks(domain.free, kInstance, taken) ? 1 : 0;
  int cost = domain.modes.four && Breaks(domain.free, ~torus::ChipMask{0}, taken) ? 100 : 0;
  for (int z = 0; z < hw::kUltraServerNodes; ++z) {
    cost += Breaks(domain.free, kInstance << (16 * z), taken) ? 1 : 0;
  }
  constexpr unsigned kLeftPairs = 0b0101;
  const unsigned left = domain.modes.pairs & kLeftPairs;
  const unsigned pairs = left != 0 ? left : domain.modes.pairs;
  for (int z = 0; z < hw::kUltraServerNodes; ++z) {
    const torus::ChipMask pair = std::rotl(torus::ChipMask{0xffffffff}, 16 * z);
    if ((pairs >> z & 1) != 0) cost += Breaks(domain.free, pair, taken) ? 10 : 0;
  }
  return cost;
}

std::size_t FleetIndex::BoxKey(const torus::Shape& size) {
  return SideIndex(size.extent(torus::Axis::kX)) * 9 + SideIndex(size.extent(torus::Axis::kY)) * 3 +
         SideIndex(size.extent(torus::Axis::kZ));
}

std::size_t FleetIndex::ChipKey(int chips) {
  TAHOMA_CHECK(chips >= 1 && chips <= kChipsPerNode);  // else it were the key of a box or of cores
  return kBoxKeys + static_cast<std::size_t>(chips) - 1;
}

std::size_t FleetIndex::CoreKey(int lnc, int cores) {
  TAHOMA_CHECK(lnc == 1 || lnc == 2);
  TAHOMA_CHECK(cores >= 1 && cores <= kCoresPerChip / lnc);  // else it were that of another size
  return kBoxKeys + kChipKeys + (lnc == 1 ? 0U : 8U) + static_cast<std::size_t>(cores) - 1;
}

void FleetIndex::Sync(const ClusterState& state) {
  if (domains_.size() < state.domain_count()) {
    DomainEntry empty;
    empty.costs.fill(kNoRoom);
    domains_.resize(state.domain_count(), empty);
  }
  ClusterState::ForEachChangedDomain(synced_, state, [&](DomainId id) {
    if (id.value() < state.domain_count()) Update(state, id);
  });
  // A state with fewer domains than before is unrelated to the last one, as after a new start.
  for (std::size_t i = state.domain_count(); i < domains_.size(); ++i) {
    if (domains_[i].in == nullptr) continue;
    for (std::size_t key = 0; key < kKeys; ++key) {
      domains_[i].in->rooms[key].erase(
          {domains_[i].costs[key], DomainId(static_cast<std::uint32_t>(i))});
    }
    --domains_[i].in->domains;
    domains_[i].in = nullptr;
    domains_[i].costs.fill(kNoRoom);
  }
  synced_ = state;
}

FleetIndex::ClassEntry* FleetIndex::ClassOf(const ClusterState& state, const DomainState& domain) {
  ClassKey key{};
  Class nodes;
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid()) continue;
    nodes[z] = state.node(domain.nodes[z]).node;
    key[z] = nodes[z]->family.get();
  }
  std::unique_ptr<ClassEntry>& entry = classes_[key];
  if (entry == nullptr) {
    entry = std::make_unique<ClassEntry>();
    entry->nodes = std::move(nodes);
  }
  return entry.get();
}

void FleetIndex::Update(const ClusterState& state, DomainId id) {
  DomainEntry& entry = domains_[id.value()];
  const DomainState& domain = state.domain(id);
  ClassEntry* in = domain.name.empty() ? nullptr : ClassOf(state, domain);
  Costs costs;
  costs.fill(kNoRoom);
  if (in != nullptr) costs = CostsOf(state, domain);
  for (std::size_t key = 0; key < kKeys; ++key) {
    if (entry.in == in && entry.costs[key] == costs[key]) continue;
    if (entry.in != nullptr && entry.costs[key] != kNoRoom) {
      entry.in->rooms[key].erase({entry.costs[key], id});
    }
    if (in != nullptr && costs[key] != kNoRoom) in->rooms[key].insert({costs[key], id});
  }
  if (entry.in != in) {
    if (in != nullptr) ++in->domains;
    if (entry.in != nullptr && --entry.in->domains == 0) {
      ClassKey key{};
      for (std::size_t z = 0; z < key.size(); ++z) {
        const auto& node = entry.in->nodes[z];
        key[z] = node == nullptr ? nullptr : node->family.get();
      }
      classes_.erase(key);
    }
  }
  entry.in = in;
  entry.costs = costs;
}

const FleetIndex::BoxCosts& FleetIndex::BoxCostsOf(const DomainState& domain) {
  const auto shape = static_cast<std::uint8_t>(domain.shape().chip_count());
  const BoxState state{
      .free = domain.free, .down = domain.down.plus, .shape = shape, .modes = domain.modes};
  if (const auto found = box_costs_.find(state); found != box_costs_.end()) return found->second;
  if (box_costs_.size() >= kBoxStatesMax) box_costs_.clear();
  BoxCosts costs;
  costs.fill(kNoRoom);
  for (const torus::Box& box : torus::BoxTable::Of(domain.shape()).all()) {
    if ((box.mask & ~domain.free) != 0 || domain.down.Intersects(box.links)) continue;
    if (!domain.modes.Serve(box)) continue;
    Improve(costs[BoxKey(box.size)], BreakCost(domain, box.mask) + domain.modes.ChangeCost(box));
  }
  return box_costs_.emplace(state, costs).first->second;
}

FleetIndex::Costs FleetIndex::CostsOf(const ClusterState& state, const DomainState& domain) {
  Costs costs;
  costs.fill(kNoRoom);
  if (domain.torus_known) {
    const BoxCosts& boxes = BoxCostsOf(domain);
    std::copy(boxes.begin(), boxes.end(), costs.begin());
  }
  for (int z = 0; z < hw::kUltraServerNodes; ++z) {
    const NodeId id = domain.nodes[static_cast<std::size_t>(z)];
    if (!id.valid()) continue;
    const torus::ChipMask node_free = domain.free & (kInstance << (16 * z));
    const int free = torus::ChipCount(node_free);
    for (int chips = 1; chips <= free; ++chips) {
      // Any choice of chips on a node breaks the same, unless it is the whole node.
      const torus::ChipMask some = chips == free ? node_free : node_free & (~node_free + 1);
      Improve(costs[ChipKey(chips)], BreakCost(domain, some));
    }
    const NodeState& node = state.node(id);
    for (std::size_t chip = 0; chip < kChipsPerNode; ++chip) {
      const torus::ChipMask bit = torus::ChipMask{1} << (16 * z + static_cast<int>(chip));
      if (node.lnc[chip] == 0 || (domain.present & bit) == 0) continue;
      const int lnc = node.lnc[chip];
      const int cores = (kCoresPerChip - std::popcount(node.busy_cores[chip])) / lnc;
      for (int n = 1; n <= cores; ++n) {
        // A higher cost makes chips with more cores left come later: the fullest chip that fits is
        // first.
        Improve(costs[CoreKey(lnc, n)], cores - n);
      }
    }
  }
  return costs;
}

bool FleetIndex::Visit(std::span<const std::size_t> keys, const AcceptsClass& accepts,
                       const VisitDomain& visit) const {
  struct Run {
    Ranked::const_iterator at;
    Ranked::const_iterator end;
  };
  std::vector<Run> runs;
  for (const auto& one : classes_) {
    const auto& entry = one.second;  // clang 14 captures no structured binding
    const bool any = std::any_of(keys.begin(), keys.end(),
                                 [&](std::size_t k) { return !entry->rooms[k].empty(); });
    if (!any || !accepts(entry->nodes)) continue;
    for (const std::size_t k : keys) {
      const Ranked& ranked = entry->rooms[k];
      if (!ranked.empty()) runs.push_back({ranked.begin(), ranked.end()});
    }
  }
  while (!runs.empty()) {
    auto next = std::min_element(runs.begin(), runs.end(),
                                 [](const Run& a, const Run& b) { return *a.at < *b.at; });
    const DomainOrder first = *next->at;
    if (visit(first.domain, first.break_cost)) return true;
    for (Run& run : runs) {
      while (run.at != run.end && *run.at == first) ++run.at;
    }
    std::erase_if(runs, [](const Run& run) { return run.at == run.end; });
  }
  return false;
}

bool FleetIndex::VisitAmong(std::span<const DomainId> domains, std::span<const std::size_t> keys,
                            const VisitDomain& visit) const {
  std::vector<DomainOrder> ranked;
  for (const DomainId domain : domains) {
    TAHOMA_CHECK(domain.value() < domains_.size());  // of the state that was synced last
    std::uint8_t cost = kNoRoom;
    for (const std::size_t key : keys) cost = std::min(cost, domains_[domain.value()].costs[key]);
    if (cost != kNoRoom) ranked.push_back({cost, domain});
  }
  std::sort(ranked.begin(), ranked.end());
  return std::any_of(ranked.begin(), ranked.end(),
                     [&](const DomainOrder& one) { return visit(one.domain, one.break_cost); });
}

bool FleetIndex::IsOwn(const QualifiedName& attribute) const {
  const auto is_own = [&](const std::shared_ptr<const Node>& node) {
    if (node == nullptr) return false;
    const NodeTemplate& devices = *node->family->devices;
    for (std::size_t slot = 0; slot < devices.slot_names.size(); ++slot) {
      if (devices.slot_names[slot] == attribute) return static_cast<bool>(devices.own_slot[slot]);
    }
    return false;
  };
  return std::any_of(classes_.begin(), classes_.end(), [&](const auto& one) {
    return std::any_of(one.second->nodes.begin(), one.second->nodes.end(), is_own);
  });
}

std::optional<std::vector<DomainId>> FleetIndex::DomainsWith(
    const QualifiedName& attribute, std::span<const AttributeValue> values) {
  values_.Sync(synced_);
  return values_.DomainsWith(attribute, values);
}

}  // namespace tahoma::controller
