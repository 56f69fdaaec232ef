// All-to-all, send-receive, permute and broadcast: who gets whose bytes, and in what time.

#include "sim-node/emulator/collective/algorithms/moves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/torus/path.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::MicrosecondsOf;
using testing::UltraServer;
using torus::ChipIndex;
using torus::ChipMask;

constexpr double kGB = 1e9;

using Bytes = std::vector<std::byte>;

// Every rank's buffer filled with noise, moved by the plan, and every rank's result. No pattern of
// the project's is involved.
class Ground {
 public:
  Ground(const Request& request, const std::vector<Member>& members, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<std::size_t> first;
    for (const Member& member : members) {
      memory_.emplace_back(ChipBufferBytes(request, member.ranks));
      first.push_back(buffers_.size());
      for (int rank = 0; rank < member.ranks; ++rank) {
        Bytes buffer(request.bytes);
        for (std::byte& one : buffer) one = static_cast<std::byte>(rng.Below(256));
        std::memcpy(&memory_.back()[static_cast<std::size_t>(rank) * request.bytes], buffer.data(),
                    buffer.size());
        buffers_.push_back(std::move(buffer));
      }
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (int rank = 0; rank < members[i].ranks; ++rank) {
        places_.push_back({i, static_cast<std::size_t>(members[i].ranks + rank) * request.bytes});
      }
      views_.push_back({.chip = members[i].chip, .bytes = memory_[i]});
    }
    bytes_ = request.bytes;
  }

  void Run(const Plan& plan, ElementType type) {
    Execute(plan.schedule, type, ReduceOp::kSum, views_);
  }
  const Bytes& buffer(std::size_t rank) const { return buffers_[rank]; }
  std::size_t ranks() const { return buffers_.size(); }
  Bytes result(std::size_t rank) const {
    const auto& [chip, at] = places_[rank];
    const auto begin = memory_[chip].begin() + static_cast<std::ptrdiff_t>(at);
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes_)};
  }

 private:
  std::vector<Bytes> memory_;
  std::vector<Bytes> buffers_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;
  std::vector<ChipBuffer> views_;
  std::uint64_t bytes_ = 0;
};

std::vector<Member> RandomMembers(Rng& rng, bool same_ranks) {
  std::vector<Member> members = MembersOf(1 + rng.Below(0xffff));
  for (Member& member : members) {
    member.ranks = same_ranks ? 2 : 1 + static_cast<int>(rng.Below(4));
  }
  std::rotate(members.begin(),
              members.begin() + static_cast<std::ptrdiff_t>(rng.Below(members.size())),
              members.end());
  return members;
}

TEST(MovesTest, AnAllToAllGivesEveryRankItsBlockOfEverybody) {
  const TorusLinks links = Instance();
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    const std::vector<Member> members = RandomMembers(rng, false);
    const Request request{.operation = Operation::kAllToAll,
                          .bytes = 2 * (64 + rng.Below(200)),
                          .type = ElementType::kBf16};
    const auto plan = PlanCollective(request, members, links);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Ground ground(request, members, seed);
    ground.Run(*plan, request.type);
    const std::size_t block = request.bytes / 2 / ground.ranks() * 2;
    for (std::size_t to = 0; to < ground.ranks(); ++to) {
      for (std::size_t from = 0; from < ground.ranks(); ++from) {
        EXPECT_EQ(
            std::memcmp(&ground.result(to)[from * block], &ground.buffer(from)[to * block], block),
            0)
            << "seed " << seed << ", from " << from << " to " << to;
      }
    }
  }
}

TEST(MovesTest, ASendReceivePassesEveryBufferToTheNextRankAndTheLastToTheFirst) {
  const TorusLinks links = Instance();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const std::vector<Member> members = RandomMembers(rng, false);
    const Request request{
        .operation = Operation::kSendReceive, .bytes = 24, .type = ElementType::kUint8};
    const auto plan = PlanCollective(request, members, links);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Ground ground(request, members, seed);
    ground.Run(*plan, request.type);
    for (std::size_t rank = 0; rank < ground.ranks(); ++rank) {
      EXPECT_EQ(ground.result((rank + 1) % ground.ranks()), ground.buffer(rank));
    }
  }
}

TEST(MovesTest, APermuteGoesOnceAroundTheChipsOverSingleLinks) {
  const TorusLinks links = UltraServer();
  for (const ChipMask mask : {kAllChips, ChipMask{0xffff}, ChipMask{0b0011'0011}, ChipMask{0b11}}) {
    const std::vector<Member> members = MembersOf(mask, 2);
    const Request request{.operation = Operation::kPermute, .bytes = 16};
    const auto plan = PlanCollective(request, members, links);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const Send& send : plan->schedule.steps.at(0)) {
      EXPECT_EQ(torus::Route(links.torus(), send.from, send.to).size(), 1u);
    }
    Ground ground(request, members, 7);
    ground.Run(*plan, request.type);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      std::size_t at = rank;
      std::size_t visited = 0;
      do {  // a single cycle visits this rank of every chip
        const auto source = static_cast<std::size_t>(plan->sources[at]);
        EXPECT_EQ(ground.result(at), ground.buffer(source));
        at = source;
        ++visited;
      } while (at != rank && visited <= members.size());
      EXPECT_EQ(visited, members.size());
    }
  }
}

