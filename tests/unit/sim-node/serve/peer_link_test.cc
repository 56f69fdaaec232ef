#include "sim-node/serve/peer_link.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "tests/unit/lib/kube/test_certificates.h"

namespace tahoma::sim {
namespace {

using std::chrono::milliseconds;

// Records the events of a node, and waits for events.
class Recorder final : public PeerEvents {
 public:
  std::vector<wire::Request> OnPeerConnected(int node) override {
    Note("connected " + std::to_string(node));
    return {{.method = "first"}};
  }
  absl::Status OnPeerMessage(int node, wire::Request message) override {
    WaitUntilReleased();
    Note(message.method + " from " + std::to_string(node) + " " + message.payload);
    if (message.method == "wrong") return PermissionDenied("not its to say: {}", message.payload);
    return absl::OkStatus();
  }
  void OnPeerLost(int node, LostConnection lost, const absl::Status&) override {
    Note((lost == LostConnection::kToPeer ? "lost to " : "lost from ") + std::to_string(node));
  }
  bool WaitFor(const std::string& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return std::find(notes_.begin(), notes_.end(), what) != notes_.end();
    });
  }
  std::ptrdiff_t PlaceOf(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return std::find(notes_.begin(), notes_.end(), what) - notes_.begin();
  }
  std::ptrdiff_t Count() {
    const std::lock_guard lock(mutex_);
    return std::ssize(notes_);
  }
  // Takes no message between Hold and Release.
  void Hold() { SetHeld(true); }
  void Release() { SetHeld(false); }
  void Clear() {
    const std::lock_guard lock(mutex_);
    notes_.clear();
  }

 private:
  void SetHeld(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void WaitUntilReleased() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !held_; });
  }
  void Note(std::string what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(std::move(what));
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> notes_;
  bool held_ = false;
};

class PeerLinkTest : public ::testing::Test {
 protected:
  PeerLinkTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tahoma-peer-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~PeerLinkTest() override {
    a_.reset();
    b_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string Address(int node) const {
    return "unix:" + folder_ + "/" + std::to_string(node) + ".sock";
  }
  std::unique_ptr<PeerLink> Start(int node, PeerEvents& events,
                                  const std::string& ultra_server = "us-0") {
    auto link = PeerLink::Start({.node_id = node,
                                 .ultra_server = ultra_server,
                                 .listen_address = Address(node),
                                 .peers = {{1 - node, Address(1 - node)}},
                                 .redial = milliseconds(5)},
                                events);
    EXPECT_TRUE(link.ok()) << link.status();
    return *std::move(link);
  }

  std::string folder_;
  Recorder at_a_, at_b_;
  std::unique_ptr<PeerLink> a_, b_;
};

TEST_F(PeerLinkTest, MessagesArriveInOrderAfterWhatMustBeToldFirst) {
  a_ = Start(0, at_a_);
  b_ = Start(1, at_b_);
  ASSERT_TRUE(at_a_.WaitFor("connected 1"));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(a_->Send(1, {.method = "m" + std::to_string(i), .payload = "x"}).ok());
  }
  ASSERT_TRUE(at_b_.WaitFor("m99 from 0 x"));
  EXPECT_LT(at_b_.PlaceOf("first from 0 "), at_b_.PlaceOf("m0 from 0 x"));
  for (int i = 0; i < 99; ++i) {
    EXPECT_LT(at_b_.PlaceOf("m" + std::to_string(i) + " from 0 x"),
              at_b_.PlaceOf("m" + std::to_string(i + 1) + " from 0 x"));
  }
}

// The defect: a node handled the join of a peer before the node knew its own link.
TEST_F(PeerLinkTest, TheLinkIsKnownBeforeItsFirstEvent) {
  a_ = Start(0, at_a_);
  std::ptrdiff_t events_before = -1;
  const auto made = [&](PeerLink& link) {
    EXPECT_FALSE(link.Connected(0));
    events_before = at_b_.Count();
  };
  b_ = *PeerLink::Start({.node_id = 1,
                         .ultra_server = "us-0",
                         .listen_address = Address(1),
                         .peers = {{0, Address(0)}},
                         .redial = milliseconds(5)},
                        at_b_, made);
  EXPECT_EQ(events_before, 0);
  EXPECT_TRUE(at_b_.WaitFor("connected 0"));
}

