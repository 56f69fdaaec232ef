// A broadcast along trees through all domains: that every byte comes to its place, in whatever
// order the steps that may run at the same time are made, and that it takes little more than what
// the root's links and NIC, or those of its domain, need.

#include "sim-node/emulator/collective/domains/twin_broadcast.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/domains/bound_over_domains.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/schedule/timing.h"
#include "tests/unit/sim-node/emulator/collective/domains/support.h"

namespace tahoma::sim {
namespace {

using testing::Everywhere;
using testing::Instance;
using testing::Joined;
using testing::MicrosecondsOf;
using testing::Shuffled;
using testing::UltraServer;
using testing::WrongElements;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kGiB = 1024 * kMiB;

// With the timing that the emulator has by itself.
Fabric UltraServers(int domains) { return Joined(UltraServer(LinkTiming{}), domains); }
Fabric Instances(int domains) { return Joined(Instance(LinkTiming{}), domains); }

// Steps start up so fast that small buffers have many chunks.
constexpr LinkTiming kFast = {.step = Microseconds(0.05), .hop = Microseconds(0)};
const PlanOptions kNoStart = {.costs = kNoChipCosts};

Request Broadcast(std::uint64_t bytes) {
  return {.operation = Operation::kBroadcast, .bytes = bytes, .type = ElementType::kInt32};
}

Plan ToTwins(const Request& request, const std::vector<Member>& members, const Fabric& fabric,
             const PlanOptions& options = {}) {
  const DomainSet set(members, fabric);
  EXPECT_TRUE(MayGoToTwins(request, set, fabric));
  auto schedule = BroadcastToTwins(request, set, fabric, options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  Plan plan{.algorithm = Algorithm::kHier, .schedule = *std::move(schedule), .times = {}};
  auto times = TimeSchedules({&plan.schedule}, fabric);
  EXPECT_TRUE(times.ok()) << times.status();
  plan.times = (*times)[0];
  return plan;
}

// Slows some links and NICs down, or breaks them.
void Damage(Rng& rng, Fabric& fabric) {
  for (std::uint64_t i = rng.Below(4); i > 0; --i) {
    const torus::ChipIndex chip = Fabric::ChipOf(
        static_cast<int>(rng.Below(static_cast<std::uint64_t>(fabric.domain_count()))),
        static_cast<int>(rng.Below(16)));
    const auto permille = static_cast<std::uint16_t>(rng.Below(2) == 0 ? 0 : rng.Below(1001));
    const LinkId link = fabric.LinkOf(chip, torus::kAxes.at(rng.Below(2)), torus::Direction::kPlus);
    const bool nic = rng.Below(2) == 0;
    EXPECT_TRUE(
        (nic ? fabric.SetNicPermille(chip, permille) : fabric.SetPermille(link, permille)).ok());
  }
}

TEST(TwinBroadcastTest, EveryByteComesToItsPlaceInEveryOrderThatTheStepsAllow) {
  Rng rng(21);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    Fabric fabric = Joined(Instance(kFast), 2 + static_cast<int>(rng.Below(4)));
    if (round % 2 == 1) Damage(rng, fabric);
    const std::vector<Member> members =
        Everywhere(fabric, round % 3 == 0 ? 0x0ff0 : 0xffff, /*ranks=*/round % 5 == 0 ? 2 : 1);
    const Request request = Broadcast(4 * (32'000 + rng.Below(60'000)));
    const Plan plan = ToTwins(request, members, fabric, kNoStart);
    EXPECT_EQ(WrongElements(plan, request, ReduceOp::kSum, members), 0U) << request.bytes;
    const Plan other = Shuffled(plan, rng);
    EXPECT_EQ(WrongElements(other, request, ReduceOp::kSum, members), 0U) << request.bytes;
  }
}

TEST(TwinBroadcastTest, UltraServersGetEveryByteInEveryOrder) {
  Rng rng(22);
  const Fabric fabric = Joined(UltraServer(kFast), 3);
  const std::vector<Member> members = Everywhere(fabric);
  const Request request = Broadcast(400'004);
  const Plan plan = ToTwins(request, members, fabric, kNoStart);
  EXPECT_EQ(WrongElements(plan, request, ReduceOp::kSum, members), 0U);
  EXPECT_EQ(WrongElements(Shuffled(plan, rng), request, ReduceOp::kSum, members), 0U);
}

TEST(TwinBroadcastTest, AStepThatWaitsForNothingWouldBeSeen) {
  Rng rng(1);
  const Fabric fabric = Joined(Instance(kFast), 3);
  const std::vector<Member> members = Everywhere(fabric);
  const Request request = Broadcast(200'000);
  Plan plan = ToTwins(request, members, fabric, kNoStart);
  for (ScheduledStep& step : plan.schedule.scheduled) step.after.clear();
  EXPECT_GT(WrongElements(Shuffled(plan, rng), request, ReduceOp::kSum, members), 0U);
}

// The root may be in any of the domains, which may be in any order and have others between them.
TEST(TwinBroadcastTest, DomainsNeedNotBeInARow) {
  const Fabric fabric = Joined(Instance(kFast), 9);
  for (const std::vector<int>& domains :
       {std::vector{2, 0, 1, 3}, {4, 3, 7, 8}, {1, 5, 4, 3, 7}, {8, 0}}) {
    std::vector<Member> members;
    for (const int domain : domains) {
      for (int chip = 0; chip < 16; ++chip)
        members.push_back({.chip = Fabric::ChipOf(domain, chip)});
    }
    const Request request = Broadcast(200'008);
    const Plan plan = ToTwins(request, members, fabric, kNoStart);
    EXPECT_EQ(WrongElements(plan, request, ReduceOp::kSum, members), 0U);
  }
}

TEST(TwinBroadcastTest, TheRootMayBeAnyChip) {
  const Fabric fabric = Joined(Instance(kFast), 2);
  std::vector<Member> members = Everywhere(fabric);
  std::swap(members[0], members[6]);
  const Request request = Broadcast(200'000);
  const Plan plan = ToTwins(request, members, fabric, kNoStart);
  EXPECT_EQ(WrongElements(plan, request, ReduceOp::kSum, members), 0U);
}

TEST(TwinBroadcastTest, DomainsWithOtherChipsHaveNoTwins) {
  const Fabric fabric = Instances(2);
  std::vector<Member> members = Everywhere(fabric);
  members.pop_back();
  EXPECT_FALSE(MayGoToTwins(Broadcast(kGiB), DomainSet(members, fabric), fabric));
}

// The defect: 1.09 to 1.10 times the bound on UltraServers, 1.04 on instances; with links down in
// each of them 1.11, with a NIC down 1.14.
TEST(TwinBroadcastTest, AGibTakesSevenPercentMoreThanWhatIsNeededAtMost) {
  Fabric links_down = UltraServers(3);
  for (const int chip : {3, 64 + 5, 128 + 30}) {
    ASSERT_TRUE(links_down
                    .SetPermille(links_down.LinkOf(torus::ChipIndex(chip), torus::Axis::kX,
                                                   torus::Direction::kPlus),
                                 0)
                    .ok());
  }
  Fabric nic_down = UltraServers(2);
  ASSERT_TRUE(nic_down.SetNicPermille(Fabric::ChipOf(1, 3), 0).ok());
  for (const Fabric& fabric : {UltraServers(2), UltraServers(8), UltraServers(64), Instances(2),
                               Instances(8), links_down, nic_down}) {
    const std::vector<Member> members = Everywhere(fabric);
    const auto plan = PlanOnFabric(Broadcast(kGiB), members, fabric);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const double bound =
        Nanoseconds(LowerBoundOnFabric(Broadcast(kGiB), members, fabric).value()) / 1e3;
    EXPECT_GE(MicrosecondsOf(*plan), bound);
    EXPECT_LE(MicrosecondsOf(*plan), 1.07 * bound) << fabric.domain_count();
  }
}

TEST(TwinBroadcastTest, ASmallerBufferWaitsForItsFirstAndLastChunkOnly) {
  const Fabric fabric = UltraServers(8);
  const std::vector<Member> members = Everywhere(fabric);
  for (const auto& [bytes, most] :
       {std::pair(512 * kMiB, 1.09), std::pair(256 * kMiB, 1.17), std::pair(4 * kGiB, 1.035)}) {
    const Request request = Broadcast(bytes);
    const Plan plan = ToTwins(request, members, fabric);
    const double bound = Nanoseconds(LowerBoundOnFabric(request, members, fabric).value()) / 1e3;
    EXPECT_LE(MicrosecondsOf(plan), most * bound) << bytes;
  }
}

// Which is faster changes there.
TEST(TwinBroadcastTest, ABufferOfSomeMibTakesTheFasterAlgorithm) {
  for (const Fabric& fabric : {UltraServers(2), Instances(4)}) {
    const std::vector<Member> members = Everywhere(fabric);
    double before = 0;
    for (const std::uint64_t mib : {1U, 4U, 5U, 6U, 8U, 9U, 10U, 12U, 24U}) {
      const Request request = Broadcast(mib * kMiB);
      const auto plan = PlanOnFabric(request, members, fabric);
      const auto phases = PlanOnFabric(request, members, fabric, {.chunks = 4});
      ASSERT_TRUE(plan.ok() && phases.ok());
      EXPECT_LE(MicrosecondsOf(*plan), MicrosecondsOf(*phases)) << mib;
      EXPECT_GE(MicrosecondsOf(*plan), before) << mib;
      before = MicrosecondsOf(*plan);
      const DomainSet set(members, fabric);
      if (!BroadcastToTwins(request, set, fabric, {}).ok()) continue;
      EXPECT_LE(MicrosecondsOf(*plan), MicrosecondsOf(ToTwins(request, members, fabric))) << mib;
    }
  }
}

TEST(TwinBroadcastTest, FixedChoicesAndNeuronsAlgorithmsAreKept) {
  const Fabric fabric = UltraServers(2);
  const std::vector<Member> members = Everywhere(fabric);
  const auto free = PlanOnFabric(Broadcast(64 * kMiB), members, fabric);
  const auto fixed = PlanOnFabric(Broadcast(64 * kMiB), members, fabric, {.chunks = 16});
  const auto aws =
      PlanOnFabric(Broadcast(64 * kMiB), members, fabric, {.options = {.mode = PlanMode::kAws}});
  ASSERT_TRUE(free.ok() && fixed.ok() && aws.ok());
  EXPECT_LT(MicrosecondsOf(*free), MicrosecondsOf(*fixed));
  EXPECT_LT(MicrosecondsOf(*fixed), MicrosecondsOf(*aws));
}

TEST(TwinBroadcastTest, APlanGrowsWithTheDomainsOnlyByTheirCopies) {
  std::vector<std::size_t> steps;
  std::vector<std::size_t> scheduled;
  for (const int domains : {4, 20}) {  // with as many stripes
    const Fabric fabric = UltraServers(domains);
    const Plan plan = ToTwins(Broadcast(64 * kMiB), Everywhere(fabric), fabric);
    std::size_t sends = 0;
    for (const Step& step : plan.schedule.steps) sends += step.size();
    steps.push_back(sends);
    scheduled.push_back(plan.schedule.scheduled_count());
  }
  EXPECT_NEAR(static_cast<double>(steps[1]), static_cast<double>(steps[0]),
              0.01 * static_cast<double>(steps[0]));
  EXPECT_NEAR(static_cast<double>(scheduled[1]), static_cast<double>(scheduled[0]), 2);
}

}  // namespace
}  // namespace tahoma::sim
