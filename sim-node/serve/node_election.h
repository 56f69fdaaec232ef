// Connects a node's UltraServer election to its instance and to the other nodes.
//
// The instance shows the result (Instance::election). A cable is the Z links of all 16 chips in one
// direction. It is up when none of these links is down or flapping at this end and no chip has a
// DMA fault, because neighbours are read by DMA over the links of every chip
// (docs/reference/trainium2.md#ultraserver-election); other faults of a chip do not matter. Cores
// are in use while a claim is held; the first claim that asks for a number of nodes chooses the
// mode (Election::SetMode). The election's virtual time follows the monotonic clock.
//
// The left cable joins places 0 and 1, and 2 and 3 of the ring. Serial numbers are made of the
// UltraServer's id and the place and ascend with the place, so in a whole UltraServer the elected
// node ids are the places.
//
// Scope: wiring. node/election.h has the rules.
//
// Thread safety: every member may be called from any thread; Connect and Start once each.

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

// Returns the serial number of device 0 of the node at that place.
std::uint64_t SerialNumber(std::string_view ultra_server_id, int place);
// Returns the port whose links, on all chips of the node, make up the cable on that side.
Port PortOfCable(int place, CableSide side);
// Returns the place at the other end of that cable.
int PlaceBehind(int place, CableSide side);
// Whether the cable is up at this node's end.
bool IsCableUp(const Instance& instance, CableSide side);

class NodeElection {
 public:
  struct Options {
    std::set<int> peers{};   // places of the other nodes; a cable to any other place is down
    std::uint64_t boot = 1;  // greater than at the node's last start
    VirtualDuration timeout = kElectionTimeout;
  };
  // Sends a message without blocking. False when it cannot be taken now.
  using Offer = std::function<bool(int place, wire::Request message)>;

  // The instance must have a place in an UltraServer. `live` and `clock` must outlive the object.
  NodeElection(Options options, LiveInstance& live, const Clock& clock);
  ~NodeElection() { Stop(); }
  NodeElection(const NodeElection&) = delete;
  NodeElection& operator=(const NodeElection&) = delete;

  void Connect(Offer offer);
  // Begins the first election, and a thread that calls Tick until Stop.
  void Start();
  // No message is offered afterwards.
  void Stop();

  // Calls `follower` with the result now and after each change, with this object's lock held: it
  // must neither call this object nor block. nullptr ends this.
  using Follower = std::function<void(const ElectionResult&)>;
  void Follow(Follower follower);

  // Do and fail as Election's functions of these names.
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
