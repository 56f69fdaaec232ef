#include "controller/ctl/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kColumns = 4;

// Letters in the order in which holders appear; after Z comes A again.
class Letters {
 public:
  char Of(const std::string& holder) {
    const auto [at, added] = letters_.try_emplace(holder, 'A');
    if (added) {
      at->second = static_cast<char>('A' + static_cast<int>(order_.size() % 26));
      order_.push_back(holder);
    }
    return at->second;
  }
  const std::vector<std::string>& order() const { return order_; }

 private:
  std::map<std::string, char> letters_;
  std::vector<std::string> order_;
};

// Returns the holder of a chip; the first when several holders share its cores.
std::string HolderOf(const NodeState& node, std::size_t chip) {
  for (const auto& holding : node.holdings) {
    for (const Holding::HeldDevice& held : holding->devices) {
      if (held.node != node.node->name || held.admin_access) continue;
      const DeviceRole role = node.node->RoleNamed(held.device);
      if (role.kind == DeviceKind::kNode) return holding->holder;
      if (role.kind != DeviceKind::kOther && role.chip == chip) return holding->holder;
    }
  }
  return "";
}

char Cell(const NodeState& node, std::size_t chip, Letters& letters) {
  const NodeTemplate& devices = *node.node->family->devices;
  if (((devices.chip_mask >> chip) & 1U) == 0) return ' ';
  if (((devices.healthy_mask >> chip) & 1U) == 0) return '!';
  if (node.busy_cores[chip] != 0) {
    const std::string holder = HolderOf(node, chip);
    const char letter = letters.Of(holder.empty() ? "somebody" : holder);
    const bool whole = node.busy_cores[chip] == 0xff;
    return whole ? letter : static_cast<char>(letter - 'A' + 'a');
  }
  return node.node->Lookup(devices.chips[chip], kTahomaDomain, "linksDown") != nullptr ? '~' : '.';
}

struct Plane {
  std::string title;
  std::vector<std::string> rows;
};

Plane PlaneOf(const NodeState& node, bool ultra, Letters& letters) {
  Plane plane;
  plane.title = ultra ? fmt::format("z={} {}", node.z, node.node->name) : node.node->name;
  if (!node.node->schedulable()) plane.title += " (not ready)";
  const auto chips =
      static_cast<std::size_t>(std::bit_width(node.node->family->devices->chip_mask));
  for (std::size_t first = 0; first < chips; first += kColumns) {
    std::string& row = plane.rows.emplace_back();
    for (std::size_t chip = first; chip < std::min(chips, first + kColumns); ++chip) {
      if (!row.empty()) row += ' ';
      row += Cell(node, chip, letters);
    }
  }
  if (plane.rows.empty()) plane.rows.emplace_back("no devices");
  return plane;
}

// Returns "  modes X4, X2V, X1", or each node's modes when they differ; empty without an election.
std::string ModesOf(const ClusterState& cluster, const DomainState& domain) {
  std::vector<std::string> texts;
  std::string each;
  for (const NodeId id : domain.nodes) {
    if (!id.valid() || cluster.node(id).node == nullptr) continue;
    const Node& node = *cluster.node(id).node;
    if (!node.elected) continue;
    std::string text = node.elected->running ? "electing" : "";
    for (const hw::UltraServerMode mode : node.elected->offered) {
      const bool chosen = mode == node.elected->chosen;
      text += fmt::format("{}{}{}", text.empty() ? "" : ",", hw::ModeName(mode), chosen ? "*" : "");
    }
    each += fmt::format("{}z={} {}", each.empty() ? "" : "  ", node.z, text);
    texts.push_back(std::move(text));
  }
  if (texts.empty()) return "";
  const bool same =
      std::adjacent_find(texts.begin(), texts.end(), std::not_equal_to<>()) == texts.end();
  return fmt::format("  modes {}", same ? texts.front() : each);
}

