// A peer sends messages that no node of ours would send: its memory here has a bound, and it speaks
// for its own ranks only. The tests hand messages to a node in the names of other nodes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/status.h"
#include "sim-node/serve/communicator.h"
#include "sim-node/serve/communicator_messages.h"

namespace tahoma::sim {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using torus::ChipIndex;

constexpr std::size_t kWaitingOfNode = 8;
constexpr std::size_t kWaitingOfOthers = 12;
constexpr std::size_t kHeldOfPeer = 64 * 1024;
constexpr std::size_t kHeld = 100 * 1024;

std::vector<Member> ChipOf(int node) { return {{.chip = ChipIndex(16 * node)}}; }

// Node 0 of an UltraServer. Peers 1, 2 and 3 take every message and send none.
class CommunicatorBoundsTest : public ::testing::Test, private PeerEvents {
 protected:
  CommunicatorBoundsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tahoma-bnd-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    node_ = std::make_unique<Communicators>(Communicators::Options{
        .links = {torus::kUltraServerShape, hw::kTrainium2.links},
        .join_timeout = milliseconds(2000),
        .run_timeout = milliseconds(300),
        .waiting_of_node = kWaitingOfNode,
        .waiting_of_others = kWaitingOfOthers,
        .held_bytes_of_peer = kHeldOfPeer,
        .held_bytes = kHeld,
    });
  }
  // Not in the constructor: threads of links call members, and need the whole object.
  void SetUp() override {
    for (int id = 3; id >= 0; --id) Start(id);
    for (int peer = 1; peer < 4; ++peer) {
      while (!links_[0]->Connected(peer)) std::this_thread::yield();
    }
  }
  void TearDown() override {
    for (auto& link : links_) link.reset();
  }
  ~CommunicatorBoundsTest() override { std::filesystem::remove_all(folder_); }

  absl::Status Say(int node, wire::Request message) {
    return node_->OnPeerMessage(node, std::move(message));
  }
  absl::Status SayJoin(int node, const std::string& id, int rank, std::uint64_t number,
                       int world_size = 3) {
    return Say(node,
               EncodeJoin(id, rank,
                          {.number = number, .world_size = world_size, .members = ChipOf(node)}));
  }
  absl::Status SayData(int node, const std::string& group, int from, int to, PeerMessage message) {
    return Say(node, EncodeData(group, from, to, std::move(message)));
  }
  absl::Status JoinHere(const std::string& id, int rank, int world_size = 3) {
    return node_
        ->Join({.comm_id = id, .rank = rank, .world_size = world_size, .members = ChipOf(0)})
        .status();
  }
  // Runs `work` while rank 2 of 3 of "job" waits here; returns the result of the rank's join.
  absl::Status WhileRankWaits(const std::function<void()>& work) {
    absl::Status told;
    std::jthread rank([&] { told = JoinHere("job", 2); });
    while (node_->OnPeerConnected(1).empty()) std::this_thread::yield();
    work();
    rank.join();
    return told;
  }
  // Ranks 0, 1 and 2 are on nodes 1, 2 and 0, with these numbers of their joins.
  std::string Form(const std::string& id, std::uint64_t of_1, std::uint64_t of_2,
                   std::uint64_t of_0) {
    EXPECT_TRUE(SayJoin(1, id, 0, of_1).ok());
    EXPECT_TRUE(SayJoin(2, id, 1, of_2).ok());
    EXPECT_TRUE(JoinHere(id, 2).ok());
    return GroupKey(id, of_1, of_2, of_0);
  }
  static std::string GroupKey(const std::string& id, std::uint64_t of_1, std::uint64_t of_2,
                              std::uint64_t of_0) {
    return fmt::format("{}#1.{}#2.{}#0.{}", id, of_1, of_2, of_0);
  }
  std::string Run(const std::string& id) {
    return std::string(Message(node_->Run(id, 2, kSpec).status()));
  }
  static PeerMessage Right() {
    Opening opening;
    opening.spec = kSpec.ToString();
    return opening;
  }
  static PeerMessage ChunkOf(std::size_t bytes) {
    Chunk chunk;
    chunk.payload = std::string(bytes, 'x');
    return chunk;
  }

  inline static const RunSpec kSpec{.request = {.bytes = 4096}};
  std::unique_ptr<Communicators> node_;

 private:
  std::vector<wire::Request> OnPeerConnected(int) override { return {}; }
  absl::Status OnPeerMessage(int, wire::Request) override { return absl::OkStatus(); }
  void OnPeerLost(int, LostConnection, const absl::Status&) override {}

