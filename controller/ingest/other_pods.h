// The pods of other schedulers, and their moves.
//
// A pod is kept as its key, its node and its traits; equal traits are kept once. Seeing the same
// pod again gives nothing.
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
#include "controller/core/facts/other_pod.h"
#include "lib/kube/object.h"

namespace tahoma::controller {

class OtherPods {
 public:
  // Takes a pod that is bound to the node; a pod without a node takes nothing. nullopt when nothing
  // has changed.
  std::optional<OtherPodMoved> OnPod(const kube::ObjectKey& key, const std::string& node,
                                     OtherPodTraits traits);
  // Takes a pod that is gone or has ended. nullopt when the pod is not known.
  std::optional<OtherPodMoved> OnPodGone(const kube::ObjectKey& key);

  std::size_t size() const { return pods_.size(); }
  // Returns how many different traits are kept.
  std::size_t kinds() const { return kinds_.size(); }

 private:
  using Traits = std::shared_ptr<const OtherPodTraits>;
  struct Placed {
    std::string node;
    Traits traits;
  };
  struct HashOfTraits {
    using is_transparent = void;
    std::size_t operator()(const Traits& traits) const { return absl::HashOf(*traits); }
    std::size_t operator()(const OtherPodTraits& traits) const { return absl::HashOf(traits); }
  };
  struct SameTraits {
    using is_transparent = void;
    bool operator()(const Traits& a, const Traits& b) const { return *a == *b; }
    bool operator()(const Traits& a, const OtherPodTraits& b) const { return *a == b; }
  };

  Traits KindOf(OtherPodTraits traits);

  absl::flat_hash_map<kube::ObjectKey, Placed> pods_;
  absl::flat_hash_set<Traits, HashOfTraits, SameTraits> kinds_;
  std::size_t sweep_at_ = 64;  // traits that no pod has any more are forgotten at this many kinds
};

}  // namespace tahoma::controller
