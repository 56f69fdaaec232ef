// Sends the core's API writes on a bounded pool of threads.
//
//   Publisher publisher(transport, clock, options,
//                       [&](ApiResult result) { queue.Push(std::move(result)); });
//   publisher.Publish(std::move(out.writes));
//
// Every write of the protocol is answered by one result. A thread of their own sends the events, at
// most `events_per_second` of them, equal ones counted on the same object; events beyond that are
// dropped and counted.
//
// Thread safety: Publish and dropped_events from any thread; the sink is called from the pool's.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "controller/core/writes/api_write.h"
#include "controller/publish/render.h"
#include "lib/base/bounded_queue.h"
#include "lib/base/clock.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

struct PublisherOptions {
  int threads = 8;
  // How many writes a thread sends together (kube::Transport::SendAll). With one, the writes of a
  // gang are spread over the threads.
  std::size_t together = 1;
  // Never full in practice: Core bounds the runs in flight. A full queue would make the core wait.
  std::size_t queue = 1U << 22U;
  std::size_t event_queue = 1024;
  int events_per_second = 50;
  int event_burst = 200;
  // How allocations are sent first. A server in this process has the claim as JSON anyway: with
  // patches it binds twice as many pods as with updates, which a server in Go takes faster.
  AllocateBy allocate_by = AllocateBy::kUpdate;
  // Called right before writes are sent. When it returns false they are not sent and count as
  // kUnavailable: another controller may lead. Empty: always true.
  std::function<bool()> may_send = nullptr;
};

class Publisher {
 public:
  using Sink = std::function<void(ApiResult)>;

  // `transport` and `clock` must outlive it.
  Publisher(kube::Transport& transport, const Clock& clock, const PublisherOptions& options,
            Sink sink);
  // Finishes the requests that are being sent and gives up the queued ones.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Queues the writes; waits when the queue is full.
  void Publish(std::vector<ApiWrite> writes);
  std::uint64_t dropped_events() const { return dropped_; }
  // Returns how long the oldest request of the commit sequence has been waiting for its answer.
  std::chrono::nanoseconds LongestWait() const;

 private:
  bool MaySend() const { return !options_.may_send || options_.may_send(); }
  void Work(std::atomic<std::int64_t>& busy_since);
  // Makes the requests, sends them together and answers each write, whatever one of them does.
  void SendTogether(const std::vector<ApiWrite>& writes);
  // Sends a write whose update the server has forbidden: a chart of an older release gives no more
  // than the right to patch.
  absl::StatusOr<kube::Response> SendAsPatch(const ApiWrite& write);
  void WorkOnEvents();
  bool SpendToken();
  bool TrySendEvent(const EventNote& event);
  void SendEvent(const EventNote& event);

  kube::Transport& transport_;
  const Clock& clock_;
  const PublisherOptions options_;
  const Sink sink_;
  BoundedQueue<ApiWrite> queue_;
  BoundedQueue<ApiWrite> events_;
  std::atomic<bool> stopping_ = false;
  std::atomic<AllocateBy> allocate_by_;  // kPatch as soon as an update was forbidden
  std::atomic<std::uint64_t> dropped_ = 0;
  // Used by the event thread only.
  double tokens_ = 0;
  MonotonicTime refilled_{};
  absl::flat_hash_map<std::string, int> told_;  // by event name: its count
  // For each thread the monotonic nanosecond at which it sent the request that it waits for; 0 when
  // it waits for none.
  std::vector<std::atomic<std::int64_t>> busy_since_;
  std::vector<std::thread> threads_;
};

}  // namespace tahoma::controller
