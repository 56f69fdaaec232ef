// The HBM banks of the cores in a collective: no bank moves more than its rate, and all banks of a
// chip together have the chip's rate.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::MicrosecondsOf;
using testing::UltraServer;
using torus::ChipIndex;

constexpr double kBankRate = 716e9;

std::vector<Member> InBanks(std::vector<Member> members, int banks) {
  for (Member& member : members) member.banks = banks;
  return members;
}

// Returns the bytes a second that the busiest chip reads and writes in a step, from departure to
// end. An all-gather of one rank on each chip reads a byte once at the sender and writes the byte
// once at the receiver.
double MostTouched(const Plan& plan) {
  double most = 0;
  for (std::size_t i = 0; i < plan.schedule.steps.size(); ++i) {
    std::map<ChipIndex, std::uint64_t> touched;
    for (const Send& send : plan.schedule.steps[i]) {
      touched[send.from] += send.bytes;
      touched[send.to] += send.bytes;
    }
    const StepTimes& times = plan.times.steps[i];
    for (const auto& [chip, bytes] : touched) {
      most = std::max(most, static_cast<double>(bytes) / Nanoseconds(times.end - times.departure));
    }
  }
  return most * 1e9;
}

// Messages over four links of 128 GB/s could read and write 1,024 GB/s, six links 1,280.
TEST(BanksTest, AnAllGatherOfOneCoreOfEachChipMovesNoMoreThanItsBankDoes) {
  for (const TorusLinks& links : {Instance(LinkTiming{}), UltraServer(LinkTiming{})}) {
    double whole_chips = 0;
    for (const torus::ChipMask chips :
         {torus::ChipMask{0b11}, torus::ChipMask{0x33}, torus::ChipMask{0xffff}, kAllChips}) {
      if (chips == kAllChips && links.torus() != torus::kUltraServerShape) continue;
      for (const Algorithm algorithm : kAllAlgorithms) {
        if (algorithm == Algorithm::kKangaRing) continue;  // of whole chips only
        const Request request{.operation = Operation::kAllGather, .bytes = 256 * kMiB};
        const auto one = PlanWith(algorithm, request, InBanks(MembersOf(chips), 1), links);
        ASSERT_TRUE(one.ok()) << one.status();
        EXPECT_LE(MostTouched(*one), kBankRate) << Name(algorithm) << " on " << chips;
        const auto whole = PlanWith(algorithm, request, MembersOf(chips), links);
        ASSERT_TRUE(whole.ok()) << whole.status();
        whole_chips = std::max(whole_chips, MostTouched(*whole));
        EXPECT_LE(whole->times.end, one->times.end);
      }
    }
    EXPECT_GT(whole_chips, 1.2 * kBankRate) << "else no bank is the limit";
  }
}

// The times are by hand, 1 us for each touch of all bytes in a bank.
TEST(BanksTest, CoresOfOneChipCopyAtTheRateOfTheirBanks) {
  const TorusLinks links(torus::Shape::Of<1, 1, 1>(), hw::kTrainium2.links);
  const auto time = [&](int ranks, int banks) {
    const auto plan = PlanWith(Algorithm::kRdh, {.bytes = 716'000},
                               {{.chip = ChipIndex(0), .ranks = ranks, .banks = banks}}, links);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return MicrosecondsOf(*plan);
  };
  // Three touches of each byte to combine two buffers, two to copy the result.
  EXPECT_NEAR(time(2, 1), 2 * 1.3 + 3 + 2, 0.001);
  EXPECT_NEAR(time(2, 2), 2 * 1.3 + 1.5 + 1, 0.001);
  EXPECT_NEAR(time(4, 4), 2 * 1.3 + 9 * 716.0 / 2900, 0.001);
}

// A choice between algorithms may leave a thousandth.
TEST(BanksTest, MoreBanksAreNeverSlower) {
  Rng rng(11);
  const Fabric fabric({Instance(LinkTiming{}), Instance(LinkTiming{})}, hw::kTrainium2.links.efa);
  for (int i = 0; i < 60; ++i) {
    const auto operation = static_cast<Operation>(rng.Below(collective::kOperations));
    const std::uint64_t bytes = std::uint64_t{1} << (12 + rng.Below(17));
    const int ranks = 1 << rng.Below(4);
    std::vector<Member> members = MembersOf(1 + rng.Below(0xffff), ranks);
    if (i % 4 == 0) {
      for (const Member& local : MembersOf(0xffff, ranks)) {
        members.push_back({.chip = Fabric::ChipOf(1, local.chip.value()), .ranks = ranks});
      }
    }
    VirtualDuration less = VirtualDuration::max();
    for (int banks = 1; banks <= hw::kHbmBanksMax; ++banks) {
      const auto plan =
          PlanOnFabric({.operation = operation, .bytes = bytes}, InBanks(members, banks), fabric);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const VirtualDuration time = plan->times.end - plan->times.start;
      if (banks > 1) {
        EXPECT_LE(time, less + less / 1000)
            << Name(operation) << " of " << bytes << " bytes, " << ranks << " ranks on "
            << members.size() << " chips, " << banks << " banks";
      }
      less = time;
    }
  }
}

TEST(BanksTest, AChipWithOneCoreWaitsForItsBankBesideWholeChips) {
  const TorusLinks links = Instance(LinkTiming{});
  const auto time = [&](int banks) {
    std::vector<Member> members = MembersOf(0xffff, 4);
    members[1] = {.chip = ChipIndex(1), .ranks = 1, .banks = banks};
    const Request request{.operation = Operation::kAllGather, .bytes = 256 * kMiB};
    return MicrosecondsOf(*PlanWith(Algorithm::kRing, request, members, links));
  };
  EXPECT_GT(time(1), time(2));
  EXPECT_GE(time(2), time(4));
}

}  // namespace
}  // namespace tahoma::sim
