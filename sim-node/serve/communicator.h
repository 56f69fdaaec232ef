// Communicators over sockets: ranks join them, run collectives and leave.
//
//   Communicators communicators({.node_id = 0, .links = links});
//   communicators.Join({.comm_id = "gang-uid", .rank = 0, .world_size = 4, .members = chips});
//   communicators.Run("gang-uid", 0, {.request = {.bytes = 1 << 20}, .check = true});
//   communicators.Leave("gang-uid", 0);
//
// A pod joins at its own node's sim-node. Nodes tell each other which ranks wait: nodes of an
// UltraServer over one link, nodes of different domains over EFA (gang_fabric.h joins the domains).
// When all `world_size` ranks wait, every node forms the same group, and the group's members run
// collectives (sim-node/participants/participant.h). A rank that leaves, or whose node
// is lost, never returns to that group: calls that wait for it fail with kAborted and the NRT code
// that a real job would see. A rank may join again; that begins a new group, which is formed when
// all ranks have joined again.
//
// Another node is believed only about its own: joins, ends and refusals by waiting_ranks.h, data
// for a rank of its own, the state of its own links and chips. The rest is refused with the
// communicator, the rank and the node, which the log says.
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
#include "sim-node/emulator/link/torus_links.h"
#include "sim-node/participants/participant.h"
#include "sim-node/serve/gang_fabric.h"
#include "sim-node/serve/peer_link.h"
#include "sim-node/serve/waiting_ranks.h"

