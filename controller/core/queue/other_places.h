// The nodes of other schedulers' pods, by the traits of the pods.
//
// A pod costs a few bytes: pods of equal traits on one node are a number. Traits are indexed by the
// labels that Neighbours follows.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/functional/function_ref.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "controller/core/facts/other_pod.h"
#include "controller/model/ids.h"

namespace tahoma::controller {

class OtherPlaces {
 public:
  using Traits = std::shared_ptr<const OtherPodTraits>;
  using Nodes = absl::flat_hash_map<NodeId, std::uint32_t>;  // how many pods
  using Visit = absl::FunctionRef<void(const OtherPodTraits& traits, const Nodes& nodes)>;

  // Takes a pod that has come to the node, or has left the node. Returns whether the pod has a
  // followed label, or avoids pods.
  bool Add(const Traits& traits, NodeId node);
  bool Remove(const Traits& traits, NodeId node);
  // Lets ForEachOf find pods by that label from now on.
  void Follow(const std::string& label);

  // Visits at least the traits that the term selects. The label of the term must be followed.
  void ForEachOf(const kube::PodAffinityTerm& term, Visit visit) const;
  // Visits at least the traits of pods that avoid pods of these labels.
  void ForEachAvoiding(const kube::Labels& labels, Visit visit) const;

  // Returns how many different traits there are.
  std::size_t size() const { return all_.size(); }

 private:
  struct Placed {
    Traits traits;
    Nodes nodes;
  };
  using Set = absl::flat_hash_set<const OtherPodTraits*>;

  bool Concerns(const OtherPodTraits& traits) const;
  void Remember(const OtherPodTraits& traits);
  void Forget(const OtherPodTraits& traits);
  void VisitAll(const Set& set, Visit visit) const;

  absl::flat_hash_map<const OtherPodTraits*, Placed> all_;
  // By followed label and value.
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, Set>> with_label_;
  // Traits with `apart`, by the label of a term; "" for a term without a label.
  absl::flat_hash_map<std::string, Set> avoiding_;
};

}  // namespace tahoma::controller
