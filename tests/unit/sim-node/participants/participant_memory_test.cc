// Accesses of participants in threads of a process, against plain arrays of bytes.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/participants/participant.h"
#include "tests/unit/sim-node/emulator/collective/support.h"
#include "tests/unit/sim-node/participants/queue_peers.h"

namespace tahoma::sim {
namespace {

using testing::Exchange;
using testing::Pods;
using testing::QueuePeer;
using torus::ChipIndex;

constexpr std::uint64_t kBytes = 100'000;  // of each chip's memory
// Chips 0, 1, 4, 5, 16 and 17 are connected, so no link of other chips is used.
constexpr torus::ChipMask kGang = 0x3'0033;

class ParticipantMemoryTest : public ::testing::Test {
 protected:
  using Results = std::vector<std::vector<absl::StatusOr<AccessResult>>>;

  // Two chips for each of three ranks, on two nodes of an UltraServer.
  ParticipantMemoryTest() {
    for (const torus::ChipMask mask : {kGang & 0xf, kGang & 0xf0, kGang & ~torus::ChipMask{0xff}}) {
      std::vector<ClaimMemory::Share> shares;
      pods_.push_back(MembersOf(mask));
      for (const Member& member : pods_.back()) {
        shares.push_back({member.chip, kBytes});
        plain_[member.chip.value()] = std::string(kBytes, '\0');
        chips_.push_back(member.chip.value());
      }
      memories_.push_back(node_.Of(fmt::format("claim-{}", memories_.size()), shares));
    }
  }

  std::size_t OwnerOf(int chip) const {
    for (std::size_t rank = 0; rank < pods_.size(); ++rank) {
      for (const Member& member : pods_[rank]) {
        if (member.chip.value() == chip) return rank;
      }
    }
    return pods_.size();
  }
  void Fill(int chip, const std::string& bytes) {
    ASSERT_TRUE(memories_[OwnerOf(chip)]->Write({ChipIndex(chip), 0}, bytes).ok());
    plain_[chip].replace(0, bytes.size(), bytes);
  }
  // Every participant runs its specs in sequence, and stops at an error that ends the group.
  Results Run(const std::vector<std::vector<AccessSpec>>& specs,
              const std::vector<NodeLinks>& views = {}) {
    Results results(pods_.size());
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < pods_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        QueuePeer peer(*exchange_, static_cast<int>(rank));
        Participant self(testing::UltraServer({}), pods_, static_cast<int>(rank), peer);
        for (const AccessSpec& spec : specs[rank]) {
          results[rank].push_back(self.Access(spec, *memories_[rank], views));
          const absl::Status& status = results[rank].back().status();
          if (absl::IsAborted(status) || absl::IsInternal(status)) break;
        }
        exchange_->Lose(static_cast<int>(rank));
      });
    }
    threads.clear();
    return results;
  }
  // Runs an operation that every participant must refuse in the same way.
  absl::Status Refusal(const std::vector<AccessSpec>& specs,
                       const std::vector<NodeLinks>& views = {}) {
    std::vector<std::vector<AccessSpec>> all;
    for (const AccessSpec& spec : specs) all.push_back({spec});
    exchange_ = std::make_unique<Exchange>();
    const Results results = Run(all, views);
    for (const auto& result : results) EXPECT_EQ(result[0].status(), results[0][0].status());
    ExpectMemories();
    return results[0][0].status();
  }
  void ExpectMemories() const {
    for (const int chip : chips_) {
      const auto bytes = memories_[OwnerOf(chip)]->Read({{ChipIndex(chip), 0}, kBytes});
      EXPECT_TRUE(bytes.ok() && *bytes == plain_.at(chip)) << "chip " << chip;
    }
  }
  // Applies a batch to plain arrays: reads all sources, then writes all landings in order.
  void Replay(const std::vector<MemoryAccess>& batch) {
    std::vector<std::string> moved;
    for (const MemoryAccess& one : batch) {
      moved.push_back(plain_[one.source().chip.value()].substr(one.source().address, one.bytes));
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      plain_[batch[i].target().chip.value()].replace(batch[i].target().address, batch[i].bytes,
                                                     moved[i]);
    }
  }

  Pods pods_;
  std::vector<int> chips_;
  NodeMemory node_{8 << 20};
  std::vector<std::shared_ptr<ClaimMemory>> memories_;
  std::map<int, std::string> plain_;
  std::unique_ptr<Exchange> exchange_ = std::make_unique<Exchange>();
};

