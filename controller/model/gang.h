// Gangs: pods that are placed together on pieces of the torus, or not at all.
//
//   GangSpec gang{.key = {"default", "train"}, .shape_text = "4x4x4"};
//   gang.members = …;                      // one MemberSpec per pod, in the order of their ranks
//   auto waiting = std::make_shared<const GangSpec>(std::move(gang));
//
// A pod without a gang is a gang of one with the pod's own key and no shape.
//
// Thread safety: values.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controller/model/claim.h"
#include "controller/model/ids.h"
#include "controller/model/inventory.h"
#include "controller/model/place_rule.h"
#include "lib/base/clock.h"
#include "lib/kube/objects/pod.h"
#include "lib/kube/objects/pod_needs.h"
#include "lib/kube/resource.h"
#include "lib/torus/shape.h"

namespace tahoma::controller {

using kube::NodeOperator;
using kube::NodeRequirement;

inline const kube::Resource kGangs{.group = "tahoma.dev", .version = "v1alpha1", .plural = "gangs"};

// The nodes on which a pod can use one of its volumes.
struct VolumeDemand {
  std::string claim;      // the name of the PersistentVolumeClaim
  kube::NodeTerms nodes;  // not empty
};

// A pod's demands on its node.
struct NodeDemand : kube::NodeSelection {
  std::vector<VolumeDemand> volumes = {};  // each must be met

  // Returns whether the node's labels, name and taints meet the demand, that of volumes included.
  bool Admits(const Node& node) const;
  // Check the parts of the demand.
  bool IsKeptAwayBy(const Taint& taint) const;  // the taint has an effect, and is not tolerated
  bool SelectorAdmits(const Node& node) const;  // `all`
  bool AffinityAdmits(const Node& node) const;  // `any_term`
  // Returns the first volume that cannot be on the node; nullptr when each can.
  const VolumeDemand* VolumeAgainst(const Node& node) const;
  // Whether labels or names of nodes matter to the demand.
  bool ties() const { return !all.empty() || !any_term.empty() || !volumes.empty(); }
};

// Return a text that is equal for equal values, and for no others.
std::string TextOf(const Toleration& toleration);
std::string TextOf(const NodeDemand& demand);

struct MemberSpec {
  PodKey pod;
  std::string uid;
  NodeDemand node;
  std::shared_ptr<const kube::PodNeeds> needs;  // cpu, memory, ports, …; nullptr: nothing
  std::vector<ClaimSpec> claims;                // in the order of the pod's resourceClaims
};

struct GangSpec {
  // The key that the user knows: the Gang's, or the pod's own for a pod without a gang.
  GangKey key;
  std::string uid;  // uid of the Gang, or of the pod
  bool single_pod = false;
  std::string shape_text;             // as the user wrote the shape; empty without a shape
  std::optional<std::int64_t> chips;  // chips of one slice
  int slices = 1;
  // The first of `members` that may be placed without the others; 0: all are placed or none.
  std::size_t min_members = 0;
  std::string queue = "default";
  std::int32_t priority = 0;
  std::optional<std::chrono::seconds> max_runtime;
  // How much work, in chip-hours, may pass the gang while its start is not known (promises.h).
  std::optional<std::int64_t> patience = {};
  bool preemptible = false;    // may be ended for others
  bool preempts = true;        // lower priorities may be ended for the gang
  bool checkpointable = true;  // loses little when ended at any moment
  bool resumes = false;        // had a place and lost a member: goes before others of its priority
  std::chrono::seconds grace{0};  // the longest termination grace period of the pods
  // The CapacityBlock in which the gang runs, "name" or "owner/name"; empty: the gang names none.
  std::string block;
  // The active block's Capacity Reservation, its hosts, and when they are taken back.
  std::string reservation;
  std::vector<std::string> block_hosts;
  std::optional<WallTime> reclaim;
  // The same gang in each magnetic block that draws it, in the order in which the blocks are tried.
  std::vector<std::shared_ptr<const GangSpec>> drawn;
  WallTime created;
  std::vector<MemberSpec> members;  // all members, in the order of their ranks
  std::vector<PlaceRule> rules;     // about the places of its own pods
  // The same gang with preferences of its pods as demands, in the order in which they are tried.
  std::vector<std::shared_ptr<const GangSpec>> preferred;

  // Returns "gang default/train" or "pod default/p".
  std::string Describe() const;
  // Returns whether the gang may be placed without its last members.
  bool may_be_fewer() const { return min_members > 0 && min_members < members.size(); }
};

// Returns the gang of the first `count` members, without rules and preferences, which speak of all.
std::shared_ptr<const GangSpec> FirstOf(const GangSpec& gang, std::size_t count);

using Queue = std::vector<std::shared_ptr<const GangSpec>>;

}  // namespace tahoma::controller
