// One write (or read) of the Kubernetes API that the core asks for, and its result.
//
//   const ApiWrite write{1, PodWrite{.kind = WriteKind::kBind, .run = 17, .decision = decision}};
//   ApiResult result = ResultOf(write);               // somewhere else, some time later
//   result.outcome = WriteOutcome::kConflict;
//   core.Step({result}, now);
//
// A write carries everything that is needed to render it as an HTTP request; the core itself never
// touches JSON. Every write is answered by exactly one result in the end; a result that comes twice
// is recognised by its attempt and ignored.
//
// Scope: values.
//
// Thread safety: values.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "controller/core/facts/block_request.h"
#include "controller/core/facts/defragmentation.h"
#include "controller/core/facts/extended_claim.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_status.h"
#include "controller/core/facts/queue_calendar_object.h"
#include "controller/core/facts/queue_object.h"
#include "controller/core/facts/window_object.h"
#include "controller/core/journal/gang_decision.h"
#include "controller/core/journal/record.h"
#include "controller/reserve/block_view.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class WriteKind : std::uint8_t {
  // ClaimWrite.
  kReadClaim,
  kAddFinalizer,
  kAllocate,    // allocation and reservedFor in one status write
  kDeallocate,  // takes back what kAllocate wrote; other pods' reservations stay
  kRemoveFinalizer,
  // PodWrite, and PodDeletion.
  kReadPod,
  kBind,
  kDeletePod,
  kCreateGang,
  kSelectNode,
  kPodClaimStatus,
  kCreateClaim,
  kCreateClaimTemplate,
  kWorkloadStatus,
  // Each of the others is a struct of its own.
  kCreateBlock,
  kBlockFinalizer,
  kBlockStatus,
  kRequestStatus,
  kQueueCalendarStatus,
  kQueueStatus,
  kWindowStatus,
  kDefragmentationStatus,
  kGangStatus,
  kPodCondition,
  kPodReclaim,
  kEvent,
};

// The target of a write: claim `index` of its decision, pod `index`, a Gang, a
// PersistentVolumeClaim, the claim of a pod's extended resources, a NeuronUltraServerWorkload or
// its claim template, a CapacityBlock, a request about some, a Queue or a QueueCalendar, a
// MaintenanceWindow, a Defragmentation, or the people who read the message.
enum class WriteTarget : std::uint8_t {
  kClaim,
  kPod,
  kGang,
  kVolumeClaim,
  kExtendedClaim,
  kWorkload,
  kBlock,
  kRequest,
  kQueue,
  kWindow,
  kDefragmentation,
  kPeople
};
WriteTarget TargetOf(WriteKind kind);

// ---- The commit of a gang ----------------------------------------------------------------------

// Reads or changes claim `index` of the decision. A change has `base`'s resourceVersion as
// precondition.
struct ClaimWrite {
  WriteKind kind = WriteKind::kReadClaim;  // to kRemoveFinalizer
  RunId run = 0;
  std::uint32_t index = 0;
  std::shared_ptr<const GangDecision> decision;
  std::shared_ptr<const ClaimFact> base;  // the claim's state that the write is made for

  const DecidedClaim& claim() const { return decision->claims[index]; }
};

// Reads pod `index` of the decision, or binds it with its uid as precondition.
struct PodWrite {
  WriteKind kind = WriteKind::kReadPod;  // or kBind
  RunId run = 0;
  std::uint32_t index = 0;
  std::shared_ptr<const GangDecision> decision;

  const DecidedPod& pod() const { return decision->pods[index]; }
};

// Deletes pod `index` of the decision, with its uid as precondition.
struct PodDeletion {
  RunId run = 0;
  std::uint32_t index = 0;
  std::shared_ptr<const GangDecision> decision;
  std::optional<WallTime> by = {};                 // when the pod must have ended
  std::optional<std::int64_t> grace_seconds = {};  // nullopt: the pod's own

  const DecidedPod& pod() const { return decision->pods[index]; }
};

// Makes the Gang that pods wish.
struct GangCreation {
  GangKey key;
  std::shared_ptr<const GangWish> wish;
};

// Tells the pod the claim of its extended resources, and the requests for each container.
struct PodClaimStatusWrite {
  PodKey key;
  std::string uid;
  kube::ExtendedClaimStatus status;
};

// Makes the claim of the pod's extended resources.
struct ExtendedClaimCreation {
  PodKey pod;
  std::string uid;  // of the pod
  std::shared_ptr<const ExtendedClaim> claim;
};

// Makes the ResourceClaimTemplate of a workload.
struct ClaimTemplateCreation {
  std::shared_ptr<const WorkloadFact> workload;
};

// Writes the status of a workload.
struct WorkloadStatusWrite {
  WorkloadKey key;
  std::string uid;
  std::string base_version;  // the resourceVersion that the object had
  std::uint64_t shown = 0;   // as of BlockStatusWrite
  std::shared_ptr<const WorkloadStatus> status;
};

// Tells the provisioner of a PersistentVolumeClaim the node of the claim's pod. Uid and
// resourceVersion of `base` are the precondition.
struct VolumeNodeWrite {
  std::shared_ptr<const VolumeClaimFact> base;
  std::string node;
};

// ---- Capacity Blocks ---------------------------------------------------------------------------

// Makes the CapacityBlock of a block that another API has bought.
struct BlockCreation {
  std::shared_ptr<const Block> block;
};

