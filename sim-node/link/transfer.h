// Flows that share links until all have arrived, in virtual time.
//
//   EventQueue queue;
//   Transfer transfer(queue, links);
//   transfer.Start({{.from = a, .to = b, .bytes = 1 << 20}}, done);
//   queue.RunUntilIdle();             // done(OkStatus(), arrivals) ran at the last arrival
//
// Rates are max-min fair and are worked out again when a flow ends or a link changes. A flow whose
// route loses a link goes on over another route with what it has not sent yet. The first byte needs
// one hop latency per link, the rest follows at the flow's rate (cut-through).
//
// Thread safety: none; belongs to the thread of its EventQueue.

#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lib/torus/box.h"
#include "sim-node/engine/event_queue.h"
#include "sim-node/engine/virtual_time.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

struct Flow {
  torus::ChipIndex from;
  torus::ChipIndex to;
  std::uint64_t bytes = 0;
  torus::ChipMask through = kAllChips;  // chips that a detour may use
};

class Transfer {
 public:
  // How a batch ended: OK, or kFailedPrecondition naming the chips when a flow has no route left.
  // `arrivals[i]` is when flow i arrived (meaningful when OK).
  using Done =
      std::function<void(const absl::Status& status, const std::vector<VirtualTime>& arrivals)>;

  // Both must outlive the object.
  Transfer(EventQueue& queue, TorusLinks& links) : queue_(queue), links_(links) {}

  // Starts a batch at queue.now(), beside those that are running. `done` runs once, at the last
  // arrival or at the instant a flow has no way; the batch's other flows end with it.
  // `sent`, if given, runs once when the last flow of the batch has left the links.
  void Start(std::vector<Flow> flows, Done done, std::function<void()> sent = {});

  // Applies a change of a link now; running flows see it. kInvalidArgument as SetPermille.
  absl::Status SetPermille(LinkId link, std::uint16_t permille);

 private:
  struct Batch {
    Done done;
    std::function<void()> sent;
    std::vector<VirtualTime> arrivals;
    std::size_t running = 0;  // flows that still send
  };
  struct Running {
    Flow flow;
    std::vector<LinkId> route;
    Wide left = 0;  // 10^-12 bytes
    std::uint64_t rate = 0;
    std::uint64_t batch = 0;
    std::size_t index = 0;
  };
  void RouteAndWait();
  void RouteAgain();
  void AdvanceToNow();
  void OnCompletion();
  void FinishLater(std::uint64_t batch);
  void Finish(std::uint64_t batch, const absl::Status& status);

  EventQueue& queue_;
  TorusLinks& links_;
  std::map<std::uint64_t, Batch> batches_;
  std::uint64_t next_batch_ = 0;
  std::vector<Running> running_;
  VirtualTime last_advance_{};
  std::optional<EventQueue::Id> completion_;
};

}  // namespace tahoma::sim
