#include "controller/publish/neuron_ultraservers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "controller/publish/projected.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kPlaces = std::tuple_size_v<decltype(DomainState::nodes)>;

// Returns the id of an UltraServer that has an object; empty for other domains. Without a node the
// type of the instances is not known.
std::string ServerOf(const ClusterState& cluster, const DomainState& domain) {
  const bool has_node = std::ranges::any_of(domain.nodes, [&](NodeId node) {
    return node.valid() && cluster.node(node).node != nullptr;
  });
  return domain.ultra && domain.torus_known && has_node ? domain.name : "";
}

const Node* NodeAt(const ClusterState& cluster, const DomainState& domain, std::size_t place) {
  const NodeId id = domain.nodes[place];
  return id.valid() ? cluster.node(id).node.get() : nullptr;
}

// Returns "up" when both nodes are ready and each link between their chips works.
std::string_view LinkStatus(const ClusterState& cluster, const DomainState& domain, std::size_t a,
                            std::size_t b) {
  const Node* const ends[] = {NodeAt(cluster, domain, a), NodeAt(cluster, domain, b)};
  const bool ready =
      std::ranges::all_of(ends, [](const Node* node) { return node != nullptr && node->ready; });
  // A link belongs to the chip below it on the ring.
  const std::size_t below = (a + 1) % kPlaces == b ? a : b;
  const torus::ChipMask layer = ((torus::ChipMask{1} << kChipsPerNode) - 1)
                                << (kChipsPerNode * below);
  return ready && (domain.down.along(torus::Axis::kZ) & layer) == 0 ? "up" : "down";
}

// Left cables, of mode X2V, are vertical: they join places 0 and 1, and 2 and 3. Right cables, of
// X2H, are horizontal (lib/driver/ultraserver_mode.h).
Json SpecOf(const ClusterState& cluster, const DomainState& domain) {
  std::string type;
  Json topology = Json::array();
  for (std::size_t place = 0; place < kPlaces; ++place) {
    const Node* node = NodeAt(cluster, domain, place);
    if (node == nullptr) continue;
    type = node->family->instance_type;
    topology.push_back(
        {{"nodeId", place},
         {"nodeName", node->name},
         {"linkStatusHorizontal", LinkStatus(cluster, domain, place, kPlaces - 1 - place)},
         {"linkStatusVertical", LinkStatus(cluster, domain, place, place ^ 1U)}});
  }
  return {{"instanceType", type}, {"topology", std::move(topology)}};
}

// Returns the nodes of a slice in the order of the ranks.
std::vector<std::string> NodesOf(const GangDecision& decision, std::size_t slice) {
  std::vector<const DecidedPod*> pods;
  for (const DecidedPod& pod : decision.pods) {
    if (pod.slice == slice) pods.push_back(&pod);
  }
  std::ranges::sort(pods, {}, &DecidedPod::rank);
  std::vector<std::string> nodes;
  for (const DecidedPod* pod : pods) {
    if (std::ranges::find(nodes, pod->node) == nodes.end()) nodes.push_back(pod->node);
  }
  return nodes;
}

// Returns "Pending" while the gang's pods are not bound, or its place is being taken back.
std::string_view PhaseOf(const GangView& view) {
  const bool committing =
      view.phase == GangPhase::kPlaced && view.reason == GangReason::kCommitting;
  return committing || view.phase == GangPhase::kPending ? "Pending" : "Bound";
}

// Returns nullptr when the gang has no place, or is of no workload.
const GangDecision* PlaceOf(const GangView& view) {
  return view.neuron_workload ? view.decision.get() : nullptr;
}

}  // namespace

void NeuronUltraServers::OnSeen(const std::string& name, const Json& object) {
  if (looked_) return;
  Standings standings;
  for (const Json& condition : kube::ListAt(object, {"status", "conditions"})) {
    const std::string_view since = kube::StringAt(condition, {"lastTransitionTime"});
    for (std::size_t i = 0; i < kConditions.size(); ++i) {
      if (kube::StringAt(condition, {"type"}) != kConditions[i] || !ParseTime(since).ok()) continue;
      standings[i] = {.holds = kube::StringAt(condition, {"status"}) == "True",
                      .since = std::string(since)};
    }
  }
  seen_[name] = std::move(standings);
}

