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
    case WriteKind::kCreateGang:
      return WriteTarget::kGang;
    case WriteKind::kSelectNode:
      return WriteTarget::kVolumeClaim;
    case WriteKind::kPodClaimStatus:
    case WriteKind::kCreateClaim:
      return WriteTarget::kExtendedClaim;
    case WriteKind::kCreateClaimTemplate:
    case WriteKind::kWorkloadStatus:
      return WriteTarget::kWorkload;
    case WriteKind::kRequestStatus:
      return WriteTarget::kRequest;
    case WriteKind::kQueueCalendarStatus:
    case WriteKind::kQueueStatus:
      return WriteTarget::kQueue;
    case WriteKind::kWindowStatus:
      return WriteTarget::kWindow;
    case WriteKind::kDefragmentationStatus:
      return WriteTarget::kDefragmentation;
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

WriteKind ApiWrite::kind() const {
  struct Visitor {
    WriteKind operator()(const ClaimWrite& write) const { return write.kind; }
    WriteKind operator()(const PodWrite& write) const { return write.kind; }
    WriteKind operator()(const PodDeletion&) const { return WriteKind::kDeletePod; }
    WriteKind operator()(const GangCreation&) const { return WriteKind::kCreateGang; }
    WriteKind operator()(const VolumeNodeWrite&) const { return WriteKind::kSelectNode; }
    WriteKind operator()(const PodClaimStatusWrite&) const { return WriteKind::kPodClaimStatus; }
    WriteKind operator()(const ExtendedClaimCreation&) const { return WriteKind::kCreateClaim; }
    WriteKind operator()(const ClaimTemplateCreation&) const {
      return WriteKind::kCreateClaimTemplate;
    }
    WriteKind operator()(const WorkloadStatusWrite&) const { return WriteKind::kWorkloadStatus; }
    WriteKind operator()(const BlockCreation&) const { return WriteKind::kCreateBlock; }
    WriteKind operator()(const BlockFinalizerWrite&) const { return WriteKind::kBlockFinalizer; }
    WriteKind operator()(const BlockStatusWrite&) const { return WriteKind::kBlockStatus; }
    WriteKind operator()(const RequestStatusWrite&) const { return WriteKind::kRequestStatus; }
    WriteKind operator()(const QueueCalendarStatusWrite&) const {
      return WriteKind::kQueueCalendarStatus;
    }
    WriteKind operator()(const QueueStatusWrite&) const { return WriteKind::kQueueStatus; }
    WriteKind operator()(const WindowStatusWrite&) const { return WriteKind::kWindowStatus; }
    WriteKind operator()(const DefragmentationStatusWrite&) const {
      return WriteKind::kDefragmentationStatus;
    }
    WriteKind operator()(const GangStatusWrite&) const { return WriteKind::kGangStatus; }
    WriteKind operator()(const PodConditionWrite&) const { return WriteKind::kPodCondition; }
    WriteKind operator()(const PodReclaimWrite&) const { return WriteKind::kPodReclaim; }
    WriteKind operator()(const EventNote&) const { return WriteKind::kEvent; }
  };
  return std::visit(Visitor{}, what);
}

namespace {

// Sets the part of a result that names the target of the write.
struct TargetSetter {
  ApiResult& result;

  void operator()(const ClaimWrite& write) const { SetMember(write); }
  void operator()(const PodWrite& write) const { SetMember(write); }
  void operator()(const PodDeletion& write) const { SetMember(write); }
  void operator()(const GangCreation& write) const { SetObject(write.key); }
  void operator()(const VolumeNodeWrite& write) const { SetObject(write.base->key); }
  void operator()(const PodClaimStatusWrite& write) const { SetObject(write.key); }
  void operator()(const ExtendedClaimCreation& write) const { SetObject(write.pod); }
  void operator()(const ClaimTemplateCreation& write) const { SetObject(write.workload->key); }
  void operator()(const WorkloadStatusWrite& write) const { SetObject(write.key); }
  void operator()(const BlockCreation& write) const { SetObject(write.block->key); }
  void operator()(const BlockFinalizerWrite& write) const { SetObject(write.base->key); }
  void operator()(const BlockStatusWrite& write) const { SetObject(write.key); }
  void operator()(const RequestStatusWrite& write) const {
    SetObject(write.key);
    result.request_kind = write.key.kind;
  }
  void operator()(const QueueCalendarStatusWrite& write) const { result.name = write.name; }
  void operator()(const QueueStatusWrite& write) const { result.name = write.name; }
  void operator()(const WindowStatusWrite& write) const { result.name = write.name; }
  void operator()(const DefragmentationStatusWrite& write) const { result.name = write.name; }
  void operator()(const GangStatusWrite& write) const { SetObject(write.key); }
  void operator()(const PodConditionWrite& write) const { SetObject(write.key); }
  void operator()(const PodReclaimWrite& write) const { SetObject(write.key); }
  void operator()(const EventNote& event) const { SetObject(event); }

  void SetMember(const auto& write) const {
    result.run = write.run;
    result.index = write.index;
  }
  void SetObject(const auto& key) const {
    result.ns = key.ns;
    result.name = key.name;
  }
};

}  // namespace

ApiResult ResultOf(const ApiWrite& write) {
  ApiResult result;
  result.kind = write.kind();
  result.attempt = write.attempt;
  std::visit(TargetSetter{result}, write.what);
  return result;
}

}  // namespace tahoma::controller
