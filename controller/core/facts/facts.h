// The controller's knowledge of the Kubernetes API, compact and without JSON.
//
//   Facts facts;
//   facts.pods.Put(pod);                              // from a watch
//   std::shared_ptr<const PodFact> seen = facts.pods.Find(PodKey{"default", "train-0"});
//
// A fact is replaced as a whole and never changed; several threads may hold the same fact.
//
// Scope: values. Devices and nodes are in the model's ClusterState instead.
//
// Thread safety: facts are immutable; Facts belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/disruption_budgets.h"
#include "controller/core/facts/gang_wish.h"
#include "controller/core/facts/pod_group.h"
#include "controller/core/facts/ultraserver_workload.h"
#include "controller/core/facts/window_object.h"
#include "controller/core/journal/gang_decision.h"
#include "controller/model/claim.h"
#include "controller/model/gang.h"
#include "controller/model/gang_rules.h"
#include "controller/model/ids.h"
#include "controller/reserve/book.h"
#include "controller/share/queue_calendar.h"
#include "controller/share/queue_spec.h"
#include "lib/base/clock.h"
#include "lib/kube/objects/claim.h"
#include "lib/kube/objects/device_class.h"
#include "lib/kube/objects/extended_resource.h"
#include "lib/kube/objects/pod.h"
#include "lib/kube/objects/pod_affinity.h"
#include "lib/kube/objects/volume.h"

namespace tahoma::controller {

using kube::PodClaim;
using kube::Reservation;
using ClassFact = kube::DeviceClass;
using VolumeFact = kube::Volume;
using StorageClassFact = kube::StorageClass;

struct PodFact {
  PodKey key;
  std::string uid;
  std::string resource_version;
  // Label tahoma.dev/gang, or the Gang that is made for the pod's group or workload; empty without
  // any.
  std::string gang;
  std::shared_ptr<const GangWish> wish;  // nullptr: wishes no Gang that can be made
  std::string node;                      // spec.nodeName; empty until bound
  bool deleting = false;
  bool finished = false;    // phase Succeeded or Failed
  bool succeeded = false;   // phase Succeeded
  bool running = false;     // phase Running
  bool ready = false;       // kube::Pod::ready
  bool gated = false;       // has spec.schedulingGates
  bool controlled = false;  // kube::Pod::controlled
  std::string trouble;      // kube::Pod::trouble
  WallTime created;
  std::int32_t priority = 0;
  std::int64_t grace_seconds = 30;  // spec.terminationGracePeriodSeconds
  // Of a pod without a Gang, by its annotations: as the fields of a Gang's spec.
  std::optional<std::chrono::seconds> max_runtime;
  std::optional<std::chrono::seconds> min_runtime;
  bool preemptible = false;
  bool checkpointable = true;
  std::string block;
  bool preempts = true;                     // spec.preemptionPolicy is not Never
  std::optional<WallTime> checkpoint = {};  // its annotation kCheckpointAnnotation
  std::string spec_error;                   // why these cannot be used; empty when they can
  NodeDemand demand;
  std::shared_ptr<const kube::PodNeeds> needs;
  kube::Labels labels;
  std::shared_ptr<const kube::PodAffinity> affinity;        // to other pods; nullptr without any
  std::shared_ptr<const kube::PodPreferences> preferences;  // nullptr without any
  std::vector<PodClaim> claims;
  // The templates of the pod's claims.
  std::vector<std::string> templates;
  // The pod has a label, annotations or a PodGroup for its gang, so no workload of a template is
  // the pod's gang (ultraserver_workload.h).
  bool tells_gang = false;
  std::vector<kube::PodVolume> volumes;
  // nullptr: asks for no extended resource.
  std::shared_ptr<const std::vector<kube::ExtendedAsk>> extended_asks;
  std::optional<kube::ExtendedClaimStatus> extended_claim = {};
  // Annotations of a Binding of ours (docs/design/0001-seams.md); empty or 0 before.
  std::string bound_gang_uid;
  std::uint32_t bound_rank = 0;
  std::uint32_t bound_slice = 0;
  std::string bound_placement;
  std::optional<WallTime> bound_reclaim = {};
  std::string bound_reservation;         // of the Capacity Block in which it runs
  std::optional<WallTime> scheduled_at;  // since when its condition PodScheduled is True
  // The message of its condition PodScheduled=False, so that it is not written twice.
  std::string unschedulable_message;

