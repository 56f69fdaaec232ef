// Participants in threads of one process, joined by queues: the results and times must be those of
// the same collective run in one piece, whatever the threads do.

#include "sim-node/collective/participant.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::UltraServer;

// All queues between some participants. Can lose a participant, or lie for one.
class Exchange {
 public:
  void Put(int from, int to, PeerMessage message) {
    const std::lock_guard lock(mutex_);
    if (tamper) tamper(from, to, message);
    queues_[{from, to}].push_back(std::move(message));
    changed_.notify_all();
  }
  absl::StatusOr<PeerMessage> Take(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{from, to}];
    changed_.wait(lock, [&] { return !queue.empty() || gone_.contains(from); });
    if (queue.empty()) return Aborted("rank {} is gone", from);
    PeerMessage message = std::move(queue.front());
    queue.pop_front();
    return message;
  }
  void Lose(int rank) {
    const std::lock_guard lock(mutex_);
    gone_.insert(rank);
    changed_.notify_all();
  }

  std::function<void(int from, int to, PeerMessage&)> tamper;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<PeerMessage>> queues_;
  std::set<int> gone_;
};

class QueuePeer final : public Peer {
 public:
  QueuePeer(Exchange& exchange, int self) : exchange_(exchange), self_(self) {}
  absl::Status Send(int rank, PeerMessage message) override {
    exchange_.Put(self_, rank, std::move(message));
    return absl::OkStatus();
  }
  absl::StatusOr<PeerMessage> Receive(int rank) override { return exchange_.Take(rank, self_); }

 private:
  Exchange& exchange_;
  const int self_;
};

using Pods = std::vector<std::vector<Member>>;

// Four pods with a whole instance each.
Pods WholeUltraServer(int ranks_per_chip) {
  Pods pods;
  for (int z = 0; z < 4; ++z) pods.push_back(MembersOf(0xffffull << (16 * z), ranks_per_chip));
  return pods;
}

// Runs `specs` one after the other on every participant; a participant that fails leaves.
std::vector<std::vector<absl::StatusOr<RunResult>>> RunAll(
    const Pods& pods, const std::vector<std::vector<RunSpec>>& specs,
    const std::vector<std::vector<NodeLinks>>& views, Exchange& exchange) {
  std::vector<std::vector<absl::StatusOr<RunResult>>> results(pods.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < pods.size(); ++rank) {
    threads.emplace_back([&, rank] {
      QueuePeer peer(exchange, static_cast<int>(rank));
      Participant self(UltraServer(), pods, static_cast<int>(rank), peer);
      for (const RunSpec& spec : specs[rank]) {
        results[rank].push_back(self.Run(spec, views[rank]));
        if (!results[rank].back().ok()) break;
      }
      exchange.Lose(static_cast<int>(rank));
    });
  }
  threads.clear();
  return results;
}

RunSpec Checked(std::uint64_t bytes, Operation operation = Operation::kAllReduce) {
  return {.request = {.operation = operation, .bytes = bytes, .type = ElementType::kFp32},
          .op = ReduceOp::kSum,
          .warmup = 1,
          .iterations = 2,
          .check = true,
          .seed = 5};
}

TEST(ParticipantTest, FourProcessesGetTheDataAndTheTimesOfOne) {
  const Pods pods = WholeUltraServer(4);
  const std::vector<RunSpec> specs = {Checked(4 * 5000),
                                      Checked(4 * 300'000),
                                      Checked(4 * 3333, Operation::kAllGather),
                                      Checked(4 * 3333, Operation::kReduceScatter),
                                      Checked(4 * 3333, Operation::kAllToAll),
                                      Checked(4 * 3333, Operation::kSendReceive),
                                      Checked(4 * 3333, Operation::kPermute),
                                      Checked(4 * 3333, Operation::kBroadcast)};
  Exchange exchange;
  const auto results =
      RunAll(pods, std::vector(4, specs), std::vector(4, std::vector<NodeLinks>{}), exchange);
  VirtualTime clock;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto alone = PlanCollective(specs[i].request, MembersOf(kAllChips, 4), UltraServer());
    ASSERT_TRUE(alone.ok());
    clock += 3 * (alone->times.end - alone->times.start);
    for (const auto& of_rank : results) {
      ASSERT_TRUE(of_rank[i].ok()) << of_rank[i].status();
      EXPECT_EQ(of_rank[i]->time, alone->times.end - alone->times.start);
      EXPECT_EQ(of_rank[i]->end, clock);
      EXPECT_EQ(of_rank[i]->wrong_elements, 0u);
      EXPECT_EQ(of_rank[i]->algorithm, alone->algorithm);
      EXPECT_EQ(of_rank[i]->ranks, 256);
      EXPECT_EQ(of_rank[i]->chips, 64);
    }
  }
}

