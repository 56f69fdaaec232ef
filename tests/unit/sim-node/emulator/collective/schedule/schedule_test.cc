// Schedules are run on real bytes and compared with a naive combination of everybody's input; their
// structure is checked against the properties that make them fast and deterministic.

#include "sim-node/emulator/collective/schedule/schedule.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "lib/base/rng.h"
#include "lib/collective/channels.h"
#include "lib/torus/path.h"
#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/participants/test_pattern.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::ChipIndex;
using torus::ChipMask;

constexpr Algorithm kAlgorithms[] = {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing,
                                     Algorithm::kTree};

class Buffers {
 public:
  Buffers(const std::vector<Member>& members, const Request& request) {
    for (const Member& member : members) {
      storage_.emplace_back(ChipBufferBytes(request, member.ranks));
      views_.push_back({.chip = member.chip, .bytes = storage_.back()});
    }
  }
  const std::vector<ChipBuffer>& views() const { return views_; }
  std::vector<std::byte>& operator[](std::size_t i) { return storage_[i]; }

 private:
  std::deque<std::vector<std::byte>> storage_;
  std::vector<ChipBuffer> views_;
};

// Fills by the pattern, runs the plan, counts wrong elements over all chips.
std::uint64_t WrongElements(const Plan& plan, const Request& request, ReduceOp op,
                            const std::vector<Member>& members) {
  int ranks = 0;
  for (const Member& member : members) ranks += member.ranks;
  const TestPattern pattern(request, op, ranks, 99, plan.sources);
  Buffers buffers(members, request);
  int first = 0;
  std::vector<RankRange> ranges;
  for (std::size_t i = 0; i < members.size(); ++i) {
    ranges.push_back({.first = first, .count = members[i].ranks});
    pattern.FillChip(ranges.back(), buffers[i]);
    first += members[i].ranks;
  }
  Execute(plan.schedule, request.type, op, buffers.views());
  const auto expected = pattern.Expected();
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    wrong += pattern.CountWrong(ranges[i], buffers[i], expected);
  }
  return wrong;
}

TEST(ScheduleTest, AllReduceOnEverySubcubeOfAnInstanceGivesTheNaiveSum) {
  const TorusLinks links = Instance();
  const Request request{.bytes = 4 * 97, .type = ElementType::kInt32};
  for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
    const auto members = MembersOf(box.mask);
    for (const Algorithm algorithm : kAlgorithms) {
      const auto plan = PlanWith(algorithm, request, members, links);
      ASSERT_TRUE(plan.ok());
      EXPECT_EQ(WrongElements(*plan, request, ReduceOp::kSum, members), 0u)
          << box.ToString() << " " << Name(algorithm);
    }
  }
}

