#include "controller/admin/admin.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/admin/answer.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

const Permission kListNodes{.verb = "list", .resource = "nodes"};
const Permission kListGangs{.verb = "list", .group = "tahoma.dev", .resource = "gangs"};
const Permission kGetGang{.verb = "get", .group = "tahoma.dev", .resource = "gangs"};

Schema ChipSchema() {
  return ObjectOf({{"chip", Integer(0, 15, "Its number on the node.")},
                   {"x", Integer(0, 3, "Its column on the node.")},
                   {"y", Integer(0, 3, "Its row on the node.")},
                   {"healthy", Flag("It works, and is not cordoned.")},
                   {"linksDown?", Text("Links that do not work, such as x+,y-.")},
                   {"busyCores?", Integer(1, 255, "A bit for each physical core in use.")},
                   {"holder?", Text("Who uses it.", kLongTextMost)}},
                  "A chip of a node.");
}

Schema NodeSchema() {
  return ObjectOf({{"name", Text("The Node's name.")},
                   {"instanceType", Text("Empty when it is not published.")},
                   {"schedulable", Flag("It is ready, and not cordoned.")},
                   {"z", Integer(0, 3, "Its place in the UltraServer.")},
                   {"busyChips", Integer(0, 65535, "A bit for each chip that is in use.")},
                   {"ultraServerModes?", ListOf(Text("Such as X4."), "Modes that were elected.")},
                   {"ultraServerMode?", Text("The mode that is chosen.")},
                   {"chips", ListOf(Named("Chip"), "Its chips.")}},
                  "An instance.");
}

Schema DomainSchema() {
  return ObjectOf({{"name", Text("The UltraServer's or the node's.")},
                   {"ultraServer", Flag("It is one, not a lone node.")},
                   {"shape", Text("Such as 4x4x4; empty when it is not known.")},
                   {"freeChips", Integer(0, 64, "Chips that nobody uses.")},
                   {"brokenChips", Integer(0, 64, "Chips that do not work or are cordoned.")},
                   {"nodes", ListOf(Named("Node"), "Its nodes.")}},
                  "A topology domain: an UltraServer or a lone instance.");
}

Schema SliceSchema() {
  return ObjectOf({{"domain", Text("The UltraServer or the node; empty: several.")},
                   {"shape", Text("As placed, such as 4x4x2; empty: no box.")},
                   {"origin", Text("The lowest corner, x,y,z.")},
                   {"nodes", ListOf(Text("A node."), "Its nodes.")}},
                  "One of a gang's equal pieces of the torus.");
}

Schema GangSchema() {
  std::vector<Field> fields = GangStateFields();
  fields.push_back({"boundPods?", Integer(0, 65536, "Pods that are bound.")});
  fields.push_back({"predictedAllReduce?", Text("Of 256 MiB in each chip, such as 832.1us.")});
  fields.push_back({"pods?", ListOf(ObjectOf({{"name", Text("The pod's name.")},
                                              {"node", Text("Where it runs.")},
                                              {"rank", Integer(0, 65535, "Its rank.")},
                                              {"slice", Integer(0, 65535, "Its slice.")}}),
                                    "Its pods, once they have places.")});
  fields.push_back({"slices?", ListOf(Named("Slice"), "Its places on the torus.")});
  return ObjectOf(fields, "A gang, or a pod that is a gang of one.");
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
  ordered_json row = GangStateRow(gang);
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

// The first item of a page of a list by number.
Field FromNumber() { return {"from?", Integer(0, 999'999'999, "The `next` of the page before.")}; }

std::size_t From(const rest::Request& request) {
  return static_cast<std::size_t>(ParseInteger(request.query_value("from").value_or("0")).value());
}

// A gang's place in the list: a pod of the same name comes after it.
using GangPlace = std::pair<GangKey, bool>;

std::string TextOfPlace(const GangPlace& place) {
  return ToString(place.first) + (place.second ? "/pod" : "");
}

GangPlace ParsePlace(std::string_view text) {
  const std::size_t first = std::min(text.find('/'), text.size());
  const std::string_view after = text.substr(std::min(first + 1, text.size()));
  const std::size_t second = std::min(after.find('/'), after.size());
  return {GangKey{std::string(text.substr(0, first)), std::string(after.substr(0, second))},
          after.substr(second) == "/pod"};
}

}  // namespace

std::vector<Field> GangStateFields() {
  return {{"namespace", Text("Its namespace.")},
          {"name", Text("Its name.")},
          {"kind", Word({"Gang", "Pod"}, "A pod without a Gang is one of its own.")},
          {"phase", Word({"Pending", "Placed", "Running", "Degraded", "Finished", "Failed"},
                         "Where it is.")},
          {"reason", Text("Why, in one word; empty when it has just come.")},
          {"message", Text("Why, as a sentence.", kLongTextMost)},
          {"queue", Text("In which it waits, or got its place.")}};
}