  bool alive() const { return !deleting && !finished; }
  // Returns the trouble as the end of a sentence: "", or ": container main: exit code 3".
  std::string Trouble() const { return trouble.empty() ? "" : ": " + trouble; }
  // Returns its grace as a time that can be added to others: a year at most.
  std::chrono::seconds grace() const {
    constexpr std::chrono::seconds kMost = std::chrono::hours(24 * 365);
    return std::chrono::seconds(std::clamp<std::int64_t>(grace_seconds, 0, kMost.count()));
  }
};

struct ClaimFact {
  ClaimKey key;
  std::string uid;
  std::string resource_version;
  bool deleting = false;
  bool protected_by_finalizer = false;  // resource.kubernetes.io/delete-protection
  std::vector<std::string> other_finalizers;
  std::vector<Reservation> reserved_for;
  std::shared_ptr<const Allocation> allocation;  // nullptr when not allocated
  // Without the selectors and configs of the classes; nullptr in answers to writes.
  std::shared_ptr<const kube::ResourceClaimSpec> spec;
  std::string spec_error;  // why `spec` cannot be read; empty when it can

  bool ReservedFor(const std::string& uid_of_pod) const;
};

using VolumeClaimKey = Key<struct VolumeClaimTag>;

// A PersistentVolumeClaim: kube::VolumeClaim says what the fields are.
struct VolumeClaimFact {
  VolumeClaimKey key;
  std::string uid;
  std::string resource_version;
  bool deleting = false;
  std::string volume;
  bool bound = false;
  bool lost = false;
  std::string storage_class;
  std::string selected_node;
  std::string owner;
};

// Where and when a gang has run, as its status says.
struct GangPast {
  std::string placement = {};
  std::vector<DecidedSlice> slices = {};
  std::optional<WallTime> start_time = {};
  std::optional<WallTime> completion_time = {};
  std::string queue = {};

  friend bool operator==(const GangPast&, const GangPast&) = default;
};

struct GangFact {
  GangKey key;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  bool deleting = false;
  std::int32_t members = 1;
  std::optional<std::int32_t> min_members;  // nullopt: the gang runs with all members
  std::string shape;
  std::optional<std::int64_t> chips;
  int slices = 1;
  std::string queue = "default";
  std::optional<std::int32_t> priority;  // nullopt: of its pods
  std::optional<std::chrono::seconds> max_runtime;
  std::optional<std::chrono::seconds> min_runtime;  // not ended for another gang before
  bool preemptible = false;
  bool checkpointable = true;
  std::optional<bool> preempts = {};        // spec.preemptionPolicy; nullopt: as its pods
  std::optional<WallTime> checkpoint = {};  // its annotation kCheckpointAnnotation
  std::string block;                        // spec.capacityBlock
  bool made = false;                        // by the controller, for pods that wished the Gang
  FailurePolicy failure_policy = FailurePolicy::kRestartAll;
  std::chrono::seconds start_within = kStartWithin;
  std::string failed;  // the message of its condition Failed=True: never placed again; else empty
  WallTime created;
  std::string spec_error;                     // why the spec cannot be used; empty when it can
  std::uint64_t shown = 0;                    // the digest of its status
  std::shared_ptr<const GangPast> past = {};  // nullptr: it has not run