// Chips that sum up unequal shares, trees that sum up and spread at once, links whose directions
// differ.
TEST(ScheduleTest, AllReduceOnDamagedAndIrregularSetsGivesTheNaiveSum) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    TorusLinks links = seed % 3 == 0 ? UltraServer() : Instance();
    ChipMask mask = (rng.Next() | rng.Next()) & (seed % 3 == 0 ? kAllChips : 0xffff);
    if (mask == 0) continue;
    for (std::uint64_t i = rng.Below(6); i > 0; --i) {
      const auto link = static_cast<LinkId>(rng.Below(links.id_count()));
      if (!links.Exists(link)) continue;
      const auto permille = static_cast<std::uint16_t>(rng.Below(4) * 300);
      ASSERT_TRUE((rng.Below(2) == 0 ? links.SetPermille(link, permille)
                                     : links.SetCablePermille(link, permille))
                      .ok());
    }
    const auto members = MembersOf(mask, 1 + static_cast<int>(rng.Below(2)));
    const Request request{.bytes = 4 * (1 + rng.Below(40'000)), .type = ElementType::kInt32};
    for (const bool chosen : {true, false}) {
      const auto plan = chosen ? PlanCollective(request, members, links)
                               : PlanWith(Algorithm::kTree, request, members, links);
      if (!plan.ok()) continue;  // cut off
      EXPECT_EQ(WrongElements(*plan, request, ReduceOp::kSum, members), 0u) << "seed " << seed;
    }
  }
}

constexpr ElementType kTypes[] = {
    ElementType::kUint8,   ElementType::kInt8,   ElementType::kFp8E3m4, ElementType::kFp8E4m3,
    ElementType::kFp8E5m2, ElementType::kUint16, ElementType::kInt16,   ElementType::kFp16,
    ElementType::kBf16,    ElementType::kUint32, ElementType::kInt32,   ElementType::kFp32,
    ElementType::kFp32r};

TEST(ScheduleTest, EveryOperationTypeAndReductionIsRightOn64ChipsWithFourRanksEach) {
  const TorusLinks links = UltraServer();
  const auto members = MembersOf(kAllChips, 4);
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kAllToAll, Operation::kSendReceive, Operation::kPermute,
        Operation::kBroadcast}) {
    for (const ElementType type : kTypes) {
      const Request request{.operation = operation, .bytes = 4 * 700, .type = type};
      const auto plan = PlanWith(IsExchange(operation) ? Algorithm::kMesh : Algorithm::kRdh,
                                 request, members, links);
      ASSERT_TRUE(plan.ok());
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
        EXPECT_EQ(WrongElements(*plan, request, op, members), 0u)
            << Name(operation) << " " << Name(type) << " " << Name(op);
        if (!Combines(operation)) break;
      }
    }
  }
}

// Sums of all types, by every algorithm; sizes leave some parts empty.
TEST(ScheduleTest, EveryAlgorithmGivesTheSumOfEveryType) {
  const TorusLinks links = UltraServer();
  for (const ChipMask mask : {kAllChips, ChipMask{0xffff}, ChipMask{0x000f'000f}}) {
    const auto members = MembersOf(mask, 4);
    for (const Algorithm algorithm : kAllAlgorithms) {
      for (const ElementType type : kTypes) {
        const Operation operation = static_cast<Operation>(static_cast<int>(type) % 3);
        const Request request{.operation = operation, .bytes = 4 * 333, .type = type};
        const auto plan = PlanWith(algorithm, request, members, links);
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_EQ(WrongElements(*plan, request, ReduceOp::kSum, members), 0u)
            << Name(algorithm) << " " << Name(operation) << " " << Name(type);
      }
    }
  }
}

// The check would see it: a plan that forgets its last message leaves wrong elements.
TEST(ScheduleTest, AMessageThatIsForgottenIsCountedInEveryOperation) {
  const TorusLinks links = Instance();
  const auto members = MembersOf(0xffff, 2);
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kAllToAll, Operation::kSendReceive, Operation::kPermute,
        Operation::kBroadcast}) {
    const Request request{.operation = operation, .bytes = 4 * 320};
    auto plan = PlanCollective(request, members, links);
    ASSERT_TRUE(plan.ok());
    plan->schedule.steps.back().pop_back();
    EXPECT_GT(WrongElements(*plan, request, ReduceOp::kSum, members), 0u) << Name(operation);
  }
}

TEST(ScheduleTest, AnySetOfChipsWithAnyRanksIsServed) {
  const TorusLinks links = Instance();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const ChipMask mask = 1 + rng.Below(0xffff);
    std::vector<Member> members = MembersOf(mask);
    for (Member& member : members) member.ranks = 1 + static_cast<int>(rng.Below(4));
    std::rotate(members.begin(),
                members.begin() + static_cast<std::ptrdiff_t>(rng.Below(members.size())),
                members.end());
    for (const Operation operation :
         {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter}) {
      const Request request{
          .operation = operation, .bytes = 2 * (1 + rng.Below(200)), .type = ElementType::kInt16};
      for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRing}) {
        const auto plan = PlanWith(algorithm, request, members, links);
        ASSERT_TRUE(plan.ok());
        EXPECT_EQ(WrongElements(*plan, request, ReduceOp::kSum, members), 0u)
            << "seed " << seed << " " << Name(operation) << " " << Name(algorithm);
      }
    }
  }
}

