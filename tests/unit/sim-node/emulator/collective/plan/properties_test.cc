// Tests properties of every collective, whatever its algorithm: a removed link costs no more than
// the cuts demand, tenants do not feel one another or faults elsewhere, a relabelled torus is the
// same torus, and more bytes or slower links never make anything faster.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::Axis;
using torus::Box;
using torus::BoxTable;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Coord;
using torus::Direction;

constexpr Operation kReducing[] = {Operation::kAllReduce, Operation::kAllGather,
                                   Operation::kReduceScatter};
constexpr ChipMask kPlane = 0xffff;

VirtualDuration TimeOf(const Plan& plan) { return plan.times.end - plan.times.start; }

Plan Planned(const Request& request, ChipMask mask, const TorusLinks& links) {
  auto plan = PlanCollective(request, MembersOf(mask), links);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan{};
}

// Time over bound.
double Ratio(Operation operation, ChipMask mask, const TorusLinks& links) {
  const Plan plan = Planned({.operation = operation, .bytes = kGiB}, mask, links);
  return Nanoseconds(TimeOf(plan)) /
         Nanoseconds(LowerBound(operation, SetOf(MembersOf(mask), links), kGiB, links));
}

// Any of an instance's 32 cables, and one of each class of an UltraServer's.
TEST(MinCutTest, ARemovedCableOfAnInstanceCostsWhatTheCutsDemandWhicheverItIs) {
  for (int chip = 0; chip < 16; ++chip) {
    for (const Axis axis : {Axis::kX, Axis::kY}) {
      TorusLinks links = Instance();
      const LinkId link = TorusLinks::IdOf(ChipIndex(chip), axis, Direction::kPlus);
      ASSERT_TRUE(links.SetCablePermille(link, 0).ok());
      for (const Operation operation : kReducing) {
        EXPECT_LE(Ratio(operation, kPlane, links), 1.07)
            << Name(operation) << " without " << TorusLinks::Name(link);
      }
    }
  }
}

TEST(MinCutTest, ARemovedCableOfAnUltraServerCostsWhatTheCutsDemandInEachClass) {
  for (const Axis axis : torus::kAxes) {
    TorusLinks links = UltraServer();
    const LinkId link = TorusLinks::IdOf(ChipIndex(21), axis, Direction::kPlus);
    ASSERT_TRUE(links.SetCablePermille(link, 0).ok());
    for (const Operation operation : kReducing) {
      EXPECT_LE(Ratio(operation, kAllChips, links), 1.07)
          << Name(operation) << " without " << TorusLinks::Name(link);
    }
  }
}

// Boxes that have no chip in common, as many as a few draws give.
std::vector<Box> DisjointBoxes(Rng& rng, const torus::Shape& torus) {
  const auto boxes = BoxTable::Of(torus).all();
  std::vector<Box> tenants;
  ChipMask taken = 0;
  for (int draw = 0; draw < 24; ++draw) {
    const Box& box = boxes[rng.Below(boxes.size())];
    if (box.size.chip_count() < 2 || (box.mask & taken) != 0) continue;
    taken |= box.mask;
    tenants.push_back(box);
  }
  return tenants;
}

bool IsInside(const TorusLinks& links, LinkId link, const std::vector<Box>& tenants) {
  const torus::Hop hop = links.HopOf(link);
  return std::any_of(tenants.begin(), tenants.end(), [&](const Box& box) {
    return (box.mask & MaskOf(hop.from)) != 0 && (box.mask & MaskOf(hop.to)) != 0;
  });
}

Request RandomRequest(Rng& rng) {
  constexpr Operation kAll[] = {Operation::kAllReduce, Operation::kAllGather,
                                Operation::kReduceScatter, Operation::kAllToAll,
                                Operation::kBroadcast};
  return {.operation = kAll[rng.Below(std::size(kAll))],
          .bytes = std::uint64_t{1} << (10 + rng.Below(17))};
}