TEST_F(PeerLinkTest, AnOfferIsDroppedWhereSendWouldWaitOrFail) {
  a_ = Start(0, at_a_);
  EXPECT_FALSE(a_->Offer(1, {.method = "early"})) << "no connection";
  EXPECT_FALSE(a_->Offer(2, {.method = "m"})) << "no peer";
  b_ = Start(1, at_b_);
  ASSERT_TRUE(at_a_.WaitFor("connected 1"));
  EXPECT_TRUE(a_->Offer(1, {.method = "m"}));
  EXPECT_TRUE(at_b_.WaitFor("m from 0 "));
  EXPECT_EQ(at_b_.PlaceOf("early from 0 "), at_b_.Count());
  // B stops reading while it handles its first message.
  at_b_.Hold();
  bool taken = true;
  for (int i = 0; taken && i < 100'000; ++i) {
    taken = a_->Offer(1, {.method = "m", .payload = std::string(1 << 16, 'x')});
  }
  EXPECT_FALSE(taken) << "the queue is bounded";
  at_b_.Release();
}

TEST_F(PeerLinkTest, ADeadPeerIsLostInBothDirectionsAndFoundAgainAfterItsRestart) {
  a_ = Start(0, at_a_);
  b_ = Start(1, at_b_);
  ASSERT_TRUE(at_a_.WaitFor("connected 1"));
  ASSERT_TRUE(at_a_.WaitFor("first from 1 "));
  at_a_.Clear();
  b_.reset();
  EXPECT_TRUE(at_a_.WaitFor("lost to 1"));
  EXPECT_TRUE(at_a_.WaitFor("lost from 1"));
  EXPECT_EQ(a_->Send(1, {.method = "x"}).code(), absl::StatusCode::kUnavailable);
  Recorder reborn;
  b_ = Start(1, reborn);
  EXPECT_TRUE(reborn.WaitFor("first from 0 "));
  EXPECT_TRUE(at_a_.WaitFor("first from 1 "));
  b_.reset();
}

TEST_F(PeerLinkTest, ALinkMayEndWhileDialling) {
  b_ = Start(1, at_b_);
  for (int i = 0; i < 200; ++i) {
    a_ = Start(0, at_a_);
    a_.reset();  // waits for every thread of the link
  }
}

TEST_F(PeerLinkTest, BetweenDomainsPeersGreetWithNamesAndHaveNumbersOfTheirOwn) {
  const auto start = [&](const std::string& name, int file, int number, const std::string& peer,
                         PeerEvents& events) {
    return PeerLink::Start(
        {.node_id = 0,
         .name = name,
         .listen_address = Address(file),
         .peers = {{.node_id = number, .address = Address(1 - file), .name = peer}},
         .redial = milliseconds(5)},
        events);
  };
  a_ = *start("n-a", 0, 7, "n-b", at_a_);
  b_ = *start("n-b", 1, 4, "n-a", at_b_);
  ASSERT_TRUE(at_a_.WaitFor("connected 7"));
  ASSERT_TRUE(a_->Send(7, {.method = "m", .payload = "x"}).ok());
  EXPECT_TRUE(at_b_.WaitFor("m from 4 x"));
  EXPECT_EQ(Message(start("n-c", 2, 4, "n-c", at_a_).status()),
            "node n-c is named as its own peer");
}

TEST_F(PeerLinkTest, AStrangersNameIsNotHeard) {
  const auto start = [&](const std::string& name, int file, PeerEvents& events) {
    return *PeerLink::Start({.node_id = 0,
                             .name = name,
                             .listen_address = Address(file),
                             .peers = {{.node_id = 4, .address = Address(1 - file), .name = "n-b"}},
                             .redial = milliseconds(5)},
                            events);
  };
  a_ = start("n-a", 0, at_a_);
  b_ = start("n-x", 1, at_b_);
  ASSERT_TRUE(at_b_.WaitFor("lost to 4"));
  EXPECT_EQ(at_a_.PlaceOf("first from 4 "), at_a_.Count());
}