// A ring of 6 or 12 is no hypercube: halving and doubling is refused, all else must be right.
TEST(ScheduleTest, EveryOperationIsRightOnRingsOfSixAndTwelve) {
  for (const char* name : {"inf2.24xlarge", "inf2.48xlarge"}) {
    const hw::InstanceType& type = *hw::FindInstanceType(name);
    const TorusLinks links(type.torus, type.chip->links);
    const auto members = MembersOf((ChipMask{1} << type.chip_count()) - 1, 2);
    for (const Operation operation :
         {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
          Operation::kAllToAll, Operation::kSendReceive, Operation::kPermute,
          Operation::kBroadcast}) {
      const Request request{
          .operation = operation, .bytes = 4 * 24 * 11, .type = ElementType::kInt32};
      const auto best = PlanCollective(request, members, links);
      ASSERT_TRUE(best.ok()) << name << " " << Name(operation) << " " << best.status();
      EXPECT_EQ(WrongElements(*best, request, ReduceOp::kSum, members), 0U)
          << name << " " << Name(operation);
      EXPECT_EQ(PlanWith(Algorithm::kRdh, request, members, links).status().code(),
                absl::StatusCode::kInvalidArgument);
      for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRing, Algorithm::kTree}) {
        const auto plan = PlanWith(algorithm, request, members, links);
        if (!plan.ok()) continue;  // not every operation has every algorithm
        EXPECT_EQ(WrongElements(*plan, request, ReduceOp::kSum, members), 0U)
            << name << " " << Name(operation) << " " << Name(algorithm);
      }
    }
  }
}

// A ring algorithm on a ring of 12 loads every link with (n - 1) / n of the buffer in each phase,
// half of it in each direction.
TEST(ScheduleTest, ALargeAllReduceOnARingOfTwelveComesCloseToItsBound) {
  const hw::InstanceType& type = *hw::FindInstanceType("inf2.48xlarge");
  const TorusLinks links(type.torus, type.chip->links);
  const auto members = MembersOf(0xfff);
  const Request request{.bytes = std::uint64_t{12} << 24, .type = ElementType::kFp32};
  const auto plan = PlanCollective(request, members, links);
  ASSERT_TRUE(plan.ok());
  const auto bound = TransferTime(2 * (request.bytes / 12) * 11 / 2,
                                  static_cast<std::uint64_t>(type.chip->links.intra_instance));
  EXPECT_GE(plan->times.end - plan->times.start, bound);
  EXPECT_LE(plan->times.end - plan->times.start, bound + bound / 14) << "7 %";
}

TEST(ScheduleTest, ACorruptedByteIsCountedAsOneWrongElement) {
  const Request request{.bytes = 4 * 10, .type = ElementType::kFp32};
  const TestPattern pattern(request, ReduceOp::kSum, 2, 1);
  const auto expected = pattern.Expected();
  auto result = expected;
  EXPECT_EQ(pattern.CountWrong({0, 1}, result, expected), 0u);
  result[17] ^= std::byte{1};
  result[18] ^= std::byte{1};
  EXPECT_EQ(pattern.CountWrong({0, 1}, result, expected), 1u);
}

TEST(ScheduleTest, ASumOfFloatsThatAreNotExactIsTheSameForEveryChipAndEveryRun) {
  const TorusLinks links = UltraServer();
  const auto members = MembersOf(kAllChips);
  const Request request{.bytes = 4 * 1000, .type = ElementType::kFp32};
  for (const Algorithm algorithm : kAlgorithms) {
    const auto plan = PlanWith(algorithm, request, members, links);
    ASSERT_TRUE(plan.ok());
    std::vector<std::byte> first;
    for (int run = 0; run < 2; ++run) {
      Buffers buffers(members, request);
      Rng rng(3);
      for (std::size_t chip = 0; chip < members.size(); ++chip) {
        for (std::size_t i = 0; i < 1000; ++i) {
          const float value = 1.0F / static_cast<float>(1 + rng.Below(1'000'000));
          std::memcpy(&buffers[chip][4 * i], &value, 4);
        }
      }
      Execute(plan->schedule, request.type, ReduceOp::kSum, buffers.views());
      if (run == 0) first = buffers[0];
      for (std::size_t chip = 0; chip < members.size(); ++chip) EXPECT_EQ(buffers[chip], first);
    }
  }
}