// Adds the finalizer to a CapacityBlock that holds capacity, or removes the finalizer from one that
// holds none. Uid and resourceVersion of `base` are the precondition.
struct BlockFinalizerWrite {
  bool add = true;
  std::shared_ptr<const BlockFact> base;  // the object as it is
};

// Writes the status of a CapacityBlock, with uid and resourceVersion as precondition.
struct BlockStatusWrite {
  BlockKey key;
  std::string uid;
  std::string base_version;  // the resourceVersion that the object must have
  std::uint64_t shown = 0;   // the digest of the status that the object shows; 0: unknown
  std::shared_ptr<const BlockView> view;
};

// Writes the status of an object of block_request.h.
struct RequestStatusWrite {
  RequestKey key;
  std::string uid;
  std::string base_version;  // the resourceVersion that the object had
  std::uint64_t shown = 0;   // as of BlockStatusWrite
  std::shared_ptr<const RequestStatus> status;
};

// ---- Queues ------------------------------------------------------------------------------------

// Writes the status of a QueueCalendar.
struct QueueCalendarStatusWrite {
  std::string name;
  std::string uid;
  std::string base_version;  // the resourceVersion that the object had
  std::uint64_t shown = 0;   // as of BlockStatusWrite
  std::shared_ptr<const QueueCalendarStatus> status;
};

// Writes the status of a Queue.
struct QueueStatusWrite {
  std::string name;
  std::string uid;
  std::string base_version;  // the resourceVersion that the object had
  std::uint64_t shown = 0;   // as of BlockStatusWrite
  std::shared_ptr<const QueueStatus> status;
};

// ---- Maintenance windows -----------------------------------------------------------------------

// Writes the status of a MaintenanceWindow.
struct WindowStatusWrite {
  std::string name;
  std::string uid;
  std::string base_version;  // the resourceVersion that the object had
  std::uint64_t shown = 0;   // as of BlockStatusWrite
  std::shared_ptr<const WindowStatus> status;
};

// Writes the status of a Defragmentation.
struct DefragmentationStatusWrite {
  std::string name;
  std::string uid;
  std::string base_version;  // the resourceVersion that the object had
  std::uint64_t shown = 0;   // as of BlockStatusWrite
  std::shared_ptr<const DefragmentationStatus> status;
};

// ---- Messages to people; nothing depends on them -----------------------------------------------

struct GangStatusWrite {
  GangKey key;
  std::string uid;
  std::shared_ptr<const GangStatus> status;
};

// Writes the condition that says why a pod waits.
struct PodConditionWrite {
  PodKey key;
  std::string uid;
  std::string message;
  WallTime since;  // the condition's transition time
};

// Writes the annotation of when the pod's hardware may be taken back.
struct PodReclaimWrite {
  PodKey key;
  std::string uid;
  std::optional<WallTime> reclaim;  // nullopt: removes the annotation
};

// The kind of object that an event is about.
enum class EventSubject : std::uint8_t {
  kPod,
  kGang,
  kCapacityBlock,
  kCapacityBlockExtension,
  kCapacityBlockQuota,
  kCapacityBlockSeries,
  kCapacityBlockWaitlistEntry,
};
EventSubject SubjectOf(RequestKind kind);

// A core/v1 Event.
struct EventNote {
  EventSubject about = EventSubject::kPod;
  std::string ns;
  std::string name;
  std::string uid;
  bool warning = false;
  std::string_view reason;  // one of the words of ToString(EventReason) or NewsName
  std::string message;
  WallTime when;
};

using Write = std::variant<ClaimWrite, PodWrite, PodDeletion, GangCreation, VolumeNodeWrite,
                           PodClaimStatusWrite, ExtendedClaimCreation, ClaimTemplateCreation,
                           WorkloadStatusWrite, BlockCreation, BlockFinalizerWrite,
                           BlockStatusWrite, RequestStatusWrite, QueueCalendarStatusWrite,
                           QueueStatusWrite, WindowStatusWrite, DefragmentationStatusWrite,
                           GangStatusWrite, PodConditionWrite, PodReclaimWrite, EventNote>;

struct ApiWrite {
  std::uint64_t attempt = 0;  // unique within the core's life
  Write what;

  WriteKind kind() const;
};

// ---- Results -----------------------------------------------------------------------------------

enum class WriteOutcome : std::uint8_t {
  kDone,
  kConflict,     // 409: the precondition does not hold (or the pod cannot be bound)
  kGone,         // 404: the object does not exist
  kRefused,      // another 4xx: asking again as it is will not help
  kUnavailable,  // no answer, 429 or 5xx: it may or may not have been carried out
};

struct ApiResult {
  RunId run = 0;  // 0: belongs to no run
  WriteKind kind = WriteKind::kReadClaim;
  std::uint32_t index = 0;
  std::uint64_t attempt = 0;
  std::optional<RequestKind> request_kind;
  std::string ns;  // of the object (a claim: of its pod), where the write belongs to no run
  std::string name;
  WriteOutcome outcome = WriteOutcome::kDone;
  std::string message;           // the reason, when the outcome is not kDone
  std::string resource_version;  // of a CapacityBlock, or what has the status, as it was written
  std::uint64_t shown = 0;       // the digest of the status that it shows then
  std::shared_ptr<const ClaimFact> claim;  // as answered, without its spec
  std::shared_ptr<const PodFact> pod;      // as answered by kReadPod, kPodClaimStatus
};

// Returns the result of `write` with all that identifies it; its outcome is kDone until it is set.
ApiResult ResultOf(const ApiWrite& write);

}  // namespace tahoma::controller
