#include "controller/core/blocks/block_hosts.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace tahoma::controller {
namespace {

const Product* ProductOf(const Node& node, bool ultra) {
  for (const Product& product : Products()) {
    if (product.ultra_server == ultra && product.instance_type == node.family->instance_type) {
      return &product;
    }
  }
  return nullptr;
}

std::string CellOf(const Node& node) {
  std::vector<std::string> layers = node.NetworkLayers();
  return layers.empty() ? "" : std::move(layers.front());
}

// Adds who uses the node to the host.
void AddHolders(const NodeState& node, HostState& host, bool& end_known) {
  for (const auto& holding : node.holdings) {
    if (holding->borrows()) {
      host.lent = true;
      continue;
    }
    if (!holding->end) end_known = false;
    if (holding->end) {
      host.held_until = std::max(host.held_until.value_or(*holding->end), *holding->end);
    }
    if (!host.held) {
      host.held_by = holding->claim.ns;
    } else if (host.held_by != holding->claim.ns) {
      host.held_by.clear();
    }
    host.held = true;
  }
}

}  // namespace

std::optional<HostState> HostOf(const ClusterState& cluster, DomainId id) {
  const DomainState& domain = cluster.domain(id);
  if (domain.name.empty()) return std::nullopt;
  HostState host{.name = domain.name};
  const Node* first = nullptr;
  int nodes = 0, chips = 0;
  bool end_known = true;
  for (const NodeId node_id : domain.nodes) {
    if (!node_id.valid()) continue;
    const NodeState& node = cluster.node(node_id);
    if (node.node == nullptr) continue;
    if (first == nullptr) first = node.node.get();
    ++nodes;
    chips += std::popcount(node.node->family->devices->chip_mask);
    AddHolders(node, host, end_known);
  }
  if (first == nullptr) return std::nullopt;
  const Product* product = ProductOf(*first, domain.ultra);
  if (product == nullptr) return std::nullopt;
  host.pool = {.product = product, .zone = ZoneOf(*first), .cell = CellOf(*first)};
  const hw::InstanceType* type = first->family->type;
  host.healthy = nodes == product->instances && type != nullptr &&
                 chips == type->chip_count() * product->instances &&
                 std::popcount(domain.present) == chips;
  host.links_ok = domain.down == torus::LinkMask{};
  if (!end_known) host.held_until.reset();
  return host;
}

std::set<std::string> BlockHosts::Update(const ClusterState& cluster, BlockBook& book, WallTime now,
                                         const BlockTime& time) {
  std::set<std::string> touched;
  names_.resize(std::max(names_.size(), cluster.domain_count()));
  std::vector<DomainId> changed;
  ClusterState::ForEachChangedDomain(seen_, cluster, [&](DomainId id) {
    if (id.value() < cluster.domain_count()) changed.push_back(id);
  });
  // Domains that went and came back may have one another's numbers now: all leave before any comes.
  for (const DomainId id : changed) {
    std::string& name = names_[id.value()];
    if (!name.empty() && cluster.domain(id).name != name) book.RemoveHost(name, now);
  }
  for (const DomainId id : changed) {
    std::optional<HostState> host = HostOf(cluster, id);
    std::string& name = names_[id.value()];
    if (!host && cluster.domain(id).name == name) book.RemoveHost(name, now);
    name = host ? host->name : "";
    if (host && host->held_until) host->held_until = time.ToBlock(*host->held_until);
    if (host) book.PutHost(*std::move(host), now);
    // One that went and came back with the same number, since the last look, has forgotten it.
    const bool had_use = id.value() < seen_.domain_count() && seen_.domain(id).block != BlockUse{};
    if (had_use && cluster.domain(id).block == BlockUse{}) book.PlanUsesAgain(name);
    for (const HostBinding& binding : book.hosts().BindingsOf(name)) {
      touched.insert(binding.reservation);
    }
  }
  seen_ = cluster;
  return touched;
}

}  // namespace tahoma::controller
