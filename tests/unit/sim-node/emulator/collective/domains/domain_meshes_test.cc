// Messages in meshes between kinds of domains, against the same collectives with a message for each
// two domains: every byte comes to its place, each NIC carries as much, and it takes as long.

#include "sim-node/emulator/collective/domains/domain_meshes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/domains/chunk_sizes.h"
#include "sim-node/emulator/collective/domains/composition.h"
#include "sim-node/emulator/collective/plan/link_loads.h"
#include "sim-node/emulator/collective/schedule/timing.h"
#include "tests/unit/sim-node/emulator/collective/domains/support.h"

namespace tahoma::sim {
namespace {

using testing::Composed;
using testing::Instance;
using testing::Joined;
using testing::MicrosecondsOf;
using testing::Shuffled;
using testing::WrongElements;

constexpr Operation kPhased[] = {Operation::kAllReduce, Operation::kAllGather,
                                 Operation::kReduceScatter, Operation::kBroadcast};

// All chips of the domains that the masks have, in this order of domains.
std::vector<Member> MembersIn(const std::vector<int>& domains,
                              const std::vector<torus::ChipMask>& chips, int ranks = 1) {
  std::vector<Member> members;
  for (const int domain : domains) {
    for (const Member& local : MembersOf(chips[static_cast<std::size_t>(domain)], ranks)) {
      members.push_back({.chip = Fabric::ChipOf(domain, local.chip.value()), .ranks = ranks});
    }
  }
  return members;
}

std::vector<int> AnyOrderOf(int domains, Rng& rng) {
  std::vector<int> order(static_cast<std::size_t>(domains));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    std::swap(order[i], order[i + rng.Below(order.size() - i)]);
  }
  return order;
}

// A plan of this kind with its times.
Plan Timed(const Request& request, const std::vector<Member>& members, const Fabric& fabric,
           int chunks, bool meshes, InterAlgorithm between = InterAlgorithm::kMesh) {
  Plan plan = Composed(request, members, fabric, chunks, meshes, between);
  auto times = TimeSchedules({&plan.schedule}, fabric);
  EXPECT_TRUE(times.ok()) << times.status();
  plan.times = (*times)[0];
  return plan;
}

// Bytes on links that have any, by link.
std::vector<std::uint64_t> BytesOf(const Plan& plan, const Fabric& fabric) {
  std::vector<std::uint64_t> bytes(fabric.id_count());
  const auto loads = LoadsOf(plan, fabric);
  EXPECT_TRUE(loads.ok()) << loads.status();
  for (const LinkLoad& load : *loads) bytes[load.link] = load.bytes;
  return bytes;
}

// Expects that NICs and uplinks carry as much in both, but for rounding.
void ExpectSameBytes(const Plan& one, const Plan& all, const Fabric& fabric) {
  const std::vector<std::uint64_t> ones = BytesOf(one, fabric);
  const std::vector<std::uint64_t> others = BytesOf(all, fabric);
  const LinkId first = fabric.NicOf(Fabric::ChipOf(0, 0), NicDirection::kOut);
  const LinkId last =
      fabric.NicOf(Fabric::ChipOf(fabric.domain_count() - 1, 15), NicDirection::kIn);
  const std::uint64_t most = *std::max_element(others.begin() + first, others.begin() + last + 1);
  for (LinkId link = first; link < fabric.id_count(); ++link) {
    EXPECT_NEAR(static_cast<double>(ones[link]), static_cast<double>(others[link]),
                0.01 * static_cast<double>(std::max(most, others[link])))
        << fabric.Name(link);
  }
}

// A fabric of instances, two of three of them as they should be, the others with NICs down or slow
// or with a broken cable.
Fabric RandomFabric(int domains, Rng& rng) {
  Fabric fabric = Joined(Instance(LinkTiming{}), domains);
  const std::vector<int> down = {static_cast<int>(rng.Below(16)), static_cast<int>(rng.Below(16))};
  for (int domain = 0; domain < domains; ++domain) {
    const std::uint64_t fate = rng.Below(6);
    if (fate == 0) {
      for (const int chip : down) {
        EXPECT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(domain, chip), 0).ok());
      }
    }
    if (fate == 1) {
      EXPECT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(domain, down[0]), 500).ok());
    }
    if (fate == 2) {
      const LinkId link =
          TorusLinks::IdOf(torus::ChipIndex(down[1]), torus::Axis::kX, torus::Direction::kPlus);
      EXPECT_TRUE(fabric.SetPermille(fabric.LinkOf(domain, link), 0).ok());
    }
  }
  return fabric;
}