MemoryAccess Access(AccessKind kind, MemoryPlace local, MemoryPlace remote, std::uint64_t bytes) {
  return {.kind = kind, .local = local, .remote = remote, .bytes = bytes};
}

TEST_F(ParticipantMemoryTest, RandomAccessesLeaveWhatPlainArraysWouldHoldAndTakeTheBatchsTime) {
  Rng rng(17);
  for (const int chip : chips_) {
    std::string bytes(kBytes, '\0');
    for (char& c : bytes) c = static_cast<char>(rng.Below(256));
    Fill(chip, bytes);
  }
  constexpr int kOperations = 6;
  std::vector<std::vector<AccessSpec>> specs(pods_.size());
  std::vector<BatchTimes> expected;
  for (int operation = 0; operation < kOperations; ++operation) {
    std::vector<MemoryAccess> batch;
    for (std::size_t rank = 0; rank < pods_.size(); ++rank) {
      AccessSpec spec;
      // Few places, so accesses meet.
      for (std::uint64_t i = rng.Below(12); i > 0; --i) {
        const std::uint64_t bytes = 1 + rng.Below(40'000);
        const auto place = [&](int chip) {
          return MemoryPlace{ChipIndex(chip), rng.Below(kBytes - bytes + 1)};
        };
        const int own = pods_[rank][rng.Below(2)].chip.value();
        spec.accesses.push_back(Access(rng.Chance(1, 2) ? AccessKind::kRead : AccessKind::kWrite,
                                       place(own), place(chips_[rng.Below(chips_.size())]), bytes));
      }
      batch.insert(batch.end(), spec.accesses.begin(), spec.accesses.end());
      specs[rank].push_back(std::move(spec));
    }
    Replay(batch);
    const auto times = TimeAccesses(batch, testing::UltraServer({}), kGang);
    ASSERT_TRUE(times.ok()) << times.status();
    expected.push_back(*times);
  }
  const Results results = Run(specs);
  VirtualTime clock{};
  for (std::size_t operation = 0; operation < kOperations; ++operation) {
    clock += expected[operation].end.time_since_epoch();
    std::size_t next = 0;
    for (std::size_t rank = 0; rank < pods_.size(); ++rank) {
      const auto& result = results[rank][operation];
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->time, expected[operation].end.time_since_epoch());
      EXPECT_EQ(result->end, clock);
      ASSERT_EQ(result->times.size(), specs[rank][operation].accesses.size());
      for (std::size_t i = 0; i < result->times.size(); ++i, ++next) {
        EXPECT_EQ(result->times[i], expected[operation].ends[next].time_since_epoch());
        EXPECT_EQ(result->hops[i], expected[operation].hops[next]);
      }
    }
  }
  ExpectMemories();
}

TEST_F(ParticipantMemoryTest, AReadBesideAWriteFindsWhatWasThereBefore) {
  Fill(0, "first");
  Fill(4, "other");
  const MemoryAccess write = Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(4), 0}, 5);
  const MemoryAccess read = Access(AccessKind::kRead, {ChipIndex(16), 0}, {ChipIndex(4), 0}, 5);
  const auto results = Run({{{.accesses = {write}}}, {{}}, {{.accesses = {read}}}});
  ASSERT_TRUE(results[2][0].ok()) << results[2][0].status();
  Replay({write, read});
  EXPECT_EQ(plain_[4].substr(0, 5), "first");
  EXPECT_EQ(plain_[16].substr(0, 5), "other");
  ExpectMemories();
}

TEST_F(ParticipantMemoryTest, OfTwoWritesToOnePlaceTheHigherRanksStays) {
  Fill(0, "zero");
  Fill(16, "two!");
  const MemoryAccess low = Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(5), 0}, 4);
  const MemoryAccess high = Access(AccessKind::kWrite, {ChipIndex(16), 0}, {ChipIndex(5), 2}, 4);
  Run({{{.accesses = {low}}}, {{}}, {{.accesses = {high}}}});
  plain_[5].replace(0, 6, "zetwo!");
  ExpectMemories();
}

TEST_F(ParticipantMemoryTest, WithoutMovingOnlyTimePasses) {
  Fill(0, "stays");
  const AccessSpec spec = {
      .accesses = {Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(16), 0}, 5)},
      .move = false};
  const auto results = Run({{spec}, {{.move = false}}, {{.move = false}}});
  ASSERT_TRUE(results[0][0].ok()) << results[0][0].status();
  EXPECT_GT(results[2][0]->time, VirtualDuration(0));
  ExpectMemories();
}

