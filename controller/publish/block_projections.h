// Keeps a CapacityReservation for each bought block, and an UltraServer object and AWS's
// NeuronUltraServer for each UltraServer of the fleet, as in the newest snapshot.
//
//   BlockProjections projections(transport, clock, sleeper, Rng(1),
//                                {.snapshot = [&] { return now(); }});
//   projections.Start();
//
// A thread reads snapshots: the core does nothing for the projections. A look compares the changes
// since the last look (for blocks a pointer each), and writes at most kProjectionsTogether objects.
// Looks are kProjectionPause apart: an object that changes often is written with its newest state
// only, and 15,625 new UltraServers take minutes. Where the kinds are not defined nothing is
// written, and nothing is kept of NeuronUltraServers, which few clusters define.
//
// Thread safety: Start and Stop from one thread. Without Start, Step and Look may be called from
// one thread instead, for tests.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controller/core/snapshot.h"
#include "controller/model/fleet_summary_object.h"
#include "controller/publish/neuron_ultraservers.h"
#include "controller/publish/projected.h"
#include "controller/publish/projection.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/kube/reflector.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

inline constexpr std::chrono::milliseconds kProjectionPause{500};
inline constexpr std::size_t kProjectionsTogether = 25;

struct BlockProjectionsOptions {
  std::function<std::shared_ptr<const Snapshot>()> snapshot;
  std::string own_namespace = kSummaryNamespace;  // of the NeuronUltraServers
  // As PublisherOptions::may_send.
  std::function<bool()> may_send = nullptr;
  std::function<void(const std::string& line)> log = [](const std::string&) {};
};

class BlockProjections {
 public:
  // Transport, clock and sleeper must outlive the projections. To end the threads, interrupt the
  // sleeper and end the transport's streams.
  BlockProjections(kube::Transport& transport, const Clock& clock, kube::Sleeper& sleeper, Rng rng,
                   BlockProjectionsOptions options);
  ~BlockProjections() { Stop(); }
  BlockProjections(const BlockProjections&) = delete;
  BlockProjections& operator=(const BlockProjections&) = delete;

  void Start();
  void Stop();

  // Lists or watches the objects once.
  void Step();
  // Compares the newest snapshot with the last look, and writes. Returns how many writes are due.
  std::size_t Look();

 private:
  using HostUse = std::pair<WallTime, std::string>;  // a block's start and its reservation
  struct Kind {
    kube::Resource resource;
    std::string name;
    std::string ns = {};    // the only namespace that is looked at; empty: all
    bool has_spec = false;  // then the content is spec and status, and status is a subresource
    Projection objects = {};
    std::unique_ptr<kube::Reflector> reflector = nullptr;
    std::string trouble = {};  // as logged
    bool missing = false;      // objects cannot be made, because the kind is not defined any more
  };

  std::array<Kind*, 3> Kinds() { return {&reservations_, &ultra_servers_, &neuron_servers_}; }
  void Follow(Kind& kind);
  void LookAtBlocks(const Snapshot& now);
  void LookAtHosts(const Snapshot& now);
  void NoteHosts(const Block* before, const Block* after);
  void ProjectHost(const Snapshot& now, DomainId id);
  bool LookAtNeuronServers(const Snapshot& now);
  void Write(Kind& kind);
  std::vector<absl::Status> Send(const Kind& kind, const std::vector<Projection::Write>& writes);
  // The requests of a write, in their order.
  static std::vector<kube::Request> RequestsOf(const Kind& kind, const Projection::Write& write);

  kube::Transport& transport_;
  const Clock& clock_;
  kube::Sleeper& sleeper_;
  Rng rng_;
  const BlockProjectionsOptions options_;

  Mutex mutex_;  // guards the objects of all kinds and neuron_look_, which the watches change
  Kind reservations_;
  Kind ultra_servers_;
  Kind neuron_servers_;
  NeuronUltraServers neuron_look_;

  // The state at the last look.
  absl::flat_hash_map<BlockKey, std::shared_ptr<const BlockView>> blocks_;
  ClusterState cluster_;
  std::vector<std::string> names_;                            // of the UltraServers, by domain
  absl::flat_hash_map<std::string, std::set<HostUse>> uses_;  // by host
  std::set<std::string> touched_;                             // hosts whose blocks have changed
  std::thread thread_;
};

}  // namespace tahoma::controller
