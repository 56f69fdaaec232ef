// Runs the core: feeds it from watches, keeps its journal, and carries out its writes.
//
//   CoreLoop loop(transport, journal, clock, {.log = log});
//   TAHOMA_RETURN_IF_ERROR(loop.Start());        // reads the journal
//   …
//   transport.Shutdown();                        // ends the watches' streams
//   loop.Stop();
//
// When the API was restored from a backup, the loop fails with kAborted: the loop's state belongs
// to a history that is gone. A new loop on the same journal reads everything anew and publishes the
// journal's decisions again, as after a restart (cluster_loop.h).
//
// Threads: the core's thread drains commands, plans, journals, applies and publishes
// (docs/design/0013-decisions.md#one-thread-decides). The threads of Ingest and Publisher only pass
// values to and from the core; TopologyPublisher's thread reads snapshots.
//
// Thread safety: Start and Stop from one thread; all other functions from any.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "controller/core/core.h"
#include "controller/core/decision_log.h"
#include "controller/core/journal/journal.h"
#include "controller/core/snapshot.h"
#include "controller/ingest/ingest.h"
#include "controller/plan/planner.h"
#include "controller/publish/block_projections.h"
#include "controller/publish/publisher.h"
#include "controller/publish/topology_publisher.h"
#include "lib/base/bounded_queue.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

struct CoreLoopOptions {
  CoreOptions core = {};
  PublisherOptions publisher = {.threads = 16};
  std::vector<std::string> scheduler_names = {"tahoma"};  // pods of these schedulers are placed
  std::string own_namespace = "kube-system";              // NeuronUltraServers are kept there
  // The number of the leadership when the loop begins (core/core.h); null: no other process can
  // lead.
  std::function<std::int64_t()> term = nullptr;
  // Waits while the journal cannot be written for now (kUnavailable), because the store may come
  // back by itself. Otherwise health() fails at once, and another controller can lead.
  bool wait_for_journal = false;
  std::function<void(const std::string& line)> log;
  // Both on the core's thread, and quick. The first is called with each decision, when the decision
  // is durable; the second with the time of a step that has asked the planner about gangs.
  std::function<void(const LoggedDecision& decision)> decided = nullptr;
  std::function<void(std::uint64_t gangs, std::chrono::nanoseconds took)> planned = nullptr;
};

class CoreLoop {
 public:
  // All must outlive the loop.
  CoreLoop(kube::Transport& transport, Journal& journal, const Clock& clock,
           CoreLoopOptions options);
  ~CoreLoop() { Stop(); }
  CoreLoop(const CoreLoop&) = delete;
  CoreLoop& operator=(const CoreLoop&) = delete;

  // kDataLoss when the journal is damaged.
  absl::Status Start();
  void Stop();

  // Carries out an order of Capacity Blocks, and waits until the order is durable and published.
  // Refused with EC2's codes. kUnavailable when no answer came in time, or the journal cannot be
  // written now: the order may still be carried out, and a repetition with the same token is safe.
  absl::StatusOr<std::shared_ptr<const Block>> Order(
      std::variant<PurchaseOrder, ExtensionOrder> order);
  // No more orders are carried out: callers who wait in Order are told now, and later callers at
  // once.
  void EndOrders();

  std::shared_ptr<const Snapshot> snapshot() const;
  // Not OK when the core decides no more: kAborted when the API lost its history; otherwise the
  // journal has failed and the program must end.
  absl::Status health() const;
  // Another part has found out that the API lost its history: fails, before any further step.
  void LoseHistory(const std::string& why);
  // For probes: why the core's or a publisher's thread is taken to hang; empty when it is not.
  std::string CoreTrouble() const;
  std::string PublisherTrouble() const;
  // Waits until health() changes or `timeout` has passed.
  absl::Status WaitForFailure(std::chrono::milliseconds timeout);

 private:
  void Run();
  void Beat();
  void SetJournalWaits(bool waits);
  absl::Status WriteJournal(const JournalBatch& batch);
  void Give(std::vector<OrderAnswer> answers);
  void Report(const Snapshot& before, std::chrono::nanoseconds took);

  kube::Transport& transport_;
  Journal& journal_;
  const Clock& clock_;
  const CoreLoopOptions options_;
  Planner planner_;
  Core core_;
  BoundedQueue<Command> queue_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<std::int64_t> beat_ = 0;  // monotonic nanosecond at which the core last moved
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
  // By the tickets of orders that a caller waits for; empty until the answer.
  absl::flat_hash_map<std::uint64_t, std::optional<OrderAnswer>> orders_ ABSL_GUARDED_BY(mutex_);
  bool no_orders_ ABSL_GUARDED_BY(mutex_) = false;
  bool journal_waits_ ABSL_GUARDED_BY(mutex_) = false;  // for room, or for its disk
  std::uint64_t last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;

  std::unique_ptr<Publisher> publisher_;
  kube::InterruptibleSleeper sleeper_;
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<TopologyPublisher> topology_;
  std::unique_ptr<BlockProjections> projections_;
  std::thread thread_;
};

}  // namespace tahoma::controller
