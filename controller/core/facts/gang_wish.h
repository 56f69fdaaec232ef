// The gang that a pod's annotations wish, for the pods that a Job, JobSet, LeaderWorkerSet or
// another controller makes of one template.
//
//   if (const auto wish = ReadGangWish(object)) {
//     if (!wish->fault.empty()) Wait(wish->fault);       // "no label tells the pod's group: …"
//     else MakeGang(wish->gang, *wish);
//   }
//
// A template cannot name a Gang for each group, because all pods of the template would get one
// name. So the template says what each group needs, and labels that the pods' controller sets say
// which group a pod is of:
//
//   tahoma.dev/gang-members      pods of a group; LeaderWorkerSet's own annotation tells the number
//   tahoma.dev/gang-min-members  as spec.minMembers of a Gang
//   tahoma.dev/gang-shape        as spec.shape
//   tahoma.dev/gang-chips        as spec.chips
//   tahoma.dev/gang-slices       as spec.slices
//   tahoma.dev/gang-failure-policy, gang-start-within   as the fields of those names
//   tahoma.dev/gang-group-label  the label that has the group's name, where none of kGroupLabels is
//
// A pod that joins a PodGroup (pod_group.h) wishes a gang of the group's name, least size
// and priority.
//
// The annotations of GangTerms count for the made Gang as they do for a pod that is a gang of its
// own.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/core/facts/pod_group.h"
#include "controller/model/gang_rules.h"
#include "lib/kube/object.h"

namespace tahoma::controller {

// The annotation of a Gang, or of any of its pods, that says when the gang has saved its state last
// (RFC 3339).
inline constexpr const char* kCheckpointAnnotation = "tahoma.dev/last-checkpoint";

// The label of a Gang that was made for a wish.
inline constexpr const char* kMadeGangLabel = "tahoma.dev/made-for-pods";

// The annotations of a pod about the time and the place of a gang: tahoma.dev/max-runtime,
// min-runtime, capacity-block, preemptible, checkpointable.
struct GangTerms {
  std::string max_runtime;  // as the user wrote it; empty when there is none
  std::string min_runtime;  // likewise
  std::string block;
  bool preemptible = false;
  bool checkpointable = true;

  friend bool operator==(const GangTerms&, const GangTerms&) = default;
};

// Reads them; `fault` gets why an annotation cannot be used, and is kept otherwise.
GangTerms ReadGangTerms(const Json& pod, std::string& fault);

struct GangWish {
  std::string gang;  // the name of the Gang
  // Where its api is not kNone: the PodGroup tells the members, or the workload tells the request.
  GroupMark group = {};
  GangRequest request;  // its spec but for `terms` and `priority`
  GangTerms terms = {};
  std::optional<std::int32_t> priority = {};  // nullopt: that of the pods
  std::string fault;                          // why the wish cannot be used; empty when it can
  std::optional<kube::OwnerReference> owner;  // the Gang goes with the pod's controller or JobSet

  // Returns whether both ask for the same gang.
  bool IsLike(const GangWish& other) const;
  // Returns "4 members, shape 4x4x4, 2 slices, failurePolicy Fail": what is not the default.
  std::string ToString() const;
};

// Returns nullopt for a pod that wishes no gang. Annotations count before a PodGroup.
std::optional<GangWish> ReadGangWish(const Json& pod);

}  // namespace tahoma::controller
