#include "controller/plan/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tahoma::controller {
namespace {

// The taints that Kubernetes puts on nodes that are not ready (k8s.io/api core/v1,
// well_known_taints.go: TaintNodeNotReady, TaintNodeUnreachable).
bool GoesWhenReady(const Taint& taint) {
  return taint.key == "node.kubernetes.io/not-ready" ||
         taint.key == "node.kubernetes.io/unreachable";
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
  bool away = !node.ready;
  for (const Taint& taint : node.taints) {
    if (!demand.IsKeptAwayBy(taint)) continue;
    if (!GoesWhenReady(taint)) {
      return fmt::format("with taint {}{}{} not tolerated", taint.key,
                         taint.value.empty() ? "" : "=", taint.value);
    }
    away = true;
  }
  if (!demand.SelectorAdmits(node)) return "not matching the node selector";
  if (!demand.AffinityAdmits(node)) return "not matching node affinity";
  return away ? "not ready" : "";
}

bool AdmitsWhenReady(const NodeDemand& demand, const Node& node) {
  const bool kept_away = std::any_of(
      node.taints.begin(), node.taints.end(),
      [&](const Taint& taint) { return !GoesWhenReady(taint) && demand.IsKeptAwayBy(taint); });
  return !node.cordoned && !kept_away && demand.SelectorAdmits(node) && demand.AffinityAdmits(node);
}

}  // namespace tahoma::controller