TEST_F(PeerLinkTest, ANodeOfAnotherUltraServerIsNotHeard) {
  a_ = Start(0, at_a_);
  b_ = Start(1, at_b_, "us-1");
  ASSERT_TRUE(at_b_.WaitFor("lost to 0"));
  EXPECT_GT(at_a_.PlaceOf("first from 1 "), at_a_.PlaceOf("no such note") - 1);
}

// ---- Proof of a peer's name ---------------------------------------------------------------------

// Nodes n0 and n1 of an UltraServer over TCP, each with a certificate, and a stranger.
class PeerProofTest : public PeerLinkTest {
 protected:
  PeerProofTest() { signal(SIGPIPE, SIG_IGN); }
  // The links write to `log_` until they end.
  ~PeerProofTest() override {
    a_.reset();
    b_.reset();
  }

  std::string File(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  wire::Tls TlsOf(const std::string& name, const tahoma::testing::Certificate& authority) {
    const auto made = tahoma::testing::MakeCertificate("", "", "DNS:" + name, &authority);
    auto tls = wire::Tls::Open({.cert_file = File(name + ".crt", made.Pem()),
                                .key_file = File(name + ".key", made.KeyPem()),
                                .ca_file = File("ca.crt", nodes_.Pem())});
    EXPECT_TRUE(tls.ok()) << tls.status();
    return *std::move(tls);
  }
  // Node 0. Node 0 expects node 1 to be n1 at any address, and logs the reason of each refusal.
  std::unique_ptr<PeerLink> Victim() {
    return *PeerLink::Start({.node_id = 0,
                             .ultra_server = "us-0",
                             .listen_address = "127.0.0.1:0",
                             .peers = {{1, "127.0.0.1:1", "n1"}},
                             .redial = milliseconds(5),
                             .tls = TlsOf("n0", nodes_),
                             .log = [this](const std::string& line) { log_.Add(line); }},
                            at_a_);
  }
  // Greets as node 1 and shows the given certificate.
  std::unique_ptr<PeerLink> Claimant(const std::optional<wire::Tls>& tls) {
    return *PeerLink::Start({.node_id = 1,
                             .ultra_server = "us-0",
                             .listen_address = "127.0.0.1:0",
                             .peers = {{0, a_->address().ToString(), "n0"}},
                             .redial = milliseconds(5),
                             .tls = tls},
                            at_b_);
  }
  // Waits for lines of a log.
  class Lines {
   public:
    void Add(const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
      changed_.notify_all();
    }
    std::ptrdiff_t Count(const std::string& part) {
      const std::lock_guard lock(mutex_);
      return std::ranges::count_if(
          lines_, [&](const std::string& line) { return line.find(part) != line.npos; });
    }
    bool WaitFor(const std::string& part) {
      std::unique_lock lock(mutex_);
      return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
        return std::ranges::any_of(
            lines_, [&](const std::string& line) { return line.find(part) != line.npos; });
      });
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> lines_;
  };

  const tahoma::testing::Certificate nodes_ =
      tahoma::testing::MakeCertificate("nodes", "", "", nullptr);
  Lines log_;
};

TEST_F(PeerProofTest, APeerWithACertificateForItsNameIsHeard) {
  a_ = Victim();
  b_ = Claimant(TlsOf("n1", nodes_));
  EXPECT_TRUE(at_a_.WaitFor("first from 1 "));
  b_.reset();
}

TEST_F(PeerProofTest, AnUnreachablePeerIsLoggedOnceAndLoggedAgainWhenReached) {
  a_ = *PeerLink::Start({.node_id = 0,
                         .ultra_server = "us-0",
                         .listen_address = Address(0),
                         .peers = {{1, Address(1)}},
                         .redial = milliseconds(1),
                         .log = [this](const std::string& line) { log_.Add(line); }},
                        at_a_);
  const std::string why =
      "node 1 is not reached, and dialled again: cannot connect to " + Address(1) + ": No such";
  ASSERT_TRUE(log_.WaitFor(why));
  b_ = Start(1, at_b_);
  ASSERT_TRUE(log_.WaitFor("node 1 is reached"));
  ASSERT_TRUE(at_b_.WaitFor("first from 0 "));
  EXPECT_EQ(log_.Count(why), 1);
  EXPECT_EQ(log_.Count("node 1 is reached"), 1);
}

