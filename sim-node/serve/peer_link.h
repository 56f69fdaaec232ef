// The sockets between the sim-nodes of one UltraServer, or between those of different units.
//
//   class Receiver : public PeerEvents { ... };
//   auto link = PeerLink::Start({.node_id = 0, .listen_address = "127.0.0.1:0",
//                                .peers = {{.node_id = 1, .address = "10.0.0.2:7000"}}}, receiver);
//   (*link)->Send(1, {.method = "member", .params = "{...}"});
//
// Every node dials every other, so there are two connections between two nodes: a node writes only
// on the one it dialled and reads only on the one it accepted. When the first breaks, the peer may
// miss what was sent last; dialling begins again and OnPeerConnected tells it everything anew. When
// the second breaks, we may miss something, and the peer does the same. Whoever has nothing to say
// says that it is alive: a process that is stopped keeps its connections, and only its silence
// tells. A peer that is silent for too long is lost both ways. The messages are requests without
// reply in frames of lib/wire (docs/formats/wire.md).
//
// In an UltraServer nodes greet with their numbers; between units with their names, and the numbers
// are each node's own. What a node says of itself proves nothing: over TCP with TLS its certificate
// must be for the name that we know the peer by, both when we dial it and when it greets; over a
// unix socket it must be a program of our own user. Over TCP without TLS anybody is believed, so
// that is for tests and for networks that nobody else is in.
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

// Which connection to a peer broke.
enum class LostWay : std::uint8_t { kToPeer, kFromPeer };

class PeerEvents {
 public:
  virtual ~PeerEvents() = default;
  // A connection to the peer stands (Connected is true): what must be told first, before anything
  // that is sent from now on.
  virtual std::vector<wire::Request> OnPeerConnected(int node) = 0;
  // A message that is not taken is dropped; the first of a connection is logged with the reason.
  virtual absl::Status OnPeerMessage(int node, wire::Request message) = 0;
  virtual void OnPeerLost(int node, LostWay way, const absl::Status& why) = 0;
};

struct PeerAddress {
  int node_id = 0;
  std::string address;
  // Its node's: with which it greets between units, and for which its certificate must be.
  std::string name = {};
};

class PeerLink {
 public:
  struct Options {
    int node_id = 0;
    std::string ultra_server = {};  // a peer that names another is refused
    std::string name = {};          // not empty: peers greet with names
    std::string listen_address;
    std::vector<PeerAddress> peers{};
    // Between two tries to reach a peer; a peer that is not there yet costs one dial each.
    std::chrono::milliseconds redial{200};
    // For one frame to be taken by the peer's system, and for its greeting to come.
    std::chrono::milliseconds io_timeout{30'000};
    // A peer of which nothing is heard for so long is lost. We are heard four times as often.
    std::chrono::milliseconds silence{10'000};
    // Of all TCP connections, when set; every peer must have a name then.
    std::optional<wire::Tls> tls{};
    // Hears why a connection or a message was refused, each reason once until another comes.
    std::function<void(const std::string& line)> log = nullptr;
  };

  // Listens and begins to dial. Fails as wire::Listener::Open does, and with kInvalidArgument for a
  // peer with our own number or name or one twice, or without a name for its certificate. `events`
  // must outlive the object.
  static absl::StatusOr<std::unique_ptr<PeerLink>> Start(Options options, PeerEvents& events);
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  // Hands the message to the peer's sender; waits while many are in front. kUnavailable when there
  // is no connection, kInvalidArgument for a node that is no peer.
  absl::Status Send(int node, wire::Request message);

  // As Send, but never waits: false when there is no connection or no room.
  bool Offer(int node, wire::Request message);

  // Whether a message for the peer would be taken now.
  bool Connected(int node) const;

  std::vector<int> peers() const;
  // Where we listen, with the port that was bound.
  const wire::Address& address() const { return listener_->address(); }

 private:
  struct Outgoing;
  using Queue = BoundedQueue<wire::Request>;
  struct Incoming {
    std::shared_ptr<wire::Connection> connection;
    std::jthread thread;
    // The link's mutex_ guards the two.
    int node = -1;  // once it has greeted
    bool done = false;
  };
  struct Hello {
    int node = 0;
    std::chrono::milliseconds patience{};  // how long it may be silent
  };

  PeerLink(Options options, PeerEvents& events, std::unique_ptr<wire::Listener> listener);

  // Of the connection to that peer; nullptr without one.
  std::shared_ptr<Queue> QueueOf(int node) const;
  void AcceptLoop();
  void Admit(std::shared_ptr<wire::Connection> connection);
  void ReadLoop(Incoming& incoming);
  absl::Status ReadMessages(const Hello& peer, wire::Connection& connection);
  // Whether the connection may be talked to at all, before anything is said.
  absl::Status Secure(wire::Connection& connection, wire::TlsRole role) const;
  // Whether what is at the other end is the peer of that name.
  absl::Status CheckProof(const wire::Connection& connection, const PeerAddress& peer) const;
  absl::StatusOr<Hello> Greeting(wire::Connection& connection);
  void LogRefusal(std::string_view what, const absl::Status& why);
  absl::StatusOr<int> Recognise(wire::Fields& fields) const;
  void EndFormer(Incoming& incoming, int node);
  // Whether a connection of that node from before `incoming` has not ended.
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