TEST(ParticipantTest, TwoPodsMayShareAnInstance) {
  const Pods pods = {MembersOf(0x00ff, 2), MembersOf(0xff00, 4), MembersOf(0xffff'0000, 1)};
  Exchange exchange;
  const auto results = RunAll(pods, std::vector(3, std::vector{Checked(4 * 777)}),
                              std::vector(3, std::vector<NodeLinks>{}), exchange);
  for (const auto& of_rank : results) {
    ASSERT_TRUE(of_rank[0].ok()) << of_rank[0].status();
    EXPECT_EQ(of_rank[0]->wrong_elements, 0u);
    EXPECT_EQ(of_rank[0]->ranks, 8 * 2 + 8 * 4 + 16);
  }
}

TEST(ParticipantTest, WhatOneNodeKnowsOfItsBrokenLinkAllTakeIntoAccount) {
  const Pods pods = {MembersOf(0xff), MembersOf(0xff'0000), MembersOf(0xff00)};
  TorusLinks damaged = UltraServer();
  const LinkId broken =
      TorusLinks::IdOf(torus::ChipIndex(17), torus::Axis::kZ, torus::Direction::kPlus);
  ASSERT_TRUE(damaged.SetPermille(broken, 0).ok());
  std::vector<std::vector<NodeLinks>> views(3);
  views[1] = {{.node = 1, .epoch = 2, .unhealthy = {{broken, 0}}}};
  views[2] = {{.node = 1, .epoch = 1, .unhealthy = {}}};  // old news
  Exchange exchange;
  const RunSpec spec = Checked(4 * 50'000);
  const auto results = RunAll(pods, std::vector(3, std::vector{spec}), views, exchange);
  std::vector<Member> members;
  for (const auto& pod : pods) members.insert(members.end(), pod.begin(), pod.end());
  const auto alone = PlanCollective(spec.request, members, damaged);
  ASSERT_TRUE(alone.ok());
  for (const auto& of_rank : results) {
    ASSERT_TRUE(of_rank[0].ok()) << of_rank[0].status();
    EXPECT_EQ(of_rank[0]->time, alone->times.end - alone->times.start);
    EXPECT_EQ(of_rank[0]->wrong_elements, 0u);
  }
}

TEST(ParticipantTest, AParticipantThatDiesInTheMiddleEndsItForAll) {
  const Pods pods = WholeUltraServer(1);
  Exchange exchange;
  int seen = 0;
  exchange.tamper = [&](int from, int, PeerMessage& message) {
    // Rank 2's data never comes after a while: its chunks turn into something out of order, as a
    // process that lost its memory would send.
    if (from == 2 && std::holds_alternative<Chunk>(message) && ++seen > 5) message = Closing{};
  };
  const auto results = RunAll(pods, std::vector(4, std::vector{Checked(4 * 500'000)}),
                              std::vector(4, std::vector<NodeLinks>{}), exchange);
  for (const auto& of_rank : results) EXPECT_FALSE(of_rank[0].ok());
}

TEST(ParticipantTest, AWrongBitOnTheWayIsCountedByEverybody) {
  const Pods pods = WholeUltraServer(1);
  Exchange exchange;
  bool done = false;
  exchange.tamper = [&](int from, int, PeerMessage& message) {
    if (from != 1 || done) return;
    if (auto* chunk = std::get_if<Chunk>(&message)) {
      chunk->payload[2] = static_cast<char>(chunk->payload[2] ^ 0x40);  // not rounded away
      done = true;
    }
  };
  const auto results = RunAll(pods, std::vector(4, std::vector{Checked(4 * 1000)}),
                              std::vector(4, std::vector<NodeLinks>{}), exchange);
  ASSERT_TRUE(results[0][0].ok());
  EXPECT_GT(results[0][0]->wrong_elements, 0u);
  for (const auto& of_rank : results) {
    EXPECT_EQ(of_rank[0]->wrong_elements, results[0][0]->wrong_elements);
  }
}

TEST(ParticipantTest, AnotherTimeInAMessageIsNoticed) {
  const Pods pods = {MembersOf(0xffff), MembersOf(0xffff'0000)};
  Exchange exchange;
  exchange.tamper = [&](int from, int, PeerMessage& message) {
    auto* chunk = std::get_if<Chunk>(&message);
    if (from == 1 && chunk != nullptr) chunk->arrival += VirtualDuration(1);
  };
  const auto results = RunAll(pods, std::vector(2, std::vector{Checked(4 * 1000)}),
                              std::vector(2, std::vector<NodeLinks>{}), exchange);
  EXPECT_EQ(results[0][0].status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(tahoma::Message(results[0][0].status()).find("they see different links"),
            std::string::npos);
}

TEST(ParticipantTest, DifferentRequestsAreRefusedByAllAndTheNextCommonOneWorks) {
  const Pods pods = {MembersOf(0xffff), MembersOf(0xffff'0000)};
  Exchange exchange;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      QueuePeer peer(exchange, rank);
      Participant self(UltraServer(), pods, rank, peer);
      const auto first = self.Run(Checked(rank == 0 ? 400 : 800), {});
      EXPECT_EQ(first.status().code(), absl::StatusCode::kInvalidArgument);
      if (rank == 0) {
        EXPECT_EQ(
            tahoma::Message(first.status()),
            "rank 0 asks for all_reduce of 400 bytes fp32 sum, 1 + 2 times, checked with seed "
            "5, rank 1 for all_reduce of 800 bytes fp32 sum, 1 + 2 times, checked with seed 5");
      }
      EXPECT_TRUE(self.Run(Checked(400), {}).ok());
    });
  }
}

TEST(ParticipantTest, MembersInDifferentModesRefuseToRunTogether) {
  const Pods pods = {MembersOf(0xffff), MembersOf(0xffff'0000)};
  Exchange exchange;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      QueuePeer peer(exchange, rank);
      Participant self(UltraServer(), pods, rank, peer);
      RunSpec spec = Checked(400);
      if (rank == 1) spec.mode = PlanMode::kAws;
      const auto refused = self.Run(spec, {});
      EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
      if (rank == 0) {
        EXPECT_EQ(
            tahoma::Message(refused.status()),
            "rank 0 asks for all_reduce of 400 bytes fp32 sum, 1 + 2 times, checked with seed 5, "
            "rank 1 for all_reduce of 400 bytes fp32 sum, 1 + 2 times, checked with seed 5, in "
            "mode aws");
      }
      spec.mode = PlanMode::kAws;
      const auto run = self.Run(spec, {});
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(run->wrong_elements, 0u);
    });
  }
}

TEST(ParticipantTest, AnImpossibleRequestIsRefusedByAllAndTheNextOneWorks) {
  const Pods pods = {MembersOf(0xffff), MembersOf(0xf'0000)};
  Exchange exchange;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      QueuePeer peer(exchange, rank);
      Participant self(UltraServer(), pods, rank, peer);
      const auto code = [&](const RunSpec& spec) { return self.Run(spec, {}).status().code(); };
      EXPECT_EQ(code(Checked(0)), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(code(Checked(kMaxRequestBytes + 4)), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(code(Checked(128 << 20)), absl::StatusCode::kResourceExhausted);
      // Each rank of an exchange has a buffer and a result of its own.
      EXPECT_EQ(code(Checked(40 << 20, Operation::kAllToAll)),
                absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(code(Checked(402)), absl::StatusCode::kInvalidArgument);
      RunSpec spec = Checked(400);
      spec.iterations = 0;
      EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(self.Run(Checked(400), {}).ok());
    });
  }
}

TEST(NewestTest, TheHighestEpochWinsInAnyOrder) {
  const NodeLinks old_one{.node = 1, .epoch = 1, .unhealthy = {{7, 0}}};
  const NodeLinks new_one{.node = 1, .epoch = 2, .unhealthy = {}};
  const NodeLinks other{.node = 0, .epoch = 9, .unhealthy = {{1, 500}}};
  const std::vector<NodeLinks> expected = {other, new_one};
  EXPECT_EQ(Newest({old_one, new_one, other}), expected);
  EXPECT_EQ(Newest({other, new_one, old_one}), expected);
}

}  // namespace
}  // namespace tahoma::sim