TEST_F(PeerProofTest, ANodeWithAnotherNodesCertificateIsNotBelievedToBeThePeer) {
  a_ = Victim();
  b_ = Claimant(TlsOf("n2", nodes_));  // of the same authority
  EXPECT_TRUE(log_.WaitFor("has no certificate for node \"n1\""));
  EXPECT_EQ(at_a_.PlaceOf("first from 1 "), at_a_.Count());
  b_.reset();
}

TEST_F(PeerProofTest, AStrangerThatClaimsAPeersNameIsNotHeard) {
  a_ = Victim();
  const auto others = tahoma::testing::MakeCertificate("others", "", "", nullptr);
  b_ = Claimant(TlsOf("n1", others));
  EXPECT_TRUE(log_.WaitFor("TLS with "));
  b_.reset();
  b_ = Claimant(std::nullopt);
  EXPECT_TRUE(at_b_.WaitFor("lost to 0"));
  EXPECT_EQ(at_a_.PlaceOf("first from 1 "), at_a_.Count());
  b_.reset();
}

TEST_F(PeerProofTest, AnImpostorAtAPeersAddressWithoutItsCertificateHearsNothing) {
  // A program listens where node 1 should listen.
  const auto impostor = *wire::Listener::Open("127.0.0.1:0");
  a_ = *PeerLink::Start({.node_id = 0,
                         .ultra_server = "us-0",
                         .listen_address = "127.0.0.1:0",
                         .peers = {{1, impostor->address().ToString(), "n1"}},
                         .redial = milliseconds(5),
                         .tls = TlsOf("n0", nodes_),
                         .log = [this](const std::string& line) { log_.Add(line); }},
                        at_a_);
  const auto connection = *impostor->Accept(std::chrono::seconds(20));
  ASSERT_TRUE(
      connection->StartTls(TlsOf("n2", nodes_), wire::TlsRole::kServer, std::chrono::seconds(20))
          .ok());
  EXPECT_FALSE(connection->Receive(std::chrono::seconds(20)).ok()) << "no greeting";
  EXPECT_TRUE(log_.WaitFor("has no certificate for node \"n1\""));
  EXPECT_EQ(at_a_.PlaceOf("connected 1"), at_a_.Count());
  a_.reset();
}

// A peer with the right certificate sends messages beyond its rights; the messages do not fill the
// log.
TEST_F(PeerProofTest, TheFirstRefusedMessageOfAConnectionIsLoggedWithTheReason) {
  a_ = Victim();
  b_ = Claimant(TlsOf("n1", nodes_));
  ASSERT_TRUE(at_b_.WaitFor("connected 0"));
  for (const char* what : {"x", "y", "z"}) {
    ASSERT_TRUE(b_->Send(0, {.method = "wrong", .payload = what}).ok());
  }
  ASSERT_TRUE(b_->Send(0, {.method = "right"}).ok());
  ASSERT_TRUE(at_a_.WaitFor("right from 1 ")) << "the connection goes on";
  EXPECT_EQ(log_.Count("a message of node n1 was dropped: not its to say: x"), 1);
  EXPECT_EQ(log_.Count("was dropped"), 1);
}

TEST_F(PeerProofTest, APeerWithoutANameCannotBeProved) {
  const auto started = PeerLink::Start({.node_id = 0,
                                        .ultra_server = "us-0",
                                        .listen_address = "127.0.0.1:0",
                                        .peers = {{1, "127.0.0.1:1"}},
                                        .tls = TlsOf("n0", nodes_)},
                                       at_a_);
  EXPECT_EQ(Message(started.status()), "peer 1 has no nodeName, which its certificate must be for");
}

