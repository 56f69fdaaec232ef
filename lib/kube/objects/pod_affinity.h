// A pod's requirements on the places of other pods: affinity and anti-affinity
// (spec.affinity.podAffinity and .podAntiAffinity), and that pods are spread
// (spec.topologySpreadConstraints); and the pod's preferences, of nodes too.
//
//   const PodAffinity affinity = ParsePodAffinity(pod.At("spec"));
//   for (const PodAffinityTerm& term : affinity.apart) {
//     if (term.Selects("team", other_ns, other_labels)) Avoid(term.topology_key);
//   }
//
// A term that this build cannot follow is an error of the pod: the pod would be placed where it
// must not be. A namespaceSelector is read only when empty; then all namespaces are selected. Such
// an error are also keys of an affinity's matchLabelKeys and mismatchLabelKeys that the
// labelSelector does not name.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"
#include "lib/kube/objects/node_selector.h"
#include "lib/kube/selector.h"

namespace tahoma::kube {

struct PodAffinityTerm {
  std::string topology_key;   // nodes with the same value of this label are one place
  bool selects_none = false;  // has no labelSelector
  LabelSelector selector;
  std::string label;  // a label of every selected pod; empty when there is no such label
  std::vector<std::string> label_values;  // the label has one of these values; empty: any value
  std::vector<std::string> namespaces;    // empty: the pod's own
  bool any_namespace = false;

  // Returns whether the term of a pod in namespace `own` selects a pod of these labels.
  bool Selects(const std::string& own, const std::string& ns, const Labels& labels) const;

  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
};

// A required one of spec.topologySpreadConstraints: with the pod, its place has at most `max_skew`
// more of the selected pods than the place that has the fewest.
struct SpreadConstraint {
  PodAffinityTerm of;  // in the pod's own namespace
  // The selected pods also have the pod's own values of these labels, where the pod has them.
  std::vector<std::string> same_labels;
  std::int64_t max_skew = 1;
  std::int64_t min_domains = 1;  // with fewer places the fewest is 0
  // Which nodes' places count: those that the pod's node selector and affinity admit, those whose
  // taints the pod tolerates.
  bool honors_affinity = true;
  bool honors_taints = false;

  friend bool operator==(const SpreadConstraint&, const SpreadConstraint&) = default;
};

struct PodAffinity {
  std::vector<PodAffinityTerm> beside;   // the pod needs a place with a pod of each term
  std::vector<PodAffinityTerm> apart;    // the pod needs a place without a pod of any term
  std::vector<SpreadConstraint> spread;  // the pod needs a place that meets each

  bool empty() const { return beside.empty() && apart.empty() && spread.empty(); }

  friend bool operator==(const PodAffinity&, const PodAffinity&) = default;
};

PodAffinity ParsePodAffinity(Field spec);

// A pod's preferences: preferred affinity, and spread with ScheduleAnyway.
struct PodPreferences {
  struct Nodes {
    std::int64_t weight = 0;  // 1 to 100
    std::vector<NodeRequirement> all;
  };
  struct Pods {
    std::int64_t weight = 0;  // 1 to 100
    bool apart = false;       // from these pods; else beside them
    PodAffinityTerm term;
  };
  std::vector<Nodes> nodes;
  std::vector<Pods> pods;
  std::vector<SpreadConstraint> spread;  // without weights: lighter than all others

  bool empty() const { return nodes.empty() && pods.empty() && spread.empty(); }
  // Returns the greatest weight; 0 where there are only constraints of spread.
  std::int64_t Heaviest() const;
  // Adds the preferences of at least that weight to what the pod needs.
  void AddTo(std::int64_t weight, PodAffinity& affinity, std::vector<NodeRequirement>& all) const;
};

// A preference that this build cannot follow is left out.
PodPreferences ParsePodPreferences(Field spec);

}  // namespace tahoma::kube
