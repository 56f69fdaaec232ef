#include "controller/core/facts/gang_status.h"

#include "controller/core/journal/record.h"
#include "controller/plan/decision.h"
#include "lib/base/check.h"

namespace tahoma::controller {

std::string_view ToString(GangPhase phase) {
  switch (phase) {
    case GangPhase::kPending:
      return "Pending";
    case GangPhase::kPlaced:
      return "Placed";
    case GangPhase::kRunning:
      return "Running";
    case GangPhase::kDegraded:
      return "Degraded";
    case GangPhase::kFinished:
      return "Finished";
    case GangPhase::kFailed:
      return "Failed";
  }
  TAHOMA_CHECK(false);
  return "";
}

namespace {

// The reasons for which a gang is not planned yet.
std::string_view TextOfUnready(GangReason reason) {
  switch (reason) {
    case GangReason::kWaitingForGang:
      return "WaitingForGang";
    case GangReason::kWaitingForPods:
      return "WaitingForPods";
    case GangReason::kTooManyPods:
      return "TooManyPods";
    case GangReason::kIndexTwice:
      return "IndexGivenTwice";
    case GangReason::kWaitingForClaims:
      return "WaitingForClaims";
    case GangReason::kWaitingForVolumes:
      return "WaitingForVolumes";
    case GangReason::kWaitingForBlock:
      return "WaitingForCapacityBlock";
    case GangReason::kFinished:
      return "Finished";
    case GangReason::kQueueUnknown:
      return "QueueUnknown";
    case GangReason::kQueueNotAllowed:
      return "QueueNotAllowed";
    case GangReason::kQueueInvalid:
      return "QueueInvalid";
    case GangReason::kQueueFull:
      return "QueueFull";
    case GangReason::kQueueStopped:
      return "QueueStopped";
    case GangReason::kQueueLimit:
      return "QueueLimit";
    case GangReason::kQueueCalendar:
      return "QueueCalendar";
    default:
      break;
  }
  TAHOMA_CHECK(false);
  return "";
}

}  // namespace

std::string_view ToString(GangReason reason) {
  switch (reason) {
    case GangReason::kNone:
      return "";
    case GangReason::kWaitsForCapacity:
      return ToString(BlockedReason::kWaitsForCapacity);
    case GangReason::kWaitsForRepair:
      return ToString(BlockedReason::kWaitsForRepair);
    case GangReason::kNeverFits:
      return ToString(BlockedReason::kNeverFits);
    case GangReason::kNotFound:
      return ToString(BlockedReason::kNotFound);
    case GangReason::kInvalid:
      return ToString(BlockedReason::kInvalid);
    case GangReason::kCommitting:
      return "Committing";
    case GangReason::kBound:
      return "Bound";
    case GangReason::kUndone:
      return "Undone";
    case GangReason::kReclaimed:
      return "Reclaimed";
    case GangReason::kPreempted:
      return "Preempted";
    case GangReason::kMaxRuntimeOver:
      return "MaxRuntimeOver";
    case GangReason::kMemberLost:
      return "MemberLost";
    case GangReason::kNotStarted:
      return "NotStarted";
    case GangReason::kMoved:
      return "Moved";
    case GangReason::kStarting:
      return "Starting";
    case GangReason::kMembersNotReady:
      return "MembersNotReady";
    case GangReason::kNodeNotReady:
      return "NodeNotReady";
    case GangReason::kPodsEnded:
      return "PodsEnded";
    case GangReason::kAllPodsExist:
      return "AllPodsExist";
    case GangReason::kPodsNotReady:
      return "PodsNotReady";
    case GangReason::kPlaced:
      return "Placed";
    case GangReason::kNotPlaced:
      return "NotPlaced";
    case GangReason::kAllPodsBound:
      return "AllPodsBound";
    case GangReason::kAllMembersReady:
      return "AllMembersReady";
    default:
      return TextOfUnready(reason);
  }
}

GangReason ReasonOf(EndCause cause) {
  switch (cause) {
    case EndCause::kFailed:
      return GangReason::kUndone;
    case EndCause::kReclaimed:
      return GangReason::kReclaimed;
    case EndCause::kPreempted:
      return GangReason::kPreempted;
    case EndCause::kRuntimeOver:
      return GangReason::kMaxRuntimeOver;
    case EndCause::kMemberLost:
    case EndCause::kGangFailed:
      return GangReason::kMemberLost;
    case EndCause::kNotStarted:
      return GangReason::kNotStarted;
    case EndCause::kMoved:
      return GangReason::kMoved;
  }
  TAHOMA_CHECK(false);
  return GangReason::kNone;
}

std::string_view ToString(EventReason reason) {
  switch (reason) {
    case EventReason::kScheduled:
      return "Scheduled";
    case EventReason::kFailedScheduling:
      return "FailedScheduling";
    case EventReason::kGangPlaced:
      return "GangPlaced";
    case EventReason::kGangBlocked:
      return "GangBlocked";
    case EventReason::kGangUndone:
      return "GangUndone";
    case EventReason::kReclaimIsNear:
      return "ReclaimIsNear";
    case EventReason::kMaintenanceIsNear:
      return "MaintenanceIsNear";
    case EventReason::kGangReclaimed:
      return "GangReclaimed";
    case EventReason::kGangPreempted:
      return "GangPreempted";
    case EventReason::kGangMaxRuntimeOver:
      return "GangMaxRuntimeOver";
    case EventReason::kGangMemberLost:
      return "GangMemberLost";
    case EventReason::kGangFailed:
      return "GangFailed";
    case EventReason::kGangNotStarted:
      return "GangNotStarted";
    case EventReason::kGangMoved:
      return "GangMoved";
    case EventReason::kMemberReplaced:
      return "MemberReplaced";
    case EventReason::kMemberAdded:
      return "MemberAdded";
    case EventReason::kMemberGone:
      return "MemberGone";
  }
  TAHOMA_CHECK(false);
  return "";
}

std::string_view ToString(ConditionType type) {
  switch (type) {
    case ConditionType::kPodsReady:
      return "PodsReady";
    case ConditionType::kPlaced:
      return "Placed";
    case ConditionType::kBound:
      return "Bound";
    case ConditionType::kReady:
      return "Ready";
    case ConditionType::kFailed:
      return "Failed";
  }
  TAHOMA_CHECK(false);
  return "";
}

std::string_view ToString(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kTrue:
      return "True";
  }
  TAHOMA_CHECK(false);
  return "";
}

}  // namespace tahoma::controller
