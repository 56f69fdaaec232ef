// NICs that are down or slow: which chip's NIC serves each chip, and that every byte comes to its
// place whichever are.

#include "sim-node/emulator/collective/domains/nic_proxies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/domains/composition.h"
#include "tests/unit/sim-node/emulator/collective/domains/support.h"

namespace tahoma::sim {
namespace {

using testing::Composed;
using testing::Everywhere;
using testing::Instance;
using testing::Joined;
using testing::Shuffled;
using testing::WrongElements;

std::vector<std::size_t> Proxies(const std::vector<int>& rates) {
  const torus::ChipMask chips = (torus::ChipMask{1} << rates.size()) - 1;
  return ProxiesOf(MembersOf(chips), rates, torus::kInstanceShape);
}

// The time in which all chips' parts, of one each, have gone through their NICs.
double TimeOf(const std::vector<int>& rates) {
  std::vector<int> served(rates.size());
  for (const std::size_t proxy : Proxies(rates)) ++served[proxy];
  double most = 0;
  for (std::size_t nic = 0; nic < rates.size(); ++nic) {
    if (served[nic] > 0) most = std::max(most, static_cast<double>(served[nic]) / rates[nic]);
  }
  return most;
}

std::vector<int> RandomRates(Rng& rng, std::size_t count) {
  std::vector<int> rates(count);
  for (int& rate : rates) {
    rate = rng.Chance(1, 2) ? 1000 : rng.Chance(1, 2) ? 0 : static_cast<int>(rng.Below(1001));
  }
  rates[rng.Below(count)] = 1000;
  return rates;
}

TEST(NicProxiesTest, AChipWithoutANicTakesANeighboursThatServesFewest) {
  std::vector<int> rates(16, 1000);
  rates[5] = 0;
  const std::vector<std::size_t> proxies = Proxies(rates);
  for (std::size_t place = 0; place < 16; ++place) {
    if (place != 5) {
      EXPECT_EQ(proxies[place], place);
    }
  }
  EXPECT_EQ(proxies[5], 1U);  // of 1, 4, 6 and 9
  rates[1] = rates[4] = 0;
  EXPECT_EQ(TimeOf(rates), 2.0 / 1000);
}

TEST(NicProxiesTest, SlowNicsServeWhatTheyCanInTheSameTime) {
  EXPECT_EQ(Proxies({1000, 500, 1000}), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(Proxies({1000, 499, 1000})[1], 0U);
  EXPECT_EQ(Proxies({0, 0}), (std::vector<std::size_t>{0, 1}));
}

TEST(NicProxiesTest, NoOtherWholeSharesEndSoonerAndNoNicThatSlowsDownMakesThemFaster) {
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int> rates = RandomRates(rng, 1 + rng.Below(16));
    const double time = TimeOf(rates);
    // In less time the NICs serve fewer chips than there are.
    std::int64_t served = 0;
    for (const int rate : rates) {
      served += static_cast<std::int64_t>(time * 0.999999 * static_cast<double>(rate));
    }
    EXPECT_LT(served, std::ssize(rates));
    int& slower = rates[rng.Below(rates.size())];
    slower = static_cast<int>(rng.Below(static_cast<std::uint64_t>(slower) + 1));
    if (std::ranges::max(rates) > 0) {
      EXPECT_GE(TimeOf(rates), time);
    }
  }
}

// A fabric with random NICs of two domains of three down or slow.
Fabric RandomNics(Rng& rng) {
  Fabric fabric = Joined(Instance(LinkTiming{}), 3);
  for (const int domain : {0, 2}) {
    for (int chip = 1; chip < 16; ++chip) {
      if (rng.Below(3) != 0) continue;
      const auto permille = static_cast<std::uint16_t>(rng.Below(2) == 0 ? 0 : rng.Below(1001));
      EXPECT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(domain, chip), permille).ok());
    }
  }
  return fabric;
}

TEST(NicProxiesTest, PartsHandedOverComeToTheirPlacesInEveryOrderThatTheStepsAllow) {
  Rng rng(20);
  for (int round = 0; round < 20; ++round) {
    const Fabric fabric = RandomNics(rng);
    const std::vector<Member> members = Everywhere(fabric, kAllChips, round % 5 == 0 ? 2 : 1);
    for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter,
                                      Operation::kAllReduce, Operation::kBroadcast}) {
      const Request request{.operation = operation,
                            .bytes = 4 * (1 + rng.Below(20'000)),
                            .type = ElementType::kInt32};
      const Plan plan = Composed(request, members, fabric, 1 + static_cast<int>(rng.Below(4)),
                                 /*meshes=*/false,
                                 round % 3 == 0 ? InterAlgorithm::kRing : InterAlgorithm::kMesh);
      EXPECT_EQ(WrongElements(plan, request, ReduceOp::kSum, members), 0U)
          << Name(operation) << " of " << request.bytes << " bytes, round " << round;
      EXPECT_EQ(WrongElements(Shuffled(plan, rng), request, ReduceOp::kSum, members), 0U)
          << Name(operation) << " of " << request.bytes << " bytes, round " << round;
    }
  }
}

// A step that does not wait for the sums that it sends would be seen.
TEST(NicProxiesTest, AStepThatWaitsForNothingWouldBeSeen) {
  Fabric fabric = Joined(Instance(LinkTiming{}), 2);
  for (const int chip : {0, 1, 4, 5}) {
    ASSERT_TRUE(fabric.SetNicPermille(torus::ChipIndex(chip), 0).ok());
  }
  const std::vector<Member> members = Everywhere(fabric);
  const Request request{
      .operation = Operation::kReduceScatter, .bytes = 64'000, .type = ElementType::kInt32};
  Plan plan = Composed(request, members, fabric, 2, /*meshes=*/false);
  Rng rng(1);
  std::uint64_t wrong = 0;
  for (ScheduledStep& step : plan.schedule.scheduled) step.after.clear();
  for (int order = 0; order < 5; ++order) {
    wrong += WrongElements(Shuffled(plan, rng), request, ReduceOp::kSum, members);
  }
  EXPECT_GT(wrong, 0U);
}

}  // namespace
}  // namespace tahoma::sim
