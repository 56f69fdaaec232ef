// One moment of the controller's state, immutable, as readers see it.
//
//   std::shared_ptr<const Snapshot> now = core.snapshot();
//   const auto* gang = now->gangs.Find(GangRef{{"default", "train"}, false});
//
// Thread safety: immutable; any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/blocks/usage_meter.h"
#include "controller/core/commit/gang_usage.h"
#include "controller/core/decision_log.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/gang_status.h"
#include "controller/core/journal/gang_decision.h"
#include "controller/core/queue/end_terms.h"
#include "controller/core/queue/movable_run.h"
#include "controller/core/queue/service_place.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/model/persistent.h"
#include "controller/reserve/block_time.h"
#include "controller/reserve/block_view.h"
#include "controller/reserve/offering.h"
#include "controller/reserve/quota.h"
#include "controller/reserve/time_profile.h"
#include "controller/share/queue_view.h"
#include "controller/timeline/promise.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// A gang, or a pod that is a gang of one.
struct GangView {
  GangRef ref;
  GangPhase phase = GangPhase::kPending;
  GangReason reason = GangReason::kNone;
  std::string message;  // the reason as a sentence; for a gang that waits, everything that is known
  std::shared_ptr<const GangDecision> decision;  // nullptr while it waits
  int bound_pods = 0;
  std::string predicted_all_reduce;           // as in GangStatus
  std::optional<WallTime> waits_since;        // waits for a place alone: the object's creation
  std::string queue;                          // the queue of the gang's place or wait
  std::optional<ServicePlace> service;        // of a gang with all pods and without a place
  std::shared_ptr<const GangSpec> spec;       // likewise; else nullptr
  std::optional<RunTerms> run;                // of a gang with a place, in no Capacity Block
  std::shared_ptr<const MovableRun> movable;  // of a bound gang; nullptr else
  bool neuron_workload = false;               // carries out a NeuronUltraServerWorkload
};

struct Counters {
  std::uint64_t gangs_prepared = 0;
  std::uint64_t gangs_bound = 0;
  std::uint64_t gangs_undone = 0;
  std::uint64_t pods_bound = 0;
  std::uint64_t journal_records = 0;
  std::uint64_t api_writes = 0;
  std::uint64_t plans = 0;
};

struct Snapshot {
  bool synced = false;
  ClusterView cluster;
  PersistentMap<GangRef, std::shared_ptr<const GangView>> gangs;
  std::size_t runs_in_flight = 0;
  std::size_t gangs_waiting = 0;
  Counters counters;
  DecisionLog decisions;
  // Each Capacity Block, and each CapacityBlock that was refused.
  PersistentMap<BlockKey, std::shared_ptr<const BlockView>> blocks;
  PersistentMap<std::string, std::shared_ptr<const Block>> block_list;  // by reservation
  UsageMeter::Live usage;      // of blocks that have begun, by reservation
  GangUsage::Sums gang_usage;  // by namespace and queue
  // Each queue that has an object or a gang.
  PersistentMap<std::string, std::shared_ptr<const QueueView>> queues;
  // Hardware that waiting gangs are promised, in the order of service.
  std::vector<std::shared_ptr<const Promise>> promises;
  // The latest time that the book of blocks has seen: it does not go back with a clock.
  WallTime block_now{};
  TimeProfile profile{0};
  PriceList prices;
  OfferingKey offering_key{};
  std::shared_ptr<const QuotaTable> quotas;  // nullptr before the first step
  BlockTime block_time;                      // the times of blocks and profile are in it
};

}  // namespace tahoma::controller
