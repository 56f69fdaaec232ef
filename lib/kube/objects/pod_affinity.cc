#include "lib/kube/objects/pod_affinity.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/base/status.h"
#include "lib/kube/objects/label_selector.h"

namespace tahoma::kube {
namespace {

// Reads the term's selector, and which label the selected pods have: rather one of few values.
void ParseSelector(Field object, PodAffinityTerm& term) {
  term.selector = ParseLabelSelector(object);
  ForEachRequirement(object, [&](Field, std::string_view key, std::string_view op,
                                 std::vector<std::string> values) {
    if (op != "In" && (op != "Exists" || !term.label.empty())) return;
    term.label = key;
    // Readers look at each value's pods and count them: a value that is named twice counts once.
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    term.label_values = std::move(values);
  });
}

PodAffinityTerm ParseTerm(Field object) {
  PodAffinityTerm term;
  term.topology_key = object.At("topologyKey").Text();
  const Field selector = object.At("labelSelector");
  term.selects_none = !selector.has_value();
  ParseSelector(selector, term);
  term.namespaces = object.At("namespaces").Texts();
  const Field namespaces = object.At("namespaceSelector");
  term.any_namespace = namespaces.has_value();
  if (namespaces.size() > 0) {
    namespaces.Fail(
        "selects namespaces by their labels, which are not known here; name them in namespaces");
  }
  return term;
}

// Refuses keys of labels that the selector does not name.
void CheckLabelKeys(Field object) {
  // kube-apiserver writes these keys into the selector too, where the pod has such labels.
  const auto in_selector = [&](std::string_view key) {
    bool there = false;
    for (const Field one : object.At("labelSelector").At("matchExpressions").Items()) {
      there = there || one.At("key").Text() == key;
    }
    return there;
  };
  for (const char* list : {"matchLabelKeys", "mismatchLabelKeys"}) {
    for (const Field key : object.At(list).Items()) {
      if (!in_selector(key.Text())) {
        key.Fail("is not followed here; write the label into the labelSelector");
      }
    }
  }
}

std::vector<PodAffinityTerm> ParseTerms(Field affinity) {
  std::vector<PodAffinityTerm> terms;
  for (const Field term : affinity.At("requiredDuringSchedulingIgnoredDuringExecution").Items()) {
    terms.push_back(ParseTerm(term));
    CheckLabelKeys(term);
  }
  return terms;
}

constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

// Source: kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go.
std::vector<SpreadConstraint> ParseSpread(Field spec, bool preferred) {
  std::vector<SpreadConstraint> constraints;
  for (const Field one : spec.At("topologySpreadConstraints").Items()) {
    if ((one.At("whenUnsatisfiable").Text() == "ScheduleAnyway") != preferred) continue;
    SpreadConstraint& constraint = constraints.emplace_back();
    constraint.of = ParseTerm(one);
    constraint.same_labels = one.At("matchLabelKeys").Texts();
    constraint.max_skew = one.At("maxSkew").Int(1);
    constraint.min_domains = one.At("minDomains").Int(1);
    constraint.honors_affinity = one.At("nodeAffinityPolicy").Text() != "Ignore";
    constraint.honors_taints = one.At("nodeTaintsPolicy").Text() == "Honor";
  }
  return constraints;
}

}  // namespace

bool PodAffinityTerm::Selects(const std::string& own, const std::string& ns,
                              const Labels& labels) const {
  if (selects_none) return false;
  const bool there = any_namespace || (namespaces.empty() && ns == own) ||
                     std::ranges::find(namespaces, ns) != namespaces.end();
  return there && kube::Selects(selector, labels);
}

PodAffinity ParsePodAffinity(Field spec) {
  const Field affinity = spec.At("affinity");
  return {.beside = ParseTerms(affinity.At("podAffinity")),
          .apart = ParseTerms(affinity.At("podAntiAffinity")),
          .spread = ParseSpread(spec, false)};
}

PodPreferences ParsePodPreferences(Field spec) {
  PodPreferences preferences;
  const Field affinity = spec.At("affinity");
  for (const Field one : affinity.At("nodeAffinity").At(kPreferred).Items()) {
    preferences.nodes.push_back(
        {.weight = one.At("weight").Int(1), .all = ParseNodeTerm(one.At("preference"))});
  }
  for (const bool apart : {false, true}) {
    const Field terms = affinity.At(apart ? "podAntiAffinity" : "podAffinity").At(kPreferred);
    for (const Field one : terms.Items()) {
      const Field term = one.At("podAffinityTerm");
      if (term.At("namespaceSelector").size() > 0) continue;  // labels of namespaces are not known
      preferences.pods.push_back(
          {.weight = one.At("weight").Int(1), .apart = apart, .term = ParseTerm(term)});
    }
  }
  preferences.spread = ParseSpread(spec, true);
  return preferences;
}

std::int64_t PodPreferences::Heaviest() const {
  std::int64_t heaviest = 0;
  for (const Nodes& one : nodes) heaviest = std::max(heaviest, one.weight);
  for (const Pods& one : pods) heaviest = std::max(heaviest, one.weight);
  return heaviest;
}

void PodPreferences::AddTo(std::int64_t weight, PodAffinity& affinity,
                           std::vector<NodeRequirement>& all) const {
  for (const Nodes& one : nodes) {
    if (one.weight >= weight) all.insert(all.end(), one.all.begin(), one.all.end());
  }
  for (const Pods& one : pods) {
    if (one.weight < weight) continue;
    (one.apart ? affinity.apart : affinity.beside).push_back(one.term);
  }
  if (weight == 0) affinity.spread.insert(affinity.spread.end(), spread.begin(), spread.end());
}

}  // namespace tahoma::kube