TEST(IsolationTest, TenantsOnDisjointBoxesKeepTheirSoloTimesWithAnyFaultsOutside) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const TorusLinks healthy = seed % 3 == 0 ? UltraServer() : Instance();
    const std::vector<Box> tenants = DisjointBoxes(rng, healthy.torus());
    TorusLinks links = healthy;
    for (LinkId link = 0; link < links.id_count(); ++link) {
      if (!links.Exists(link) || IsInside(links, link, tenants) || !rng.Chance(1, 2)) continue;
      ASSERT_TRUE(links.SetPermille(link, static_cast<std::uint16_t>(rng.Below(1001))).ok());
      ASSERT_TRUE(links.SetLoss(link, static_cast<std::uint32_t>(rng.Below(kMaxLossPpm))).ok());
    }
    std::vector<Plan> alone;
    std::vector<const Schedule*> schedules;
    for (const Box& box : tenants) {
      const Request request = RandomRequest(rng);
      alone.push_back(Planned(request, box.mask, healthy));
      // The faults change neither the choice nor the time.
      const Plan beside = Planned(request, box.mask, links);
      EXPECT_EQ(beside.algorithm, alone.back().algorithm) << box.ToString();
      EXPECT_EQ(beside.times.end, alone.back().times.end) << box.ToString();
    }
    for (const Plan& plan : alone) schedules.push_back(&plan.schedule);
    const auto together = TimeSchedules(schedules, links);
    ASSERT_TRUE(together.ok()) << together.status();
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ((*together)[i].end, alone[i].times.end) << tenants[i].ToString();
    }
  }
}

TEST(IsolationTest, FaultsThatStrikeOutsideWhileTheyRunChangeNothingEither) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const TorusLinks links = seed % 4 == 0 ? UltraServer() : Instance();
    const std::vector<Box> tenants = DisjointBoxes(rng, links.torus());
    std::vector<Fault> faults;
    for (int i = 0; i < 40; ++i) {
      const auto link = static_cast<LinkId>(rng.Below(links.id_count()));
      if (!links.Exists(link) || IsInside(links, link, tenants)) continue;
      faults.push_back(
          {.at = VirtualTime(Microseconds(1)) +
                 VirtualDuration(static_cast<VirtualDuration::rep>(rng.Below(1'000'000'000))),
           .target = link,
           .permille = static_cast<std::uint16_t>(rng.Chance(1, 3) ? 0 : rng.Below(1001))});
    }
    std::vector<Plan> alone;
    for (const Box& box : tenants) alone.push_back(Planned(RandomRequest(rng), box.mask, links));
    std::vector<const Schedule*> schedules;
    for (const Plan& plan : alone) schedules.push_back(&plan.schedule);
    const auto together = TimeSchedules(schedules, links, {}, FaultPlan(std::move(faults)));
    ASSERT_TRUE(together.ok()) << together.status();
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ((*together)[i].end, alone[i].times.end) << tenants[i].ToString();
    }
  }
}

// A ring of four is a square: with each axis in Gray code a plane is a 4-cube, whose automorphisms
// are flips and permutations of its four dimensions; Z is slower and keeps to itself.
class Relabelling {
 public:
  // `number` below 384 for a plane, below 384 * 8 for an UltraServer.
  explicit Relabelling(int number) : flips_(static_cast<unsigned>(number % 16)) {
    int rank = number / 16 % 24;
    std::array<int, 4> order = {0, 1, 2, 3};
    while (rank-- > 0) std::next_permutation(order.begin(), order.end());
    order_ = order;
    z_ = number / 384;
  }
  ChipIndex operator()(ChipIndex chip, const torus::Shape& torus) const {
    const Coord at = torus.CoordOf(chip);
    const unsigned address = (Gray(at.x) | Gray(at.y) << 2U) ^ flips_;
    unsigned image = 0;
    for (unsigned bit = 0; bit < 4; ++bit) {
      image |= (address >> bit & 1U) << static_cast<unsigned>(order_.at(bit));
    }
    const int turned = z_ < 4 ? at.z + z_ : 3 * 4 - at.z - z_;
    Coord to = at;
    to.set(Axis::kX, Ungray(image & 3U));
    to.set(Axis::kY, Ungray(image >> 2U));
    if (torus.extent(Axis::kZ) > 1) to.set(Axis::kZ, turned % 4);
    return torus.IndexOf(to);
  }
  ChipMask operator()(ChipMask mask, const torus::Shape& torus) const {
    ChipMask image = 0;
    for (; mask != 0; mask &= mask - 1) {
      image |= MaskOf((*this)(ChipIndex(std::countr_zero(mask)), torus));
    }
    return image;
  }

