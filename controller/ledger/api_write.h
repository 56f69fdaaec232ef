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

#include "controller/ledger/facts.h"
#include "controller/ledger/gang_decision.h"
#include "controller/ledger/gang_status.h"
#include "controller/ledger/record.h"
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
  // Messages to people; nothing depends on them.
  kGangStatus,
  kPodCondition,
  kEvent,
};

// The target of a write: claim `index` of its decision, pod `index`, or the people who read it.
enum class WriteTarget : std::uint8_t { kClaim, kPod, kPeople };
WriteTarget TargetOf(WriteKind kind);

// A core/v1 Event.
struct EventNote {
  bool about_gang = false;  // otherwise it is about a pod
  std::string ns;
  std::string name;
  std::string uid;
  bool warning = false;
  EventReason reason = EventReason::kScheduled;
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
  // The object of a write for people: the Gang of kGangStatus, the pod of kPodCondition.
  std::string ns;
  std::string name;
  std::string uid;
  std::shared_ptr<const GangStatus> status;
  std::string message;  // kPodCondition
  WallTime when;        // kPodCondition: transition time
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
  std::string ns;  // set for kGangStatus and kPodCondition
  std::string name;
  WriteOutcome outcome = WriteOutcome::kDone;
  std::string message;                     // the reason, when the outcome is not kDone
  std::shared_ptr<const ClaimFact> claim;  // as answered, without its spec
  std::shared_ptr<const PodFact> pod;      // as answered by kReadPod
};

// Returns the result of `write` with all that identifies it; its outcome is kDone until it is set.
ApiResult ResultOf(const ApiWrite& write);

}  // namespace tahoma::controller
