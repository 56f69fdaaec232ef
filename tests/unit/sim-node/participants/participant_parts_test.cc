// Participants whose ranks work in groups, by counts or by pairs: the data moves between their
// threads and is checked, and the times are those of all parts side by side.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

#include "lib/base/status.h"
#include "sim-node/participants/participant.h"
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

using Results = std::vector<absl::StatusOr<RunResult>>;

Results RunOn(const Fabric& fabric, const Pods& pods, const RunSpec& spec,
              std::function<void(int, int, PeerMessage&)> tamper = nullptr) {
  Exchange exchange;
  exchange.tamper = std::move(tamper);
  Results results;
  for (auto& of_rank :
       RunAll(pods, std::vector(pods.size(), std::vector{spec}),
              std::vector(pods.size(), std::vector<NodeLinks>{}), exchange, fabric)) {
    results.push_back(std::move(of_rank[0]));
  }
  return results;
}

RunSpec Spec(Operation operation, std::uint64_t bytes, Division division) {
  return {.request = {.operation = operation, .bytes = bytes, .type = ElementType::kInt32},
          .check = true,
          .seed = 3,
          .division = std::move(division)};
}

VirtualDuration TimeOfAll(const Results& results) {
  for (const auto& result : results) {
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    EXPECT_EQ(result->wrong_elements, 0U);
    EXPECT_EQ(result->time, results[0]->time);
  }
  return results[0]->time;
}

// Returns groups of `ranks`: each `size` in a row, or with equal distances.
std::vector<std::vector<int>> InRow(int ranks, int size) {
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(ranks / size));
  for (int rank = 0; rank < ranks; ++rank)
    groups[static_cast<std::size_t>(rank / size)].push_back(rank);
  return groups;
}
std::vector<std::vector<int>> Apart(int ranks, int size) {
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(ranks / size));
  for (int rank = 0; rank < ranks; ++rank) {
    groups[static_cast<std::size_t>(rank % (ranks / size))].push_back(rank);
  }
  return groups;
}

TEST(PartsOfParticipantsTest, GroupsOnTheirOwnInstancesHaveExactlyTheirSoloTime) {
  for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather,
                                    Operation::kReduceScatter, Operation::kAllToAll}) {
    const RunSpec spec = Spec(operation, 4 * 6400, {.groups = InRow(64, 16)});
    const VirtualDuration time = TimeOfAll(RunOn(Fabric(UltraServer()), WholeUltraServer(1), spec));
    const auto alone = PlanCollective(spec.request, MembersOf(0xffff), UltraServer());
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ(time, alone->times.end - alone->times.start) << Name(operation);
  }
}

// Each of two chips has a rank in both groups: all messages cross the same links.
TEST(PartsOfParticipantsTest, GroupsThatShareLinksTakeWhatTheirSchedulesTakeTogether) {
  const RunSpec spec = Spec(Operation::kAllReduce, 4 * 100'000, {.groups = {{0, 2}, {1, 3}}});
  const Pods pods = {MembersOf(0b01, 2), MembersOf(0b10, 2)};
  const VirtualDuration time = TimeOfAll(RunOn(Fabric(UltraServer()), pods, spec));
  const auto alone = PlanCollective(spec.request, MembersOf(0b11), UltraServer());
  ASSERT_TRUE(alone.ok()) << alone.status();
  const auto times = TimeSchedules({&alone->schedule, &alone->schedule}, UltraServer());
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(time, std::max((*times)[0].end, (*times)[1].end).time_since_epoch());
  EXPECT_GT(Nanoseconds(time), 1.4 * Nanoseconds(alone->times.end.time_since_epoch()));
}

TEST(PartsOfParticipantsTest, RanksOfOneChipMayBeInDifferentGroups) {
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kAllToAll, Operation::kSendReceive, Operation::kBroadcast}) {
    // Two ranks of each chip: the even ones are one group, the odd ones the other.
    const RunSpec spec = Spec(operation, 4 * 640, {.groups = Apart(32, 16)});
    const Pods pods = {MembersOf(0x00ff, 2), MembersOf(0xff00, 2)};
    TimeOfAll(RunOn(Fabric(UltraServer()), pods, spec));
  }
}