ordered_json GangStateRow(const GangView& gang) {
  return {{"namespace", gang.ref.key.ns},
          {"name", gang.ref.key.name},
          {"kind", gang.ref.single ? "Pod" : "Gang"},
          {"phase", ToString(gang.phase)},
          {"reason", ToString(gang.reason)},
          {"message", gang.message},
          {"queue", gang.queue}};
}

std::shared_ptr<const GangView> FindGang(const Snapshot& snapshot, const rest::Request& request) {
  const GangKey key{std::string(request.param("namespace")), std::string(request.param("name"))};
  for (const bool single : {false, true}) {
    if (const auto* found = snapshot.gangs.Find(GangRef{key, single})) return *found;
  }
  return nullptr;
}

rest::Response UnknownGang(const rest::Request& request) {
  return rest::Response::Problem(
      404, fmt::format("no gang and no waiting or placed pod {}/{}", request.param("namespace"),
                       request.param("name")));
}

void Admin::AddRoutes(RouteTable& routes) {
  routes.Name("Chip", ChipSchema());
  routes.Name("Node", NodeSchema());
  routes.Name("Domain", DomainSchema());
  routes.Name("Slice", SliceSchema());
  routes.Name("Gang", GangSchema());
  const Field next{"next?", Integer(0, INT32_MAX, "Where the next page begins.")};
  routes.Add({.path = "/v1/topology",
              .id = "listDomains",
              .summary = "The topology domains with their nodes and chips.",
              .needs = kListNodes,
              .query = {FromNumber()},
              .answer = ObjectOf({{"synced", Flag("The fleet is known.")},
                                  {"domains", ListOf(Named("Domain"), "In no order.")},
                                  next}),
              .handler = [this](const auto& r) { return Topology(r); }});
  routes.Add({.path = "/v1/nodes",
              .id = "listNodes",
              .summary = "The nodes with their chips, and who uses them.",
              .needs = kListNodes,
              .query = {FromNumber()},
              .answer = ObjectOf({{"nodes", ListOf(Named("Node"), "In no order.")}, next}),
              .handler = [this](const auto& r) { return Nodes(r); }});
  routes.Add({.path = "/v1/gangs",
              .id = "listGangs",
              .summary = "The gangs by namespace and name.",
              .needs = kListGangs,
              .query = {{"from?", Text("The `next` of the page before.")}},
              .answer = ObjectOf({{"total", Integer(0, INT32_MAX, "Of all pages.")},
                                  {"gangs", ListOf(Named("Gang"), "A page of them.")},
                                  {"next?", Text("Where the next page begins.")}}),
              .handler = [this](const auto& r) { return Gangs(r); }});
  routes.Add({.path = "/v1/gangs/{namespace}/{name}",
              .id = "getGang",
              .summary = "One gang; for a pod without a Gang the pod's own name.",
              .needs = kGetGang,
              .answer = Named("Gang"),
              .handler = [this](const auto& r) { return Gang(r); }});
}

rest::Response Admin::Topology(const rest::Request& request) const {
  const auto snapshot = take_();
  const ClusterView& cluster = snapshot->cluster;
  ordered_json domains = ordered_json::array();
  ordered_json body = {{"synced", snapshot->synced}};
  std::size_t id = From(request);
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
  return Answer(200, body);
}

rest::Response Admin::Nodes(const rest::Request& request) const {
  const auto snapshot = take_();
  const ClusterView& cluster = snapshot->cluster;
  ordered_json nodes = ordered_json::array();
  std::size_t id = From(request);
  const std::size_t count = cluster == nullptr ? 0 : cluster->node_count();
  for (; id < count && nodes.size() < kRowsMost; ++id) {
    const NodeState& node = cluster->node(NodeId(id));
    if (node.node != nullptr) nodes.push_back(NodeRow(node));
  }
  ordered_json body = {{"nodes", std::move(nodes)}};
  if (id < count) body["next"] = id;
  return Answer(200, body);
}

rest::Response Admin::Gangs(const rest::Request& request) const {
  const auto snapshot = take_();
  const auto page = PageOf(snapshot->gangs, ParsePlace(request.query_value("from").value_or("")),
                           [](const GangRef& ref) { return GangPlace(ref.key, ref.single); });
  ordered_json gangs = ordered_json::array();
  for (const auto& [place, view] : page.rows) gangs.push_back(GangRow(*view));
  ordered_json body = {{"total", snapshot->gangs.size()}, {"gangs", std::move(gangs)}};
  if (page.next) body["next"] = TextOfPlace(*page.next);
  return Answer(200, body);
}

rest::Response Admin::Gang(const rest::Request& request) const {
  const auto snapshot = take_();
  const auto view = FindGang(*snapshot, request);
  return view == nullptr ? UnknownGang(request) : Answer(200, GangRow(*view));
}

}  // namespace tahoma::controller