// Silent connections keep no peer out for long.
TEST_F(PeerLinkTest, SilentStrangersKeepNoPeerOut) {
  a_ = Start(0, at_a_);
  std::vector<std::unique_ptr<wire::Connection>> silent;
  for (int i = 0; i < 60; ++i) {
    silent.push_back(*wire::Connection::Dial(Address(0), std::chrono::seconds(20)));
  }
  b_ = Start(1, at_b_);
  EXPECT_TRUE(at_a_.WaitFor("first from 1 "));
  b_.reset();
}

TEST_F(PeerLinkTest, ImpossiblePeersAreRefused) {
  const auto start = [&](std::vector<PeerAddress> peers) {
    return PeerLink::Start({.node_id = 0,
                            .ultra_server = "us-0",
                            .listen_address = Address(0),
                            .peers = std::move(peers)},
                           at_a_)
        .status();
  };
  EXPECT_EQ(Message(start({{0, Address(0)}})), "node 0 is named as its own peer");
  EXPECT_EQ(Message(start({{1, Address(1)}, {1, Address(2)}})), "peer 1 is named twice");
  a_ = Start(0, at_a_);
  EXPECT_EQ(a_->Send(3, {.method = "x"}).code(), absl::StatusCode::kInvalidArgument);
}

// ---- Silence -----------------------------------------------------------------------------------

// A peer made by hand; the test writes out its messages.
class ByHand {
 public:
  explicit ByHand(const std::string& address, int alive_ms) {
    auto dialled = wire::Connection::Dial(address, std::chrono::seconds(20));
    EXPECT_TRUE(dialled.ok()) << dialled.status();
    connection_ = *std::move(dialled);
    Say("peerHello",
        fmt::format(R"({{"nodeId": 1, "ultraServer": "us-0", "aliveMs": {}}})", alive_ms));
  }
  void Say(const std::string& method, const std::string& params = "{}") {
    const auto frame = wire::EncodeRequest(id_++, {.method = method, .params = params});
    ASSERT_TRUE(frame.ok());
    ASSERT_TRUE(connection_->Send(*frame).ok());
  }
  // Waits until the other side has hung up.
  absl::Status AwaitEnd() { return connection_->Receive(std::chrono::seconds(20)).status(); }

 private:
  std::unique_ptr<wire::Connection> connection_;
  std::uint64_t id_ = 0;
};

// The defect: connections were freed in turn while other threads still looked at the list (asan).
TEST_F(PeerLinkTest, ALinkMayEndWhilePeersDialAgain) {
  for (int i = 0; i < 100; ++i) {
    a_ = Start(0, at_a_);
    std::vector<std::unique_ptr<ByHand>> peers;
    for (int peer = 0; peer < 5; ++peer) {
      peers.push_back(std::make_unique<ByHand>(Address(0), 0));
    }
    a_.reset();
  }
}

// A stranger may be greeting, so only a greeting is read.
TEST_F(PeerLinkTest, AStrangersFirstFrameIsAGreetingOrNothing) {
  a_ = Start(0, at_a_);
  const std::string hello =
      R"({"id": 0, "method": "peerHello", "params": {"nodeId": 1, "ultraServer": "us-0"}})";
  const std::vector<wire::Frame> frames = {
      {.header = hello, .payload = "x"},
      {.header = hello + std::string(4096, ' ')},
  };
  for (const wire::Frame& frame : frames) {
    const auto stranger = *wire::Connection::Dial(Address(0), std::chrono::seconds(20));
    (void)stranger->Send(frame);
    EXPECT_TRUE(absl::IsUnavailable(stranger->Receive(std::chrono::seconds(20)).status()));
  }
  EXPECT_EQ(at_a_.PlaceOf("lost from 1"), at_a_.Count());
}

TEST_F(PeerLinkTest, APeersMessageIsNoLargerThanAChunk) {
  a_ = Start(0, at_a_);
  const auto dial = [&] {
    auto peer = *wire::Connection::Dial(Address(0), std::chrono::seconds(20));
    const auto hello = wire::EncodeRequest(
        0, {.method = "peerHello", .params = R"({"nodeId": 1, "ultraServer": "us-0"})"});
    EXPECT_TRUE(peer->Send(*hello).ok());
    return peer;
  };
  const auto word = [](std::size_t bytes) {
    return *wire::EncodeRequest(1, {.method = "word", .payload = std::string(bytes, 'x')});
  };
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  const auto good = dial();
  ASSERT_TRUE(good->Send(word(kMost)).ok());
  EXPECT_TRUE(at_a_.WaitFor("word from 1 " + std::string(kMost, 'x')));
  const auto bad = dial();
  (void)bad->Send(word(kMost + 1));
  EXPECT_TRUE(absl::IsUnavailable(bad->Receive(std::chrono::seconds(20)).status()));
}

