// Flows that share links in virtual time, until every flow has arrived.
//
//   EventQueue queue;
//   Fabric fabric(links);
//   Transfer transfer(queue, fabric);
//   transfer.Start({{.from = a, .to = b, .bytes = 1 << 20}}, done);
//   queue.RunUntilIdle();             // done(OkStatus(), arrivals) ran at the last arrival
//
// Rates are max-min fair. Rates are computed again when a flow ends or a link changes. A flow whose
// route loses a link sends the rest over another route. The first byte needs a hop latency per link
// (between topology domains EFA's latency); the rest follows at the flow's rate (cut-through). The
// NeuronLinks of a domain are an island, and the EFA network is an island: no flow uses two
// islands, so a change on an island leaves the rates of other islands as computed.
//
// Thread safety: none; belongs to the thread of its EventQueue.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>
#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "lib/torus/box.h"
#include "sim-node/emulator/engine/event_queue.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/emulator/link/max_min.h"

namespace tahoma::sim {

// The group of EFA flows that a single flow stands for. All flows of the group begin and end
// together: a flow from each domain of a kind to each domain of another kind at the same distance,
// between the same two chips of the domains.
struct AlikeFlows {
  std::uint64_t at_sender = 1;    // flows of the group on the sender's NIC, this flow included
  std::uint64_t at_receiver = 1;  // the receiver's
  struct Uplink {
    LinkId link = 0;
    std::uint64_t flows = 1;
  };
  // one uplink per kind, among the uplinks that the flows cross and that can limit the flows
  std::vector<Uplink> uplinks;
  int layers = 0;  // layers of the network that the flows climb
};

struct Flow {
  torus::ChipIndex from;
  torus::ChipIndex to;
  std::uint64_t bytes = 0;
  torus::ChipMask through = kAllChips;  // chips of the domain that a detour may use
  // The group that the flow stands for; nullptr = the flow alone. No link of the network may fail
  // during the transfer. Must outlive the transfer.
  const AlikeFlows* alike = nullptr;
  // The flow also stands for as many flows between other places of its domains; such flows share
  // uplinks but no NIC.
  std::uint32_t places = 1;
};

class Transfer {
 public:
  // Called when a batch has ended, with OK, or kFailedPrecondition naming the chips when a flow has
  // no route left. `arrivals[i]` is when flow i arrived (meaningful when OK).
  using Done =
      std::function<void(const absl::Status& status, const std::vector<VirtualTime>& arrivals)>;

  // Both must outlive the object.
  Transfer(EventQueue& queue, Fabric& fabric);

  // Starts a batch at queue.now(), beside running batches. `done` runs once: at the last arrival,
  // or when a flow has no route, which ends the batch's other flows. `sent`, if given, runs once
  // when the last flow of the batch has left the links.
  void Start(std::vector<Flow> flows, Done done, std::function<void()> sent = {});

  // Applies a change of a link now, also to running flows. kInvalidArgument as SetPermille.
  absl::Status SetPermille(LinkId link, std::uint16_t permille);

  // Flows that have arrived.
  std::uint64_t arrived() const { return arrived_; }

 private:
  struct Batch {
    Done done;
    std::function<void()> sent;
    std::vector<VirtualTime> arrivals;
    std::size_t running = 0;  // flows that still send
  };
  struct Running {
    Flow flow;
    absl::InlinedVector<LinkId, 8> route;  // ids of the island
    // flows on each link, among the flows that this flow stands for
    std::vector<std::uint64_t> counts;
    Wide left = 0;  // 10^-12 bytes
    std::uint64_t rate = 0;
    VirtualTime end{};  // at this rate
    std::uint64_t batch = 0;
    std::size_t index = 0;
  };
  // The flows that share links: the flows of a domain, or (the last island) of the EFA network.
  struct Island {
    std::vector<Running> running;
    // No two flows have a link in common, so no flow waits for another. A group ends with the flow
    // that stands for the group.
    bool disjoint = true;
    // by link: the number of the last look for common links that met the link
    std::vector<std::uint64_t> seen_in;
    std::uint64_t looks = 0;
    VirtualTime last_advance{};
    std::optional<EventQueue::Id> completion;
    // Routes found on the present links.
    absl::flat_hash_map<std::tuple<int, int, torus::ChipMask>, std::vector<LinkId>> known_routes;
  };
  using Failed = std::map<std::uint64_t, absl::Status>;  // by batch

  std::size_t IslandOf(const Flow& flow) const;
  absl::StatusOr<std::vector<LinkId>> RouteOf(const Flow& flow) const;
  absl::Status SetRoute(std::size_t island, Running& running);
  absl::Status SetRouteOfAll(Running& running) const;
  VirtualDuration Latency(const Running& running) const;
  std::uint64_t capacity(std::size_t island, LinkId link) const;
  void Go(std::set<std::size_t> islands);
  void RouteAgain(std::size_t island, Failed& failed);
  std::set<std::size_t> End(const Failed& failed);
  void Solve(std::size_t island);
  bool SolveDisjoint(std::size_t island);
  void SolveMaxMin(std::size_t island, bool each_for_itself);
  void Wait(std::size_t island);
  void AdvanceToNow(Island& island) const;
  void OnCompletion(std::size_t island);
  void FinishLater(std::uint64_t batch);
  void Finish(std::uint64_t batch, const absl::Status& status);

  EventQueue& queue_;
  Fabric& fabric_;
  std::map<std::uint64_t, Batch> batches_;
  std::uint64_t next_batch_ = 0;
  std::uint64_t arrived_ = 0;
  std::vector<Island> islands_;
};

}  // namespace tahoma::sim
