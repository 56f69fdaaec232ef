// A peer that says what no node of ours would: whatever it does, what it holds here has a bound,
// and it speaks for its own ranks only. Messages are handed to one node in the names of others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
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

// Node 0 of an UltraServer, with peers 1, 2 and 3 that take what it sends and say nothing.
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
    for (int id = 3; id >= 0; --id) Start(id);
    node_->Connect(*links_[0]);
    for (int peer = 1; peer < 4; ++peer) {
      while (!links_[0]->Connected(peer)) std::this_thread::yield();
    }
  }
  ~CommunicatorBoundsTest() override {
    for (auto& link : links_) link.reset();
    std::filesystem::remove_all(folder_);
  }

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
  void OnPeerLost(int, LostWay, const absl::Status&) override {}

  void Start(int id) {
    PeerLink::Options options{.node_id = id,
                              .ultra_server = "us-0",
                              .listen_address = Address(id),
                              .redial = milliseconds(5)};
    for (int peer = 0; peer < 4; ++peer) {
      if (peer != id) options.peers.push_back({peer, Address(peer)});
    }
    links_[static_cast<std::size_t>(id)] =
        *PeerLink::Start(options, id == 0 ? static_cast<PeerEvents&>(*node_) : *this);
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
  // The place that it has may be taken anew, others' places are theirs, and what is left is free.
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
  node_->OnPeerLost(1, LostWay::kFromPeer, absl::AbortedError("it left"));
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

// Numbers of joins are remembered, so that what is told twice counts once; not for ever.
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

TEST_F(CommunicatorBoundsTest, FirstWordsOfOnePeerDoNotDriveOutThoseOfAnother) {
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
  // With the group its messages are gone.
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

}  // namespace
}  // namespace tahoma::sim