class SilenceTest : public PeerLinkTest {
 protected:
  // Listens at node 1's address, where node 0 will dial.
  SilenceTest() : peer_(*wire::Listener::Open(Address(1))) {
    auto link = PeerLink::Start({.node_id = 0,
                                 .ultra_server = "us-0",
                                 .listen_address = Address(0),
                                 .peers = {{1, Address(1)}},
                                 .redial = milliseconds(5),
                                 .silence = milliseconds(100)},
                                at_a_);
    EXPECT_TRUE(link.ok()) << link.status();
    a_ = *std::move(link);
  }
  std::unique_ptr<wire::Connection> Accept() {
    auto accepted = peer_->Accept(std::chrono::seconds(20));
    EXPECT_TRUE(accepted.ok()) << accepted.status();
    return accepted.ok() ? *std::move(accepted) : nullptr;
  }
  static std::string MethodOf(wire::Connection& connection) {
    auto frame = connection.Receive(std::chrono::seconds(20));
    if (!frame.ok()) return std::string(Message(frame.status()));
    const auto message = wire::DecodeRequest(*std::move(frame));
    return message.ok() ? message->request.method : std::string(Message(message.status()));
  }

  std::unique_ptr<wire::Listener> peer_;
};

TEST_F(SilenceTest, ANodeWithoutMessagesSendsHeartbeats) {
  const auto heard = Accept();
  ASSERT_TRUE(heard);
  EXPECT_EQ(MethodOf(*heard), "peerHello");
  EXPECT_EQ(MethodOf(*heard), "first");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(MethodOf(*heard), "peerAlive");
  ASSERT_TRUE(a_->Send(1, {.method = "word"}).ok());
  std::string method = MethodOf(*heard);
  while (method == "peerAlive") method = MethodOf(*heard);
  EXPECT_EQ(method, "word");
}

TEST_F(SilenceTest, APeerThatIsSilentIsLostInBothDirectionsAndDialledAgain) {
  const auto former = Accept();
  ByHand hung(Address(0), 10);
  hung.Say("last");
  ASSERT_TRUE(at_a_.WaitFor("last from 1 "));
  EXPECT_TRUE(at_a_.WaitFor("lost from 1"));
  EXPECT_TRUE(at_a_.WaitFor("lost to 1")) << "whoever waits to send to it must not wait on";
  EXPECT_FALSE(hung.AwaitEnd().ok());
  EXPECT_TRUE(Accept()) << "dialled again";
}

TEST_F(SilenceTest, APeerThatPromisedNoHeartbeatsIsNotLostForItsSilence) {
  ByHand older(Address(0), 0);
  older.Say("word");
  ASSERT_TRUE(at_a_.WaitFor("word from 1 "));
  ByHand newer(Address(0), 0);  // proves that the older connection was still held
  newer.Say("word of the next");
  ASSERT_TRUE(at_a_.WaitFor("word of the next from 1 "));
}

// The defect: the loss of the former connection was reported after the first messages of the new
// connection, which were then forgotten.
TEST_F(SilenceTest, ANewConnectionIsHeardAfterTheEndOfTheFormerOne) {
  for (int i = 0; i < 20; ++i) {
    at_a_.Clear();
    ByHand former(Address(0), 0);
    former.Say("old word");
    ASSERT_TRUE(at_a_.WaitFor("old word from 1 "));
    at_a_.Clear();
    ByHand next(Address(0), 0);
    next.Say("new word");
    ASSERT_TRUE(at_a_.WaitFor("new word from 1 "));
    EXPECT_LT(at_a_.PlaceOf("lost from 1"), at_a_.PlaceOf("new word from 1 "));
  }
}

}  // namespace
}  // namespace tahoma::sim