 private:
  static unsigned Gray(int value) { return static_cast<unsigned>(value ^ (value >> 1)); }
  static int Ungray(unsigned code) { return static_cast<int>(code ^ (code >> 1U)); }
  unsigned flips_;
  std::array<int, 4> order_{};
  int z_ = 0;
};

Schedule Relabelled(const Relabelling& relabel, const Schedule& schedule,
                    const torus::Shape& torus) {
  Schedule image = schedule;
  image.through = relabel(schedule.through, torus);
  for (Step& step : image.steps) {
    for (Send& send : step) {
      send.from = relabel(send.from, torus);
      send.to = relabel(send.to, torus);
    }
  }
  return image;
}

TEST(SymmetryTest, ThereAre384RelabellingsOfAPlaneAndTheyKeepNeighbours) {
  std::set<std::vector<int>> different;
  for (int number = 0; number < 384; ++number) {
    const Relabelling relabel(number);
    std::vector<int> image;
    for (int chip = 0; chip < 16; ++chip) {
      const ChipIndex from(chip);
      image.push_back(relabel(from, torus::kInstanceShape).value());
      for (int other = 0; other < 16; ++other) {
        const auto hops = [](ChipIndex a, ChipIndex b) {
          return torus::Route(torus::kInstanceShape, a, b).size();
        };
        EXPECT_EQ(hops(from, ChipIndex(other)),
                  hops(relabel(from, torus::kInstanceShape),
                       relabel(ChipIndex(other), torus::kInstanceShape)));
      }
    }
    different.insert(image);
  }
  EXPECT_EQ(different.size(), 384U);
}

// Steps between neighbours take the same time under every relabelling, to the picosecond.
TEST(SymmetryTest, EveryRelabellingOfASchedulesChipsLeavesItsTimes) {
  Rng rng(7);
  for (const bool ultra : {false, true}) {
    const TorusLinks links = ultra ? UltraServer() : Instance();
    const ChipMask all = ultra ? kAllChips : kPlane;
    for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing}) {
      const auto plan = PlanWith(algorithm, {.bytes = 4 * kMiB}, MembersOf(all), links);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const int count = ultra ? 24 : 384;
      for (int i = 0; i < count; ++i) {
        const int number = ultra ? static_cast<int>(rng.Below(384 * 8)) : i;
        const Schedule image = Relabelled(Relabelling(number), plan->schedule, links.torus());
        const auto times = TimeSchedules({&image}, links);
        ASSERT_TRUE(times.ok()) << times.status();
        EXPECT_EQ((*times)[0].end, plan->times.end) << Name(algorithm) << " " << number;
      }
    }
  }
}

TEST(SymmetryTest, ABoxAndItsImageUnderAnyRelabellingGiveTheSameTimes) {
  for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather}) {
    for (const std::uint64_t bytes : {64 * kMiB / 1024, 64 * kMiB}) {
      std::map<ChipMask, VirtualDuration> times;
      const TorusLinks links = Instance();
      const auto time_of = [&](ChipMask mask) {
        const auto [entry, added] = times.try_emplace(mask);
        if (added) {
          entry->second = TimeOf(Planned({.operation = operation, .bytes = bytes}, mask, links));
        }
        return entry->second;
      };
      for (const Box& box : BoxTable::Of(torus::kInstanceShape).all()) {
        for (int number = 0; number < 384; ++number) {
          const ChipMask image = Relabelling(number)(box.mask, torus::kInstanceShape);
          ASSERT_EQ(time_of(image), time_of(box.mask)) << box.ToString() << " by " << number;
        }
      }
    }
  }
}