  // Returns whether the gang goes on without lost members, and takes pods that come later.
  bool changes_size() const { return min_members && spec_error.empty() && !deleting; }
  // Returns how many members there must be for the gang to run.
  std::int32_t least_members() const { return changes_size() ? *min_members : members; }
};

// A CapacityBlock: the wish of the owner, and what a controller has published of the block.
struct BlockFact {
  BlockKey key = {};
  std::string uid = {};
  WallTime created = {};
  std::string resource_version = {};
  std::int64_t generation = 0;
  bool deleting = false;
  bool protected_by_finalizer = false;  // kNoCancelFinalizer
  std::vector<std::string> other_finalizers = {};
  PurchaseOrder order = {};     // as its spec asks for it
  std::string spec_error = {};  // why the spec cannot be used; empty when it can
  std::string replace = {};     // annotation tahoma.dev/replace: asks for healthy hardware
  std::string record = {};      // status.record; empty before it was bought
  BlockVersion record_version = {};
  std::string refusal = {};  // EC2's code, when its purchase was refused
  std::string message = {};  // … and why
  std::optional<WallTime> refused_at = {};
  std::uint64_t shown = 0;  // the digest of its status

  bool refused() const { return record.empty() && !refusal.empty(); }
};

// The extended resources that device plugins of nodes offer, and by how many nodes.
class OfferedResources {
 public:
  // The node has other amounts; nullptr: has none. Returns whether any resource came or went.
  bool OnNode(const kube::Amounts* before, const kube::Amounts* after);
  bool contains(const std::string& resource) const { return nodes_.contains(resource); }

 private:
  bool Change(const kube::Amounts* amounts, int by);

  std::map<std::string, int> nodes_;
};

template <typename Fact, typename KeyType>
class FactTable {
 public:
  void Put(std::shared_ptr<const Fact> fact) { facts_[fact->key] = std::move(fact); }
  // Removes the fact, when `uid` is not empty only if it is of that uid. Returns whether it did.
  bool Remove(const KeyType& key, const std::string& uid) {
    const auto found = facts_.find(key);
    if (found == facts_.end() || (!uid.empty() && found->second->uid != uid)) return false;
    facts_.erase(found);
    return true;
  }
  std::shared_ptr<const Fact> Find(const KeyType& key) const {
    const auto found = facts_.find(key);
    return found == facts_.end() ? nullptr : found->second;
  }
  std::size_t size() const { return facts_.size(); }

  template <typename F>
  void ForEach(F&& f) const {
    for (const auto& [key, fact] : facts_) f(*fact);
  }

 private:
  absl::flat_hash_map<KeyType, std::shared_ptr<const Fact>> facts_;
};

struct Facts {
  FactTable<PodFact, PodKey> pods;
  FactTable<ClaimFact, ClaimKey> claims;
  FactTable<GangFact, GangKey> gangs;
  std::map<std::string, std::shared_ptr<const ClassFact>> classes;
  FactTable<PodGroupFact, PodGroupKey> pod_groups;
  std::map<std::string, std::int32_t, std::less<>> priorities;  // by the name of a PriorityClass
  FactTable<WorkloadFact, WorkloadKey> workloads;
  FactTable<ClaimTemplateFact, ClaimTemplateKey> claim_templates;
  OfferedResources offered;
  FactTable<VolumeClaimFact, VolumeClaimKey> volume_claims;
  absl::flat_hash_map<std::string, std::shared_ptr<const VolumeFact>> volumes;
  std::map<std::string, std::shared_ptr<const StorageClassFact>, std::less<>> storage_classes;
  std::map<std::string, std::shared_ptr<const QueueCalendarSpec>> queue_calendars;
  std::map<std::string, std::shared_ptr<const QueueSpec>> queues;
  DisruptionBudgets budgets;
  std::map<std::string, std::shared_ptr<const WindowSpec>> windows;
};

// Orders "train-2" before "train-10": runs of digits compare as numbers. A strict weak order.
bool NaturalLess(const std::string& a, const std::string& b);

}  // namespace tahoma::controller