// The pattern's closed form against every rank's own buffer, combined one after the other.
TEST(TestPatternTest, WhatIsExpectedIsTheCombinationOfAllRanksOneByOne) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kInt8, ElementType::kBf16,
                                 ElementType::kUint16, ElementType::kInt32, ElementType::kFp32}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
      for (const int ranks : {1, 7, 64, 512}) {
        const Request request{.bytes = 4 * 33, .type = type};
        const TestPattern pattern(request, op, ranks, 77);
        std::vector<std::byte> sum(request.bytes), next(request.bytes);
        pattern.FillChip({0, 1}, sum);
        for (int rank = 1; rank < ranks; ++rank) {
          pattern.FillChip({rank, 1}, next);
          Combine(op, type, sum, next);
        }
        EXPECT_EQ(sum, pattern.Expected()) << Name(type) << " " << Name(op) << " " << ranks;
      }
    }
  }
}

// No chip may send, within a step, what the same step writes into it.
TEST(ScheduleTest, NoStepSendsWhatItWrites) {
  const TorusLinks links = Instance();
  for (const Algorithm algorithm : kAlgorithms) {
    const auto plan = PlanWith(algorithm, {.bytes = 4 * 160, .type = ElementType::kInt32},
                               MembersOf(0xffff), links);
    ASSERT_TRUE(plan.ok());
    for (const Step& step : plan->schedule.steps) {
      std::set<std::pair<int, std::uint64_t>> sent;
      for (const Send& send : step) {
        for (std::uint64_t i = 0; i < send.bytes; ++i) {
          sent.emplace(send.from.value(), send.offset + i);
        }
      }
      for (const Send& send : step) {
        for (std::uint64_t i = 0; i < send.bytes; ++i) {
          EXPECT_FALSE(sent.contains({send.to.value(), send.offset + i})) << Name(algorithm);
        }
      }
    }
  }
}

TEST(ScheduleTest, HalvingAndDoublingUsesOneLinkInsideTheBoxForEverySend) {
  const TorusLinks links = UltraServer();
  for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
    if (box.size.chip_count() > 16) continue;
    const ChipSet set = SetOf(MembersOf(box.mask), links);
    const Layout layout = Layout::Weighted(std::vector<int>(set.size(), 1), 1024, 4);
    for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
      for (const Step& step : Steps(Algorithm::kRdh, phase, set, links, layout)) {
        for (const Send& send : step) {
          const auto route = links.FindRoute(send.from, send.to, box.mask);
          ASSERT_TRUE(route.ok());
          EXPECT_EQ(route->size(), 1u) << box.ToString();
        }
      }
    }
  }
}

TEST(ScheduleTest, AChannelUsesEveryDimensionOnce) {
  const torus::Shape& torus = torus::kUltraServerShape;
  for (const torus::Box& box : torus::BoxTable::Of(torus).all()) {
    for (const collective::Channel& channel : collective::BalancedChannels(box, torus)) {
      EXPECT_EQ(std::set<int>(channel.begin(), channel.end()).size(), channel.size());
      EXPECT_EQ(std::size_t{1} << channel.size(), static_cast<std::size_t>(box.size.chip_count()));
    }
  }
}

std::map<LinkId, std::uint64_t> LinkLoads(const TorusLinks& links, const Step& step) {
  std::map<LinkId, std::uint64_t> loads;
  for (const Send& send : step) {
    const auto route = links.FindRoute(send.from, send.to, kAllChips);
    for (const LinkId link : *route) loads[link] += send.bytes;
  }
  return loads;
}

