#include "lib/kube/objects/pod_affinity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

void Add(std::string& text, const std::string& requirement) {
  if (!text.empty()) text += ",";
  text += requirement;
}

// A LabelSelector of an object in the words of one in a query, whose reader there is already.
std::string TextOf(Field selector, std::string& label) {
  std::string text;
  selector.At("matchLabels").Entries([&](const std::string& key, Field value) {
    Add(text, fmt::format("{}={}", key, value.Text()));
    label = key;
  });
  for (const Field one : selector.At("matchExpressions").Items()) {
    const std::string key(one.At("key").Text());
    const std::string_view op = one.At("operator").Text();
    const std::string values = fmt::format("({})", fmt::join(one.At("values").Texts(), ","));
    if (op == "In") Add(text, fmt::format("{} in {}", key, values));
    if (op == "NotIn") Add(text, fmt::format("{} notin {}", key, values));
    if (op == "Exists") Add(text, key);
    if (op == "DoesNotExist") Add(text, "!" + key);
    if (op == "In" || op == "Exists") label = key;
  }
  return text;
}

PodAffinityTerm ParseTerm(Field object) {
  PodAffinityTerm term;
  term.topology_key = object.At("topologyKey").Text();
  const Field selector = object.At("labelSelector");
  term.selects_none = !selector.has_value();
  auto parsed = LabelSelector::Parse(TextOf(selector, term.label));
  if (parsed.ok()) {
    term.selector = *std::move(parsed);
  } else {
    selector.Fail(Message(parsed.status()));
  }
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
