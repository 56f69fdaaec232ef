// The needs of other schedulers' pods on their nodes.
//
// A pod is kept as its key, its node and its needs; equal needs are kept once. Seeing the same pod
// again gives nothing.
//
// Thread safety: one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "controller/core/command.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/pod_needs.h"

namespace tahoma::controller {

class OtherPods {
 public:
  // Takes a pod that is bound to the node; a pod without a node takes nothing. nullopt when nothing
  // has changed.
  std::optional<OtherPodMoved> OnPod(const kube::ObjectKey& key, const std::string& node,
                                     kube::PodNeeds needs);
  // Takes a pod that is gone or has ended. nullopt when the pod is not known.
  std::optional<OtherPodMoved> OnPodGone(const kube::ObjectKey& key);

  std::size_t size() const { return pods_.size(); }
  // Returns how many different needs are kept.
  std::size_t kinds() const { return kinds_.size(); }

 private:
  using Needs = std::shared_ptr<const kube::PodNeeds>;
  struct Placed {
    std::string node;
    Needs needs;
  };
  struct HashOfNeeds {
    using is_transparent = void;
    std::size_t operator()(const Needs& needs) const { return absl::HashOf(*needs); }
    std::size_t operator()(const kube::PodNeeds& needs) const { return absl::HashOf(needs); }
  };
  struct SameNeeds {
    using is_transparent = void;
    bool operator()(const Needs& a, const Needs& b) const { return *a == *b; }
    bool operator()(const Needs& a, const kube::PodNeeds& b) const { return *a == b; }
  };

  Needs KindOf(kube::PodNeeds needs);

  absl::flat_hash_map<kube::ObjectKey, Placed> pods_;
  absl::flat_hash_set<Needs, HashOfNeeds, SameNeeds> kinds_;
  std::size_t sweep_at_ = 64;  // needs that no pod has any more are forgotten at this many kinds
};

}  // namespace tahoma::controller
