// Plans against the bound, isolation of tenants, damaged links, and what cannot be planned.

#include "sim-node/emulator/collective/plan/plan.h"

#include <gtest/gtest.h>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::MicrosecondsOf;
using testing::UltraServer;
using torus::ChipIndex;
using torus::ChipMask;

double Time(Algorithm algorithm, std::uint64_t bytes, ChipMask mask, const TorusLinks& links) {
  const auto plan =
      PlanWith(algorithm, {.bytes = bytes, .type = ElementType::kFp32}, MembersOf(mask), links);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return MicrosecondsOf(*plan);
}

TEST(PlanTest, NoAllReduceBeatsThePhysicalBound) {
  const TorusLinks links = UltraServer();
  for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
    const int n = box.size.chip_count();
    if (n < 2 || box.origin != torus::Coord{}) continue;
    double ingress = 0;
    for (const torus::Axis axis : torus::kAxes) {
      const double rate = axis == torus::Axis::kZ ? 64e9 : 128e9;
      ingress += box.size.extent(axis) == 4 ? 2 * rate : box.size.extent(axis) == 2 ? rate : 0;
    }
    const double bound = 2.0 * 64.0 * static_cast<double>(kMiB) * (n - 1) / n / ingress * 1e6;
    const double time = Time(Algorithm::kRdh, 64 * kMiB, box.mask, links);
    EXPECT_GE(time, bound) << box.ToString();
    // One Z dimension beside X/Y dimensions leaves links idle.
    const bool few = box.size.extent(torus::Axis::kZ) > 1 && n < 64;
    EXPECT_LE(time, bound * (few ? 1.32 : 1.064) + 16 * 1.5) << box.ToString();
  }
}

TEST(PlanTest, TimesGrowWithTheSizeAndAreTheSameForRotatedBoxesOfTheInstance) {
  const TorusLinks links = UltraServer();
  for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing}) {
    double last = 0;
    for (const std::uint64_t bytes : {4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB}) {
      const double time = Time(algorithm, bytes, 0xffff, links);
      EXPECT_GT(time, last);
      EXPECT_EQ(time, Time(algorithm, bytes, 0xffffull << 32U, links));
      last = time;
    }
    EXPECT_EQ(Time(algorithm, kMiB, 0b0011'0011, links), Time(algorithm, kMiB, 0b1001'1001, links));
    EXPECT_EQ(Time(algorithm, kMiB, 0b1111, links), Time(algorithm, kMiB, 0x1111, links));
  }
}

TEST(PlanTest, TenantsOnDisjointBoxesHaveExactlyTheirSoloTimesSideBySide) {
  const TorusLinks links = UltraServer();
  Rng rng(11);
  const auto boxes = torus::BoxTable::Of(links.torus()).all();
  int tried = 0;
  for (int attempt = 0; attempt < 400 && tried < 12; ++attempt) {
    const torus::Box& a = boxes[rng.Below(boxes.size())];
    const torus::Box& b = boxes[rng.Below(boxes.size())];
    if ((a.mask & b.mask) != 0 || a.size.chip_count() < 4 || b.size.chip_count() < 4) continue;
    ++tried;
    const auto algorithm = static_cast<Algorithm>(rng.Below(3));
    const auto plan_a = PlanWith(algorithm, {.bytes = kMiB}, MembersOf(a.mask), links);
    const auto plan_b = PlanWith(algorithm, {.bytes = 3 * kMiB}, MembersOf(b.mask), links);
    ASSERT_TRUE(plan_a.ok() && plan_b.ok());
    const auto both = TimeSchedules({&plan_a->schedule, &plan_b->schedule}, links);
    ASSERT_TRUE(both.ok());
    EXPECT_EQ((*both)[0].end, plan_a->times.end) << a.ToString() << " " << b.ToString();
    EXPECT_EQ((*both)[1].end, plan_b->times.end) << a.ToString() << " " << b.ToString();
  }
  EXPECT_EQ(tried, 12);
}