TEST(DomainMeshesTest, EveryByteComesToItsPlaceInWhateverOrderDomainsAndTheirFaultsAre) {
  Rng rng(20);
  for (int round = 0; round < 20; ++round) {
    const int domains = 3 + static_cast<int>(rng.Below(4));
    const Fabric fabric = RandomFabric(domains, rng);
    std::vector<torus::ChipMask> chips(static_cast<std::size_t>(domains), 0xffff);
    if (round % 4 == 1) chips[rng.Below(chips.size())] = 0x00ff;
    if (round % 4 == 2) chips[rng.Below(chips.size())] = 0x0fff;
    const int ranks = round % 5 == 0 ? 2 : 1;
    const std::vector<Member> members = MembersIn(AnyOrderOf(domains, rng), chips, ranks);
    for (const Operation operation : kPhased) {
      const Request request{.operation = operation, .bytes = 4 * (1 + rng.Below(60'000))};
      const int chunks = 1 + static_cast<int>(rng.Below(3));
      const Plan plan = Timed(request, members, fabric, chunks, /*meshes=*/true);
      EXPECT_EQ(WrongElements(plan, request, ReduceOp::kSum, members), 0U)
          << Name(operation) << " round " << round;
      EXPECT_EQ(WrongElements(Shuffled(plan, rng), request, ReduceOp::kSum, members), 0U)
          << Name(operation) << " round " << round << " in another order";
    }
  }
}

TEST(DomainMeshesTest, NicsCarryAsMuchAndTimesAreTheSameAsWithAMessageForEachTwo) {
  Rng rng(21);
  for (int round = 0; round < 12; ++round) {
    const int domains = 3 + static_cast<int>(rng.Below(4));
    const Fabric fabric = RandomFabric(domains, rng);
    std::vector<torus::ChipMask> chips(static_cast<std::size_t>(domains), 0xffff);
    if (round % 4 == 1) chips[rng.Below(chips.size())] = 0x00ff;
    const std::vector<Member> members = MembersIn(AnyOrderOf(domains, rng), chips);
    for (const Operation operation : kPhased) {
      const Request request{.operation = operation, .bytes = members.size() * kMiB};
      const Plan one = Timed(request, members, fabric, 4, /*meshes=*/true);
      const Plan all = Timed(request, members, fabric, 4, /*meshes=*/false);
      EXPECT_NEAR(MicrosecondsOf(one), MicrosecondsOf(all), 0.02 * MicrosecondsOf(all))
          << Name(operation) << " round " << round;
      ExpectSameBytes(one, all, fabric);
    }
  }
}

TEST(DomainMeshesTest, DomainsAreOfOneKindThatHaveTheSameChipsNicsAndBlocks) {
  Fabric fabric = Joined(Instance(LinkTiming{}), 6);
  ASSERT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(1, 3), 0).ok());
  ASSERT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(4, 3), 0).ok());
  ASSERT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(5, 3), 500).ok());
  ASSERT_TRUE(fabric.SetPermille(fabric.LinkOf(2, 0), 0).ok());
  const std::vector<Member> members =
      MembersIn({0, 1, 2, 3, 4, 5}, std::vector<torus::ChipMask>(6, 0xffff));
  const DomainSet set(members, fabric);
  const auto kinds = [&](Operation operation, std::uint64_t elements) {
    const Layout layout = Layout::Weighted(std::vector<int>(members.size(), 1), elements, 4);
    return MeshKindsOf({.operation = operation, .bytes = 4 * elements}, layout, set);
  };
  using Kinds = std::vector<DomainSet::Kind>;
  EXPECT_EQ(kinds(Operation::kAllReduce, 100), (Kinds{{0, 2, 3}, {1, 4}, {5}}));
  EXPECT_EQ(kinds(Operation::kBroadcast, 100), (Kinds{{0}, {1, 4}, {2, 3}, {5}}));
  EXPECT_EQ(kinds(Operation::kAllGather, 96), (Kinds{{0, 2, 3}, {1, 4}, {5}}));
  // 100 elements are one for each of 96 chips, and one more for each 24th: the 8th of domains 1 and
  // 4, the last of domains 2 and 5.
  EXPECT_EQ(kinds(Operation::kAllGather, 100), (Kinds{{0, 3}, {1, 4}, {2}, {5}}));
}

TEST(ChunkSizesTest, ChunksAreEqualButTheFirstOfWhatIsGatheredAndTheLastOfWhatIsReduced) {
  const auto sizes = [](Operation operation, std::uint64_t elements) {
    const ChunkSizes of(operation, 5);
    std::vector<std::uint64_t> all;
    for (std::uint64_t chunk = 0; chunk < 5; ++chunk) {
      all.push_back(of.Before(chunk + 1, elements) - of.Before(chunk, elements));
    }
    EXPECT_EQ(of.Before(0, elements), 0U);
    EXPECT_EQ(of.Before(5, elements), elements);
    return all;
  };
  using Sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(sizes(Operation::kAllReduce, 50), (Sizes{10, 10, 10, 10, 10}));
  EXPECT_EQ(sizes(Operation::kAllGather, 240), (Sizes{20, 40, 60, 60, 60}));
  EXPECT_EQ(sizes(Operation::kReduceScatter, 210), (Sizes{30, 60, 60, 40, 20}));
  sizes(Operation::kReduceScatter, 3);
}

}  // namespace
}  // namespace tahoma::sim