TEST_F(ParticipantMemoryTest, ChipsOfOthersAreRefusedToAllAlike) {
  const AccessSpec outside = {
      .accesses = {Access(AccessKind::kRead, {ChipIndex(0), 0}, {ChipIndex(9), 0}, 1)}};
  EXPECT_EQ(Refusal({outside, {}, {}}),
            PermissionDenied("access 0 of rank 0: chip 9 belongs to no rank of the gang"));
  const AccessSpec not_own = {
      .accesses = {Access(AccessKind::kRead, {ChipIndex(0), 0}, {ChipIndex(4), 0}, 1)}};
  EXPECT_EQ(Refusal({{}, {}, not_own}),
            PermissionDenied("access 0 of rank 2: chip 0 is not its own"));
  const AccessSpec nowhere = {
      .accesses = {Access(AccessKind::kRead, {ChipIndex(0), 0}, {ChipIndex(999), 0}, 1)}};
  EXPECT_FALSE(Refusal({nowhere, {}, {}}).ok());
}

TEST_F(ParticipantMemoryTest, AnAddressBeyondAMemoryIsRefusedByItsOwnerToAll) {
  Fill(0, "stays");
  const AccessSpec spec = {
      .accesses = {Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(4), 0}, 5),
                   Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(16), kBytes - 4}, 5)}};
  EXPECT_EQ(Refusal({spec, {}, {}}),
            OutOfRange("the memory of rank 2: chip 16: 5 bytes from 99996 are not in a memory of "
                       "100000"));
}

TEST_F(ParticipantMemoryTest, WhatAHostCannotKeepIsRefusedToAllAndTakesNothing) {
  NodeMemory small(kHbmPageBytes);
  memories_[2] = small.Of("claim", {{ChipIndex(16), kBytes}, {ChipIndex(17), kBytes}});
  const AccessSpec spec = {
      .accesses = {Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(16), 0}, 1),
                   Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(17), 0}, 1)}};
  const absl::Status refused = Refusal({spec, {}, {}});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(small.resident_bytes(), 0U);
}

TEST_F(ParticipantMemoryTest, TooManyAccessesOrDifferentWishesAreRefusedAndTheNextOperationRuns) {
  const MemoryAccess one = Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(4), 0}, 1);
  const AccessSpec many = {.accesses = std::vector<MemoryAccess>(kMaxAccesses + 1, one)};
  const AccessSpec none;
  const AccessSpec timed = {.move = false};
  const auto results = Run({{many, none, none}, {none, timed, none}, {none, none, none}});
  for (const auto& rank : results) {
    EXPECT_EQ(rank[0].status(), InvalidArgument("rank 0 lists more than 256 accesses"));
    EXPECT_EQ(rank[1].status().code(), absl::StatusCode::kInvalidArgument) << rank[1].status();
    EXPECT_TRUE(rank[2].ok()) << rank[2].status();
  }
}

TEST_F(ParticipantMemoryTest, ADeadChipOfTheGangEndsItWithTheNrtErrorForAll) {
  const std::vector<NodeLinks> views = {{.node = 1, .epoch = 1, .dead = {ChipIndex(17)}}};
  EXPECT_EQ(Refusal({{}, {}, {}}, views),
            Aborted("NRT_EXEC_HW_ERR_COLLECTIVES (1200): chip 17 is dead"));
}

TEST_F(ParticipantMemoryTest, BytesWithAnUnexpectedArrivalTimeAreAnError) {
  exchange_->tamper = [](int from, int, PeerMessage& message) {
    auto* chunk = std::get_if<Chunk>(&message);
    if (from == 0 && chunk != nullptr && chunk->step == 2) chunk->arrival += VirtualDuration(1);
  };
  const AccessSpec spec = {
      .accesses = {Access(AccessKind::kWrite, {ChipIndex(0), 0}, {ChipIndex(4), 0}, 1)}};
  const auto results = Run({{spec}, {{}}, {{}}});
  EXPECT_EQ(results[1][0].status().code(), absl::StatusCode::kInternal);
}

TEST_F(ParticipantMemoryTest, ALostRankEndsTheGroupForAllRanks) {
  exchange_->Lose(1);
  const auto results = Run({{{}}, {}, {{}}});
  EXPECT_TRUE(absl::IsAborted(results[0][0].status())) << results[0][0].status();
}