TEST(PartsOfParticipantsTest, RanksInNoGroupTakeNoPart) {
  const RunSpec spec = Spec(Operation::kAllReduce, 4 * 1000, {.groups = {{0, 1, 16, 17}}});
  TimeOfAll(RunOn(Fabric(UltraServer()), WholeUltraServer(1), spec));
}

// As a data-parallel job asks for: the same chip of every UltraServer.
TEST(PartsOfParticipantsTest, GroupsReachOverEfa) {
  const Fabric fabric({UltraServer(), UltraServer()}, hw::kTrainium2.links.efa);
  Pods pods(2);
  for (int chip = 0; chip < 8; ++chip) {
    for (int domain = 0; domain < 2; ++domain) {
      pods[static_cast<std::size_t>(domain)].push_back({.chip = Fabric::ChipOf(domain, chip)});
    }
  }
  const auto across =
      RunOn(fabric, pods, Spec(Operation::kAllReduce, 4 * 50'000, {.groups = Apart(16, 2)}));
  const auto inside =
      RunOn(fabric, pods, Spec(Operation::kAllReduce, 4 * 50'000, {.groups = InRow(16, 8)}));
  EXPECT_GT(TimeOfAll(across), Microseconds(15));
  const auto alone = PlanCollective({.bytes = 4 * 50'000, .type = ElementType::kInt32},
                                    MembersOf(0xff), UltraServer());
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(TimeOfAll(inside), alone->times.end - alone->times.start);
}

TEST(PartsOfParticipantsTest, DataFromAnotherGroupIsFoundWrong) {
  // The two groups' chunks have the same sizes and times; the tampering exchanges their payloads.
  const RunSpec spec = Spec(Operation::kAllGather, 4 * 8, {.groups = {{0, 2}, {1, 3}}});
  const Pods pods = {MembersOf(0b11), MembersOf(0b1100)};
  std::string kept;
  const auto results =
      RunOn(Fabric(UltraServer()), pods, spec, [&](int from, int, PeerMessage& message) {
        auto* chunk = std::get_if<Chunk>(&message);
        if (chunk == nullptr || from != 0) return;
        if (!kept.empty()) chunk->payload = kept;
        kept = chunk->payload;
      });
  ASSERT_TRUE(results[0].ok()) << results[0].status();
  EXPECT_EQ(results[0]->wrong_elements, 4U) << "what rank 3 got of rank 1";
}

TEST(PartsOfParticipantsTest, EvenCountsCostWhatAnAllToAllDoes) {
  const Pods pods = WholeUltraServer(1);
  const VariableCounts even{.send_counts = std::vector<std::uint64_t>(64, 100)};
  const auto time = TimeOfAll(
      RunOn(Fabric(UltraServer()), pods, Spec(Operation::kAllToAll, 4 * 6400, {.counts = {even}})));
  EXPECT_EQ(time, TimeOfAll(RunOn(Fabric(UltraServer()), pods,
                                  Spec(Operation::kAllToAll, 4 * 6400, {}))));
}

// Everybody sends a block to rank 0, as to a hot expert. Routes end along Z, and of the four planes
// the two behind one Z link of chip 0 send through it.
TEST(PartsOfParticipantsTest, UnevenCountsAreLimitedByTheFullestLinkIntoTheChipThatGetsMost) {
  const std::uint64_t block = 5000;
  VariableCounts hot{.send_counts = std::vector<std::uint64_t>(64, 0)};
  hot.send_counts[0] = block;
  const VirtualDuration time =
      TimeOfAll(RunOn(Fabric(UltraServer()), WholeUltraServer(1),
                      Spec(Operation::kAllToAll, 4 * 64 * block, {.counts = {hot}})));
  const std::uint64_t z_link = UltraServer().capacity(
      TorusLinks::IdOf(torus::ChipIndex(0), torus::Axis::kZ, torus::Direction::kPlus));
  EXPECT_EQ(time, testing::kTableTiming.step + TransferTime(32 * 4 * block, z_link));
}

TEST(PartsOfParticipantsTest, CountsOfEveryRankMoveTheirOwnData) {
  Division division;
  for (std::uint64_t rank = 0; rank < 16; ++rank) {
    VariableCounts own;
    for (std::uint64_t to = 0; to < 16; ++to) own.send_counts.push_back((rank * 7 + to * 3) % 11);
    division.counts.push_back(std::move(own));
  }
  const Pods pods = {MembersOf(0b11, 4), MembersOf(0b1100, 4)};
  TimeOfAll(RunOn(Fabric(UltraServer()), pods, Spec(Operation::kAllToAll, 4 * 200, division)));
}

TEST(PartsOfParticipantsTest, APermuteByPairsGoesBetweenAnyRanks) {
  const Division division{.pairs = {{0, 3}, {3, 0}, {1, 1}, {4, 2}}};
  const Pods pods = {MembersOf(0x0401, 2), MembersOf(0x2000, 2)};  // no two are side by side
  TimeOfAll(RunOn(Fabric(UltraServer()), pods, Spec(Operation::kPermute, 4 * 500, division)));
}

TEST(PartsOfParticipantsTest, OnesAreCheckedAndTooManyForTheTypeRefused) {
  RunSpec spec = Spec(Operation::kAllReduce, 4 * 999, {});
  spec.ones = true;
  const Pods pods = WholeUltraServer(4);  // 256 ranks
  for (const ElementType type :
       {ElementType::kInt8, ElementType::kBf16, ElementType::kFp32, ElementType::kFp32r}) {
    spec.request.type = type;
    TimeOfAll(RunOn(Fabric(UltraServer()), pods, spec));
  }
  spec.request.type = ElementType::kFp8E4m3;
  for (const auto& result : RunOn(Fabric(UltraServer()), pods, spec)) {
    EXPECT_EQ(tahoma::Message(result.status()),
              "the ones of 256 ranks add up to 256, but fp8_e4m3 is exact up to 16; ask for random "
              "data");
  }
  spec.op = ReduceOp::kMax;
  TimeOfAll(RunOn(Fabric(UltraServer()), pods, spec));
}

TEST(PartsOfParticipantsTest, AWrongElementAmongOnesIsCounted) {
  RunSpec spec = Spec(Operation::kAllReduce, 4 * 100, {});
  spec.ones = true;
  const Pods pods = {MembersOf(0b1), MembersOf(0b10)};
  bool done = false;
  const auto results =
      RunOn(Fabric(UltraServer()), pods, spec, [&](int, int, PeerMessage& message) {
        auto* chunk = std::get_if<Chunk>(&message);
        if (chunk == nullptr || done) return;
        chunk->payload[0] = 9;
        done = true;
      });
  ASSERT_TRUE(results[0].ok()) << results[0].status();
  EXPECT_GT(results[0]->wrong_elements, 0U);
}

TEST(PartsOfParticipantsTest, RanksThatDivideDifferentlyAreRefused) {
  Exchange exchange;
  const Pods pods = {MembersOf(0b11), MembersOf(0b1100)};
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      QueuePeer peer(exchange, rank);
      Participant self(UltraServer(), pods, rank, peer);
      Division division{.groups = {{0, 1}, {2, 3}}};
      if (rank == 1) division.groups = {{0, 2}, {1, 3}};
      const auto result = self.Run(Spec(Operation::kAllReduce, 400, division), {});
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(tahoma::Message(result.status()), ::testing::HasSubstr("divided as"));
    });
  }
}

}  // namespace
}  // namespace tahoma::sim