  void Start(int id) {
    PeerLink::Options options{.node_id = id,
                              .ultra_server = "us-0",
                              .listen_address = Address(id),
                              .redial = milliseconds(5)};
    for (int peer = 0; peer < 4; ++peer) {
      if (peer != id) options.peers.push_back({peer, Address(peer)});
    }
    const auto made = [&](PeerLink& link) {
      if (id == 0) node_->Connect(link);
    };
    links_[static_cast<std::size_t>(id)] =
        *PeerLink::Start(options, id == 0 ? static_cast<PeerEvents&>(*node_) : *this, made);
  }
  std::string Address(int id) const {
    return "unix:" + folder_ + "/" + std::to_string(id) + ".sock";
  }

  std::string folder_;
  std::array<std::unique_ptr<PeerLink>, 4> links_;
};

TEST_F(CommunicatorBoundsTest, APeerWaitsInBoundedlyManyPlaces) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kWaitingOfNode; ++i) {
    ASSERT_TRUE(SayJoin(1, fmt::format("job-{}", i), 0, ++number).ok()) << i;
  }
  const absl::Status refused = SayJoin(1, "one-more", 0, ++number);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(refused),
            "rank 0 of communicator \"one-more\": pods of node 1 wait for others in 8 places "
            "already, and more may not");
  // Node 1 may replace its own place and take a free place; it may not take a place of node 2.
  EXPECT_TRUE(SayJoin(1, "job-7", 0, ++number).ok());
  EXPECT_TRUE(SayJoin(2, "one-more", 1, 1).ok());
  ASSERT_TRUE(Say(1, EncodeLeave({"job-7", 0, number, "it left"})).ok());
  EXPECT_TRUE(SayJoin(1, "one-more", 0, ++number).ok());
}

TEST_F(CommunicatorBoundsTest, AllPeersTogetherWaitInBoundedlyManyPlaces) {
  for (std::uint64_t i = 1; i <= kWaitingOfOthers / 2; ++i) {
    ASSERT_TRUE(SayJoin(1, fmt::format("job-{}", i), 0, i).ok());
    ASSERT_TRUE(SayJoin(2, fmt::format("job-{}", i), 1, i).ok());
  }
  EXPECT_EQ(Message(SayJoin(3, "one-more", 0, 1)),
            "rank 0 of communicator \"one-more\": pods of other nodes wait in 12 places already, "
            "and more may not");
  node_->OnPeerLost(1, LostConnection::kFromPeer, absl::AbortedError("it left"));
  EXPECT_TRUE(SayJoin(3, "one-more", 0, 2).ok());
}

TEST_F(CommunicatorBoundsTest, PodsOfThisNodeWaitInBoundedlyManyPlacesToo) {
  const auto id_of = [](std::size_t i) { return fmt::format("job-{}", i); };
  std::vector<std::jthread> waiting;
  for (std::size_t i = 0; i < kWaitingOfNode; ++i) {
    waiting.emplace_back([&, i] { EXPECT_TRUE(absl::IsAborted(JoinHere(id_of(i), 0))); });
  }
  while (node_->OnPeerConnected(1).size() < kWaitingOfNode) std::this_thread::yield();
  const absl::Status refused = JoinHere("one-more", 0);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(refused),
            "rank 0 of communicator \"one-more\": pods of node 0 wait for others in 8 places "
            "already, and more may not");
  for (std::size_t i = 0; i < kWaitingOfNode; ++i) node_->Leave(id_of(i), 0);
}

