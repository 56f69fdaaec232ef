// The state of a gang in the words that people read: its phase, the reason for it, conditions.
//
//   GangStatus status;
//   status.phase = GangPhase::kPending;
//   status.reason = GangReason::kWaitingForPods;
//   fmt::print("{}: {}", ToString(status.phase), ToString(status.reason));
//
// Inside the controller these are enumerators; ToString() is called where they leave it (publish,
// admin) and nothing reads its text back. The numbers of the enumerators mean nothing.
//
// Scope: the words. status_reporter.h finds which of them holds.
//
// Thread safety: values.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/journal/gang_decision.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class EndCause : std::uint8_t;  // controller/core/journal/record.h

enum class GangPhase : std::uint8_t { kPending, kPlaced, kRunning, kDegraded, kFinished, kFailed };

// The reason for a gang's phase, or for a condition.
enum class GangReason : std::uint8_t {
  kNone,  // ready, and the planner has not answered yet
  // Not ready to be planned (gang_membership.h).
  kWaitingForGang,
  kWaitingForPods,
  kTooManyPods,
  kIndexTwice,
  kWaitingForClaims,
  kWaitingForVolumes,
  kWaitingForBlock,
  kFinished,  // a pod without a Gang that is bound or has ended
  // The gang's queue (core/queue/queue_keeper.h).
  kQueueUnknown,     // does not exist
  kQueueNotAllowed,  // is not for the gang's namespace, or not for its run time
  kQueueInvalid,     // or a queue above is in trouble
  kQueueFull,        // no more gangs may wait there
  kQueueStopped,
  kQueueLimit,
  kQueueCalendar,  // a calendar will take back what the gang would hold
  // The planner found no place (plan/decision.h).
  kWaitsForCapacity,
  kWaitsForRepair,
  kNeverFits,
  kNotFound,  // within the bound of steps
  kInvalid,   // or a spec that cannot be read
  // The gang has a run (gang_run.h), or had one.
  kCommitting,
  kBound,
  kUndone,
  kReclaimed,        // its Capacity Block ends
  kPreempted,        // a Capacity Block needs what it had borrowed
  kMaxRuntimeOver,   // it has run for its maxRuntime
  kMemberLost,       // a pod of it failed, was deleted, or its node is gone
  kNotStarted,       // a pod of it was not ready within startWithin
  kMoved,            // it moves so that hardware comes free
  kStarting,         // bound, and not yet all pods are ready
  kMembersNotReady,  // a pod was ready and is not any more
  kNodeNotReady,     // a node of a pod is not ready, or gone
  kPodsEnded,
  // Reasons of conditions alone.
  kAllPodsExist,
  kPodsNotReady,
  kPlaced,
  kNotPlaced,
  kAllPodsBound,
  kAllMembersReady,
};
// Returns the reason for which a gang has no place any more.
GangReason ReasonOf(EndCause cause);

// Reasons of events (docs/design/0001-seams.md).
enum class EventReason : std::uint8_t {
  kScheduled,
  kFailedScheduling,
  kGangPlaced,
  kGangBlocked,
  kGangUndone,
  kReclaimIsNear,
  kMaintenanceIsNear,
  kGangReclaimed,
  kGangPreempted,
  kGangMaxRuntimeOver,
  kGangMemberLost,
  kGangFailed,
  kGangNotStarted,
  kGangMoved,
  kMemberReplaced,
  kMemberAdded,
  kMemberGone,
};

enum class ConditionType : std::uint8_t { kPodsReady, kPlaced, kBound, kReady, kFailed };
enum class ConditionStatus : std::uint8_t { kFalse, kTrue };

// Returns the text that Kubernetes objects have: CamelCase; "" for GangReason::kNone.
std::string_view ToString(GangPhase phase);
std::string_view ToString(GangReason reason);
std::string_view ToString(EventReason reason);
std::string_view ToString(ConditionType type);
std::string_view ToString(ConditionStatus status);

struct GangCondition {
  ConditionType type = ConditionType::kPodsReady;
  ConditionStatus status = ConditionStatus::kFalse;
  GangReason reason = GangReason::kNone;
  std::string message;
  WallTime since;  // when `status` last changed

  friend bool operator==(const GangCondition&, const GangCondition&) = default;
};

// A member of a gang with a place that is not there, or not ready.
struct MemberTrouble {
  std::string pod;
  std::uint32_t rank = 0;
  std::string node;
  std::string message;

  friend bool operator==(const MemberTrouble&, const MemberTrouble&) = default;
};

// The status of a Gang, as charts/tahoma/crds/tahoma.dev_gangs.yaml describes it.
struct GangStatus {
  static constexpr std::size_t kTroubledMost = 16;

  GangPhase phase = GangPhase::kPending;
  GangReason reason = GangReason::kNone;
  std::string queue;  // in which the gang waits, or got its place
  std::string placement;
  std::string predicted_all_reduce;  // "1.273ms" (plan/score.h); empty when there is nothing to say
  std::int32_t bound_members = 0;
  std::int32_t ready_members = 0;
  std::vector<MemberTrouble> troubled_members;  // at most kTroubledMost, by rank
  std::int64_t observed_generation = 0;
  std::vector<DecidedSlice> slices;
  std::optional<WallTime> start_time;       // when the last pod was bound
  std::optional<WallTime> completion_time;  // when the gang was seen to have ended for good
  std::vector<GangCondition> conditions;

  friend bool operator==(const GangStatus&, const GangStatus&) = default;
};

}  // namespace tahoma::controller
