#include "controller/core/writes/api_write.h"

#include "lib/base/check.h"

namespace tahoma::controller {

WriteTarget TargetOf(WriteKind kind) {
  switch (kind) {
    case WriteKind::kReadClaim:
    case WriteKind::kAddFinalizer:
    case WriteKind::kAllocate:
    case WriteKind::kDeallocate:
    case WriteKind::kRemoveFinalizer:
      return WriteTarget::kClaim;
    case WriteKind::kReadPod:
    case WriteKind::kBind:
    case WriteKind::kDeletePod:
      return WriteTarget::kPod;
    case WriteKind::kCreateBlock:
    case WriteKind::kBlockFinalizer:
    case WriteKind::kBlockStatus:
      return WriteTarget::kBlock;
    case WriteKind::kRequestStatus:
      return WriteTarget::kRequest;
    case WriteKind::kGangStatus:
    case WriteKind::kPodCondition:
    case WriteKind::kPodReclaim:
    case WriteKind::kEvent:
      return WriteTarget::kPeople;
  }
  TAHOMA_CHECK(false);
  return WriteTarget::kPeople;
}

EventSubject SubjectOf(RequestKind kind) {
  switch (kind) {
    case RequestKind::kQuota:
      return EventSubject::kCapacityBlockQuota;
    case RequestKind::kSeries:
      return EventSubject::kCapacityBlockSeries;
    case RequestKind::kWaitlistEntry:
      return EventSubject::kCapacityBlockWaitlistEntry;
    case RequestKind::kExtension:
      return EventSubject::kCapacityBlockExtension;
  }
  TAHOMA_CHECK(false);
  return EventSubject::kCapacityBlock;
}

ApiResult ResultOf(const ApiWrite& write) {
  ApiResult result;
  result.run = write.run;
  result.kind = write.kind;
  result.index = write.index;
  result.attempt = write.attempt;
  result.request_kind = write.request_kind;
  result.ns = write.ns;
  result.name = write.name;
  return result;
}

}  // namespace tahoma::controller
