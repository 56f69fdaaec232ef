// Flows that share links until all have arrived, in virtual time.
//
//   EventQueue queue;
//   Fabric fabric(links);
//   Transfer transfer(queue, fabric);
//   transfer.Start({{.from = a, .to = b, .bytes = 1 << 20}}, done);
//   queue.RunUntilIdle();             // done(OkStatus(), arrivals) ran at the last arrival
//
// Rates are max-min fair and are worked out again when a flow ends or a link changes. A flow whose
// route loses a link goes on over another route with what it has not sent yet. The first byte needs
// one hop latency per link (between topology domains EFA's latency), the rest follows at the flow's
// rate (cut-through). The NeuronLinks of a domain and the EFA network are islands: no flow is on
// two of them, so a change on one never makes the rates of another be computed again.
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

// Flows over EFA that begin and end when one does, which stands for them: those from each domain of
// a kind to each of another that is as far from it, all between the same two chips of their
// domains.
struct AlikeFlows {
  std::uint64_t at_sender = 1;    // that share the sender's NIC, itself included
  std::uint64_t at_receiver = 1;  // the receiver's
  struct Uplink {
    LinkId link = 0;
    std::uint64_t flows = 1;
  };
  std::vector<Uplink> uplinks;  // of those that they cross and that can limit them, one of a kind
  int layers = 0;               // that they climb
};

struct Flow {
  torus::ChipIndex from;
  torus::ChipIndex to;
  std::uint64_t bytes = 0;
  torus::ChipMask through = kAllChips;  // chips of the domain that a detour may use
  // The flows for which it stands; nullptr = itself alone. No link of the network may fail
  // meanwhile. Must outlive the transfer.
  const AlikeFlows* alike = nullptr;
  // It stands for as many in other places of its domains, too: they share no NIC, but uplinks.
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

  // Starts a batch at queue.now(), beside those that are running. `done` runs once, at the last
  // arrival or at the instant a flow has no route; the batch's other flows end with it. `sent`, if
  // given, runs once when the last flow of the batch has left the links.
  void Start(std::vector<Flow> flows, Done done, std::function<void()> sent = {});

  // Applies a change of a link now; running flows see it. kInvalidArgument as SetPermille.
  absl::Status SetPermille(LinkId link, std::uint16_t permille);

  // Flows that have arrived so far.
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
    std::vector<std::uint64_t> counts;     // flows over each, of those for which it stands
    Wide left = 0;                         // 10^-12 bytes
    std::uint64_t rate = 0;
    VirtualTime end{};  // at this rate
    std::uint64_t batch = 0;
    std::size_t index = 0;
  };
  // The flows that share links: those of a domain, or (the last) those of the EFA network.
  struct Island {
    std::vector<Running> running;
    // No two of them have a link in common, so that none waits for another. What a flow stands for
    // ends with it.
    bool disjoint = true;
    std::vector<std::uint64_t> seen_in;  // by link: the last look for common links that met it
    std::uint64_t looks = 0;
    VirtualTime last_advance{};
    std::optional<EventQueue::Id> completion;
    // Routes that were found on the links as they are.
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
