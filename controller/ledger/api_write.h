// One write (or read) of the Kubernetes API that the core wants done, and what came of it.
//
//   ApiWrite write{.run = 17, .kind = WriteKind::kBind, .index = 0, .attempt = 1, …};
//   ApiResult result = publisher.Execute(write);      // somewhere else, some time later
//   core.Step({result}, now);
//
// A write carries what it needs to be rendered as an HTTP request elsewhere; the core itself never
// touches JSON. Every write is answered by exactly one result in the end; a result that comes
// twice is recognised by its attempt and ignored.
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
  // On claim `index` of the decision; all but the read with `base`'s resourceVersion as
  // precondition.
  kReadClaim,
  kAddFinalizer,
  kAllocate,    // allocation and reservedFor in one status write
  kDeallocate,  // takes back what kAllocate wrote, other pods' reservations stay
  kRemoveFinalizer,
  // On pod `index` of the decision.
  kReadPod,
  kBind,       // with the pod's uid as precondition
  kDeletePod,  // with the pod's uid as precondition
  // Told to people; nothing depends on it.
  kGangStatus,
  kPodCondition,
  kEvent,
};

// Whether a write is about claim `index` of its decision, about pod `index`, or is told to people.
enum class WriteTarget : std::uint8_t { kClaim, kPod, kPeople };
WriteTarget TargetOf(WriteKind kind);

// A core/v1 Event.
struct EventNote {
  bool about_gang = false;  // else about a pod
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
  std::shared_ptr<const ClaimFact> base;  // the state of the claim that the write is made for
  // kGangStatus: the gang. kPodCondition: the pod.
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
  std::string ns;  // of kGangStatus and kPodCondition
  std::string name;
  WriteOutcome outcome = WriteOutcome::kDone;
  std::string message;                     // why not, when the outcome is not kDone
  std::shared_ptr<const ClaimFact> claim;  // as answered; without spec
  std::shared_ptr<const PodFact> pod;      // as answered by kReadPod
};

// The result of `write`, with whatever says whose it is; done, until its outcome is set.
ApiResult ResultOf(const ApiWrite& write);

}  // namespace tahoma::controller
