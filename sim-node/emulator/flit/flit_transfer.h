// Flows over the flit level, in virtual time: Transfer (emulator/link/transfer.h) with every flit.
//
//   EventQueue queue;
//   FlitTransfer transfer(queue, links, *FlitConfig::Of(links));
//   transfer.Start({{.from = a, .to = b, .bytes = 1 << 20}}, done);
//   queue.RunUntilIdle();             // done(OkStatus(), arrivals) ran at the last arrival
//
// A flow that shares no link arrives `config().FillCycles(its hops)` after the time that Transfer
// gives, up to bubbles of a few cycles where its packets change channels. As in Transfer, each link
// costs LinkTiming::hop, which stands for DMA and software: it is added to the arrival, while flits
// pass the links in the cycles of FlitConfig. Bytes fill whole flits; a flow without bytes takes
// one. Flows that leave a chip by the same link alternate packet by packet.
//
// Scope: at most some MiB at a time (a MiB over one link is 16,384 cycles and as many flits per
// hop), whole links and dimension order. Faults and detours are Transfer's.
//
// Thread safety: none; belongs to the thread of its EventQueue.

#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <vector>

#include "sim-node/emulator/engine/event_queue.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/flit/flit_config.h"
#include "sim-node/emulator/flit/network.h"
#include "sim-node/emulator/link/torus_links.h"
#include "sim-node/emulator/link/transfer.h"

namespace tahoma::sim {

class FlitTransfer {
 public:
  using Done = Transfer::Done;

  // Both must outlive the object. `config` must fit the rates of `links` and break ties by parity,
  // as the routes of Transfer.
  FlitTransfer(EventQueue& queue, const TorusLinks& links, const FlitConfig& config);

  // Starts a batch at queue.now(), beside those that are running; its flits move from the next
  // whole cycle on. `done` runs once: with OK at the last arrival, with kFailedPrecondition at once
  // if a link is not healthy or a route leaves the flow's `through`, or with kAborted when the
  // network deadlocks (never with a dateline), then and for every later batch.
  void Start(std::vector<Flow> flows, Done done);

  const FlitNetwork& network() const { return network_; }

 private:
  struct Batch {
    Done done;
    std::vector<VirtualTime> arrivals;
    std::size_t running = 0;  // flows in flight
  };
  struct Running {
    std::uint64_t batch = 0;
    std::size_t index = 0;
    std::uint64_t flits = 0;  // that have not arrived
    VirtualDuration hops{};   // added to the arrival
  };
  absl::Status CheckRoute(const Flow& flow) const;
  VirtualTime TimeOf(std::uint64_t cycle) const;
  void Tick();
  void Arrive(const FlitNetwork::Arrival& packet);
  void FinishAt(VirtualTime time, std::uint64_t batch, absl::Status status);

  EventQueue& queue_;
  const TorusLinks& links_;
  FlitNetwork network_;
  std::uint64_t rate_ = 0;  // of the fastest link: one flit a cycle
  bool ticking_ = false;
  VirtualTime awake_since_{};  // the begin of cycle awake_cycle_
  std::uint64_t awake_cycle_ = 0;
  std::uint64_t next_batch_ = 0;
  std::uint64_t next_flow_ = 0;
  std::map<std::uint64_t, Batch> batches_;
  std::map<std::uint64_t, Running> running_;  // by tag
};

}  // namespace tahoma::sim
