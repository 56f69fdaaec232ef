// The sockets between the sim-nodes of an UltraServer, or between sim-nodes of different domains.
//
// Every node dials every other node, so there are two connections between two nodes. A node writes
// only on the connection that it dialled and reads only on the connection that it accepted. When
// the dialled connection breaks, the peer may miss the last messages; we dial again, and
// OnPeerConnected repeats all valid messages. When the accepted connection breaks, we may miss
// messages, and the peer dials again. A node without messages sends heartbeats: a stopped process
// keeps its connections, and only its silence shows the hang. Both connections to a peer that is
// silent for too long are closed. Messages are requests without reply in frames of lib/wire
// (docs/formats/wire.md).
//
// The first message of a connection, the greeting, names the sender. In an UltraServer the greeting
// has the node's number; between domains the node's name, and each node numbers its peers itself.
// The greeting alone proves nothing. Over TCP with TLS the peer's certificate must be for the name
// that we know the peer by, both when we dial and when the peer greets. Over a unix socket the peer
// must be a program of our own user or root. Over TCP without TLS every greeting is believed, for
// tests and for networks that no other program can reach.
//
// Thread safety: every member may be called from any thread; events come from several.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/base/bounded_queue.h"
#include "lib/base/mutex.h"
#include "lib/wire/call.h"
#include "lib/wire/fields.h"
#include "lib/wire/socket.h"

namespace tahoma::sim {

// The broken connection to a peer: the dialled connection, or the accepted connection.
enum class LostConnection : std::uint8_t { kToPeer, kFromPeer };

class PeerEvents {
 public:
  virtual ~PeerEvents() = default;
  // Called when a connection to the peer is ready (Connected is true). Returns the messages to send
  // before all later messages.
  virtual std::vector<wire::Request> OnPeerConnected(int node) = 0;
  // Handles a message of the peer. A refused message is dropped; the first refusal of each
  // connection is logged with the reason.
  virtual absl::Status OnPeerMessage(int node, wire::Request message) = 0;
  virtual void OnPeerLost(int node, LostConnection lost, const absl::Status& why) = 0;
};

struct PeerAddress {
  int node_id = 0;
  std::string address;
  // The peer's name: its greeting between domains and its certificate must have this name.
  std::string name = {};
};

class PeerLink {
 public:
  struct Options {
    int node_id = 0;
    std::string ultra_server = {};  // a peer that names another UltraServer is refused
    std::string name = {};          // not empty: peers greet with names
    std::string listen_address;
    std::vector<PeerAddress> peers{};
    // The pause between two attempts to dial a peer.
    std::chrono::milliseconds redial{200};
    // The time for dialling, for a frame, for the TLS handshake, and for waiting for a greeting. In
    // a frame that has begun, header and payload each have this time.
    std::chrono::milliseconds io_timeout{30'000};
    // A peer that is silent for this long is lost. We send heartbeats four times as often.
    std::chrono::milliseconds silence{10'000};
    // Secures all TCP connections, when set; every peer must have a name then.
    std::optional<wire::Tls> tls{};
    // Called with a line about a refused connection or message, or an unreachable peer; not again
    // while the line is the same.
    std::function<void(const std::string& line)> log = nullptr;
  };

  // Listens and begins to dial. Fails as wire::Listener::Open does; kInvalidArgument for a peer
  // with our own number or name, a peer listed twice, or a peer without a name for its certificate.
  // `events` must outlive the object. `made` is called with the link before the first event,
  // because handlers may use the link.
  static absl::StatusOr<std::unique_ptr<PeerLink>> Start(
      Options options, PeerEvents& events, const std::function<void(PeerLink& link)>& made = {});
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  // Queues the message for the peer and blocks while the queue is full. kUnavailable without a
  // connection, kInvalidArgument for an unknown node.
  absl::Status Send(int node, wire::Request message);

  // Queues the message as Send does, but never blocks: false without a connection or room.
  bool Offer(int node, wire::Request message);

  // Whether the peer is connected: Send would queue a message.
  bool Connected(int node) const;

  std::vector<int> peers() const;
  // Returns the peer's name, as in its certificate; empty without a name.
  std::string NameOf(int node) const;
  // Returns the address that we listen on, with the bound port.
  const wire::Address& address() const { return listener_->address(); }

 private:
  struct Outgoing;
  using Queue = BoundedQueue<wire::Request>;
  struct Incoming {
    std::shared_ptr<wire::Connection> connection;
    std::jthread thread;
    // PeerLink::mutex_ guards the next three.
    int node = -1;         // set by the greeting
    bool leaving = false;  // shut down to make room for another connection
    bool done = false;
  };
  struct Hello {
    int node = 0;
    std::chrono::milliseconds patience{};  // the longest silence
  };

  PeerLink(Options options, PeerEvents& events, std::unique_ptr<wire::Listener> listener);

  // Returns the queue of the connection to the node; nullptr without a connection.
  std::shared_ptr<Queue> QueueOf(int node) const;
  void AcceptLoop();
  void Admit(std::shared_ptr<wire::Connection> connection);
  void ReadLoop(Incoming& incoming);
  absl::Status ReadMessages(const Hello& peer, wire::Connection& connection);
  // Makes the TLS handshake, or checks the user of a unix socket, before the first message.
  absl::Status Secure(wire::Connection& connection, wire::TlsRole role) const;
  // Checks that the other end's certificate is for `peer`; kPermissionDenied otherwise. OK without
  // TLS.
  absl::Status CheckProof(const wire::Connection& connection, const PeerAddress& peer) const;
  absl::StatusOr<Hello> Greeting(wire::Connection& connection);
  void LogRefusal(std::string_view what, const absl::Status& why);
  void LogReach(Outgoing& outgoing, const absl::Status& reached);
  absl::StatusOr<int> Recognise(wire::Fields& fields) const;
  void EndFormer(Incoming& incoming, int node);
  // Whether an earlier connection of the node than `incoming` still runs.
  bool FormerRuns(const Incoming& incoming, int node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HangUp(int node);
  void WriteLoop(Outgoing& outgoing);
  absl::Status Converse(Outgoing& outgoing, wire::Connection& connection);
  bool WaitToRedial();

  const Options options_;
  PeerEvents& events_;
  const std::unique_ptr<wire::Listener> listener_;
  std::map<int, std::unique_ptr<Outgoing>> outgoing_;  // fixed after Start

  Mutex mutex_;
  CondVar changed_;  // stopped_, and done of incoming_
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Incoming> incoming_ ABSL_GUARDED_BY(mutex_);
  std::string logged_ ABSL_GUARDED_BY(mutex_);  // the last refusal

  std::jthread accept_thread_;
};

}  // namespace tahoma::sim
