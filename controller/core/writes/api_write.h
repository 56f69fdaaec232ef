// One write (or read) of the Kubernetes API that the core asks for, and its result.
//
//   const ApiWrite write{.run = 17, .kind = WriteKind::kBind, .index = 0, .attempt = 1};
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

#include "controller/core/facts/block_request.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_status.h"
#include "controller/core/journal/gang_decision.h"
#include "controller/core/journal/record.h"
#include "controller/reserve/block_view.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class WriteKind : std::uint8_t {
  // Writes to claim `index` of the decision. All but the read have `base`'s resourceVersion as
  // precondition.
  kReadClaim,
  kAddFinalizer,
  kAllocate,    // allocation and reservedFor in one status write
  kDeallocate,  // takes back what kAllocate wrote; other pods' reservations stay
  kRemoveFinalizer,
  // Writes to pod `index` of the decision.
  kReadPod,
  kBind,       // with the pod's uid as precondition
  kDeletePod,  // with the pod's uid as precondition
  // Writes about the block of `block`, with uid and resourceVersion of its CapacityBlock as
  // precondition but for the first, which makes it.
  kCreateBlock,
  kBlockFinalizer,  // adds it to a block that holds capacity, or takes it from one that does not
  kBlockStatus,
  kRequestStatus,  // of an object of block_request.h
  // Messages to people; nothing depends on them.
  kGangStatus,
  kPodCondition,
  kPodReclaim,  // the annotation of when the pod's Capacity Block takes the hardware back
  kEvent,
};

// The target of a write: claim `index` of its decision, pod `index`, a CapacityBlock, a request
// about some, or the people who read it.
enum class WriteTarget : std::uint8_t { kClaim, kPod, kBlock, kRequest, kPeople };
WriteTarget TargetOf(WriteKind kind);

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

struct ApiWrite {
  RunId run = 0;  // 0: belongs to no run
  WriteKind kind = WriteKind::kReadClaim;
  std::uint32_t index = 0;
  std::uint64_t attempt = 0;  // unique within the core's life
  std::shared_ptr<const GangDecision> decision;
  std::shared_ptr<const ClaimFact> base;  // the claim's state that the write is made for
  std::shared_ptr<const BlockView> block;
  std::shared_ptr<const BlockFact> block_base;  // kBlockFinalizer: the object as it is
  std::string base_version;                     // kBlockStatus: what the object's must be
  // kBlockStatus, kRequestStatus: the digest of the status that the object shows; such a status
  // need not be written. 0: unknown.
  std::uint64_t shown = 0;
  std::optional<WallTime> by = {};                 // kDeletePod: when the pod must have ended
  std::optional<std::int64_t> grace_seconds = {};  // kDeletePod: nullopt: the pod's own
  std::optional<RequestKind> request_kind;         // kRequestStatus
  std::shared_ptr<const RequestStatus> request_status;
  // The object of a write for people or about a block: the Gang of kGangStatus, the pod of
  // kPodCondition and kPodReclaim.
  std::string ns;
  std::string name;
  std::string uid;
  std::shared_ptr<const GangStatus> status;
  std::string message;  // kPodCondition
  WallTime when;        // kPodCondition: transition time; kPodReclaim: the annotation
  std::shared_ptr<const EventNote> event;
};

enum class WriteOutcome : std::uint8_t {
  kDone,
  kConflict,     // 409: the precondition does not hold (or the pod cannot be bound)
  kGone,         // 404: the object does not exist
  kRefused,      // another 4xx: asking again as it is will not help
  kUnavailable,  // no answer, 429 or 5xx: it may or may not have been carried out
};

struct ApiResult {
  RunId run = 0;
  WriteKind kind = WriteKind::kReadClaim;
  std::uint32_t index = 0;
  std::uint64_t attempt = 0;
  std::optional<RequestKind> request_kind;
  std::string ns;  // set for kGangStatus, kPodCondition and writes about blocks and requests
  std::string name;
  WriteOutcome outcome = WriteOutcome::kDone;
  std::string message;           // the reason, when the outcome is not kDone
  std::string resource_version;  // of a CapacityBlock, or what has the status, as it was written
  std::uint64_t shown = 0;       // the digest of the status that it shows then
  std::shared_ptr<const ClaimFact> claim;  // as answered, without its spec
  std::shared_ptr<const PodFact> pod;      // as answered by kReadPod
};

// Returns the result of `write` with all that identifies it; its outcome is kDone until it is set.
ApiResult ResultOf(const ApiWrite& write);

}  // namespace tahoma::controller