std::vector<NeuronUltraServers::Change> NeuronUltraServers::Look(const Snapshot& now,
                                                                 WallTime time) {
  const ClusterState& cluster = *now.cluster;
  ForEachDifference(gangs_, now.gangs, [&](const GangRef&, const auto* before, const auto* after) {
    NoteGang(before, after);
  });
  gangs_ = now.gangs;
  std::set<std::uint32_t> changed;
  ClusterState::ForEachChangedDomain(cluster_, cluster, [&](DomainId id) {
    if (id.value() < cluster.domain_count()) changed.insert(id.value());
  });
  cluster_ = cluster;
  for (const std::string& server : std::exchange(touched_, {})) {
    if (const auto id = cluster.FindDomain(server)) changed.insert(id->value());
  }
  servers_.resize(std::max(servers_.size(), cluster.domain_count()));
  std::vector<Change> changes;
  // Those that have gone come first: an UltraServer may come back as another domain.
  for (const std::uint32_t id : changed) {
    std::string& known = servers_[id];
    std::string server = ServerOf(cluster, cluster.domain(DomainId(id)));
    if (!known.empty() && known != server) {
      changes.emplace_back(UltraServerName(known), nullptr);
      standings_.erase(known);
    }
    known = std::move(server);
  }
  for (const std::uint32_t id : changed) {
    if (servers_[id].empty()) continue;
    changes.emplace_back(UltraServerName(servers_[id]),
                         ContentOf(now, cluster.domain(DomainId(id)), time));
  }
  looked_ = true;
  seen_.clear();
  return changes;
}

void NeuronUltraServers::NoteGang(const ViewPointer* before, const ViewPointer* after) {
  const GangDecision* left = before == nullptr ? nullptr : PlaceOf(**before);
  const GangDecision* taken = after == nullptr ? nullptr : PlaceOf(**after);
  // A view changes with each pod; its place and phase seldom do.
  if (left == taken && (left == nullptr || PhaseOf(**before) == PhaseOf(**after))) return;
  if (left != nullptr) {
    for (const DecidedSlice& slice : left->slices) {
      gangs_of_[slice.domain].erase((*before)->ref);
      if (gangs_of_[slice.domain].empty()) gangs_of_.erase(slice.domain);
      touched_.insert(slice.domain);
    }
  }
  if (taken == nullptr) return;
  for (const DecidedSlice& slice : taken->slices) {
    gangs_of_[slice.domain].insert((*after)->ref);
    touched_.insert(slice.domain);
  }
}

Json NeuronUltraServers::ContentOf(const Snapshot& now, const DomainState& domain, WallTime time) {
  const std::string_view health = HealthOf(*now.cluster, domain);
  Json allocations = AllocationsOf(now, domain.name);
  Json conditions = ConditionsOf(domain.name, health, !allocations.empty(), time);
  return {{"spec", SpecOf(*now.cluster, domain)},
          {"status",
           {{"state", health == "OK" ? "Ready" : "Degraded"},
            {"conditions", std::move(conditions)},
            {"allocations", std::move(allocations)}}}};
}

// Each slice has an entry of its own, with its number as the index: AWS counts the places of a
// workload as index times nodes, and two slices may be on one UltraServer.
Json NeuronUltraServers::AllocationsOf(const Snapshot& now, const std::string& server) const {
  Json allocations = Json::array();
  const auto found = gangs_of_.find(server);
  if (found == gangs_of_.end()) return allocations;
  for (const GangRef& ref : found->second) {
    const GangView& view = **now.gangs.Find(ref);
    const GangDecision& decision = *view.decision;
    for (std::size_t i = 0; i < decision.slices.size(); ++i) {
      if (decision.slices[i].domain != server) continue;
      const std::vector<std::string> nodes = NodesOf(decision, i);
      allocations.push_back({{"workloadRef", fmt::format("{}/{}", ref.key.ns, ref.key.name)},
                             {"ultraserverIndex", i},
                             {"nodeCount", nodes.size()},
                             {"allocatedNodes", nodes},
                             {"leaderNodeName", nodes.empty() ? "" : nodes.front()},
                             {"phase", PhaseOf(view)}});
      if (decision.placed) allocations.back()["allocatedAt"] = FormatTime(*decision.placed);
    }
  }
  return allocations;
}

Json NeuronUltraServers::ConditionsOf(const std::string& server, std::string_view health,
                                      bool allocated, WallTime time) {
  auto [known, fresh] = standings_.try_emplace(server);
  Standings& standings = known->second;
  if (const auto seen = seen_.find(UltraServerName(server)); fresh && seen != seen_.end()) {
    standings = seen->second;
  }
  const bool ok = health == "OK";
  const std::array<bool, kConditions.size()> holds = {ok, !ok, allocated};
  Json conditions = Json::array();
  for (std::size_t i = 0; i < kConditions.size(); ++i) {
    Standing& standing = standings[i];
    if (standing.since.empty() || standing.holds != holds[i]) {
      standing = {.holds = holds[i], .since = FormatTime(time)};
    }
    const std::string_view use = allocated ? "Allocated" : "NotAllocated";
    conditions.push_back({{"type", kConditions[i]},
                          {"status", holds[i] ? "True" : "False"},
                          {"reason", kConditions[i] == "Allocated" ? use : health},
                          {"message", ""},
                          {"lastTransitionTime", standing.since}});
  }
  return conditions;
}

}  // namespace tahoma::controller
