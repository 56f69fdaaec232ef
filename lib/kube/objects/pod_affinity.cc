#include "lib/kube/objects/pod_affinity.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

// Reads a LabelSelector. `label` becomes one that everything selected has.
LabelSelector ParseSelector(Field object, std::string& label) {
  LabelSelector selector;
  object.At("matchLabels").Entries([&](const std::string& key, Field value) {
    const absl::Status added = selector.Require(key, "In", {std::string(value.Text())});
    if (!added.ok()) value.Fail(Message(added));
    label = key;
  });
  for (const Field one : object.At("matchExpressions").Items()) {
    const std::string_view key = one.At("key").Text();
    const std::string_view op = one.At("operator").Text();
    const absl::Status added = selector.Require(key, op, one.At("values").Texts());
    if (!added.ok()) one.Fail(Message(added));
    if (op == "In" || op == "Exists") label = key;
  }
  return selector;
}

PodAffinityTerm ParseTerm(Field object) {
  PodAffinityTerm term;
  term.topology_key = object.At("topologyKey").Text();
  const Field selector = object.At("labelSelector");
  term.selects_none = !selector.has_value();
  term.selector = ParseSelector(selector, term.label);
  term.namespaces = object.At("namespaces").Texts();
  const Field namespaces = object.At("namespaceSelector");
  term.any_namespace = namespaces.has_value();
  if (namespaces.size() > 0) {
    namespaces.Fail(
        "selects namespaces by their labels, which are not known here; name them in namespaces");
  }
  return term;
}

std::vector<PodAffinityTerm> ParseTerms(Field affinity) {
  std::vector<PodAffinityTerm> terms;
  for (const Field term : affinity.At("requiredDuringSchedulingIgnoredDuringExecution").Items()) {
    terms.push_back(ParseTerm(term));
  }
  return terms;
}

}  // namespace

bool PodAffinityTerm::Selects(const std::string& own, const std::string& ns,
                              const Labels& labels) const {
  if (selects_none) return false;
  const bool there = any_namespace || (namespaces.empty() && ns == own) ||
                     std::ranges::find(namespaces, ns) != namespaces.end();
  return there && selector.Matches([&](std::string_view key) -> std::optional<std::string_view> {
    const auto at = std::ranges::lower_bound(labels, key, {}, &Labels::value_type::first);
    if (at == labels.end() || at->first != key) return std::nullopt;
    return at->second;
  });
}

PodAffinity ParsePodAffinity(Field spec) {
  const Field affinity = spec.At("affinity");
  return {.beside = ParseTerms(affinity.At("podAffinity")),
          .apart = ParseTerms(affinity.At("podAntiAffinity"))};
}

}  // namespace tahoma::kube
