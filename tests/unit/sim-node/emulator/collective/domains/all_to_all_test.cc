// An all-to-all in meshes between kinds of domains, against one with a message for each two chips.

#include "sim-node/emulator/collective/domains/all_to_all.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/schedule/timing.h"
#include "tests/unit/sim-node/emulator/collective/domains/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::Joined;
using testing::MicrosecondsOf;
using testing::Shuffled;
using testing::WrongElements;

Plan InMeshes(const Request& request, const std::vector<Member>& members, const Fabric& fabric) {
  const DomainSet set(members, fabric);
  const auto kinds = AllToAllKindsOf(request, members, set);
  EXPECT_TRUE(kinds.has_value());
  std::uint64_t ranks = 0;
  for (const Member& member : members) ranks += static_cast<std::uint64_t>(member.ranks);
  const auto block = AllToAllBlock(request, ranks);
  EXPECT_TRUE(block.ok()) << block.status();
  const ChipCosts costs;
  const StepWork work =
      WorkOf(2 * ranks * *block, static_cast<int>(members.size()) - 1, {}, costs, fabric.timing());
  Schedule schedule = AllToAllOver({request, members, set, fabric, *kinds, *block, work, costs});
  auto times = TimeSchedules({&schedule}, fabric);
  EXPECT_TRUE(times.ok()) << times.status();
  return {.algorithm = Algorithm::kHier, .schedule = std::move(schedule), .times = (*times)[0]};
}

// Instances in any order, two of three with NICs down in one direction or in both. In some of them
// only eight chips take part, or chips have two ranks.
struct Random {
  Fabric fabric;
  std::vector<Member> members;
};
Random RandomDomains(int domains, bool unlike_chips, Rng& rng) {
  Random random{.fabric = Joined(Instance(LinkTiming{}), domains), .members = {}};
  std::vector<int> order(static_cast<std::size_t>(domains));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    std::swap(order[i], order[i + rng.Below(order.size() - i)]);
  }
  const auto down = static_cast<int>(rng.Below(8));
  for (const int domain : order) {
    const std::uint64_t fate = unlike_chips ? rng.Below(6) : 5;
    const torus::ChipMask chips = fate == 0 ? 0x00ff : 0xffff;
    for (const Member& local : MembersOf(chips, fate == 1 ? 2 : 1)) {
      random.members.push_back(
          {.chip = Fabric::ChipOf(domain, local.chip.value()), .ranks = local.ranks});
    }
    const std::uint64_t damage = rng.Below(4);
    for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
      if (damage == 3 || (damage != 2 && damage != static_cast<std::uint64_t>(direction))) continue;
      const LinkId nic = random.fabric.NicOf(Fabric::ChipOf(domain, down), direction);
      EXPECT_TRUE(random.fabric.SetPermille(nic, 0).ok());
    }
  }
  return random;
}

TEST(AllToAllTest, EveryBlockComesToItsPlaceWhateverChipsAndNicsThereAre) {
  Rng rng(31);
  for (int round = 0; round < 24; ++round) {
    const auto [fabric, members] = RandomDomains(3 + static_cast<int>(rng.Below(4)), true, rng);
    const Request request{.operation = Operation::kAllToAll,
                          .bytes = 4 * (members.size() * 2 * (1 + rng.Below(9)) + rng.Below(99))};
    const Plan plan = InMeshes(request, members, fabric);
    EXPECT_EQ(WrongElements(plan, request, ReduceOp::kSum, members), 0U) << round;
    EXPECT_EQ(WrongElements(Shuffled(plan, rng), request, ReduceOp::kSum, members), 0U) << round;
  }
}

TEST(AllToAllTest, MeshesTakeAsLongAsAMessageForEachTwoChips) {
  Rng rng(32);
  for (int round = 0; round < 8; ++round) {
    const auto [fabric, members] = RandomDomains(4 + static_cast<int>(rng.Below(3)), false, rng);
    const Request request{.operation = Operation::kAllToAll,
                          .bytes = members.size() * (std::uint64_t{1} << 20U)};
    const Plan plan = InMeshes(request, members, fabric);
    const auto listed = PlanOnFabric(request, members, fabric, {.chunks = 1});
    ASSERT_TRUE(listed.ok()) << listed.status();
    EXPECT_NEAR(MicrosecondsOf(plan), MicrosecondsOf(*listed), 0.05 * MicrosecondsOf(*listed));
  }
}

TEST(AllToAllTest, ADomainWithoutAnyNicIsRefused) {
  Fabric fabric = Joined(Instance(LinkTiming{}), 3);
  std::vector<Member> members;
  for (int domain = 0; domain < 3; ++domain) {
    members.push_back({.chip = Fabric::ChipOf(domain, 0)});
  }
  ASSERT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(1, 0), 0).ok());
  const Request request{.operation = Operation::kAllToAll, .bytes = 4096};
  const DomainSet set(members, fabric);
  const auto kinds = AllToAllKindsOf(request, members, set);
  ASSERT_TRUE(kinds.has_value());
  EXPECT_EQ(*kinds, (std::vector<DomainSet::Kind>{{0, 2}, {1}}));
  EXPECT_EQ(Message(PlanOnFabric(request, members, fabric).status()),
            "the EFA NICs of all 1 chips of domain 1 are down");
}

TEST(AllToAllTest, DomainsWhoseMembersAreMixedAreListed) {
  const Fabric fabric = Joined(Instance(LinkTiming{}), 2);
  const std::vector<Member> mixed = {{.chip = Fabric::ChipOf(0, 0)},
                                     {.chip = Fabric::ChipOf(1, 0)},
                                     {.chip = Fabric::ChipOf(0, 1)}};
  const DomainSet set(mixed, fabric);
  EXPECT_EQ(AllToAllKindsOf({.operation = Operation::kAllToAll}, mixed, set), std::nullopt);
}

}  // namespace
}  // namespace tahoma::sim