// The defect: all ranks of a chip sent over one ring, so four took four times as long as one.
TEST(MovesTest, RanksOfAChipPermuteOnRingsOfTheirOwn) {
  const auto time = [](ChipMask mask, int ranks, const TorusLinks& links) {
    const Request request{.operation = Operation::kPermute, .bytes = 128 * kMiB};
    const auto plan =
        PlanCollective(request, MembersOf(mask, ranks), links, {.costs = kNoChipCosts});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return MicrosecondsOf(*plan);
  };
  // Two cycles, each in both directions.
  EXPECT_EQ(time(0xffff, 4, Instance()), time(0xffff, 1, Instance()));
  EXPECT_NEAR(time(0xffff, 8, Instance()), 2 * time(0xffff, 1, Instance()), 2);
  // Five cycles, of which some have links of both rates.
  EXPECT_EQ(time(kAllChips, 8, UltraServer()), time(kAllChips, 1, UltraServer()));
  // A square of four has one cycle; a row of three is passed there and back, which uses all links.
  EXPECT_EQ(time(0b0011'0011, 2, Instance()), time(0b0011'0011, 1, Instance()));
  EXPECT_NEAR(time(0b111, 2, Instance()), 2 * time(0b111, 1, Instance()), 2);
}

TEST(MovesTest, ABroadcastGivesEverybodyTheFirstRanksBufferByEveryAlgorithm) {
  const TorusLinks links = UltraServer();
  for (const ChipMask mask : {kAllChips, ChipMask{0xffff}, ChipMask{0b0110'0110}, ChipMask{1}}) {
    std::vector<Member> members = MembersOf(mask, 2);
    std::rotate(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(members.size() / 3),
                members.end());
    const Request request{.operation = Operation::kBroadcast, .bytes = 4 * 100};
    for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing}) {
      const auto plan = PlanWith(algorithm, request, members, links);
      ASSERT_TRUE(plan.ok()) << plan.status();
      std::vector<Bytes> memory(members.size(), Bytes(request.bytes));
      for (std::size_t i = 0; i < request.bytes; ++i)
        memory[0][i] = static_cast<std::byte>(i % 251);
      std::vector<ChipBuffer> views;
      for (std::size_t i = 0; i < members.size(); ++i) {
        views.push_back({.chip = members[i].chip, .bytes = memory[i]});
      }
      Execute(plan->schedule, request.type, ReduceOp::kSum, views);
      for (const Bytes& chip : memory) EXPECT_EQ(chip, memory[0]) << Name(algorithm);
      EXPECT_EQ(memory[0][250], std::byte{250});
    }
  }
}

TEST(MovesTest, AnAllToAllTakesTheTimesOfTheReferenceTable) {
  const double step = 1.5;
  const auto time = [](std::uint64_t bytes, ChipMask mask, const TorusLinks& links) {
    const auto plan = PlanCollective({.operation = Operation::kAllToAll, .bytes = bytes},
                                     MembersOf(mask), links, {.costs = kNoChipCosts});
    EXPECT_TRUE(plan.ok());
    return MicrosecondsOf(*plan);
  };
  // docs/reference/collectives.md#lower-bounds
  EXPECT_NEAR(time(kMiB, 0xffff, Instance()), step + 4.10, 0.01);
  EXPECT_NEAR(time(64 * kMiB, 0xffff, Instance()), step + 262.1, 0.1);
  EXPECT_NEAR(time(64 * kMiB, kAllChips, UltraServer()), step + 524.3, 0.1);
  // The same closed form holds on every box of the X/Y plane.
  for (const torus::Box& box : torus::BoxTable::Of(torus::kInstanceShape).all()) {
    if (box.size.chip_count() == 1) continue;
    EXPECT_NEAR(time(64 * kMiB, box.mask, Instance()), step + 64.0 * kMiB / 256 / kGB * 1e6, 0.01)
        << box.ToString();
  }
}

TEST(MovesTest, APermuteTakesOneStepAndABufferOnOneLink) {
  const auto plan = PlanCollective({.operation = Operation::kPermute, .bytes = 128 * kMiB},
                                   MembersOf(0xffff), Instance());
  ASSERT_TRUE(plan.ok());
  EXPECT_NEAR(MicrosecondsOf(*plan), 1.5 + 128.0 * kMiB / 128 / kGB * 1e6, 0.001);
}