TEST(MonotonicityTest, MoreBytesNeverTakeLessAndFasterLinksNeverMore) {
  hw::LinkRates twice = hw::kTrainium2.links;
  twice.intra_instance *= 2;
  twice.inter_instance *= 2;
  const TorusLinks fast(torus::kUltraServerShape, twice, testing::kTableTiming);
  for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing}) {
    for (const Operation operation : kReducing) {
      VirtualDuration last{};
      for (std::uint64_t bytes = kMiB / 16; bytes <= 256 * kMiB; bytes *= 4) {
        const Request request{.operation = operation, .bytes = bytes};
        const auto time = [&](const Request& asked, const TorusLinks& links) {
          const auto plan =
              PlanWith(algorithm, asked, MembersOf(0xff), links, {.costs = kNoChipCosts});
          EXPECT_TRUE(plan.ok()) << plan.status();
          return plan.ok() ? TimeOf(*plan) : VirtualDuration{};
        };
        const VirtualDuration now = time(request, UltraServer());
        EXPECT_GE(now, last) << Name(algorithm) << " " << bytes;
        EXPECT_LT(time(request, fast), now) << Name(algorithm) << " " << bytes;
        // Twice the bytes on links of twice the rate: the same, but for a picosecond a step.
        const auto doubled = time({.operation = operation, .bytes = 2 * bytes}, fast);
        EXPECT_NEAR(static_cast<double>(doubled.count()), static_cast<double>(now.count()), 1000);
        last = now;
      }
    }
  }
}

TEST(ClosedFormTest, AnAllReduceIsAReduceScatterAndThenAnAllGather) {
  for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing}) {
    for (const Box& box : BoxTable::Of(torus::kInstanceShape).all()) {
      if (box.size.chip_count() < 2) continue;
      const auto time = [&](Operation operation) {
        const auto plan = PlanWith(algorithm, {.operation = operation, .bytes = 4 * kMiB},
                                   MembersOf(box.mask), Instance());
        EXPECT_TRUE(plan.ok()) << plan.status();
        return static_cast<double>((plan.ok() ? TimeOf(*plan) : VirtualDuration{}).count());
      };
      // An all-reduce may cut blocks elsewhere: some picoseconds of rounding to elements.
      EXPECT_NEAR(time(Operation::kAllReduce),
                  time(Operation::kReduceScatter) + time(Operation::kAllGather), 200)
          << Name(algorithm) << " " << box.ToString();
    }
  }
}

TEST(DeterminismTest, ManyThreadsPlanWhatOneDoes) {
  TorusLinks links = Instance();
  ASSERT_TRUE(
      links.SetPermille(TorusLinks::IdOf(ChipIndex(5), Axis::kX, Direction::kPlus), 0).ok());
  const Request request{.operation = Operation::kAllReduce, .bytes = 8 * kMiB};
  const Plan alone = Planned(request, kPlane, links);
  std::array<Plan, 8> plans;
  std::vector<std::thread> threads;
  for (Plan& plan : plans) {
    threads.emplace_back([&] { plan = Planned(request, kPlane, links); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Plan& plan : plans) {
    EXPECT_EQ(plan.algorithm, alone.algorithm);
    EXPECT_EQ(plan.schedule.steps, alone.schedule.steps);
    EXPECT_EQ(plan.times.end, alone.times.end);
    ASSERT_EQ(plan.times.steps.size(), alone.times.steps.size());
    for (std::size_t i = 0; i < plan.times.steps.size(); ++i) {
      EXPECT_EQ(plan.times.steps[i].arrivals, alone.times.steps[i].arrivals);
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
