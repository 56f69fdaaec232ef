#include "controller/plan/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tahoma::controller {
namespace {

// Returns whether the taint is one that Kubernetes puts on nodes that are not ready (k8s.io/api
// core/v1, well_known_taints.go: TaintNodeNotReady, TaintNodeUnreachable).
bool GoesWhenReady(const Taint& taint) {
  return taint.key == "node.kubernetes.io/not-ready" ||
         taint.key == "node.kubernetes.io/unreachable";
}

// Returns the node's first taint that keeps the pods away and stays when the node is ready again.
const Taint* LastingTaint(const NodeDemand& demand, const Node& node) {
  const auto found = std::find_if(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    return !GoesWhenReady(taint) && demand.IsKeptAwayBy(taint);
  });
  return found == node.taints.end() ? nullptr : &*found;
}

}  // namespace

std::string Causes::ToString() const {
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (const auto& [cause, nodes] : nodes_) sorted.emplace_back(nodes, cause);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = fmt::format("0/{} nodes: ", count_);
  std::size_t others = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i >= kCausesMax) {
      others += sorted[i].first;
      continue;
    }
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", sorted[i].first, sorted[i].second);
  }
  return others == 0 ? text : text + fmt::format(", {} of other causes", others);
}

std::string CauseOf(const NodeDemand& demand, const Node& node) {
  if (node.cordoned) return "cordoned";
  if (const Taint* taint = LastingTaint(demand, node)) {
    return fmt::format("with taint {}{}{} not tolerated", taint->key,
                       taint->value.empty() ? "" : "=", taint->value);
  }
  if (!demand.SelectorAdmits(node)) return "not matching the node selector";
  if (!demand.AffinityAdmits(node)) return "not matching node affinity";
  if (const VolumeDemand* volume = demand.VolumeAgainst(node)) {
    return fmt::format("had volume node affinity conflict (persistentvolumeclaim \"{}\")",
                       volume->claim);
  }
  const bool away =
      !node.ready || std::any_of(node.taints.begin(), node.taints.end(),
                                 [&](const Taint& taint) { return demand.IsKeptAwayBy(taint); });
  return away ? "not ready" : "";
}

bool AdmitsWhenReady(const NodeDemand& demand, const Node& node) {
  return !node.cordoned && LastingTaint(demand, node) == nullptr && demand.SelectorAdmits(node) &&
         demand.AffinityAdmits(node) && demand.VolumeAgainst(node) == nullptr;
}

}  // namespace tahoma::controller
