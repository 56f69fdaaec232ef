// A pod's required affinity and anti-affinity to other pods (spec.affinity.podAffinity and
// .podAntiAffinity). Preferences are not read.
//
//   const PodAffinity affinity = ParsePodAffinity(pod.At("spec"));
//   for (const PodAffinityTerm& term : affinity.apart) {
//     if (term.Selects("team", other_ns, other_labels)) Avoid(term.topology_key);
//   }
//
// A term that this build cannot follow is an error of the pod: the pod would be placed where it
// must not be. A namespaceSelector is read only when empty; then all namespaces are selected. Such
// an error are also required topologySpreadConstraints, and keys of matchLabelKeys and
// mismatchLabelKeys that the labelSelector does not name.

#pragma once

#include <string>
#include <vector>

#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"
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
};

struct PodAffinity {
  std::vector<PodAffinityTerm> beside;  // the pod needs a place with a pod of each term
  std::vector<PodAffinityTerm> apart;   // the pod needs a place without a pod of any term

  bool empty() const { return beside.empty() && apart.empty(); }
};

PodAffinity ParsePodAffinity(Field spec);

}  // namespace tahoma::kube