TEST(PlanTest, TenantsWhoseRoutesCrossSlowEachOther) {
  const TorusLinks links = Instance();
  // Neither pair hangs together; 0 to 2 and 1 to 6 both cross the link from 1 to 2.
  const auto a = PlanWith(Algorithm::kMesh, {.bytes = kMiB}, MembersOf(0b0000'0101), links);
  const auto b = PlanWith(Algorithm::kMesh, {.bytes = kMiB}, MembersOf(0b0100'0010), links);
  ASSERT_TRUE(a.ok() && b.ok());
  const auto both = TimeSchedules({&a->schedule, &b->schedule}, links);
  ASSERT_TRUE(both.ok());
  EXPECT_GT((*both)[0].end, a->times.end);
}

TEST(PlanTest, ABrokenLinkInsideMakesTheCollectiveSlowerAndTheRepairUndoesIt) {
  TorusLinks links = Instance();
  const Request request{.bytes = 16 * kMiB};
  const auto healthy = PlanCollective(request, MembersOf(0xffff), links);
  ASSERT_TRUE(links.SetCablePermille(1, 0).ok());
  const auto broken = PlanCollective(request, MembersOf(0xffff), links);
  ASSERT_TRUE(healthy.ok() && broken.ok());
  EXPECT_GT(broken->times.end, healthy->times.end);
  for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing}) {
    EXPECT_GE(PlanWith(algorithm, request, MembersOf(0xffff), links)->times.end, broken->times.end);
  }
  ASSERT_TRUE(links.SetCablePermille(1, 1000).ok());
  EXPECT_EQ(PlanCollective(request, MembersOf(0xffff), links)->times.end, healthy->times.end);
}

TEST(PlanTest, ABrokenLinkOutsideChangesNothing) {
  TorusLinks links = UltraServer();
  const Request request{.bytes = 16 * kMiB};
  const auto before = PlanCollective(request, MembersOf(0xffff), links);
  ASSERT_TRUE(links
                  .SetCablePermille(
                      TorusLinks::IdOf(ChipIndex(20), torus::Axis::kX, torus::Direction::kPlus), 0)
                  .ok());
  const auto after = PlanCollective(request, MembersOf(0xffff), links);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(after->times.end, before->times.end);
  EXPECT_EQ(after->algorithm, before->algorithm);
}

TEST(PlanTest, ChipsThatHangOnVerySlowCablesTakePartInAGathering) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    TorusLinks links = Instance();
    testing::SlowHalfOfTheCables(links, seed);
    for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter}) {
      EXPECT_LE(testing::TimeOverBound(operation, 0xfffe, 64 * kMiB, links), 1.2) << seed;
    }
  }
}

TEST(PlanTest, APairCutOffIsAPreciseError) {
  TorusLinks links = Instance();
  ASSERT_TRUE(links.SetCablePermille(1, 0).ok());
  const auto plan = PlanCollective({.bytes = kMiB}, MembersOf(0b11), links);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(plan.status()), "no NeuronLink route from chip 1 to chip 0: links are down");
}

TEST(PlanTest, OneChipAloneNeedsNoLink) {
  const TorusLinks links(torus::Shape::Of<1, 1, 1>(), hw::kTrainium2.links);
  const auto plan = PlanCollective({.bytes = kMiB}, MembersOf(1), links);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->times.end, plan->times.start);
  EXPECT_TRUE(plan->schedule.steps.empty());
}

TEST(PlanTest, ImpossibleRequestsAreRefused) {
  const TorusLinks links = Instance();
  const auto message = [&](const Request& request, const std::vector<Member>& members) {
    return std::string(Message(PlanCollective(request, members, links).status()));
  };
  EXPECT_EQ(message({.bytes = 4}, {}), "a collective needs at least one chip");
  EXPECT_EQ(message({.bytes = 6}, MembersOf(1)), "6 bytes are not a whole number of fp32 elements");
  EXPECT_EQ(message({.bytes = 4}, {{.chip = ChipIndex(16)}}), "chip 16 is not in a torus of 4x4x1");
  EXPECT_EQ(message({.bytes = 4}, {{.chip = ChipIndex(1)}, {.chip = ChipIndex(1)}}),
            "chip 1 takes part twice");
  EXPECT_EQ(message({.bytes = 4}, {{.chip = ChipIndex(1), .ranks = 9}}),
            "chip 1 has 9 ranks; expected 1 to 8");
  for (const int banks : {-1, 0, 5}) {
    EXPECT_EQ(message({.bytes = 4}, {{.chip = ChipIndex(1), .banks = banks}}),
              fmt::format("chip 1 has buffers in {} HBM banks; expected 1 to 4", banks));
  }
  EXPECT_EQ(Message(PlanWith(Algorithm::kRdh, {.bytes = 4}, MembersOf(0b111), links).status()),
            "rdh needs a box with sides 1, 2 and 4; 3 chips here are none");
  EXPECT_EQ(Name(*ParseOperation("allr")), "all_reduce");
  EXPECT_EQ(
      Message(ParseOperation("gather").status()),
      "unknown operation \"gather\"; expected one of all_reduce, allreduce, allr, all_gather, "
      "allgather, allg, reduce_scatter, reducescatter, redsct, all_to_all, alltoall, sendrecv, "
      "permute, broadcast");
}

}  // namespace
}  // namespace tahoma::sim