TEST(MovesTest, ABroadcastTakesTheFastestAlgorithm) {
  const TorusLinks links = Instance();
  const Request small{.operation = Operation::kBroadcast, .bytes = 4096};
  const Request large{.operation = Operation::kBroadcast, .bytes = 64 * kMiB};
  EXPECT_EQ(PlanCollective(small, MembersOf(0xffff), links)->algorithm, Algorithm::kMesh);
  const auto plan = PlanCollective(large, MembersOf(0xffff), links);
  EXPECT_EQ(plan->algorithm, Algorithm::kRdh);
  // Scatter and gather each need as long as the first chip needs for 15/16 of its buffer.
  const double bound = 64.0 * kMiB / 512 / kGB * 1e6;
  EXPECT_NEAR(MicrosecondsOf(*plan), 8 * 1.5 + 2 * bound * 15 / 16, 0.1);
}

TEST(MovesTest, RanksThatShareAChipCopyThroughItsMemoryBesideTheMessages) {
  const auto time = [](ChipMask mask, int ranks) {
    const auto plan = PlanCollective({.operation = Operation::kSendReceive, .bytes = 290'000'000},
                                     MembersOf(mask, ranks), Instance());
    EXPECT_TRUE(plan.ok());
    return MicrosecondsOf(*plan);
  };
  // Alone: four buffers are read and written. Between two chips a link is slower than three copies.
  EXPECT_NEAR(time(0b1, 4), 1.5 + 4 * 2 * 290e6 / 2.9e12 * 1e6, 0.01);
  EXPECT_EQ(time(0b11, 4), time(0b11, 1));
}

TEST(MovesTest, WhatCannotBeMovedIsRefusedPrecisely) {
  const TorusLinks links = Instance();
  const auto status = [&](Operation operation, std::uint64_t bytes,
                          const std::vector<Member>& members) {
    return PlanCollective({.operation = operation, .bytes = bytes}, members, links).status();
  };
  EXPECT_EQ(Message(status(Operation::kAllToAll, 4 * 15, MembersOf(0xffff))),
            "an all_to_all of 15 elements among 16 ranks; expected one for each");
  EXPECT_EQ(Message(status(Operation::kPermute, 4,
                           {{.chip = ChipIndex(0), .ranks = 2}, {.chip = ChipIndex(1)}})),
            "permute needs as many ranks on every chip; chip 0 has 2, chip 1 1");
  EXPECT_EQ(Message(PlanWith(Algorithm::kRdh, {.operation = Operation::kAllToAll, .bytes = 64},
                             MembersOf(0b11), links)
                        .status()),
            "rdh is no algorithm of all_to_all; expected mesh");
}

TEST(MovesTest, ABrokenLinkOfTheRingLeadsThePermuteAroundIt) {
  TorusLinks links = Instance();
  const auto cable = TorusLinks::IdOf(ChipIndex(0), torus::Axis::kX, torus::Direction::kPlus);
  ASSERT_TRUE(links.SetCablePermille(cable, 0).ok());
  const auto time = [&](ChipMask mask, std::uint64_t bytes) {
    const auto plan =
        PlanCollective({.operation = Operation::kPermute, .bytes = bytes}, MembersOf(mask), links);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return MicrosecondsOf(*plan);
  };
  // Whole: other cycles are left, so the cable costs nothing.
  EXPECT_NEAR(time(0xffff, 128 * kMiB), 1.5 + 128.0 * kMiB / 128 / kGB * 1e6, 0.001);
  // A square of four has only one cycle. The closed path through the rest goes there and back.
  EXPECT_NEAR(time(0b0011'0011, 128 * kMiB), 1.5 + 128.0 * kMiB / 128 / kGB * 1e6, 0.001);
}

TEST(MovesTest, ChipsThatNoRingJoinsPermuteOnAPathRoundThem) {
  const TorusLinks links = Instance();
  for (const ChipMask mask : {ChipMask{0b111}, ChipMask{0xfffe}, ChipMask{0b1010'0101}}) {
    const std::vector<Member> members = MembersOf(mask, 2);
    const Request request{.operation = Operation::kPermute, .bytes = 4 * 60};
    const auto plan = PlanCollective(request, members, links);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Ground ground(request, members, mask);
    ground.Run(*plan, request.type);
    for (std::size_t rank = 0; rank < ground.ranks(); ++rank) {
      const auto source = static_cast<std::size_t>(plan->sources.at(rank));
      EXPECT_EQ(ground.result(rank), ground.buffer(source));
      EXPECT_NE(source / 2, rank / 2) << "from another chip";
    }
  }
  // There and back on a row of three: two messages share no link.
  const auto row = PlanCollective({.operation = Operation::kPermute, .bytes = 128 * kMiB},
                                  MembersOf(0b111), links);
  ASSERT_TRUE(row.ok());
  EXPECT_NEAR(MicrosecondsOf(*row), 1.5 + 128.0 * kMiB / 128 / kGB * 1e6, 0.001);
}

}  // namespace
}  // namespace tahoma::sim