// Numbers of joins are remembered for a while, because a repeated message must count once.
TEST_F(CommunicatorBoundsTest, LeavesOfAPeerAreForgottenInTheEnd) {
  for (std::uint64_t number = 1; number <= 10'000; ++number) {
    ASSERT_TRUE(Say(1, EncodeLeave({"job", 0, number, "it left"})).ok());
  }
  ASSERT_TRUE(SayJoin(1, "job", 0, 10'000, 2).ok()) << "told twice";
  EXPECT_TRUE(absl::IsDeadlineExceeded(JoinHere("job", 1, 2)));
  ASSERT_TRUE(SayJoin(1, "job", 0, 1, 2).ok()) << "forgotten";
  EXPECT_TRUE(JoinHere("job", 1, 2).ok());
}

TEST_F(CommunicatorBoundsTest, NobodySpeaksForARankOfAnotherNode) {
  const std::string group = Form("job", 1, 1, 1);
  const absl::Status forged = SayData(2, group, /*from=*/0, /*to=*/2, Right());
  EXPECT_EQ(forged.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(forged),
            "communicator \"job\": node 2 sends in the name of rank 0, which is on node 1");
  EXPECT_TRUE(absl::IsPermissionDenied(SayData(1, group, /*from=*/2, /*to=*/2, Right())))
      << "our own";
  EXPECT_EQ(Message(SayData(1, group, /*from=*/0, /*to=*/1, Right())),
            "communicator \"job\": node 1 sends to rank 1, which is not on this node");
  EXPECT_EQ(Message(SayData(1, group, /*from=*/0, /*to=*/7, Right())),
            "communicator \"job\" has 3 ranks; node 1 sends from rank 0 to rank 7");
  EXPECT_TRUE(SayData(1, group, /*from=*/0, /*to=*/2, Right()).ok());
  EXPECT_THAT(Run("job"), HasSubstr("rank 1 on node 2 sent nothing for 300 ms"));
}

// The first words of an operation may come before the group is formed here.
TEST_F(CommunicatorBoundsTest, NobodySpeaksForARankOfAnotherNodeBeforeTheGroupIsFormed) {
  const std::string group = GroupKey("job", 1, 1, 1);
  EXPECT_TRUE(SayData(2, group, /*from=*/0, /*to=*/2, Right()).ok());
  EXPECT_EQ(Form("job", 1, 1, 1), group);
  EXPECT_THAT(Run("job"), HasSubstr("rank 0 on node 1 sent nothing for 300 ms"));
}

TEST_F(CommunicatorBoundsTest, OnlyTheFirstWordsMayComeBeforeTheGroupIsFormed) {
  const absl::Status chunk = SayData(1, "job#1.1", 0, 2, ChunkOf(1000));
  EXPECT_EQ(chunk.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(chunk), "node 1 sends data of group \"job#1.1\", which is not formed here");
}

TEST_F(CommunicatorBoundsTest, EarlyOpeningsOfAPeerDoNotEvictAnotherPeersOpenings) {
  const std::string group = GroupKey("job", 1, 1, 1);
  ASSERT_TRUE(SayData(1, group, 0, 2, Right()).ok());
  for (int i = 0; i < 20'000; ++i) {
    (void)SayData(2, fmt::format("other#{}", i), 0, 0, Right());
  }
  EXPECT_EQ(Form("job", 1, 1, 1), group);
  EXPECT_THAT(Run("job"), HasSubstr("rank 1 on node 2 sent nothing for 300 ms"));
}

TEST_F(CommunicatorBoundsTest, WhoSendsMoreThanMayBeHeldIsOutOfTheGroup) {
  const std::string group = Form("job", 1, 1, 1);
  absl::Status last;
  std::size_t taken = 0;
  while (last.ok() && taken < 1000) {
    last = SayData(1, group, 0, 2, ChunkOf(8192));
    if (last.ok()) ++taken;
  }
  EXPECT_EQ(last.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(taken, kHeldOfPeer / 8192);
  EXPECT_GE(taken, kHeldOfPeer / 8192 - 1);
  EXPECT_EQ(Message(last),
            "messages of node 1 that nobody has read would hold more than 65536 bytes");
  EXPECT_TRUE(SayData(1, group, 0, 2, Closing{}).ok()) << "who is out is not heard";
  EXPECT_THAT(Run("job"), HasSubstr("rank 0 on node 1 is gone: messages of node 1 that nobody has "
                                    "read would hold more than 65536 bytes"));
  // The messages of a group go with the group.
  const std::string next = Form("job", 2, 2, 2);
  EXPECT_TRUE(SayData(1, next, 0, 2, ChunkOf(40'000)).ok());
}

TEST_F(CommunicatorBoundsTest, EmptyMessagesAreBoundedToo) {
  const std::string group = Form("job", 1, 1, 1);
  int taken = 0;
  while (taken < 10'000 && SayData(1, group, 0, 2, Closing{}).ok()) ++taken;
  EXPECT_LT(taken, 1000);
}

TEST_F(CommunicatorBoundsTest, AllPeersTogetherHoldABoundedNumberOfBytes) {
  const std::string group = Form("job", 1, 1, 1);
  ASSERT_TRUE(SayData(1, group, 0, 2, ChunkOf(60'000)).ok());
  const absl::Status refused = SayData(2, group, 1, 2, ChunkOf(60'000));
  EXPECT_EQ(Message(refused),
            "messages of all nodes that nobody has read would hold more than 102400 bytes");
}

// ---- A thief: a peer that speaks for ranks of other nodes
// ----------------------------------------

TEST_F(CommunicatorBoundsTest, AStrangersRefusalSendsNobodyAway) {
  ASSERT_TRUE(SayJoin(1, "job", 0, 1).ok());
  const absl::Status told = WhileRankWaits([&] {
    const absl::Status stranger = Say(3, EncodeLeave({"job", 1, 7, "go away", true}));
    EXPECT_EQ(stranger.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(Message(stranger),
              "communicator \"job\": node 3 refuses it for rank 1, which it has not joined");
    // Nor may node 3 end a join of node 1 or of this node.
    EXPECT_TRUE(absl::IsPermissionDenied(Say(3, EncodeLeave({"job", 0, 1, "go away", true}))));
    EXPECT_TRUE(absl::IsPermissionDenied(Say(3, EncodeLeave({"job", 2, 2, "go away", true}))));
    // A join of another communicator gives no right here.
    ASSERT_TRUE(SayJoin(3, "other", 1, 20).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(Say(3, EncodeLeave({"job", 1, 21, "go away", true}))));
    EXPECT_TRUE(SayJoin(2, "job", 1, 1).ok());
  });
  EXPECT_TRUE(told.ok()) << told;
}

TEST_F(CommunicatorBoundsTest, AWaitingRankKeepsItsPlaceAgainstJoinsOfOtherNodes) {
  const absl::Status told = WhileRankWaits([&] {
    const absl::Status thief = SayJoin(3, "job", 2, 1);
    EXPECT_EQ(thief.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(Message(thief),
              "communicator \"job\": node 3 joins as rank 2, whose place node 0 has; it waits "
              "until that is free");
    const absl::Status refusal = Say(3, EncodeLeave({"job", 2, 1, "go away", true}));
    EXPECT_EQ(Message(refusal),
              "communicator \"job\": node 3 refuses it for rank 2, which is of another node");
    // A join behind a holder sends nobody away, even with another world size.
    EXPECT_TRUE(absl::IsPermissionDenied(SayJoin(3, "job", 2, 2, 5)));
    EXPECT_TRUE(SayJoin(1, "job", 0, 1).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(SayJoin(3, "job", 0, 3))) << "node 1 waits";
    EXPECT_TRUE(SayJoin(2, "job", 1, 1).ok());
  });
  EXPECT_TRUE(told.ok()) << told;
  const std::string group = GroupKey("job", 1, 1, 1);
  EXPECT_TRUE(SayData(1, group, 0, 2, Right()).ok()) << "rank 0 is node 1's";
  EXPECT_TRUE(absl::IsPermissionDenied(SayData(3, group, 0, 2, Right())));
}

// A pod was moved from node 1 to node 3, and the end of its first join comes late.
TEST_F(CommunicatorBoundsTest, AWaitingJoinTakesThePlaceWhenTheHolderLeavesOrIsLost) {
  for (const bool lost : {false, true}) {
    SCOPED_TRACE(lost);
    const std::uint64_t number = lost ? 2 : 1;
    ASSERT_TRUE(SayJoin(1, "job", 0, number).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(SayJoin(3, "job", 0, number)));
    ASSERT_TRUE(SayJoin(2, "job", 1, number).ok());
    if (lost) {
      node_->OnPeerLost(1, LostConnection::kFromPeer, absl::AbortedError("it left"));
    } else {
      ASSERT_TRUE(Say(1, EncodeLeave({"job", 0, number, "it left"})).ok());
    }
    ASSERT_TRUE(JoinHere("job", 2).ok());
    const std::string group = fmt::format("job#3.{0}#2.{0}#0.{0}", number);
    EXPECT_TRUE(SayData(3, group, 0, 2, Right()).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(SayData(1, group, 0, 2, Right())));
  }
}

TEST_F(CommunicatorBoundsTest, PlacesBehindOthersAreBoundedToo) {
  for (std::uint64_t i = 1; i <= kWaitingOfNode; ++i) {
    const std::string id = fmt::format("job-{}", i);
    if (i % 2 == 0) {
      EXPECT_TRUE(SayJoin(1, id, 0, i).ok());
    }
    EXPECT_EQ(SayJoin(3, id, 0, i).ok(), i % 2 == 1);
  }
  EXPECT_EQ(Message(SayJoin(3, "one-more", 0, 100)),
            "rank 0 of communicator \"one-more\": pods of node 3 wait for others in 8 places "
            "already, and more may not");
}

TEST_F(CommunicatorBoundsTest, ANodeTellsOfItsOwnChipsAndLinksOnly) {
  const auto say = [&](NodeLinks view) { return Say(1, EncodeLinks(view)); };
  const LinkId own = TorusLinks::IdOf(ChipIndex(31), torus::Axis::kX, torus::Direction::kPlus);
  EXPECT_TRUE(
      say({.node = 1, .epoch = 1, .unhealthy = {{own, 500}}, .dead = {ChipIndex(16)}}).ok());
  const absl::Status dead = say({.node = 1, .epoch = 2, .dead = {ChipIndex(16), ChipIndex(3)}});
  EXPECT_EQ(dead.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(dead), "node 1 tells the state of chip 3, which is not its own");
  EXPECT_TRUE(absl::IsPermissionDenied(say({.epoch = 2, .efa_down = {ChipIndex(32)}})));
  const LinkId others = TorusLinks::IdOf(ChipIndex(0), torus::Axis::kY, torus::Direction::kMinus);
  EXPECT_EQ(
      Message(say({.node = 0, .epoch = 2, .unhealthy = {{others, 0}}})),
      fmt::format("node 1 tells the state of {}, which is not its own", TorusLinks::Name(others)));
}

TEST_F(CommunicatorBoundsTest, ANodeJoinsWithItsOwnChipsOnly) {
  const absl::Status stolen =
      Say(2, EncodeJoin("job", 0, {.number = 1, .world_size = 3, .members = ChipOf(1)}));
  EXPECT_EQ(stolen.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(stolen),
            "rank 0 of communicator \"job\": node 2 joins with chip 16, which is not its own");
}

// Over loopback without TLS a peer may take any name; the name gives no more rights than it has.
TEST(UnprovenPeerTest, WhoeverConnectsOverLoopbackIsBoundByMembershipToo) {
  std::vector<std::string> lines;
  Mutex mutex;
  Communicators node({.links = {torus::kUltraServerShape, hw::kTrainium2.links},
                      .join_timeout = milliseconds(20'000)});
  const auto link = *PeerLink::Start({.node_id = 0,
                                      .ultra_server = "us-0",
                                      .listen_address = "127.0.0.1:0",
                                      .peers = {{1, "unix:/nowhere/1"}, {2, "unix:/nowhere/2"}},
                                      .log =
                                          [&](const std::string& line) {
                                            const MutexLock lock(mutex);
                                            lines.push_back(line);
                                          }},
                                     node, [&](PeerLink& made) { node.Connect(made); });
  const auto say = [](wire::Connection& to, std::uint64_t id, const wire::Request& message) {
    ASSERT_TRUE(to.Send(*wire::EncodeRequest(id, message)).ok());
  };
  const auto greet = [&](int as) {
    auto to = *wire::Connection::Dial(link->address().ToString(), milliseconds(20'000));
    say(*to, 0,
        {.method = "peerHello",
         .params = fmt::format(R"({{"nodeId": {}, "ultraServer": "us-0", "aliveMs": 0}})", as)});
    return to;
  };
  absl::Status told;
  std::jthread rank([&] {
    told = node.Join({.comm_id = "job", .rank = 2, .world_size = 3, .members = ChipOf(0)}).status();
  });
  while (node.OnPeerConnected(1).empty()) std::this_thread::yield();
  const auto thief = greet(2);
  say(*thief, 1, EncodeLeave({"job", 1, 7, "go away", true}));
  say(*thief, 2, EncodeJoin("job", 2, {.number = 8, .world_size = 3, .members = ChipOf(2)}));
  say(*thief, 3, EncodeJoin("job", 1, {.number = 9, .world_size = 3, .members = ChipOf(2)}));
  const auto other = greet(1);
  say(*other, 1, EncodeJoin("job", 0, {.number = 1, .world_size = 3, .members = ChipOf(1)}));
  rank.join();
  EXPECT_TRUE(told.ok()) << told;
  const MutexLock lock(mutex);
  EXPECT_THAT(lines, ::testing::Contains("a message of node 2 was dropped: communicator \"job\": "
                                         "node 2 refuses it for rank 1, which it has not joined"));
}

}  // namespace
}  // namespace tahoma::sim
