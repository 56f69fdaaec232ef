// Joins a node's UltraServer election to its instance and to the other nodes.
//
//   NodeElection election({.peers = {1, 2, 3}, .boot = boot}, live, clock);
//   election.Connect([&](int node, wire::Request message) { return link.Offer(node, message); });
//   election.Start();                         // a thread that ticks
//   live.Listen([&] { election.OnInstanceChanged(); });
//   election.Elect();                         // on demand, as the driver's control ioctl
//
// The instance shows the result (Instance::election). A cable is the Z links of all 16 chips in one
// direction: it is up when each of them carries something at this end and no chip has a DMA fault,
// because neighbours are read by DMA over the links of every chip
// (docs/reference/trainium2.md#ultraserver-election); other faults of a chip do not keep it from
// that. Cores are in use while a claim is held; the first that asks for a number of nodes chooses
// the mode (Election::SetMode). The election's virtual time follows the monotonic clock.
//
// The left cable joins places 0 and 1, and 2 and 3 of the ring; the serial numbers are made of the
// UltraServer's id and the place, ascending. So the elected ids of a whole server are the places.
//
// Scope: wiring. The rules are node/election.h.
//
// Thread safety: every member may be called from any thread, Connect and Start once.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/wire/call.h"
#include "sim-node/node/election.h"
#include "sim-node/serve/live_instance.h"

namespace tahoma::sim {

// Of device 0 of the node at that place.
std::uint64_t SerialNumber(std::string_view ultra_server_id, int place);
// Of the place's Z links, those that belong to the cable on that side.
Port PortOfCable(int place, CableSide side);
int PlaceBehind(int place, CableSide side);
// As far as this node's end goes.
bool IsCableUp(const Instance& instance, CableSide side);

class NodeElection {
 public:
  struct Options {
    std::set<int> peers{};   // places of the other nodes; a cable to any other place is down
    std::uint64_t boot = 1;  // greater than at the node's last start
    VirtualDuration timeout = kElectionTimeout;
  };
  // False when the message cannot be taken now; it must not wait.
  using Offer = std::function<bool(int place, wire::Request message)>;

  // The instance must have a place in an UltraServer. `live` and `clock` must outlive the object.
  NodeElection(Options options, LiveInstance& live, const Clock& clock);
  ~NodeElection() { Stop(); }
  NodeElection(const NodeElection&) = delete;
  NodeElection& operator=(const NodeElection&) = delete;

  void Connect(Offer offer);
  // The first election begins; a thread ticks until Stop.
  void Start();
  // No message is offered afterwards.
  void Stop();

  // Gets the result now and whenever it differs, with this object's lock held: it must not call
  // this object, nor wait. Null ends it.
  using Follower = std::function<void(const ElectionResult&)>;
  void Follow(Follower follower);

  // As Election's.
  absl::Status Elect();
  absl::Status SetMode(UltraServerMode mode);

  void OnInstanceChanged();
  void OnPeerConnected(int place);
  // Messages that cannot be read are dropped.
  void OnPeerMessage(int place, const wire::Request& message);
  void OnPeerLost(int place);
  void Tick();

 private:
  VirtualTime Now() const;
  std::optional<CableSide> SideOf(int place) const;
  // Waits until the next tick is due; false when stopped.
  bool Pause();
  void ReadInstance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  LiveInstance& live_;
  const Clock& clock_;
  const MonotonicTime begin_;
  const int place_;

  Mutex mutex_;  // locked before the instance's
  CondVar stopping_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Election election_ ABSL_GUARDED_BY(mutex_);
  ElectionResult shown_ ABSL_GUARDED_BY(mutex_);
  Offer offer_ ABSL_GUARDED_BY(mutex_);
  Follower follower_ ABSL_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace tahoma::sim
