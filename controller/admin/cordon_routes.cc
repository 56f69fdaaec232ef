#include "controller/admin/cordon_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "controller/admin/answer.h"
#include "controller/admin/objects.h"
#include "controller/admin/promises.h"
#include "controller/model/cordoned_chips.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/requests.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

// Other clients write Nodes all the time: after a conflict a change is tried again.
constexpr int kCordonTriesMost = 5;
constexpr std::size_t kBlocksShown = 100;

Schema CordonSchema() {
  return ObjectOf(
      {{"nodes", ListOf(Text("A Node."), "What was changed, or was so before.")},
       {"gangs", ListOf(ObjectOf({{"namespace", Text("Its namespace.")},
                                  {"name", Text("Its name.")},
                                  {"kind", Word({"Gang", "Pod"}, "A gang of one is a Pod.")},
                                  {"pods", Integer(0, 65536, "Its pods, on all nodes.")}}),
                        "Gangs that are there, before those that end now have ended.")},
       {"podsEnding?", Integer(0, 65536, "Pods that were evicted by this request.")},
       {"refused?", ListOf(Text("A pod and why.", kLongTextMost), "Pods that were not.")},
       {"drained?", Flag("Nothing of gangs is there any more.")},
       {"blocks", ListOf(Named("HurtBlock"), "Capacity Blocks that suffer.")}},
      "Hardware that was taken out of service, or back.");
}

Schema HurtSchema() {
  return ObjectOf({{"namespace", Text("The owner.")},
                   {"name", Text("The CapacityBlock's.")},
                   {"capacityReservationId", Text("Its reservation.")},
                   {"why", Text("How it suffers.", kLongTextMost)}},
                  "A Capacity Block that suffers.");
}

ordered_json BlocksJson(const std::vector<HurtBlock>& hurt) {
  ordered_json rows = ordered_json::array();
  for (const HurtBlock& one : hurt) {
    if (rows.size() == kBlocksShown) break;
    rows.push_back({{"namespace", one.block->key.ns},
                    {"name", one.block->key.name},
                    {"capacityReservationId", one.block->reservation},
                    {"why", one.why}});
  }
  return rows;
}

rest::Response PromiseRefusal(const std::vector<HurtBlock>& hurt) {
  const std::string others =
      hurt.size() == 1 ? "" : fmt::format(" ({} Capacity Blocks suffer)", hurt.size());
  rest::Response problem = rest::Response::Problem(
      409, fmt::format("{}{}; with force it is done all the same", hurt.front().why, others));
  ordered_json body = ordered_json::parse(problem.body);
  body["blocks"] = BlocksJson(hurt);
  problem.body = body.dump(2) + "\n";
  return problem;
}

}  // namespace

struct CordonRoutes::Target {
  Kind kind = Kind::kNode;
  std::vector<std::string> nodes;
  DomainId domain;
  std::uint16_t chips = 0xffff;  // the targeted chips of the node

  bool whole() const { return kind != Kind::kChip; }
  static absl::StatusOr<Target> Find(Kind kind, const rest::Request& request,
                                     const ClusterState& cluster);
  std::vector<KnownPod> AddGangs(const Snapshot& snapshot, ordered_json& body) const;
  // Returns whether the gang uses the target.
  bool IsUsedBy(const GangDecision& decision, const ClusterState& cluster) const;
};

bool CordonRoutes::Target::IsUsedBy(const GangDecision& decision,
                                    const ClusterState& cluster) const {
  const auto is_here = [&](const std::string& node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  if (whole()) {
    return std::any_of(decision.pods.begin(), decision.pods.end(),
                       [&](const DecidedPod& pod) { return is_here(pod.node); });
  }
  const auto id = cluster.FindNode(nodes.front());
  if (!id || cluster.node(*id).node == nullptr) return false;
  const Node& node = *cluster.node(*id).node;
  for (const DecidedClaim& claim : decision.claims) {
    if (!is_here(claim.allocation.node)) continue;
    for (const DeviceResult& result : claim.allocation.results) {
      if (!result.admin_access && (node.ChipsNamed(result.device) & chips) != 0) return true;
    }
  }
  return false;
}

void CordonRoutes::AddRoute(RouteTable& routes, Kind kind, Action action) {
  static constexpr const char* kPaths[] = {"/v1/nodes/{name}", "/v1/ultraservers/{name}",
                                           "/v1/nodes/{name}/chips/{chip}"};
  static constexpr const char* kWhat[] = {"Node", "UltraServer", "Chip"};
  static constexpr const char* kVerbs[] = {"cordon", "uncordon", "drain"};
  static constexpr const char* kSummaries[] = {
      "Takes it out of service: nothing more is placed on it.", "Takes it back into service.",
      "Takes it out of service and ends the gangs on it, whole and with their grace; asking again "
      "says what is left."};
  const auto k = static_cast<std::size_t>(kind);
  const auto a = static_cast<std::size_t>(action);
  const Schema force = BodyOf({{"force?", Flag("Also when Capacity Blocks suffer.")}});
  routes.Add({.method = "POST",
              .path = fmt::format("{}/{}", kPaths[k], kVerbs[a]),
              .id = fmt::format("{}{}", kVerbs[a], kWhat[k]),
              .summary = kSummaries[a],
              .needs = {.verb = "patch", .resource = "nodes"},
              .body = action == Action::kUncordon ? BodyOf({}) : force,
              .body_optional = true,
              .status = action == Action::kDrain ? 202 : 200,
              .answer = Named("Cordon"),
              .handler = [this, kind, action](const auto& r) { return Carry(kind, action, r); }});
}

void CordonRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("Cordon", CordonSchema());
  routes.Name("HurtBlock", HurtSchema());
  for (const Kind kind : {Kind::kNode, Kind::kUltraServer, Kind::kChip}) {
    for (const Action action : {Action::kCordon, Action::kUncordon, Action::kDrain}) {
      AddRoute(routes, kind, action);
    }
  }
}

