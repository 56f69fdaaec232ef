// Participants in threads of one process, joined by queues: the results and times must be those of
// the same collective run in one piece, whatever the threads do.

#include "sim-node/participants/participant.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <thread>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/emulator/collective/support.h"
#include "tests/unit/sim-node/participants/queue_peers.h"

namespace tahoma::sim {
namespace {

using testing::Exchange;
using testing::Pods;
using testing::QueuePeer;
using testing::RunAll;
using testing::UltraServer;
using testing::WholeUltraServer;

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
      ASSERT_TRUE(of_rank[i]->bound.has_value());
      EXPECT_GT(*of_rank[i]->bound, VirtualDuration(0));
      EXPECT_LE(*of_rank[i]->bound, of_rank[i]->time);
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

TEST(ParticipantTest, ExchangesAroundDamageTakeTheSameRoutesInAllProcesses) {
  const Pods pods = WholeUltraServer(4);
  TorusLinks damaged = UltraServer();
  const LinkId broken =
      TorusLinks::IdOf(torus::ChipIndex(5), torus::Axis::kZ, torus::Direction::kPlus);
  ASSERT_TRUE(damaged.SetPermille(broken, 0).ok());
  std::vector<std::vector<NodeLinks>> views(4);
  views[0] = {{.node = 0, .epoch = 1, .unhealthy = {{broken, 0}}}};
  const std::vector<RunSpec> specs = {Checked(4 * 300'000, Operation::kAllToAll),
                                      Checked(4 * 300'000, Operation::kSendReceive),
                                      Checked(4 * 300'000, Operation::kPermute)};
  Exchange exchange;
  const auto results = RunAll(pods, std::vector(4, specs), views, exchange);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto alone = PlanCollective(specs[i].request, MembersOf(kAllChips, 4), damaged);
    ASSERT_TRUE(alone.ok());
    for (const auto& of_rank : results) {
      ASSERT_TRUE(of_rank[i].ok()) << of_rank[i].status();
      EXPECT_EQ(of_rank[i]->time, alone->times.end - alone->times.start);
      EXPECT_EQ(of_rank[i]->wrong_elements, 0u) << Name(specs[i].request.operation);
    }
  }
}

TEST(ParticipantTest, ExchangesOverOtherChipsNicsCarryTheirDataBetweenProcesses) {
  const Fabric fabric({UltraServer(), UltraServer()}, hw::kTrainium2.links.efa);
  Pods pods(2);
  std::vector<Member> all;
  for (int domain = 0; domain < 2; ++domain) {
    for (int chip = 0; chip < 16; ++chip) {
      pods[static_cast<std::size_t>(domain)].push_back({.chip = Fabric::ChipOf(domain, chip)});
      all.push_back({.chip = Fabric::ChipOf(domain, chip)});
    }
  }
  Fabric damaged = fabric;
  const std::vector<torus::ChipIndex> down = {Fabric::ChipOf(0, 3), Fabric::ChipOf(0, 15)};
  for (const torus::ChipIndex chip : down) ASSERT_TRUE(damaged.SetNicPermille(chip, 0).ok());
  std::vector<std::vector<NodeLinks>> views(2);
  views[0] = {{.node = 0, .epoch = 1, .efa_down = down}};
  const std::vector<RunSpec> specs = {Checked(4 * 40'000, Operation::kAllToAll),
                                      Checked(4 * 40'000, Operation::kSendReceive),
                                      Checked(4 * 40'000, Operation::kPermute)};
  Exchange exchange;
  const auto results = RunAll(pods, std::vector(2, specs), views, exchange, fabric);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto alone = PlanOnFabric(specs[i].request, all, damaged);
    ASSERT_TRUE(alone.ok()) << alone.status();
    if (i < 2) {
      EXPECT_GT(alone->schedule.relay_bytes, 0u);
    }
    for (const auto& of_rank : results) {
      ASSERT_TRUE(of_rank[i].ok()) << of_rank[i].status();
      EXPECT_EQ(of_rank[i]->time, alone->times.end - alone->times.start);
      EXPECT_EQ(of_rank[i]->wrong_elements, 0u) << Name(specs[i].request.operation);
    }
  }
}

TEST(ParticipantTest, AFlappingLinkThatOneNodeKnowsOfCostsAllTheSameByTheirCommonClock) {
  const Pods pods = WholeUltraServer(1);
  const LinkId link =
      TorusLinks::IdOf(torus::ChipIndex(21), torus::Axis::kX, torus::Direction::kPlus);
  const Flapping flapping{.period = Microseconds(300), .down = Microseconds(40)};
  const NodeLinks view{.node = 1, .epoch = 1, .unhealthy = {{link, 1000, 0, flapping}}};
  std::vector<std::vector<NodeLinks>> views(4);
  views[1] = {view};
  const std::vector<RunSpec> specs = {Checked(4 * 300'000), Checked(4 * 300'000),
                                      Checked(4 * 300'000)};
  Exchange exchange;
  const auto results = RunAll(pods, std::vector(4, specs), views, exchange);
  VirtualTime clock{};
  std::set<VirtualDuration> different;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto outlook = LinkOutlook::Of(Fabric(UltraServer()), {view}, clock);
    ASSERT_TRUE(outlook.ok()) << outlook.status();
    const auto plan =
        PlanCollective(specs[i].request, MembersOf(kAllChips), outlook->fabric().domain(0));
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto times = outlook->TimesOf(plan->schedule);
    ASSERT_TRUE(times.ok()) << times.status();
    const VirtualDuration time = times->end - times->start;
    clock += 3 * time;
    different.insert(time);
    for (const auto& result : results) {
      ASSERT_TRUE(result[i].ok()) << result[i].status();
      EXPECT_EQ(result[i]->time, time);
      EXPECT_EQ(result[i]->end, clock);
      EXPECT_EQ(result[i]->wrong_elements, 0U);
    }
  }
  EXPECT_GT(different.size(), 1U) << "each began in another part of the link's period";
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

TEST(ParticipantTest, AWrongBitInTransitIsCountedByEverybody) {
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

// The defect: the clock ran over and went on before the beginning.
TEST(ParticipantTest, WhatWouldEndAfterTheLastTimeIsRefusedAndAShorterOperationStillRuns) {
  Exchange exchange;
  QueuePeer nobody(exchange, 0);
  Participant self(UltraServer(), {MembersOf(0xffff)}, 0, nobody);
  const RunSpec often{.request = {.bytes = kMaxRequestBytes}, .iterations = kMaxRepeats};
  absl::StatusOr<RunResult> last = self.Run(often, {});
  ASSERT_TRUE(last.ok()) << last.status();
  for (int i = 0; i < 100'000; ++i) {
    const auto next = self.Run(often, {});
    if (!next.ok()) {
      EXPECT_TRUE(absl::IsOutOfRange(next.status())) << next.status();
      break;
    }
    ASSERT_GT(next->end, last->end) << i;
    last = next;
  }
  EXPECT_LE(last->end, kLastTime);
  EXPECT_TRUE(self.Run({.request = {.bytes = 4}}, {}).ok());
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

}  // namespace
}  // namespace tahoma::sim
