// The input of the core thread: facts seen by watches, results of API writes, requests.
//
//   queue.Push(PodSeen{pod});
//   queue.Push(PodGone{{"default", "train-0"}, uid});
//
// Facts may come in any order. A watch that begins again reports everything again and then what
// vanished meanwhile; seeing a fact twice changes nothing.
//
// Scope: values.
//
// Thread safety: values.

#pragma once

#include <memory>
#include <string>
#include <variant>

#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/facts/defragmentation.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/other_pod.h"
#include "controller/core/facts/queue_calendar_object.h"
#include "controller/core/facts/queue_object.h"
#include "controller/core/facts/window_object.h"
#include "controller/core/writes/api_write.h"
#include "controller/model/inventory.h"
#include "controller/share/queue_calendar.h"
#include "controller/share/queue_spec.h"

namespace tahoma::controller {

struct PodSeen {
  std::shared_ptr<const PodFact> pod;
};
struct PodGone {
  PodKey key;
  std::string uid;
};
struct ClaimSeen {
  std::shared_ptr<const ClaimFact> claim;
};
struct ClaimGone {
  ClaimKey key;
  std::string uid;
};
struct GangSeen {
  std::shared_ptr<const GangFact> gang;
};
struct GangGone {
  GangKey key;
  std::string uid;
};
// A node joined with the devices of its pool; each command carries both as a whole.
struct NodeSeen {
  std::shared_ptr<const Node> node;
};
struct NodeGone {
  std::string name;
};
// A pod of another scheduler has left one node and come to another one: it was bound, has ended, or
// has other traits than before.
struct OtherPodMoved {
  std::string left;
  std::shared_ptr<const OtherPodTraits> removed;  // nullptr: the pod is new
  std::string node;
  std::shared_ptr<const OtherPodTraits> added;  // nullptr: the pod has ended
};
struct ClassSeen {
  std::shared_ptr<const ClassFact> device_class;
};
struct ClassGone {
  std::string name;
};
struct PodGroupSeen {
  std::shared_ptr<const PodGroupFact> group;
};
struct PodGroupGone {
  PodGroupKey key;
  std::string uid;
};
struct PriorityClassSeen {
  std::string name;
  std::int32_t value = 0;
};
struct PriorityClassGone {
  std::string name;
};
struct WorkloadSeen {
  std::shared_ptr<const WorkloadFact> workload;
};
struct WorkloadGone {
  WorkloadKey key;
  std::string uid;
};
struct ClaimTemplateSeen {
  std::shared_ptr<const ClaimTemplateFact> claim_template;
};
struct ClaimTemplateGone {
  ClaimTemplateKey key;
  std::string uid;
};
struct VolumeClaimSeen {
  std::shared_ptr<const VolumeClaimFact> claim;
};
struct VolumeClaimGone {
  VolumeClaimKey key;
  std::string uid;
};
struct VolumeSeen {
  std::shared_ptr<const VolumeFact> volume;
};
struct VolumeGone {
  std::string name;
};
struct StorageClassSeen {
  std::shared_ptr<const StorageClassFact> storage_class;
};
struct StorageClassGone {
  std::string name;
};
struct BlockSeen {
  std::shared_ptr<const BlockFact> block;
};
struct BlockGone {
  BlockKey key;
  std::string uid;
};
// An object of block_request.h.
struct RequestSeen {
  std::shared_ptr<const RequestFact> request;
};
struct RequestGone {
  RequestKey key;
  std::string uid;
};
struct BudgetSeen {
  std::shared_ptr<const BudgetFact> budget;
};
struct BudgetGone {
  std::string ns;
  std::string name;
  std::string uid;
};
struct QueueCalendarSeen {
  std::shared_ptr<const QueueCalendarSpec> calendar;
  QueueShown shown = {};
};
struct QueueCalendarGone {
  std::string name;
  std::string uid;
};
struct QueueSeen {
  std::shared_ptr<const QueueSpec> queue;
  QueueShown shown = {};
};
struct QueueGone {
  std::string name;
  std::string uid;
};
struct WindowSeen {
  std::shared_ptr<const WindowSpec> window;
  WindowShown shown = {};
};
struct WindowGone {
  std::string name;
  std::string uid;
};
struct DefragmentationSeen {
  std::shared_ptr<const DefragmentationFact> fact;
};
struct DefragmentationGone {
  std::string name;
  std::string uid;
};
// Says that every watch has reported everything that existed when it began. Until then the core
// decides nothing and writes nothing.
struct WatchesSynced {};

using Command =
    std::variant<PodSeen, PodGone, ClaimSeen, ClaimGone, GangSeen, GangGone, NodeSeen, NodeGone,
                 OtherPodMoved, ClassSeen, ClassGone, PodGroupSeen, PodGroupGone, PriorityClassSeen,
                 PriorityClassGone, WorkloadSeen, WorkloadGone, ClaimTemplateSeen,
                 ClaimTemplateGone, VolumeClaimSeen, VolumeClaimGone, VolumeSeen, VolumeGone,
                 StorageClassSeen, StorageClassGone, BlockSeen, BlockGone, RequestSeen, RequestGone,
                 BlockOrder, BudgetSeen, BudgetGone, QueueCalendarSeen, QueueCalendarGone,
                 QueueSeen, QueueGone, WindowSeen, WindowGone, DefragmentationSeen,
                 DefragmentationGone, WatchesSynced, ApiResult>;

}  // namespace tahoma::controller
