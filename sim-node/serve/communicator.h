// Communicators over sockets: who takes part, and collectives among them.
//
//   Communicators communicators({.node_id = 0, .links = links}, ...);
//   communicators.Join({.comm_id = "gang-uid", .rank = 0, .world_size = 4, .members = chips});
//   communicators.Run("gang-uid", 0, {.request = {.bytes = 1 << 20}, .check = true});
//   communicators.Leave("gang-uid", 0);
//
// A pod joins its own node's sim-node; nodes tell each other who waits: those of an UltraServer
// over one link, those of different units over EFA (gang_fabric.h joins them). When all
// `world_size` ranks wait, every node forms the same group, and the group's members run collectives
// (sim-node/collective/participants/participant.h). A rank that leaves, or whose node is lost, is
// gone for good: whoever waits for it gets kAborted with the NRT code that a real job would see. A
// rank may join again; that is a new group, which begins when all have joined again.
//
// Thread safety: every member may be called from any thread. One rank makes one call at a time.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/rest/budget.h"
#include "sim-node/collective/participants/participant.h"
#include "sim-node/link/torus_links.h"
#include "sim-node/serve/gang_fabric.h"
#include "sim-node/serve/peer_link.h"

namespace tahoma::sim {

struct DataMessage;

// Pods: each has a chip of its own in an UltraCluster of 2,048.
inline constexpr int kMaxWorldSize = 2048;
// Of a communicator's id: a namespace and what its workloads call it (communicator_of_instance.h).
inline constexpr std::size_t kMaxFullCommIdBytes = 512;

// Other nodes of the UltraServer have their places as numbers; those that are reached over EFA have
// numbers from here on, which every node gives for itself.
inline constexpr int kFirstEfaNode = hw::kUltraServerNodes;

// A rank that has joined, on whichever node.
struct Joiner {
  int node = 0;
  std::uint64_t number = 0;     // of the join on its node: tells one join from the next
  int world_size = 0;           // pods
  std::vector<Member> members;  // by their numbers in the node's unit
  NodePlace place{};