// Two pods in each of two UltraServers, interleaved: ranks 0 and 2 in the first, ranks 1 and 3 in
// the second; each pod has two chips, with the same numbers in both UltraServers.
class MemoryOfDomainsTest : public ::testing::Test {
 protected:
  MemoryOfDomainsTest() {
    for (int rank = 0; rank < 4; ++rank) {
      std::vector<ClaimMemory::Share> shares;
      pods_.emplace_back();
      for (const int local : {rank / 2 * 16, rank / 2 * 16 + 1}) {
        pods_.back().push_back({.chip = Fabric::ChipOf(rank % 2, local)});
        shares.push_back({ChipIndex(local), kBytes});
      }
      memories_.push_back(node_.Of(fmt::format("claim-{}", rank), shares));
    }
  }

  std::vector<absl::StatusOr<AccessResult>> Run(const std::vector<AccessSpec>& specs) {
    Exchange exchange;
    std::vector<absl::StatusOr<AccessResult>> results(4, absl::UnknownError("not run"));
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        QueuePeer peer(exchange, static_cast<int>(rank));
        Participant self(fabric_, pods_, static_cast<int>(rank), peer);
        results[rank] = self.Access(specs[rank], *memories_[rank], {});
        if (!results[rank].ok()) exchange.Lose(static_cast<int>(rank));
      });
    }
    threads.clear();
    return results;
  }

  const Fabric fabric_{{testing::UltraServer({}), testing::UltraServer({})}, 25'000'000'000};
  Pods pods_;
  NodeMemory node_{8 << 20};
  std::vector<std::shared_ptr<ClaimMemory>> memories_;
};

TEST_F(MemoryOfDomainsTest, AccessesWithinAnUltraServerTakeTheTimeOfTheUltraServerAlone) {
  std::vector<AccessSpec> specs(4);
  // by domain, with chips numbered within the domain
  std::vector<std::vector<MemoryAccess>> local(2);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const int own = static_cast<int>(rank) / 2 * 16;
    const int domain = static_cast<int>(rank) % 2;
    // Domain 1 moves four times as much.
    const std::uint64_t bytes = domain == 0 ? 20'000 : 80'000;
    ASSERT_TRUE(memories_[rank]
                    ->Write({ChipIndex(own), 0}, std::string(bytes, static_cast<char>('a' + rank)))
                    .ok());
    const int other = 17 - own;  // of the other rank in the domain
    local[rank % 2].push_back(
        Access(AccessKind::kWrite, {ChipIndex(own), 0}, {ChipIndex(other), 5}, bytes));
    specs[rank].accesses = {Access(AccessKind::kWrite, {Fabric::ChipOf(domain, own), 0},
                                   {Fabric::ChipOf(domain, other), 5}, bytes)};
  }
  const auto results = Run(specs);
  VirtualDuration all{};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(results[rank].ok()) << results[rank].status();
    const auto alone = TimeAccesses(local[rank % 2], fabric_.domain(0), 0x3'0003);
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(results[rank]->times[0], alone->ends[rank / 2].time_since_epoch());
    EXPECT_EQ(results[rank]->hops[0], alone->hops[rank / 2]);
    all = std::max<VirtualDuration>(all, alone->end.time_since_epoch());
    for (const LinkLoad& load : results[rank]->loads) {
      EXPECT_LT(load.link, fabric_.domain(0).id_count()) << "by its id in the domain";
    }
    const int other = 17 - static_cast<int>(rank) / 2 * 16;
    const std::size_t owner = rank < 2 ? rank + 2 : rank - 2;
    const auto arrived = memories_[owner]->Read({{ChipIndex(other), 5}, 20'000});
    ASSERT_TRUE(arrived.ok());
    EXPECT_EQ(*arrived, std::string(20'000, static_cast<char>('a' + rank)));
  }
  for (const auto& result : results) EXPECT_EQ(result->time, all);
}

TEST_F(MemoryOfDomainsTest, TheMemoryOfAnotherUltraServerIsRefusedToAllAndNothingChanges) {
  std::vector<AccessSpec> specs(4);
  specs[0].accesses = {
      Access(AccessKind::kWrite, {Fabric::ChipOf(0, 0), 0}, {Fabric::ChipOf(0, 16), 0}, 4),
      Access(AccessKind::kRead, {Fabric::ChipOf(0, 0), 0}, {Fabric::ChipOf(1, 17), 0}, 4)};
  ASSERT_TRUE(memories_[0]->Write({ChipIndex(0), 0}, "data").ok());
  for (const auto& result : Run(specs)) {
    EXPECT_EQ(
        result.status(),
        PermissionDenied("chip 0 of domain 0 shares no memory with chip 17 of domain 1: it ends "
                         "at the UltraServer"));
  }
  EXPECT_EQ(*memories_[2]->Read({{ChipIndex(16), 0}, 4}), std::string(4, '\0'));
}

}  // namespace
}  // namespace tahoma::sim
