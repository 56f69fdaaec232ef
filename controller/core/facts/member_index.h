// The place of a pod in its gang, as the labels say that a controller of pods gave it.
//
// Ranks follow the indexes of pods, because the pod that replaces another has the index of the
// other and a name of its own. Read are the labels of Jobs, JobSets, StatefulSets,
// LeaderWorkerSets and of the training operator.
//
// Thread safety: values and pure functions.

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {

struct MemberIndex {
  std::string group;       // the set of pods that count together: a Job, a StatefulSet, a role
  std::int64_t outer = 0;  // the number of the group among groups of one kind; 0 without one
  std::int64_t inner = 0;  // the pod's number in the group
  std::string_view label;  // the label with `inner`

  friend bool operator==(const MemberIndex& a, const MemberIndex& b) {
    return a.group == b.group && a.outer == b.outer && a.inner == b.inner;
  }
  friend auto operator<=>(const MemberIndex& a, const MemberIndex& b) {
    if (const auto order = a.group <=> b.group; order != 0) return order;
    if (const auto order = a.outer <=> b.outer; order != 0) return order;
    return a.inner <=> b.inner;
  }
};

// Returns nullopt for a pod without such a label, or with one that is no number. `name` is the
// pod's.
std::optional<MemberIndex> IndexOf(const kube::Labels& labels, std::string_view name);

// Returns "index 2 (batch.kubernetes.io/job-completion-index)".
std::string Describe(const MemberIndex& index);

}  // namespace tahoma::controller