  // "node 2" of an UltraServer, "node n5" over EFA.
  std::string Node() const;
};

class Communicators final : public PeerEvents {
 public:
  struct Options {
    int node_id = 0;
    // All links of the UltraServer (or of the instance alone), healthy.
    TorusLinks links;
    NodePlace place{};
    // How long a rank waits for the others to join.
    std::chrono::milliseconds join_timeout{120'000};
    // How long a running collective waits for one message. A hung peer costs this (NRT's own limit
    // is 30 s, aws-neuron-sdk nrt-troubleshoot.rst).
    std::chrono::milliseconds run_timeout{30'000};
    // Joins of one node's pods that may wait, those of 64 communicators with a pod on each
    // chip: the node refuses what is beyond, and so does whoever is told of it. And those of all
    // other nodes together, 16 gangs of the largest size.
    std::size_t waiting_of_node = 1024;
    std::size_t waiting_of_others = std::size_t{16} * kMaxWorldSize;
    // What messages of one peer, and of all, may hold until they are read: what a pod with the
    // fullest buffers sends before anybody reads fits twice.
    std::size_t held_bytes_of_peer = 2 * kMaxBufferBytes;
    std::size_t held_bytes = 4 * kMaxBufferBytes;
    // Of all collectives; nodes that differ in it refuse to run one together.
    PlanMode mode = PlanMode::kBest;
  };
  struct JoinRequest {
    std::string comm_id;
    int rank = 0;        // of the pod
    int world_size = 1;  // pods
    std::vector<Member> members;
    // Asked once, under the lock that Leave takes too: false when the rank was sent away before it
    // came here, which is kAborted. Empty: it was not.
    std::function<bool()> wanted = nullptr;
  };
  struct Joined {
    int first_rank = 0;  // the pod's first logical core within the communicator
    int ranks = 0;       // logical cores of all pods
    int first_chip = 0;  // the pod's first chip within the communicator
    int own_chips = 0;
    int chips = 0;  // of all pods
    // Chips within the communicator that share the pod's memory pool: those of its UltraServer.
    std::vector<int> pool{};
  };

  // What an operation of this node's ranks put on their links.
  struct Traffic {
    std::vector<LinkLoad> loads;  // of one time
    VirtualDuration time{};       // of one time
    std::uint64_t times = 1;
  };

  explicit Communicators(Options options);

  // Hears of every operation that has ended well, from the thread of its rank. Only before the
  // first Join.
  void Observe(std::function<void(const Traffic&)> observer) { observer_ = std::move(observer); }

  // Where messages for other nodes go. Called once, before the first Join, unless the node is
  // alone. `link` must outlive the last call.
  void Connect(PeerLink& link);
  // The same for nodes of other units, whose numbers begin at kFirstEfaNode.
  void ConnectEfa(PeerLink& link);

  // Waits until all ranks have joined. kInvalidArgument for a rank or size out of bounds, or chips
  // that are not of this torus; kResourceExhausted when too many joins of this node wait;
  // kAlreadyExists when that rank waits already; kDeadlineExceeded
  // naming the missing ranks; kFailedPrecondition when ranks disagree on the size or share a chip.
  absl::StatusOr<Joined> Join(JoinRequest request);

  // Runs a collective, in the mode of the options; all ranks of the group must call it with the
  // same spec. kFailedPrecondition before Join; otherwise Participant::Run's errors. After
  // kAborted, kDeadlineExceeded or kInternal the rank is out of the group.
  absl::StatusOr<RunResult> Run(const std::string& comm_id, int rank, const RunSpec& spec);

  // Reads and writes chips' memories; all ranks must call it. Errors as Participant::Access and
  // before and after as Run.
  absl::StatusOr<AccessResult> Access(const std::string& comm_id, int rank, const AccessSpec& spec,
                                      ClaimMemory& memory);

  // The chips of all pods, in the order of their ranks, by their numbers in the group's fabric.
  // kFailedPrecondition before Join.
  absl::StatusOr<std::vector<torus::ChipIndex>> Chips(const std::string& comm_id, int rank) const;

  // Forgets the rank; the others are told. Unknown ranks are let pass.
  void Leave(const std::string& comm_id, int rank);

  // The state of this node's own directed links or chips has changed; collectives that begin later
  // use it. Chips by their numbers in the torus.
  void SetLinks(std::vector<LinkState> unhealthy, std::vector<torus::ChipIndex> dead = {},
                std::vector<torus::ChipIndex> efa_down = {});

  std::vector<wire::Request> OnPeerConnected(int node) override;
  // What is said for a rank of another node, or would hold more than a peer may, is refused. A rank
  // whose data is refused for its size is out of its group.
  absl::Status OnPeerMessage(int node, wire::Request message) override;
  void OnPeerLost(int node, LostWay way, const absl::Status& why) override;

 private:
  class GroupPeer;
  // A message that waits to be read, and what it holds of the bytes of the peer that sent it.
  struct Held {
    PeerMessage message;
    std::unique_ptr<rest::Budget::Share> share;  // nullptr: from this node
  };
  struct Group {
    std::string comm_id;
    std::string key;  // comm id and the join numbers of its ranks: the same on every node
    std::vector<Joiner> ranks;
    std::optional<GangFabric> gang;
    std::map<int, absl::Status> gone;  // ranks that left or were lost
    // Messages for ranks of this node, by (from, to).
    std::map<std::pair<int, int>, std::deque<Held>> inbox;
  };
  // A rank of this node in its group.
  struct Local {
    std::shared_ptr<Group> group;
    std::unique_ptr<Peer> peer;
    std::unique_ptr<Participant> participant;
  };
  struct Early {
    std::string group;
    int from = 0;
    int to = 0;
    Held held;
  };
  using Waiting = std::map<int, Joiner>;  // by rank
  // A refusal, and the nodes that could not be told of it then.
  struct TurnedAway {
    std::string comm_id;
    int rank = 0;
    wire::Request leave;
    std::set<int> untold;
  };

  absl::Status CheckJoin(const JoinRequest& request, const torus::Shape& torus) const;
  PeerLink* LinkTo(int node) const { return node < kFirstEfaNode ? link_ : efa_; }
  // The rank's own part of its group and what is known of the links.
  absl::StatusOr<std::shared_ptr<Local>> Enter(const std::string& comm_id, int rank,
                                               std::vector<NodeLinks>& views) const;
  // Takes the rank out of its group if it cannot go on after `status`.
  void EndIfLost(const std::string& comm_id, int rank, const std::shared_ptr<Local>& local,
                 const absl::Status& status);
  static Joined JoinedTo(const Group& group, int own);
  absl::Status Conflict(const std::string& comm_id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Missing(const std::string& comm_id, int world_size) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FormGroup(const std::string& comm_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Span(Group& group) const;
  void Refuse(const std::string& comm_id, const Waiting& waiting, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellLater(const std::string& comm_id, int rank, const wire::Request& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLocal(const std::string& comm_id, int rank, std::shared_ptr<Group> group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Local* FindLocal(const std::string& comm_id, int rank, std::uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether our join of that number has become a group, was refused or has left.
  bool Ended(const std::string& comm_id, int rank, std::uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether it still waits for others.
  bool Waits(const std::string& comm_id, int rank, std::uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Group> FindGroup(const std::string& key) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkGone(int node, const std::string& comm_id, int rank, std::uint64_t number,
                const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Leaves whatever join of that rank there is and says how to tell the others.
  std::optional<wire::Request> Forget(const std::string& comm_id, int rank, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether one more join of that node may wait.
  absl::Status CheckRoom(int node, const std::string& comm_id, int rank) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes that the peer has told of the join, or of its end.
  void NoteJoin(int node, std::uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether messages of that peer may go from rank to rank of the group.
  absl::Status CheckSender(const Group& group, int node, int from, int to) const;
  void Deliver(Group& group, int from, int to, Held held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status KeepEarly(int node, DataMessage data) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Held> Hold(int node, PeerMessage message);
  // These wait.
  void Tell(const wire::Request& message);
  absl::Status SendMessage(Group& group, int from, int to, PeerMessage message);
  absl::StatusOr<PeerMessage> ReceiveMessage(Group& group, int from, int to);
  // Messages of other nodes.
  absl::Status OnJoin(int node, const wire::Request& message);
  absl::Status OnLeave(int node, const wire::Request& message);
  absl::Status OnLinks(int node, const wire::Request& message);
  absl::Status OnData(int node, wire::Request message);

  const Options options_;
  rest::Budget held_;         // bytes of messages that wait, by the node that sent them
  PeerLink* link_ = nullptr;  // to the nodes of the UltraServer
  PeerLink* efa_ = nullptr;   // to those of other units
  std::function<void(const Traffic&)> observer_;

  mutable Mutex mutex_;  // guards `gone` and `inbox` of every Group, too
  CondVar changed_;
  std::uint64_t last_join_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by comm id
  // By node: what it told twice counts once.
  std::map<int, std::set<std::uint64_t>> joins_seen_ ABSL_GUARDED_BY(mutex_);
  // Local ranks that conflict.
  std::map<std::pair<std::string, int>, absl::Status> refused_ ABSL_GUARDED_BY(mutex_);
  // By comm id and rank.
  std::map<std::pair<std::string, int>, std::shared_ptr<Local>> local_ ABSL_GUARDED_BY(mutex_);
  // Nodes that have been told all of this.
  std::set<int> reached_ ABSL_GUARDED_BY(mutex_);
  std::deque<TurnedAway> turned_away_ ABSL_GUARDED_BY(mutex_);
  // By node: the first words of its ranks to groups that are not formed here yet.
  std::map<int, std::deque<Early>> early_ ABSL_GUARDED_BY(mutex_);
  std::map<int, NodeLinks> views_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::sim