std::string SideBySide(const std::vector<Plane>& planes) {
  std::size_t rows = 0;
  for (const Plane& plane : planes) rows = std::max(rows, plane.rows.size());
  std::string text;
  for (std::size_t row = 0; row <= rows; ++row) {
    std::string line = " ";
    for (const Plane& plane : planes) {
      const std::string cell = row == 0                      ? plane.title
                               : row - 1 < plane.rows.size() ? plane.rows[row - 1]
                                                             : "";
      std::size_t width = plane.title.size();
      for (const std::string& each : plane.rows) width = std::max(width, each.size());
      line += fmt::format(" {:<{}} ", cell, width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

using DomainsByName = std::map<std::string, DomainId>;

std::string Draw(const ClusterState& cluster, const DomainsByName& domains,
                 const HolderNotes& notes) {
  Letters letters;
  std::string text;
  for (const bool ultra : {true, false}) {
    for (const auto& [name, id] : domains) {
      const DomainState& domain = cluster.domain(id);
      if (domain.ultra != ultra) continue;
      std::vector<Plane> planes;
      std::string type;
      for (const NodeId node : domain.nodes) {
        if (!node.valid() || cluster.node(node).node == nullptr) continue;
        type = cluster.node(node).node->family->instance_type;
        planes.push_back(PlaneOf(cluster.node(node), ultra, letters));
      }
      if (planes.empty()) continue;
      text += fmt::format("{} {}  {}  {} of {} chips free{}\n", ultra ? "UltraServer" : "Instance",
                          name, type, std::popcount(domain.free),
                          std::popcount(domain.present | domain.broken), ModesOf(cluster, domain));
      text += SideBySide(planes) + "\n";
    }
  }
  if (text.empty()) text = "no nodes with Trainium2 devices\n\n";
  text +=
      ".  free    !  broken    ~  free, with a link down    small letter  some cores of a chip\n";
  for (const std::string& holder : letters.order()) {
    const auto note = notes.find(holder);
    text += fmt::format("{}  {}{}{}\n", letters.Of(holder), holder, note == notes.end() ? "" : "  ",
                        note == notes.end() ? "" : note->second);
  }
  return text;
}

std::string StateOf(char cell) {
  return cell == '!'                  ? "broken"
         : cell == '~'                ? "linkDown"
         : cell == '.'                ? "free"
         : cell >= 'a' && cell <= 'z' ? "shared"
                                      : "held";
}

Json NodeJson(const NodeState& node, bool ultra) {
  Letters letters;
  Json shown = {{"name", node.node->name}, {"ready", node.node->schedulable()}};
  if (ultra) shown["z"] = node.z;
  Json& chips = shown["chips"] = Json::array();
  const auto count =
      static_cast<std::size_t>(std::bit_width(node.node->family->devices->chip_mask));
  for (std::size_t chip = 0; chip < count; ++chip) {
    const char cell = Cell(node, chip, letters);
    if (cell == ' ') continue;
    Json& row = chips.emplace_back(Json{{"chip", chip}, {"state", StateOf(cell)}});
    if (node.busy_cores[chip] != 0) row["holder"] = HolderOf(node, chip);
  }
  return shown;
}

Json DomainsJson(const ClusterState& cluster, const DomainsByName& domains) {
  Json list = Json::array();
  for (const auto& [name, id] : domains) {
    const DomainState& domain = cluster.domain(id);
    Json shown = {{"name", name},
                  {"kind", domain.ultra ? "UltraServer" : "Instance"},
                  {"freeChips", std::popcount(domain.free)},
                  {"nodes", Json::array()}};
    for (const NodeId node : domain.nodes) {
      if (!node.valid() || cluster.node(node).node == nullptr) continue;
      shown["instanceType"] = cluster.node(node).node->family->instance_type;
      shown["nodes"].push_back(NodeJson(cluster.node(node), domain.ultra));
    }
    if (!shown["nodes"].empty()) list.push_back(std::move(shown));
  }
  return {{"domains", std::move(list)}};
}

DomainsByName AllDomains(const ClusterState& cluster) {
  DomainsByName domains;
  for (std::size_t i = 0; i < cluster.domain_count(); ++i) {
    const DomainState& domain = cluster.domain(DomainId(i));
    if (!domain.name.empty()) domains[domain.name] = DomainId(i);
  }
  return domains;
}

// Returns the domain of that name, or of the node of that name; empty when nothing has the name.
DomainsByName DomainNamed(const ClusterState& cluster, const std::string& name) {
  std::optional<DomainId> domain = cluster.FindDomain(name);
  if (!domain) {
    const auto node = cluster.FindNode(name);
    if (!node || !cluster.node(*node).domain.valid()) return {};
    domain = cluster.node(*node).domain;
  }
  return {{cluster.domain(*domain).name, *domain}};
}

}  // namespace

std::string DrawTopology(const ClusterState& cluster, const HolderNotes& notes) {
  return Draw(cluster, AllDomains(cluster), notes);
}

std::optional<std::string> DrawDomain(const ClusterState& cluster, const HolderNotes& notes,
                                      const std::string& name) {
  const DomainsByName domain = DomainNamed(cluster, name);
  if (domain.empty()) return std::nullopt;
  return Draw(cluster, domain, notes);
}

Json TopologyJson(const ClusterState& cluster) { return DomainsJson(cluster, AllDomains(cluster)); }

std::optional<Json> DomainJson(const ClusterState& cluster, const std::string& name) {
  const DomainsByName domain = DomainNamed(cluster, name);
  if (domain.empty()) return std::nullopt;
  return DomainsJson(cluster, domain);
}

}  // namespace tahoma::controller