absl::Status CordonRoutes::Mark(const std::string& node, const Target& target,
                                bool cordoned) const {
  if (target.whole()) {
    Json patch;
    patch["spec"]["unschedulable"] = cordoned ? Json(true) : Json(nullptr);
    return Send(api_, kube::PatchRequest(kube::kNodes, {"", node}, kube::PatchType::kMerge, patch))
        .status();
  }
  absl::Status failed;
  for (int i = 0; i < kCordonTriesMost; ++i) {
    TAHOMA_ASSIGN_OR_RETURN(const auto object,
                            Send(api_, kube::GetRequest(kube::kNodes, {"", node})));
    const std::string before(kube::StringAt(*object, {"metadata", "annotations", kCordonedChips}));
    const std::uint16_t chips = ParseCordonedChips(before);
    const auto after =
        static_cast<std::uint16_t>(cordoned ? chips | target.chips : chips & ~target.chips);
    if (after == chips) return absl::OkStatus();
    Json patch;
    patch["metadata"]["resourceVersion"] = kube::StringAt(*object, {"metadata", "resourceVersion"});
    patch["metadata"]["annotations"][std::string(kCordonedChips)] =
        after == 0 ? Json(nullptr) : Json(CordonedChipsText(after));
    failed = Send(api_, kube::PatchRequest(kube::kNodes, {"", node}, kube::PatchType::kMerge,
                                           std::move(patch)))
                 .status();
    if (!absl::IsAborted(failed)) break;
  }
  return failed;
}

absl::StatusOr<CordonRoutes::Target> CordonRoutes::Target::Find(Kind kind,
                                                                const rest::Request& request,
                                                                const ClusterState& cluster) {
  Target target{.kind = kind, .nodes = {}, .domain = {}};
  const std::string name(request.param("name"));
  if (kind == Kind::kUltraServer) {
    const auto domain = cluster.FindDomain(name);
    if (!domain || !cluster.domain(*domain).ultra)
      return NotFound("there is no UltraServer {}", name);
    target.domain = *domain;
    for (const NodeId id : cluster.domain(*domain).nodes) {
      if (id.valid() && cluster.node(id).node != nullptr) {
        target.nodes.push_back(cluster.node(id).node->name);
      }
    }
    return target;
  }
  const auto id = cluster.FindNode(name);
  if (!id || cluster.node(*id).node == nullptr) return NotFound("there is no node {}", name);
  target.nodes = {name};
  target.domain = cluster.node(*id).domain;
  if (kind == Kind::kChip) {
    const std::int64_t chip = ParseInteger(request.param("chip")).value();
    target.chips = static_cast<std::uint16_t>(1U << static_cast<unsigned>(chip));
    if ((cluster.node(*id).node->family->devices->chip_mask & target.chips) == 0) {
      return NotFound("node {} has no chip {}", name, chip);
    }
  }
  return target;
}

// Adds the gangs that use the target to the answer, and returns the pods to be evicted for it.
std::vector<KnownPod> CordonRoutes::Target::AddGangs(const Snapshot& snapshot,
                                                     ordered_json& body) const {
  std::vector<KnownPod> pods;
  body["gangs"] = ordered_json::array();
  snapshot.gangs.ForEach([&](const GangRef& ref, const std::shared_ptr<const GangView>& view) {
    if (view->decision == nullptr || !IsUsedBy(*view->decision, *snapshot.cluster)) return;
    body["gangs"].push_back({{"namespace", ref.key.ns},
                             {"name", ref.key.name},
                             {"kind", ref.single ? "Pod" : "Gang"},
                             {"pods", view->decision->pods.size()}});
    if (pods.size() >= kPodsMost) return;
    for (const DecidedPod& pod : view->decision->pods) {
      pods.push_back({.key = {ref.key.ns, pod.name}, .uid = pod.uid});
    }
  });
  return pods;
}

rest::Response CordonRoutes::Carry(Kind kind, Action action, const rest::Request& request) const {
  const auto snapshot = take_();
  if (!snapshot->synced || snapshot->cluster == nullptr) {
    return Refused(Unavailable("the fleet is not known yet"));
  }
  const auto target = Target::Find(kind, request, *snapshot->cluster);
  if (!target.ok()) return Refused(target.status());
  const bool drains = action == Action::kDrain;
  std::vector<HurtBlock> hurt;
  if (action != Action::kUncordon && target->domain.valid()) {
    const WallTime now = clock_.WallNow();
    hurt = drains ? HurtByDrain(*snapshot, target->domain, now)
                  : HurtByCordon(*snapshot, target->domain, now);
    if (!hurt.empty() && !FlagOf(*request.parsed, "force")) return PromiseRefusal(hurt);
  }
  for (const std::string& node : target->nodes) {
    const absl::Status marked = Mark(node, *target, action != Action::kUncordon);
    if (!marked.ok()) return Refused(Annotate(marked, "node " + node));
  }
  ordered_json body = {{"nodes", target->nodes}};
  const std::vector<KnownPod> pods = target->AddGangs(*snapshot, body);
  if (drains) {
    const EndedPods ended = Evict(api_, pods);
    body["podsEnding"] = ended.ended;
    body["refused"] = ended.refused;
    body["drained"] = pods.empty();
  }
  body["blocks"] = BlocksJson(hurt);
  return Answer(drains ? 202 : 200, body);
}

}  // namespace tahoma::controller
