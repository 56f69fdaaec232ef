// Watches the objects that the core needs, and turns them into commands.
//
//   Ingest ingest(transport, {"tahoma"}, [&](Command command) { queue.Push(std::move(command)); },
//                 sleeper, Rng(seed), log);
//   ingest.Start();
//
// One thread per kind: nodes, slices, device classes, claims, claim templates, persistent volumes,
// their claims and classes, gangs, PodGroups, PriorityClasses, NeuronUltraServerWorkloads, Capacity
// Blocks, the kinds that ask about blocks, budgets, Defragmentations, MaintenanceWindows,
// QueueCalendars, Queues, pods. When each kind has given its first list, WatchesSynced is pushed.
// Unreadable objects are left out; a line names the object and the reason, once. Of pods that name
// none of the given schedulers (pod.spec.schedulerName) only the traits and the node are followed
// (core/facts/other_pod.h).
//
// When the API server turns out to have lost its history (restored from a backup), all commands
// pushed before are void: `history_lost` is called, and the receiver begins anew with another
// Ingest.
//
// Thread safety: Start and Stop from one thread; the sink is called from many.

#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/core/command.h"
#include "controller/ingest/fleet_join.h"
#include "controller/ingest/other_pods.h"
#include "lib/base/json_fwd.h"
#include "lib/base/json_part.h"
#include "lib/base/mutex.h"
#include "lib/base/rng.h"
#include "lib/kube/objects/slice.h"
#include "lib/kube/reflector.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// Returns whether the pod names one of these schedulers (spec.schedulerName).
bool IsFor(const std::vector<std::string>& scheduler_names, const Json& pod);

class Ingest {
 public:
  using Sink = std::function<void(Command)>;
  using Log = std::function<void(const std::string& line)>;

  // Called by a watch before it gives the restored state (watch_cache.h). May be empty.
  using HistoryLost = std::function<void(const std::string& why)>;

  // `transport` and `sleeper` must outlive the Ingest.
  Ingest(kube::Transport& transport, std::vector<std::string> scheduler_names, Sink sink,
         kube::Sleeper& sleeper, Rng rng, Log log, HistoryLost history_lost = nullptr);
  ~Ingest() { Stop(); }
  Ingest(const Ingest&) = delete;
  Ingest& operator=(const Ingest&) = delete;

  void Start();
  // Prepares stepping instead of Start, for the simulator: there are no threads, and the caller
  // steps each watch.
  std::size_t StartStepping();           // how many watches there are
  absl::Status Step(std::size_t watch);  // as kube::Reflector::Step
  // Ends the threads. The owner must end the transport's streams and interrupt the sleeper first.
  void Stop();

 private:
  using Seen = std::function<absl::Status(const Json& object)>;
  using Gone = std::function<void(const kube::ObjectKey& key, const std::string& uid)>;

  using Wanted = std::function<bool(const Json& object)>;

  // Whether every cluster defines the kind: a chart may be upgraded later than its programs.
  // Of a kind that the controller may not read there is nothing, either, if that does no harm.
  enum class Presence : std::uint8_t { kRequired, kOptional, kMayBeForbidden };

  // Which objects are followed.
  struct Source {
    kube::Resource resource;
    std::string field_selector = {};
    JsonPart part = {};  // that is read of each object
    Presence presence = Presence::kRequired;
  };

  void Follow(Source source, Seen seen, Gone gone, Wanted wanted = nullptr);
  // Pushes the result of `join`, in the order of the joins. Nodes and slices come on two threads,
  // and an older fact of a node must never overtake a newer fact.
  template <typename Join>
  void PushJoined(Join&& join);
  void FollowNodes();
  void FollowSlices(Source source, kube::SliceDetails details);
  void FollowClaims();
  void FollowVolumeClaims();
  void FollowVolumes();
  void FollowPods();
  void FollowOtherPods();
  void FollowGangs();
  void FollowPodGroups();
  void FollowPriorityClasses();
  void FollowWorkloads();
  void FollowBlocks();
  void FollowRequests(RequestKind kind);
  void FollowBudgets();
  void FollowQueueCalendars();
  void FollowQueues();
  void FollowWindows();
  void FollowDefragmentations();
  void FollowClasses();

  kube::Transport& transport_;
  const std::vector<std::string> scheduler_names_;
  const Sink sink_;
  kube::Sleeper& sleeper_;
  Rng rng_;
  const Log log_;
  const HistoryLost history_lost_;
  Mutex fleet_mutex_;
  FleetJoin fleet_ ABSL_GUARDED_BY(fleet_mutex_);
  OtherPods other_pods_;  // of the watch of other pods alone
  std::atomic<int> unlisted_ = 0;
  std::vector<std::unique_ptr<kube::Reflector>> watches_;
  // By watch: whether a failure says that the kind is not there.
  std::vector<std::function<bool(const absl::Status& failure)>> lacks_;
};

}  // namespace tahoma::controller