TEST(ScheduleTest, HalvingAndDoublingLoadsAll64LinksOfAnInstanceEquallyInEveryStep) {
  const TorusLinks links = Instance();
  const auto plan = PlanWith(Algorithm::kRdh, {.bytes = 64 * 1024, .type = ElementType::kUint8},
                             MembersOf(0xffff), links);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->schedule.steps.size(), 8u);
  const std::uint64_t blocks[] = {8, 4, 2, 1, 1, 2, 4, 8};  // of D / 64
  for (std::size_t step = 0; step < 8; ++step) {
    const auto loads = LinkLoads(links, plan->schedule.steps[step]);
    EXPECT_EQ(loads.size(), 64u);
    for (const auto& [link, bytes] : loads) EXPECT_EQ(bytes, blocks[step] * 1024);
  }
}

TEST(ScheduleTest, On64ChipsEveryLinkIsLoadedInProportionToItsRateInTheFirstFiveSteps) {
  const TorusLinks links = UltraServer();
  const ChipSet set = SetOf(MembersOf(kAllChips), links);
  const Layout layout = Layout::Weighted(std::vector<int>(64, 1), 64 * 640, 1);
  const auto steps = Steps(Algorithm::kRdh, Phase::kReduceScatter, set, links, layout);
  for (std::size_t step = 0; step < 5; ++step) {
    const auto loads = LinkLoads(links, steps[step]);
    EXPECT_EQ(loads.size(), 384u);
    const std::uint64_t quantum = (32U >> step) * 64;
    for (const auto& [link, bytes] : loads) {
      const bool slow = links.HopOf(link).axis == torus::Axis::kZ;
      EXPECT_EQ(bytes, slow ? quantum : 2 * quantum) << TorusLinks::Name(link);
    }
  }
}

TEST(ScheduleTest, ARingPassesOnEveryBlockOnceAroundAndLoadsItsLinksEqually) {
  const TorusLinks links = Instance();
  const auto plan = PlanWith(Algorithm::kRing, {.bytes = 16 * 4 * 10, .type = ElementType::kUint8},
                             MembersOf(0xffff), links);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->schedule.steps.size(), 30u);
  for (const Step& step : plan->schedule.steps) {
    const auto loads = LinkLoads(links, step);
    EXPECT_EQ(loads.size(), 64u);  // two cycles, both directions: every link of the instance
    for (const auto& [link, bytes] : loads) EXPECT_EQ(bytes, 10u);
  }
}

TEST(ScheduleTest, RingsAreHamiltonianCyclesWhereThereAreAnyAndAvoidBrokenCables) {
  TorusLinks links = Instance();
  // 3x4 chips: no box, but an even grid with a cycle.
  const ChipMask grid = 0x7777;
  std::vector<ChipIndex> chips;
  for (const Member& member : MembersOf(grid)) chips.push_back(member.chip);
  const auto check = [&](const ChipSet& set) {
    const auto rings = set.Rings(links);
    for (const auto& ring : rings) {
      EXPECT_EQ(std::set(ring.begin(), ring.end()).size(), set.size());
      for (std::size_t i = 0; i < ring.size(); ++i) {
        const auto route = links.FindRoute(ring[i], ring[(i + 1) % ring.size()], set.through());
        EXPECT_TRUE(route.ok());
        EXPECT_EQ(route->size(), 1u);
      }
    }
    return rings.size();
  };
  EXPECT_EQ(check(ChipSet(links, chips)), 1u);
  std::vector<ChipIndex> all;
  for (int chip = 0; chip < 16; ++chip) all.emplace_back(chip);
  EXPECT_EQ(check(ChipSet(links, all)), 2u);
  ASSERT_TRUE(links.SetCablePermille(1, 0).ok());  // chip 0 x+, used by one of the two cycles
  EXPECT_EQ(check(ChipSet(links, all)), 1u);
}

}  // namespace
}  // namespace tahoma::sim
