// AWS's NeuronUltraServerWorkload: so many nodes of so many UltraServers for the pods that use a
// claim template which is made for the workload.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto workload, ParseWorkload(object));
//   if (workload->fault.empty()) MakeGang(workload->key.name, *workload->wish);
//   TAHOMA_ASSIGN_OR_RETURN(auto claim_template, ParseClaimTemplate(other));
//   facts.claim_templates.Put(claim_template);
//   pod = JoinWorkload(pod, facts);                // pod->gang is the workload's name now
//   WorkloadStatus status = StatusOf(*workload, facts, {.phase = GangPhase::kRunning}, now);
//
// The workload's Gang has topologySize * serverCount members, a slice for each UltraServer, and the
// name of the workload. A pod is a member when the pod has a claim of the workload's template, and
// neither a label nor annotations that tell another gang.
//
// Scope: values and pure functions. Fields and states are AWS's
// (docs/reference/aws-dra-driver.md#ultraserver-workloads); PartiallyAllocated never occurs.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/facts/gang_status.h"
#include "controller/core/facts/gang_wish.h"
#include "controller/core/journal/gang_decision.h"
#include "controller/model/ids.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

struct Facts;
struct PodFact;

inline const kube::Resource kUltraServerWorkloads{
    .group = "neuron.aws.com", .version = "v1beta1", .plural = "neuronultraserverworkloads"};
inline const kube::Resource kClaimTemplates{
    .group = "resource.k8s.io", .version = "v1", .plural = "resourceclaimtemplates"};

// A workload and its Gang have one name.
using WorkloadKey = GangKey;
using ClaimTemplateKey = Key<struct ClaimTemplateTag>;

enum class WorkloadState : std::uint8_t {
  kPending,
  kAllocating,
  kAllocated,
  kFailed,
  kDeallocating
};
std::string_view ToString(WorkloadState state);

struct WorkloadCondition {
  std::string_view type;  // "Ready", "Progressing", "Degraded"
  bool holds = false;
  std::string reason;
  std::string message;
  WallTime since;  // when `holds` last changed

  friend bool operator==(const WorkloadCondition&, const WorkloadCondition&) = default;
};

struct WorkloadStatus {
  WorkloadState state = WorkloadState::kPending;
  std::vector<std::string> ultraservers;  // by the first slice on each
  std::optional<WallTime> allocated_at;
  std::int64_t observed_generation = 0;
  std::vector<WorkloadCondition> conditions;

  friend bool operator==(const WorkloadStatus&, const WorkloadStatus&) = default;
};

// A condition that the object shows.
struct ShownCondition {
  std::string type;
  bool holds = false;
  WallTime since;
};

struct WorkloadFact {
  WorkloadKey key = {};
  std::string uid = {};
  std::string resource_version = {};
  std::int64_t generation = 0;
  bool deleting = false;
  std::string instance_type = {};
  std::int64_t topology_size = 0;
  int lnc = 0;  // cores of a logical NeuronCore
  std::string claim_template = {};
  std::shared_ptr<const GangWish> wish = {};  // the Gang
  std::string fault = {};                     // why the spec cannot be used; empty when it can
  std::vector<ShownCondition> conditions = {};
  std::uint64_t shown = 0;  // the digest of its status

  ClaimTemplateKey TemplateKey() const { return {key.ns, claim_template}; }
  kube::OwnerReference AsOwner() const;
};

// A ResourceClaimTemplate, and the workload that the template was made for.
struct ClaimTemplateFact {
  ClaimTemplateKey key = {};
  std::string uid = {};
  std::string workload = {};  // empty: made for no workload
  std::string workload_uid = {};
  std::shared_ptr<const GangWish> wish = {};  // of each pod that uses the template
};

// Each fails with kInvalidArgument when the object has no name or a field has another type.
absl::StatusOr<std::shared_ptr<const WorkloadFact>> ParseWorkload(const Json& object);
absl::StatusOr<std::shared_ptr<const ClaimTemplateFact>> ParseClaimTemplate(const Json& object);

// Returns the names of the claim templates that a pod's spec uses.
std::vector<std::string> ReadTemplates(const Json& pod);

// Returns the pod as a member of the gang of its template's workload, or, without such a template,
// as a member of none. A pod that tells its gang itself is returned as it is.
std::shared_ptr<const PodFact> JoinWorkload(std::shared_ptr<const PodFact> pod, const Facts& facts);

// Returns why neither the template nor the Gang is made; "" when both can be used.
std::string TroubleOf(const WorkloadFact& workload, const Facts& facts);

// A workload's gang, as the controller knows the gang.
struct WorkloadGang {
  GangPhase phase = GangPhase::kPending;
  GangReason reason = GangReason::kNone;
  std::string message;
  std::shared_ptr<const GangDecision> decision;  // nullptr: the gang has no place
  std::string refusal;                           // of the template or the Gang by the API server
};

// The conditions have the times that the object shows, or `now` where they differ from it.
WorkloadStatus StatusOf(const WorkloadFact& workload, const Facts& facts, const WorkloadGang& gang,
                        WallTime now);

}  // namespace tahoma::controller