namespace tahoma::sim {

struct DataMessage;

// The most pods of a communicator: each may have a chip of its own in an UltraCluster of 2,048.
inline constexpr int kMaxWorldSize = 2048;
// The length of a communicator's id: its namespace and the id that its workloads gave
// (communicator_of_instance.h).
inline constexpr std::size_t kMaxFullCommIdBytes = 512;

class Communicators final : public PeerEvents {
 public:
  struct Options {
    int node_id = 0;
    // All links of the UltraServer (or of the instance alone), as if all were healthy.
    TorusLinks links;
    NodePlace place{};
    // The time that a rank waits for the others to join.
    std::chrono::milliseconds join_timeout{120'000};
    // The time that a running collective waits for one message of a peer that hangs (NRT's own
    // limit is 30 s, aws-neuron-sdk nrt-troubleshoot.rst).
    std::chrono::milliseconds run_timeout{30'000};
    // The most joins of one node's pods that wait: 64 communicators with a pod on each of 16 chips.
    // The node itself and the nodes that it tells refuse further ones.
    std::size_t waiting_of_node = 1024;
    // The most joins of all other nodes together that wait: 16 gangs of the largest size.
    std::size_t waiting_of_others = std::size_t{16} * kMaxWorldSize;
    // Bytes that unread messages of one peer, and of all peers, may hold. A pod with the largest
    // buffers may send kMaxBufferBytes before any rank reads; that fits twice for one peer.
    std::size_t held_bytes_of_peer = 2 * kMaxBufferBytes;
    std::size_t held_bytes = 4 * kMaxBufferBytes;
  };
  struct JoinRequest {
    std::string comm_id;
    int rank = 0;        // of the pod
    int world_size = 1;  // pods
    std::vector<Member> members;
    // Asked once, under the lock that Leave takes too. False when the rank has left before its join
    // arrived here: Join is then kAborted. Empty means true.
    std::function<bool()> wanted = nullptr;
  };
  struct Joined {
    int first_rank = 0;  // the pod's first logical core within the communicator
    int ranks = 0;       // logical cores of all pods
    int first_chip = 0;  // the pod's first chip within the communicator
    int own_chips = 0;
    int chips = 0;  // of all pods
    // The chips within the communicator that share the pod's memory pool: those of its UltraServer.
    std::vector<int> pool{};
  };

  // The load that an operation of this node's rank put on links.
  struct Traffic {
    std::vector<LinkLoad> loads;  // of one iteration
    VirtualDuration time{};       // of one iteration
    std::uint64_t times = 1;
  };

  explicit Communicators(Options options);

  // Calls `observer` after every operation that succeeded, on the thread of its rank. To be called
  // before the first Join only.
  void Observe(std::function<void(const Traffic&)> observer) { observer_ = std::move(observer); }

  // Sends messages for the other nodes of the UltraServer over `link`, which must outlive the last
  // call of this object. To be called once, before the first Join, unless the node is alone.
  void Connect(PeerLink& link);
  // Does the same for nodes of other domains, whose numbers begin at kFirstEfaNode.
  void ConnectEfa(PeerLink& link);

  // Waits until all ranks have joined. kInvalidArgument for a rank or size out of bounds, or chips
  // that are not of this torus; kResourceExhausted when too many joins of this node wait;
  // kAlreadyExists when that rank waits already; kDeadlineExceeded naming the missing ranks;
  // kFailedPrecondition when ranks disagree on the size or share a chip, or their domains cannot be
  // joined; kAborted when the rank leaves while it waits.
  absl::StatusOr<Joined> Join(JoinRequest request);

  // Runs a collective; all ranks of the group must call it with the
  // same spec. kFailedPrecondition before Join; otherwise Participant::Run's errors. After
  // kAborted, kDeadlineExceeded, kInternal or kUnavailable the rank has left the group.
  absl::StatusOr<RunResult> Run(const std::string& comm_id, int rank, const RunSpec& spec);

  // Reads and writes chips' memories; all ranks must call it. Fails as Participant::Access does;
  // kFailedPrecondition before Join, and the rank leaves the group after the same errors as in Run.
  absl::StatusOr<AccessResult> Access(const std::string& comm_id, int rank, const AccessSpec& spec,
                                      ClaimMemory& memory);

  // Returns the chips of all pods, in the order of their ranks, numbered within the group's fabric.
  // kFailedPrecondition before Join.
  absl::StatusOr<std::vector<torus::ChipIndex>> Chips(const std::string& comm_id, int rank) const;

  // Forgets the rank and tells the other nodes. An unknown rank is ignored.
  void Leave(const std::string& comm_id, int rank);

  // Sets the state of this node's own directed links and chips, which collectives that begin later
  // use, and tells the nodes of the UltraServer. Chips are numbered within the torus.
  void SetLinks(std::vector<LinkState> unhealthy, std::vector<torus::ChipIndex> dead = {},
                std::vector<torus::ChipIndex> efa_down = {});

  std::vector<wire::Request> OnPeerConnected(int node) override;
  // Refuses a message about what `node` is not the home of (kPermissionDenied), and one with which
  // unread messages would hold too many bytes (kResourceExhausted). A rank whose data is refused
  // for its size has left its group.
  absl::Status OnPeerMessage(int node, wire::Request message) override;
  void OnPeerLost(int node, LostConnection lost, const absl::Status& why) override;

 private:
  class GroupPeer;
  // A message that waits to be read, and its share of the bytes that its sender may hold.
  struct Held {
    PeerMessage message;
    std::unique_ptr<rest::Budget::Share> share;  // nullptr: from this node
  };
  struct Group {
    std::string comm_id;
    std::string key;  // made of comm id and join numbers, so it is the same on every node
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
  using Waiting = WaitingRanks::Ranks;
  // A rank that was refused, the messages that say so, and the nodes that they have not reached.
  struct TurnedAway {
    std::string comm_id;
    int rank = 0;
    wire::Request join;  // goes first: only a node that has joined may refuse
    wire::Request leave;
    std::set<int> untold;
  };

  absl::Status CheckJoin(const JoinRequest& request, const torus::Shape& torus) const;
  PeerLink* LinkTo(int node) const { return node < kFirstEfaNode ? link_ : efa_; }
  // Returns the rank's part in its group, and in `views` the known state of links. Fails with
  // kFailedPrecondition when the rank has not joined.
  absl::StatusOr<std::shared_ptr<Local>> Enter(const std::string& comm_id, int rank,
                                               std::vector<NodeLinks>& views) const;
  // Takes the rank out of its group when other ranks cannot know its progress after `status`.
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
  void TellLater(const std::string& comm_id, int rank, const Joiner& joiner,
                 const wire::Request& refusal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLocal(const std::string& comm_id, int rank, std::shared_ptr<Group> group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Local* FindLocal(const std::string& comm_id, int rank, std::uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether our join of that number has become part of a group, was refused or has left.
  bool Ended(const std::string& comm_id, int rank, std::uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether our join of that number still waits for other ranks.
  bool Waits(const std::string& comm_id, int rank, std::uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Group> FindGroup(const std::string& key) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkGone(int node, const std::string& comm_id, int rank, std::uint64_t number,
                const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends this node's join of that rank, whether it waits or is in a group, and returns the message
  // for the other nodes; nullopt when there is no such join.
  std::optional<wire::Request> Forget(const std::string& comm_id, int rank, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks that rank `from` is on node `node` and rank `to` on this one: kPermissionDenied when
  // `from` is elsewhere, kInvalidArgument when `to` is or a rank does not exist.
  absl::Status CheckSender(const Group& group, int node, int from, int to) const;
  void Deliver(Group& group, int from, int to, Held held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status KeepEarly(int node, DataMessage data) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Held> Hold(int node, PeerMessage message);
  // These three block, so the caller must not hold mutex_.
  void Tell(const wire::Request& message);
  absl::Status SendMessage(Group& group, int from, int to, PeerMessage message);
  absl::StatusOr<PeerMessage> ReceiveMessage(Group& group, int from, int to);
  // Checks that a node's view is of its own links and chips.
  absl::Status CheckView(int node, const NodeLinks& view) const;
  // Handle the messages of other nodes.
  absl::Status OnJoin(int node, const wire::Request& message);
  absl::Status OnLeave(int node, const wire::Request& message);
  absl::Status OnLinks(int node, const wire::Request& message);
  absl::Status OnData(int node, wire::Request message);

  const Options options_;
  rest::Budget held_;         // bytes of unread messages, by the node that sent them
  PeerLink* link_ = nullptr;  // to the nodes of the UltraServer
  PeerLink* efa_ = nullptr;   // to those of other domains
  std::function<void(const Traffic&)> observer_;

  mutable Mutex mutex_;  // guards `gone` and `inbox` of every Group, too
  CondVar changed_;
  std::uint64_t last_join_ ABSL_GUARDED_BY(mutex_) = 0;
  WaitingRanks waiting_ ABSL_GUARDED_BY(mutex_);
  // Why waiting ranks of this node were refused, by comm id and rank.
  std::map<std::pair<std::string, int>, absl::Status> refused_ ABSL_GUARDED_BY(mutex_);
  // By comm id and rank.
  std::map<std::pair<std::string, int>, std::shared_ptr<Local>> local_ ABSL_GUARDED_BY(mutex_);
  // The nodes that we are connected to, and that therefore have been told all joins.
  std::set<int> reached_ ABSL_GUARDED_BY(mutex_);
  std::deque<TurnedAway> turned_away_ ABSL_GUARDED_BY(mutex_);
  // By node: opening messages of its ranks for groups that are not formed here yet.
  std::map<int, std::deque<Early>> early_ ABSL_GUARDED_BY(mutex_);
  std::map<int, NodeLinks> views_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::sim
