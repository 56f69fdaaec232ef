#include "controller/publish/projected.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "controller/model/gang.h"
#include "lib/base/digest.h"
#include "lib/base/json.h"
#include "lib/kube/name.h"

namespace tahoma::controller {
namespace {

using json = Json;

constexpr std::size_t kDigestDigits = 8;
constexpr std::size_t kNameMost = 200;

json OwnerJson(const Block* block) {
  if (block == nullptr) return nullptr;
  return {{"namespace", block->key.ns},
          {"capacityBlock", block->key.name},
          {"capacityReservationId", block->reservation},
          {"startDate", FormatTime(block->start())},
          {"endDate", FormatTime(block->end)},
          {"reclaimDate", FormatTime(block->reclaim())}};
}

struct Chips {
  int total = 0, free = 0, busy = 0, broken = 0, unready = 0;
};

Chips ChipsOf(const ClusterState& cluster, const DomainState& domain) {
  Chips chips{.free = std::popcount(domain.free), .broken = std::popcount(domain.broken)};
  for (const NodeId node : domain.nodes) {
    if (!node.valid() || cluster.node(node).node == nullptr) continue;
    chips.total += std::popcount(cluster.node(node).node->family->devices->chip_mask);
  }
  const int present = std::popcount(domain.present);
  chips.busy = present - chips.free;
  chips.unready = std::max(chips.total - present - chips.broken, 0);
  return chips;
}

// One word for whose it is at the moment.
std::string_view UseOf(const DomainState& domain, const Chips& chips) {
  if (!domain.block.reservation.empty()) return "Block";
  if (chips.busy != 0) return "Gangs";
  return domain.block.kept_from ? "Kept" : "Idle";
}

}  // namespace

json ReservationStatus(const BlockView& view) {
  const Block& block = *view.block;
  const bool ultra = block.product().ultra_server;
  return {{"capacityReservationId", block.reservation},
          {"ownerId", block.key.ns},
          {"capacityBlock", block.key.name},
          {"capacityBlockIds", block.block_ids},
          {"reservationType", "capacity-block"},
          {"state", StateName(block.state)},
          {"instanceType", block.product().instance_type},
          {"ultraserverType", ultra ? json(block.product().name) : json()},
          {"instancePlatform", block.platform},
          {"availabilityZone", block.bought.zone},
          {"tenancy", "default"},
          {"instanceMatchCriteria", "targeted"},
          {"totalInstanceCount", block.bought.instances()},
          {"availableInstanceCount", view.available},
          {"unavailableInstanceCount", view.unavailable},
          {"interconnectStatus", InterconnectName(view.interconnect)},
          {"createDate", FormatTime(block.created)},
          {"startDate", FormatTime(block.start())},
          {"endDate", FormatTime(block.end)},
          {"endDateType", "limited"},
          {"reclaimDate", FormatTime(block.reclaim())},
          {"hosts", block.hosts}};
}

json UltraServerStatus(const ClusterState& cluster, DomainId id, const Owners& owners,
                       const BlockTime& time) {
  const DomainState& domain = cluster.domain(id);
  const Chips chips = ChipsOf(cluster, domain);
  json nodes = json::array();
  std::string cell, instance_type;
  for (const NodeId node_id : domain.nodes) {
    if (!node_id.valid() || cluster.node(node_id).node == nullptr) continue;
    const Node& node = *cluster.node(node_id).node;
    nodes.push_back(node.name);
    instance_type = node.family->instance_type;
    std::vector<std::string> layers = node.NetworkLayers();
    if (!layers.empty()) cell = std::move(layers.front());
  }
  return {
      {"ultraServerId", domain.name},
      {"health", HealthOf(cluster, domain)},
      {"linksHealthy", domain.down.empty()},
      {"cell", cell.empty() ? json() : json(cell)},
      {"instanceType", instance_type},
      {"nodes", std::move(nodes)},
      {"chips",
       {{"total", chips.total},
        {"free", chips.free},
        {"busy", chips.busy},
        {"broken", chips.broken},
        {"unready", chips.unready}}},
      {"use", UseOf(domain, chips)},
      {"owner", OwnerJson(owners.now)},
      {"nextOwner", OwnerJson(owners.next)},
      {"keptFrom",
       domain.block.kept_from ? json(FormatTime(time.ToBlock(*domain.block.kept_from))) : json()}};
}

std::string_view HealthOf(const ClusterState& cluster, const DomainState& domain) {
  const bool whole = std::ranges::all_of(domain.nodes, [&](NodeId node) {
    return node.valid() && cluster.node(node).node != nullptr;
  });
  if (!whole) return "Incomplete";
  const Chips chips = ChipsOf(cluster, domain);
  return domain.down.empty() && chips.broken == 0 && chips.unready == 0 ? "OK" : "Impaired";
}

std::string UltraServerName(const std::string& id) {
  if (!kube::WrongDns1123Subdomain(id)) return id;
  std::string name;
  for (const char c : id.substr(0, kNameMost)) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    name += plain ? lower : '-';
  }
  return fmt::format("us-{}-{}", name, Sha256Hex(id).substr(0, kDigestDigits));
}

}  // namespace tahoma::controller
