#include "controller/admin/admin.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;
using nlohmann::ordered_json;

// Rows of one answer; a fleet is read in pages by ?from=.
constexpr std::size_t kRowsMost = 1000;

rest::Response Answer(const ordered_json& body) {
  return rest::Response::Json(200, body.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::string HolderOfChip(const NodeState& node, std::size_t chip) {
  std::string holder;
  for (const auto& holding : node.holdings) {
    for (const Holding::HeldDevice& held : holding->devices) {
      if (node.node == nullptr || held.node != node.node->name || held.admin_access) continue;
      const DeviceRole role = node.node->RoleNamed(held.device);
      const bool covers =
          role.kind == DeviceKind::kNode || (role.kind != DeviceKind::kOther && role.chip == chip);
      if (!covers || holder == holding->holder) continue;
      holder += (holder.empty() ? "" : ", ") + holding->holder;
    }
  }
  return holder;
}

ordered_json ChipsOf(const NodeState& node) {
  ordered_json chips = ordered_json::array();
  const NodeTemplate& devices = *node.node->family->devices;
  for (std::size_t chip = 0; chip < kChipsPerNode; ++chip) {
    if (((devices.chip_mask >> chip) & 1U) == 0) continue;
    ordered_json one = {{"chip", chip}, {"x", chip % 4}, {"y", chip / 4}};
    one["healthy"] = ((devices.healthy_mask >> chip) & 1U) != 0;
    if (const AttributeValue* down =
            node.node->Lookup(devices.chips[chip], kTahomaDomain, "linksDown")) {
      one["linksDown"] = std::holds_alternative<std::string>(*down) ? std::get<std::string>(*down)
                                                                    : ToString(*down);
    }
    if (node.busy_cores[chip] != 0) {
      one["busyCores"] = node.busy_cores[chip];
      one["holder"] = HolderOfChip(node, chip);
    }
    chips.push_back(std::move(one));
  }
  return chips;
}

ordered_json NodeRow(const NodeState& node) {
  ordered_json row = {{"name", node.node->name},
                      {"instanceType", node.node->family->instance_type},
                      {"schedulable", node.node->schedulable()},
                      {"z", node.z},
                      {"busyChips", node.BusyChips()}};
  if (node.node->elected) {
    row["ultraServerModes"] = ordered_json::array();
    for (const hw::UltraServerMode mode : node.node->elected->offered) {
      row["ultraServerModes"].push_back(hw::ModeName(mode));
    }
    if (node.node->elected->chosen != hw::UltraServerMode::kUnset) {
      row["ultraServerMode"] = hw::ModeName(node.node->elected->chosen);
    }
  }
  row["chips"] = ChipsOf(node);
  return row;
}

ordered_json GangRow(const GangView& gang) {
  ordered_json row = {{"namespace", gang.ref.key.ns},
                      {"name", gang.ref.key.name},
                      {"kind", gang.ref.single ? "Pod" : "Gang"},
                      {"phase", ToString(gang.phase)},
                      {"reason", ToString(gang.reason)},
                      {"message", gang.message}};
  if (gang.decision == nullptr) return row;
  row["boundPods"] = gang.bound_pods;
  if (!gang.predicted_all_reduce.empty()) row["predictedAllReduce"] = gang.predicted_all_reduce;
  for (const DecidedPod& pod : gang.decision->pods) {
    row["pods"].push_back(
        {{"name", pod.name}, {"node", pod.node}, {"rank", pod.rank}, {"slice", pod.slice}});
  }
  for (const DecidedSlice& slice : gang.decision->slices) {
    row["slices"].push_back({{"domain", slice.domain},
                             {"shape", slice.shape},
                             {"origin", slice.origin},
                             {"nodes", slice.nodes}});
  }
  return row;
}

std::shared_ptr<const GangView> Find(const Snapshot& snapshot, const rest::Request& request) {
  const GangKey key{std::string(request.param("namespace")), std::string(request.param("name"))};
  for (const bool single : {false, true}) {
    if (const auto* found = snapshot.gangs.Find(GangRef{key, single})) return *found;
  }
  return nullptr;
}

rest::Response Unknown(const rest::Request& request) {
  return rest::Response::Problem(
      404, fmt::format("no gang and no waiting or placed pod {}/{}", request.param("namespace"),
                       request.param("name")));
}

// Returns the first item of the page, from ?from=NUMBER.
absl::StatusOr<std::size_t> From(const rest::Request& request) {
  const auto text = request.query_value("from");
  if (!text) return std::size_t{0};
  if (text->empty() || text->size() > 9 ||
      !std::all_of(text->begin(), text->end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return InvalidArgument("from is \"{}\"; expected a number", *text);
  }
  return static_cast<std::size_t>(std::stoul(*text));
}

}  // namespace

void Admin::AddRoutes(rest::Server& server) {
  server.Route("GET", "/v1/topology", [this](const auto& r) { return Topology(r); });
  server.Route("GET", "/v1/nodes", [this](const auto& r) { return Nodes(r); });
  server.Route("GET", "/v1/gangs", [this](const auto& r) { return Gangs(r); });
  server.Route("GET", "/v1/gangs/{namespace}/{name}", [this](const auto& r) { return Gang(r); });
  server.Route("GET", "/v1/why/{namespace}/{name}", [this](const auto& r) { return Why(r); });
}

rest::Response Admin::Topology(const rest::Request& request) const {
  const auto from = From(request);
  if (!from.ok()) return rest::Response::FromStatus(from.status());
  const auto snapshot = take_();
  const ClusterView& cluster = snapshot->cluster;
  ordered_json domains = ordered_json::array();
  ordered_json body = {{"synced", snapshot->synced}};
  std::size_t id = *from;
  const std::size_t count = cluster == nullptr ? 0 : cluster->domain_count();
  for (; id < count && domains.size() < kRowsMost; ++id) {
    const DomainState& domain = cluster->domain(DomainId(id));
    if (domain.name.empty()) continue;
    ordered_json row = {{"name", domain.name},
                        {"ultraServer", domain.ultra},
                        {"shape", domain.torus_known ? domain.shape().ToString() : ""},
                        {"freeChips", std::popcount(domain.free)},
                        {"brokenChips", std::popcount(domain.broken)}};
    row["nodes"] = ordered_json::array();
    for (const NodeId node : domain.nodes) {
      if (!node.valid() || cluster->node(node).node == nullptr) continue;
      row["nodes"].push_back(NodeRow(cluster->node(node)));
    }
    domains.push_back(std::move(row));
  }
  body["domains"] = std::move(domains);
  if (id < count) body["next"] = id;
  return Answer(body);
}

rest::Response Admin::Nodes(const rest::Request& request) const {
  const auto from = From(request);
  if (!from.ok()) return rest::Response::FromStatus(from.status());
  const auto snapshot = take_();
  const ClusterView& cluster = snapshot->cluster;
  ordered_json nodes = ordered_json::array();
  std::size_t id = *from;
  const std::size_t count = cluster == nullptr ? 0 : cluster->node_count();
  for (; id < count && nodes.size() < kRowsMost; ++id) {
    const NodeState& node = cluster->node(NodeId(id));
    if (node.node != nullptr) nodes.push_back(NodeRow(node));
  }
  ordered_json body = {{"nodes", std::move(nodes)}};
  if (id < count) body["next"] = id;
  return Answer(body);
}

rest::Response Admin::Gangs(const rest::Request&) const {
  const auto snapshot = take_();
  std::map<std::pair<GangKey, bool>, std::shared_ptr<const GangView>> sorted;
  snapshot->gangs.ForEach([&](const GangRef& ref, const auto& view) {
    sorted[{ref.key, ref.single}] = view;
    if (sorted.size() > kRowsMost) sorted.erase(std::prev(sorted.end()));
  });
  ordered_json gangs = ordered_json::array();
  for (const auto& [key, view] : sorted) gangs.push_back(GangRow(*view));
  return Answer({{"total", snapshot->gangs.size()}, {"gangs", std::move(gangs)}});
}

rest::Response Admin::Gang(const rest::Request& request) const {
  const auto snapshot = take_();
  const auto view = Find(*snapshot, request);
  return view == nullptr ? Unknown(request) : Answer(GangRow(*view));
}

rest::Response Admin::Why(const rest::Request& request) const {
  const auto snapshot = take_();
  const auto view = Find(*snapshot, request);
  if (view == nullptr) return Unknown(request);
  return Answer({{"namespace", view->ref.key.ns},
                 {"name", view->ref.key.name},
                 {"kind", view->ref.single ? "Pod" : "Gang"},
                 {"phase", ToString(view->phase)},
                 {"reason", ToString(view->reason)},
                 {"message", view->message}});
}

}  // namespace tahoma::controller
